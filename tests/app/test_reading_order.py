"""CONTRIBUTING describes a turn by eight files, and ten changes by their files: both as they are."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

import hookline
from hookline.hooks import Event, event, notify
from hookline.models.script import Call, Turn
from hookline.tools import tool
from hookline.tools.registry import Registry

SOURCE = Path(hookline.__file__).parent
CONTRIBUTING = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
LAYERS = ("runtime/", "agent/", "tools/", "hooks/", "hookspecs.py")


def section(title):
    return CONTRIBUTING.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def steps():
    """The numbered paragraphs: each file with the functions named for it, in order."""
    found = []
    for paragraph in re.split(r"^\d\. ", section("One turn, eight files"), flags=re.M)[1:]:
        file, *rest = re.findall(r"`([^`\n]+)`", paragraph)
        found.append((file, [name for name in rest if re.fullmatch(r"[A-Z]\w+\.\w+", name)]))
    return found


@pytest.fixture
async def entered(app, scripted):
    """The functions that a warm turn with one tool call enters: (file, qualified name), in order."""

    @tool(side_effects="none", registry=Registry())
    def add(a: int, b: int) -> int:
        return a + b

    app.tools.add(add)
    scripted(Turn(tool_calls=[Call("add", {"a": 1, "b": 2})]), "three", repeat=True)
    calls = []

    def profile(frame, kind, argument):
        path = frame.f_code.co_filename
        if kind == "call" and path.startswith(f"{SOURCE}/"):
            calls.append((path[len(str(SOURCE)) + 1 :], frame.f_code.co_qualname))

    async with app.running():
        await app.process({"content": "x"})
        sys.setprofile(profile)
        try:
            result = await app.process({"content": "x"})
        finally:
            sys.setprofile(None)
    assert result.model_output == "three"
    return calls


async def test_a_turn_enters_the_functions_that_contributing_names_in_their_order(entered):
    files = [file for file, _ in steps()]
    assert len(files) == 8
    first = {}
    for number, call in enumerate(entered):
        first.setdefault(call, number)
    for file, names in steps():
        assert (SOURCE / file).is_file()
        missing = [name for name in names if (file, name) not in first]
        assert not missing, f"{file}: a turn does not enter {missing}"
    begins = [first[file, names[0]] for file, names in steps()[:6]]
    assert begins == sorted(begins), "the files are not in the order in which a turn reaches them"
    assert any(path == "hookspecs.py" for path, _ in entered)


async def test_the_eight_files_hold_the_spine_of_a_turn(entered):
    files = {file for file, _ in steps()}
    own = [path for path, _ in entered if path.startswith(LAYERS)]
    share = sum(path in files for path in own) / len(own)
    assert share > 0.4, f"{share:.0%} of the calls are in the eight files"


def changes():
    rows = [line for line in section("The ten commonest changes").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def test_there_are_ten_changes():
    assert len(changes()) == 10


@pytest.mark.parametrize("change", changes(), ids=lambda change: change[0])
def test_a_change_names_files_and_hooks_that_exist(app, change):
    _, files, plugin = change
    paths = [name for name in re.findall(r"`([^`]+)`", files) if "/" in name or name.endswith(".py")]
    assert paths
    assert [name for name in paths if not (SOURCE / name).exists()] == []
    for name in re.findall(r"`((?:register|provide|resolve)_\w+)`", plugin):
        assert name in app.hooks


async def test_an_event_needs_its_class_and_a_call_site_only(app):
    @event(notify, family="misc", fires="when the bell rings")
    @dataclass
    class BellEvent(Event[None]):
        """The bell rings."""

        type: Literal["bell"] = field(default="bell", init=False)
        times: int = 1

    heard = []
    app.hooks.declare(BellEvent)
    app.hooks.on(BellEvent)(lambda event: heard.append(event.times))
    await app.hooks[BellEvent].fire(BellEvent(times=2), app.context("s"))
    assert heard == [2]
