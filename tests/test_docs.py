"""Every Python example in the documentation runs, and settings and links hold."""

import importlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.config import problems
from hookline.config.schema import (
    HooksSettings,
    LimitsSettings,
    PluginsSettings,
    StreamingSettings,
)
from hookline.config.sections import SCALARS
from hookline.hookspecs import CATALOG
from hookline.runtime.app import Hookline
from hookline.tape import KINDS
from hookline.types import HookContext

from . import forks
from .openai_server import OpenAIServer, obliging

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").glob("*.md")) if p.name != "hooks.md")]
FOLDERS = "src/hookline|tests|docs|examples|scripts|benchmarks"
FOREIGN = {
    "BubFramework", "InMemoryRunner", "LimitNOFILE", "MailSettings", "RunContext", "SkipToolExecution",
    "ToolManager", "UsageLimits",
}  # fmt: skip
"""Names of other programs, and of examples, that the pages mention."""
EXAMPLES = [
    pytest.param(source, id=f"{page.name}-{number}")
    for page in PAGES
    for number, source in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S), start=1)
]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Variables with which `openai:` models are asked on this machine."""
    with OpenAIServer([obliging]) as server:
        yield {**os.environ, **server.environment}


@pytest.mark.parametrize("source", EXAMPLES)
def test_the_example_runs(source, environment):
    if "agent.serve(" in source:
        serves(source.replace("port=8765", "port=0"), environment)
        return
    done = forks.run(source, env=environment)
    assert done.returncode == 0, done.stderr


def serves(source: str, environment: dict[str, str]) -> None:
    """Start a program that serves, wait until it says where, and end it."""
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    process = forks.start(source, stdin=nothing, stdout=nothing, stderr=pipe, env=environment)
    with process:
        assert process.stderr is not None
        assert "http://127.0.0.1" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@cache
def known_sections() -> list[str]:
    """The sections that Hookline and the plugins that ship with it declare."""
    app = Hookline(home=Path("/nonexistent"), workspace=Path("/nonexistent"), project=False)
    app.load_hooks(packages=False)
    return app.config.known()


def settings() -> list[Any]:
    """The TOML blocks that are settings, not scripts, manifests or tables of cases."""
    sections = {*known_sections()}
    return [
        pytest.param(text, id=f"{page.name}-{number}")
        for page in PAGES
        for number, text in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(), re.S), start=1)
        if set(tomllib.loads(text)) <= sections
    ]


@pytest.mark.parametrize("text", settings())
def test_the_settings_are_accepted(text, tmp_path, monkeypatch):
    for name in re.findall(r"\$\{(\w+)\}", text):
        monkeypatch.setenv(name, "a-long-enough-value-for-a-secret")
    (tmp_path / "config.toml").write_text(text)
    app = Hookline(home=tmp_path, workspace=tmp_path, project=False)
    app.load_hooks(packages=False)
    assert [each for each in problems(app) if "no plugin 'mail' is loaded" not in each] == []


def named_settings() -> set[tuple[str, str]]:
    """The settings in the text of the pages: `[limits] steps` and `limits.steps = 10`."""
    sections = "|".join(name for name in known_sections() if name not in SCALARS)
    key = rf"`(?:\[({sections})\] ([a-z_]+)(?: = [^`]*)?|({sections})\.([a-z_]+) = [^`]*)`"
    found = [re.findall(key, prose(page)) for page in PAGES]
    return {(a or c, b or d) for each in found for a, b, c, d in each}


def test_every_setting_in_the_text_exists(tmp_path):
    tmp_path.chmod(0o700)
    unknown = []
    for section, key in sorted(named_settings()):
        (tmp_path / "config.toml").write_text(f"[{section}]\n{key} = 1\n")
        app = Hookline(home=tmp_path, workspace=tmp_path, project=False)
        app.load_hooks(packages=False)
        unknown += [each for each in problems(app) if "unknown" in each]
    assert unknown == []


def test_every_variable_of_the_environment_in_the_text_is_read():
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = {name for page in PAGES for name in re.findall(r"HOOKLINE_[A-Z_]+[A-Z]", page.read_text())}
    sections = {
        name.partition("__")[0].removeprefix("HOOKLINE_").lower() for name in named if "__" in name
    }
    assert sections <= {*known_sections()}
    settings = {f"HOOKLINE_{name.upper()}" for name in SCALARS}
    assert [n for n in sorted(named - settings) if "__" not in n and n not in source] == []


def test_every_class_and_file_in_the_text_exists():
    words = {
        word
        for folder, kinds in (("src", "*"), ("tests", "*.py"), ("benchmarks", "*.py"))
        for path in (ROOT / folder).rglob(kinds)
        if path.is_file() and path.suffix in (".py", ".js", ".html", ".cedarschema")
        for word in re.findall(r"\w+", path.read_text())
    }
    missing = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]:
        for span in re.findall(r"`([^`\n]+)`", prose(page)):
            classes = re.findall(r"\b[A-Z][a-z]+[A-Z]\w+\b", span)
            missing += [(page.name, word) for word in classes if word not in words | FOREIGN]
            for path in re.findall(
                r"^(?:src/hookline|tests|docs|examples|scripts|benchmarks)/[\w./-]+", span
            ):
                missing += [(page.name, path)] if not (ROOT / path).exists() else []
    assert missing == []


def test_every_hook_in_the_text_exists():
    families = {name.partition(":")[0] for name in CATALOG if ":" in name}
    named = rf"`((?:{'|'.join(families)}):[a-z_]+)`"
    wrong = {name for page in PAGES for name in re.findall(named, prose(page)) if name not in CATALOG}
    assert wrong - {"channel:chat_id"} == set()


def test_every_logger_is_named_after_a_module():
    found = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r'getLogger\("(hookline[\w.]*)"\)', path.read_text())
    }
    assert [name for name in sorted(found) if importlib.util.find_spec(name) is None] == []


def prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.S)


def test_the_page_on_configuration_names_every_section():
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert [name for name in known_sections() if not re.search(rf"`\[?{name}[`.\]]", page)] == []


def test_the_page_on_the_tape_names_every_kind_of_entry():
    page = (ROOT / "docs" / "tape.md").read_text()
    assert [kind for kind in sorted(KINDS) if f"`{kind}`" not in page] == []


def test_the_page_on_configuration_names_every_key_of_the_sections_that_it_describes():
    page = (ROOT / "docs" / "configuration.md").read_text()
    models = {"limits": LimitsSettings, "plugins": PluginsSettings, "streaming": StreamingSettings}
    for section, model in {**models, "hooks": HooksSettings}.items():
        [row] = re.findall(rf"^\| `\[{section}\]` \|(.*)$", page, re.M)[:1]
        assert [key for key in model.model_fields if f"`{key}`" not in row] == [], section


def test_the_page_on_tools_names_every_builtin_tool_and_argument(app):
    page = (ROOT / "docs" / "tools.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) ?\|", page, re.M))
    for tool in app.tools:
        for argument in tool.spec.input_schema.get("properties", {}):
            assert f"`{argument}`" in rows[tool.name], f"{tool.name} {argument}"


def test_the_readme_example_prints_the_verdict():
    source = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "DENY not as root __main__.no_sudo\n"


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What a link to a page can name: its headings, and anchors of its own."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings)
    return {*slugs, *re.findall(r'<a id="([^"]+)"', text)}


def names() -> list[Any]:
    """The names of our modules, of the app and of contexts in the text of each page."""
    pattern = r"`(?:await )?((?:app|ctx|hookline)(?:\.[a-zA-Z_]\w*)+)[^`\n]*`"
    found = []
    for page in PAGES:
        found += [pytest.param(set(re.findall(pattern, prose(page))), id=page.name)]
    return found


@pytest.mark.parametrize("found", names())
def test_every_name_in_the_text_exists(found, app):
    missing = [name for name in found if not exists(name.split("."), app)]
    assert [
        each
        for each in missing
        if each not in ("hookline.manifest", "hookline.factory", "hookline.bridges.langchain")
    ] == []


def exists(path: list[str], app: Hookline) -> bool:
    """Whether attributes lead from the app, a context or a module of ours to something."""
    value: Any = {"app": app, "ctx": HookContext()}.get(path[0])
    rest = path[1:]
    if value is None:
        module = path
        while not _importable(module):
            module = module[:-1]
        value, rest = importlib.import_module(".".join(module)), path[len(module) :]
    for name in rest:
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True


def _importable(path: list[str]) -> bool:
    try:
        return bool(importlib.import_module(".".join(path)))
    except ImportError:
        return False


def test_the_navigation_of_the_site_names_every_page():
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = sorted((ROOT / "docs").glob("*.md"))
    assert [page.name for page in pages if f" {page.name}\n" not in navigation] == []
