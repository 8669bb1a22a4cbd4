"""Runs inside a sandbox, before the command: the way from a port there to the proxy outside.

    python -I -S relay.py SOCKET TOKEN PORT COMMAND...

A network namespace has no route. This listens on its loopback, hands every connection to the proxy's
Unix socket, with the token that says whose it is, and then becomes the command. It can do nothing that
the command could not do itself.
"""

import os
import socket
import sys
import threading


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Copy until the source ends."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(server: socket.socket, path: str, token: str) -> None:
    """Hand on every connection."""
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
    server = socket.create_server(("127.0.0.1", int(port)))
    if os.fork() == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):  # a reader of the command's output does not wait for this
            os.dup2(null, number)
        serve(server, path, token)
    server.close()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main()
