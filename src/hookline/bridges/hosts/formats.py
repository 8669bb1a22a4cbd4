"""The formats of hosts: JSON in, JSON and an exit code out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, cast

from hookline.errors import BadInput, HostPayloadError
from hookline.hooks.errors import suggestion
from hookline.text.foreign_json import parse_json

from .moment import BLOCKED, GATES, HookOutput, Judgement, Kind, Moment
from .tools import HostToolNames, text_of

LARGEST = 64_000_000
"""Bytes of a payload."""

HOSTS: Mapping[str, str] = {
    "claude-code": "claude:ClaudeCode",
    "codex": "claude:Codex",
    "gemini": "gemini:Gemini",
    "opencode": "scripted:OpenCode",
    "pi": "scripted:Pi",
}
"""The hosts, and the class of each."""


def format_of(host: str) -> HostFormat:
    """The format of a host, by its name."""
    if host not in HOSTS:
        known = ", ".join(HOSTS)
        raise BadInput(f"there is no host {host!r}{suggestion(host, HOSTS)}; the hosts are {known}")
    module, _, name = HOSTS[host].partition(":")
    return getattr(import_module(f"hookline.bridges.hosts.{module}"), name)()


class HostFormat:
    """How one host writes events and reads answers."""

    name: ClassVar[str]
    title: ClassVar[str]
    events: ClassVar[Mapping[str, Kind]]
    """The events of the host that are carried."""
    asks: ClassVar[bool] = False
    """Whether it can ask the person about a tool call."""
    rewrites_prompts: ClassVar[bool] = False
    """Whether a prompt can be replaced; others can only be told something in addition."""

    def __init__(self) -> None:
        self.tools = HostToolNames(self.name)

    def parse(self, payload: bytes) -> dict[str, Any]:
        """The payload as JSON; `HostPayloadError` if it is none."""
        if len(payload) > LARGEST:
            size = f"{len(payload):,} bytes, and {LARGEST:,} are the most"
            raise HostPayloadError(f"the payload of {self.title} has {size}")
        try:
            given: Any = parse_json(payload.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise HostPayloadError(f"the payload of {self.title} is not JSON: {error}") from None
        if not isinstance(given, dict):
            kind = type(given).__name__
            raise HostPayloadError(f"the payload of {self.title} is not an object, but {kind}")
        return cast("dict[str, Any]", given)

    def kind_of(self, given: Mapping[str, Any]) -> Kind:
        """What the payload is about."""
        event = self.event_of(given)
        if event not in self.events:
            raise HostPayloadError(
                f"{self.title} sent {event!r}, which is no event that Hookline carries"
                f"{suggestion(event, self.events)}"
            )
        return self.events[event]

    def event_of(self, given: Mapping[str, Any]) -> str:
        """The name of the event."""
        return self.string(given, "hook_event_name")

    def workspace_of(self, given: Mapping[str, Any]) -> Path:
        """The folder that the agent works in."""
        path = Path(self.string(given, "cwd"))
        if "\0" in str(path) or not path.is_absolute():
            raise HostPayloadError(f"cwd in the payload of {self.title} is not an absolute path")
        return path

    def read(self, given: dict[str, Any], workspace: Path) -> Moment:
        """The moment that a payload reports."""
        raise NotImplementedError

    def answer(self, moment: Moment, judgement: Judgement, workspace: Path) -> HookOutput:
        """A judgement as the host reads it."""
        raise NotImplementedError

    def failure(self, kind: Kind | None, reason: str) -> HookOutput:
        """The answer if there is no judgement: a no wherever there is a gate."""
        code = BLOCKED if kind is None or kind in GATES else 1
        return HookOutput(stderr=f"hookline: {reason}\n", code=code)

    # --- fields ---------------------------------------------------------------------------------

    def string(self, given: Mapping[str, Any], key: str, default: str | None = None) -> str:
        """A field that is text."""
        value = given.get(key)
        value = default if value is None else value
        if not isinstance(value, str):
            raise self._wrong(key, "text", value)
        return value

    def table(self, given: Mapping[str, Any], key: str) -> dict[str, Any]:
        """A field that is an object."""
        value = given.get(key)
        if not isinstance(value, dict):
            raise self._wrong(key, "an object", cast("Any", value))
        return cast("dict[str, Any]", value)

    def _wrong(self, key: str, kind: str, value: Any) -> HostPayloadError:
        found = "missing" if value is None else f"not {kind}"
        return HostPayloadError(f"{key} in the payload of {self.title} is {found}")

    def call(self, moment: Moment, tool: str, given: dict[str, Any], workspace: Path) -> None:
        """Put a tool call into a moment."""
        if not tool.strip():
            raise HostPayloadError(f"the payload of {self.title} names no tool")
        try:
            moment.tool, moment.arguments = self.tools.ours(tool, given, workspace)
        except (TypeError, ValueError) as error:
            raise HostPayloadError(
                f"the input of {tool} in the payload of {self.title} cannot be read: {error}"
            ) from None

    @staticmethod
    def result_text(result: Any) -> str:
        """A tool's result as text for handlers."""
        text = text_of(result)
        return json.dumps(result, ensure_ascii=False) if text is None else text


def printed(answer: dict[str, Any]) -> HookOutput:
    """An answer as JSON; an empty one is no output, which every host takes for a yes."""
    return HookOutput(json.dumps(answer) + "\n" if answer else "")
