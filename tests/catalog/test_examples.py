"""Every example of the reference runs in a real app, in the situation that it is for."""

import logging

import pytest

from hookline.hookspecs import CATALOG
from hookline.observe.reference.examples import EXAMPLES, PLUGINS, example_source, implementations

from ..tables import each_row
from .situations import SITUATIONS, Stage, agent, gateway, plugin, session, tool, turn

__all__ = ["agent", "gateway", "plugin", "session", "tool", "turn"]


def test_every_hook_has_one_example():
    assert list(EXAMPLES) == list(CATALOG)
    shown = [name for plugin in PLUGINS for name, _ in implementations(plugin)]
    assert len(shown) == len(set(shown)) == len(CATALOG)


@each_row("name", CATALOG)
def test_an_example_is_short_and_stands_at_the_margin(name: str):
    source = example_source(name)
    assert source.startswith("@hookimpl")
    assert len(source.splitlines()) <= 12


@pytest.mark.parametrize("hook", CATALOG)
async def test_the_example_does_what_it_says_in_a_real_app(hook, app, scripted, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    stage = Stage(hook, app, scripted, caplog, monkeypatch)
    app.plugins.add("example", stage.plugin)
    await SITUATIONS[hook](stage)
    assert stage.calls
    assert stage.failed == []
    assert app.failures == []
    assert [r.getMessage() for r in caplog.records if r.name == "hookline.hooks"] == []
