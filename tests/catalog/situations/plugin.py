"""What plugins provide, and what they permit."""

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest

from hookline.events import ToolCallEventResult
from hookline.ext.stores import Stores
from hookline.models.script import Call, Turn
from hookline.runtime.user_commands import plugin_commands
from hookline.serve import Gateway
from hookline.tools import tool
from hookline.tools.registry import Registry

from . import Stage, situation


@situation("hookline_startup")
@situation("register_tools")
async def the_model_finds_a_book(stage: Stage) -> None:
    prepare(stage)
    with closing(sqlite3.connect(stage.folder / "books.db")) as books, books:
        books.execute("create table books (title text)")
        books.execute("insert into books values ('The Trial')")
    await stage.turn("find it", Turn(tool_calls=[Call("find_book", {"title": "Trial"})]), "Here.")
    assert stage.model.requests[1].messages[-1]["content"] == '["The Trial"]'


@situation("hookline_shutdown")
async def the_database_is_closed_with_the_app(stage: Stage) -> None:
    prepare(stage)
    await stage.turn()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        stage.plugin.books.execute("select 1")


@situation("register_skills")
async def the_model_loads_the_skill(stage: Stage) -> None:
    prepare(stage)
    calls = [Call("load_skill", {"name": "librarian"})]
    await stage.turn("a book, please", Turn(tool_calls=calls), "Here.")
    assert "librarian: Recommend books." in stage.model.requests[0].system
    assert "Look for a book with find_book" in stage.model.requests[1].messages[-1]["content"]


@situation("register_stores")
async def a_tool_writes_to_the_store(stage: Stage) -> None:
    prepare(stage)

    @tool(permissions=["db.loans:write"], registry=Registry())
    async def lend(title: str) -> str:
        await Stores.of(stage.app).get("loans").upsert("loans", {title: {"to": "Ann"}})
        return "lent"

    stage.app.tools.add(lend)
    await stage.turn("lend it", Turn(tool_calls=[Call("lend", {"title": "The Trial"})]), "Done.")
    assert stage.model.requests[1].messages[-1]["content"] == "lent"
    assert (stage.folder / "loans.db").exists()


@situation("register_packs")
async def the_rules_of_the_pack_decide(stage: Stage) -> None:
    prepare(stage)
    rule = '@id("no-loans") forbid(principal, action, resource) when { resource.name == "lend" };'
    (stage.folder / "lending" / "rules.cedar").write_text(rule)
    stage.app.given_policy = None

    @tool(side_effects="none", registry=Registry())
    def lend(title: str) -> str:
        raise AssertionError("it ran")

    stage.app.tools.add(lend)
    await stage.turn("lend it", Turn(tool_calls=[Call("lend", {"title": "The Trial"})]), "No.")
    assert "no-loans" in stage.model.requests[1].messages[-1]["content"]


@situation("register_models")
async def a_model_of_the_plugin_answers(stage: Stage) -> None:
    prepare(stage)
    stage.app.model = "library:reading room"
    async with stage.running():
        assert (await stage.say()).model_output == "The reading room is open."


@situation("register_channels")
async def the_gateway_serves_the_channel(stage: Stage) -> None:
    prepare(stage)
    stage.script("Bring it back.")
    gateway = Gateway(stage.app, enabled=["desk"])
    async with gateway.running():
        desk = gateway.channels["desk"]
        await desk.remind("ada")
        async with asyncio.timeout(10):
            while not desk.answers:
                await asyncio.sleep(0.001)
    assert desk.answers == ["Bring it back."]


@situation("resources_loaded")
async def the_file_is_read_at_the_start_and_after_a_reload(stage: Stage) -> None:
    prepare(stage)
    (stage.folder / "closed.txt").write_text("Sunday")
    async with stage.running():
        assert stage.plugin.closed == ["Sunday"]
        (stage.folder / "closed.txt").write_text("Sunday Monday")
        await stage.app.hook_files.reload()
        assert stage.plugin.closed == ["Sunday", "Monday"]


@situation("register_commands")
async def a_person_types_the_command(stage: Stage) -> None:
    prepare(stage)
    async with stage.running():
        commands, problems = plugin_commands(stage.app)
        assert not problems
        handler = commands["shelf"].handler
        assert handler(stage.app.context("s"), "Ulysses") == "Ulysses stands on shelf 1"


@situation("authorize_action")
async def a_tool_of_the_namespace_secrets_is_denied(stage: Stage) -> None:
    @tool(namespace="secrets", side_effects="none", registry=Registry())
    def read_key() -> str:
        raise AssertionError("it ran")

    stage.app.tools.add(read_key)
    await stage.turn("tell me", Turn(tool_calls=[Call("secrets.read_key")]), "No.")
    assert stage.model.requests[1].messages[-1]["is_error"]


@situation("resolve_approval")
async def what_only_reads_is_approved_without_a_person(stage: Stage) -> None:
    @tool(side_effects="read", registry=Registry())
    def peek() -> str:
        return "seen"

    @tool(side_effects="write", registry=Registry())
    def poke() -> str:
        raise AssertionError("it ran")

    stage.app.tools.add(peek)
    stage.app.tools.add(poke)
    stage.app.hooks.register("tool_call", lambda event: ToolCallEventResult(ask=True))
    await stage.turn("look", Turn(tool_calls=[Call("peek"), Call("poke")]), "Done.")
    results = [m for m in stage.model.requests[1].messages if m["role"] == "tool"]
    assert results[0]["content"] == "seen"
    assert results[1]["is_error"], json.dumps(results[1])


def prepare(stage: Stage) -> None:
    """Give the plugin the files that it comes with."""
    stage.monkeypatch.setenv("LOANS", str(stage.folder / "loans.db"))
    pack = stage.folder / "lending"
    pack.mkdir()
    (pack / "pack.toml").write_text('id = "library.lending"\nversion = "1.0.0"\n')
    (pack / "rules.cedar").write_text('@id("all") permit(principal, action, resource);')
