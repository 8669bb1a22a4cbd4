"""Stores by name: how they are configured, who owns them, and what is wrong with them."""

import sys

import pytest

from hookline.config import ConfigError
from hookline.ext.stores import (
    DocStore,
    FactStore,
    MissingStoreLibrary,
    StoreDenied,
    StoreError,
    StoreHealth,
    StoreMisconfigured,
    StoreProvider,
    Stores,
    UnknownStore,
)
from hookline.specs import StoreProtocol, StoreSpec


def doc(name="notes", **fields):
    return StoreSpec.model_validate({"name": name, "provider": "sqlite", "protocol": "doc", **fields})


@pytest.fixture
def stores(tmp_path):
    return Stores(tmp_path)


def refused(kind, call, *args, **options):
    with pytest.raises(kind) as raised:
        call(*args, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# --- names and owners ---


def test_an_unknown_store_comes_with_the_nearest_name(stores):
    assert "no stores are configured" in refused(UnknownStore, stores.get, "notes")
    stores.add([doc()], owner="a")
    message = refused(UnknownStore, stores.get, "note")
    assert message.startswith("unknown store 'note'; did you mean 'notes'?")
    assert "[stores.note] in the configuration" in message


def test_two_stores_of_one_name_are_refused_with_both_owners(stores):
    stores.add([doc()], owner="plugin 'a'")
    message = refused(StoreError, stores.add, [doc("other"), doc()], owner="plugin 'b'")
    assert "two stores are named 'notes': one from plugin 'a', one from plugin 'b'" in message
    assert stores.names() == ["notes"]  # all or none
    message = refused(StoreError, stores.add, [doc("x"), doc("x")], owner="c")
    assert "one from c, one from c" in message


def test_two_stores_in_one_file_are_refused_with_both_owners(stores, tmp_path):
    stores.add([doc("a", config={"path": "same.db"})], owner="one")
    other = doc("b", protocol="fact", config={"path": f"{tmp_path}/x/../same.db"})
    message = refused(StoreError, stores.add, [other], owner="two")
    assert "'a' from one and 'b' from two both want the file" in message
    assert str(tmp_path / "same.db") in message


def test_an_unknown_provider_comes_with_the_nearest_name(stores):
    message = refused(StoreMisconfigured, stores.add, [doc(provider="sqlit")], owner="a")
    assert message == "store 'notes': unknown provider 'sqlit'; did you mean 'sqlite' or 'sqlite-vec'?"
    message = refused(StoreMisconfigured, stores.add, [doc(provider="redis")], owner="a")
    assert "there are: ladybug, sqlite, sqlite-vec" in message


def test_a_provider_that_does_not_speak_the_protocol_is_refused(stores):
    message = refused(StoreMisconfigured, stores.add, [doc(protocol="graph")], owner="a")
    assert message == (
        "store 'notes': the provider 'sqlite' keeps doc, fact, memory, not graph; use 'ladybug'"
    )


def test_a_store_of_another_protocol_than_asked_for_is_refused(stores):
    stores.add([doc()], owner="plugin 'a'")
    assert stores.get("notes", DocStore) is not None
    message = refused(StoreError, stores.get, "notes", FactStore)
    assert message == "the store 'notes' from plugin 'a' is a DocStore, not a FactStore"


# --- configuration ---


async def test_variables_are_filled_in_from_the_environment_before_the_schema_is_applied(
    stores, tmp_path, monkeypatch
):
    monkeypatch.setenv("NOTES_FILE", "own")
    schema = {"properties": {"path": {"pattern": "^own[.]db$"}}}
    stores.add([doc(config={"path": "${NOTES_FILE}.db"}, config_schema=schema)], owner="a")
    await stores.get("notes").add("c", {})
    await stores.close()
    assert (tmp_path / "own.db").exists()


def test_a_missing_variable_is_named_with_store_and_key(stores, monkeypatch):
    monkeypatch.delenv("NO_SUCH_FILE", raising=False)
    message = refused(ConfigError, stores.add, [doc(config={"path": "${NO_SUCH_FILE}"})], owner="a")
    assert "NO_SUCH_FILE is not set" in message
    assert "(stores.notes.path)" in message
    assert stores.names() == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"config": {"pth": "x"}}, "stores.notes has the unknown key 'pth'; did you mean 'path'?"),
        ({"config": {"path": 3}}, "stores.notes.path must be of type string, not integer"),
        ({"config": {"path": ""}}, "stores.notes.path does not meet minLength 1"),
        ({"provider": "sqlite-vec", "protocol": "vector"}, "stores.notes needs 'dimensions'"),
        (
            {"provider": "sqlite-vec", "protocol": "vector", "config": {"dimensions": 0}},
            "stores.notes.dimensions does not meet minimum 1",
        ),
        (
            {
                "provider": "sqlite-vec",
                "protocol": "vector",
                "config": {"dimensions": 3, "metric": "dot"},
            },
            "stores.notes.metric must be one of 'cosine', 'l2'",
        ),
        (
            {"config": {"path": "secret"}, "config_schema": {"properties": {"path": {"maxLength": 3}}}},
            "stores.notes.path does not meet maxLength 3 (schema of plugin 'a')",
        ),
        (
            {"config_schema": {"type": "nonsense"}},
            "the config_schema of plugin 'a' is not a JSON Schema",
        ),
        (
            {"capabilities": ["db.other:read"]},
            "'db.other:read' is none of db.notes:read, db.notes:write",
        ),
    ],
)
def test_a_wrong_configuration_says_where_and_what_and_shows_no_value(stores, fields, message):
    said = refused(StoreMisconfigured, stores.add, [doc(**fields)], owner="plugin 'a'")
    assert said.startswith("store 'notes': ")
    assert message in said
    assert "secret" not in said
    assert stores.names() == []


async def test_tables_of_the_configuration_become_stores(stores, tmp_path):
    stores.configure(
        {
            "people": {"provider": "ladybug"},
            "notes": {"provider": "sqlite", "protocol": "doc", "path": "sub/n.db"},
        }
    )
    assert stores.names() == ["notes", "people"]
    assert stores.binding("people").spec.protocol == "graph"
    await stores.get("notes").add("c", {})
    await stores.close()
    assert (tmp_path / "sub" / "n.db").exists()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("sqlite", "[stores.notes] must be a table with provider and protocol, not 'sqlite'"),
        ({"protocol": "doc"}, "[stores.notes] provider: Field required"),
        ({"provider": "sqlite"}, "[stores.notes] protocol: Field required"),
        ({"provider": "sqlite", "protocol": "document"}, "[stores.notes] protocol: Input should be"),
    ],
)
def test_a_wrong_table_is_refused(stores, table, message):
    assert message in refused(StoreMisconfigured, stores.configure, {"notes": table})


@pytest.mark.parametrize(
    ("provider", "protocol", "library"),
    [("ladybug", "graph", "ladybug"), ("sqlite-vec", "vector", "sqlite_vec")],
)
async def test_a_missing_library_says_how_to_install_it(
    stores, monkeypatch, provider, protocol, library
):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    config = {"dimensions": 3} if protocol == "vector" else {}
    stores.add([doc(provider=provider, protocol=protocol, config=config)], owner="a")
    message = refused(MissingStoreLibrary, lambda: stores.get("notes").health)
    assert "pip install 'hookline[stores]'" in message


# --- capabilities ---


async def test_a_view_allows_what_was_granted_and_nothing_else(stores):
    stores.add([doc()], owner="a")
    reader = stores.view("notes", ["db.notes:read", "db.other:write"])
    assert await reader.query("c") == []
    message = refused(StoreDenied, lambda: reader.upsert)
    assert message == ("upsert on the store 'notes' needs 'db.notes:write', which was not granted")
    writer = stores.view("notes", ["db.notes:write"])
    await writer.upsert("c", {"1": {}})
    assert "needs 'db.notes:read'" in refused(StoreDenied, lambda: writer.get)
    assert "needs 'db.notes:read'" in refused(StoreDenied, lambda: stores.view("notes", []).health)
    await stores.close()


async def test_a_store_offers_no_more_than_its_capabilities(stores):
    stores.add([doc(capabilities=["db.notes:read"])], owner="plugin 'a'")
    assert await stores.get("notes").query("c") == []
    for view in (stores.get("notes"), stores.view("notes", ["db.notes:read", "db.notes:write"])):
        message = refused(StoreDenied, lambda view=view: view.upsert)
        assert "the store does not offer: see its capabilities, from plugin 'a'" in message
    await stores.close()


def test_a_view_offers_the_protocol_and_cannot_close_the_store(stores):
    stores.add([doc()], owner="a")
    view = stores.get("notes")
    assert repr(view) == "<DocStore 'notes', read|write>"
    for name in ("close", "_file", "recall"):
        with pytest.raises(AttributeError, match="offers no"):
            getattr(view, name)
    with pytest.raises(AttributeError, match="did you mean 'search'"):
        view.serch  # noqa: B018


# --- providers ---


class Shelf:
    """A provider's store that fails to close."""

    def __init__(self, opening):
        self.opening = opening

    async def health(self):
        return StoreHealth(True, 0, self.opening.config["shelf"])

    async def close(self):
        raise StoreError("the shelf is stuck")


async def test_a_provider_can_be_added_and_a_store_that_fails_to_close_stops_no_other(stores):
    shelf = StoreProvider("shelf", {StoreProtocol.doc: Shelf})
    stores.register(shelf)
    stores.register(shelf)
    assert "two store providers are named 'shelf'" in refused(
        StoreError, stores.register, StoreProvider("shelf", {})
    )
    stores.add([doc(), doc("other", provider="shelf", config={"shelf": "left"})], owner="a")
    await stores.get("notes").add("c", {})
    opened = stores._open["notes"]
    assert (await stores.get("other").health()).place == "left"
    with pytest.raises(StoreError, match="the shelf is stuck"):
        await stores.close()
    with pytest.raises(StoreError, match="was closed"):
        await opened.get("c", "1")


def test_what_is_gathered_may_itself_ask_for_stores(tmp_path):
    asked = []

    def gather(stores):
        stores.add([doc()], owner="a")
        asked.append(stores.names())

    stores = Stores(tmp_path, gather=gather)
    assert asked == []
    assert stores.names() == ["notes"]
    assert asked == [["notes"]]
