"""The contract of memory stores."""

import pytest

from hookline.ext.stores import BadStoreValue

from .conftest import providers

store = providers("memory")


@pytest.fixture
async def filled(store):
    await store.add("Ada likes green tea", user="ada", metadata={"kind": "taste"})
    await store.add("The meeting is on Friday", user="ada", session="s1")
    await store.add("Tea was spilled", user="ada", session="s2", metadata={"kind": "event"})
    await store.add("Ben likes black tea", user="ben")
    return store


def texts(notes):
    return [note.text for note in notes]


async def test_a_note_comes_back_as_it_was_remembered(store):
    note = await store.add("Zoë 🫖", user="ada", session="s1", metadata={"a": [1]})
    assert await store.get(note.id, user="ada") == note
    assert (note.user, note.session, note.text, note.metadata) == ("ada", "s1", "Zoë 🫖", {"a": [1]})


async def test_nobody_gets_the_notes_of_another(filled):
    note = (await filled.recent(user="ben"))[0]
    assert await filled.get(note.id, user="ada") is None
    assert await filled.update(note.id, user="ada", text="hacked") is False
    assert await filled.delete([note.id], user="ada") == 0
    assert texts(await filled.recall("black", user="ada")) == []
    assert texts(await filled.recent(user="ben")) == ["Ben likes black tea"]


async def test_recall_finds_any_of_the_words_the_best_first(filled):
    found = await filled.recall("Which tea does she like? Green?", user="ada")
    assert texts(found) == ["Ada likes green tea", "Tea was spilled"]
    assert found[0].score > found[1].score
    assert await filled.recall("???", user="ada") == []


async def test_a_session_sees_its_own_notes_and_those_of_no_session(filled):
    assert texts(await filled.recall("tea", user="ada", session="s1")) == ["Ada likes green tea"]
    recent = await filled.recent(user="ada", session="s1")
    assert texts(recent) == ["The meeting is on Friday", "Ada likes green tea"]


async def test_recent_notes_come_newest_first_with_limit_and_filter(filled):
    assert texts(await filled.recent(user="ada", limit=1)) == ["Tea was spilled"]
    found = await filled.recent(user="ada", where={"kind": {"in": ["taste"]}})
    assert texts(found) == ["Ada likes green tea"]
    assert len(await filled.recall("tea", user="ada", limit=1)) == 1
    assert texts(await filled.recall("tea", user="ada", where={"kind": "event"})) == ["Tea was spilled"]


async def test_a_changed_note_is_recalled_by_its_new_words(filled):
    note = (await filled.recall("green", user="ada"))[0]
    assert await filled.update(note.id, user="ada", text="Ada likes coffee")
    assert await filled.update(note.id, user="ada", metadata={"kind": "new"})
    assert texts(await filled.recall("green", user="ada")) == []
    changed = (await filled.recall("coffee", user="ada"))[0]
    assert (changed.id, changed.metadata, changed.created) == (note.id, {"kind": "new"}, note.created)


async def test_what_is_forgotten_is_not_recalled(filled):
    assert await filled.forget(user="ada", session="s1") == 1
    assert texts(await filled.recall("meeting", user="ada")) == []
    assert await filled.forget(user="ada") == 2
    assert await filled.recent(user="ada") == []
    assert len(await filled.recent(user="ben")) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.add("x", user=""), "the user must be a text of 1 to 1,000 characters"),
        (lambda s: s.add(None, user="u"), "the note must be a text, not NoneType"),
        (lambda s: s.add("x", user="u", metadata=[1]), "the metadata must be a dict, not list"),
        (lambda s: s.recall("x", user="u", limit=True), "limit must be a whole number"),
    ],
)
async def test_bad_notes_are_refused(store, call, message):
    with pytest.raises(BadStoreValue) as refused:
        await call(store)
    assert message in str(refused.value)
    assert (await store.health()).count == 0
