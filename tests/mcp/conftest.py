"""An app with servers, calls through its one runner, and a look at what is still running."""

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hookline.runtime.app import Hookline
from hookline.tools.runner import Requested, ToolCaller
from hookline.types import Identity

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _unconfined(monkeypatch):
    """Servers here write beside the workspace; `tests/security` has those in the sandbox."""
    monkeypatch.setenv("HOOKLINE_SANDBOX__ENABLED", "false")
    monkeypatch.setenv("HOOKLINE_SANDBOX__REQUIRED", "false")


class Kept:
    """A journal that keeps nothing."""

    async def tool_call(self, call, requested, rulings):
        pass

    async def tool_result(self, result, *, ran, terminate, rulings):
        pass


def table(name: str, **settings) -> str:
    """A server's table in TOML."""
    lines = [f"{key} = {_toml(value)}" for key, value in settings.items()]
    return "\n".join([f"[mcp.servers.{name}]", *lines, ""])


def _toml(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def python(*args, **more) -> dict:
    """The settings of a server that is a Python program."""
    return {"command": sys.executable, "args": [str(arg) for arg in args], **more}


class Servers:
    """Makes apps with servers in their configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.workspace = folder / "home", folder / "work"
        self.home.mkdir()
        self.workspace.mkdir()
        self.record = folder / "record"

    def write(self, **servers) -> None:
        text = "".join(table(name, **settings) for name, settings in servers.items())
        (self.home / "config.toml").write_text('[policy]\ndefault = "allow"\n' + text)

    def project(self, text: str) -> Path:
        path = self.workspace / ".hookline" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def hostile(self, *options, **more) -> dict:
        return python(HERE / "hostile.py", self.record, *options, **more)

    def recorded(self, word: str) -> list[str]:
        if not self.record.exists():
            return []
        lines = self.record.read_text().splitlines()
        return [line.removeprefix(word).strip() for line in lines if line.startswith(word)]

    def app(self, **options) -> Hookline:
        app = Hookline(home=self.home, workspace=self.workspace, **options)
        app.load_hooks(packages=False)
        return app

    @asynccontextmanager
    async def running(self, app: Hookline | None = None, **servers):
        """An app whose servers are connected, or cannot be."""
        if servers:
            self.write(**servers)
        app = app or self.app()
        async with app.running():
            await app.hooks.pm.get_plugin("mcp").ready()
            yield app


@pytest.fixture
def servers(tmp_path) -> Servers:
    return Servers(tmp_path)


async def call(app, name, **arguments):
    """Call a tool as a model does."""
    caller = ToolCaller(app.context("s"), Kept(), app.workspace, identity=Identity(channel="terminal"))
    return await app.runner.run(Requested("c1", name, arguments), caller)


def brought(app) -> list[str]:
    return [tool.name for tool in app.tools if "mcp" in tool.spec.tags]


def alive(pid) -> bool:
    """Whether a process runs; one that is dead and not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def service():
    """A server over HTTP on loopback: where it is, and its process."""
    started = []

    def start(port: int = 0):
        process = subprocess.Popen(
            [sys.executable, HERE / "service.py", str(port)],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        started.append(process)
        return int(process.stdout.readline()), process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
