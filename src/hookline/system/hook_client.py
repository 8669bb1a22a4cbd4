"""The command that other agents run for each of their events: as small as a Python program can be.

    python -I -S hook_client.py claude-code < event.json

It passes the event to the server of the home (`hookline hook serve`), starts one if none runs, and
does the work itself if that fails. It imports next to nothing, since starting it is most of what a call
costs. Whatever goes wrong ends with exit code 2, which every host takes for a no.
"""

from __future__ import annotations

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

end = getattr(posix, "_exit")  # noqa: B009
"""Ends the process at once."""
BLOCKED = 2
ELSEWHERE = 3
"""What a server answers that cannot speak for this environment."""
LIMIT = 570.0
"""Seconds that a call may take, less than hosts are told to wait."""
STARTING = 20.0
"""Seconds to wait for a server that was just started."""


def main(arguments: list[str]) -> int:
    """Answer one event; return the exit code."""
    try:
        host, options = arguments[0], arguments[1:]
        body = read_all(0)
        limit = float(options[options.index("--limit") + 1]) if "--limit" in options else LIMIT
        answer = None
        if "--alone" not in options:
            answer = ask_server(host, body, limit)
        if answer is None:
            answer = alone(host, body, limit)
        code, out, err = answer
        write_all(1, out)
        write_all(2, err)
        return code
    except BaseException as error:  # also an interrupt, or no memory
        said = str(error) or type(error).__name__
        try:
            write_all(2, f"hookline: {said}\n".encode("utf-8", "replace"))
        finally:
            return BLOCKED  # noqa: B012


def home() -> bytes:
    """The home, as `hookline.system.home` finds it."""
    given = posix.environ.get(b"HOOKLINE_HOME")
    if given and not given.startswith(b"~"):
        return given
    user = posix.environ.get(b"HOME")
    if not user:
        raise RuntimeError("HOME is not set, so that there is no home of Hookline")
    return user + given[1:] if given else user + b"/.hookline"


def ask_server(host: str, body: bytes, limit: float) -> tuple[int, bytes, bytes] | None:
    """The server's answer; None if there is no server, or it cannot speak for this environment."""
    import _socket
    import time

    ends = time.monotonic() + limit
    path = home() + b"/hook/socket"
    server = connect(_socket, path)
    if server is None:
        if not start_server():
            return None
        last = min(ends, time.monotonic() + STARTING)
        while server is None and time.monotonic() < last:
            time.sleep(0.02)
            server = connect(_socket, path)
        if server is None:
            return None
    try:
        return exchange(server, host, body, limit, max(ends - time.monotonic(), 0.1))
    finally:
        server.close()


def exchange(
    server: Any, host: str, body: bytes, limit: float, seconds: float
) -> tuple[int, bytes, bytes] | None:
    """Send an event to a server and read all of its answer."""
    server.settimeout(seconds)
    settings = [name + b"=" + value for name, value in posix.environ.items() if is_setting(name)]
    project = posix.environ.get(b"CLAUDE_PROJECT_DIR", b"")
    header = b"\0".join([host.encode(), str(limit).encode(), project, *sorted(settings)])
    try:
        server.sendall(b"%d %d\n" % (len(header), len(body)) + header + body)
        answer = b""
        while piece := server.recv(1 << 16):
            answer += piece
    except TimeoutError:
        raise RuntimeError(f"the server did not answer within {limit:g} s") from None
    except OSError as error:
        raise RuntimeError(f"the server broke off: {error.strerror}") from None
    line, _, rest = answer.partition(b"\n")
    numbers = line.split(b" ")
    if len(numbers) != 3 or len(rest) != int(numbers[1]) + int(numbers[2]):
        raise RuntimeError("the server broke off in the middle of its answer")
    code, size = int(numbers[0]), int(numbers[1])
    return None if code == ELSEWHERE else (code, rest[:size], rest[size:])


def is_setting(name: bytes) -> bool:
    """Whether a variable may change what the hooks of a home decide."""
    return name.startswith(b"HOOKLINE_") and name != b"HOOKLINE_HOME"


def connect(sockets: Any, path: bytes) -> Any:
    """A connection to the user's own server, or None."""
    found = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    try:
        found.connect(path)
    except OSError:
        found.close()
        return None
    if hasattr(sockets, "SO_PEERCRED"):
        about = found.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12)
        owner = int.from_bytes(about[4:8], sys.byteorder)
        if owner != posix.geteuid():
            raise RuntimeError(
                f"the server at {path.decode('utf-8', 'replace')} is another user's ({owner})"
            )
    return found


def start_server() -> bool:
    """Start a server that outlives this process; return whether that could be tried."""
    command = [sys.executable, "-I", __file__, "serve"]
    child = posix.fork()
    if child:
        _, status = posix.waitpid(child, 0)
        return status == 0
    try:  # in the child: its own child belongs to no terminal and holds no pipe of the host
        posix.setsid()
        nothing = posix.open("/dev/null", posix.O_RDWR)
        for standard in (0, 1, 2):
            posix.dup2(nothing, standard)
        if posix.fork():
            end(0)
        posix.chdir("/")
        posix.execv(sys.executable, command)
    finally:
        end(1)
    return False


def alone(host: str, body: bytes, limit: float) -> tuple[int, bytes, bytes]:
    """Do the work in this process."""
    import gc

    gc.disable()  # loaded modules stay: searching them for garbage only costs time
    reach_packages()
    from importlib import import_module

    return import_module("hookline.bridges.hosts.desk").alone(host, body, limit)


def serve() -> None:
    """Be the server that a client started."""
    reach_packages()
    from importlib import import_module

    import_module("hookline.bridges.hosts.server").serve()


def reach_packages() -> None:
    """Make Hookline and what it needs importable; this process may have started without `site`."""
    if "site" not in sys.modules:
        import site

        site.main()
    source = __file__.rpartition("/hookline/")[0]
    here = __file__.rpartition("/")[0]
    sys.path[:] = [path for path in sys.path if path != here]
    if source and source not in sys.path:
        sys.path.append(source)


def read_all(source: int) -> bytes:
    """Everything from a descriptor."""
    pieces: list[bytes] = []
    while piece := posix.read(source, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def write_all(target: int, data: bytes) -> None:
    """Write everything to a descriptor."""
    while data:
        data = data[posix.write(target, data) :]


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        end(main(sys.argv[1:]))  # nothing is left to clean up, and that takes time
