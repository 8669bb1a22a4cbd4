"""The contract of vector stores."""

import pytest

from hookline.ext.stores import BadStoreValue, StoreMisconfigured, Vector

from .conftest import providers, stores_in

store = providers("vector")


@pytest.fixture
async def filled(store):
    await store.upsert(
        [
            Vector("east", (1.0, 0.0, 0.0), "Osten ☀", {"axis": "x", "n": 1}),
            Vector("north", (0.0, 1.0, 0.0), metadata={"axis": "y", "n": 2}),
            Vector("up", (0.0, 0.0, 1.0), metadata={"axis": "z", "n": 3}),
            Vector("north-east", (1.0, 1.0, 0.0), metadata={"n": 4}),
        ]
    )
    return store


def ids(vectors):
    return [vector.id for vector in vectors]


async def test_a_vector_comes_back_as_it_was_kept(filled):
    assert await filled.get("east") == Vector("east", (1.0, 0.0, 0.0), "Osten ☀", {"axis": "x", "n": 1})
    assert await filled.get("west") is None


async def test_the_nearest_come_first_with_their_distance(filled):
    found = await filled.search((2.0, 0.5, 0.0), limit=3)
    assert ids(found) == ["east", "north-east", "north"]
    assert found[0].distance < found[1].distance < found[2].distance
    exact = await filled.search((3.0, 0.0, 0.0), limit=1)
    assert exact[0].distance == pytest.approx(0.0, abs=1e-6)


async def test_a_filter_is_applied_before_the_nearest_are_taken(filled):
    found = await filled.search((1.0, 0.5, 0.0), where={"axis": {"in": ["y", "z"]}}, limit=1)
    assert ids(found) == ["north"]
    assert ids(await filled.query({"n": {"gte": 3}})) == ["north-east", "up"]
    assert ids(await filled.query(limit=2)) == ["east", "north"]
    assert await filled.search((1.0, 0.0, 0.0), where={"axis": "none"}) == []


async def test_a_vector_replaces_the_one_with_its_id(filled):
    await filled.upsert([Vector("east", (0.0, 0.0, -1.0))])
    assert await filled.get("east") == Vector("east", (0.0, 0.0, -1.0))
    assert ids(await filled.search((1.0, 0.0, 0.0), limit=1)) == ["north-east"]
    assert (await filled.health()).count == 4


async def test_deleted_vectors_are_not_found(filled):
    assert await filled.delete(["east", "none"]) == 1
    assert "east" not in ids(await filled.search((1.0, 0.0, 0.0), limit=10))
    assert await filled.get("east") is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda s: s.upsert([Vector("a", (1.0,))]),
            "the vector 'a' has 1 dimensions, and the store 's'",
        ),
        (lambda s: s.upsert([Vector("a", (1, 2, float("nan")))]), "must be a finite number, not nan"),
        (lambda s: s.upsert([Vector("a", (1, 2, "x"))]), "must be a finite number, not 'x'"),
        (lambda s: s.upsert([Vector("a", (1, 2, 1e39))]), "too large for a 32-bit float"),
        (lambda s: s.upsert([Vector("a", (0, 0, 0))]), "is all zeros"),
        (lambda s: s.upsert([Vector("a", (1, 2, 3)), Vector("", (1, 2, 3))]), "the id must be a text"),
        (lambda s: s.search((1, 2)), "the vector searched for has 2 dimensions"),
        (lambda s: s.search((1, 2, 3), limit=5000), "limit must be at most 4,096"),
    ],
)
async def test_bad_vectors_are_refused_and_nothing_is_written(store, call, message):
    with pytest.raises(BadStoreValue) as refused:
        await call(store)
    assert message in str(refused.value)
    assert (await store.health()).count == 0


async def test_a_file_made_for_other_vectors_is_refused_and_left_as_it_is(tmp_path):
    stores = stores_in(tmp_path, "vector", "sqlite-vec")
    await stores.get("s").upsert([Vector("a", (1.0, 2.0, 3.0))])
    await stores.close()
    other = stores_in(tmp_path, "vector", "sqlite-vec", dimensions=4, metric="l2")
    with pytest.raises(StoreMisconfigured) as refused:
        await other.get("s").get("a")
    assert "holds vectors of 3 dimensions under cosine" in str(refused.value)
    assert "the configuration says 4 under l2" in str(refused.value)
    await other.close()
    assert (await stores.get("s").get("a")).values == (1.0, 2.0, 3.0)
    await stores.close()


async def test_l2_measures_the_straight_way(tmp_path):
    stores = stores_in(tmp_path, "vector", "sqlite-vec", metric="l2")
    await stores.get("s").upsert([Vector("a", (0.0, 0.0, 0.0)), Vector("b", (3.0, 4.0, 0.0))])
    found = await stores.get("s").search((0.0, 0.0, 0.0))
    assert [(each.id, each.distance) for each in found] == [("a", 0.0), ("b", 5.0)]
    await stores.close()
