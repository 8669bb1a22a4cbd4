"""The four styles in which hooks are written elsewhere, each through the app, with our imports.

A plugin object on a pluggy pipeline; event handlers on a typed bus; a runner of mutation and
observation points; a catalogue with specs, authorisation and triggers.
"""

import importlib

import pytest

import hookline
from hookline import AsyncStreamEvents, Hooks, StreamEvent, hookimpl, tool
from hookline.events import (
    AgentEndEvent,
    ContextEventResult,
    InputEventResult,
    ToolCallEventResult,
    ToolResultEventResult,
)
from hookline.ext.triggers import DispatchResult, collect_trigger_routes, dispatch_trigger_lifecycle
from hookline.models.script import Call, Turn
from hookline.runtime.app import Hookline
from hookline.specs import SideEffects, ToolSpec
from hookline.tools import REGISTRY


async def say(app, text="hello"):
    async with app.running():
        return await app.process({"content": text})


class TestThePipelineStyle:
    async def test_a_plugin_builds_the_prompt(self, app, scripted):
        class MyPlugin:
            @hookimpl
            def build_prompt(self, message, session_id, state):
                return "custom prompt"

        app.hooks.add(MyPlugin())
        model = scripted("ok")
        await say(app)
        assert model.requests[0].messages[-1]["content"] == "custom prompt"

    async def test_a_plugin_names_the_session_and_leaves_out_what_it_does_not_use(self, app, scripted):
        class SessionPlugin:
            @hookimpl
            def resolve_session(self, message):
                return "my-session"

        app.hooks.add(SessionPlugin())
        scripted("ok")
        assert (await say(app)).session_id == "my-session"

    async def test_an_echo_plugin_takes_the_models_place(self, app):
        class EchoPlugin:
            @hookimpl
            def build_prompt(self, message, session_id, state):
                return f"[echo] {message['content']}"

            @hookimpl
            async def run_model_stream(self, prompt, session_id, state):
                async def iterator():
                    yield StreamEvent("text", {"delta": prompt})

                return AsyncStreamEvents(iterator())

        app.hooks.add(EchoPlugin())
        assert (await say(app)).model_output == "[echo] hello"

    async def test_a_plugin_taps_the_parents_stream(self, app, scripted, capsys):
        class StreamTapPlugin:
            def __init__(self, framework) -> None:
                self.framework = framework

            @hookimpl
            async def run_model_stream(self, prompt, session_id, state):
                parent_hook = self.framework._plugin_manager.subset_hook_caller(
                    "run_model_stream", remove_plugins=[self]
                )
                parent = await parent_hook(prompt=prompt, session_id=session_id, state=state)
                if parent is None:
                    raise RuntimeError("no parent run_model_stream implementation found")

                async def iterator():
                    async for event in parent:
                        if event.kind == "text":
                            print(str(event.data.get("delta", "")), end="")
                        yield event

                return AsyncStreamEvents(iterator(), state=parent._state)

        app.hooks.add(StreamTapPlugin(app))
        scripted("from the parent")
        assert (await say(app)).model_output == "from the parent"
        assert capsys.readouterr().out == "from the parent"

    async def test_tools_come_with_a_plugin_that_imports_their_module(
        self, app, scripted, tmp_path, monkeypatch
    ):
        package = tmp_path / "my_extension"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "tools.py").write_text(
            "from hookline import tool\n\n@tool\ndef borrowed(title: str) -> str:\n    return title\n"
        )
        (package / "plugin.py").write_text(
            "from hookline import hookimpl\nfrom . import tools  # noqa: F401\n\n"
            "class MyPlugin:\n"
            "    @hookimpl\n"
            "    def system_prompt(self, prompt, state):\n"
            "        return 'extension prompt'\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        plugin = importlib.import_module("my_extension.plugin").MyPlugin()
        assert "borrowed" in REGISTRY
        without = Hookline(home=tmp_path / "other", workspace=tmp_path)
        without.load_hooks(packages=False)
        assert "borrowed" not in without.tools
        app.hooks.add(plugin)
        model = scripted("ok")
        await say(app)
        assert "borrowed" in [t["name"] for t in model.requests[0].tools]


class TestTheEventStyle:
    async def test_handlers_subscribers_and_unsubscribing(self, app, scripted):
        seen = []

        def my_handler(event):
            seen.append(event.tool_name)

        unsubscribe = app.hooks.register("tool_call", my_handler)

        @app.hooks.on("agent_end")
        async def on_end(event: AgentEndEvent) -> None:
            seen.append(len(event.messages))

        every = []
        off = app.hooks.subscribe(lambda event: every.append(event.type))
        scripted(Turn(tool_calls=[Call("todo")]), "done")
        await say(app)
        assert seen == ["todo", 4]
        assert {"agent_start", "tool_call", "agent_end"} <= set(every)
        unsubscribe()
        off()
        assert app.hooks.handler_count("tool_call") == 0
        assert "agent_end" in app.hooks.registered_events()
        app.hooks.clear()
        assert "agent_end" not in app.hooks.registered_events()

    async def test_each_result_class_does_what_it_says(self, app, scripted):
        app.hooks.register("input", lambda e: InputEventResult("transform", text=e.text.upper()))
        app.hooks.register(
            "context", lambda e: ContextEventResult([*e.messages, {"role": "user", "content": "PS"}])
        )
        app.hooks.register("tool_call", lambda e: ToolCallEventResult(block=True, reason="no todo"))
        app.hooks.register("tool_result", lambda e: ToolResultEventResult(content=f"{e.content}!"))
        model = scripted(Turn(tool_calls=[Call("todo")]), "done")
        await say(app)
        assert [m["content"] for m in model.requests[0].messages] == ["HELLO", "PS"]
        assert model.requests[1].messages[2]["content"] == "no todo!"

    async def test_a_handler_that_raises_stops_nothing(self, app, scripted):
        def broken(event):
            raise RuntimeError("broken")

        app.hooks.register("turn_start", broken)
        scripted("fine")
        assert (await say(app)).model_output == "fine"


class TestTheRunnerStyle:
    def test_mutation_points_chain_and_observation_points_collect(self):
        runner = hookline.hookspecs.Hooks()
        runner.register(
            "before_tool_call", lambda tool_name, arguments, agent_id: {**arguments, "a": 1}
        )
        runner.register("before_tool_call", lambda arguments: {**arguments, "b": arguments["a"] + 1})
        runner.register("bootstrap_files", lambda agent_id: [f"for {agent_id}"])
        modified = runner.run(
            "before_tool_call", tool_name="search", arguments={"q": "hello"}, agent_id="a1"
        )
        assert modified == {"q": "hello", "a": 1, "b": 2}
        assert runner.run("bootstrap_files", agent_id="a1") == [["for a1"]]
        assert runner.has_hooks("bootstrap_files")
        runner.clear("bootstrap_files")
        assert not runner.has_hooks("bootstrap_files")
        with pytest.raises(ValueError, match="before_tool_cal"):
            runner.register("before_tool_cal", lambda: None)
        assert Hooks is hookline.Hooks


class TestTheCatalogueStyle:
    async def test_a_plugin_lists_a_tool_and_watches_every_call(self, app, scripted, capsys):
        class Plugin:
            @hookimpl
            def register_tools(self) -> list[ToolSpec]:
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
            def before_tool_call(self, call) -> None:
                print(f"calling {call.name}")

            @hookimpl
            def after_tool_call(self, call, result) -> None:
                print(f"called {call.name} -> {result}")

        app.hooks.add(Plugin(), name="acme")
        model = scripted(Turn(tool_calls=[Call("acme.search", {"q": "x"}), Call("todo")]), "done")
        await say(app)
        out = capsys.readouterr().out
        assert "calling acme.search" in out
        assert "called todo -> [nothing is to be done]" in out
        told = next(m for m in model.requests[1].messages if m.get("name") == "acme.search")
        assert "has nothing to call" in told["content"]

    async def test_the_first_answer_authorises_and_a_namespace_can_be_denied(self, app, scripted):
        runs = []

        @tool(namespace="secrets", side_effects="none", registry=None)
        def read(name: str) -> str:
            runs.append(name)
            return "secret"

        class Bosun:
            @hookimpl
            def authorize_action(self, action: dict) -> bool | None:
                if action.get("kind") == "tool.call" and action.get("namespace") == "secrets":
                    return False
                return None

        app.tools.add(read)
        app.hooks.add(Bosun())
        scripted(Turn(tool_calls=[Call("secrets.read", {"name": "key"})]), "done")
        await say(app)
        assert runs == []

    def test_one_trigger_that_fails_never_stops_another(self, app):
        class Good:
            @hookimpl
            def trigger_init(self, deps):
                deps["started"].append("good")

            @hookimpl
            def trigger_routes(self):
                return []

        class Bad:
            @hookimpl
            def trigger_init(self, deps):
                raise RuntimeError("no")

        app.hooks.add(Bad(), name="bad")
        app.hooks.add(Good(), name="good")
        deps = {"started": []}
        results = dispatch_trigger_lifecycle(app.hooks.pm, "trigger_init", deps=deps)
        ours = {r.plugin_name: r for r in results if r.plugin_name in ("good", "bad")}
        assert isinstance(ours["bad"], DispatchResult)
        assert (ours["bad"].success, ours["good"].success) == (False, True)
        assert "no" in str(ours["bad"].error)
        assert deps["started"] == ["good"]
        assert all(isinstance(r, DispatchResult) for r in collect_trigger_routes(app.hooks.pm))
