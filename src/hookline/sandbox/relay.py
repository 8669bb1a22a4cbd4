"""Runs inside a sandbox, before the command: the way from a port there to the proxy outside.

    python -I -S relay.py SOCKET TOKEN PORT COMMAND...

A network namespace has no route. This listens on its loopback, hands every connection to the proxy's
Unix socket, with the token that says whose it is, and then becomes the command. It can do nothing that
the command could not do itself.

Every start of a command waits for this one, so it imports `socket` and `threading`, which take as long
as Python itself, only once there is a connection.
"""

import _socket
import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    import socket
    from typing import Any


def pump(source: "socket.socket", sink: "socket.socket") -> None:
    """Copy until the source ends."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    try:
        sink.shutdown(_socket.SHUT_WR)
    except OSError:
        pass


def serve(number: int, path: str, token: str) -> None:
    """Hand on every connection."""
    import socket
    import threading

    server = socket.socket(fileno=number)
    while True:
        client, _ = server.accept()
        proxy = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            proxy.connect(path)
            proxy.sendall(f"{token}\n".encode())
        except OSError:
            client.close()
            continue
        for pair in ((client, proxy), (proxy, client)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


def main() -> None:
    """Listen, leave the serving to a child, and become the command."""
    path, token, port, *command = sys.argv[1:]
    server = _socket.socket()
    server.bind(("127.0.0.1", int(port)))
    server.listen()
    if os.fork() == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):  # a reader of the command's output does not wait for this
            os.dup2(null, number)
        import select

        select.select([server], [], [])
        serve(server.detach(), path, token)
    server.close()
    signals: Any = __import__("_signal")  # `signal` itself takes as long as `socket`
    for number in (signals.SIGPIPE, signals.SIGXFSZ):  # Python ignores them, and the command would
        signals.signal(number, signals.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main()
