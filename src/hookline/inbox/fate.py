"""What the tape says of a message: whether it had its turn, and how far that came."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from hookline.agent.journal import INBOUND, MESSAGE, TURN
from hookline.catalog.envelope import Envelope, field_of
from hookline.tape import Entry, TapeStore

from .inbox import JOINED

Fate: TypeAlias = Literal["new", "started", "completed", "failed", "cancelled", "noted", "steered"]
"""`new`: nothing is on the tape. `started`: its turn began and has no end. `noted`: it got no turn, and
that is on record. `steered`: it joined a turn. The others: how its turn ended."""

_PAGE = 200
_SLACK = 3600.0
"""Seconds by which clocks may differ: the tape is read back that far before a message was accepted."""


async def fate_of(store: TapeStore, session_id: str, message: Envelope, accepted: float) -> Fate:
    """What became of a message that was accepted at a time, as far as the tape knows."""
    message_id = str(field_of(message, "message_id") or "")
    ends: dict[str, Fate] = {}
    before: str | None = None
    while True:
        entries = await store.entries(
            session_id,
            kinds={TURN, INBOUND, MESSAGE},
            before=before,
            limit=_PAGE,
            newest_first=True,
        )
        for entry in entries:
            turn_id = entry.payload.get("turn_id", "")
            if entry.kind == TURN and entry.payload["status"] != "started":
                ends[turn_id] = entry.payload["status"]
            elif message_id in _messages(entry):
                if entry.kind == TURN:
                    return ends.get(turn_id, "started")
                return "noted" if entry.kind == INBOUND else "steered"
        if len(entries) < _PAGE or entries[-1].time < accepted - _SLACK:
            return "new"
        before = entries[-1].id


def _messages(entry: Entry) -> list[str]:
    """The ids of the messages that an entry stands for."""
    source: Any = entry.meta if entry.kind == MESSAGE else entry.payload
    envelope: dict[str, Any] = (source or {}).get("envelope") or {}
    if not envelope.get("message_id"):
        return []
    return [str(envelope["message_id"]), *str(envelope.get(JOINED) or "").splitlines()]
