"""The contract of document stores."""

import pytest

from hookline.ext.stores import BadStoreValue

from .conftest import providers

store = providers("doc")

BOOKS = {
    "1": {"title": "Naïve Café", "year": 1999, "tags": ["food", "old"], "author": {"name": "Ada"}},
    "2": {"title": "The green café", "year": 2024, "tags": ["food"], "lent": True},
    "3": {"title": "東京の夜", "year": 2024.5, "author": {"name": "Ben"}, "lent": False},
    "4": {"title": "Nothing", "year": "2024", "lent": None},
}


@pytest.fixture
async def books(store):
    await store.upsert("books", BOOKS)
    return store


def ids(documents):
    return [document.id for document in documents]


async def test_a_document_comes_back_as_it_was_kept(books):
    found = await books.get("books", "3")
    assert (found.collection, found.id, found.data) == ("books", "3", BOOKS["3"])
    assert found.updated > 0
    assert await books.get("books", "9") is None
    assert await books.get("films", "1") is None


async def test_added_documents_get_ids_of_their_own(store):
    first, second = await store.add("books", {"n": 1}), await store.add("books", {"n": 1})
    assert first != second
    assert (await store.get("books", second)).data == {"n": 1}


async def test_a_document_replaces_the_one_with_its_id_and_its_words(books):
    await books.upsert("books", {"1": {"title": "Something else"}})
    assert (await books.get("books", "1")).data == {"title": "Something else"}
    assert ids(await books.search("naive")) == []
    assert ids(await books.search("something")) == ["1"]


async def test_deleted_documents_are_gone_for_every_question(books):
    assert await books.delete("books", ["1", "2", "9"]) == 2
    assert ids(await books.query("books")) == ["3", "4"]
    assert await books.search("cafe") == []
    assert await books.delete("books", ["1"]) == 0


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, "1 2 3 4"),
        ({"year": 2024}, "2"),
        ({"year": "2024"}, "4"),
        ({"year": {"gte": 2000}}, "2 3"),
        ({"year": {"gt": 1999, "lt": 2024.5}}, "2"),
        ({"year": {"lte": 1999.0}}, "1"),
        ({"title": {"gt": "Nothing"}}, "2 3"),
        ({"lent": True}, "2"),
        ({"lent": False}, "3"),
        ({"lent": None}, "1 4"),
        ({"lent": {"ne": True}}, "1 3 4"),
        ({"author.name": "Ada"}, "1"),
        ({"author.name": {"in": ["Ada", "Ben"]}}, "1 3"),
        ({"author.name": {"in": []}}, ""),
        ({"lent": {"in": [None, True]}}, "1 2 4"),
        ({"tags": {"contains": "old"}}, "1"),
        ({"tags": {"contains": "food"}, "year": 2024}, "2"),
        ({"title": {"contains": "Nothing"}}, ""),
        ({"lent": 1}, ""),
    ],
)
async def test_filters_find_by_field(books, where, expected):
    assert ids(await books.query("books", where)) == expected.split()


async def test_limit_and_offset_page_through_a_collection(books):
    assert ids(await books.query("books", limit=3)) == ["1", "2", "3"]
    assert ids(await books.query("books", limit=3, offset=3)) == ["4"]
    assert len(await books.search("cafe", limit=1)) == 1


async def test_words_are_found_whatever_their_case_accents_or_script(books):
    assert sorted(ids(await books.search("CAFE"))) == ["1", "2"]
    assert ids(await books.search("東京")) == ["3"]
    assert ids(await books.search("gre*")) == ["2"]
    assert ids(await books.search("ada")) == ["1"]
    assert await books.search("cafe missing") == []
    assert await books.search("  ?! ") == []


async def test_a_search_keeps_to_its_collection_and_filter(books):
    await books.upsert("films", {"1": {"title": "Café society"}})
    assert ids(await books.search("cafe", collection="films")) == ["1"]
    assert ids(await books.search("cafe", where={"year": 2024})) == ["2"]
    assert await books.collections() == {"books": 4, "films": 1}


async def test_the_best_match_comes_first(store):
    await store.upsert("d", {"long": {"t": "tea " + "word " * 200}, "short": {"t": "tea"}})
    found = await store.search("tea")
    assert ids(found) == ["short", "long"]
    assert found[0].score > found[1].score


@pytest.mark.parametrize("search", ['"', "a AND", "NEAR(a", "col:x", "-a", "*", "a" * 5000])
async def test_no_search_is_an_error_of_the_index(books, search):
    assert await books.search(search) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.upsert("", {"1": {}}), "the collection must be a text of 1 to 1,000 characters"),
        (lambda s: s.upsert("c", {"1": {}, "": {}}), "the id must be a text of 1 to 1,000"),
        (lambda s: s.upsert("c", {"1": {}, "2": ["x"]}), "the document '2' must be a dict, not list"),
        (lambda s: s.upsert("c", {"1": {"x": {1, 2}}}), "cannot be written as JSON"),
        (lambda s: s.upsert("c", {"1": {"x": float("nan")}}), "cannot be written as JSON"),
        (lambda s: s.upsert("c", {"1": {"x": "\ud800"}}), "cannot be written as UTF-8"),
        (lambda s: s.query("c", limit=0), "limit must be a whole number from 1 to 10,000, not 0"),
        (lambda s: s.query("c", {"a": {"gtt": 1}}), "unknown operator 'gtt'; did you mean 'gt'"),
        (lambda s: s.query("c", {"a": {"gt": None}}), "'gt' takes a number or a text, not None"),
        (lambda s: s.query("c", {"a": {"in": "x"}}), "'in' takes a list, not 'x'"),
        (lambda s: s.query("c", {"a": [1]}), "takes a text, a number, a truth value or None"),
        (lambda s: s.query("c", {"a": 2**70}), "takes a text, a number, a truth value or None"),
        (lambda s: s.query("c", {'a"b': 1}), "fields are names with dots between them"),
        (lambda s: s.query("c", {"a..b": 1}), "fields are names with dots between them"),
        (lambda s: s.search(3), "the search must be a text, not int"),
    ],
)
async def test_what_cannot_be_kept_or_asked_is_refused_and_nothing_is_written(store, call, message):
    with pytest.raises(BadStoreValue) as refused:
        await call(store)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert await store.collections() == {}
