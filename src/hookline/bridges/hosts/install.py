"""Where hosts keep their hooks, and how ours get there and away again.

Installing is shown as a diff first. What is kept of it in the home makes the undoing exact, unless the
file was changed in between; then only our own entries are taken out.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from hookline.errors import BadInput
from hookline.system import hook_client
from hookline.system.home import user_home
from hookline.system.private_files import private_folder, replaced
from hookline.text.line_diff import line_diff

from .formats import HOSTS, format_of
from .json_text import JsonText
from .moment import GATES

Scope: TypeAlias = Literal["user", "project"]
SECONDS = 600
"""What hosts are told to wait: more than the client takes."""
CLIENT = "hookline/system/hook_client.py"
"""What our entries are known by."""
PROJECT = {
    "claude-code": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".opencode/plugins/hookline.ts",
    "pi": ".pi/extensions/hookline.ts",
}
"""Where each host looks in a project."""
USER = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
    "codex": ("CODEX_HOME", ".codex", "hooks.json"),
    "gemini": ("GEMINI_CLI_HOME", "", ".gemini/settings.json"),
    "opencode": ("XDG_CONFIG_HOME", ".config", "opencode/plugins/hookline.ts"),
    "pi": ("PI_CODING_AGENT_DIR", ".pi/agent", "extensions/hookline.ts"),
}
"""Where each host looks for the user's: a variable, what it names by default, and the place in it."""
SCRIPTS = {"opencode": "opencode.ts", "pi": "pi.ts"}


@dataclass(frozen=True, slots=True)
class HostSettings:
    """The file of a host that holds hooks, for the user or for one project."""

    host: str
    scope: Scope
    path: Path
    root: Path
    """A folder above it that is not ours to remove."""

    def read(self) -> str | None:
        """The text of the file; None if there is none."""
        try:
            return self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.path} cannot be read: {error}") from None

    def is_installed(self) -> bool:
        """Whether our hooks are in it."""
        text = self.read()
        return text is not None and CLIENT in text

    def with_hooks(self, text: str | None) -> str:
        """The text with our hooks."""
        if self.host in SCRIPTS:
            return script(self.host)
        found = JsonText(text or "", str(self.path))
        for event, entry in entries(self.host):
            found = found.with_item(("hooks", event), entry)
        return found.text

    def without_hooks(self, text: str) -> str | None:
        """The text without our hooks; None if nothing else is left of the file."""
        if self.host in SCRIPTS:
            return None
        found = JsonText(text, str(self.path))
        for event in format_of(self.host).events:
            found = found.without_items(("hooks", event), is_ours)
        return found.text


def settings_of(host: str, scope: Scope, project: Path) -> HostSettings:
    """The file of a host."""
    format_of(host)
    if scope == "project":
        return HostSettings(host, scope, project / PROJECT[host], project)
    home = user_home() or Path("/")
    variable, folder, place = USER[host]
    given = os.environ.get(variable)
    root = Path(given) if given else home
    return HostSettings(host, scope, root / place if given else root / folder / place, root)


def everywhere(project: Path) -> Iterator[HostSettings]:
    """The files of all hosts."""
    for host in HOSTS:
        yield settings_of(host, "user", project)
        yield settings_of(host, "project", project)


# --- what is written --------------------------------------------------------------------------------


def words(host: str) -> list[str]:
    """The command that a host runs for each event."""
    return [sys.executable, "-I", "-S", str(Path(hook_client.__file__).resolve()), host]


def command(host: str, *, is_gate: bool) -> str:
    """The same for a shell. A gate also denies if the command itself cannot be started."""
    home = os.environ.get("HOOKLINE_HOME")
    setting = f"HOOKLINE_HOME={shlex.quote(home)} " if home else ""
    return setting + shlex.join(words(host)) + (" || exit 2" if is_gate else "")


def entries(host: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a host, each with the entry for it."""
    for event, kind in format_of(host).events.items():
        hook: dict[str, Any] = {
            "type": "command",
            "command": command(host, is_gate=kind in GATES),
            "timeout": SECONDS * 1000 if host == "gemini" else SECONDS,
        }
        if host == "codex" and event == "SessionEnd":
            hook["timeout"] = 3  # the longest that Codex allows
        if host == "gemini":
            hook["name"] = "hookline"
        yield event, {"hooks": [hook]}


def is_ours(entry: Any) -> bool:
    """Whether an entry of a list of hooks is one that was installed."""
    if not isinstance(entry, dict):
        return False
    hooks = cast("dict[str, Any]", entry).get("hooks")
    found = cast("list[Any]", hooks) if isinstance(hooks, list) else []
    commands = [cast("dict[str, Any]", each).get("command") for each in found if isinstance(each, dict)]
    return len(found) == 1 and any(isinstance(c, str) and CLIENT in c for c in commands)


def script(host: str) -> str:
    """The extension of a host that takes scripts."""
    written = Path(__file__).with_name(SCRIPTS[host]).read_text(encoding="utf-8")
    home = os.environ.get("HOOKLINE_HOME")
    env = {"HOOKLINE_HOME": home} if home else {}
    common = Path(__file__).with_name("judge.ts").read_text(encoding="utf-8")
    common = common.replace('["COMMAND"]', json.dumps(words(host))).replace(
        '{"ENV": ""}', json.dumps(env)
    )
    return written.replace("// JUDGE\n", common)


# --- changing files ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A file as it is and as it would be; None: no file."""

    settings: HostSettings
    before: str | None
    after: str | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        return self.before == self.after

    @property
    def diff(self) -> str:
        """The change for a person to read."""
        path = str(self.settings.path)
        old, new = (self.before or "").splitlines(), (self.after or "").splitlines()
        return "\n".join(line_diff(old, new, (path, path), end=""))

    def apply(self) -> None:
        """Write the file, whole or not at all."""
        path = self.settings.path
        if self.after is None:
            path.unlink(missing_ok=True)
            with suppress(OSError):
                for folder in path.parents:
                    if not folder.is_relative_to(self.settings.root) or folder == self.settings.root:
                        break
                    folder.rmdir()  # raises for one that is not empty
            return
        target = path.resolve()  # a link to the file in a repository of settings stays one
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced(target) as part:
            part.write_bytes(self.after.encode("utf-8"))
            part.chmod(mode)


class InstallRecord:
    """What was in the files of hosts before ours."""

    def __init__(self, home: Path) -> None:
        self._path = home / "hook" / "installed.json"

    def _read(self) -> dict[str, Any]:
        try:
            found: Any = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def original(self, settings: HostSettings, text: str | None) -> tuple[bool, str | None]:
        """Whether a file is as we left it, and its text before that."""
        kept = self._read().get(str(settings.path))
        if kept is None or kept.get("after") != text:
            return False, None
        return True, kept.get("before")

    def keep(self, change: SettingsChange) -> None:
        """Remember a change, or that there is none any more."""
        kept = self._read()
        kept.pop(str(change.settings.path), None)
        if change.after is not None and CLIENT in change.after:
            kept[str(change.settings.path)] = {"before": change.before, "after": change.after}
        private_folder(self._path.parent)
        with replaced(self._path) as part:
            part.write_text(json.dumps(kept), encoding="utf-8")


def installation(settings: HostSettings, record: InstallRecord) -> tuple[SettingsChange, str | None]:
    """What installing changes, and the text without our hooks, which uninstalling goes back to."""
    before = settings.read()
    known, base = record.original(settings, before)
    if not known:
        base = before if before is None or CLIENT not in before else settings.without_hooks(before)
    return SettingsChange(settings, before, settings.with_hooks(base)), base


def removal(settings: HostSettings, record: InstallRecord) -> SettingsChange:
    """What uninstalling changes."""
    before = settings.read()
    known, original = record.original(settings, before)
    if known:
        return SettingsChange(settings, before, original)
    if before is None or CLIENT not in before:
        return SettingsChange(settings, before, before)
    return SettingsChange(settings, before, settings.without_hooks(before))
