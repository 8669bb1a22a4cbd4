"""A hostile repository, opened by each command in a process of its own: nothing runs, nothing leaks."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pexpect
import pytest

from .hostile import SECRET, VARIABLE, build

SCREEN, WIDTH = 24, 80


class Endpoint:
    """A model's address that keeps every request, whole."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        kept = self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            def _take(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                kept.append(self.requestline.encode() + bytes(self.headers) + body)
                choice = {"index": 0, "delta": {"content": "Fine."}, "finish_reason": "stop"}
                chunk = {"choices": [choice]}
                text = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = _take

            def log_message(self, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def place(tmp_path):
    """The hostile folder, the user's home, and two addresses: the user's model and the attacker's."""
    own, evil = Endpoint(), Endpoint()
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        'model = "openai-compatible:mine"\n'
        f'[providers.openai-compatible]\nbase_url = "{own.url}"\napi_key = "the-users-own"\n'
        "[gateway]\nport = 0\n"
    )
    marks = tmp_path / "marks"
    folder = build(tmp_path / "repository", marks, evil.url)
    (tmp_path / "user").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOOKLINE_")}
    environ = {
        **kept, VARIABLE: SECRET, "HOOKLINE_HOME": str(home), "HOME": str(tmp_path / "user"),
        "COLUMNS": str(WIDTH), "LINES": str(SCREEN), "NO_COLOR": "1", "TERM": "xterm",
    }  # fmt: skip
    yield Place(folder, marks, environ, own, evil, home)
    own.close()
    evil.close()


class Place:
    def __init__(self, folder, marks, environ, own, evil, home) -> None:
        self.folder, self.marks, self.environ = folder, marks, environ
        self.own, self.evil, self.home = own, evil, home

    def run(self, *arguments: str, **more) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "hookline", *arguments], cwd=self.folder, env=self.environ,
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **more,
        )  # fmt: skip

    def spawn(self, *arguments: str) -> pexpect.spawn:
        return pexpect.spawn(
            sys.executable, ["-P", "-m", "hookline", *arguments], cwd=str(self.folder),
            env=self.environ, timeout=60, dimensions=(SCREEN, WIDTH), encoding="utf-8",
        )  # fmt: skip

    def check(self, said: str) -> None:
        """Nothing ran, nothing left, and no escape of the repository reached the terminal."""
        assert sorted(path.name for path in self.marks.iterdir()) == []
        assert self.evil.requests == []
        assert SECRET not in said
        sent = b"".join(self.own.requests)
        assert SECRET.encode() not in sent
        assert b"root:x:0:0" not in sent
        for mark in ("\x1b]0;owned", "\u202e", "\u200b"):
            assert mark not in said
        assert "Traceback" not in said


def test_run_without_a_terminal_says_one_line_and_runs_nothing(place):
    done = place.run("run", "hello")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Fine.\n"
    (line,) = [line for line in done.stderr.splitlines() if "hookline trust" in line]
    assert re.fullmatch(r"hookline: \d+ things of this project are inert, .*`hookline trust`.*", line)
    assert len(place.own.requests) == 1
    assert b'"model":"mine"' in place.own.requests[0].replace(b" ", b"")
    place.check(done.stdout + done.stderr)


def test_doctor_describes_it_in_a_few_lines(place):
    done = place.run("doctor")
    about = [line for line in done.stdout.splitlines() if re.match(r"--  (trust|config)", line)]
    assert 3 <= len(about) <= SCREEN
    place.check(done.stdout + done.stderr)


def test_trust_shows_it_on_one_screen_and_trusts_nothing_unasked(place):
    done = place.run("trust")
    assert done.returncode == 2
    lines = [*done.stdout.splitlines(), "the question"]
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) < WIDTH
    assert ".hookline/config.toml" in done.stdout
    assert ".claude/settings.json" in done.stdout
    assert not (place.home / "trust.json").exists()
    place.check(done.stdout + done.stderr)


@pytest.mark.parametrize("command", ["chat", "run"])
def test_on_a_terminal_a_person_sees_it_first_and_declines_once(place, command):
    child = place.spawn(*(("chat",) if command == "chat" else ("run", "hello")))
    child.expect_exact("Trust it? What is trusted runs with your rights. [y/N]")
    notice = child.before
    lines = notice.splitlines()
    assert len(lines) + 1 <= SCREEN
    assert max(map(len, lines)) < WIDTH
    assert place.own.requests == []
    assert [*place.marks.iterdir()] == []
    child.sendline("n")
    child.expect_exact("It stays inert.")
    if command == "chat":
        child.expect_exact("/help shows the commands")
        child.send("hello\r")
        child.expect_exact("Fine.")
        child.expect_exact("> ")
        child.send("/exit\r")
    said = notice + child.read()
    child.close()
    assert "inert, because not trusted" not in said
    assert len(place.own.requests) == 1
    place.check(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said))


def test_the_gateway_starts_and_runs_nothing(place):
    child = place.spawn("gateway")
    child.expect_exact("Trust it? What is trusted runs with your rights. [y/N]")
    assert len(child.before.splitlines()) + 1 <= SCREEN
    child.sendline("n")
    child.expect_exact("the gateway is at http://127.0.0.1")
    child.sendintr()
    said = child.read()
    child.close()
    place.check(said)


@pytest.mark.parametrize(
    "command",
    [("config", "show"), ("plugins",), ("mcp", "list"), ("hooks",), ("models",), ("policy", "check")],
    ids=" ".join,
)
def test_every_other_command_leaves_it_alone(place, command):
    done = place.run(*command)
    assert "Traceback" not in done.stderr
    place.check(done.stdout + done.stderr)


def test_trusted_it_still_cannot_take_the_users_keys_and_endpoints(place):
    assert place.run("trust", "--yes").returncode == 0
    done = place.run("config", "show", "--json")
    settings = json.loads(done.stdout)["settings"]
    theirs = str(Path(".hookline", "config.toml"))
    of_project = {name for name, about in settings.items() if about["source"].endswith(theirs)}
    assert {name.partition(".")[0] for name in of_project} <= {
        "agents", "hooks", "limits", "mcp", "session", "skills", "stores", "thinking", "tts", "plugins",
        "policy",
    }  # fmt: skip
    assert not any(name.startswith("agents") and name.endswith("model") for name in of_project)
    assert SECRET not in done.stdout
