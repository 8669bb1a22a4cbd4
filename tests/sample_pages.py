"""The files, settings and sessions that the samples of each page of the documentation need."""

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline.sandbox.sandbox import probe

from . import postgres
from .commandline import environment
from .plugins.site import Site

ROOT = Path(__file__).parents[1]
NEVER = ("pip ", "hookline gateway", "hookline worker", "hookline inspect", "hookline chat", "cd ")
"""Commands that no sample runs here: they serve until they are stopped, or are another program's."""


class Page:
    """The machine of the person whom a page is about."""

    def __init__(
        self,
        hookline: Callable[..., Any],
        home: Path,
        workspace: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.hookline, self.home, self.workspace = hookline, home, workspace
        self.monkeypatch = monkeypatch
        self.env: dict[str, str] = {"COLUMNS": "200"}
        self.skipped: list[str] = []
        self.steps: dict[str, Callable[[], Any]] = {}
        self.shown_as: dict[str, str] = {str(home.parent): "/home/ada"}
        """What a page calls something that has another name here."""
        self.end: Callable[[], Any] = lambda: None

    def environment(self) -> dict[str, str]:
        """The environment of a process of its own."""
        return {**environment(self.home), "HOME": str(self.home.parent), **self.env}

    def skips(self, command: str) -> bool:
        """Whether a sample is not run."""
        ours = re.search(r"(^|\| )hookline ", command)
        return ours is None or command.startswith((*NEVER, *self.skipped))

    def before(self, command: str) -> None:
        """Do what happens between the samples of a page."""
        for start, step in self.steps.items():
            if command.startswith(start):
                step()

    def write(self, path: str, text: str) -> None:
        """Write a file: in the home if it begins with `~`, else in the workspace."""
        at = self.home / path[2:] if path.startswith("~/") else self.workspace / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)

    def script(self, text: str) -> None:
        """Write the script of a model that is the default one."""
        self.write("turns.toml", text)
        self.write("~/config.toml", f'model = "scripted:{self.workspace}/turns.toml"\n')


PAGES: dict[str, Callable[[Page], None]] = {}


def page(name: str):
    """Declare what a page needs."""

    def declare(prepare: Callable[[Page], None]) -> Callable[[Page], None]:
        PAGES[name] = prepare
        return prepare

    return declare


@page("docs/cli.md")
def cli(page: Page) -> None:
    page.write("notes.txt", "milk\nbread\n")
    page.write("turns.toml", block("docs/cli.md", "toml"))
    page.skipped = ["hookline models install"]


@page("docs/chat.md")
def chat(page: Page) -> None:
    page.write("turns.toml", '[[turns]]\ntext = "Hello."\n')
    page.write("~/config.toml", '[policy]\ndefault = "allow"\n')


@page("docs/configuration.md")
def configuration(page: Page) -> None:
    settings = "[limits]\nparallel_tools = 4\ntool_seconds = 120\n"
    page.write("~/config.toml", settings)
    page.write("turns.toml", '[[turns]]\ntext = "ok"\n')
    page.env["HOOKLINE_LIMITS__STEPS"] = "12"
    page.steps = {
        "hookline run": lambda: page.write("~/config.toml", "[limits]\nstesp = 1\n"),
        "hookline --profile": lambda: page.write("~/config.toml", settings),
    }
    page.skipped = ["hookline onboard"]


@page("docs/command-hooks.md")
def command_hooks(page: Page) -> None:
    groups = [{"matcher": matcher, "hooks": []} for matcher in ("Read", "Bash(")]
    (page.home.parent / ".claude").mkdir()
    settings = json.dumps({"hooks": {"PreToolUse": groups}})
    (page.home.parent / ".claude" / "settings.json").write_text(settings)


@page("docs/hook-files.md")
def hook_files(page: Page) -> None:
    at = "~/profiles/default/hooks"
    page.write(f"{at}/a.py", "\n\nhooks = [(\n")
    b = (
        "def f(event): ...\n"
        + "\n" * 4
        + 'hooks = [\n    ("agent_end", f),\n\n    ("agent_ended", f),\n]\n'
    )
    page.write(f"{at}/b.py", b)
    page.write(f"{at}/c.py", 'def f(event, contxt): ...\n\nhooks = [("agent_end", f)]\n')


@page("docs/plugins.md")
def plugins(page: Page) -> None:
    page.script('repeat = true\n[[turns]]\ntext = "Fine, thank you."\n')
    site = Site(page.home.parent / "site")
    page.monkeypatch.syspath_prepend(site.folder)

    def install() -> None:
        """As `pip install -e .` does."""
        made = page.workspace / "hookline-word-count"
        project = tomllib.loads((made / "pyproject.toml").read_text())["project"]
        shutil.copytree(made / "src", site.folder, dirs_exist_ok=True)
        about = site.folder / "hookline_word_count-0.1.0.dist-info"
        about.mkdir()
        metadata = "Metadata-Version: 2.1\nName: hookline-word-count\nVersion: 0.1.0\n"
        (about / "METADATA").write_text(metadata)
        lines = []
        for group, entries in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        page.hookline("plugins", "lock", "--yes")

    def break_one() -> None:
        site.install("polite", manifest="'order': 4000, 'provides': ['tool']")
        site.install("broken", "1 / 0\n")
        page.hookline("plugins", "lock", "--yes")
        page.hookline("plugins", "disable", "polite")

    page.steps = {"hookline run": install, "hookline plugins list": break_one}
    page.skipped = ["hookline plugins verify", "hookline plugins lock"]
    page.write("src/hookline_word_count/plugin.py", MISSPELLED)
    page.write("~/profiles/default/hooks/polite.py", POLITE)


MISSPELLED = """from hookline import hookimpl


class WordCount:
    @hookimpl
    def output(self, evnt):
        return None
"""

POLITE = """def polite():
    return "Say please."


hooks = [("system_prompt", polite)]
"""


@page("docs/trust.md")
def trust(page: Page) -> None:
    page.write(".hookline/hooks/tidy.py", "hooks = []\n")
    page.hookline("trust", "--yes")
    page.write(".hookline/hooks/tidy.py", "hooks = []  # changed\n")
    server = (
        '[mcp.servers.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]\nenv = {KEY = "${TIME_KEY}"}\n'
    )
    page.write(".hookline/config.toml", f'{server}[agents.reviewer]\nmodel = "local"\n')
    page.write(".agents/skills/review/SKILL.md", "---\nname: review\ndescription: Review.\n---\n")
    page.write(".agents/skills/review/scripts/changed.py", "print()\n")


@page("docs/replay.md")
def replay(page: Page) -> None:
    page.write("no_env.py", block("docs/replay.md", "python"))
    page.write(".env", "KEY=1\n")
    page.write("readme.txt", "Read me.\n")
    page.script(turns(("", "read_file", "path", "readme.txt"), ("", "read_file", "path", ".env")))
    for session in ("garden", "kitchen", "cellar"):
        page.hookline("run", "read them", "--session", session)


@page("docs/trace.md")
def trace(page: Page) -> None:
    record_calls(page)


@page("docs/inspector.md")
def inspector(page: Page) -> None:
    record_calls(page)


def record_calls(page: Page) -> None:
    """Record a session in which a hook file denies one call and changes another."""
    (page.workspace / "src").mkdir()
    page.write("~/profiles/default/hooks/house_rules.py", HOUSE_RULES)
    push = ("call_1", "shell", "command", "git push --force")
    page.script(turns(push, ("call_2", "list_files", "path", ".")))
    model = (page.home / "config.toml").read_text()
    page.write("~/config.toml", f'{model}[trace]\nlevel = "full"\n[policy]\ndefault = "allow"\n')
    page.hookline("run", "go", "--session", "garden")


HOUSE_RULES = """from hookline.events import ToolCallEventResult

def no_force(event):
    if "--force" in event.input.get("command", ""):
        return ToolCallEventResult(block=True, reason="no force pushes")

def only_src(event):
    if event.tool_name == "list_files":
        return ToolCallEventResult(input={**event.input, "path": "src"})

hooks = [("tool_call", no_force), ("tool_call", only_src)]
"""


@page("docs/triggers.md")
def triggers(page: Page) -> None:
    page.script('repeat = true\n[[turns]]\ntext = "The report."\n')
    model = (page.home / "config.toml").read_text()
    nightly = block("docs/triggers.md", "toml")
    page.write("~/config.toml", f'{model}{nightly}\n[triggers.orders]\ntype = "queue"\n')


@page("docs/policy.md")
def policy(page: Page) -> None:
    text = (ROOT / "docs" / "policy.md").read_text()
    for name in ("my-pack/pack.toml", "my-pack/rules.cedar", "cases.toml"):
        [content] = re.findall(rf"^```\w+\n((?:#|//) {name}\b.*?)^```", text, re.S | re.M)
        page.write(name, content)
    page.write("~/config.toml", '[policy]\npacks = ["destructive-shell"]\n')
    page.skipped = ["hookline policy explain --session", "hookline policy approvals --"]


@page("docs/postgres.md")
def database(page: Page) -> None:
    name = postgres.new_schema()
    postgres.execute(f"CREATE ROLE {name} LOGIN", f"CREATE DATABASE {name} OWNER {name}")
    page.end = lambda: postgres.execute(f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE {name}")
    page.script('repeat = true\n[[turns]]\ntext = "Hi."\n')
    model = (page.home / "config.toml").read_text()
    url = postgres.url_for(name, database=name)
    page.write("~/config.toml", f'{model}[tape]\nurl = "{url}"\n')
    place = f"postgresql://{name}@{postgres.socket_path().parent}/{name}"
    page.shown_as |= {place: "postgresql://hookline@db.example.com/hookline", name: "hookline"}
    page.skipped = [
        "hookline db migrate --url",
        "hookline db grant",
        "hookline db roles",
        "hookline db copy",
    ]


@page("docs/audit.md")
def audit(page: Page) -> None:
    page.script(turns(("call_1", "list_files", "path", ".")))
    model = (page.home / "config.toml").read_text()
    page.write("~/config.toml", f"{model}[audit]\nenabled = true\n")
    page.hookline("run", "look", "--session", "garden")
    page.skipped = ["hookline audit verify --"]


@page("docs/models.md")
def models(page: Page) -> None:
    page.write("turns.toml", '[[turns]]\ntext = "Hello."\n')
    page.skipped = ["hookline models install", 'hookline run "Read', 'hookline run "What']


@page("docs/sandbox.md")
def sandbox(page: Page) -> None:
    if probe()[0] == "none":
        pytest.skip("no sandbox works here")


def turns(*calls: tuple[str, str, str, str]) -> str:
    """The script of a model that makes tool calls, then answers."""
    made = [
        f'{{ id = "{id_}", name = "{name}", arguments = {{ {field} = "{value}" }} }}'
        for id_, name, field, value in calls
    ]
    return f'[[turns]]\ntool_calls = [{", ".join(made)}]\n[[turns]]\ntext = "Done."\n'


def block(page: str, language: str, number: int = 0) -> str:
    """A fenced block of a page."""
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)[number]
