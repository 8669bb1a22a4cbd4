"""Telegram in a process of its own: what is missing is named, and a killed gateway loses nothing."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from .. import commandline, forks
from .botapi import ADA, TOKEN, BotApi

SECTION = '[channels.telegram]\ntoken = "${TELEGRAM_TOKEN}"\n'
ASKED = ("gateway", "--enable-channel", "telegram")
WITHOUT = "import sys; sys.modules['telegram'] = None; from hookline.cli import main; main()"


def environment(home, **more):
    inherited = {name: value for name, value in os.environ.items() if name != "TELEGRAM_TOKEN"}
    return {**inherited, "HOOKLINE_HOME": str(home), **more}


def hookline(tmp_path, *arguments, config="", code=forks.MAIN, **more):
    (tmp_path / "config.toml").write_text(config)
    return forks.run(code, *arguments, env=environment(tmp_path, **more), cwd=tmp_path)


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """`hookline` in this process."""
    monkeypatch.delenv("TELEGRAM_TOKEN", raising=False)
    return commandline.here(tmp_path, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("config", "more", "said"),
    [
        ("", {}, "channels.telegram.token: is missing"),
        (SECTION, {}, "TELEGRAM_TOKEN"),
        (SECTION, {"TELEGRAM_TOKEN": "abc"}, "no bot's token"),
        (SECTION + "alow = [1]", {"TELEGRAM_TOKEN": TOKEN}, "did you mean 'allow'"),
    ],
)
def test_what_is_missing_is_told_in_a_line(tmp_path, here, config, more, said):
    (tmp_path / "config.toml").write_text(config)
    told(said, here(*ASKED, **more))


def test_a_missing_library_is_told_in_a_line(tmp_path):
    done = hookline(tmp_path, *ASKED, config=SECTION, code=WITHOUT, TELEGRAM_TOKEN=TOKEN)
    told("pip install 'hookline[telegram]'", done)


def told(said, done):
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert TOKEN not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ({}, forks.MAIN, "TELEGRAM_TOKEN"),
        ({"TELEGRAM_TOKEN": TOKEN}, WITHOUT, "pip install 'hookline[telegram]'"),
    ],
)
def test_doctor_names_a_missing_token_and_a_missing_library(tmp_path, more, code, said):
    done = hookline(tmp_path, "doctor", config=SECTION, code=code, **more)
    assert done.returncode == 1, done.stdout + done.stderr
    assert any("channels" in line and said in line for line in done.stdout.splitlines()), done.stdout


def test_doctor_names_the_channels_and_never_the_token(tmp_path, here):
    (tmp_path / "config.toml").write_text(SECTION)
    done = here("doctor", TELEGRAM_TOKEN=TOKEN)
    assert "web, openai, telegram" in done.stdout
    (tmp_path / "config.toml").write_text(f'[channels.telegram]\ntoken = "{TOKEN}"\n')
    shown = here("config", "show")
    assert "channels.telegram.token" in shown.stdout
    assert TOKEN not in done.stdout + done.stderr + shown.stdout + shown.stderr


def test_a_gateway_without_the_channel_imports_nothing_of_it(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from hookline.runtime.app import Hookline; from hookline.serve import Gateway\n"
        "import hookline.serve.server\n"
        "app = Hookline(home=Path('.')); app.load_hooks()\n"
        "print(*Gateway(app).channels)\n"
        "print(*[m for m in sys.modules if m == 'telegram' or 'gateway.telegram' in m])\n"
    )
    (tmp_path / "config.toml").write_text(f"{SECTION}enabled = false\n")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["web openai", ""], done.stderr


@asynccontextmanager
async def gateway(tmp_path, script):
    (tmp_path / "script.toml").write_text(script)
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    with (tmp_path / "log.txt").open("a") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hookline", "gateway", "--enable-channel", "telegram"),
            *("--model", f"scripted:{tmp_path / 'script.toml'}"),
            cwd=work,
            env=environment(tmp_path, TELEGRAM_TOKEN=TOKEN, HOOKLINE_POLICY__DEFAULT="allow"),
            stderr=errors,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_gateway_that_is_killed_loses_nothing_and_says_nothing_twice(tmp_path):
    slow = """
[[turns]]
tool_calls = [{ name = "shell", arguments = { command = "echo once >> ran.txt" } }]
[[turns]]
text = "never"
wait = 600
"""
    quick = (
        '[[turns]]\ntext = "Answer 1."\n[[turns]]\ntext = "Answer 2."\n[[turns]]\ntext = "Answer 3."\n'
    )
    async with BotApi().serving() as telegram:
        config = f'{SECTION}api = "{telegram.url}"\nallow = [{ADA}]\npoll_seconds = 1\n'
        (tmp_path / "config.toml").write_text(config)
        async with gateway(tmp_path, slow) as process:
            await telegram.say("one")
            second = await telegram.say("two")
            await telegram.until(
                lambda: telegram.confirmed >= second and (tmp_path / "work/ran.txt").exists()
            )
            process.send_signal(signal.SIGKILL)
            await process.wait()
        await telegram.say("three")
        async with gateway(tmp_path, quick) as process:
            await telegram.until_said("Answer 3.")
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        assert telegram.texts() == ["Answer 1.", "Answer 2.", "Answer 3."]
    assert (tmp_path / "work/ran.txt").read_text() == "once\n"
    assert TOKEN not in (tmp_path / "log.txt").read_text()
