"""The contract of fact stores."""

import pytest

from hookline.ext.stores import BadStoreValue

from .conftest import providers

store = providers("fact")


async def test_a_fact_comes_back_with_its_provenance(store):
    fact = await store.assert_fact(
        "Zoë", "lives in", "Köln", source="mail 7", since=10.0, metadata={"sure": 0.9}
    )
    assert await store.get(fact.id) == fact
    assert (fact.subject, fact.predicate, fact.object, fact.source) == (
        "Zoë",
        "lives in",
        "Köln",
        "mail 7",
    )
    assert (fact.since, fact.until, fact.metadata) == (10.0, None, {"sure": 0.9})
    assert fact.recorded > 10.0


async def test_a_fact_holds_from_when_it_was_stated_until_it_was_retracted(store):
    await store.assert_fact("ada", "works at", "Acme", source="cv", since=10)
    assert await store.retract("ada", "works at", "Acme", source="mail", at=20) == 1
    await store.assert_fact("ada", "works at", "Bolt", source="mail", since=20)

    async def employer(at):
        return [fact.object for fact in await store.query("ada", "works at", as_of=at)]

    assert await employer(9) == []
    assert await employer(10) == ["Acme"]
    assert await employer(19.9) == ["Acme"]
    assert await employer(20) == ["Bolt"]
    assert await employer(None) == ["Bolt"]
    told = [(f.object, f.until, f.retracted_by) for f in await store.history("ada")]
    assert told == [("Acme", 20.0, "mail"), ("Bolt", None, "")]


async def test_stating_a_fact_again_changes_nothing(store):
    first = await store.assert_fact("a", "b", {"x": 1, "y": 2}, source="s", since=10)
    assert await store.assert_fact("a", "b", {"y": 2, "x": 1}, source="s", since=15) == first
    assert len(await store.query("a")) == 1
    await store.assert_fact("a", "b", {"x": 1, "y": 2}, source="another")
    assert sorted(fact.source for fact in await store.query("a")) == ["another", "s"]


async def test_a_fact_stated_for_an_earlier_time_ends_where_the_later_one_begins(store):
    await store.assert_fact("a", "b", 1, source="s", since=20)
    earlier = await store.assert_fact("a", "b", 1, source="s", since=10)
    assert earlier.until == 20
    assert len(await store.query("a", as_of=15)) == 1
    assert len(await store.query("a", as_of=25)) == 1


async def test_a_retraction_may_name_whose_statement_ends(store):
    await store.assert_fact("a", "b", 1, source="x", since=1)
    await store.assert_fact("a", "b", 1, source="y", since=1)
    await store.assert_fact("a", "c", 1, source="y", since=1)
    assert await store.retract("a", "b", source="me", of="x") == 1
    assert [(f.predicate, f.source) for f in await store.query("a")] == [("b", "y"), ("c", "y")]
    assert await store.retract("a", "b", source="me") == 1
    assert await store.retract("a", "b", source="me") == 0


async def test_facts_are_found_by_any_part(store):
    for number, (subject, predicate, obj) in enumerate(
        [("ada", "knows", "ben"), ("ben", "knows", "cleo"), ("ada", "age", 36), ("ada", "alive", True)]
    ):
        await store.assert_fact(
            subject, predicate, obj, source=f"s{number}", since=number, metadata={"n": number}
        )
    assert len(await store.query()) == 4
    assert len(await store.query(predicate="knows")) == 2
    assert [f.subject for f in await store.query(obj="ben")] == ["ada"]
    assert [f.predicate for f in await store.query(obj=36)] == ["age"]
    assert [f.predicate for f in await store.query(obj=True)] == ["alive"]
    assert await store.query(obj=1) == []
    assert len(await store.query("ada", limit=2)) == 2
    assert [f.object for f in await store.query(source="s1")] == ["cleo"]
    assert [f.object for f in await store.query(where={"n": {"gte": 3}})] == [True]


async def test_words_find_only_facts_that_hold(store):
    await store.assert_fact("Café Zoë", "serves", "green tea", source="s", since=10)
    await store.assert_fact("Café Zoë", "closes at", "noon", source="s", since=10)
    assert [f.object for f in await store.search("cafe TEA")] == ["green tea"]
    await store.retract("Café Zoë", "serves", source="s", at=20)
    assert await store.search("tea") == []
    assert len(await store.search("tea", as_of=15)) == 1
    assert len(await store.search("cafe", as_of=15, limit=1)) == 1
    assert await store.search("!") == []


async def test_a_deleted_fact_leaves_no_trace(store):
    fact = await store.assert_fact("a", "secret", "word", source="s", since=1)
    assert await store.delete([fact.id, "other"]) == 1
    assert await store.history("a") == []
    assert await store.search("word", as_of=2) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.assert_fact("", "p", 1, source="s"), "the subject must be a text of 1"),
        (lambda s: s.assert_fact("a", "p", 1, source=""), "the source must be a text of 1"),
        (
            lambda s: s.assert_fact("a", "p", object(), source="s"),
            "the object cannot be written as JSON",
        ),
        (
            lambda s: s.assert_fact("a", "p", 1, source="s", since=float("inf")),
            "since must be a finite",
        ),
        (lambda s: s.query(as_of="now"), "as_of must be a finite number, not 'now'"),
    ],
)
async def test_bad_facts_are_refused(store, call, message):
    with pytest.raises(BadStoreValue) as refused:
        await call(store)
    assert message in str(refused.value)
    assert (await store.health()).count == 0
