"""The live tail: dispatches of this process as they happen, and new entries of every process.

The hooks have a sink only while someone watches; otherwise they are compiled without one. Entries are
polled from the store, so that the work of other processes is visible too.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hookline.hooks import Verdict
from hookline.hooks.errors import error_text
from hookline.turn_context import here

from .decisions import decision_of
from .plain import plain

if TYPE_CHECKING:
    from hookline.hooks.observers import Dispatch, HandlerCall
    from hookline.runtime.app import Hookline
    from hookline.tape import Entry, SessionInfo, TapeStore

WAITING: Final = 2000
"""Frames that may wait for a reader. A slow reader loses the oldest, and gets their number."""
LOOK: Final = 0.5
"""Seconds between two looks for new entries."""
BEAT: Final = 15.0
"""Seconds of silence after which a comment keeps the connection open."""
ROOM: Final = 400
"""Characters of one text in a payload."""
SAID: Final = ("payload", "reason", "error", "calls", "preview")
"""The fields of a frame that are redacted."""
SESSIONS: Final = 20
"""How many sessions are looked at: those written to last."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A reader's filter; empty fields match everything."""

    hook: str = ""
    plugin: str = ""
    session: str = ""
    decision: str = ""
    dispatches: bool = True
    """False: entries alone, and nothing is put on the hooks."""

    def admits(self, frame: dict[str, Any]) -> bool:
        """Whether a frame is wanted: names are found by any part of them."""
        if frame["type"] == "watching":
            return True
        return (
            (not self.hook or self.hook in frame.get("hook", ""))
            and (not self.session or self.session in frame.get("session", ""))
            and (not self.decision or self.decision == frame.get("decision"))
            and (not self.plugin or any(self.plugin in c["by"] for c in frame.get("calls", ())))
        )


class Tail:
    """Current events, for all watchers."""

    def __init__(self, app: Hookline, leaving: asyncio.Event) -> None:
        self._app = app
        self._leaving = leaving
        """Set when the server goes down."""
        self._readers: list[_TailReader] = []
        """Those who watch dispatches."""
        self._off: Callable[[], Any] | None = None
        self.watching = 0
        """How many read along."""

    async def events(self, wanted: Filter) -> AsyncGenerator[str]:
        """The matching events, as Server-Sent Events, until the reader is gone."""
        reader = _TailReader(wanted)
        self.watching += 1
        if wanted.dispatches:
            self._join(reader)
        looking = asyncio.create_task(self._look(reader))
        try:
            while not self._leaving.is_set():
                try:
                    async with asyncio.timeout(BEAT):
                        await reader.wake.wait()
                except TimeoutError:
                    yield ": still here\n\n"
                for frame in await self._redacted(reader.taken()):
                    yield event(frame)
        finally:
            self.watching -= 1
            looking.cancel()
            if wanted.dispatches:
                self._leave(reader)

    def _join(self, reader: _TailReader) -> None:
        self._readers.append(reader)
        if self._off is None:
            self._off = self._app.hooks.trace(self._dispatched)

    def _leave(self, reader: _TailReader) -> None:
        self._readers.remove(reader)
        if not self._readers and self._off is not None:
            self._off()
            self._off = None

    def _dispatched(self, dispatch: Dispatch) -> None:
        frame = frame_of(dispatch)
        for reader in self._readers:
            reader.put(frame)

    async def _redacted(self, frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Redact frames in a thread, so that turns continue while a page is open."""
        redactor = self._app.safeguards.redactor
        if redactor is None:
            return frames

        def redacted(frame: dict[str, Any]) -> dict[str, Any]:
            found = {name: redactor.redact(frame[name]) for name in SAID if name in frame}
            return {**frame, **found}

        return await asyncio.to_thread(lambda: [redacted(frame) for frame in frames])

    async def _look(self, reader: _TailReader) -> None:
        """Follow the sessions that are written to."""
        store = self._app.store()
        followed = Followed(store)
        await followed.begin()
        reader.put({"type": "watching"})
        while not await self._is_over():
            for entry in await followed.new_entries():
                reader.put(entry_frame(entry))
        reader.wake.set()

    async def _is_over(self) -> bool:
        """Wait until it is time to look again; whether the server goes down."""
        try:
            async with asyncio.timeout(LOOK):
                await self._leaving.wait()
        except TimeoutError:
            return False
        return True


class Followed:
    """The sessions that were written to last, and how far each was read."""

    def __init__(self, store: TapeStore) -> None:
        self._store = store
        self._last: dict[str, str | None] = {}
        self._grown: dict[str, tuple[float, int]] = {}
        self._floor = 0.0
        """No session that is not known was written to since this time; 0 where all are known."""

    async def begin(self) -> None:
        """Mark everything present as known."""
        listed = await self._store.sessions(limit=SESSIONS)
        for info in listed:
            leaf = await self._store.leaf(info.id)
            self._last[info.id] = leaf.id if leaf else None
            self._grown[info.id] = info.updated, info.entries
        self._floor = _floor(listed)

    async def new_entries(self) -> list[Entry]:
        """The entries written since the last poll."""
        found: list[Entry] = []
        listed = await self._store.sessions(limit=SESSIONS)
        for info in listed:
            if self._grown.get(info.id) == (info.updated, info.entries):
                continue
            if info.id in self._last:
                last = self._last[info.id]
                entries = await self._store.entries(info.id, after=last, limit=WAITING)
            else:
                entries = await self._since(info.id, self._floor)
            if entries:
                self._last[info.id] = entries[-1].id
            if len(entries) < WAITING:  # else there is more to be read the next time
                self._grown[info.id] = info.updated, info.entries
            found += entries
        self._floor = _floor(listed)
        return found

    async def _since(self, session_id: str, floor: float) -> list[Entry]:
        """The entries of a session that were written after a given time."""
        count = 50
        while True:
            found = await self._store.entries(session_id, limit=count, newest_first=True)
            new = [entry for entry in reversed(found) if entry.time > floor]
            if len(new) < count or count >= WAITING:
                return new
            count = min(4 * count, WAITING)


def _floor(listed: list[SessionInfo]) -> float:
    return listed[-1].updated if len(listed) == SESSIONS else 0.0


class _TailReader:
    """One who looks, with what waits for them."""

    def __init__(self, wanted: Filter) -> None:
        self.wake = asyncio.Event()
        self._wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._frames: deque[dict[str, Any]] = deque(maxlen=WAITING)
        self._dropped = 0

    def put(self, frame: dict[str, Any]) -> None:
        """Keep a frame that is wanted; hooks may be called from any thread."""
        if self._wanted.admits(frame):
            self._dropped += len(self._frames) == WAITING
            self._frames.append(frame)
            self._loop.call_soon_threadsafe(self.wake.set)

    def taken(self) -> list[dict[str, Any]]:
        """Everything that waits."""
        self.wake.clear()
        dropped, self._dropped = self._dropped, 0
        frames: list[dict[str, Any]] = [{"type": "dropped", "count": dropped}] if dropped else []
        while self._frames:
            frames.append(self._frames.popleft())
        return frames


def event(frame: dict[str, Any]) -> str:
    """A frame as an event; JSON in ASCII has no line end in it."""
    return f"event: {frame['type']}\ndata: {json.dumps(frame, default=str)}\n\n"


def frame_of(dispatch: Dispatch) -> dict[str, Any]:
    """A dispatch as a page shows it."""
    from ..trace.snapshot import payload_of, shortened

    value = dispatch.value
    verdict: Verdict[Any] | None = value if isinstance(value, Verdict) else None  # pyright: ignore[reportUnknownVariableType]
    place = here()
    ctx = dispatch.arguments.get("ctx")
    known = dispatch.arguments.get("session_id") or getattr(ctx, "session_id", "")
    return {
        "type": "dispatch",
        "hook": dispatch.hook,
        "session": str(known or (place.session_id if place else "") or dispatch.key or ""),
        "call_id": place.call_id if place else "",
        "time": time.time() - dispatch.duration,
        "duration": dispatch.duration,
        "decision": _decision(dispatch, verdict),
        "reason": (verdict.reason if verdict else "") or "",
        "error": error_text(dispatch.error) if dispatch.error else "",
        "calls": [_call(call, verdict) for call in dispatch.calls],
        "payload": shortened(payload_of(dispatch.arguments), ROOM),
    }


def _decision(dispatch: Dispatch, verdict: Verdict[Any] | None) -> str:
    did = {call.did for call in dispatch.calls}
    if verdict is not None and not verdict.allowed:
        return verdict.decision.name.lower()
    if dispatch.error is not None or did & {"raised", "timed out"}:
        return "error"
    return "rewrote" if "rewrote" in did else "allow" if verdict is not None else ""


def _call(call: HandlerCall, verdict: Verdict[Any] | None) -> dict[str, Any]:
    ruling = verdict.trail[call.ruling] if verdict is not None and call.ruling is not None else None
    return {
        "by": call.by,
        "did": call.did,
        "duration": call.duration,
        "fields": list(call.fields),
        "reason": (ruling.reason if ruling else "") or "",
        "error": error_text(call.error) if call.error else "",
        "place": call.implementation.location if call.implementation else "",
    }


def entry_frame(entry: Entry) -> dict[str, Any]:
    """An entry as a page shows it."""
    from hookline.tape.outline import preview_of

    made = decision_of(entry)
    return {
        "type": "entry",
        "kind": entry.kind,
        "entry_id": entry.id,
        "session": entry.session_id,
        "time": entry.time,
        "decision": made["decision"] if made else "",
        "preview": preview_of(entry.kind, entry.payload),
        "payload": plain(entry.payload, ROOM),
    }
