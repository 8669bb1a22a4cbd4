"""Processes that begin with what they need imported: forks of one that imported it once.

A new interpreter takes longer to import the package than most tests take for the rest. A fork is a
process as any other, with files, an environment, a working directory, a terminal and an end of its own.
Tests of what is imported when, or of a start, take a new interpreter.

python -m tests.forks NUMBER     # forks for whoever holds the other end of the socket with that number
"""

import atexit
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from threading import RLock
from time import monotonic
from types import ModuleType
from typing import IO, Any

ROOT = Path(__file__).parents[1]
LARGEST = 1 << 20
"""Bytes of a request: a program and an environment."""
LONGEST = 120
"""Seconds that what is run to its end may take."""
IMPORTED = (
    "hookline.agent.engine", "hookline.agent.journal", "hookline.agent.steered_messages",
    "hookline.runtime.app",
    "hookline.runtime.builtin", "hookline.cli.chat.builtin", "hookline.cli.chat.screen",
    "hookline.cli.chat.session", "hookline.cli.commands", "hookline.cli.root", "hookline.cli.run",
    "hookline.ext.command_hooks.plugin", "hookline.config", "hookline.events",
    "hookline.ext.mcp.plugin",
    "hookline.models.builtin", "hookline.models.scripted", "hookline.plugins.hook_files",
    "hookline.plugins.watcher", "hookline.policy", "hookline.ext.skills.plugin", "hookline.tape.open",
    "hookline.tape.sqlite.store", "hookline.ext.tools.fetch_url", "hookline.ext.tools.search_files",
    "hookline.ext.tools.shell", "hookline.ext.skills.skills", "hookline.plugins.project", "jsonschema",
    "watchfiles",
)  # fmt: skip
"""What a turn or a chat needs, and imports when it does."""
MAIN = "from hookline.cli import main; main()"
"""`hookline`, as its entry point runs it."""


class Forked:
    """A process that was asked for, as `subprocess.Popen` shows one."""

    def __init__(self, server: "Server", pid: int, ends: Iterable[IO[str] | None] = ()) -> None:
        self._server, self.pid = server, pid
        self.stdin, self.stdout, self.stderr = self._ends = [*ends] or [None] * 3

    def poll(self) -> int | None:
        """Its exit code, where it has ended."""
        while self._server.hear(0):
            pass
        return self._server.ended.get(self.pid)

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code, when it has ended."""
        until = None if seconds is None else monotonic() + seconds
        while self.pid not in self._server.ended:
            if not self._server.hear(0.1) and until is not None and monotonic() > until:
                raise subprocess.TimeoutExpired(f"process {self.pid}", seconds or 0)
        return self._server.ended[self.pid]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    @property
    def returncode(self) -> int | None:
        """Its exit code, where it is known to have ended."""
        return self._server.ended.get(self.pid)

    def communicate(self) -> tuple[str, str]:
        """What it still says until its end, which is little on standard error."""
        with self:
            said = ["" if end is None else end.read() for end in (self.stdout, self.stderr)]
        return said[0], said[1]

    def __enter__(self) -> "Forked":
        return self

    def __exit__(self, *_: object) -> None:
        for end in self._ends:
            if end is not None:
                end.close()
        self.wait()


class Server:
    """The process that forks, seen from the test."""

    def __init__(self) -> None:
        self.ended: dict[int, int] = {}
        self._lock = RLock()
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forks", str(other.fileno())], cwd=ROOT,
                pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._told = b""
        self._begun: int | None = None
        atexit.register(self.close)

    def fork(self, files: Iterable[int], request: Mapping[str, Any]) -> int:
        """Ask for a process with these as its standard input, output and errors."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode() + b"\n"], [*files])
            self._begun = None
            while self._begun is None:
                self.hear(None)
            return self._begun

    def hear(self, seconds: float | None) -> bool:
        """Wait to be told that a process has begun, or that one has ended; False where nothing was."""
        while True:
            with self._lock:  # not while it waits: another thread may ask for a process
                if b"\n" in self._told:
                    self._take()
                    return True
                if select.select([self._socket], [], [], 0)[0]:
                    piece = self._socket.recv(LARGEST)
                    assert piece, "the process that forks has ended"
                    self._told += piece
                    continue
            if not select.select([self._socket], [], [], seconds)[0]:
                return False

    def _take(self) -> None:
        line, _, self._told = self._told.partition(b"\n")
        pid, code = json.loads(line)
        if code is None:
            self._begun = pid
            self.ended.pop(pid, None)  # of another that had the number before
        else:
            self.ended[pid] = code

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()


@cache
def server() -> Server:
    """One for all tests of a process."""
    return Server()


def fork(
    code: str,
    *arguments: object,
    files: Iterable[int],
    ends: Iterable[IO[str] | None] = (),
    env: Mapping[str, str] = os.environ,
    cwd: str | Path = ROOT,
    terminal: bool = False,
    imports: Iterable[str] = (),
) -> Forked:
    """A process that runs code, with arguments in `sys.argv[1:]`.

    With `terminal`, its standard input is one, and the terminal that controls it. `imports` are there
    for this one and for all after it.
    """
    request = {
        "code": code, "argv": [*map(str, arguments)], "env": dict(env), "cwd": str(cwd),
        "terminal": terminal, "imports": [*imports],
    }  # fmt: skip
    return Forked(server(), server().fork(files, request), ends)


def start(
    code: str, *arguments: object, stdin: int, stdout: int, stderr: int, **options: Any
) -> Forked:
    """A process with a pipe at each place of `subprocess.PIPE`, and nothing at `DEVNULL`."""
    files: list[int] = []
    ends: list[IO[str] | None] = []
    for place, wanted in enumerate((stdin, stdout, stderr)):
        if wanted == subprocess.PIPE:
            ours, theirs = os.pipe() if place else os.pipe()[::-1]
            ends.append(os.fdopen(ours, "r" if place else "w", buffering=1, encoding="utf-8"))
        else:
            theirs = os.open(os.devnull, os.O_RDWR)
            ends.append(None)
        files.append(theirs)
    try:
        return fork(code, *arguments, files=files, ends=ends, **options)
    finally:
        for number in files:
            os.close(number)


def run(
    code: str, *arguments: object, stdin: str = "", **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run code in a fork to its end; standard input is a pipe with what fits into one."""
    given, ours = os.pipe()
    with os.fdopen(ours, "wb") as giving:
        giving.write(stdin.encode())
    with (
        os.fdopen(given) as giving,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        files = [file.fileno() for file in (giving, out, err)]
        process = fork(code, *arguments, files=files, **options)
        try:
            status = process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([code, *arguments], status, out.read(), err.read())


# --- the process that forks -----------------------------------------------------------------------


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for every request; returns in each fork with its request, and here with None at the end."""
    awake, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(ring)
    read = b""
    files: list[int] = []
    while True:
        ready = select.select([connection, awake], [], [])[0]
        if awake in ready:
            os.read(awake, 100)
            _tell_of_ended(connection)
        if connection not in ready:
            continue
        piece, given, _, _ = socket.recv_fds(connection, LARGEST, 3)
        if not piece:
            return None
        read += piece
        files += given
        if not read.endswith(b"\n"):
            continue
        request = json.loads(read)
        read = b""
        for name in request["imports"]:
            importlib.import_module(name)
        gc.freeze()  # looking for garbage in what is here would copy it into every fork
        if (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # off in what a shell runs aside
            for number in (connection.detach(), awake, ring):
                os.close(number)
            _settle(files, request)
            return request
        for number in files:
            os.close(number)
        files = []
        connection.sendall(json.dumps([pid, None]).encode() + b"\n")


def _tell_of_ended(connection: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        told = [pid, os.waitstatus_to_exitcode(status)]
        connection.sendall(json.dumps(told).encode() + b"\n")


def _settle(files: list[int], request: dict[str, Any]) -> None:
    """Be a process of its own."""
    if request["terminal"]:
        os.setsid()
    for target, number in enumerate(files):
        os.dup2(number, target)
        os.close(number)
    if request["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # noqa: SIM115
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def _run(request: dict[str, Any]) -> None:
    sys.argv = ["hookline", *request["argv"]]
    sys.path[0] = ""  # as for `python -c`, not the folder of this file
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(request["code"], "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    for each in IMPORTED:
        importlib.import_module(each)
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        _run(asked)
