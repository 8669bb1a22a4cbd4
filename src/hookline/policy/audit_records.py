"""Audit records: the decisions of an app, as records of the audit log.

A record says who decided what about which call, when and for whom. It contains the hash of the
arguments, never the arguments, and no reasons, which may quote them; `payloads` adds both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from hookline.errors import AuditError
from hookline.hooks import Decision, Ruling, Verdict
from hookline.hooks.observers import Dispatch

from .approvals import Grant, call_hash
from .audit import AuditLog

if TYPE_CHECKING:
    from .signature import Checkpoints

CALLERS = ("tool", "call_id", "session_id", "agent_id", "depth", "source", "channel", "chat", "user")
"""The fields of a record about a call, besides its hash."""
OF_THE_RUNNER = ("tool_call", "tool_result")
"""Gates whose rulings come with the call that they are about."""

Redact = Callable[[Any], Any]


class Auditor:
    """Writes the decisions of an app. If a decision on a call cannot be written, the call is denied."""

    def __init__(
        self,
        log: AuditLog,
        *,
        payloads: bool = False,
        redact: Redact | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.log = log
        self._checkpoints = checkpoints
        self.payloads = payloads
        self._redact = redact
        self._unwritten: list[dict[str, Any]] = []
        """Records that could not be written; they precede the next ones."""
        self._lock = Lock()

    async def decided(self, action: Mapping[str, Any], rulings: Sequence[Ruling], outcome: str) -> None:
        """A call was admitted or denied, or its result judged: one line with every ruling."""
        record: dict[str, Any] = {
            "kind": "result" if outcome in ("withheld", "rewritten") else "decision",
            "outcome": outcome,
            **{name: action[name] for name in CALLERS},
            "tool": self._shown(action["tool"]),  # a model can call a tool that does not exist
            "call_hash": call_hash(action["tool"], action["arguments"]),
            "rulings": self._told(rulings),
        }
        if "participants" in action:
            record["participants"] = action["participants"]
        requested = action.get("requested")
        if isinstance(requested, Mapping) and requested != action["arguments"]:
            record["requested_hash"] = call_hash(action["tool"], requested)  # pyright: ignore[reportUnknownArgumentType]
        if self.payloads:
            record["arguments"] = self._shown(dict(action["arguments"]))
        await asyncio.to_thread(self._write, record)

    def dispatched(self, dispatch: Dispatch) -> None:
        """Record a hook call in which a gate objected or changed something."""
        verdict = dispatch.value
        if not isinstance(verdict, Verdict) or dispatch.hook in OF_THE_RUNNER:
            return
        trail: list[Ruling] = verdict.trail
        rulings = [each for each in trail if each.changes or each.decision is not Decision.ALLOW]
        if not rulings:
            return
        outcome = {Decision.ALLOW: "rewritten", Decision.ASK: "asked", Decision.DENY: "denied"}
        record: dict[str, Any] = {
            "kind": "gate",
            "hook": dispatch.hook,
            "outcome": outcome[verdict.decision],
            "session_id": str(dispatch.key) if dispatch.key is not None else "",
            "rulings": self._told(rulings),
        }
        try:
            self._write(record)
        except AuditError:
            with self._lock:
                self._unwritten.append(record)
            raise

    def granted(self, what: str, grant: Grant) -> None:
        """A person allowed a call, or took that back."""
        self._write(
            {
                "kind": what,
                "outcome": "allowed" if what == "grant" else "denied",
                "grant": grant.id,
                "tool": grant.tool,
                "call_hash": grant.hash,
                "session_id": grant.session_id,
                "call_id": grant.call_id,
                "scope": grant.scope,
                "until": grant.until,
                "user": grant.by,
                **({"call": self._shown(grant.call)} if self.payloads else {}),
            }
        )

    def refused(self, record: Mapping[str, Any]) -> None:
        """Someone was refused before there was a call to decide on."""
        self._write({"kind": "access", "outcome": "denied", **record})

    def _write(self, record: dict[str, Any]) -> None:
        with self._lock:
            if self._checkpoints is not None:
                self._checkpoints.before_writing()
            lines = [*self._unwritten, record]
            head = self.log.append(lines)
            self._unwritten.clear()
        if self._checkpoints is not None:
            self._checkpoints.written(head, len(lines))

    def close(self) -> None:
        """Sign the log, if signatures are configured."""
        if self._checkpoints is not None:
            self._checkpoints.close()

    def _told(self, rulings: Iterable[Ruling]) -> list[dict[str, Any]]:
        return [self._ruling(each) for each in rulings]

    def _ruling(self, ruling: Ruling) -> dict[str, Any]:
        told: dict[str, Any] = {"by": ruling.by, "decision": ruling.decision.name.lower()}
        if ruling.changes:
            told["changed"] = sorted(ruling.changes)
        if ruling.error is not None:
            told["error"] = type(ruling.error).__name__
        if self.payloads and ruling.reason:
            told["reason"] = self._shown(ruling.reason)
        return told

    def _shown(self, value: Any) -> Any:
        return self._redact(value) if self._redact is not None else value
