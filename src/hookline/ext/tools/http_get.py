"""One HTTP GET on a pinned address, within a time and a size, that can be given up at any moment."""

from __future__ import annotations

import http.client
import socket
import ssl
import zlib
from dataclasses import dataclass
from threading import Lock
from urllib.parse import SplitResult, quote

from hookline.errors import ToolError

from .addresses import Reachable

_CHUNK = 1 << 16
_HEADERS = {
    "User-Agent": "hookline",
    "Accept": "text/html, text/plain, text/markdown, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}


@dataclass(slots=True)
class HttpAnswer:
    """A server's response."""

    status: int
    reason: str
    headers: http.client.HTTPMessage
    body: bytes
    complete: bool


class Getting:
    """A GET in a thread. `give_up` ends it from another, whatever it is waiting for."""

    def __init__(self, reachable: Reachable, seconds: float, size: int) -> None:
        self._reachable = reachable
        self._seconds = seconds
        self._size = size
        self._socket: socket.socket | None = None
        self._given_up = False
        self._lock = Lock()

    def give_up(self) -> None:
        """Close the connection; the thread waiting for it gets an error."""
        with self._lock:
            self._given_up = True
            if self._socket is not None:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is not connected

    def get(self, url: SplitResult) -> HttpAnswer:
        """Send the request and read the answer, up to the size."""
        host = url.hostname or ""
        port = url.port or (443 if url.scheme == "https" else 80)
        connection = http.client.HTTPConnection(host, port)
        try:
            connection.sock = self._connect(host, port, secure=url.scheme == "https")
            path = quote(url.path or "/", safe="/%:@!$&'()*+,;=~-._")
            query = quote(url.query, safe="/%:@!$&'()*+,;=~-._?[]")
            where = url.netloc.encode("idna").decode() if not url.netloc.isascii() else url.netloc
            connection.request(
                "GET", f"{path}?{query}" if query else path, headers={"Host": where, **_HEADERS}
            )
            with connection.getresponse() as response:
                body, complete = self._read(response)
            return HttpAnswer(response.status, response.reason, response.headers, body, complete)
        except (OSError, http.client.HTTPException, zlib.error, UnicodeError) as error:
            raise ToolError(f"{url.geturl()} cannot be fetched: {_why(error)}") from error
        finally:
            connection.close()

    def _connect(self, host: str, port: int, *, secure: bool) -> socket.socket:
        """Connect to the address that was judged, not to whatever the name says next."""
        failed: OSError | None = None
        for address in self._reachable.resolve(host, port):
            try:
                made = socket.create_connection((address, port), timeout=self._seconds)
                break
            except OSError as error:
                failed = error
        else:
            raise failed or OSError("no address")
        with self._lock:
            self._socket = made
            if self._given_up:
                made.close()
                raise OSError("given up")
        if secure:
            try:
                made = ssl.create_default_context().wrap_socket(made, server_hostname=host)
            except BaseException:
                made.close()
                raise
            with self._lock:
                self._socket = made
        return made

    def _read(self, response: http.client.HTTPResponse) -> tuple[bytes, bool]:
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in {"identity", "", "gzip", "x-gzip", "deflate"}:
            raise ToolError(f"the server sent {coding} encoding, which cannot be read")
        unpack = None if coding in {"identity", ""} else zlib.decompressobj(wbits=47)
        out = bytearray()
        while len(out) <= self._size and (chunk := response.read1(_CHUNK)):
            # never more than there is room for: a small file may unpack to a huge one
            out += unpack.decompress(chunk, self._size + 1 - len(out)) if unpack else chunk
        if len(out) <= self._size and response.length:
            raise http.client.IncompleteRead(bytes(out[:100]), response.length)
        return bytes(out[: self._size]), len(out) <= self._size


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if isinstance(error, http.client.IncompleteRead):
        return "the answer was cut off"
    text = (error.strerror if isinstance(error, OSError) else "") or str(error)
    return f"{text or type(error).__name__}"
