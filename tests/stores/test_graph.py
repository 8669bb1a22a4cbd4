"""The contract of graph stores."""

import subprocess
import sys

import pytest

from hookline.ext.stores import BadStoreValue, Edge, Node, StoreLocked

from .conftest import providers, run, stores_in

store = providers("graph")

PEOPLE = [
    Node("ada", "person", {"name": "Ada", "born": 1815, "tags": ["maths"]}),
    Node("ben", "person", {"name": "Ben 🧑‍🚀", "born": 1990, "alive": True}),
    Node("cleo", "person"),
    Node("acme", "company", {"city": "Köln"}),
]
EDGES = [
    Edge("ada", "knows", "ben", {"since": 2001}),
    Edge("ben", "knows", "cleo"),
    Edge("cleo", "knows", "ada"),
    Edge("ben", "works at", "acme", {"role": "cook"}),
]


@pytest.fixture
async def filled(store):
    await store.upsert(PEOPLE, EDGES)
    return store


def ids(nodes):
    return [node.id for node in nodes]


async def test_nodes_and_edges_come_back_as_they_were_kept(filled):
    assert [await filled.get(node.id) for node in PEOPLE] == PEOPLE
    assert await filled.get("dora") is None
    assert await filled.edges() == sorted(EDGES, key=lambda e: (e.source, e.type, e.target))


async def test_what_is_the_same_is_replaced(filled):
    await filled.upsert([Node("ada", "ghost", {})], [Edge("ada", "knows", "ben", {"since": 1})])
    assert await filled.get("ada") == Node("ada", "ghost", {})
    assert await filled.edges("ada") == [Edge("ada", "knows", "ben", {"since": 1})]
    assert (await filled.health()).count == 4


async def test_nodes_are_found_by_label_and_property(filled):
    assert ids(await filled.nodes("person")) == ["ada", "ben", "cleo"]
    assert ids(await filled.nodes("person", limit=2)) == ["ada", "ben"]
    assert ids(await filled.nodes(where={"born": {"gte": 1900}})) == ["ben"]
    assert ids(await filled.nodes("person", {"alive": None})) == ["ada", "cleo"]
    assert ids(await filled.nodes("person", {"alive": None}, limit=1)) == ["ada"]
    assert ids(await filled.nodes(where={"tags": {"contains": "maths"}})) == ["ada"]
    assert await filled.nodes("nobody") == []


async def test_edges_are_found_by_their_ends_type_and_property(filled):
    assert await filled.edges("ben") == [EDGES[1], EDGES[3]]
    assert await filled.edges(edge_type="works at") == [EDGES[3]]
    assert await filled.edges(target="ada") == [EDGES[2]]
    assert await filled.edges(where={"since": 2001}) == [EDGES[0]]
    assert len(await filled.edges(limit=2)) == 2


async def test_neighbours_are_found_by_direction_type_and_depth(filled):
    assert ids(await filled.neighbours("ben")) == ["acme", "ada", "cleo"]
    assert ids(await filled.neighbours("ben", direction="out")) == ["acme", "cleo"]
    assert ids(await filled.neighbours("ben", direction="in")) == ["ada"]
    assert ids(await filled.neighbours("ben", edge_type="knows", direction="out")) == ["cleo"]
    assert ids(await filled.neighbours("ada", direction="out", depth=2)) == ["ben", "acme", "cleo"]
    assert ids(await filled.neighbours("ada", depth=10, direction="out", limit=2)) == ["ben", "acme"]
    assert await filled.neighbours("acme", direction="out") == []
    assert await filled.neighbours("nobody") == []


async def test_a_deleted_node_takes_its_edges_along(filled):
    assert await filled.delete(["ben", "ben", "nobody"]) == 1
    assert await filled.edges() == [EDGES[2]]
    assert await filled.get("ben") is None


async def test_deleted_edges_leave_their_nodes(filled):
    assert await filled.delete_edges([Edge("ada", "knows", "ben"), Edge("ada", "hates", "ben")]) == 1
    assert await filled.edges("ada") == []
    assert await filled.get("ada") == PEOPLE[0]


async def test_an_edge_to_nowhere_is_refused_with_everything_sent_with_it(store):
    with pytest.raises(BadStoreValue) as refused:
        await store.upsert([Node("a")], [Edge("a", "knows", "b")])
    assert str(refused.value) == (
        "the edge 'a' -knows-> 'b' needs the node 'b', which does not exist; nothing was written"
    )
    assert await store.nodes() == []


async def test_questions_are_asked_in_cypher(filled):
    rows = await filled.query(
        "MATCH (a:Node)-[e:Edge {type: $type}]->(b:Node) RETURN a.id AS who, b.id ORDER BY who",
        {"type": "knows"},
    )
    assert rows[0] == {"who": "ada", "b.id": "ben"}
    assert len(rows) == 3
    city = "MATCH (n:Node) WHERE list_contains(element_at(n.properties, 'city'), 'Köln') RETURN n.id;"
    assert await filled.query(city) == [{"n.id": "acme"}]
    assert len(await filled.query("MATCH (n:Node) RETURN n.id", limit=2)) == 2
    assert await filled.query("RETURN 'a; LOAD FROM b' AS text") == [{"text": "a; LOAD FROM b"}]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE (:Node {id: 'x'})", "a query begins with MATCH, OPTIONAL, UNWIND, WITH or RETURN"),
        ("", "not with 'nothing'"),
        ("MATCH (n:Node) DETACH DELETE n", "read-only"),
        ("MATCH (n:Node) SET n.label = 'x'", "read-only"),
        ("RETURN 1; COMMIT", "a query is one statement"),
        ("RETURN 1 /* ; */; CREATE (:Node {id: 'x'})", "a query is one statement"),
        ("COMMIT", "a query begins with"),
        ("COPY Node TO 'file.csv'", "a query begins with"),
        ("CALL threads=3", "a query begins with"),
        ("MATCH (n:Node) LOAD /* */ FROM '/etc/passwd' RETURN *", "a query cannot use LOAD FROM"),
        ("MATCH (n:Nobody) RETURN n", "the query cannot be understood"),
        ("MATCH n", "the query cannot be understood"),
    ],
)
async def test_a_question_cannot_change_anything(filled, statement, message):
    with pytest.raises(Exception) as refused:
        await filled.query(statement)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert ids(await filled.nodes("person")) == ["ada", "ben", "cleo"]
    await filled.upsert([Node("after")])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.upsert([Node("")]), "the id must be a text of 1 to 1,000"),
        (lambda s: s.upsert([Node("a\0b")]), "without NUL"),
        (lambda s: s.upsert([Node("a", properties={"x": object()})]), "cannot be written as JSON"),
        (lambda s: s.neighbours("a", direction="up"), "direction must be one of out, in, both"),
        (lambda s: s.neighbours("a", depth=11), "depth must be from 1 to 10, not 11"),
    ],
)
async def test_bad_nodes_and_questions_are_refused(store, call, message):
    with pytest.raises(BadStoreValue) as refused:
        await call(store)
    assert message in str(refused.value)


async def test_a_graph_that_another_process_has_open_is_locked(tmp_path):
    holder = run(
        """
        import ladybug, sys
        database = ladybug.Database(sys.argv[1])
        print("open", flush=True)
        sys.stdin.read()
        """,
        tmp_path / "s.db",
    )
    assert holder.stdout.readline() == "open\n"
    stores = stores_in(tmp_path, "graph", "ladybug")
    try:
        with pytest.raises(StoreLocked) as refused:
            await stores.get("s").nodes()
        assert "is in use by another process" in str(refused.value)
        assert (await stores.get("s").health()).ok is False
    finally:
        holder.kill()
        holder.communicate()
    assert await stores.get("s").nodes() == []
    await stores.close()


def test_a_local_model_works_beside_a_graph(tmp_path):
    """Their libraries clash when they are loaded in the other order."""
    code = (
        "from hookline.ext.stores.graph import LadybugGraph\n"
        f"LadybugGraph({str(tmp_path / 'graph')!r})\n"
        "import sys, xllamacpp\n"
        "names = list(sys.modules)\n"
        "print(names.index('xllamacpp') < names.index('ladybug'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
