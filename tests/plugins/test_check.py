"""`hookline hooks check`: a file is judged as it would be when it is loaded, without an agent."""

import subprocess
import sys
from textwrap import dedent

import pytest

from hookline import Hooks
from hookline.plugins.check import check
from hookline.plugins.trust import Trust


@pytest.fixture
def checked(tmp_path):
    def run(source):
        path = tmp_path / "mine.py"
        path.write_text(dedent(source).lstrip())
        found = check(path, Hooks(), Trust(path.parent / "home"))
        return [str(problem).replace(f"{tmp_path}/", "") for problem in found.problems]

    return run


def test_a_good_hook_file_and_a_good_plugin_have_no_problems(checked):
    assert (
        checked(
            """
            from hookline import hookimpl
            from hookline.events import AgentEndEvent

            def done(event): ...
            hooks = [("agent_end", done), (AgentEndEvent, done, {"once": True})]

            class Plugin:
                def __init__(self, app): raise RuntimeError("is not made")
                @hookimpl
                async def tool_call(self, event, ctx): ...
                def helper(self): ...
            """
        )
        == []
    )


@pytest.mark.parametrize("hooks", ["", "hooks = []\n"])
def test_a_hook_file_with_nothing_but_tools_is_good_and_leaves_no_tool_behind(checked, hooks):
    from hookline.tools.registry import REGISTRY

    before = set(REGISTRY.names())
    shine = "@tool\ndef shine(x: int) -> int:\n    'Shine.'\n    return x\n"
    assert checked(f"from hookline import tool\n\n{shine}{hooks}") == []
    assert set(REGISTRY.names()) == before


BAD = [
    (
        "def done(event, cxt): ...\nhooks = [('agent_end', done)]",
        "mine.py:1: mine.done on hook 'agent_end' asks for 'cxt'; its parameters are: event, ctx",
    ),
    (
        "x = 1\nhooks = [('agent_ende', print)]",
        "mine.py:2: entry 1 of `hooks`: unknown hook 'agent_ende'",
    ),
    ("hooks = ['agent_end']", "mine.py:1: entry 1 of `hooks` must be (event_type, handler)"),
    (
        "hooks = {'agent_end': print}",
        "mine.py:1: `hooks` must be a list of (event_type, handler), not dict",
    ),
    (
        "hooks = [('agent_end', 5)]",
        "mine.py:1: entry 1 of `hooks`: the handler must be callable, not 5",
    ),
    ("hooks = [('agent_end', print, {'wen': 1})]", "unknown option 'wen'; did you mean 'when'"),
    (
        "async def prompt(): ...\nhooks = [('system_prompt', prompt)]",
        "mine.py:1: 'system_prompt' is called synchronously: an async function would be skipped",
    ),
    ("def broken(:", "mine.py:1: invalid syntax"),
    ("\nimport nothing_of_this_name", "mine.py:1: ModuleNotFoundError: No module named"),
    ("x = 1", "mine.py: exports no hooks = [(event_type, handler), …] and marks nothing"),
    (
        "from hookline import hookimpl\nclass P:\n  @hookimpl\n  def tool_call(self, evnt): ...",
        "mine.py:3: mine.P.tool_call on hook 'tool_call' asks for 'evnt'",
    ),
    (
        "from hookline import hookimpl\n@hookimpl\ndef sistem_prompt(): ...",
        "mine.py:2: unknown hook 'sistem_prompt'; did you mean 'system_prompt'",
    ),
    (
        "from hookline import hookimpl\n@hookimpl\ndef tool_call(): ...\ndef system_prompt(): ...",
        "mine.py:4: plugin 'plugin' has 'system_prompt', named like a hook but not marked",
    ),
    (
        "from hookline import hookimpl\nclass P:\n  @hookimpl\n  async def register_tools(self): ...",
        "mine.py:3: 'register_tools' is called synchronously",
    ),
]


@pytest.mark.parametrize(("source", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_what_is_wrong_is_told_with_file_and_line(checked, source, message):
    [problem] = checked(source)
    assert problem.startswith(message) or message in problem


def test_every_problem_is_told_not_only_the_first(checked):
    problems = checked(
        """
        def one(evt, cx): ...
        hooks = [("agent_end", one), ("agent_and", one), 7]
        """
    )
    assert len(problems) == 3


def test_siblings_can_be_imported(checked, tmp_path):
    (tmp_path / "beside.py").write_text("def done(event): ...\n")
    assert checked("from .beside import done\nhooks = [('agent_end', done)]") == []


def test_the_command_leaves_with_two_and_says_where(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("hooks = [('agent_ende', print)]\n")
    code = "from hookline.cli import main; main()"
    run = [sys.executable, "-c", code, "hooks", "check"]
    done = subprocess.run([*run, path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{path}:1: entry 1 of `hooks`: unknown hook 'agent_ende'")
    done = subprocess.run([*run, tmp_path / "none.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "none.py" in done.stderr
    assert "Traceback" not in done.stderr
