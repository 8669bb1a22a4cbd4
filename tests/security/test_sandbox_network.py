"""The network of a sandbox: by host, through the proxy, and every connection judged."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hookline.errors import ConnectionDenied
from hookline.events import NetworkRequestEvent, NetworkRequestResult
from hookline.models import Call, ScriptedModel, Turn
from hookline.runtime.app import Hookline
from hookline.runtime.network import NetworkGate
from hookline.sandbox import Sandbox
from hookline.sandbox.proxy import (
    Client,
    NetworkRequest,
    Proxy,
    allowed,
    forwarded,
    head_of,
    is_public,
    normal,
    request_of,
)
from hookline.sandbox.sandbox import probe
from hookline.types import Identity

from ..commandline import here
from ..tables import each_row

needs_bubblewrap = pytest.mark.skipif(
    probe()[0] != "bubblewrap", reason=f"needs bubblewrap: {probe()[1]}"
)

# --- which addresses are on the internet ---

PRIVATE = """
127.0.0.1 127.0.0.2 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255
192.168.0.1 192.168.255.255 169.254.169.254 169.254.0.1 100.64.0.1 100.127.255.254 192.0.2.1
198.51.100.1
203.0.113.1 198.18.0.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 ::1 :: fe80::1 fe80::1%eth0
fc00::1 fd00:ec2::254 fd12:3456:789a::1 ff02::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
::ffff:192.168.1.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 2002:7f00:1:: 2002:a00:1:: 2002:a9fe:a9fe::
2001:db8::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 fec0::1 localhost example.org 127.1 0x7f.1
2130706433 1.1.1 ::127.0.0.1 ::10.0.0.1 ::ffff:0:127.0.0.1 64:ff9b:1::7f00:1 5f00::1 4000::1 100::1
::ffff:0.0.0.0 ::ffff:100.64.0.1 2002:c0a8:101:: 0177.0.0.1 127.0.0.01 fe80::5efe:7f00:1
""".split()
PUBLIC = "1.1.1.1 8.8.8.8 151.101.0.223 2606:4700:4700::1111 2a04:4e42::223 64:ff9b::808:808".split()


@each_row("address", PRIVATE)
def test_a_local_or_private_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@each_row(
    ("host", "port", "patterns", "how"),
    [
        ("packages.example", 443, ["packages.example"], "name"),
        ("packages.example", 443, ["Packages.Example."], "name"),
        ("files.packages.example", 443, ["packages.example"], None),
        ("evil-packages.example", 443, ["packages.example"], None),
        ("packages.example.evil.example", 443, ["packages.example"], None),
        ("a.example", 443, ["*.example"], "pattern"),
        ("a.b.example", 443, ["*.example"], "pattern"),
        ("example", 443, ["*.example"], None),
        ("evilexample", 443, ["*.example"], None),
        ("anything.example", 1, ["*"], "pattern"),
        ("a.example", 443, [], None),
        ("a.example", 22, ["a.example:443"], None),
        ("a.example", 443, ["a.example:443"], "name"),
        ("127.0.0.1", 80, ["*"], "pattern"),
        ("127.0.0.1", 80, ["127.0.0.1"], "name"),
        ("127.0.0.1", 81, ["127.0.0.1:80"], None),
        ("::1", 80, ["::1"], "name"),
        ("::1", 80, ["[::1]"], "name"),
        ("a.example", 443, ["*", "a.example"], "name"),
    ],
)
def test_hosts_are_matched_as_a_whole(host: str, port: int, patterns: Any, how: str | None) -> None:
    assert allowed(host, port, patterns) == how


@each_row(
    "host",
    [
        "",
        "a b",
        "a/b",
        "a\nb",
        "a\0b",
        "-a.example",
        "a@b",
        "a#b",
        "ex ample.org",
        "a..",
        "é.example",
        "%41",
    ],
)
def test_what_is_no_host_is_refused(host: str) -> None:
    assert normal(host) is None


@each_row(
    ("method", "target"),
    [
        ("GET", "/path"),
        ("GET", "ftp://a.example/"),
        ("GET", "file:///etc/passwd"),
        ("GET", "https://a.example/"),
        ("GET", "http:///x"),
        ("GET", "http://user:pass@a.example/"),
        ("GET", "http://a.example:99999/"),
        ("GET", "*"),
        ("CONNECT", ""),
        ("CONNECT", "a.example:x"),
        ("CONNECT", "user@a.example:443"),
        ("CONNECT", "a b:443"),
        ("CONNECT", ":443"),
        ("CONNECT", "a.example:70000"),
    ],
)
def test_a_request_that_is_not_clear_is_refused(method: str, target: str) -> None:
    with pytest.raises(ConnectionDenied):
        request_of(method, target, Client("shell", ("*",)))


def test_a_plain_request_is_sent_on_once_and_without_what_is_for_the_proxy() -> None:
    headers = ["Host: evil.example", "Proxy-Authorization: x", "Connection: keep-alive", "Accept: */*"]
    sent = forwarded("GET", "http://a.example:81/x?y=1", headers).decode()
    assert sent == (
        "GET /x?y=1 HTTP/1.1\r\nHost: a.example:81\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )


@each_row(
    "head",
    [
        "GET http://a.example/",
        "GET http://a.example/ HTTP/0.9",
        "GET http://a.example/ HTTP/2.0",
        "GET  http://a.example/ HTTP/1.1",
        "GET http://a.example/ x HTTP/1.1",
        "GET http://a.example/\tx HTTP/1.1",
        "GET http://a.example/\nHost: b HTTP/1.1",
        "GET http://a\0.example/ HTTP/1.1",
        "get http://a.example/ HTTP/1.1",
        " GET http://a.example/ HTTP/1.1",
        "\r\nGET http://a.example/ HTTP/1.1",
        "GET http://a.example/ HTTP/1.1\r\nX: a\nHost: b.example",
        "GET http://a.example/ HTTP/1.1\r\nX: a\rHost: b.example",
        "GET http://a.example/ HTTP/1.1\r\nHost : b.example",
        "GET http://a.example/ HTTP/1.1\r\n Host: b.example",
        "GET http://a.example/ HTTP/1.1\r\nX: a\r\n\tfolded: b",
        "GET http://a.example/ HTTP/1.1\r\nno colon",
        "GET http://a.example/ HTTP/1.1\r\n: no name",
        "GET http://a.example/ HTTP/1.1\r\nX\0: a",
        "GET http://a.example/ HTTP/1.1\r\nX: a\0b",
        "GET http://a.example/ HTTP/1.1\r\nConnection\t: keep-alive",
        "",
    ],
)
def test_a_request_that_two_readers_could_read_differently_is_refused(head: str) -> None:
    with pytest.raises(ConnectionDenied):
        head_of(f"{head}\r\n\r\n".encode("latin-1"))


@pytest.mark.parametrize(
    "sent",
    [
        b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n",  # unfinished, and then the end
        b"X" * (1 << 17),
        b"GET http://127.0.0.1/ HTTP/1.1\r\nX: " + b"a" * (1 << 17) + b"\r\n\r\n",
        b"",
    ],
)
async def test_a_head_that_is_too_large_or_never_ends_is_not_answered(sent: bytes) -> None:
    proxy = Proxy()
    await proxy.start()
    token = proxy.admit(Client("shell", ("127.0.0.1",)))
    try:
        reader, writer = await asyncio.open_unix_connection(proxy.path)
        writer.write(f"{token}\n".encode() + sent)
        writer.write_eof()
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
        writer.close()
    finally:
        proxy.close()


async def test_one_child_has_a_limited_number_of_connections() -> None:
    proxy = Proxy()
    await proxy.start()
    token = proxy.admit(Client("shell", ("127.0.0.1",)))
    writers: list[asyncio.StreamWriter] = []
    try:
        for number in range(300):
            reader, writer = await asyncio.open_unix_connection(proxy.path)
            writers.append(writer)
            writer.write(f"{token}\n".encode())
            if number >= 290:
                assert await asyncio.wait_for(reader.read(), 20) == b""
    finally:
        for writer in writers:
            writer.close()
        proxy.close()


async def test_a_public_address_of_this_machine_is_not_reached_by_a_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a server with a public address: loopback stands for it here."""
    monkeypatch.setattr("hookline.sandbox.proxy.is_public", lambda address: True)
    proxy = Proxy()
    await proxy.start()
    token = proxy.admit(Client("shell", ("*",)))
    try:
        reader, writer = await asyncio.open_unix_connection(proxy.path)
        writer.write(f"{token}\nCONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n".encode())
        assert b"403 Forbidden" in await reader.readline()
        assert b"local or private" in await reader.read()
        writer.close()
    finally:
        proxy.close()


# --- with real children ---


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"hello {self.path} {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


PLAIN = (
    "import os; os.environ.update(NO_PROXY='', no_proxy='');"
    "import urllib.request as u; print(u.urlopen('http://{host}:{port}/x', timeout=20).read())"
)
TUNNEL = (
    "import http.client as h; c = h.HTTPConnection('127.0.0.1', 3128, timeout=20);"
    "c.set_tunnel('{host}', {port}); c.request('GET', '/x'); print(c.getresponse().read())"
)


async def fetch(
    sandbox: Sandbox, folder: Path, code: str, hosts: list[str], **wanted: Any
) -> tuple[str, str]:
    line = ["/usr/bin/env", "python3", "-c", code]
    with sandbox.launch(
        line, cwd=folder, env=dict(os.environ), network=hosts, session="s", call_id="c", **wanted
    ) as launch:
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            pass_fds=launch.pass_fds,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        launch.begin()
        out, err = await process.communicate()
    return out.decode(), err.decode()


@needs_bubblewrap
@pytest.mark.parametrize("code", [PLAIN, TUNNEL], ids=["plain", "tunnel"])
async def test_a_named_host_is_reached_and_judged(tmp_path: Path, port: int, code: str) -> None:
    asked: list[NetworkRequest] = []

    async def judge(request: NetworkRequest) -> str | None:
        asked.append(request)
        return None

    sandbox = Sandbox(workspace=tmp_path, home=tmp_path / "home")
    sandbox.start(judge)
    try:
        text = code.format(host="127.0.0.1", port=port)
        out, err = await fetch(sandbox, tmp_path, text, ["127.0.0.1"])
    finally:
        sandbox.close()
    assert "hello /x" in out, err
    assert [(each.host, each.port, each.client.call_id) for each in asked] == [("127.0.0.1", port, "c")]


@needs_bubblewrap
@pytest.mark.parametrize("code", [PLAIN, TUNNEL], ids=["plain", "tunnel"])
@pytest.mark.parametrize(
    ("host", "hosts"),
    [
        ("127.0.0.1", ["*"]),
        ("127.0.0.1", ["packages.example"]),
        ("127.0.0.1", ["127.0.0.1:1"]),
        ("localhost", ["*"]),
        ("169.254.169.254", ["*"]),
        ("10.0.0.1", ["*"]),
        ("[::1]", ["*"]),
        ("[::ffff:127.0.0.1]", ["*"]),
        ("2130706433", ["*"]),
        ("0", ["*"]),
    ],
)
async def test_a_host_that_is_not_allowed_is_refused(
    tmp_path: Path, port: int, code: str, host: str, hosts: list[str]
) -> None:
    sandbox = Sandbox(workspace=tmp_path, home=tmp_path / "home")
    sandbox.start()
    text = code.format(host=host, port=port)
    try:
        out, err = await fetch(sandbox, tmp_path, text, hosts)
    finally:
        sandbox.close()
    assert "hello" not in out
    assert "Forbidden" in err or "403" in err, err


@needs_bubblewrap
async def test_without_a_host_there_is_no_proxy_at_all(tmp_path: Path, port: int) -> None:
    sandbox = Sandbox(workspace=tmp_path, home=tmp_path / "home")
    sandbox.start()
    try:
        with sandbox.launch(["true"], cwd=tmp_path, env=dict(os.environ)) as launch:
            assert not any("proxy" in word for word in launch.argv)
        out, _ = await fetch(sandbox, tmp_path, PLAIN.format(host="127.0.0.1", port=port), [])
    finally:
        sandbox.close()
    assert "hello" not in out


@needs_bubblewrap
async def test_a_stranger_at_the_socket_is_not_served(tmp_path: Path) -> None:
    sandbox = Sandbox(workspace=tmp_path, home=tmp_path / "home")
    sandbox.start()
    try:
        with sandbox.launch(["true"], cwd=tmp_path, env=dict(os.environ), network=["*"]):
            path = sandbox._served().path  # pyright: ignore[reportPrivateUsage]
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"wrong-token\nCONNECT 1.1.1.1:443 HTTP/1.1\r\n\r\n")
            assert await reader.read() == b""
            writer.close()
    finally:
        sandbox.close()


# --- in the app ---


async def reach(app: Hookline, folder: Path, port: int) -> tuple[str, str]:
    code = PLAIN.format(host="127.0.0.1", port=port)
    return await fetch(app.sandbox, folder, code, ["127.0.0.1"])


@needs_bubblewrap
@pytest.mark.parametrize(
    ("answer", "approval", "reached"),
    [
        (None, None, True),
        (NetworkRequestResult(block=True, reason="not today"), None, False),
        (NetworkRequestResult(ask=True, reason="really?"), "approve", True),
        (NetworkRequestResult(ask=True, reason="really?"), "reject", False),
        (NetworkRequestResult(ask=True, reason="really?"), None, False),
    ],
    ids=["allowed", "blocked", "approved", "rejected", "unanswered"],
)
async def test_a_plugin_decides_on_a_connection(
    tmp_path: Path, port: int, answer: Any, approval: str | None, reached: bool
) -> None:
    app = Hookline(home=tmp_path / "home", workspace=tmp_path, project=False)
    app.load_hooks(packages=False)
    seen: list[NetworkRequestEvent] = []

    def handler(event: NetworkRequestEvent) -> Any:
        seen.append(event)
        return answer

    app.hooks.register("network_request", handler)
    if approval is not None:
        app.hooks.register("resolve_approval", lambda request: approval)
    async with app.running():
        out, err = await reach(app, tmp_path, port)
    assert ("hello" in out) == reached, err
    assert [(event.host, event.port, event.kind) for event in seen] == [("127.0.0.1", port, "shell")]


@needs_bubblewrap
@pytest.mark.parametrize(("hosts", "reached"), [(["127.0.0.1"], True), (["packages.example"], False)])
async def test_the_pack_for_the_network_judges_a_connection(
    tmp_path: Path, port: int, hosts: list[str], reached: bool
) -> None:
    policy = {"default": "allow", "packs": ["network-egress"], "network": {"allow": hosts}}
    app = Hookline(
        home=tmp_path / "home", workspace=tmp_path, project=False, overrides={"policy": policy}
    )
    app.load_hooks(packages=False)
    async with app.running():
        out, err = await reach(app, tmp_path, port)
    assert ("hello" in out) == reached, err


# --- on whose behalf ---


@needs_bubblewrap
@pytest.mark.parametrize(
    ("identity", "reached"),
    [
        (Identity("ada", "telegram"), True),
        (Identity("eve", "telegram"), False),
        (Identity("ada", "telegram", others=(Identity("eve", "telegram"),)), False),
    ],
)
async def test_a_rule_on_a_user_judges_the_connections_of_their_commands(
    tmp_path: Path, port: int, identity: Identity, reached: bool
) -> None:
    rules = tmp_path / "rules.cedar"
    rules.write_text(
        '@id("not-for-eve") forbid (principal, action, resource) when { principal.user == "eve" };'
    )
    overrides = {
        "policy": {"default": "allow", "floor": {"cedar": str(rules)}},
        "audit": {"enabled": True},
    }
    app = Hookline(home=tmp_path / "home", workspace=tmp_path, project=False, overrides=overrides)
    app.load_hooks(packages=False)
    async with app.running():
        code = PLAIN.format(host="127.0.0.1", port=port)
        out, err = await fetch(app.sandbox, tmp_path, code, ["127.0.0.1"], identity=identity)
    assert ("hello" in out) == reached, err
    lines = (tmp_path / "home" / "audit" / "audit.jsonl").read_text().splitlines()
    decisions = [each for each in map(json.loads, lines) if each.get("tool") == "network_request"]
    assert [(each["user"], each["outcome"]) for each in decisions] == [
        (identity.user, "allowed" if reached else "denied")
    ]


# --- on the tape, and why ---


def scripted(app: Hookline, *commands: str) -> None:
    calls = [Call("shell", {"command": command}) for command in commands]
    model = ScriptedModel([Turn(tool_calls=calls), "Done."])
    app.models.add(model)
    app.model = model.name


@needs_bubblewrap
def test_why_tells_which_command_asked_for_which_host_and_who_decided(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        '[policy]\ndefault = "allow"\n[sandbox]\nnetwork = ["127.0.0.1", "localhost"]\n'
    )
    app = Hookline(home=home, workspace=tmp_path, project=False)
    app.load_hooks(packages=False)

    def not_by_name(event: NetworkRequestEvent) -> NetworkRequestResult | None:
        if event.host == "localhost":
            return NetworkRequestResult(block=True, reason="use the address")
        return None

    app.hooks.register("network_request", not_by_name)
    reached, blocked, refused = (
        f"python3 -c {shlex.quote(PLAIN.format(host=host, port=port))}"
        for host in ("127.0.0.1", "localhost", "other.example")
    )
    scripted(app, reached, blocked, f"for i in 1 2 3; do {refused}; done")

    async def turn() -> tuple[list[Any], int]:
        async with app.running():
            await app.process({"content": "go", "session_id": "s"})
            branch = await (await app.tape("s")).branch()
            return await app.store().entries("s"), len(branch)

    entries, on_the_branch = asyncio.run(turn())
    assert on_the_branch == len(entries)
    found = [entry.payload for entry in entries if entry.kind == "decision"]
    assert sorted((each["host"], each["outcome"]) for each in found) == [
        ("127.0.0.1", "allowed"), ("localhost", "denied"), ("other.example", "denied"),
    ]  # fmt: skip
    run = here(home, tmp_path, monkeypatch, capsys)
    calls = {each["host"]: each["call_id"] for each in found}
    for host, who, did, reason in (
        ("127.0.0.1", "sandbox", "allowed", ""),
        ("localhost", "not_by_name", "denied", "use the address"),
        ("other.example", "sandbox", "denied", "not among the hosts"),
    ):
        told = json.loads(run("why", "s", calls[host], "--json").stdout)["steps"]
        steps = [step for step in told if step["hook"] == "network_request"]
        assert any(who in step["by"] and step["did"] == did for step in steps), (host, steps)
        assert all(host in step["reason"] and "python3" in step["reason"] for step in steps)
        assert any(reason in step["reason"] for step in steps)
    shown = run("why", "s").stdout
    assert shown.count("network_request") >= 3
    assert "other.example:" in shown


async def test_a_child_that_tries_many_hosts_does_not_fill_the_tape(tmp_path: Path) -> None:
    app = Hookline(home=tmp_path / "home", workspace=tmp_path, project=False)
    app.load_hooks(packages=False)
    gate = NetworkGate(app)
    client = Client("shell", (), "scan", "s", "c")
    async with app.running():
        for number in range(300):
            for _ in range(3):
                request = NetworkRequest(f"h{number}.example", 443, "https", client, refused="no")
                assert await gate.judge(request) == "no"
        entries = await app.store().entries("s")
    assert len(entries) == 100
