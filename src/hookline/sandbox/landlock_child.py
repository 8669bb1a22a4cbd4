"""Confines itself with Landlock and seccomp, and becomes a command; a parent sees to its end.

python -I landlock_child.py SPEC COMMAND...
"""

import ctypes
import json
import os
import platform
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import sandlock  # pyright: ignore[reportMissingTypeStubs]

from hookline.sandbox import seccomp

_PDEATHSIG, _SUBREAPER, _SECCOMP, _FILTER = 1, 36, 22, 2
_LIMITS = {
    "memory": resource.RLIMIT_DATA,
    "processes": resource.RLIMIT_NPROC,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu_seconds": resource.RLIMIT_CPU,
    "file_size": resource.RLIMIT_FSIZE,
}
_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def confine(spec: dict[str, Any]) -> None:
    """Confine this process, for good."""
    for name, value in spec["limits"].items():
        if name != "processes":  # counted over everything that the user runs
            resource.setrlimit(_LIMITS[name], (value, value))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    read = [path for path in spec["read"] if Path(path).exists()]
    write = [path for path in spec["write"] if Path(path).exists()]
    sandlock.confine(sandlock.Sandbox(fs_readable=read, fs_writable=write))
    families = (1, 2, 10, 16) if spec["network"] else ()
    code = seccomp.program(platform.machine(), families)
    if code is None:
        raise OSError(f"system calls cannot be filtered on {platform.machine()}")
    program = _Program(len(code) // 8, code)
    if _libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def _variables(file: int | None) -> dict[bytes, bytes]:
    """The environment of the command, as the file has it."""
    if file is None:
        return dict(os.environb)
    with os.fdopen(file, "rb") as opened:
        pairs = (each.partition(b"=") for each in opened.read().split(b"\0")[:-1])
        return {name: value for name, _, value in pairs}


def end_all() -> None:
    """End everything that the command left behind."""
    while True:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        for pid in children.split():
            os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def main() -> None:
    """Start the command in a confined child, wait for it, and leave nothing of it."""
    spec, command = json.loads(sys.argv[1]), sys.argv[2:]
    _libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        _libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        try:
            variables = _variables(spec["variables"])
            confine(spec)
            os.closerange(3, 1 << 16)
            os.execvpe(command[0], command, variables)
        except (OSError, sandlock.SandlockError) as error:
            print(f"{command[0]}: {error}", file=sys.stderr)
            os._exit(126)

    def stop(number: int, frame: object) -> None:
        end_all()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    _, status = os.waitpid(child, 0)
    end_all()
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
