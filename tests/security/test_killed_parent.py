"""Whatever Hookline starts is gone soon after Hookline is killed, by SIGKILL too."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hookline.sandbox.sandbox import probe

from .. import commandline, forks

MARK = "hookline-survivor"
FOREVER = f"sleep 300; : {MARK}"
STUBBORN = f"trap '' TERM HUP INT; sleep 300; sleep 300; : {MARK}"
HOOK = f'[[hooks.commands.PreToolUse]]\nhooks = [{{type = "command", command = "{FOREVER}"}}]\n'
SERVER = f'[mcp.servers.slow]\ncommand = "sh"\nargs = ["-c", "{FOREVER}"]\n'

Calls = list[tuple[str, dict[str, Any]]]
KINDS: dict[str, tuple[str, Calls, str]] = {
    "a shell command": ("", [("shell", {"command": FOREVER})], MARK),
    "one that ignores signals": ("", [("shell", {"command": STUBBORN})], MARK),
    "a pipeline": ("", [("shell", {"command": f"sh -c '{FOREVER}' | cat"})], MARK),
    "a job": ("", [("shell", {"command": FOREVER, "background": True})], MARK),
    "a command hook": (HOOK, [("read_file", {"path": "file"})], MARK),
    "a server": (SERVER, [], MARK),
    "a search": ("", [("search_files", {"pattern": "(a+)+$"})], "search_worker.py"),
    "a subagent": ("", [("delegate", {"tasks": ["go"]}), ("shell", {"command": FOREVER})], MARK),
}
"""Settings, the calls that the model makes one after the other, and what a command line shows of it.

Voices run in threads, so there is no process of theirs.
"""


def script_of(calls: Calls) -> str:
    turns = [f"Turn(tool_calls=[Call({name!r}, {arguments!r})])" for name, arguments in calls]
    return (
        "from hookline.models.script import Call, Turn\n"
        f"turns = [{', '.join([*turns, 'Turn(wait=600)', 'Turn(wait=600)'])}]\n"
    )


def processes() -> dict[int, tuple[int, str]]:
    """Every process: its parent, and when it began, which tells it from a later one."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(place.name)] = (int(fields[1]), fields[19])
    return found


def below(pid: int) -> dict[int, str]:
    """The descendants of a process, each with when it began."""
    known, found = processes(), {pid: ""}
    grown = True
    while grown:
        more = {
            each: at for each, (parent, at) in known.items() if parent in found and each not in found
        }
        found.update(more)
        grown = bool(more)
    del found[pid]
    return found


def shows(pid: int, mark: str) -> bool:
    """Whether the command line of a process has a mark, and no wrapper around it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return not words[0].endswith(b"bwrap") and any(mark.encode() in word for word in words)


def until(condition, what: str) -> Any:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        if found := condition():
            return found
        time.sleep(0.03)
    raise AssertionError(f"{what} did not happen")


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_child_survives_when_hookline_is_killed(tmp_path, kind, sandbox):
    if sandbox != "none" and probe()[0] != sandbox:
        pytest.skip(f"needs {sandbox}: {probe()[1]}")
    config, calls, mark = KINDS[kind]
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    (work / "file").write_text("a" * 60 + "b\n")
    active = json.dumps(sandbox != "none")
    (home / "config.toml").write_text(
        f'[policy]\ndefault = "allow"\n[sandbox]\nenabled = {active}\n{config}'
    )
    (tmp_path / "script.py").write_text(script_of(calls))
    parent = forks.start(
        forks.MAIN, "run", "go", "--yes", "--model", f"scripted:{tmp_path / 'script.py'}",
        cwd=work, env=commandline.environment(home, HOME=str(tmp_path)),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip

    def started():
        assert parent.poll() is None, parent.communicate()
        family = below(parent.pid)
        return family if any(shows(pid, mark) for pid in family) else None

    with parent:
        try:
            family = until(started, f"the start of {kind}") | below(parent.pid)
        finally:
            parent.kill()

    def gone():
        now = processes()
        return not [pid for pid, began in family.items() if pid in now and now[pid][1] == began]

    until(gone, f"the end of {kind}")
