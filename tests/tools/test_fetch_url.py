"""Fetching from a real server on loopback, which is refused unless somebody allowed it."""

import asyncio
import gzip
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address

import pytest

from hookline.ext.tools import builtin_tools
from hookline.ext.tools.addresses import Reachable
from hookline.ext.tools.fetch_url import fetch_tool
from hookline.tools import Registry, ToolArgumentError, ToolError

from ..tables import each_row

default = Registry(builtin_tools()).get("fetch_url")
fetch = fetch_tool(allow=["127.0.0.1/32"], largest=100_000)

PAGE = b"""<!doctype html><html><head><title>Shop</title><style>p {}</style></head><body>
<h1>Lamps</h1><script>alert("<p>no</p>")</script><p>Two   <b>good</b>
ones: <a href="/red">red</a>, blue.</p><ul><li>one<li>two</ul><pre>a
  b</pre><table><tr><td>x<td>y</tr></table>&lt;&eacute;&gt;</body></html>"""


class Pages(BaseHTTPRequestHandler):
    seen: list[str] = []

    def do_GET(self):
        self.seen.append(self.headers["Host"])
        port = self.server.server_address[1]
        body, headers, status = b"", {}, 200
        match self.path.partition("?")[0]:
            case "/text":
                body, headers = (
                    "grün".encode("latin-1"),
                    {"Content-Type": "text/plain; charset=latin-1"},
                )
            case "/json":
                body, headers = b'{"a": 1}', {"Content-Type": "application/json"}
            case "/html":
                body, headers = PAGE, {"Content-Type": "text/html; charset=utf-8"}
            case "/image":
                body, headers = bytes(range(256)), {"Content-Type": "image/png"}
            case "/untyped":
                body = bytes(range(256)) * 20
            case "/lie":
                body, headers = bytes(range(256)) * 20, {"Content-Type": "text/plain"}
            case "/big":
                body, headers = b"x" * 1_000_000, {"Content-Type": "text/plain"}
            case "/bomb":
                body = gzip.compress(b"y" * 50_000_000)
                headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
            case "/gzip":
                body = gzip.compress(b"packed")
                headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
            case "/brotli":
                body, headers = b"x", {"Content-Type": "text/plain", "Content-Encoding": "br"}
            case "/to":
                status, headers = 302, {"Location": "/text"}
            case "/loop":
                status, headers = 302, {"Location": "/loop"}
            case "/inside":
                status, headers = 302, {"Location": f"http://127.0.0.2:{port}/text"}
            case "/file":
                status, headers = 302, {"Location": "file:///etc/passwd"}
            case "/short":
                body, headers = b"half", {"Content-Type": "text/plain", "Content-Length": "100"}
            case "/echo":
                body, headers = self.path.encode(), {"Content-Type": "text/plain"}
            case _:
                status, body, headers = 404, b"<p>not here</p>", {"Content-Type": "text/html"}
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # the other side has enough

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def drip():
    """A server that sends its headers a byte at a time, for ever."""
    closed = threading.Event()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.05)
            except OSError:
                closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/", closed
        thread.join(5)


async def test_text_and_json_come_as_they_are(call, server):
    assert await call(fetch, url=f"{server}/text") == f"[{server}/text: 200 OK, text/plain]\ngrün"
    assert (await call(fetch, url=f"{server}/json")).endswith('\n{"a": 1}')
    assert (await call(fetch, url=f"{server}/gzip")).endswith("\npacked")


async def test_html_is_reduced_to_what_can_be_read(call, server):
    shown = await call(fetch, url=f"{server}/html")
    assert shown.split("\n", 1)[1] == (
        f"Shop\n\n# Lamps\n\nTwo good ones: red ({server}/red), blue.\n\n- one\n- two\n\n"
        "a\n  b\n\nx | y\n\n<é>"
    )


async def test_an_address_with_odd_characters_is_quoted(call, server):
    assert (await call(fetch, url=f"{server}/echo?q=grün und blau")).endswith(
        "/echo?q=gr%C3%BCn%20und%20blau"
    )


@pytest.mark.parametrize("path", ["image", "untyped", "lie"])
async def test_what_is_not_text_is_refused(call, server, path):
    with pytest.raises(ToolError, match="not text"):
        await call(fetch, url=f"{server}/{path}")


@pytest.mark.parametrize("path", ["big", "bomb"])
async def test_only_so_much_is_read(call, server, path):
    shown = await call(fetch, url=f"{server}/{path}")
    assert shown.endswith("[cut: only the first 100,000 bytes were read]")
    assert len(shown) < 101_000


async def test_a_redirect_is_followed_but_not_for_ever(call, server):
    assert (await call(fetch, url=f"{server}/to")).startswith(f"[{server}/text: 200 OK")
    with pytest.raises(ToolError, match="redirects more than 5 times"):
        await call(fetch, url=f"{server}/loop")


async def test_a_redirect_to_an_address_that_is_not_public_is_refused(call, server):
    with pytest.raises(ToolError, match=r"127\.0\.0\.2 is at 127\.0\.0\.2, which is not a public"):
        await call(fetch, url=f"{server}/inside")
    with pytest.raises(ToolError, match="not an address that can be fetched"):
        await call(fetch, url=f"{server}/file")


async def test_by_default_nothing_but_public_addresses_is_reached(call, server):
    port = server.rpartition(":")[2]
    before = len(Pages.seen)
    hosts = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]", "127.1"]
    for host in [*hosts, "169.254.169.254", "10.0.0.1"]:
        with pytest.raises(ToolError, match=r"not a public address|cannot be found"):
            await call(default, url=f"http://{host}:{port}/text")
    assert len(Pages.seen) == before


@each_row(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
     "224.0.0.1", "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1", "fc00::1", "ff02::1",
     "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "2001:0:0:0:0:0:80ff:fffe"],
)  # fmt: skip
def test_addresses_that_are_not_public(address):
    assert not Reachable().allows(ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_addresses_that_are_public(address):
    assert Reachable().allows(ip_address(address))


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org", "file:///etc/passwd", "http://", "http://[::1", "http://a:0/",
     "http://a:99999/", "javascript:alert(1)"],
)  # fmt: skip
async def test_what_is_no_address_is_told(call, url):
    with pytest.raises(ToolError, match="is not an address"):
        await call(fetch, url=url)


async def test_a_password_in_the_address_is_refused(call):
    with pytest.raises(ToolError, match="a name and a password"):
        await call(fetch, url="https://me:secret@example.org/")


async def test_what_goes_wrong_is_told(call, server):
    with pytest.raises(ToolError, match=r"/none answered 404 Not Found\nnot here$"):
        await call(fetch, url=f"{server}/none")
    with pytest.raises(ToolError, match="the answer was cut off"):
        await call(fetch, url=f"{server}/short")
    with pytest.raises(ToolError, match="br encoding"):
        await call(fetch, url=f"{server}/brotli")
    with pytest.raises(ToolError, match="cannot be fetched: Connection refused"):
        await call(fetch, url="http://127.0.0.1:1/")
    with pytest.raises(ToolError, match="cannot be found"):
        await call(fetch, url="http://no-such-host.invalid/")
    with pytest.raises(ToolError, match=r"cannot be fetched: .*"):
        await call(fetch, url=server.replace("http", "https"), timeout=5)
    with pytest.raises(ToolArgumentError):
        await call(fetch, url=server, timeout=0)


async def test_a_server_that_drips_is_given_up_in_time(call, drip):
    url, closed = drip
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"did not answer within 0\.5 s"):
        await call(fetch, url=url, timeout=0.5)
    assert time.monotonic() - began < 20
    assert await asyncio.to_thread(closed.wait, 30)


async def test_cancelling_ends_the_connection(call, drip):
    url, closed = drip
    task = asyncio.create_task(call(fetch, url=url))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(closed.wait, 30)
