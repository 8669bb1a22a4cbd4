"""The outcome of an earlier message: how its turn ended, for a sender who was not told yet."""

from __future__ import annotations

from typing import Any, cast

from hookline.agent.journal import TapeJournal, cut_off_turn
from hookline.channel import Channel, finished
from hookline.runtime.inbox import key_of, keys_of
from hookline.runtime.turn import Outcome, TurnResult, echo, with_delivery_ids
from hookline.tape import Entry, Tape, TapeStore
from hookline.tape.entry import MESSAGE, TURN
from hookline.types import Envelope, StreamEvent, field_of

_LOOK_BACK = 1000
_OUTCOMES: dict[str, Outcome] = {
    "completed": "answered",
    "cancelled": "cancelled",
    "noted": "handled",
    "steered": "steered",
    "answered": "answered",  # an outcome never changes
}


def outcome_of(fate: str) -> str:
    """The outcome of a message whose turn ended like this."""
    return _OUTCOMES.get(fate, fate)


async def ending_of(
    channel: Channel, store: TapeStore, session_id: str, message: Envelope, fate: str
) -> None:
    """Tell a channel how a message ended that only the tape knows about."""
    entries = await _turn_of(store, session_id, message)
    if fate == "failed":
        ended = [e for e in entries if e.kind == TURN and e.payload["status"] == "failed"]
        why = str(ended[0].payload.get("error") or "") if ended else ""
        result = TurnResult(session_id, outcome="failed", stopped=why or "the turn failed")
        await finished(channel.stream(StreamEvent("end", {"result": result})))
        return
    result = TurnResult(session_id, outcome=_OUTCOMES.get(fate, "handled"))
    if result.outcome == "answered":
        result.model_output = _answer(entries)
        answer = echo(message, session_id, result.model_output)
        result.outbounds = with_delivery_ids(message, [answer])
        for outbound in result.outbounds:
            await channel.send(outbound)
    else:
        result.stopped = result.outcome
    await finished(channel.stream(StreamEvent("end", {"result": result})))


async def give_up(tape: Tape, message: Envelope, why: str) -> None:
    """Record on the tape that the interrupted turn of a message will not continue."""
    cut = await cut_off_turn(tape)
    if cut is not None and key_of(message) in keys_of(cut.envelope or {}):
        await TapeJournal(tape).finish(cut.turn_id, "failed", why)


async def _turn_of(store: TapeStore, session_id: str, message: Envelope) -> list[Entry]:
    """The entries of a message's turn, latest first."""
    name = field_of(message, "message_id")
    found: list[Entry] = []
    for entry in await store.entries(
        session_id, kinds={TURN, MESSAGE}, limit=_LOOK_BACK, newest_first=True
    ):
        found.append(entry)
        if entry.kind == TURN and entry.payload["status"] == "started":
            said: dict[str, Any] = entry.payload.get("envelope") or {}
            if said.get("message_id") == name:
                return found
            found = []
    return []


def _answer(entries: list[Entry]) -> str:
    """The last text of a turn."""
    for entry in entries:
        if entry.kind == MESSAGE and entry.payload["message"]["role"] == "assistant":
            content: Any = entry.payload["message"].get("content") or ""
            if isinstance(content, str):
                return content
            parts = cast("list[dict[str, Any]]", content)
            return "".join(str(part.get("text") or "") for part in parts)
    return ""
