"""`hookline proxy`, and what `hookline why` says about the clients of the proxy."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from hookline.bridges.proxy.commands import run_proxy
from hookline.runtime.app import Hookline

from ..commandline import here
from .proxied import TOKEN, proxied
from .test_chat import ask, client_of, user

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]


def test_why_explains_the_denied_call_of_a_client(tmp_path: Path, monkeypatch: Patch, capsys: Capture):
    async def work() -> str:
        script = [("shell", {"command": "sudo ls"}), "I may not."]
        async with proxied(tmp_path, monkeypatch, script) as proxy:
            await ask(client_of(proxy), [user("go")], True)
            [session] = await proxy.sessions()
            return session

    session = asyncio.run(work())
    told = here(tmp_path / "home", tmp_path / "work", monkeypatch, capsys)("why", session)
    assert told.returncode == 0, told.stderr
    assert "sudo ls" in told.stdout
    assert "not as root" in told.stdout


def test_the_token_is_generated_once_and_settings_are_checked(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    run = here(home, tmp_path, monkeypatch, capsys)
    token = run("proxy", "--print-token").stdout.strip()
    assert len(token) > 16
    assert run("proxy", "--print-token").stdout.strip() == token
    assert (home / "proxy.token").stat().st_mode & 0o077 == 0
    for lines, named in (
        ('chat = "nobody"', "proxy.chat names no provider"),
        ('chat = "anthropic"', "speaks another format"),
        ("rounds = 0", "proxy.rounds"),
        ('token = "short"', "at least 16"),
    ):
        (home / "config.toml").write_text(f"[proxy]\n{lines}\n")
        told = run("proxy", "--port", "0")
        assert told.returncode != 0, lines
        assert named in told.stderr
        assert "Traceback" not in told.stderr


async def test_the_command_serves_until_it_is_asked_to_end(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
):
    async with proxied(tmp_path, monkeypatch, ["ok"]) as parts:
        app = Hookline(home=tmp_path / "other", workspace=tmp_path)
        serving = asyncio.create_task(run_proxy(app, TOKEN, 0))
        said = ""
        while "/v1" not in said:
            await asyncio.sleep(0.01)
            said += capsys.readouterr().err
        parts.url = said.split("is at ")[1].split("/v1")[0]
        assert (await ask(client_of(parts), [user("hello")], False))["content"] == "ok"
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
