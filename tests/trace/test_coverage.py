"""`hookline doctor --coverage`: hooks without a call site, and handlers that can never run."""

import ast
import json
import sys
import types

from typer.testing import CliRunner

from hookline import hookimpl, hookspec
from hookline.hooks import Family, first
from hookline.observe.trace import cover
from hookline.observe.trace.coverage import SourceFile, around_the_runner, calls_in
from hookline.observe.trace.plugin import Tracing

from .conftest import one_turn


def test_every_hook_of_ours_is_called_and_tools_and_models_have_one_door(app):
    found = cover(app.hooks, tools=app.tools.names())
    assert [each.hook for each in found.hooks if not each.sites] == []
    assert found.faults == []
    assert found.complete


async def test_it_says_when_a_hook_last_fired(traced):
    app = traced()
    async with app.running():
        await one_turn(app)
        found = cover(app.hooks, await (await Tracing.of(app).store()).fired())
    gate = next(each for each in found.hooks if each.hook == "tool_call")
    assert gate.fired == 2
    assert gate.last
    assert gate.attached == ["house", "looker"]
    assert any(site.startswith("hookline/tools/gatekeeper.py:") for site in gate.sites)


class Own(Family, name="own"):
    @hookspec(first)
    def shipped_order(self, order: str) -> str | None:
        """An order was shipped."""


def test_a_plugins_own_hook_that_it_never_calls_is_told(app, tmp_path, monkeypatch):
    file = tmp_path / "shop_plugin.py"
    file.write_text("class Shop:\n    pass\n")
    module = types.ModuleType("shop_plugin")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "shop_plugin", module)

    class Shop:
        @hookimpl
        def system_prompt(self):
            return ""

    Shop.__module__ = "shop_plugin"
    app.hooks.declare(Own)
    app.hooks.add(Shop(), name="shop")
    found = cover(app.hooks)
    assert [each.hook for each in found.hooks if not each.sites] == ["shipped_order"]
    file.write_text('class Shop:\n    def ship(self):\n        self.hooks["shipped_order"].fire("1")\n')
    found = cover(app.hooks)
    assert next(e for e in found.hooks if e.hook == "shipped_order").sites == [f"{file}:3"]


def test_handlers_that_can_never_run_are_told_with_the_reason(app):
    class Mistaken:
        @hookimpl
        async def system_prompt(self):
            return "never"

        @hookimpl(optionalhook=True)
        def tool_cal(self, event):
            return None

    app.hooks.add(Mistaken(), name="mistaken")
    app.hooks.register("tool_call", lambda event: None, when="shel")
    app.hooks.register("tool_call", lambda event: None, when="shell|fs_*")
    app.hooks.register("session_shutdown", lambda event: None, when="quitting")
    found = cover(app.hooks, tools=app.tools.names())
    texts = [str(fault) for fault in found.faults]
    assert len(texts) == 4
    assert any("synchronously" in text for text in texts)
    assert any("matches no tool_name" in text for text in texts)
    assert any("matches no reason" in text for text in texts)
    assert any("did you mean 'tool_call'" in text for text in texts)
    assert not found.complete


def test_a_way_around_the_runner_is_told():
    sly = SourceFile()
    sly.visit(
        ast.parse("async def sly(tool, model):\n    await tool._invoke({})\n    model.stream(1)\n")
    )
    assert [f.place for f in around_the_runner(sly, "hookline/sly.py")] == [
        "hookline/sly.py:2",
        "hookline/sly.py:3",
    ]
    allowed = [f.place for f in around_the_runner(sly, "hookline/tools/runner.py")]
    assert allowed == ["hookline/tools/runner.py:3"]  # a tool there, and no model


def test_a_key_of_some_table_is_no_call_site():
    names = {"input": None, "output": None}
    source = SourceFile()
    source.visit(ast.parse('payload["input"]; self._hooks["output"]; print("input")'))
    assert [name for name, _ in calls_in(source, names, {}, {"call"})] == ["output"]


def test_the_command_leaves_with_1_where_something_can_never_run(app):
    shown = CliRunner().invoke(app.create_cli_app(), ["doctor", "--coverage", "--json"])
    assert shown.exit_code == 0
    assert json.loads(shown.output)["complete"]
    app.hooks.register("tool_call", lambda event: None, when="shel")
    shown = CliRunner().invoke(app.create_cli_app(), ["doctor", "--coverage"])
    assert shown.exit_code == 1
    assert "matches no tool_name" in shown.output
