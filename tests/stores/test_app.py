"""Stores in an app: who brings them, which tools may use them, and when they are closed."""

import pytest

from hookline import hookimpl
from hookline.errors import LoadFailed, PluginError
from hookline.ext.stores import DocStore, StoreClosed, Stores
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.runtime.app import Hookline
from hookline.specs import StoreSpec
from hookline.tools import ToolContext, tool


class Notes:
    @hookimpl
    def register_stores(self):
        return [StoreSpec(name="notes", provider="sqlite", protocol="doc")]


@tool(side_effects="write", permissions=["db.notes:read", "db.notes:write"], registry=None)
async def remember(text: str, ctx: ToolContext) -> int:
    notes = Stores.of(ctx.app).get("notes", DocStore)
    await notes.add("notes", {"text": text})
    return (await notes.collections())["notes"]


@tool(side_effects="read", permissions=["db.notes:read"], registry=None)
async def overreach(ctx: ToolContext) -> str:
    await Stores.of(ctx.app).get("notes").add("notes", {"text": "not allowed"})
    return "written"


@tool(side_effects="none", registry=None)
async def peek(ctx: ToolContext) -> str:
    return str(await Stores.of(ctx.app).get("notes").query("notes"))


@tool(side_effects="none", registry=None)
def peek_from_a_thread(ctx: ToolContext) -> str:
    return str(Stores.of(ctx.app).get("notes").query)


async def results(app, scripted, *calls):
    for each in (remember, overreach, peek, peek_from_a_thread):
        app.tools.add(each, replace=True)
    app.hooks.register("resolve_approval", lambda request: "approve")
    model = scripted(Turn(tool_calls=list(calls)), "done")
    async with app.running():
        await app.process({"content": "go"})
    return [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]


async def test_a_tool_uses_a_store_that_a_plugin_brings(app, scripted):
    app.hooks.add(Notes())
    assert await results(app, scripted, Call("remember", {"text": "tea"})) == ["1"]
    assert (app.home / "stores" / "notes.db").exists()
    assert (await results(app, scripted, Call("remember", {"text": "milk"})))[-1] == "2"


async def test_a_tool_gets_no_more_than_it_was_granted(app, scripted):
    app.hooks.add(Notes())
    told = await results(app, scripted, Call("overreach"), Call("peek"), Call("peek_from_a_thread"))
    assert told[0] == (
        "add on the store 'notes' needs 'db.notes:write', which the tool 'overreach' was not granted; "
        "list it in the tool's permissions"
    )
    assert "which the tool 'peek' was not granted" in told[1]
    assert "which the tool 'peek_from_a_thread' was not granted" in told[2]


async def test_every_grant_passes_through_authorize_action(app, scripted):
    app.hooks.add(Notes())
    seen = []

    def authorize(action):
        seen.append(action["permissions"])
        return "db.notes:write" not in action["permissions"]

    app.hooks.register("authorize_action", authorize)
    told = await results(app, scripted, Call("remember", {"text": "tea"}), Call("overreach"))
    assert seen == [["db.notes:read", "db.notes:write"], ["db.notes:read"]]
    assert told[0] == "remember was not authorised"
    async with app.running():
        assert await Stores.of(app).get("notes").collections() == {}


async def test_a_hook_outside_tool_calls_has_the_whole_store(app, scripted):
    app.hooks.add(Notes())

    async def keep(tool_name, **_):
        await Stores.of(app).get("notes").add("calls", {"tool": tool_name})

    app.hooks.register("before_tool_call", keep)
    await results(app, scripted, Call("peek"))
    async with app.running():
        assert await Stores.of(app).get("notes").collections() == {"calls": 1}


async def test_an_agent_that_a_tool_starts_is_not_bound_by_that_tools_permissions(app, scripted):
    app.hooks.add(Notes())

    @tool(side_effects="none", registry=None)
    async def ask(ctx: ToolContext) -> str:
        return str(await ctx.app.subagents.run("a task", parent=ctx.session_id, tools=["list_files"]))

    async def keep(**_):
        await Stores.of(app).get("notes").add("turns", {})

    app.hooks.register("turn_start", keep)
    app.tools.add(ask)
    scripted(Turn(tool_calls=[Call("ask")]), "done")  # the subagent has no such tool
    async with app.running():
        await app.process({"content": "go"})
        assert await Stores.of(app).get("notes").collections() == {"turns": 4}


async def test_stores_are_closed_with_the_running_scope_and_opened_again_in_the_next(app):
    app.hooks.add(Notes())
    async with app.running():
        await Stores.of(app).get("notes").add("c", {})
        opened = Stores.of(app)._open["notes"]
    with pytest.raises(StoreClosed):
        await opened.collections()
    async with app.running():
        assert await Stores.of(app).get("notes").collections() == {"c": 1}


def configured(tmp_path, text):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(text)
    app = Hookline(home=home, workspace=tmp_path)
    app.load_hooks(packages=False)
    app.models.add(ScriptedModel(["hi"]))
    return app


async def test_the_configuration_brings_stores(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTS", str(tmp_path / "elsewhere.db"))
    app = configured(
        tmp_path, '[stores.facts]\nprovider = "sqlite"\nprotocol = "fact"\npath = "${FACTS}"\n'
    )
    async with app.running():
        await Stores.of(app).get("facts").assert_fact("a", "b", 1, source="test")
    assert (tmp_path / "elsewhere.db").exists()


async def test_a_wrong_configuration_stops_the_start_with_one_message(tmp_path):
    app = configured(tmp_path, '[stores.facts]\nprovider = "sqlite"\nprotocol = "vector"\n')
    with pytest.raises(LoadFailed, match="'sqlite' keeps doc, fact, memory, not vector"):
        async with app.running():
            pass


async def test_a_plugin_with_a_wrong_store_is_left_out_and_the_others_run(app):
    class Clashing:
        @hookimpl
        def register_stores(self):
            return [
                StoreSpec(name="more", provider="sqlite", protocol="fact"),
                StoreSpec(name="notes", provider="sqlite", protocol="fact"),
            ]

    class Broken:
        @hookimpl
        def register_stores(self):
            raise ValueError("no stores today")

    app.hooks.add(Notes(), name="notes")
    app.hooks.add(Clashing(), name="clashing")
    app.hooks.add(Broken(), name="broken")
    app.absences.on_load_error = "continue"
    async with app.running():
        assert Stores.of(app).names() == ["notes"]
    left_out = {failure.plugin: failure for failure in app.failures}
    assert isinstance(left_out["clashing"].error, PluginError)
    assert "is brought by plugin 'notes' and by 'clashing'" in str(left_out["clashing"])
    assert "no stores today" in str(left_out["broken"])
    assert not app.hooks.pm.has_plugin("clashing")


async def test_a_plugin_that_is_taken_out_takes_its_stores_along(app):
    app.hooks.add(Notes(), name="notes")
    assert Stores.of(app).names() == ["notes"]
    app.plugins.take_out("notes")
    assert Stores.of(app).names() == []
