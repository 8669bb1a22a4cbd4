"""The catalogue of hook specs: registrations, observation and authorisation of tool calls, triggers."""

import asyncio
from pathlib import Path

import httpx
import pluggy
import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hookline import HooklineError, hookspecs
from hookline.ext.stores import Stores
from hookline.ext.triggers import (
    DispatchResult,
    ServeContext,
    TriggerEvent,
    TriggerHookSpec,
    collect_trigger_routes,
    dispatch_trigger_lifecycle,
)
from hookline.hookspecs import CATALOG, PluginHooks, ToolHooks, TriggerHooks
from hookline.models.script import Call, Turn
from hookline.plugin import hookimpl, hookspec
from hookline.runtime.app import Hookline
from hookline.serve import Gateway, GatewaySettings
from hookline.serve.server import create_app
from hookline.specs import PackSpec, SideEffects, SkillSpec, StoreSpec, ToolSpec
from hookline.tools import tool
from hookline.tools.registry import Registry

from ..plugins.site import Site
from . import add, say

PARAMETERS = {
    "hookline_startup": "pm",
    "hookline_shutdown": "pm",
    "register_tools": "",
    "register_skills": "",
    "register_stores": "",
    "register_packs": "",
    "before_tool_call": "call",
    "after_tool_call": "call result",
    "authorize_action": "action",
    "trigger_init": "deps",
    "trigger_start": "deps",
    "trigger_stop": "deps",
    "trigger_routes": "",
}


@hookimpl
def register_tools() -> list[ToolSpec]:
    return [
        ToolSpec(
            name="search",
            namespace="acme",
            version="1.0.0",
            description="Search the Acme corpus.",
            input_schema={
                "type": "object",
                "properties": {"q": {"type": "string"}},
                "required": ["q"],
            },
            output_schema={"type": "object"},
            side_effects=SideEffects.read,
        ),
    ]


@hookimpl
def before_tool_call(call) -> None:
    print(f"calling {call!r}")


@hookimpl
def after_tool_call(call, result) -> None:
    print(f"called {call!r} -> {result!r}")


class Example:
    """The complete example, as methods."""

    register_tools = staticmethod(register_tools)
    before_tool_call = staticmethod(before_tool_call)
    after_tool_call = staticmethod(after_tool_call)


class Bosun:
    @hookimpl
    def authorize_action(self, action: dict) -> bool | None:
        if action.get("kind") == "tool.call" and action.get("namespace") == "secrets":
            return False  # hard deny
        return None  # abstain


@pytest.fixture
def secrets(app):
    """A tool in the namespace `secrets`; the list of its calls."""
    calls = []

    @tool(namespace="secrets", side_effects="none", registry=Registry())
    def read(name: str) -> str:
        calls.append(name)
        return "secret"

    app.tools.add(read)
    return calls


def asking(scripted):
    return scripted(Turn(tool_calls=[Call("secrets.read", {"name": "key"})]), "done")


class TestTheTable:
    @pytest.mark.parametrize("hook", PARAMETERS)
    def test_the_hook_takes_the_documented_arguments(self, app, hook):
        assert set(PARAMETERS[hook].split()) <= {*CATALOG[hook].params}
        scope: dict = {}
        exec(f"def take({', '.join(PARAMETERS[hook].split())}): return None", scope)
        add(app, **{hook: scope["take"]})

    @pytest.mark.parametrize("hook", PARAMETERS)
    def test_whether_the_first_result_wins_is_an_attribute(self, app, hook):
        family = next(f for f in (PluginHooks, ToolHooks, TriggerHooks) if hook in vars(f))
        assert getattr(family, hook).firstresult is (hook == "authorize_action")
        assert app.hooks[hook].spec.firstresult is (hook == "authorize_action")

    def test_the_markers_are_pluggys_with_the_name_of_the_project(self):
        @hookspec(firstresult=True)
        def first(): ...

        @hookspec
        def collected(): ...

        assert (first.firstresult, collected.firstresult) == (True, False)
        manager = pluggy.PluginManager("hookline")
        assert manager.parse_hookimpl_opts(Example(), "register_tools")
        assert not pluggy.PluginManager("another").parse_hookimpl_opts(Example(), "register_tools")


class TestLifecycle:
    async def test_startup_comes_once_after_registration_and_shutdown_at_the_end(self, app, scripted):
        seen = []
        add(app, "mine", hookline_startup=lambda pm: seen.append(("up", pm.has_plugin("mine"))))
        add(app, hookline_shutdown=lambda pm: seen.append(("down", pm.has_plugin("mine"))))
        scripted("ok", repeat=True)
        async with app.running():
            await app.process({"content": "hello"})
            await app.process({"content": "hello"})
        assert seen == [("up", True), ("down", True)]


class TestRegistration:
    async def test_lists_of_all_plugins_are_flattened(self, app, scripted):
        for name in ("one", "two"):
            add(
                app,
                name,
                register_tools=lambda name=name: [ToolSpec(name=f"{name}_{part}") for part in "ab"],
                register_skills=lambda name=name: [SkillSpec(name=name, description=f"Skill {name}.")],
            )
        model = scripted("ok")
        await say(app)
        names = {each["name"] for each in model.requests[0].tools}
        assert {"one_a", "one_b", "two_a", "two_b"} <= names
        assert "- one: Skill one." in model.requests[0].system
        assert "- two: Skill two." in model.requests[0].system

    @pytest.mark.parametrize("protocol", ["vector", "graph", "doc", "memory", "fact"])
    def test_a_store_has_one_of_five_protocols(self, protocol):
        assert StoreSpec(name="mine", provider="acme", protocol=protocol).protocol == protocol

    def test_another_protocol_is_refused(self):
        with pytest.raises(ValueError, match="protocol"):
            StoreSpec(name="mine", provider="sqlite", protocol="table")

    @staticmethod
    def notes(path: str) -> StoreSpec:
        schema = {"properties": {"path": {"pattern": "^from-"}}}
        return StoreSpec(
            name="notes", provider="sqlite", protocol="doc", config={"path": path}, config_schema=schema
        )

    @pytest.mark.parametrize("path", ["elsewhere.db", "${NOT_SET}"])
    async def test_a_wrong_store_stops_the_app_and_names_the_plugin(self, app, path):
        add(app, "wrong", register_stores=lambda: [self.notes(path)])
        with pytest.raises(HooklineError, match="wrong"):
            async with app.running():
                pass

    async def test_variables_of_a_store_are_filled_in(self, app, monkeypatch):
        monkeypatch.setenv("NOTES", "from-the-environment.db")
        add(app, register_stores=lambda: [self.notes("${NOTES}")])
        async with app.running():
            await Stores.of(app).get("notes").add("c", {"a": 1})
        assert (app.home / "stores" / "from-the-environment.db").exists()

    def test_a_tool_spec_carries_what_is_documented(self):
        fields = (
            "name namespace version input_schema output_schema side_effects replay_policy permissions"
        )
        assert {*fields.split(), "cost_estimate"} <= {*ToolSpec.model_fields}

    async def test_a_plugins_pack_denies(self, app, scripted, secrets, tmp_path):
        (tmp_path / "pack.toml").write_text('id = "no-secrets"\nversion = "1.0"\n')
        forbid = 'forbid (principal, action, resource == Tool::"secrets.read");\n'
        (tmp_path / "rules.cedar").write_text(f'@id("no")\n{forbid}')
        pack = PackSpec(id="no-secrets", version="1.0", manifest_path=tmp_path / "pack.toml")
        add(app, register_packs=lambda: [pack])
        app.given_policy = None
        app.hooks.register("resolve_approval", lambda request: "approve")
        model = asking(scripted)
        await say(app)
        assert secrets == []
        assert model.requests[1].messages[-1]["is_error"]

    @pytest.mark.parametrize("hook", [name for name in PARAMETERS if name != "authorize_action"])
    def test_plugins_are_called_in_registration_order(self, app, hook):
        for name in ("one", "two"):
            add(app, name, **{hook: lambda: None})
        assert [name for name in app.hooks.report()[hook] if name in ("one", "two")] == ["one", "two"]


class TestToolCalls:
    async def test_the_complete_example(self, app, scripted, capsys):
        app.hooks.add(Example(), name="acme")
        model = scripted(Turn(tool_calls=[Call("acme.search", {"q": "x"}), Call("todo")]), "done")
        await say(app)
        out = capsys.readouterr().out
        assert out.count("calling ToolCall(") == 2
        assert "acme.search" in out
        assert out.count(") -> ") == 2
        assert "acme.search" in [each["name"] for each in model.requests[0].tools]

    async def test_a_failure_shows_in_the_result(self, app, scripted):
        from .test_event_bus import broken

        seen = []
        app.tools.add(broken)
        add(app, after_tool_call=lambda call, result: seen.append((call.name, str(result))))
        scripted(Turn(tool_calls=[Call("broken")]), "done")
        await say(app)
        assert seen[0][0] == "broken"
        assert "it broke" in seen[0][1]

    async def test_an_observer_changes_nothing(self, app, scripted):
        add(app, before_tool_call=lambda call: None, after_tool_call=lambda call, result: None)
        model = scripted(Turn(tool_calls=[Call("todo")]), "done")
        await say(app)
        assert model.requests[1].messages[-1]["content"] == "[nothing is to be done]"


class TestAuthorisation:
    async def test_the_example_denies_a_namespace(self, app, scripted, secrets):
        app.hooks.add(Bosun())
        model = asking(scripted)
        await say(app)
        assert secrets == []
        assert model.requests[1].messages[-1]["is_error"]

    @pytest.mark.parametrize(
        ("answers", "runs"),
        [
            ([False, True], False),  # the earlier one decides, and the rest are skipped
            ([True, False], True),
            ([None, False], False),
            ([None, True], True),
            ([None, None], True),
            ([None], True),
        ],
    )
    async def test_the_first_answer_in_registration_order_is_final(
        self, app, scripted, secrets, answers, runs
    ):
        asked = []
        for number, answer in enumerate(answers):
            add(app, authorize_action=lambda action, n=number, a=answer: (asked.append(n), a)[1])
        asking(scripted)
        await say(app)
        assert bool(secrets) is runs
        decided = next((n for n, answer in enumerate(answers) if answer is not None), len(answers) - 1)
        assert asked == list(range(decided + 1))

    @pytest.mark.parametrize("first", ["lenient", "strict"])
    def test_the_lower_order_of_a_manifest_is_asked_first(self, tmp_path, monkeypatch, first):
        site = Site(tmp_path / "site")
        monkeypatch.syspath_prepend(site.folder)
        for name in ("lenient", "strict"):
            check = f"def authorize_action(action):\n    return {name == 'lenient'}\n"
            plugin = f"from hookline import hookimpl\n\n@hookimpl\n{check}"
            order = 10 if name == first else 20
            site.install(name, plugin, manifest=f"'order': {order}, 'provides': []")
        app = Hookline(home=tmp_path / "home", workspace=tmp_path)
        app.load_hooks()
        asked = app.hooks.report()["authorize_action"]
        assert min(("lenient", "strict"), key=asked.index) == first
        answer = asyncio.run(app.hooks.call("authorize_action", action={"kind": "tool.call"}))
        assert answer is (first == "lenient")


class TestTriggers:
    def test_one_that_fails_never_blocks_the_others(self, app):
        started = []

        def fail(deps):
            raise RuntimeError("no")

        add(app, "bad", trigger_init=fail)
        add(app, "good", trigger_init=lambda deps: started.append(deps["word"]))
        results = dispatch_trigger_lifecycle(app.hooks.pm, "trigger_init", deps={"word": "hi"})
        ours = {r.plugin_name: r for r in results if r.plugin_name in ("good", "bad")}
        assert all(isinstance(r, DispatchResult) for r in results)
        assert (ours["bad"].success, ours["bad"].result) == (False, None)
        assert str(ours["bad"].error) == "no"
        assert (ours["good"].success, ours["good"].error) == (True, None)
        assert started == ["hi"]

    @pytest.mark.parametrize("hook", ["trigger_init", "trigger_start", "trigger_stop"])
    async def test_the_gateway_calls_each_part_of_the_lifecycle_alone(self, app, hook):
        seen = []
        add(app, **{hook: lambda deps: seen.append(sorted(deps))})
        async with Gateway(app, settings=GatewaySettings(channels=[])).running():
            pass
        assert seen == [["app", "context", "emit"]]

    async def test_a_trigger_is_given_the_serve_context_and_emits_events_that_make_turns(
        self, app, scripted
    ):
        given = {}

        async def trigger_start(deps):
            await deps["emit"](TriggerEvent("bell", message="somebody is there"))

        add(app, trigger_init=lambda deps: given.update(deps), trigger_start=trigger_start)
        model = scripted("I am coming.")
        async with Gateway(app, settings=GatewaySettings(channels=[])).running():
            async with asyncio.timeout(10):
                while not model.requests:
                    await asyncio.sleep(0.001)
        assert isinstance(given["context"], ServeContext)
        assert model.requests[0].messages[-1]["content"] == "somebody is there"

    async def test_the_order_of_the_lifecycle(self, app):
        seen = []
        add(
            app,
            trigger_init=lambda deps: seen.append("init"),
            trigger_start=lambda deps: seen.append("start"),
            trigger_stop=lambda deps: seen.append("stop"),
        )
        async with Gateway(app, settings=GatewaySettings(channels=[])).running():
            seen.append("running")
        assert seen == ["init", "start", "running", "stop"]

    async def test_routes_of_every_plugin_are_mounted_although_one_fails(self, app):
        def fail():
            raise RuntimeError("no")

        add(app, trigger_routes=fail)
        add(app, trigger_routes=lambda: [])  # noqa: PIE807
        for name in ("a", "b"):
            route = Route(
                f"/{name}", lambda request, name=name: PlainTextResponse(name), methods=["POST"]
            )
            add(app, trigger_routes=lambda route=route: [route])
        results = collect_trigger_routes(app.hooks.pm)
        assert sorted(len(r.result or []) for r in results if r.success)[-2:] == [1, 1]
        served = create_app(Gateway(app, settings=GatewaySettings(token="t" * 20)))
        async with served.router.lifespan_context(served):
            transport = httpx.ASGITransport(app=served)
            bearer = {"authorization": f"Bearer {'t' * 20}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                answers = [(await client.post(f"/{name}", headers=bearer)).text for name in ("a", "b")]
        assert answers == ["a", "b"]

    def test_the_four_hooks_are_static_methods_of_a_reference_class(self):
        for name in ("trigger_init", "trigger_start", "trigger_stop", "trigger_routes"):
            assert isinstance(vars(TriggerHookSpec)[name], staticmethod)
            assert not hasattr(getattr(TriggerHookSpec, name), "hookline_spec")
        assert TriggerHookSpec.trigger_routes() == []


def test_the_module_of_the_specs_needs_no_web_framework():
    source = Path(hookspecs.__file__).read_text()
    assert "starlette" not in source
    assert "fastapi" not in source
