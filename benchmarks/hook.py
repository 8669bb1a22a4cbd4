"""What an event of another agent costs: the client with a server, without one, and the server's part.

    python benchmarks/hook.py
    python benchmarks/hook.py --rounds 20 --check        # exit code 1 when a threshold is missed
    python benchmarks/hook.py --json result.json

Every row is CPU time, of a process from its start to its end or of the server for one event, so that
other programs on the machine count little. Each round runs every row once, in a new random order.
A client that finds no server starts one, so only the first event after a pause pays for loading a home;
what that costs is the last row, which has no threshold.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress

from hookline.bridges.hosts.desk import HookDesk
from hookline.system import hook_client

JSON = "python -c 'import json'"
CLIENT = "a client, with a server"
COMMAND = "hookline hook --for, with a server"
ALONE = "a client that does the work itself"
GUARD = """
def guard(event):
    if "sudo" in event.input.get("command", ""):
        return event.deny("not as root")


hooks = [("tool_call", guard)] * 3 + [("tool_result", lambda event: None)] * 2
"""


def payload(work: Path, event: str, number: int) -> bytes:
    fields: dict[str, Any] = {
        "session_id": "bench", "cwd": str(work), "hook_event_name": event, "tool_name": "Bash",
        "tool_input": {"command": "ls -la"}, "tool_use_id": f"t{number}",
    }  # fmt: skip
    if event == "PostToolUse":
        fields["tool_response"] = {"stdout": "a\nb\n", "stderr": "", "interrupted": False}
    return json.dumps(fields).encode()


def run(command: list[str], env: dict[str, str], stdin: bytes) -> float:
    """The seconds of CPU that a process takes."""
    with tempfile.TemporaryFile() as body:
        body.write(stdin)
        body.seek(0)
        process = subprocess.Popen(command, stdin=body, stdout=subprocess.DEVNULL, env=env)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime


async def served(home: Path, work: Path, events: int) -> list[float]:
    """The seconds of CPU that a server takes for each event, in the middle of a conversation."""
    desk, spent = HookDesk(home), []
    for number in range(events + 20):
        for event in ("PreToolUse", "PostToolUse"):
            body = payload(work, event, number).replace(b'"bench"', b'"warm"')
            started = time.process_time()
            output = await desk.answer("claude-code", body, 60)
            if number >= 20:
                spent.append(time.process_time() - started)
            assert output.code == 0, output
    await desk.close()
    return spent


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--events", type=int, default=200)
    options.add_argument("--json", type=Path)
    options.add_argument("--check", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="hookline-bench-") as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        hooks = home / "profiles" / "default" / "hooks"
        hooks.mkdir(parents=True)
        home.chmod(0o700)
        work.mkdir()
        (hooks / "guard.py").write_text(GUARD)
        env = {**os.environ, "HOOKLINE_HOME": str(home)}
        rows = measured(given.rounds, env, work)
        seconds = asyncio.run(served(home, work, given.events))
    cpu = {name: statistics.median(times) for name, times in rows.items()}
    about = environment(["hookline"], given.rounds)
    print_environment(about)
    for name, each in cpu.items():
        print(f"{name:40} {each * 1000:8.1f} ms CPU  {each / cpu[JSON]:5.2f} x")
    warm = statistics.median(seconds)
    print(f"{'the server, one event':40} {warm * 1000:8.2f} ms CPU")
    limit = 1.5 * cpu[JSON] + 0.06
    checks = [
        *(
            Check(f"{name}: 1.5 x import json, and 60 ms", cpu[name] * 1000, limit * 1000, unit="ms")
            for name in (CLIENT, COMMAND)
        ),
        Check("the server, for one event", warm * 1000, 5, unit="ms"),
    ]
    if given.json:
        found = {"environment": about, "cpu": cpu, "server": warm}
        given.json.write_text(json.dumps(found, indent=2))
    passed = print_outcomes(checks)
    return 0 if passed or not given.check else 1


def measured(rounds: int, env: dict[str, str], work: Path) -> dict[str, list[float]]:
    client = [sys.executable, "-I", "-S", hook_client.__file__, "claude-code"]
    rows: dict[str, list[str]] = {
        JSON: [sys.executable, "-c", "import json"],
        CLIENT: client,
        COMMAND: [str(Path(sys.executable).with_name("hookline")), "hook", "--for", "claude-code"],
    }
    found: dict[str, list[float]] = {name: [] for name in [*rows, ALONE]}
    run(client, env, payload(work, "PreToolUse", 0))  # starts the server
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for name in random.sample([*rows], len(rows)):
            found[name].append(run(rows[name], env, payload(work, "PreToolUse", number + 1)))
    subprocess.run([sys.executable, "-m", "hookline", "hook", "stop"], env=env, check=True)
    time.sleep(1)
    for number in range(max(rounds // 3, 3)):
        body = payload(work, "PreToolUse", 1000 + number)
        found[ALONE].append(run([*client, "--alone"], env, body))
    return found


if __name__ == "__main__":
    sys.exit(main())
