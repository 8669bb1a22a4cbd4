"""What every store must do."""

import asyncio
from dataclasses import replace

import pytest

from hookline.tape import (
    BadEntry,
    DuplicateEntry,
    Entry,
    TapeClosed,
    TapeConflict,
    TapeStore,
    UnknownEntry,
)

from .conftest import chain, note, texts

# --- Appending ---


async def test_what_is_appended_is_read_back_as_it_was(store: TapeStore):
    payload = {
        "text": "Wörld 世界 🎉",
        "n": 1.5,
        "deep": {"list": [1, None, True, "x"]},
        "\ud800": "\udfff",
    }
    entry = Entry.new("s1", None, "some_unknown.kind", payload, {"who": "me"})
    await store.append([entry])
    assert await store.get(entry.id) == entry


async def test_changing_a_payload_after_appending_does_not_reach_the_tape(store: TapeStore):
    entry = note("before")
    await store.append([entry])
    entry.payload["text"] = "after"
    (await store.get(entry.id)).payload["text"] = "after"
    assert texts([await store.get(entry.id)]) == ["before"]


async def test_a_ten_megabyte_payload_is_kept(store: TapeStore):
    entry = note("x" * 10_000_000)
    await store.append([entry])
    assert await store.get(entry.id) == entry


async def test_an_unknown_id_gets_nothing(store: TapeStore):
    assert await store.get("nobody") is None
    assert await store.leaf("nobody") is None
    assert await store.entries("nobody") == []


async def test_appending_nothing_is_fine(store: TapeStore):
    await store.append([])
    assert await store.sessions() == []


async def test_a_duplicate_id_is_refused_and_nothing_of_the_batch_is_kept(store: TapeStore):
    first, second = chain(2)
    await store.append([first])
    with pytest.raises(DuplicateEntry, match=first.id):
        await store.append([first])
    with pytest.raises(DuplicateEntry, match=first.id):
        await store.append([second, replace(first, parent_id=second.id)])
    with pytest.raises(DuplicateEntry, match=second.id):
        await store.append([second, second])
    assert await store.entries("s1") == [first]
    assert await store.leaf("s1") == first


async def test_an_unknown_parent_is_refused_and_nothing_of_the_batch_is_kept(store: TapeStore):
    first, second, third = chain(3)
    with pytest.raises(UnknownEntry, match=f"{second.id}.*{first.id}.*append"):
        await store.append([second])
    await store.append([first])
    with pytest.raises(UnknownEntry, match=second.id):
        await store.append([third])
    with pytest.raises(UnknownEntry, match=second.id):
        await store.append([third, second])
    assert await store.entries("s1") == [first]


async def test_a_refused_new_session_does_not_exist(store: TapeStore):
    with pytest.raises(UnknownEntry):
        await store.append([*chain(2, "new"), chain(2)[1]])
    assert await store.sessions() == []
    await store.append([note("now", session="new")])
    assert [info.entries for info in await store.sessions()] == [1]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"id": ""}, "id must be text"),
        ({"session_id": "a\0b"}, "session_id must be text"),
        ({"session_id": "\ud800"}, "session_id must be text"),
        ({"session_id": 7}, "session_id must be text"),
        ({"kind": ""}, "kind must be text"),
        ({"parent_id": 7}, "parent_id must be"),
        ({"time": "now"}, "time must be"),
        ({"time": float("nan")}, "time must be"),
        ({"payload": ["a list"]}, "payload and meta must be dicts"),
        ({"payload": {"x": {1, 2}}}, "payload is not JSON"),
        ({"payload": {"x": float("inf")}}, "payload is not JSON"),
        ({"payload": {"x": b"bytes"}}, "payload is not JSON"),
        ({"meta": {"x": object()}}, "meta is not JSON"),
    ],
)
async def test_an_entry_that_cannot_be_read_back_is_refused(store: TapeStore, change, names):
    good = note("good")
    with pytest.raises(BadEntry, match=names):
        await store.append([good, replace(note("bad"), **change)])
    assert await store.get(good.id) is None


async def test_an_entry_that_is_its_own_parent_is_refused(store: TapeStore):
    entry = note("me")
    with pytest.raises(BadEntry, match="another entry's id"):
        await store.append([replace(entry, parent_id=entry.id)])


async def test_a_payload_that_contains_itself_is_refused(store: TapeStore):
    loop: dict = {}
    loop["self"] = loop
    with pytest.raises(BadEntry, match="payload is not JSON"):
        await store.append([Entry.new("s1", None, "note", loop)])


def nested(levels: int) -> dict:
    value: dict = {"text": "deep"}
    for _ in range(levels):
        value = {"x": [value]}
    return value


async def test_a_payload_too_deep_to_be_read_again_is_refused(store: TapeStore):
    deep = Entry.new("s1", None, "note", nested(90))
    await store.append([deep])
    assert await store.get(deep.id) == deep
    assert [hit.entry for hit in await store.search("deep")] == [deep]
    for levels in (110, 100_000):
        with pytest.raises(BadEntry, match="payload is not JSON"):
            await store.append([Entry.new("s1", None, "note", nested(levels))])


async def test_an_append_that_expects_another_leaf_is_refused(store: TapeStore):
    first, second, third = chain(3)
    await store.append([first], expect={"s1": None})
    with pytest.raises(TapeConflict, match=r"s1.*refresh"):
        await store.append([second], expect={"s1": None})
    await store.append([second], expect={"s1": first.id})
    with pytest.raises(TapeConflict):
        await store.append([third], expect={"s1": first.id})
    with pytest.raises(TapeConflict):
        await store.append(chain(2, "other"), expect={"s1": first.id})
    assert await store.entries("s1") == [first, second]
    assert await store.leaf("other") is None


# --- Reading ---


async def test_the_leaf_is_the_last_entry_appended(store: TapeStore):
    first, second = chain(2)
    late = replace(note("elsewhere", first), time=0.0)
    await store.append([first, second])
    await store.append([late])
    assert await store.leaf("s1") == late


async def test_a_branch_is_the_path_from_the_root(store: TapeStore):
    trunk = chain(5)
    side = chain(3, parent=trunk[1])
    await store.append([*trunk, *side])
    assert await store.branch(trunk[4].id) == trunk
    assert await store.branch(side[2].id) == [*trunk[:2], *side]
    assert await store.branch(trunk[0].id) == trunk[:1]


async def test_a_branch_runs_across_sessions(store: TapeStore):
    first = chain(3, "a")
    second = chain(3, "b", parent=first[1])
    third = chain(2, "c", parent=second[1])
    await store.append([*first, *second, *third])
    assert await store.branch(third[1].id) == [*first[:2], *second[:2], *third]


async def test_a_branch_of_alternating_parents_is_followed(store: TapeStore):
    left, right = [note("left")], [note("right")]
    await store.append([left[0], right[0]])
    for _ in range(20):
        left.append(note("left", left[-1]))
        right.append(note("right", right[-1]))
        await store.append([left[-1]])
        await store.append([right[-1]])
    assert await store.branch(left[-1].id) == left
    assert await store.branch(right[-1].id) == right


async def test_a_branch_stops_at_the_nearest_entry_of_a_kind(store: TapeStore):
    entries = [note("root")]
    for kind in ("anchor", "note", "anchor", "note", "note"):
        entries.append(note(kind, entries[-1], kind=kind))
    await store.append(entries)
    assert await store.branch(entries[5].id, stop_at=frozenset({"anchor"})) == entries[3:]
    assert await store.branch(entries[3].id, stop_at={"anchor"}) == [entries[3]]
    assert await store.branch(entries[5].id, stop_at={"nothing"}) == entries
    assert await store.branch(entries[5].id, until=entries[2].id) == entries[2:]
    assert await store.branch(entries[5].id, until="nobody") == entries


async def test_the_nearest_entry_of_a_kind_is_found_on_the_branch_only(store: TapeStore):
    root = note("root", kind="model")
    side = note("side", root, kind="model")
    leaf = note("leaf", root)
    await store.append([root, side, leaf])
    assert await store.nearest(leaf.id, {"model"}) == root
    assert await store.nearest(side.id, {"model", "x"}) == side
    assert await store.nearest(leaf.id, {"x"}) is None


async def test_asking_from_an_unknown_entry_is_refused(store: TapeStore):
    await store.append(chain(1))
    other = chain(1, "other")
    await store.append(other)
    for asked in (
        store.branch("nobody"),
        store.nearest("nobody", {"x"}),
        store.children("nobody"),
        store.entries("s1", after="nobody"),
        store.entries("s1", before=other[0].id),
    ):
        with pytest.raises(UnknownEntry, match="is on"):
            await asked


async def test_entries_are_those_of_the_session_as_appended(store: TapeStore):
    mine, other = chain(6), chain(6, "other")
    for pair in zip(mine, other, strict=True):
        await store.append(pair)
    assert await store.entries("s1") == mine
    assert await store.entries("s1", newest_first=True) == mine[::-1]
    assert await store.entries("s1", limit=2) == mine[:2]
    assert await store.entries("s1", limit=0) == []
    assert await store.entries("s1", newest_first=True, limit=2) == mine[:3:-1]
    assert await store.entries("s1", after=mine[1].id, before=mine[4].id) == mine[2:4]
    assert await store.entries("s1", after=mine[5].id) == []
    assert await store.entries("s1", before=mine[2].id, newest_first=True, limit=1) == [mine[1]]


@pytest.mark.parametrize("kind", ["label", "tool_call", "unheard.of"])
async def test_entries_can_be_chosen_by_kind(store: TapeStore, kind: str):
    root = note("root")
    marked = [note("one", root, kind=kind), note("two", root, kind=kind)]
    await store.append([root, marked[0], note("x", root), marked[1]])
    await store.append([note("elsewhere", kind=kind, session="other")])
    assert await store.entries("s1", kinds={kind}) == marked
    assert await store.entries("s1", kinds={kind, "anchor"}, newest_first=True) == marked[::-1]
    assert await store.entries("s1", kinds=[]) == []


async def test_children_are_found_in_all_sessions(store: TapeStore):
    root, straight = chain(2)
    jumped = note("jumped", root)
    forked = note("forked", root, session="fork", kind="fork")
    await store.append([root, straight, note("deeper", straight), jumped])
    await store.append([forked])
    assert await store.children(root.id) == [straight, jumped, forked]
    assert await store.children(forked.id) == []


async def test_sessions_come_with_the_last_written_first(store: TapeStore):
    a, b = chain(3, "a"), chain(2, "b")
    fork = Entry.new("a/fork", a[0].id, "fork", {"session_id": "a", "entry_id": a[0].id})
    await store.append(a[:2])
    await store.append([*b, fork])
    late = replace(a[2], time=fork.time + 1)
    await store.append([late])
    infos = await store.sessions()
    assert [(info.id, info.entries, info.parent) for info in infos] == [
        ("a", 3, None),
        ("a/fork", 1, "a"),
        ("b", 2, None),
    ]
    assert (infos[0].created, infos[0].updated) == (a[0].time, late.time)
    assert [info.id for info in await store.sessions(prefix="a")] == ["a", "a/fork"]
    assert [info.id for info in await store.sessions(prefix="a", limit=1)] == ["a"]
    assert await store.sessions(prefix="A%") == []


async def test_many_sessions_written_at_once_do_not_mix(store: TapeStore):
    async def write(session: str) -> None:
        parent = None
        for number in range(20):
            parent = note(f"{session} {number}", parent, session)
            await store.append([parent])
            await asyncio.sleep(0)

    names = [f"session-{number}" for number in range(100)]
    await asyncio.gather(*map(write, names))
    assert {info.id: info.entries for info in await store.sessions()} == dict.fromkeys(names, 20)
    for name in names:
        expected = [f"{name} {number}" for number in range(20)]
        assert texts(await store.branch((await store.leaf(name)).id)) == expected


# --- Searching ---


async def found(store: TapeStore, query: str, **options) -> list[str]:
    return texts([hit.entry for hit in await store.search(query, **options)])


async def test_search_finds_whole_words_whatever_their_case_and_accents(store: TapeStore):
    await store.append([note("The Éclair, (crème) fraîche"), note("eclairs"), note("snake_case-name")])
    assert await found(store, "ECLAIR creme") == ["The Éclair, (crème) fraîche"]
    assert await found(store, "eclair*") == ["eclairs", "The Éclair, (crème) fraîche"]
    assert await found(store, "snake_case") == ["snake_case-name"]
    assert await found(store, "case_snake") == []
    assert await found(store, "case snake") == ["snake_case-name"]


async def test_search_finds_words_in_scripts_without_spaces(store: TapeStore):
    await store.append([note("你好世界"), note("世界你好")])
    assert await found(store, "好世") == ["你好世界"]
    assert await found(store, "世界") == ["世界你好", "你好世界"]


@pytest.mark.parametrize(
    "query", ["", "  ", '"', "'; DROP TABLE entries; --", "AND (", "*", "NEAR(a b)", "-x"]
)
async def test_no_query_is_a_syntax_error(store: TapeStore, query: str):
    await store.append([note("something")])
    assert await store.search(query) == []


async def test_search_can_be_narrowed_and_finds_the_newest_first(store: TapeStore):
    mine = [note("common one"), note("common two", kind="label"), note("common three")]
    mine = [replace(entry, time=number) for number, entry in enumerate(mine)]
    other = [replace(note("common four", session="other"), time=0.5), note("five", session="other")]
    await store.append(mine)
    await store.append(other)
    assert await found(store, "common") == ["common three", "common two", "common four", "common one"]
    assert await found(store, "common", limit=2) == ["common three", "common two"]
    assert await found(store, "common", session_id="other") == ["common four"]
    assert await found(store, "common", session_id="nobody") == []
    assert await found(store, "common", kinds={"label"}) == ["common two"]
    assert await found(store, "common", kinds={"note"}, session_id="s1") == [
        "common three",
        "common one",
    ]


async def test_search_sees_what_was_appended_since_the_last_search(store: TapeStore):
    for number in range(5):
        await store.append([note(f"entry {number}")])
        assert len(await store.search("entry")) == number + 1


async def test_search_looks_at_text_and_not_at_structure(store: TapeStore):
    message = {"role": "user", "content": [{"type": "text", "text": "nested words"}], "id": "abc"}
    await store.append([Entry.new("s1", None, "message", {"message": message})])
    assert len(await store.search("nested")) == 1
    assert await store.search("user") == []
    assert await store.search("abc") == []


async def test_a_snippet_shows_the_place_in_one_line(store: TapeStore):
    await store.append([note("padding " * 50 + "the\nNeedle is here" + " padding" * 50)])
    (hit,) = await store.search("needle")
    assert "the Needle is here" in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) < 150


# --- Closing ---


async def test_a_closed_store_says_so(store: TapeStore):
    await store.close()
    await store.close()
    for asked in (store.append(chain(1)), store.get("x"), store.branch("x"), store.search("x")):
        with pytest.raises(TapeClosed, match="closed"):
            await asked
