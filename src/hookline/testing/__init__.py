"""A pytest plugin for plugin authors: fire a hook at a plugin, or run it in an app on a scripted model.

    def test_sudo_is_denied(fire):
        verdict = fire(ToolCallEvent(tool_name="shell", input={"command": "sudo ls"}), at=NoSudo())
        assert verdict.denied

    async def test_my_plugin_names_the_session(app, scripted, fired):
        app.hooks.add(MyPlugin())
        scripted("Hello.")
        async with app.running():
            result = await app.process({"content": "hi"})
        assert result.model_output == "Hello."
        assert "tool_call" not in fired

It is loaded with pytest wherever Hookline is installed; nothing is imported until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hookline.models import ScriptedModel
    from hookline.runtime.app import Hookline

    from .change_record import Changes, HandlerChange
    from .channel import RecordingChannel
    from .clock import VirtualClock
    from .dispatcher import Fire
    from .tables import Row, decisions, rows
else:

    def __getattr__(name: str) -> object:
        """What tests use besides the fixtures, imported when it is used."""
        from importlib import import_module

        modules = ("change_record", "channel", "clock", "dispatcher", "tables")
        for module in modules if name in __all__ else ():
            found = getattr(import_module(f".{module}", __name__), name, None)
            if found is not None:
                return found
        raise AttributeError(f"module 'hookline.testing' has no attribute {name!r}")


Script = Callable[..., "ScriptedModel"]


@pytest.fixture
def app(tmp_path: Path) -> Hookline:
    """An app with the plugins that come with Hookline: home and workspace are folders of this test.

    Its policy allows every tool call that no plugin judges, since nobody is there to be asked.
    """
    from hookline.policy import Policy
    from hookline.runtime.app import Hookline

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    policy = Policy(default="allow")
    made = Hookline(home=tmp_path / "home", workspace=workspace, policy=policy)
    made.load_hooks(packages=False)
    made.user_home = tmp_path  # not the skills and hooks of the person who runs the tests
    return made


@pytest.fixture
def scripted(app: Hookline) -> Script:
    """Give the app a scripted model: call it with the turns that the model answers."""
    from hookline.models import ScriptedModel

    def script(*turns: Any, **options: Any) -> ScriptedModel:
        model = ScriptedModel(turns, **options)
        app.models.add(model)
        app.model = model.name
        return model

    return script


@pytest.fixture
def fired(app: Hookline) -> list[str]:
    """The names of the hooks that fired, in order, whether or not anything was attached."""
    names: list[str] = []
    app.hooks.trace(lambda dispatch: names.append(dispatch.hook))
    return names


@pytest.fixture
def changes(app: Hookline) -> Changes:
    """Who changed what in the app, in order: rewritten fields, denials, questions."""
    from .change_record import Changes

    record = Changes()
    app.hooks.trace(record.take)
    return record


@pytest.fixture
def fire() -> Fire:
    """Fire any hook at a plugin, and get its verdict or value."""
    from .dispatcher import Fire

    return Fire()


__all__ = [
    "Changes",
    "Fire",
    "HandlerChange",
    "RecordingChannel",
    "Row",
    "VirtualClock",
    "app",
    "changes",
    "decisions",
    "fire",
    "fired",
    "rows",
    "scripted",
]
