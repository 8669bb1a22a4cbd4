"""Real shells in a sandbox: what they execute, as the programs themselves record it.

Every program on the PATH is a stub that appends its name and arguments to a log, or a real wrapper such
as `env`. Hundreds of command lines run in one start of the sandbox.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

SHELLS = {"bash": "/bin/bash", "dash": "/bin/dash"}
STUBS = "git rm cat cp ls tar a b c d mark reboot push grep dd chmod tee sort make foo bar".split()
REAL = "env nice nohup timeout xargs find sh bash setsid stdbuf".split()

STUB = """#!/bin/sh
printf '%s\\037' "${0##*/}" "$@" '\036' >>"$HOOKLINE_LOG"
"""

DRIVER = """
import json, os, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
folder, shells = sys.argv[1], json.loads(sys.argv[2])
def run(numbered):
    number, command = numbered
    ran = {}
    for name, path in shells.items():
        log = f"/tmp/log-{number}-{name}"
        place = f"/tmp/place-{number}-{name}"
        os.makedirs(place + "/sub")
        for file in ("f.txt", ".env", "sub/g.txt"):
            open(f"{place}/{file}", "w").write("one two\\n")
        env = {"PATH": folder + "/bin", "HOOKLINE_LOG": log, "HOME": place, "LC_ALL": "C.UTF-8"}
        try:
            subprocess.run([path, "-c", command], cwd=place, env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=3)
        except (subprocess.TimeoutExpired, ValueError, UnicodeEncodeError):
            pass
        text = open(log, errors="replace").read() if os.path.exists(log) else ""
        ran[name] = [entry.split("\\037")[:-1] for entry in text.split("\\036\\037")[:-1]]
    return ran
with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(run, enumerate(json.load(open(folder + "/commands.json")))))
json.dump(found, sys.stdout)
"""


def available() -> str | None:
    """Why real shells cannot be run here; None if they can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    if not Path(SHELLS["bash"]).exists():
        return "bash is not installed"
    try:
        done = subprocess.run(
            ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "/bin/true"],
            capture_output=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    return None if done.returncode == 0 else f"bubblewrap does not start: {done.stderr.decode()}"


def executed(commands: list[str], folder: Path) -> list[dict[str, list[list[str]]]]:
    """For each command line, the programs with their arguments that each shell executed."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (folder / "stub").write_text(STUB)
    (folder / "stub").chmod(0o755)
    for name in STUBS:
        if not (programs / name).exists():
            (programs / name).symlink_to("../stub")
    for name in REAL:
        real = shutil.which(name)
        if real and not (programs / name).exists():
            (programs / name).symlink_to(real)
    (folder / "driver.py").write_text(DRIVER)
    (folder / "commands.json").write_text(json.dumps(commands))
    shells = {name: path for name, path in SHELLS.items() if Path(path).exists()}
    seen = "/run/shells"
    sandbox = [
        "bwrap", "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "--dev", "/dev",
        "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run", "--ro-bind", str(folder), seen,
        "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",
    ]  # fmt: skip
    python = Path(sys.base_prefix) / "bin" / "python3"
    run = [*sandbox, str(python if python.exists() else sys.executable), "-S"]
    done = subprocess.run(
        [*run, f"{seen}/driver.py", seen, json.dumps(shells)],
        capture_output=True,
        timeout=600,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
