"""The scripted model: it plays a conversation that was written beforehand.

    model = ScriptedModel(["Hello.", Turn(tool_calls=[Call("shell", {"command": "ls"})]), "Done."])

Every call plays the next turn of its session (`request.session_id`), so any number of sessions share
one model without seeing each other. A call that fails has played its turn too: a retry gets the next.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hookline.errors import ContextOverflow, ModelError, ModelFailed, ModelUnavailable
from hookline.text.patterns import Pattern
from hookline.types import StreamEvent, StreamKind

from .model import ModelRequest, last_user_text
from .script import Fault, Turn, TurnLike, read_script, read_turns


class ScriptedModel:
    """A model that answers from a script.

    A turn with `match` is played when the last user message matches and the session has not played
    it yet; the others are played in order. When nothing is left, the call fails, or, with `repeat`,
    the script starts over. `requests` keeps what the model was asked, unless `record` is off.

    A turn without delays is played in one go, without giving way to other tasks.
    """

    def __init__(
        self,
        turns: Iterable[TurnLike],
        *,
        repeat: bool = False,
        name: str = "scripted",
        context_window: int | None = None,
        record: bool = True,
    ) -> None:
        self.name = name
        self.native_output = True
        self.context_window = context_window
        self.repeat = repeat
        self.record = record
        self.requests: list[ModelRequest] = []
        parts = [_Part(turn, number) for number, turn in enumerate(read_turns(turns), 1)]
        self._ordered = [part for part in parts if part.match is None]
        self._matched = [part for part in parts if part.match is not None]
        self._places: dict[str, _Place] = {}
        self._played = 0

    @classmethod
    def from_file(cls, path: str | Path, *, record: bool = True) -> ScriptedModel:
        """Read the script from a TOML or Python file."""
        path = Path(path)
        script = read_script(path)
        return cls(
            script.turns,
            repeat=script.repeat,
            name=f"scripted:{path}",
            context_window=script.context_window,
            record=record,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Play the next turn of the request's session."""
        from asyncio import sleep  # not at the top: a script may be read where nothing runs

        if self.record:
            # The caller keeps adding to its list; the recorded request must not change.
            self.requests.append(replace(request, messages=list(request.messages)))
        place = self._places.pop(request.session_id, None) or _Place()
        try:
            part = self._next(place, request)
        finally:
            if not self._is_new(place):
                self._places[request.session_id] = place
        played = self._played = self._played + 1
        calls = 1
        delay = part.delay
        if part.wait:
            await sleep(part.wait)
        left = part.before_fault
        for kind, data in part.pieces:
            if left == 0:
                break
            left -= 1
            if delay:
                await sleep(delay)
            # A fresh dict each time: a receiver that changes an event changes only its own.
            data = data.copy()
            if kind == "tool_call":
                data["id"] = data["id"] or f"call_{played}_{calls}"
                calls += 1
            yield StreamEvent(kind, data)
        if part.fault is not None:
            raise _error(part.fault)
        for kind, data in part.ending:
            yield StreamEvent(kind, data.copy())

    async def close(self) -> None:
        """Nothing is held; the sessions keep their places."""

    def _is_new(self, place: _Place) -> bool:
        """Whether a session starts over, as one does that never played: then it needs no place."""
        return self.repeat and place.position == len(self._ordered) and not place.matched

    def _next(self, place: _Place, request: ModelRequest) -> _Part:
        if self._matched and (part := self._match(place, request)):
            return part
        if place.position >= len(self._ordered) and self.repeat:
            place.position = 0
        if place.position >= len(self._ordered):
            raise ModelFailed(self._exhausted(place, request))
        part = self._ordered[place.position]
        place.position += 1
        return part

    def _match(self, place: _Place, request: ModelRequest) -> _Part | None:
        said = last_user_text(request.messages)
        fitting = [part for part in self._matched if part.match and part.match.search(said)]
        if not fitting:
            return None
        fresh = [part for part in fitting if part.number not in place.matched]
        if not fresh and self.repeat:
            place.matched.difference_update(part.number for part in fitting)
            fresh = fitting
        if not fresh:
            return None
        place.matched.add(fresh[0].number)
        return fresh[0]

    def _exhausted(self, place: _Place, request: ModelRequest) -> str:
        total = len(self._ordered) + len(self._matched)
        count = f"{total} turn{'' if total == 1 else 's'}"
        rest = ", and none of the rest matches" if self._matched else ""
        return (
            f"{self.name} has no turn left for session {request.session_id!r}: it played "
            f"{place.position + len(place.matched)} of {count}{rest}; add a turn, or set repeat = true"
        )


class _EventSource(NamedTuple):
    """The source of one event."""

    kind: StreamKind
    data: dict[str, Any]


class _Place:
    """How far one session has come."""

    __slots__ = ("matched", "position")

    def __init__(self) -> None:
        self.position = 0
        self.matched: set[int] = set()


class _Part:
    """A turn cut into the pieces to yield, once, so that playing it only copies."""

    __slots__ = ("before_fault", "delay", "ending", "fault", "match", "number", "pieces", "wait")

    def __init__(self, turn: Turn, number: int) -> None:
        self.number = number
        self.match = Pattern(turn.match) if turn.match else None
        self.wait = turn.wait
        self.delay = turn.delay
        self.fault = turn.fault
        self.before_fault = turn.fault.after if turn.fault else -1
        self.pieces = _pieces(turn)
        self.ending = _ending(turn)


def _pieces(turn: Turn) -> list[_EventSource]:
    pieces = [_EventSource("reasoning", {"delta": delta}) for delta in _cut(turn.reasoning, turn.chunk)]
    said = turn.pieces or _cut(turn.text, turn.chunk)
    pieces += [_EventSource("text", {"delta": delta}) for delta in said]
    pieces += [
        _EventSource("tool_call", {"id": call.id, "name": call.name, "arguments": call.written})
        for call in turn.calls
    ]
    return pieces


def _ending(turn: Turn) -> list[_EventSource]:
    ending: list[_EventSource] = []
    if turn.usage is not None:
        ending.append(_EventSource("usage", dict(turn.usage)))
    if not turn.cut_off:
        reason = turn.finish_reason or ("tool_calls" if turn.calls else "stop")
        ending.append(_EventSource("final", {"finish_reason": reason}))
    return ending


def _cut(text: str, size: int) -> list[str]:
    if not text:
        return []
    return [text[at : at + size] for at in range(0, len(text), size)] if size else [text]


def _error(fault: Fault) -> ModelError:
    if fault.kind == "unavailable":
        return ModelUnavailable(fault.message)
    if fault.kind == "overflow":
        return ContextOverflow(fault.message)
    return ModelFailed(fault.message, transient=fault.transient)
