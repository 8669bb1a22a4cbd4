"""The guide to pipeline extensions: plugins, entry points, tools, packaged skills, parent streams.

Its code blocks are here as they stand there, but for the imports.
"""

import importlib
import logging
from types import SimpleNamespace

import pytest

from hookline import AsyncStreamEvents, StreamEvent, hookimpl
from hookline.cli.chat.commands import ChatCommands
from hookline.runtime.app import Hookline
from hookline.tools import REGISTRY

from ..plugins.site import Site
from . import add, say


class MyPlugin:
    @hookimpl
    def build_prompt(self, message, session_id, state):
        return "custom prompt"


class SessionPlugin:
    @hookimpl
    def resolve_session(self, message):
        return "my-session"


class EchoPlugin:
    @hookimpl
    def build_prompt(self, message, session_id, state):
        return f"[echo] {message['content']}"

    @hookimpl
    async def run_model_stream(self, prompt, session_id, state):
        async def iterator():
            yield StreamEvent("text", {"delta": prompt})

        return AsyncStreamEvents(iterator())


class StreamTapPlugin:
    def __init__(self, framework) -> None:
        self.framework = framework

    @hookimpl
    async def run_model_stream(self, prompt, session_id, state):
        parent_hook = self.framework._plugin_manager.subset_hook_caller(
            "run_model_stream",
            remove_plugins=[self],
        )
        parent_stream = await parent_hook(
            prompt=prompt,
            session_id=session_id,
            state=state,
        )
        if parent_stream is None:
            raise RuntimeError("no parent run_model_stream implementation found")

        async def iterator():
            async for event in parent_stream:
                if event.kind == "text":
                    delta = str(event.data.get("delta", ""))
                    print(delta, end="")
                yield event

        return AsyncStreamEvents(iterator(), state=parent_stream._state)


class TestTheExamples:
    async def test_a_plugin_builds_the_prompt(self, app, scripted):
        app.hooks.add(MyPlugin())
        model = scripted("ok")
        await say(app)
        assert model.requests[0].messages[-1]["content"] == "custom prompt"

    async def test_a_plugin_names_the_session_and_omits_what_it_does_not_use(self, app, scripted):
        app.hooks.add(SessionPlugin())
        scripted("ok")
        assert (await say(app)).session_id == "my-session"

    async def test_an_echo_plugin_takes_the_models_place(self, app):
        app.hooks.add(EchoPlugin())
        assert (await say(app)).model_output == "[echo] hello"

    def test_it_is_listed_for_its_hooks(self, app):
        app.hooks.add(EchoPlugin())
        report = app.hooks.report()
        assert [report[hook][0] for hook in ("build_prompt", "run_model_stream")] == ["EchoPlugin"] * 2

    async def test_a_plugin_taps_the_stream_of_its_parent(self, app, scripted, capsys):
        app.hooks.add(StreamTapPlugin(app))
        scripted("from the parent")
        result = await say(app, session_id="s")
        assert result.model_output == capsys.readouterr().out == "from the parent"

    async def test_the_parent_of_two_taps_is_the_next_older_one(self, app):
        class Shout(StreamTapPlugin):
            pass

        app.hooks.add(EchoPlugin())
        app.hooks.add(StreamTapPlugin(app))
        app.hooks.add(Shout(app))
        assert (await say(app)).model_output == "[echo] hello"

    async def test_without_a_parent_there_is_no_stream(self, app):
        app.hooks.remove("builtin")
        app.hooks.add(StreamTapPlugin(app))
        with pytest.raises(RuntimeError, match="no parent run_model_stream"):
            await say(app)

    async def test_a_tap_can_redact_inject_and_fall_back_to_run_model(self, app):
        class Tap(StreamTapPlugin):
            @hookimpl
            async def run_model_stream(self, prompt, session_id, state):
                text = await self.framework.hooks.call_first(
                    "run_model", prompt=prompt, session_id=session_id, state=state
                )

                async def iterator():
                    yield StreamEvent("text", {"delta": "(injected) "})
                    yield StreamEvent("text", {"delta": text.replace("secret", "***")})

                return AsyncStreamEvents(iterator())

        app.hooks.remove("builtin")
        add(app, run_model=lambda: "a secret")
        app.hooks.add(Tap(app))
        assert (await say(app)).model_output == "(injected) a ***"


class TestEntryPoints:
    @pytest.fixture
    def site(self, tmp_path, monkeypatch):
        made = Site(tmp_path / "site")
        monkeypatch.syspath_prepend(made.folder)
        return made

    @pytest.fixture
    def fresh(self, tmp_path):
        return Hookline(home=tmp_path / "home", workspace=tmp_path)

    PLUGIN = (
        "from hookline import hookimpl\n\nclass MyPlugin:\n    @hookimpl\n"
        "    def build_prompt(self, message, session_id, state):\n        return 'custom prompt'\n\n"
        "my_plugin = MyPlugin()\n"
    )

    def test_the_builtin_plugin_loads_first_and_entry_points_win(self, site, fresh):
        site.install("mine", self.PLUGIN, attribute=":my_plugin", manifest="'provides': []")
        fresh.load_hooks()
        assert fresh.failures == []
        assert fresh.hooks.report()["build_prompt"] == ["mine", "builtin"]

    def test_a_module_can_be_the_plugin(self, site, fresh):
        module = site.install("mine", manifest="'provides': []")
        fresh.load_hooks()
        assert f"{module}.plugin" in fresh.get_system_prompt("", {})


class TestTools:
    @pytest.fixture
    def package(self, tmp_path, monkeypatch):
        package = tmp_path / "my_extension"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "tools.py").write_text(
            "from hookline import tool\n\n@tool\ndef borrowed(title: str) -> str:\n    return title\n"
        )
        plugin = "class MyPlugin:\n    @hookimpl\n    def system_prompt(self, prompt, state):\n"
        text = f"from hookline import hookimpl\n%s\n{plugin}        return 'extension prompt'\n"
        (package / "plugin.py").write_text(text % "from . import tools  # noqa: F401")
        (package / "without.py").write_text(text % "")
        monkeypatch.syspath_prepend(tmp_path)
        yield
        if "borrowed" in REGISTRY:
            REGISTRY.remove("borrowed")
        for name in ("", ".tools", ".plugin", ".without"):
            importlib.sys.modules.pop(f"my_extension{name}", None)

    async def test_importing_their_module_brings_them(self, package, app, scripted):
        app.hooks.add(importlib.import_module("my_extension.plugin").MyPlugin())
        model = scripted("ok")
        await say(app)
        assert "borrowed" in REGISTRY
        assert "borrowed" in [tool["name"] for tool in model.requests[0].tools]
        assert "extension prompt" in model.requests[0].system
        chat = ChatCommands(SimpleNamespace(app=app, session_id="s"))
        assert "borrowed" in [name for name, _ in chat.names()]

    def test_another_app_of_the_process_does_not_get_them(self, package, app):
        importlib.import_module("my_extension.plugin")
        assert "borrowed" in REGISTRY
        assert "borrowed" not in app.tools

    async def test_without_the_import_there_are_none(self, package, app, scripted):
        app.hooks.add(importlib.import_module("my_extension.without").MyPlugin())
        model = scripted("ok")
        await say(app)
        assert "borrowed" not in REGISTRY
        assert "borrowed" not in [tool["name"] for tool in model.requests[0].tools]
        chat = ChatCommands(SimpleNamespace(app=app, session_id="s"))
        assert "borrowed" not in [name for name, _ in chat.names()]


class TestPackagedSkills:
    def write(self, folder, description):
        (folder / "my-skill").mkdir(parents=True)
        text = f"---\nname: my-skill\ndescription: {description}.\n---\nDo it.\n"
        (folder / "my-skill" / "SKILL.md").write_text(text)

    @pytest.mark.parametrize("override", ["", "user", "workspace"])
    async def test_the_workspace_overrides_the_user_overrides_the_package(
        self, app, scripted, tmp_path, monkeypatch, override
    ):
        self.write(tmp_path / "site-packages" / "skills", "From the package")
        monkeypatch.syspath_prepend(tmp_path / "site-packages")
        if override:
            self.write(tmp_path / ".agents" / "skills", "From the user")
        if override == "workspace":
            self.write(app.workspace / ".agents" / "skills", "From the workspace")
        model = scripted("ok")
        await say(app)
        expected = {"": "package"}.get(override, override)
        assert f"- my-skill: From the {expected}." in model.requests[0].system


class TestExecution:
    async def test_call_first_returns_the_first_value_that_is_not_none(self, app):
        add(app, resolve_session=lambda: "older")
        add(app, resolve_session=lambda: None)
        assert await app.hooks.call_first("resolve_session", message={}) == "older"

    async def test_call_many_collects_all_values_including_none(self, app):
        app.hooks.remove("builtin")
        add(app, load_state=lambda: {"a": 1})
        add(app, load_state=lambda: None)
        values = await app.hooks.call_many("load_state", message={}, session_id="s")
        assert values == [None, {"a": 1}]

    @pytest.mark.parametrize("call", ["call_first_sync", "call_many_sync"])
    def test_a_sync_call_skips_awaitables_with_a_warning(self, app, caplog, call):
        async def later():
            return {"a": 1}

        caplog.set_level(logging.WARNING)
        app.hooks.remove("builtin")
        add(app, "tardy", load_state=later)
        value = getattr(app.hooks, call)("load_state", message={}, session_id="s")
        assert not value
        assert "hook.async_not_supported hook=load_state adapter=tardy" in caplog.text

    @pytest.mark.parametrize(
        "hook", ["load_state", "build_prompt", "run_model_stream", "save_state", "render_outbound"]
    )
    async def test_errors_of_hooks_are_not_isolated(self, app, scripted, hook):
        def fail():
            raise RuntimeError("broken")

        add(app, **{hook: fail})
        scripted("ok")
        with pytest.raises(RuntimeError, match="broken"):
            await say(app)

    def test_a_stale_hook_name_is_refused(self, app):
        with pytest.raises(ValueError, match="build_promt"):
            add(app, build_promt=lambda: "x")
