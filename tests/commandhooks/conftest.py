"""Fixtures for command hooks: settings files, and scripts that note what they were given."""

import json
import stat
import sys
from pathlib import Path

import pytest

from hookline.plugins.project import project_items
from hookline.testing import RecordingChannel

RECORD = f"""#!{sys.executable}
import json, sys
with open({{path!r}}, "a") as file:
    file.write(json.dumps(json.load(sys.stdin)) + "\\n")
{{rest}}
"""


class Places:
    """Where hooks are written, and what they noted."""

    def __init__(self, app, folder: Path) -> None:
        self.app = app
        self.folder = folder
        self.user = folder / ".claude" / "settings.json"
        self.project = app.workspace / ".claude" / "settings.json"
        self.log = folder / "log.jsonl"

    def write(self, hooks: dict, path: Path | None = None, **more) -> Path:
        """Write a settings file, the user's by default."""
        path = path or self.user
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"hooks": hooks, **more}))
        return path

    def on(self, event: str, *commands: str, matcher: str = "", **more) -> Path:
        """One event in the user's settings, with a hook for each command."""
        hooks = [{"type": "command", "command": command, **more} for command in commands]
        return self.write({event: [{"matcher": matcher, "hooks": hooks}]})

    def script(self, name: str, text: str) -> str:
        """A script that can be run."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def recording(self, name: str = "record.py", rest: str = "") -> str:
        """A script that notes its payload, and then does the rest."""
        return self.script(name, RECORD.format(path=str(self.log), rest=rest))

    def noted(self) -> list[dict]:
        """The payloads, in their order."""
        return [json.loads(x) for x in self.log.read_text().splitlines()] if self.log.exists() else []

    def answering(self, event: str, answer: dict, **more) -> Path:
        """One hook that notes its payload and answers JSON."""
        return self.on(event, self.recording(rest=f"print({json.dumps(answer)!r})"), **more)

    def trust(self) -> None:
        """Trust the project as it is."""
        self.app.trust.grant(project_items(self.app.workspace))


@pytest.fixture(autouse=True)
def _unconfined(monkeypatch):
    """Scripts here write beside the workspace; `tests/security` has those in the sandbox."""
    monkeypatch.setenv("HOOKLINE_SANDBOX__ENABLED", "false")
    monkeypatch.setenv("HOOKLINE_SANDBOX__REQUIRED", "false")


@pytest.fixture
def places(app, tmp_path) -> Places:
    return Places(app, tmp_path)


@pytest.fixture
def said(app) -> list[str]:
    """What hooks tell the person."""
    app.channel = RecordingChannel()
    return app.channel.notes


@pytest.fixture
def results(app):
    """The results of tool calls, as the model sees them."""
    seen: list = []
    app.hooks.register("tool_execution_end", lambda event: seen.append(event.tool_result))
    return seen
