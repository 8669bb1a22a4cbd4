"""Every error that Hookline raises on purpose.

Catch `HooklineError` to catch them all. The kernel's own errors are defined in `hookline.hooks.errors`,
those of an extension in its `errors.py`, and everything else here:

- HooklineError
  - BadInput
  - ConfigError
  - UnknownSession
  - ToolError (exit code 1)
    - ToolArgumentError
    - BadArgumentValue
    - SchemaTooLarge
    - UnknownTool
    - DuplicateTool
    - ToolRefused
  - ModelError (exit code 1)
    - UnknownModel (exit code 2)
    - ModelUnavailable (exit code 2)
    - BadSetting (exit code 2)
    - ScriptError (exit code 2)
    - ModelFailed
    - BadResponse
    - ContextOverflow
  - AgentError (exit code 1)
    - Blocked
      - Unjudged
    - CutOff
    - TooManyCalls
    - BadCompaction
    - OutputInvalid
    - LimitReached
    - Cancelled
  - AgentUsage
    - BridgeError
      - HostPayloadError
      - BadProxyRequest
      - ProviderRefused
  - NotRunning
  - SessionBusy
  - TapeError
    - BadEntry
    - BadLine
    - DuplicateEntry
    - SessionExists
    - UnknownEntry
    - TapeConflict
    - TapeClosed
    - TapeUnavailable
      - TapeUncertain
      - TapeReadOnly
      - TapeFull
      - TapeLocked
    - TapeDenied
    - TapeCorrupt
    - NotATape
    - TapeVersionMismatch
  - StoreError
    - StoreClosed
    - StoreUnavailable
      - StoreLocked
    - StoreDamaged
  - PolicyError
    - ApprovalError
  - AuditError
  - SandboxError
    - ConnectionDenied
  - PluginError
    - BadLockFile
  - UnpinnedImport
  - HookFileError
    - BadHookEntry
  - SourceError
    - Untrusted
  - TrustError
  - LoadFailed
  - GatewayError
    - GatewayStopping
  - DuplicateMessage
  - RequestRefused
  - TokenRevoked
  - TooManyRequests
  - TraceError
  - EvalError
  - ReplayError
    - UnknownRecording
  - Diverged (exit code 1)
  - ReplayStopped (exit code 1)

Three attributes say more than the message:

- `exit_code`: the status with which the command line exits. 2, the default, means that the command
  cannot run as given, and 1 (shown above) that a turn failed.
- `hook` and `plugin`: the hook and the plugin that the error is about, or None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hookline.hooks.errors import HooklineError, suggestion

_SHOWN = 20


# --- What the user wrote ---


class BadInput(HooklineError, ValueError):
    """A message, command, argument or file from the user that cannot be used."""


class ConfigError(HooklineError, ValueError):
    """A setting or a configuration file that cannot be used; the message names the place."""


class UnknownSession(HooklineError, LookupError):
    """A session that does not exist."""


# --- Tools ---


class ToolError(HooklineError):
    """A tool call failed; tools raise it to tell the model why."""

    exit_code = 1


class ToolArgumentError(ToolError, ValueError):
    """Arguments that do not fit the tool's schema: one line for each wrong field."""

    def __init__(self, tool: str, faults: Iterable[str]) -> None:
        self.tool = tool
        self.faults = tuple(faults)
        lines = "".join(f"\n  {fault}" for fault in self.faults[:_SHOWN])
        if len(self.faults) > _SHOWN:
            lines += f"\n  … and {len(self.faults) - _SHOWN:,} more"
        super().__init__(f"wrong arguments for the tool {tool!r}:{lines}")


class BadArgumentValue(ToolError, ValueError):
    """Arguments that are not JSON, or that exceed a limit."""


class SchemaTooLarge(ToolError, ValueError):
    """A JSON schema, or a validation by one, that takes more work than is accepted."""


class UnknownTool(ToolError, LookupError):
    """No registered tool has this name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        hint = suggestion(name, names) or _list(names)
        super().__init__(f"unknown tool {name!r}{hint}")
        self.name = name


class DuplicateTool(ToolError, ValueError):
    """Another tool has this name already."""


class ToolRefused(ToolError):
    """A gate denied the call; the model is given the message."""


def _list(names: list[str]) -> str:
    if not names:
        return "; there are no tools"
    shown = ", ".join(names[:20])
    return f"; there are: {shown}{' …' if len(names) > 20 else ''}"


# --- Models ---


class ModelError(HooklineError):
    """Something is wrong with a model."""

    exit_code = 1


class UnknownModel(ModelError, LookupError):
    """No model has this name."""

    exit_code = 2

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

    exit_code = 2


class BadSetting(ModelError, ValueError):
    """A setting of a model that has no meaning."""

    exit_code = 2


class ScriptError(ModelError, ValueError):
    """A script of a scripted model that cannot be played as it is written."""

    exit_code = 2


class ModelFailed(ModelError):
    """A model stopped early or refused. If `transient`, another attempt may succeed.

    `retry_after` is the number of seconds that the provider asked to wait, if it did.
    """

    def __init__(
        self, message: str, *, transient: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after


class BadResponse(ModelError):
    """A provider's response that its API does not allow."""


class ContextOverflow(ModelError):
    """The request is longer than the model's context window."""

    def __init__(self, message: str, *, needed: int | None = None, window: int | None = None) -> None:
        super().__init__(message)
        self.needed = needed
        self.window = window


# --- Turns ---


class AgentError(HooklineError):
    """A turn, a subagent or a compaction failed."""

    exit_code = 1


class Blocked(AgentError):
    """A gate blocked a model call, its result or the answer."""

    def __init__(self, what: str, reason: str | None, by: str | None) -> None:
        who = f" by {by}" if by else ""
        super().__init__(f"{what} was blocked{who}: {reason or 'no reason given'}")
        self.reason = reason
        self.by = by


class Unjudged(Blocked):
    """A model's stream broke off before gates had judged all of it."""

    def __init__(self) -> None:
        super().__init__("the model's answer", "it ended before all of it could be judged", None)


class CutOff(AgentError):
    """A model's stream ended before the answer was complete."""


class TooManyCalls(AgentError):
    """An answer whose tool calls exceed a limit; the message tells the model what to do."""


class BadCompaction(AgentError, ValueError):
    """A compaction that does not fit the context it is for."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the compaction does not fit: {problem}; nothing was changed")


class OutputInvalid(AgentError, ValueError):
    """An answer does not have the form that was asked for."""


class LimitReached(AgentError):
    """The agent used up its steps or its tokens."""


class Cancelled(AgentError):
    """The user stopped the turn."""


class AgentUsage(HooklineError, RuntimeError):
    """An agent is used in a way that cannot work; the message says what to do instead."""


class BridgeError(AgentUsage):
    """A bridge to another framework cannot be used like this."""


class HostPayloadError(BridgeError):
    """A host reports something that cannot be read, so that it is denied."""


class BadProxyRequest(BridgeError, ValueError):
    """A client of the proxy sent a request that cannot be understood or is not allowed."""

    def __init__(
        self, message: str, field: str = "", *, status: int = 400, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.field, self.status, self.code = field, status, code


class ProviderRefused(BridgeError):
    """The provider behind the proxy answered with an error, which the client gets as it is."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        super().__init__(f"the provider answered with status {status}")
        self.status, self.body, self.headers = status, body, headers


class NotRunning(HooklineError, RuntimeError):
    """The app was used outside `app.running()`."""


class SessionBusy(HooklineError, RuntimeError):
    """A session that must be idle for this is not."""

    def __init__(self, session_id: str, phase: str, what: str) -> None:
        doing = {"turn": "in the middle of a turn", "compaction": "being compacted"}.get(phase, phase)
        super().__init__(f"cannot {what}: session {session_id!r} is {doing}; wait for it, or cancel it")


class ChatInterrupted(Exception):
    """The user pressed Ctrl-C in the chat, or left it.

    Not KeyboardInterrupt: raised inside a task, that ends the whole event loop.
    """


# --- The tape ---


class TapeError(HooklineError):
    """Something is wrong with the tape."""


class BadEntry(TapeError, ValueError):
    """An entry that cannot be stored, or that is not on the branch or session it is needed on."""


class BadLine(TapeError, ValueError):
    """A line of a JSON Lines file that cannot be imported."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"line {number}: {problem}; nothing was imported")
        self.number = number


class DuplicateEntry(TapeError, ValueError):
    """An entry with this id is on the tape already."""

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"entry {entry_id!r} is on the tape already; nothing was appended")


class SessionExists(TapeError, ValueError):
    """A new or copied session has the id of another one."""


class UnknownEntry(TapeError, LookupError):
    """No entry has this id, or none of the session."""

    def __init__(
        self, entry_id: str, session_id: str | None = None, *, parent_of: str | None = None
    ) -> None:
        if parent_of is not None:
            super().__init__(
                f"entry {parent_of!r} has the parent {entry_id!r}, which is on no tape; "
                "append that first"
            )
            return
        where = "no tape of this store" if session_id is None else f"another tape than {session_id!r}'s"
        super().__init__(
            f"entry {entry_id!r} is on {where}; `hookline tape show SESSION` lists the ids"
        )


class TapeConflict(TapeError, RuntimeError):
    """Another writer appended to the session in the meantime."""

    def __init__(self, session_id: str, expected: str | None, leaf: str | None) -> None:
        super().__init__(
            f"session {session_id!r} was appended to by another writer (its leaf is {leaf!r}, not "
            f"{expected!r}); nothing was appended: refresh the tape and try again"
        )
        self.session_id = session_id


class TapeClosed(TapeError, RuntimeError):
    """The store was closed."""

    def __init__(self) -> None:
        super().__init__("the tape store was closed; open a new one")


class TapeUnavailable(TapeError, OSError):
    """The tape cannot be read or written now; another attempt may succeed."""


class TapeUncertain(TapeUnavailable):
    """The connection broke during an append: the entries may or may not have been stored."""


class TapeReadOnly(TapeUnavailable, PermissionError):
    """The tape cannot be written."""


class TapeFull(TapeUnavailable):
    """The disk is full."""


class TapeLocked(TapeUnavailable, TimeoutError):
    """Other writers held the tape for too long."""


class TapeDenied(TapeError, PermissionError):
    """The database does not admit this user, or not to do this."""


class TapeCorrupt(TapeError, ValueError):
    """The tape is damaged."""


class NotATape(TapeError, ValueError):
    """The file or database is not a tape, or keeps the tapes of another home."""


class TapeVersionMismatch(TapeError, ValueError):
    """The tape has the format of another version of Hookline."""


# --- Stores ---


class StoreError(HooklineError):
    """The root of every error of the stores."""


class StoreClosed(StoreError, RuntimeError):
    """The store was closed."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the store {path} was closed; ask for it again inside `app.running()`")


class StoreUnavailable(StoreError, OSError):
    """The file cannot be opened, read or written."""


class StoreLocked(StoreUnavailable, TimeoutError):
    """Another process held the file for too long."""


class StoreDamaged(StoreError, ValueError):
    """The file is damaged, or is something else."""


# --- Policy ---


class PolicyError(HooklineError, ValueError):
    """A policy, pack or setting that cannot be used; the message says where and why."""


class ApprovalError(PolicyError):
    """An approval that does not exist, or that was answered already."""


class AuditError(HooklineError):
    """The audit log cannot be written, or was tampered with."""


class SandboxError(HooklineError):
    """The sandbox is misconfigured, or a child process cannot start in it."""


class ConnectionDenied(SandboxError):
    """The proxy of the sandbox refused a connection."""


# --- Plugins ---


class PluginError(HooklineError, ValueError):
    """A plugin that cannot be loaded or found."""


class BadLockFile(PluginError):
    """The lock file cannot be read or written."""


class UnpinnedImport(HooklineError, ImportError):
    """A module whose content differs from the lock file."""


class HookFileError(HooklineError):
    """A hook file that cannot be used; the message starts with the file and, if known, the line."""


class BadHookEntry(HookFileError):
    """An entry of a hook file that cannot be used; the reader of the file adds the place."""


class SourceError(HooklineError):
    """A file that cannot be read, or must not be."""


class Untrusted(SourceError):
    """A project file that the user has not trusted in its present form."""


class TrustError(HooklineError):
    """The record of trusted files cannot be read or written."""


class LoadFailed(HooklineError):
    """A plugin or hook file that a run needs could not be loaded."""


# --- The gateway ---


class GatewayError(HooklineError, RuntimeError):
    """The gateway or one of its channels cannot start."""


class GatewayStopping(GatewayError):
    """A message arrived during shutdown and was not accepted."""


class DuplicateMessage(HooklineError, ValueError):
    """A message with this id was accepted before."""


class RequestRefused(HooklineError):
    """An HTTP request that is answered with an error status."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


class TokenRevoked(HooklineError):
    """The token that opened a connection is no longer valid."""


class TooManyRequests(HooklineError, RuntimeError):
    """A user exceeded the rate limit."""

    def __init__(self, seconds: float) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        super().__init__(f"too many requests; try again in {self.retry_after} s")


# --- Trace and replay ---


class TraceError(HooklineError):
    """The trace, or what it is asked about, is not there."""


class EvalError(HooklineError, ValueError):
    """An evaluation that cannot run as given; the message names the case and the field."""


class ReplayError(HooklineError, ValueError):
    """A replay that cannot run as given."""


class UnknownRecording(ReplayError, LookupError):
    """No tape has this session, call or entry."""

    def __init__(self, what: str, name: str, known: Iterable[str], look: str) -> None:
        super().__init__(f"there is no {what} {name!r}; {look}{suggestion(name, known)}")


class Diverged(HooklineError):
    """A replayed conversation left the recording."""

    exit_code = 1

    def __init__(self, why: str) -> None:
        super().__init__(f"diverged here; the recorded model has no answer: {why}")


class ReplayStopped(HooklineError):
    """A replay reached a tool that must not run again."""

    exit_code = 1
