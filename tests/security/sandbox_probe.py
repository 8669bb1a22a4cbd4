"""Runs inside a sandbox: tries what it is told to, and prints what came of each attempt as JSON.

Each attempt is an expression. It escapes if it is true; it is held if it is false or raises.
"""
# The attempts name paths as texts.
# ruff: noqa: PTH109, PTH110, PTH115, PTH123, PTH208, PTH211

from __future__ import annotations

import ctypes
import glob
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

SECRET = "t0p-s3cret"


def read(path: str) -> bool:
    """Whether a secret can be read at a path."""
    with open(path, "rb") as file:
        return SECRET.encode() in file.read()


def fd_read(path: str) -> bool:
    """The same, starting from a descriptor of the root."""
    root = os.open("/", os.O_RDONLY)
    file = os.open(path.lstrip("/"), os.O_RDONLY, dir_fd=root)
    return SECRET.encode() in os.read(file, 4096)


def sh(command: str) -> str:
    """What a shell command prints."""
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, timeout=20, check=False)
    return done.stdout.decode(errors="replace")


def shown(command: str) -> bool:
    """Whether a command prints the secret."""
    return SECRET in sh(command)


def works(command: str) -> bool:
    """Whether a command succeeds."""
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, timeout=20).returncode == 0


def write(path: str, text: str = "x") -> bool:
    """Whether a file can be written; the test looks outside as well."""
    with open(path, "a") as file:
        file.write(text)
    return True


def linked(target: str, name: str) -> bool:
    """Whether a new symbolic link reaches a secret."""
    Path(name).unlink(missing_ok=True)
    os.symlink(target, name)
    return read(name)


def hard_linked(target: str, name: str) -> bool:
    """Whether a new hard link reaches a secret."""
    os.link(target, name)
    return read(name)


def connects(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> bool:
    """Whether something answers at an address."""
    with socket.socket(family, kind) as each:
        each.settimeout(2)
        each.connect(address)
    return True


def sends(address: Any, family: int = socket.AF_INET) -> bool:
    """Whether a datagram can be sent."""
    with socket.socket(family, socket.SOCK_DGRAM) as each:
        each.settimeout(2)
        each.sendto(b"x", address)
    return True


def opens(family: int, kind: int, protocol: int = 0) -> bool:
    """Whether a kind of socket exists."""
    socket.socket(family, kind, protocol).close()
    return True


def system_call(number: int, *arguments: Any) -> bool:
    """Whether a system call succeeds."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(ctypes.c_long(number), *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def alive(pid: int) -> bool:
    """Whether a process can be signalled."""
    os.kill(pid, 0)
    return True


def processes() -> list[int]:
    """The processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def status(name: str) -> str:
    """A field of this process's status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    return ""


def chdir_read(folder: str, name: str) -> bool:
    """Whether a secret can be read after changing into its folder."""
    here = os.getcwd()
    try:
        os.chdir(folder)
        return read(name)
    finally:
        os.chdir(here)


def inherited(base: str) -> bool:
    """Whether a descriptor leads to a file below a folder, or to a socket."""
    found = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd") if int(name) > 2]
    return any(os.readlink(each).startswith((base, "socket")) for each in found if os.path.exists(each))


def lists(folder: str, name: str) -> bool:
    """Whether a folder shows a name."""
    return name in os.listdir(folder)


def main() -> None:
    """Read the attempts from standard input, and print the results."""
    tried: dict[str, list[Any]] = {}
    names = {**globals()}
    for name, code in json.load(sys.stdin).items():
        try:
            escaped = bool(eval(code, names))
            tried[name] = [escaped, "it worked" if escaped else "no"]
        except BaseException as error:
            tried[name] = [False, "".join(traceback.format_exception_only(error)).strip()]
    json.dump(tried, sys.stdout)
    sys.stdout.flush()


_USED = (glob, resource, shutil, signal)

if __name__ == "__main__":
    main()
