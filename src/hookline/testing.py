"""A pytest plugin for plugin authors: an app on a scripted model, and the record of what fired.

    async def test_my_plugin_names_the_session(app, scripted, fired):
        app.hooks.add(MyPlugin())
        scripted("Hello.")
        async with app.running():
            result = await app.process_inbound({"content": "hi"})
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
    from hookline.app import Hookline
    from hookline.models import ScriptedModel

Script = Callable[..., "ScriptedModel"]


@pytest.fixture
def app(tmp_path: Path) -> Hookline:
    """An app with the plugins that come with Hookline: home and workspace are folders of this test."""
    from hookline.app import Hookline

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    made = Hookline(home=tmp_path / "home", workspace=workspace)
    made.load_hooks(packages=False)
    skills: Any = made.hooks.pm.get_plugin("skills")
    skills.home = tmp_path  # not the skills of whoever runs the tests
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
