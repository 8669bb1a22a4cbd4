"""A new plugin: a complete package that passes its own tests, as a starting point."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from string import Template
from tempfile import mkdtemp

from hookline.errors import PluginError

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def new_plugin(name: str, folder: Path | None = None, *, version: str = "0.1.0") -> Path:
    """Write a package `hookline-NAME` into a folder, which must not be there yet."""
    if len(name) > 60 or not NAME.fullmatch(name):
        raise PluginError(
            f"{name!r} is no name for a plugin: write small letters, digits and single hyphens, "
            "beginning with a letter, such as word-count"
        )
    name = name.removeprefix("hookline-")
    module = f"hookline_{name.replace('-', '_')}"
    if name in ("builtin", "skills"):
        raise PluginError(f"the name {name!r} is taken by a plugin that comes with Hookline")
    short = name.replace("-", "_")
    if keyword.iskeyword(short) or module in sys.stdlib_module_names:
        raise PluginError(f"{name!r} means something in Python already; choose another name")
    target = (folder or Path(f"hookline-{name}")).absolute()
    if target.exists() or target.is_symlink():
        raise PluginError(f"{target} is there already; name a folder that is not")
    words = {"name": name, "module": module, "tool": short, "version": version}
    words["title"] = "".join(part.capitalize() for part in name.split("-"))
    _write(target, {Template(p).substitute(words): Template(t).substitute(words) for p, t in FILES})
    return target


def _write(target: Path, files: dict[str, str]) -> None:
    """Write all files or none: they are written to a temporary folder and moved in one step."""
    from shutil import rmtree

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise PluginError(f"cannot write {target}: {error.strerror}") from None
    try:
        for name, text in files.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        part.chmod(0o755)
        part.rename(target)
    except OSError as error:
        rmtree(part, ignore_errors=True)
        raise PluginError(f"cannot write {target}: {error.strerror}") from None


PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "hookline-$name"
version = "$version"
description = "A plugin for Hookline."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["hookline"]

[project.optional-dependencies]
test = ["pytest>=8.2"]

[project.entry-points."hookline"]
$name = "$module.plugin:$title"

[project.entry-points."hookline.manifest"]
$name = "$module.manifest:manifest"

[tool.hatch.build.targets.wheel]
packages = ["src/$module"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

MANIFEST = '''\
"""What Hookline reads before it imports the plugin; so import nothing here."""


def manifest() -> dict[str, object]:
    """Describe the plugin: see `hookline.specs.PluginManifest` for every field."""
    return {
        "name": "$name",
        "version": "$version",
        "api_version": "1",
        "namespaces": ["$tool"],
        "provides": ["tool"],
    }
'''

PLUGIN = '''\
"""The plugin: one hook and one tool, to be changed into what you want."""

from hookline import hookimpl
from hookline.events import OutputEvent, OutputEventResult
from hookline.tools import Registry, tool

SIGNATURE = "(seen by $name)"


class $title:
    """Signs every answer, and brings a tool that counts words."""

    @hookimpl
    def output(self, event: OutputEvent) -> OutputEventResult | None:
        """Sign the whole answer, before it goes out."""
        if event.content.endswith(SIGNATURE):
            return None
        return OutputEventResult(content=f"{event.content} {SIGNATURE}")

    @hookimpl
    def register_tools(self) -> list[object]:
        """Bring the tool."""
        return [count_words]


@tool(namespace="$tool", side_effects="none", registry=Registry())
def count_words(text: str) -> int:
    """Count the words of a text.

    Args:
        text: What to count in.
    """
    return len(text.split())
'''

TESTS = '''\
"""Tests of the plugin: `pytest` runs them; the fixtures come with Hookline."""

import asyncio

from hookline.events import OutputEvent
from hookline.models import Call, Turn
from hookline.testing import decisions

from $module.manifest import manifest
from $module.plugin import SIGNATURE, $title


def test_the_manifest_is_right():
    from hookline.specs import PluginManifest

    assert PluginManifest(**manifest()).name == "$name"


def test_an_answer_is_signed_once(fire):
    verdict = fire(OutputEvent(content="Hello."), at=$title())
    assert verdict.event.content == f"Hello. {SIGNATURE}"
    assert fire(verdict.event, at=$title()).event.content == f"Hello. {SIGNATURE}"


@decisions([{"event": "output", "content": "Hello.", "decision": "allow"}])
def test_it_decides(row, fire):
    row.check(fire, at=$title())


def test_the_agent_uses_the_tool_and_the_answer_is_signed(app, scripted, changes):
    app.hooks.add($title(), name="$name")
    model = scripted(Turn(tool_calls=[Call("$tool.count_words", {"text": "one two"})]), "Two words.")

    async def turn():
        async with app.running():
            return await app.process({"content": "How many words?"})

    assert asyncio.run(turn()).model_output == f"Two words. {SIGNATURE}"
    assert model.requests[1].messages[-1]["content"] == "2"
    assert [str(change) for change in changes.by("$name")] == ["$name rewrote output: content"]
'''

README = """\
# hookline-$name

A plugin for Hookline.

    pip install -e '.[test]'      # into the environment that Hookline is in
    pytest                        # its tests
    hookline plugins show $name
    hookline hooks output         # shows that it is attached
    hookline hooks check src/$module/plugin.py

`src/$module/plugin.py` is the plugin. `src/$module/manifest.py` says what it is; Hookline reads that
before it imports anything else of the package.
"""

FILES = (
    ("pyproject.toml", PYPROJECT),
    ("README.md", README),
    ("src/$module/__init__.py", '"""A plugin for Hookline."""\n'),
    ("src/$module/manifest.py", MANIFEST),
    ("src/$module/plugin.py", PLUGIN),
    ("tests/test_plugin.py", TESTS),
)
"""Each file's path and text, in which the names of the new plugin are filled in."""
