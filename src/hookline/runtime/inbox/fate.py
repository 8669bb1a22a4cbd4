"""What the tape says of messages: whether they had their turns, and how far those came."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from hookline.tape import Entry, TapeStore
from hookline.tape.entry import INBOUND, MESSAGE, TURN

from .inbox import JOINED

Fate: TypeAlias = Literal["started", "completed", "failed", "cancelled", "noted", "steered"]
"""`started`: its turn began and has no end. `noted`: it got no turn, and that is on record. `steered`:
it joined a turn. The others: how its turn ended."""

_PAGE = 500
_SLACK = 86400.0
"""Seconds by which clocks may differ: the tape is read back that much further."""


async def fates_of(store: TapeStore, session_id: str, since: float) -> dict[str, Fate]:
    """What became of the messages of a session that were accepted since a time, by message id.

    A message that is not among them left nothing on the tape.
    """
    fates: dict[str, Fate] = {}
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
                continue
            fate: Fate = "noted" if entry.kind == INBOUND else "steered"
            if entry.kind == TURN:
                fate = ends.get(turn_id, "started")
            for place, message_id in enumerate(_messages(entry)):
                is_part = place > 0 and fate != "started"
                fates.setdefault(message_id, "steered" if is_part else fate)
        if len(entries) < _PAGE or entries[-1].time < since - _SLACK:
            return fates
        before = entries[-1].id


def _messages(entry: Entry) -> list[str]:
    """The ids of the messages that an entry stands for."""
    source: dict[str, Any] = (entry.meta if entry.kind == MESSAGE else entry.payload) or {}
    envelope: dict[str, Any] = source.get("envelope") or {}
    if not envelope.get("message_id"):
        return []
    return [str(envelope["message_id"]), *str(envelope.get(JOINED) or "").splitlines()]
