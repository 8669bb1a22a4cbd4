"""`hookline inspect`, as a process."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from urllib.request import Request, urlopen

import pytest


@pytest.fixture
def environment(tmp_path):
    env = {**os.environ, "HOOKLINE_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    return {"env": env, "cwd": tmp_path, "text": True}


def test_it_shows_what_other_processes_record_and_ends_in_good_order(tmp_path, environment):
    (tmp_path / "answers.py").write_text('turns = ["Hello."]\n')
    command = [sys.executable, "-m", "hookline"]
    page = subprocess.Popen([*command, "inspect", "--port", "0"], stderr=subprocess.PIPE, **environment)
    try:
        found = re.search(
            r"the inspector is at (http://127\.0\.0\.1:\d+/inspect)#token=([\w-]{43})$",
            page.stderr.readline(),
        )
        said = subprocess.run(
            [*command, "run", "hi", "--model", "scripted:answers.py"],
            capture_output=True, check=False, **environment,
        )  # fmt: skip
        assert (said.returncode, said.stderr) == (0, "")
        bearer = {"authorization": f"Bearer {found[2]}"}
        with urlopen(Request(f"{found[1]}/api/sessions", headers=bearer)) as answer:
            (session,) = json.load(answer)
        assert session["preview"] == "hi"
        with urlopen(found[1].removesuffix("inspect")) as answer:  # the root leads to the page
            assert answer.url == found[1]
            assert b"Hookline inspector" in answer.read()
    finally:
        page.send_signal(signal.SIGTERM)
        with page.stderr:
            rest = page.stderr.read()
        assert (page.wait(), rest) == (0, "")


def test_a_port_that_is_taken_is_one_line_and_code_2(environment):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "hookline", "inspect", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, check=False, **environment)
    assert done.returncode == 2
    assert done.stderr.startswith(f"hookline: cannot listen on 127.0.0.1 port {port}")
    assert len(done.stderr.splitlines()) == 1
