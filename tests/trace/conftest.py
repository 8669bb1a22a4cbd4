"""An app that traces, with plugins that deny, rewrite and look on."""

import pytest

from hookline import hookimpl
from hookline.events import ToolCallEventResult, ToolResultEventResult
from hookline.models.script import Call, Turn

from ..inspector.conftest import inspected  # noqa: F401


class House:
    """Rules of the kind that people write."""

    @hookimpl
    def before_tool_call(self, tool_name, arguments):
        return {**arguments, "path": "src"} if tool_name == "list_files" else None

    @hookimpl
    def tool_call(self, event):
        if event.tool_name == "shell":
            return ToolCallEventResult(block=True, reason="no \x1b[31mshell\x1b[0m [bold]here[/]")
        return None

    @hookimpl
    def tool_result(self, event):
        return ToolResultEventResult(content="two files") if event.tool_name == "list_files" else None


class Looker:
    """Sees every call and says nothing."""

    @hookimpl
    def tool_call(self, event):
        return None


CALLS = [Call("list_files", {"path": "."}, "call_1"), Call("shell", {"command": "true"}, "call_2")]


@pytest.fixture
def traced(app, scripted):
    """An app with the house's rules and a turn to be made; what is said is the level, or settings."""
    (app.workspace / "src").mkdir()
    app.hooks.add(House(), name="house")
    app.hooks.add(Looker(), name="looker")
    scripted(Turn("Let me look.", tool_calls=CALLS), "Done.", repeat=True)

    def settle(level="full", **sections):
        import tomlkit

        app.home.mkdir(exist_ok=True)
        (app.home / "config.toml").write_text(tomlkit.dumps({"trace": {"level": level}, **sections}))
        app.config.reload()
        return app

    return settle


async def one_turn(app, session="s"):
    return await app.process({"content": "what is here?", "session_id": session})
