"""Every error that Hookline raises on purpose, but for those of the kernel and of extensions."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hookline.hooks import HooklineError
from hookline.hooks.errors import suggestion

_SHOWN = 20


class ToolError(HooklineError):
    """A tool call that cannot do what was asked; tools raise it to tell the model why."""


class ToolArgumentError(ToolError, ValueError):
    """Arguments that a tool does not take: one line for each wrong field."""

    def __init__(self, tool: str, faults: Iterable[str]) -> None:
        self.tool = tool
        self.faults = tuple(faults)
        lines = "".join(f"\n  {fault}" for fault in self.faults[:_SHOWN])
        if len(self.faults) > _SHOWN:
            lines += f"\n  … and {len(self.faults) - _SHOWN:,} more"
        super().__init__(f"wrong arguments for the tool {tool!r}:{lines}")


class ToolOutputError(ToolError, TypeError):
    """A tool returned something that has no form a model can read."""


class UnknownTool(ToolError, LookupError):
    """A name that no registered tool has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        hint = suggestion(name, names) or _list(names)
        super().__init__(f"unknown tool {name!r}{hint}")
        self.name = name


class DuplicateTool(HooklineError, ValueError):
    """A name that is already taken by another tool."""


def _list(names: list[str]) -> str:
    if not names:
        return "; there are no tools"
    shown = ", ".join(names[:20])
    return f"; there are: {shown}{' …' if len(names) > 20 else ''}"


class ModelError(HooklineError):
    """The root of the errors of models."""


class UnknownModel(ModelError, LookupError):
    """A name that stands for no model."""

    def __init__(self, name: str, known: Iterable[str], hint: str = "") -> None:
        known = list(known)
        nearest = suggestion(name, known)
        choice = nearest or (f"; there is {', '.join(map(repr, known))}" if known else "")
        super().__init__(f"unknown model {name!r}{hint or choice}")
        self.name = name


class ModelUnavailable(ModelError):
    """A model that exists but cannot be used here: not installed, or out of reach.

    The message says in at most three lines what to do.
    """


class ModelFailed(ModelError):
    """A model broke off or refused. When it is `transient`, trying again may help.

    `retry_after` is how many seconds the model asked to be left alone, if it said so.
    """

    def __init__(
        self, message: str, *, transient: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after


class ContextOverflow(ModelError):
    """The request is longer than the model can read."""

    def __init__(self, message: str, *, needed: int | None = None, window: int | None = None) -> None:
        super().__init__(message)
        self.needed = needed
        self.window = window


class ScriptError(ModelError, ValueError):
    """A script of a scripted model that cannot be played as it is written."""


class BadSetting(ModelError, ValueError):
    """A setting of a model that means nothing."""


class TapeError(HooklineError):
    """The root of every error of the tape."""


# --- What was asked for ---


class BadEntry(TapeError, ValueError):
    """An entry that cannot be stored as it is."""


class DuplicateEntry(TapeError, ValueError):
    """An entry whose id is on the tape already."""

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"entry {entry_id!r} is on the tape already; nothing was appended")


class UnknownEntry(TapeError, LookupError):
    """An id that no entry has, or none of the session asked."""

    def __init__(self, entry_id: str, session_id: str | None = None) -> None:
        where = "no tape of this store" if session_id is None else f"another tape than {session_id!r}'s"
        super().__init__(
            f"entry {entry_id!r} is on {where}; `hookline tape show SESSION` lists the ids"
        )


class UnknownParent(TapeError, LookupError):
    """An entry whose parent is on no tape."""

    def __init__(self, entry_id: str, parent_id: str) -> None:
        super().__init__(
            f"entry {entry_id!r} has the parent {parent_id!r}, which is on no tape; append that first"
        )


class ForeignEntry(TapeError, ValueError):
    """An entry of another session, where one of this session's own branches is needed."""


class SessionExists(TapeError, ValueError):
    """A new session was to have the id of one that exists."""


class TapeConflict(TapeError, RuntimeError):
    """Another writer appended to the session in the meantime."""

    def __init__(self, session_id: str, expected: str | None, leaf: str | None) -> None:
        super().__init__(
            f"session {session_id!r} was appended to by another writer (its leaf is {leaf!r}, not "
            f"{expected!r}); nothing was appended: refresh the tape and try again"
        )
        self.session_id = session_id


class BadLine(TapeError, ValueError):
    """A line of a JSON Lines file that cannot be imported."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"line {number}: {problem}; nothing was imported")
        self.number = number


# --- Where it is kept ---


class TapeClosed(TapeError, RuntimeError):
    """The store was closed."""

    def __init__(self) -> None:
        super().__init__("the tape store was closed; open a new one")


class TapeUnavailable(TapeError, OSError):
    """The file cannot be opened or read."""


class TapeReadOnly(TapeError, PermissionError):
    """The file cannot be written."""


class TapeFull(TapeError, OSError):
    """There is no room for what was to be written."""


class TapeLocked(TapeError, TimeoutError):
    """Another process held the file for too long."""


class TapeCorrupt(TapeError, ValueError):
    """The file is damaged."""


class NotATape(TapeError, ValueError):
    """The file is something else."""


class TapeTooNew(TapeError, ValueError):
    """The file was written by a newer version."""


class TapeTooOld(TapeError, ValueError):
    """The database was made by an older version, and nobody allowed bringing it up to date."""


class TapeDenied(TapeError, PermissionError):
    """The database does not let this user in, or not do this."""


class TapeUncertain(TapeUnavailable):
    """The database went away during an append: whether the entries were kept is not known."""


class BadSchema(TapeError, ValueError):
    """A name that a schema of a database cannot have."""

    def __init__(self, schema: str) -> None:
        super().__init__(
            f"{schema!r} cannot be the schema of a tape; use small letters, digits and underscores, "
            "such as 'hookline'"
        )


class ForeignHome(TapeError, ValueError):
    """The database keeps the tapes of another home."""


class AgentError(HooklineError):
    """The root of the errors of an agent's run."""


class AgentUsage(HooklineError, RuntimeError):
    """An agent is used in a way that cannot work; the message says what to do instead."""


class OutputInvalid(AgentError, ValueError):
    """An answer does not have the form that was asked for."""


class Blocked(AgentError):
    """A gate blocked a model call, its result or the answer."""

    def __init__(self, what: str, reason: str | None, by: str | None) -> None:
        who = f" by {by}" if by else ""
        super().__init__(f"{what} was blocked{who}: {reason or 'no reason given'}")
        self.reason = reason
        self.by = by


class CutOff(AgentError):
    """A model's stream ended before the answer was complete."""


class TooManyCalls(AgentError):
    """A model's answer whose tool calls exceed a limit; the message tells the model what to do."""


class Unjudged(Blocked):
    """A model's stream broke off after a part of it was judged: the rest never will be."""

    def __init__(self) -> None:
        super().__init__("the model's answer", "it ended before all of it could be judged", None)


class BadCompaction(AgentError, ValueError):
    """A compaction that does not fit the context it is for."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the compaction does not fit: {problem}; nothing was changed")


class StepLimit(AgentError):
    """The agent made as many model turns as it may."""


class BudgetSpent(AgentError):
    """The agent used up what it may use."""


class Cancelled(AgentError):
    """A person stopped the turn."""


class PolicyError(HooklineError, ValueError):
    """A policy, pack or setting that cannot be used; the message says where and why."""


class ApprovalError(PolicyError):
    """An approval that cannot be kept, found or given any more."""


class UnknownPack(PolicyError, LookupError):
    """A name that no pack has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        hint = suggestion(name, names) or f"; there are: {', '.join(names)}"
        super().__init__(f"unknown policy pack {name!r}{hint} (a folder is written as './my-pack')")
        self.name = name


class ConfigError(HooklineError, ValueError):
    """A setting or a file of settings that cannot be used; the message says where it is."""


class MissingVariable(ConfigError):
    """A `${VAR}` whose variable is not set."""

    def __init__(self, variable: str, where: str = "") -> None:
        place = f" ({where})" if where else ""
        super().__init__(
            f"the environment variable {variable} is not set, and the configuration refers to it "
            f"as ${{{variable}}}{place}: set it, or write the value itself"
        )
        self.variable = variable


class UnknownProfile(ConfigError):
    """A profile that nobody made."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        known = list(known)
        there = f"there is {', '.join(known)}" if known else "there is none but the default"
        super().__init__(
            f"unknown profile {name!r}{suggestion(name, known)}\n{there}; "
            f"make it: hookline config set --profile {name} model MODEL"
        )
        self.name = name


class PluginError(HooklineError, ValueError):
    """A plugin that cannot be loaded as it is."""


class BadManifest(PluginError):
    """A manifest that cannot be read, or that does not fit this release."""


class PluginClash(PluginError):
    """Two plugins want the same thing."""


class BadRequirement(PluginError):
    """A plugin asks for another that is not there, or that asks for it in turn."""


class UnknownPlugin(PluginError):
    """A name that no plugin has."""


class SandboxError(HooklineError):
    """The sandbox is misconfigured, or a child cannot be started in it."""


class ReplayError(HooklineError, ValueError):
    """A replay that cannot be made as it was asked for."""


class UnknownRecording(ReplayError, LookupError):
    """A session or an entry that is on no tape."""

    def __init__(self, what: str, name: str, known: Iterable[str], look: str) -> None:
        super().__init__(f"there is no {what} {name!r}; {look}{suggestion(name, known)}")


class Diverged(HooklineError):
    """The conversation went where the record has no answer."""

    def __init__(self, why: str) -> None:
        super().__init__(f"diverged here; the recorded model has no answer: {why}")


class ReplayStopped(HooklineError):
    """A tool that must not be replayed was reached."""


class TraceError(HooklineError):
    """Something was asked of the trace, or of what it is about, that is not there."""


class OtelNotInstalled(TraceError):
    """Spans were asked for, and the library that sends them is not there."""


class AlreadyAccepted(HooklineError, ValueError):
    """A message has the id of one that was accepted before."""


class AttachmentError(HooklineError, ValueError):
    """A file that a message names and that cannot go with it."""


class AuditError(HooklineError):
    """The audit log cannot be written, or does not fit together."""


class BadArguments(HooklineError, ValueError):
    """A tool's arguments that cannot be read."""


class BadCommand(HooklineError, ValueError):
    """A command that is unknown, or that a plugin described wrongly."""


class BadFrame(HooklineError, ValueError):
    """A frame that cannot be understood."""


class BadInput(HooklineError, ValueError):
    """Something on the command line or on standard input cannot be used."""


class BadLockFile(PluginError):
    """The lock file cannot be read or written."""


class BadTable(HooklineError, ValueError):
    """A decision table that cannot be read."""


class BadArgumentValue(ToolError, ValueError):
    """Arguments that are not JSON, or exceed a limit."""


class CannotListen(HooklineError, OSError):
    """The address is taken, or not this machine's."""


class ChannelFailed(HooklineError, RuntimeError):
    """A channel could not be made or started."""


class CopyRefused(TapeError, ValueError):
    """The other store has something else under the same name."""


class GatewayStopping(HooklineError, RuntimeError):
    """A message came while the gateway was going down; it was not accepted."""


class HookFileError(HooklineError):
    """A hook file that cannot be used; the message starts with the file and, where known, the line."""


class IdInUse(HooklineError, ValueError):
    """A message has the id of one that is still being answered."""


class LoadFailed(HooklineError):
    """Something that should take part in a run is missing."""


class NotAStore(TapeError, TypeError):
    """What `provide_tape_store` gave lacks methods of a store."""


class NotClustered(HooklineError, RuntimeError):
    """A worker was started where there is no cluster."""


class NotRunning(HooklineError, RuntimeError):
    """Something was asked of the app outside its running scope."""


class NotText(HooklineError, ValueError):
    """A line of standard input that is not UTF-8."""


class PluginChanged(PluginError):
    """A plugin is not what the lock file says."""


class PluginNotLocked(PluginError):
    """A plugin is not in the lock file, and the settings require that."""


class SourceError(HooklineError):
    """A file that cannot be read, or may not be."""


class TokenError(HooklineError, ValueError):
    """A token that protects nothing, or a file that cannot hold one."""


class TooManyRequests(HooklineError, RuntimeError):
    """A user asks too often."""

    def __init__(self, seconds: float) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        super().__init__(f"too many requests; try again in {self.retry_after} s")


class ToolRefused(HooklineError):
    """A call that a gate denied; the message is what the model is told."""


class TrustError(HooklineError):
    """The record of what is trusted cannot be read or written."""


class TurnFailed(HooklineError, RuntimeError):
    """The turn of a message failed in a worker."""


class Undelegated(AgentError):
    """A task that cannot be given to a subagent."""


class UnknownChannel(HooklineError, LookupError):
    """A channel was enabled that nobody provides."""


class UnknownSession(HooklineError, LookupError):
    """A session that is not there."""


class UnsafeBinding(HooklineError, ValueError):
    """The gateway would be open to the network without a token."""


class UnsafeHome(HooklineError):
    """A home that another user owns, or can write to."""


class Untrusted(SourceError):
    """A file of a project that was not trusted as it is."""
