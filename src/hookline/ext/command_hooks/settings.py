"""Settings: the `hooks` table of a file, read into `CommandHook`s; what is wrong is told by its place.

One bad entry leaves the others alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field

from hookline.config.validation import faults
from hookline.hooks.errors import suggestion
from hookline.sandbox.settings import Profile
from hookline.text.errors import PatternError

from .addresses import refusal
from .matcher import Matcher, ToolCondition

OnFailure: TypeAlias = Literal["allow", "deny"]

EVENTS = (
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart",
    "SessionEnd", "Stop", "SubagentStop", "PreCompact", "Notification",
)  # fmt: skip
"""The events that hooks run for."""

ELSEWHERE = frozenset({
    "ConfigChange", "CwdChanged", "Elicitation", "ElicitationResult", "FileChanged",
    "InstructionsLoaded", "PermissionDenied", "PermissionRequest", "PostCompact", "PostToolBatch",
    "Setup", "StopFailure", "SubagentStart", "TaskCompleted", "TaskCreated", "TeammateIdle",
    "UserPromptExpansion", "WorktreeCreate", "WorktreeRemove",
})  # fmt: skip
"""Events of the format that nothing fires here."""

TIMEOUT = 60.0
"""Seconds that a hook may take which says nothing else."""

_UNUSED = ("statusMessage", "once", "asyncRewake", "description")


class HookSetting(BaseModel):
    """One hook as it is written."""

    model_config = ConfigDict(strict=True, extra="ignore")

    type: Literal["command", "http"]
    command: str | None = Field(default=None, min_length=1)
    args: list[str] | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    allowed: list[str] | None = Field(default=None, alias="allowedEnvVars")
    files: list[str] | None = None
    """The project's files that it runs, where they cannot be told from the command."""
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    on_failure: OnFailure | None = None
    condition: str | None = Field(default=None, alias="if")
    background: bool = Field(default=False, alias="async")
    shell: Literal["bash"] | None = None
    sandbox: Profile | None = None
    """The profile that it runs in; by default `[sandbox] command_hooks`."""
    network: list[str] | None = None
    """The hosts that it may reach from the sandbox."""


class CommandHooksSettings(BaseModel):
    """`[hooks.commands]`: hooks of our own configuration, and what holds for all of them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    enabled: bool = True
    """False: no command hook runs, wherever it is written."""
    settings_files: bool = True
    """Whether `.claude/settings.json` is read."""
    on_failure: OnFailure = "allow"
    timeout: float = Field(default=TIMEOUT, gt=0, allow_inf_nan=False)
    PreToolUse: list[Any] = Field(default_factory=list)
    PostToolUse: list[Any] = Field(default_factory=list)
    PostToolUseFailure: list[Any] = Field(default_factory=list)
    UserPromptSubmit: list[Any] = Field(default_factory=list)
    SessionStart: list[Any] = Field(default_factory=list)
    SessionEnd: list[Any] = Field(default_factory=list)
    Stop: list[Any] = Field(default_factory=list)
    SubagentStop: list[Any] = Field(default_factory=list)
    PreCompact: list[Any] = Field(default_factory=list)
    Notification: list[Any] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CommandHook:
    """One program or address, and when it is asked."""

    event: str
    place: str
    """The file and the entry: `…/settings.json: hooks.PreToolUse[1].hooks[1]`."""
    line: int = field(default=0, kw_only=True)
    """The line of its command or address; 0 if that is not known."""
    matcher: Matcher = field(default_factory=Matcher)
    command: str = ""
    args: tuple[str, ...] | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    allowed: frozenset[str] | None = None
    timeout: float = TIMEOUT
    on_failure: OnFailure = "allow"
    condition: ToolCondition | None = None
    background: bool = False
    sandbox: Profile | None = None
    network: tuple[str, ...] | None = None
    obstacle: Callable[[], str] | None = field(default=None, compare=False)
    """For a project's hook: says right before each start what changed since it was trusted."""
    unclear: str = ""
    """For a project's hook: why its files cannot be told, so that it runs in the sandbox only."""

    @property
    def location(self) -> str:
        """Where it is written: `…/settings.json:12`."""
        return f"{self.place.rpartition(': ')[0]}:{self.line}" if self.line else self.place

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two hooks the same: it runs once for an event, however often it is named."""
        own = self.obstacle is None  # a project's hook does not take the place of the user's own
        confined = (self.sandbox, self.network, self.allowed)
        return (self.command, self.args, self.url, own, self.background, *confined)

    @property
    def denies(self) -> bool:
        """Whether its failure is a deny."""
        return self.on_failure == "deny"


@dataclass(slots=True)
class Table:
    """The hooks of one file, and what is wrong with the rest of it."""

    hooks: list[CommandHook] = field(default_factory=list[CommandHook])
    problems: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])


def read_table(
    events: Any,
    file: str,
    above: str = "hooks",
    *,
    on_failure: OnFailure = "allow",
    timeout: float = TIMEOUT,
) -> Table:
    """The hooks of a table of events; `above` is the name that the table has in its file."""
    table = Table()
    if not isinstance(events, Mapping):
        table.problems.append(f"{file}: {above} must be a table of events")
        return table
    for event, groups in cast("Mapping[str, Any]", events).items():
        at = f"{above}.{event}"
        if event in ELSEWHERE:
            table.warnings.append(f"{file}: {at}: nothing fires this event here, so it never runs")
        elif event not in EVENTS:
            table.problems.append(f"{file}: {at}: unknown event {event!r}{suggestion(event, EVENTS)}")
        else:
            reader = _EventReader(table, event, file, on_failure, timeout)
            table.hooks.extend(reader.groups(groups, at))
    return table


def with_lines(hooks: Iterable[CommandHook], text: str) -> list[CommandHook]:
    """The hooks of a file with the lines of their commands.

    Neither `json` nor `tomllib` tells positions, so each hook gets the first line that has its command
    or address and that no hook before it got.
    """
    lines, taken = text.splitlines(), set[int]()
    found: list[CommandHook] = []
    for hook in hooks:
        wanted = hook.command or hook.url
        spelled = (wanted, json.dumps(wanted)[1:-1], json.dumps(wanted, ensure_ascii=False)[1:-1])
        own = [at for at, line in enumerate(lines, 1) if any(each in line for each in spelled)]
        line = next((at for at in own if at not in taken), own[0] if own else 0)
        taken.add(line)
        found.append(replace(hook, line=line))
    return found


@dataclass(slots=True)
class _EventReader:
    """Reads what one event has."""

    table: Table
    event: str
    file: str
    on_failure: OnFailure
    timeout: float

    def wrong(self, at: str, text: str) -> None:
        self.table.problems.append(f"{self.file}: {at}: {text}")

    def groups(self, groups: Any, at: str) -> Iterator[CommandHook]:
        if not isinstance(groups, list):
            self.wrong(at, "must be a list")
            return
        for number, group in enumerate(cast("list[Any]", groups), 1):
            yield from self.group(group, f"{at}[{number}]")

    def group(self, group: Any, at: str) -> Iterator[CommandHook]:
        if not isinstance(group, Mapping):
            self.wrong(at, "must be a table with `hooks`, and a `matcher` if you like")
            return
        given = cast("Mapping[str, Any]", group)
        text, hooks = given.get("matcher", ""), given.get("hooks")
        if not isinstance(text, str):
            self.wrong(f"{at}.matcher", "must be a text")
            return
        try:
            matcher = Matcher(text)
        except PatternError as error:
            self.wrong(f"{at}.matcher", str(error))
            return
        if not isinstance(hooks, list):
            self.wrong(f"{at}.hooks", "must be a list of hooks")
            return
        for number, hook in enumerate(cast("list[Any]", hooks), 1):
            made = self.hook(hook, matcher, f"{at}.hooks[{number}]")
            if made is not None:
                yield made

    def hook(self, given: Any, matcher: Matcher, at: str) -> CommandHook | None:
        if not isinstance(given, Mapping):
            self.wrong(at, 'must be a table such as {"type": "command", "command": "check.sh"}')
            return None
        values = {k: v for k, v in cast("Mapping[str, Any]", given).items() if k not in _UNUSED}
        if values.get("type") in ("prompt", "agent", "mcp_tool"):
            self.wrong(f"{at}.type", f"hooks of type {values['type']!r} do not run here")
            return None
        found = faults(HookSetting, values, at)
        for fault in found:
            if "unknown key" in fault.text:
                self.table.warnings.append(f"{self.file}: {fault.dotted}: {fault.text}")
        if wrong := [fault for fault in found if "unknown key" not in fault.text]:
            for fault in wrong:
                self.wrong(fault.dotted, fault.text)
            return None
        return self.made(HookSetting.model_validate(values), matcher, at)

    def made(self, entry: HookSetting, matcher: Matcher, at: str) -> CommandHook | None:
        needed = "command" if entry.type == "command" else "url"
        if getattr(entry, needed) is None:
            self.wrong(f"{at}.{needed}", f"is missing: a hook of type {entry.type!r} has one")
            return None
        if entry.type == "command" and any(
            "\0" in word for word in (entry.command or "", *(entry.args or ()))
        ):
            self.wrong(f"{at}.command", "cannot contain a NUL character")
            return None
        if entry.type == "http" and (why := refusal(entry.url or "")):
            self.wrong(f"{at}.url", why)
            return None
        try:
            condition = ToolCondition(entry.condition) if entry.condition is not None else None
        except ValueError as error:
            self.wrong(f"{at}.if", str(error))
            return None
        is_command = entry.type == "command"
        return CommandHook(
            self.event,
            f"{self.file}: {at}",
            matcher,
            entry.command or "" if is_command else "",
            tuple(entry.args) if is_command and entry.args is not None else None,
            entry.url or "" if not is_command else "",
            entry.headers,
            frozenset(entry.allowed) if entry.allowed is not None else None,
            entry.timeout or self.timeout,
            entry.on_failure or self.on_failure,
            condition,
            entry.background,
            entry.sandbox,
            None if entry.network is None else tuple(entry.network),
        )
