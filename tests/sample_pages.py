"""The files, settings and sessions that the samples of each page of the documentation need."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hookline.policy.approvals import Approvals
from hookline.sandbox.sandbox import probe

from . import postgres
from .commandline import environment
from .mcp.conftest import python, table
from .plugins.site import Site

ROOT = Path(__file__).parents[1]
NOT_RUN = {
    (
        "README.md",
        ".venv/bin/hookline run",
    ): "installs packages; .ci/run does that",
    ("docs/cli.md", "hookline models install"): "downloads the weights of the local model",
    ("docs/models.md", "hookline models install"): "downloads the weights of the local model",
    ("docs/configuration.md", "hookline onboard"): "asks a provider on the network",
    ("docs/proxy.md", "hookline proxy"): "serves until it is ended; tests/model_proxy does that",
    ("docs/telegram.md", "hookline gateway"): "logs in to Telegram over the network",
}
"""The samples that no test runs, by page and by how they begin, with the reason."""


def why_not(page: str, command: str) -> str | None:
    """Return the reason why a sample is not run, if there is one."""
    return next((NOT_RUN[at, start] for at, start in NOT_RUN if at == page and start in command), None)


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
        self.typed: dict[str, Callable[[], str]] = {}
        """What stands for an id or a hash in a sample, and what the person types in its place."""
        self.answers: dict[str, str] = {}
        """What the person answers, by how the command begins."""
        self.steps: dict[str, Callable[[], Any]] = {}
        self.shown_as: dict[str, str] = {str(home.parent): "/home/ada"}
        """What a page calls something that has another name here."""
        self.end: Callable[[], Any] = lambda: None
        self.psql: Callable[[str], Any] = lambda text: None

    def environment(self) -> dict[str, str]:
        """The environment of a process of its own."""
        return {**environment(self.home), "HOME": str(self.home.parent), **self.env}

    def before(self, command: str) -> str:
        """Do what happens between the samples of a page; return the command as it is typed."""
        for start, step in self.steps.items():
            if command.startswith(start):
                step()
        for shown, typed in self.typed.items():
            if shown in command:
                command = command.replace(shown, typed())
        return command

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
        for name in ("polite", "telegram"):
            page.hookline("plugins", "disable", name)

    def update_mail() -> None:
        """Another version of the only package, after it was pinned."""
        shutil.rmtree(site.folder)
        (page.home / "plugins.lock").unlink()
        install_mail(site.folder, "1.2", needed="1.0", hooks=["output"], entries=["mail"])
        page.hookline("plugins", "lock", "--yes")
        shutil.rmtree(site.folder)
        hooks = ["output", "tool_call"]
        install_mail(site.folder, "1.3", needed="1.1", hooks=hooks, entries=["mail", "outbox"])

    page.answers = {"hookline plugins lock": "y\n"}
    page.steps = {
        "hookline run": install,
        "hookline plugins list": break_one,
        "hookline plugins verify": update_mail,
    }
    page.write("src/hookline_word_count/plugin.py", MISSPELLED)
    page.write("~/profiles/default/hooks/polite.py", POLITE)


def install_mail(
    folder: Path, version: str, *, needed: str, hooks: list[str], entries: list[str]
) -> None:
    """Install a version of `hookline-mail` and what it needs, with nothing else beside them."""
    package = folder / "hookline_mail"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    lines = [f"@hookimpl\ndef {hook}(event):\n    return None\n" for hook in hooks]
    (package / "plugin.py").write_text("\n\n".join(["from hookline import hookimpl", *lines]))
    (package / "outbox.py").write_text("")
    about = {"hookline-mail": (version, "Requires-Dist: smtplib2\n"), "smtplib2": (needed, "")}
    for name, (number, more) in about.items():
        info = folder / f"{name.replace('-', '_')}-{number}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n{more}"
        (info / "METADATA").write_text(text)
    modules = {"mail": "plugin", "outbox": "outbox"}
    points = "".join(f"{name} = hookline_mail.{modules[name]}\n" for name in entries)
    info = folder / f"hookline_mail-{version}.dist-info"
    (info / "entry_points.txt").write_text(f"[hookline]\n{points}")


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


@page("docs/evals.md")
def evals(page: Page) -> None:
    page.write("cases.toml", block("docs/evals.md", "toml"))
    page.write("no_env.py", block("docs/replay.md", "python"))
    page.write(".env", "KEY=1\n")
    usage = "usage = { input_tokens = 9, output_tokens = 3, cost = 0.0001 }"
    answer = f'repeat = true\n[[turns]]\nmatch = "France"\ntext = "Paris."\n{usage}\n'
    page.script(answer + turns(("", "read_file", "path", ".env")))


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
    page.write("turns.toml", turns(("call_1", "shell", "command", "ls")))
    script = f"scripted:{page.workspace}/turns.toml"
    page.hookline("run", "look", "--session", "garden", "--model", script)
    page.typed = {"ask_1f0c…": partial(ask, page), "ap_77b2…": partial(granted, page)}


def ask(page: Page) -> str:
    """Ask a question, as an agent does; return its id."""
    with closing(Approvals(page.home / "approvals.db")) as approvals:
        return approvals.ask(
            {
                "tool": "shell",
                "arguments": {"command": "make"},
                "session_id": "garden",
                "lineage": ["garden"],
                "call_id": "call_9",
                "workspace": str(page.workspace),
                "question": "run make?",
            }
        )


def granted(page: Page) -> str:
    """Return the id of what was allowed."""
    return re.findall(r"ap_\w+", page.hookline("policy", "approvals").stdout)[0]


@page("docs/postgres.md")
def postgres_page(page: Page) -> None:
    name = database(page)
    model = (page.home / "config.toml").read_text().partition("[tape]")[0]
    roles = ("hookline_owner", "hookline_app")
    drop = page.end

    def begin_anew() -> None:
        postgres.execute(f"DROP DATABASE {name} WITH (FORCE)", f"CREATE DATABASE {name}")
        (page.home / "home-id").unlink()
        page.write("~/config.toml", f'{model}[tape]\nurl = "{address("hookline_app")}"\n')

    def address(role: str) -> str:
        return postgres.url_for(role, database=name)

    def keep_two_sessions() -> None:
        settings = (page.home / "config.toml").read_text()
        page.write("~/config.toml", model)
        for session in ("garden", "reports"):
            page.hookline("run", "hello", "--session", session)
        page.write("~/config.toml", settings)

    def end() -> None:
        drop()
        postgres.execute(*(f"DROP ROLE IF EXISTS {role}" for role in roles))

    page.end = end
    page.psql = lambda text: psql(text, name)
    owner = "postgresql://hookline_owner@db.example.com/hookline"
    page.typed = {owner: lambda: address("hookline_owner")}
    page.steps = {"hookline db roles --sql": begin_anew, "hookline db copy sqlite": keep_two_sessions}


def database(page: Page) -> str:
    """Give the home a database of its own; return the name, which is that of its owner, too."""
    name = postgres.new_schema()
    postgres.execute(f"CREATE ROLE {name} LOGIN", f"CREATE DATABASE {name} OWNER {name}")
    page.end = lambda: postgres.execute(f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE {name}")
    page.script('repeat = true\n[[turns]]\ntext = "Hi."\n')
    model = (page.home / "config.toml").read_text()
    url = postgres.url_for(name, database=name)
    page.write("~/config.toml", f'{model}[tape]\nurl = "{url}"\n')
    place = f"postgresql://{name}@{postgres.socket_path().parent}/{name}"
    page.shown_as |= {place: "postgresql://hookline@db.example.com/hookline", name: "hookline"}
    return name


def psql(text: str, database: str) -> None:
    """Run SQL as an administrator, without its questions for passwords."""
    statements = "\n".join(line for line in text.splitlines() if not line.startswith("\\"))
    with psycopg.connect(
        postgres.url_for("postgres", database=database), autocommit=True
    ) as connection:
        connection.execute(statements)


@page("docs/audit.md")
def audit(page: Page) -> None:
    page.script(turns(("call_1", "list_files", "path", ".")))
    model = (page.home / "config.toml").read_text()
    key = page.home.parent / "audit_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    shutil.copy(f"{key}.pub", page.workspace)
    witness = page.home.parent / "audit.heads"
    signed = f'enabled = true\nkey = "{key}"\nwitness = "{witness}"\n'
    page.write("~/config.toml", f"{model}[audit]\n{signed}")
    page.hookline("run", "look", "--session", "garden")
    head = (page.home / "audit" / "audit.head").read_text().split()[1]
    page.typed = {"9f3a…": lambda: head, "/mnt/worm/audit.heads": lambda: str(witness)}


@page("docs/models.md")
def models(page: Page) -> None:
    page.write("turns.toml", '[[turns]]\ntext = "Hello."\n')
    page.write("notes.txt", "milk\n")
    call = '{ name = "read_file", arguments = { path = "notes.txt", end = 10 } }'
    said = '{"name": "read_file", "arguments": {"path": "notes.txt", "end": 10}}'
    page.write("local.toml", f"[[turns]]\ntool_calls = [{call}]\n[[turns]]\ntext = '{said}'\n")
    page.steps = {
        'hookline run "Read': lambda: page.write(
            "~/config.toml", f'model = "scripted:{page.workspace}/local.toml"\n'
        )
    }


@page("docs/sandbox.md")
def sandbox(page: Page) -> None:
    if probe()[0] == "none":
        pytest.skip("no sandbox works here")


@page("docs/kernel.md")
def kernel(page: Page) -> None:
    page.shown_as[f"{ROOT}/src/"] = ""


@page("docs/web-page.md")
@page("docs/gateway.md")
def gateway(page: Page) -> None:
    page.script('repeat = true\n[[turns]]\ntext = "Hello."\n')
    page.env["HOOKLINE_GATEWAY__PORT"] = "0"
    page.shown_as = {f"scripted:{page.workspace}/turns.toml": "local", **page.shown_as}


@page("docs/workers.md")
def workers(page: Page) -> None:
    database(page)
    page.env |= {"HOOKLINE_GATEWAY__PORT": "0", "HOOKLINE_TAPE__HOME": "team"}
    page.hookline("db", "migrate", **page.env)


@page("docs/mcp.md")
def mcp(page: Page) -> None:
    servers = {
        "time": python("-m", "mcp_server_time", "--local-timezone=UTC"),
        "tickets": {
            "url": "https://tickets.example.com",
            "headers": {"Authorization": "${TICKETS_KEY}"},
        },
    }
    page.write("~/config.toml", "".join(table(name, **given) for name, given in servers.items()))
    page.env["HOOKLINE_SANDBOX__ENABLED"] = "false"


@page("docs/voice.md")
def voice(page: Page) -> None:
    pass


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
