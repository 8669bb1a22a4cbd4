"""A turn as a timeline: model turns, the model, the tools and the hooks as bars in each other.

Bars come from the tape, which every turn is on. Where a trace was kept, the dispatches of hooks are
bars as well, each in the call or the model turn that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hookline.tape.entry import MESSAGE, TOOL_CALL, TOOL_RESULT, TURN
from hookline.tape.outline import preview_of

from ..trace.turns import interval, message_of, requested
from .plain import cut, in_few_words, plain

if TYPE_CHECKING:
    from hookline.tape import Entry

    from ..trace import HandlerRecord, TraceRecord

STATES: Final = {
    "deny": "denied", "denied": "denied", "ask": "asked", "asked": "asked", "rewrote": "rewrote",
    "raised": "failed", "timed out": "failed", "completed": "ok",
}  # fmt: skip


SHOWN: Final[dict[str, Callable[[Bar], bool]]] = {
    "all": lambda bar: True,
    "hooks": lambda bar: bar.kind != "handler",
    "decided": lambda bar: bar.kind not in _HOOKS or bar.state != "ok",
    "none": lambda bar: bar.kind not in _HOOKS,
}
"""Which bars are shown, by the selected level of detail."""
_HOOKS = ("hook", "handler")


@dataclass(slots=True)
class Bar:
    """One thing that took time, with what happened in it; times are in seconds since the epoch."""

    kind: str
    """turn, step (a model turn), model, tool, hook, handler or note."""
    name: str
    start: float
    end: float
    state: str = "ok"
    """ok, failed, denied, asked, rewrote, running, cancelled or cut off."""
    detail: str = ""
    asked: str = ""
    """The arguments that a tool was called with, which tell two calls apart."""
    entry_id: str = ""
    """The entry that says more."""
    record_id: str = ""
    """The dispatch that says more."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    inside: list[Bar] = field(default_factory=list["Bar"])
    depth: int = 0
    """In how many others it is."""

    def told(self, begun: float) -> dict[str, Any]:
        """The bar as plain data, with its start counted from a time."""
        return {
            "kind": self.kind,
            "name": self.name,
            "start": self.start - begun,
            "duration": self.end - self.start,
            "depth": self.depth,
            "state": self.state,
            "detail": self.detail,
            "asked": self.asked,
            "entry_id": self.entry_id,
            "record_id": self.record_id,
            "facts": self.facts,
        }


def bars_of(
    entries: list[Entry], records: list[TraceRecord], *, running: bool = False, hooks: bool = True
) -> list[Bar]:
    """The bars of a turn, each after its parent, earliest first.

    Without `hooks` they have no bars, but the turn lasts as long as with them.
    """
    bars: list[Bar] = []
    waiting = [_Bars(entries, records, running, hooks).whole]
    while waiting:
        bar = waiting.pop()
        bars.append(bar)
        for each in sorted(bar.inside, key=_start)[::-1]:
            each.depth = bar.depth + 1
            waiting.append(each)
    return bars


def _contain(bar: Bar) -> None:
    """Make a bar as wide as what happened in it."""
    for each in bar.inside:
        _contain(each)
        bar.start, bar.end = min(bar.start, each.start), max(bar.end, each.end)


def _start(bar: Bar) -> float:
    return bar.start


def place_of(bars: list[Bar], entry: str, dispatch: str) -> int | None:
    """Where the bar of an entry or of a dispatch stands."""
    if dispatch:
        return next((n for n, bar in enumerate(bars) if bar.record_id == dispatch), None)
    if not entry:
        return None
    # Of a model turn, the model's own bar says the same.
    own = (n for n, bar in enumerate(bars) if bar.kind != "step" and _is_of(bar, entry))
    return next(own, None)


def _is_of(bar: Bar, entry: str) -> bool:
    return bar.entry_id == entry or bar.facts.get("result_id") == entry


class _Bars:
    """Walks a turn's entries, then its trace."""

    def __init__(
        self, entries: list[Entry], records: list[TraceRecord], running: bool, hooks: bool
    ) -> None:
        self._hooks = [record for record in records if record.kind == "hook"]
        self._models = {r.step: r.name for r in records if r.kind == "model"}
        self.whole = self._turn(entries, running)
        self._steps: list[Bar] = []
        self._calls: dict[str, Bar] = {}
        self._asked: dict[str, str] = {}
        self._since = entries[0].time
        for entry in entries[1:]:
            self._take(entry)
            if entry.kind in (MESSAGE, TOOL_RESULT):
                self._since = entry.time
        for bar in self._calls.values():
            if bar.state == "running" and not running:
                bar.state = "cut off"
        for record in self._hooks if hooks else ():
            self._home(record).inside.append(_hook(record))
        _contain(self.whole)

    def _turn(self, entries: list[Entry], running: bool) -> Bar:
        """The whole turn; hooks run before its first entry is written and after its last."""
        first, last = entries[0], entries[-1]
        is_over = last.kind == TURN and last is not first
        status = str(last.payload.get("status")) if is_over else "running" if running else "cut off"
        start, end = interval((first, last), self._hooks)
        error = cut(str(last.payload.get("error") or ""), 300) if is_over else ""
        return Bar("turn", "turn", start, end, STATES.get(status, status), error, entry_id=first.id)

    def _take(self, entry: Entry) -> None:
        if entry.kind == MESSAGE:
            role = message_of(entry).get("role")
            if role == "assistant":
                self._answer(entry)
            else:
                self._note(entry, str(role or MESSAGE))
        elif entry.kind == TOOL_CALL:
            call_id = str(entry.payload.get("id") or entry.id)
            bar = self._tool(call_id, entry, entry.time)
            bar.state = "running"
            bar.asked = in_few_words(entry.payload.get("requested")) or bar.asked
        elif entry.kind == TOOL_RESULT:
            self._result(entry)
        elif entry.kind != TURN:
            self._note(entry, entry.kind)

    def _note(self, entry: Entry, name: str) -> None:
        detail = preview_of(entry.kind, entry.payload)
        self.whole.inside.append(
            Bar("note", name, entry.time, entry.time, "", detail, entry_id=entry.id)
        )

    def _answer(self, entry: Entry) -> None:
        number = len(self._steps)
        said = preview_of(MESSAGE, entry.payload)
        usage: dict[str, Any] = entry.meta.get("usage") or {}
        since, own = self._since, entry.id
        step = Bar("step", f"model turn {number}", since, entry.time, "ok", said, entry_id=own)
        name = self._models.get(number) or "model"
        model = Bar("model", name, since, entry.time, "ok", said, entry_id=own, facts=plain(usage))
        step.inside.append(model)
        self._steps.append(step)
        self.whole.inside.append(step)
        for call in requested(entry):
            self._asked[str(call.get("id"))] = in_few_words(call.get("arguments"))

    def _tool(self, call_id: str, entry: Entry, start: float) -> Bar:
        bar = Bar("tool", str(entry.payload.get("name")), start, entry.time, entry_id=entry.id)
        bar.asked = self._asked.get(call_id, "")
        outer = self._steps[-1] if self._steps else self.whole
        outer.inside.append(bar)
        outer.end = max(outer.end, entry.time)
        self._calls[call_id] = bar
        return bar

    def _result(self, entry: Entry) -> None:
        call_id = str(entry.payload.get("tool_call_id"))
        # One that was refused has no entry of its own.
        bar = self._calls.get(call_id) or self._tool(call_id, entry, self._since)
        bar.end = entry.time
        if self._steps:
            self._steps[-1].end = max(self._steps[-1].end, entry.time)
        failed = "failed" if entry.payload.get("is_error") else "ok"
        bar.state = failed if entry.payload.get("ran", True) else "denied"
        bar.detail = preview_of(TOOL_RESULT, entry.payload).partition(": ")[2]
        bar.facts["result_id"] = entry.id

    def _home(self, record: TraceRecord) -> Bar:
        """The bar that a dispatch happened in."""
        if record.call in self._calls:
            return self._calls[record.call]
        if record.step is not None and record.step < len(self._steps):
            return self._steps[record.step]
        return self.whole


def _hook(record: TraceRecord) -> Bar:
    bar = Bar("hook", record.name, record.time, record.time + record.duration, record_id=record.id)
    bar.inside = [_handler(handler, record) for handler in record.handlers]
    states = [STATES.get(record.decision, ""), *(each.state for each in bar.inside)]
    bar.state = next((state for state in states if state not in ("", "ok")), "ok")
    bar.state = "failed" if record.error else bar.state
    bar.detail = cut(record.reason or record.error, 120)
    return bar


def _handler(handler: HandlerRecord, record: TraceRecord) -> Bar:
    start = record.time + handler.after
    state = STATES.get(handler.did, "ok")
    said = cut(handler.reason or handler.error, 120)
    return Bar("handler", handler.by, start, start + handler.duration, state, said, record_id=record.id)
