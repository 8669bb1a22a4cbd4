# ruff: noqa: E501 -- tables
"""A hostile repository: whatever command is given in it, nothing of it runs and nothing leaks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.cli.root import declared
from hookline.runtime.app import Hookline

from .. import commandline
from .hostile import SCREEN, SECRET, WIDTH, Endpoint, Place
from .watched import watching

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def endpoints():
    """Two addresses: the user's model and the attacker's."""
    own, evil = Endpoint(), Endpoint()
    yield own, evil
    own.close()
    evil.close()


@pytest.fixture
def place(tmp_path, endpoints):
    return Place(tmp_path, *endpoints)


@pytest.fixture
def run(place, monkeypatch, capsys):
    """Runs a command in the repository, and looks at all that it does."""
    return runner(place, monkeypatch, capsys)


def runner(place, monkeypatch, capsys, folder=None):
    here = commandline.here(place.home, folder or place.folder, monkeypatch, capsys)

    def watched(*words):
        with watching(place.watch) as found:
            done = here(*words, **place.environ)
        said = done.stdout + done.stderr
        assert found == [], (words, said)
        assert done.returncode in (0, 1, 2), (words, said)
        place.check(said)
        return done

    return watched


# --- every command --------------------------------------------------------------------------------

SESSION = "s1"
COMMANDS: dict[str, list[str]] = {
    "run": [
        "hello",
        "--resume",
        "--continue hello",
        "--json hello",
        "--raw hello",
        "@AGENTS.md",
        "@.env",
        "@out/etc/passwd",
    ],
    "chat": [""],
    "gateway": ["--print-token", "--rotate-token"],
    "worker": [""],
    "inspect": ["--help"],
    "doctor": ["", "--json", "--coverage"],
    "sandbox": ["-- true", "-- cat .env", "--profile read-only -- true"],
    "onboard": ["--yes --model openai-compatible:mine"],
    "trust": ["", "--full", "--list", "--revoke", "out", ".agents", "loop"],
    "why": [SESSION, f"{SESSION} prompt", "../evil", f"{SESSION} --json"],
    "replay": [SESSION, f"{SESSION} --json", "evil"],
    "backtest": ["", "--all-sessions", "--json", "--jobs 2"],
    "bench": ["--turns 1 --json"],
    "config show": ["", "--json", "hooks", "mcp", "agents"],
    "config set": ["thinking low", "--project thinking low"],
    "config get": ["model", "hooks", "mcp.servers.files", "agents.reviewer.instructions"],
    "config unset": ["thinking", "--project thinking"],
    "config path": [""],
    "hooks show": ["", "tool_call", "tool_call --source", "--json", "--markdown", "--turn"],
    "hooks check": [
        ".hookline/hooks/evil.py",
        ".hookline/hooks/pipe.py",
        ".hookline/hooks/passwd.py",
        ".hookline/hooks",
        "loop",
    ],
    "hooks stats": ["", "--json"],
    "plugins list": ["", "--json"],
    "plugins show": ["builtin", "evil", "project/evil.py"],
    "plugins enable": ["evil"],
    "plugins disable": ["evil"],
    "plugins verify": ["", "evil"],
    "plugins lock": ["", "--yes"],
    "plugins new": ["out", "pip", "../above"],
    "models": [""],
    "models list": [""],
    "models install": [],  # fetches a package; `test_children` starts it from a hostile folder
    "sessions": [""],
    "tape list": [""],
    "tape show": [SESSION, f"{SESSION} --json", "evil"],
    "tape search": ["hello", "*", '"'],
    "tape export": ["/dev/stdout", f"/dev/stdout --session-id {SESSION}"],
    "tape import": ["AGENTS.md", "out", "loop"],
    "db status": [""],
    "db migrate": [""],
    "db roles": ["--sql", ""],
    "db grant": ["x"],
    "db revoke": ["x"],
    "db verify": [""],
    "db copy": ["sqlite:evil.py sqlite:x"],
    "policy check": ["", "pack", ".", "out"],
    "policy test": ["pack/pack.toml", "AGENTS.md", "loop"],
    "policy explain": ["shell", 'shell {"command":"ls"}'],
    "policy approvals": ["", "--json"],
    "triggers list": [""],
    "triggers fire": ["evil"],
    "triggers enqueue": ["evil {}"],
    "triggers dead": ["evil"],
    "audit show": ["", "--json"],
    "audit verify": ["", "--key evil.py"],
    "mcp list": ["", "--json"],
    "mcp tools": ["", "files", "evil"],
    "mcp check": ["", "files", "web", "evil"],
    "voice say": ["hello {marks}/../tmp/said.wav"],
    "voice hear": ["AGENTS.md", "loop"],
    "eval": ["AGENTS.md", "missing.toml", "loop"],
    "hook": ["--help"],  # an event would start a server, which tests/hosts does
    "hook install": ["--for claude-code --project", "--for pi"],
    "hook uninstall": ["--for claude-code --project"],
    "hook status": [""],
    "hook serve": ["--help"],
    "hook stop": [""],
    "proxy": ["--print-token", "--help"],
}
"""Arguments for each command, as words; `{marks}` is a folder outside of the repository."""


def leaves(command, name=""):
    """The names of all commands that the command line has."""
    command = declared(command)
    if hasattr(command, "commands"):
        for each in command.commands:
            yield from leaves(command.commands[each], f"{name} {each}".strip())
        if command.invoke_without_command and name:
            yield name
    else:
        yield name


def test_every_command_is_attacked(tmp_path):
    import typer

    app = Hookline(home=tmp_path / "home", workspace=tmp_path)
    app.load_hooks(packages=False)
    assert set(leaves(typer.main.get_command(app.create_cli_app()))) == COMMANDS.keys()


def tree(*folders: Path) -> dict[str, tuple[int, int]]:
    """Every file below some folders, as it is now."""
    found = {}
    for folder in folders:
        for parent, below, names in os.walk(folder):
            for name in (*below, *names):
                about = os.lstat(f"{parent}/{name}")
                found[f"{parent}/{name}"] = (about.st_mtime_ns, about.st_size, about.st_mode)
    return found


WRITERS = ("config set", "config unset", "plugins new", "sandbox")
"""Commands that are asked to write into the folder, or hold places in it for the time being."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_leaves_the_repository_alone(place, run, command):
    before = tree(place.user, *(() if command in WRITERS else (place.folder,)))
    if command in WRITERS:
        place.watch.allow(
            place.folder,
            Path(f"/tmp/hookline-{os.getuid()}"),
            Path("/sys/fs/cgroup"),
            place.folder.parent / "above",
        )
    for text in COMMANDS[command]:
        words = [word.format(marks=place.marks) if "{marks}" in word else word for word in text.split()]
        run(*command.split(), *words)
    assert tree(*(() if command in WRITERS else (place.folder,)), place.user) == before


def test_run_without_a_terminal_says_one_line_and_runs_nothing(place, run):
    done = run("run", "hello")
    assert (done.returncode, done.stdout) == (0, "Fine.\n")
    (line,) = [line for line in done.stderr.splitlines() if "hookline trust" in line]
    assert re.fullmatch(r"hookline: \d+ things of this project are inert, .*`hookline trust`.*", line)
    assert len(place.own.requests) == 1
    assert b'"model":"mine"' in place.own.requests[0].replace(b" ", b"")


def test_a_new_interpreter_imports_nothing_of_the_folder(place):
    done = subprocess.run(
        [sys.executable, "-m", "hookline", "run", "hello"], cwd=place.folder, env=place.environ,
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    marks = {path.name for path in place.marks.iterdir()}
    for path in place.marks.iterdir():
        path.unlink()
    # what `python -m` itself imports from the current folder comes before any line of ours
    assert marks <= {"module-hookline"}
    place.check(done.stdout + done.stderr)


def test_doctor_describes_it_in_a_few_lines(run):
    done = run("doctor")
    about = [line for line in done.stdout.splitlines() if re.match(r"--  (trust|config)", line)]
    assert 3 <= len(about) <= SCREEN


def test_trust_shows_it_on_one_screen_and_trusts_nothing_unasked(place, run):
    done = run("trust")
    assert done.returncode == 2
    lines = [*done.stdout.splitlines(), "the question"]
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) < WIDTH
    assert ".hookline/config.toml" in done.stdout
    assert ".claude/settings.json" in done.stdout
    assert not (place.home / "trust.json").exists()


@pytest.mark.parametrize("command", ["chat", "run", "gateway"])
def test_on_a_terminal_a_person_sees_it_first_and_declines_once(place, command):
    child = place.spawn(*(("run", "hello") if command == "run" else (command,)))
    child.expect_exact("This is not all of it. Show everything before you decide? [y/N]")
    notice = child.before
    lines = notice.splitlines()
    assert len(lines) + 1 <= SCREEN
    assert max(map(len, lines)) < WIDTH
    assert place.own.requests == []
    assert [*place.marks.iterdir()] == []
    child.sendline("n")
    child.expect_exact("It stays inert.")
    if command == "chat":
        child.expect_exact("/help shows the commands")
        child.send("hello\r")
        child.expect_exact("Fine.")
        child.expect_exact("> ")
        child.send("/exit\r")
    elif command == "gateway":
        child.expect_exact("the gateway is at http://127.0.0.1")
        child.sendintr()
    said = notice + child.rest()
    child.close()
    assert "inert, because not trusted" not in said
    assert len(place.own.requests) == (command != "gateway")
    place.check(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said))


def test_trusted_it_still_cannot_take_the_users_keys_and_endpoints(run):
    assert run("trust", "--yes").returncode == 0
    settings = json.loads(run("config", "show", "--json").stdout)["settings"]
    theirs = str(Path(".hookline", "config.toml"))
    of_project = {name for name, about in settings.items() if about["source"].endswith(theirs)}
    assert {name.partition(".")[0] for name in of_project} <= {
        "agents", "hooks", "limits", "mcp", "session", "skills", "stores", "thinking", "tts", "plugins",
        "policy",
    }  # fmt: skip
    assert not any(name.startswith("agents") and name.endswith("model") for name in of_project)


# --- files that a command is asked to run or to write ----------------------------------------------


@pytest.mark.parametrize(
    "words", [("hooks", "check"), ("backtest", "--plugin"), ("replay", "s1", "--plugin")], ids=" ".join
)
@pytest.mark.parametrize("name", ["evil.py", "other.py", "link.py", "deep/er.py"])
def test_a_hook_file_of_the_project_is_not_even_run_to_look_at_it(place, run, words, name):
    hooks = place.folder / ".hookline" / "hooks"
    (hooks / "pipe.py").unlink()  # which stops a reader of the folder
    (hooks / "passwd.py").unlink()
    (hooks / "deep").mkdir()
    (hooks / "deep" / "er.py").write_text((hooks / "evil.py").read_text())
    (hooks / "other.py").write_text("from . import evil\nhooks = []\n")
    (place.folder / "link.py").symlink_to(hooks / "evil.py")
    run(*words, "link.py" if name == "link.py" else f".hookline/hooks/{name}")


@pytest.mark.parametrize("link", [".hookline", ".hookline/config.toml"])
@pytest.mark.parametrize("target", ["{user}/.ssh", "{home}", "{user}/new", "/etc", "../.."])
def test_a_setting_for_the_project_is_not_written_by_a_link_out_of_it(place, run, link, target):
    target = Path(target.format(user=place.user, home=place.home))
    path = place.folder / link
    if link == ".hookline":
        path.rename(place.folder / "moved")
    else:
        path.unlink()
        target /= "config.toml"
    path.symlink_to(target)
    before = tree(place.user, place.home)
    assert run("config", "set", "--project", "thinking", "low").returncode == 2
    assert run("config", "unset", "--project", "thinking").returncode == 2
    kept = {name: about for name, about in tree(place.user, place.home).items() if name in before}
    assert kept == before


# --- folders of every shape -------------------------------------------------------------------------

NAMES = [
    "a\nb", "a\x1b]0;owned\x07b", "a\x1b[2Jb", "\u202egnp", "a\u200bb", "$(touch x)", "`touch x`", "a'b\"c", "-rf",
    "%s%n{0}{{}}", "a b", "[bold]x[/]", "a\tb\r", "~", "ä", "*", "x" * 200, "a;b", "--help", "a\\b", "\udcff",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_the_name_of_a_folder_plays_no_tricks(tmp_path, endpoints, name, monkeypatch, capsys):
    place = Place(tmp_path, *endpoints, name=name)
    run = runner(place, monkeypatch, capsys)
    for words in (("trust",), ("run", "hello")):
        run(*words)


def above(place):
    """The repository is within another project, which is trusted."""
    outer = place.folder.parent
    (outer / ".hookline").mkdir()
    (outer / ".hookline" / "config.toml").write_text('[agents.x]\ninstructions = "x"\n')
    return outer, place.folder


def below(place):
    """A trusted project is within the repository, which the command is given in."""
    inner = place.folder / "inner"
    (inner / ".hookline").mkdir(parents=True)
    (inner / ".hookline" / "config.toml").write_text('[agents.x]\ninstructions = "x"\n')
    return inner, place.folder


def same_bytes(place):
    """A trusted project has the same files, at another place."""
    from shutil import copytree

    other = place.folder.parent / "copy"
    copytree(place.folder, other, symlinks=True, ignore=lambda *_: ["pipe.py"])
    return other, place.folder


def by_link(place):
    """The folder is entered by a link from a trusted project."""
    outer, _ = above(place)
    (outer / "within").symlink_to(place.folder)
    return outer, outer / "within"


@pytest.mark.parametrize("shape", [above, below, same_bytes, by_link], ids=lambda shape: shape.__name__)
def test_the_trust_in_another_project_does_not_extend_to_it(place, monkeypatch, capsys, shape):
    trusted, folder = shape(place)
    assert runner(place, monkeypatch, capsys, trusted)("trust", "--yes").returncode == 0
    run = runner(place, monkeypatch, capsys, folder)
    for words in (("run", "hello"), ("mcp", "check"), ("trust",)):
        run(*words)


def test_the_home_of_the_user_is_no_better_a_place(place, monkeypatch, capsys):
    place.environ["HOME"] = str(place.folder)
    (place.folder / ".claude").rename(place.folder / "not-the-users-own")
    (place.folder / ".ssh").mkdir()
    (place.folder / ".ssh" / "id_ed25519").write_text(SECRET)
    (place.folder / "AGENTS.md").unlink()
    (place.folder / "AGENTS.md").symlink_to(".ssh/id_ed25519")
    run = runner(place, monkeypatch, capsys)
    for words in (("run", "hello"), ("doctor",), ("trust",), ("mcp", "list")):
        run(*words)


# --- special files ----------------------------------------------------------------------------------


def huge(path):
    with path.open("wb") as file:
        file.truncate(20_000_000_000)


def chain(path):
    for number in range(60):
        (path.parent / f"{path.name}.{number}").symlink_to(f"{path.name}.{number + 1}")
    path.symlink_to(f"{path.name}.0")


def deep_folder(path):
    (path / "/".join("d" * 200)).mkdir(parents=True)


SPECIAL = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "a deep folder": deep_folder,
    "huge": huge,
    "a loop": lambda path: path.symlink_to(path.name),
    "a long chain": chain,
    "zeros": lambda path: path.symlink_to("/dev/zero"),
    "the terminal": lambda path: path.symlink_to("/dev/tty"),
    "the input": lambda path: path.symlink_to("/dev/stdin"),
    "memory": lambda path: path.symlink_to("/proc/self/mem"),
    "environment": lambda path: path.symlink_to("/proc/self/environ"),
    "the root": lambda path: path.symlink_to("/"),
    "above": lambda path: path.symlink_to(".."),
    "nothing": lambda path: path.symlink_to("/nowhere/at/all"),
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "NUL": lambda path: path.write_bytes(b"\0" * 4000),
    "nesting": lambda path: path.write_text("[" * 200_000),
    "braces": lambda path: path.write_text('{"hooks":' * 50_000),
    "dots": lambda path: path.write_text("a" + ".a" * 200_000 + " = 1"),
    "one line": lambda path: path.write_text("a = '" + "x" * 900_000 + "'"),
}
FOLDERS = (
    ".hookline",
    ".claude",
    ".agents",
    ".git",
    ".mcp.json",
    "AGENTS.md",
    ".env",
    "pyproject.toml",
)
FILES = (
    ".hookline/config.toml", ".hookline/hooks/a.py", ".hookline/hooks/b", ".claude/settings.json", ".claude/settings.local.json",
    ".agents/skills/x/SKILL.md", ".agents/skills/y", ".git/HEAD", ".git/config", ".git/commondir", "AGENTS.md",
)  # fmt: skip


@pytest.mark.parametrize("names", [FOLDERS, FILES], ids=["in the place of folders", "in folders"])
@pytest.mark.parametrize("kind", SPECIAL)
def test_a_special_file_neither_hangs_nor_breaks_a_command(place, monkeypatch, capsys, kind, names):
    folder = place.folder.parent / "special"
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        SPECIAL[kind](path)
    run = runner(place, monkeypatch, capsys, folder)
    for words in (("run", "hello"), ("trust",)):
        run(*words)


# --- between the question and the start ---------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [".hookline/hooks/evil.py", ".hookline/config.toml", ".claude/settings.json", "hooks/check"]
)
def test_what_changes_while_the_question_is_open_is_not_trusted(tmp_path, endpoints, name):
    place = Place(tmp_path, *endpoints)
    folder = place.folder = tmp_path / "work"
    harmless = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "hooks/check"}]}]}}
    for path, text in {
        ".hookline/hooks/evil.py": "hooks = []\n",
        ".hookline/config.toml": '[agents.x]\ninstructions = "x"\n',
        ".claude/settings.json": json.dumps(harmless),
        "hooks/check": "#!/bin/sh\n:\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        (folder / path).chmod(0o755)
    child = place.spawn("run", "hello")
    child.expect_exact("Trust it? What is trusted runs with your rights. [y/N]: ")
    mark = place.marks / "ran"
    harmless["hooks"]["SessionStart"][0]["hooks"][0]["command"] = f"touch {mark}"
    (folder / name).write_text({
        ".hookline/hooks/evil.py": f"open({str(mark)!r}, 'w')\nhooks = []\n",
        ".hookline/config.toml": f'[mcp.servers.x]\ncommand = "touch"\nargs = ["{mark}"]\n',
        ".claude/settings.json": json.dumps(harmless),
        "hooks/check": f"#!/bin/sh\ntouch {mark}\n",
    }[name])  # fmt: skip
    child.sendline("y")
    said = child.rest()
    child.close()
    assert "Fine." in said
    place.check(said)
