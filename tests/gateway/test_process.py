"""`hookline gateway` as a process of its own: signals, cut-off turns, stdio, refusals."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from hookline.runtime.session_index import project_name

from .. import forks
from .conftest import TOKEN, bearer

pytestmark = pytest.mark.slow

SLOW = '[[turns]]\ntext = "never"\nwait = 600\n'
QUICK = '[[turns]]\ntext = "Here it is."\nchunk = 3\n'
TOOL = """
[[turns]]
tool_calls = [{ name = "shell", arguments = { command = "echo once >> ran.txt" } }]
[[turns]]
text = "never"
wait = 600
"""


SERVED = ("hookline.serve.server", "hookline.serve.web", "hookline.observe.inspector.routes")


def environment(home: Path, **settings: str | None) -> dict[str, str]:
    given = {f"HOOKLINE_{name}": value for name, value in settings.items()}
    own = {"HOOKLINE_POLICY__DEFAULT": "allow", "HOOKLINE_GATEWAY__TOKEN": TOKEN}
    found = {**os.environ, "HOOKLINE_HOME": str(home), **own, **given}
    return {name: value for name, value in found.items() if value is not None}


@contextmanager
def gateway(tmp_path: Path, script: str, *arguments: str, **settings: str):
    """A gateway process that is up, and its address."""
    (tmp_path / "script.toml").write_text(script)
    asked = ("--port", "0", "--model", f"scripted:{tmp_path / 'script.toml'}", *arguments)
    with forks.start(
        forks.MAIN,
        "gateway",
        *asked,
        cwd=tmp_path,
        env=environment(tmp_path / "home", **settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        imports=SERVED,
    ) as process:
        try:
            assert process.stderr is not None
            line = ""
            while not (found := re.search(r"is at (http://\S+)", line)):
                line = process.stderr.readline()
                assert line, process.wait()
            yield process, found[1]
        finally:
            process.kill()


def post(url: str, text: str, **headers: str):
    body = json.dumps({"text": text, "id": "m1"}).encode()
    headers = {"content-type": "application/json", **bearer(), **headers}
    return urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60)


def page(url: str) -> list[tuple[str, str]]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=bearer()), timeout=60) as response:
        return [(item["role"], item["text"]) for item in json.load(response)["messages"]]


def test_sigterm_parks_a_turn_that_takes_too_long_and_the_next_start_continues_it(tmp_path):
    at = "api/sessions/web:garden"
    with gateway(tmp_path, TOOL, GATEWAY__DRAIN="0.2") as (process, url):
        with post(f"{url}{at}/messages", "go", accept="text/event-stream") as response:
            while b"tool_result" not in response.readline():
                pass
            process.send_signal(signal.SIGTERM)
            rest = response.read().decode()
        assert process.wait(30) == 0
    end = json.loads(rest.strip().splitlines()[-1].removeprefix("data: "))
    assert (end["type"], end["outcome"], end["reason"]) == ("end", "cancelled", "parked")
    with gateway(tmp_path, QUICK) as (process, url):
        until = time.monotonic() + 30
        while (said := page(f"{url}{at}"))[-1] != ("assistant", "Here it is."):
            assert time.monotonic() < until, said
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant"]
    assert (tmp_path / "ran.txt").read_text() == "once\n"
    with gateway(tmp_path, QUICK) as (process, url):
        assert page(f"{url}{at}") == said  # nothing twice


def test_sigterm_lets_a_short_turn_finish_and_deliver_its_answer(tmp_path):
    script = '[[turns]]\ntext = "all of it"\nchunk = 1\ndelay = 0.05\n'
    with gateway(tmp_path, script) as (process, url):
        with post(f"{url}api/sessions/a/messages", "go", accept="text/event-stream") as response:
            while b"event: text" not in response.readline():
                pass
            process.send_signal(signal.SIGTERM)
            rest = response.read().decode()
        assert process.wait(30) == 0
    end = json.loads(rest.strip().splitlines()[-1].removeprefix("data: "))
    assert (end["outcome"], end["text"]) == ("answered", "all of it")


def test_sighup_reloads_hook_files_and_the_gateway_goes_on(tmp_path):
    hooks = tmp_path / "home" / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    with gateway(tmp_path, QUICK + QUICK, "--log-json") as (process, url):
        (hooks / "no.py").write_text(
            "from hookline.events import MessageReceiveResult\n"
            "def no(event):\n    return MessageReceiveResult(action='reject', reason='closed')\n"
            "hooks = [('message:receive', no)]\n"
        )
        process.send_signal(signal.SIGHUP)
        line = {}
        while "reloaded" not in line.get("message", ""):
            line = json.loads(process.stderr.readline())
        assert (line["level"], line["logger"]) == ("info", "hookline.serve")
        with post(f"{url}api/sessions/a/messages", "hi") as response:
            assert json.load(response)["reason"] == "closed"


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        (["--host", "0.0.0.0"], {"GATEWAY__TOKEN": None}, "set a token"),
        (["--enable-channel", "smoke"], {}, "unknown channel 'smoke'"),
        ([], {"GATEWAY__PROT": "1"}, "did you mean 'port'"),
        ([], {"GATEWAY__PORT": "many"}, "gateway.port"),
        (["--token", " "], {}, "token is empty"),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_line(tmp_path, arguments, settings, said):
    env = environment(tmp_path, **settings)
    done = forks.run(forks.MAIN, "gateway", *arguments, env=env, cwd=tmp_path, imports=SERVED)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


class Embedded:
    """A program that has the agent inside it."""

    def __init__(self, process: forks.Forked) -> None:
        self.process = process

    def write(self, **frame: object) -> None:
        self.process.stdin.write(json.dumps(frame) + "\n")
        self.process.stdin.flush()

    def until(self, kind: str) -> list[dict]:
        found: list[dict] = []
        while not found or found[-1]["type"] != kind:
            line = self.process.stdout.readline()
            assert line, found
            found.append(json.loads(line))
        return found


@contextmanager
def embedded(tmp_path: Path, script: str, **settings: str):
    (tmp_path / "script.toml").write_text(script)
    asked = ("--enable-channel", "stdio", "--model", f"scripted:{tmp_path / 'script.toml'}")
    with forks.start(
        forks.MAIN,
        "gateway",
        *asked,
        cwd=tmp_path,
        env=environment(tmp_path / "home", **settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        imports=SERVED,
    ) as process:
        try:
            yield Embedded(process)
        finally:
            process.kill()


def test_stdio_speaks_frames_answers_every_line_and_ends_with_its_input(tmp_path):
    script = QUICK + '[[turns]]\ntext = "And more."\n'
    with embedded(tmp_path, script) as agent:
        agent.write(type="message", id="m1", session="garden", text="hi")
        first = agent.until("end")
        agent.process.stdin.write("{nonsense\n")
        error = agent.until("error")[-1]
        agent.write(type="ping")
        agent.until("pong")
        agent.write(type="message", id="m2", session="garden", text="more")
        agent.process.stdin.close()
        second = agent.until("end")
        assert agent.process.wait(30) == 0
    assert [frame["type"] for frame in first[:2]] == ["session", "accepted"]
    assert first[0]["session_id"] == f"stdio:{project_name(tmp_path)}"  # another folder has another
    assert "".join(f["delta"] for f in first if f["type"] == "text") == "Here it is."
    assert (first[-1]["id"], first[-1]["session_id"]) == ("m1", "garden")
    assert "JSON" in error["message"]
    assert (second[-1]["id"], second[-1]["text"]) == ("m2", "And more.")


@pytest.mark.parametrize("source", ["file", "/dev/null"])
def test_stdio_reads_a_file_and_writes_one(tmp_path, source):
    (tmp_path / "script.toml").write_text(QUICK)
    (tmp_path / "in").write_text('{"type": "message", "id": "m1", "text": "hi"}\n')
    asked = ("--enable-channel", "stdio", "--model", f"scripted:{tmp_path / 'script.toml'}")
    with (
        Path(tmp_path / "in" if source == "file" else source).open() as given,
        (tmp_path / "out").open("w") as out,
        (tmp_path / "err").open("w") as err,
    ):
        files = [each.fileno() for each in (given, out, err)]
        env = environment(tmp_path / "home")
        process = forks.fork(forks.MAIN, "gateway", *asked, files=files, env=env, cwd=tmp_path)
        assert process.wait(30) == 0
    frames = [json.loads(line)["type"] for line in (tmp_path / "out").read_text().splitlines()]
    assert frames[0] == "session"
    assert (frames[-1] == "end") is (source == "file")


def test_stdio_asks_for_approval_and_keeps_printed_lines_out_of_its_frames(tmp_path):
    script = """
[[turns]]
tool_calls = [{ name = "shell", arguments = { command = "echo hi" } }]
[[turns]]
text = "Done."
"""
    hooks = tmp_path / "home" / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "noisy.py").write_text(
        "def noisy(event):\n    print('this is no frame', flush=True)\n"
        "hooks = [('agent_start', noisy)]\n"
    )
    with embedded(tmp_path, script, POLICY__DEFAULT="ask") as agent:
        agent.write(type="message", id="m1", text="go")
        asked = agent.until("approval")[-1]
        agent.write(type="answer", id=asked["id"], answer="approve", hash=asked["hash"])
        rest = agent.until("end")
    assert asked["tool"] == "shell"
    assert rest[-1]["text"] == "Done."
