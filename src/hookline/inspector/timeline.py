"""A turn as a timeline: the model, the tools and the hooks as bars in each other.

Bars come from the tape, which every turn is on. Where a trace was kept, the dispatches of hooks are
bars as well, each in the call or the model turn that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hookline.agent.journal import MESSAGE, TOOL_CALL, TOOL_RESULT, TURN
from hookline.tape.outline import preview_of

from .plain import cut, plain

if TYPE_CHECKING:
    from hookline.tape import Entry
    from hookline.trace import TraceRecord

DEPTH: Final = {"turn": 0, "model": 1, "tool": 2, "hook": 3, "handler": 4}


@dataclass(slots=True)
class Bar:
    """One thing that took time, or did not."""

    kind: str
    """turn, model, tool, hook, handler or note."""
    name: str
    start: float
    """Seconds since the turn began."""
    duration: float
    depth: int = 0
    state: str = ""
    """ok, failed, denied, asked, rewrote, running or cut off."""
    detail: str = ""
    entry_id: str = ""
    """The entry that says more."""
    call_id: str = ""
    record_id: str = ""
    """The dispatch that says more."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


def bars_of(
    entries: list[Entry], records: Iterable[TraceRecord], *, running: bool = False
) -> list[Any]:
    """The bars of a turn, each after the one that it is in."""
    begun = entries[0].time
    made = _Bars(begun, entries, running)
    hooks = [_hook_bar(record, begun) for record in records if record.kind == "hook"]
    return [asdict(bar) for bar in made.with_hooks(hooks)]


class _Bars:
    """Goes along a turn's entries."""

    def __init__(self, begun: float, entries: list[Entry], running: bool) -> None:
        self.begun = begun
        last = entries[-1]
        is_over = last.kind == TURN and len(entries) > 1
        status = str(last.payload.get("status", "")) if is_over else "running" if running else "cut off"
        state = {"completed": "ok"}.get(status, status)
        whole = Bar("turn", "turn", 0.0, last.time - begun, state=state, entry_id=entries[0].id)
        whole.detail = cut(str(last.payload.get("error") or ""), 300) if is_over else ""
        self.bars = [whole]
        self._since = begun
        self._calls: dict[str, Bar] = {}
        for entry in entries[1:]:
            self._take(entry)
            if entry.kind in (MESSAGE, TOOL_RESULT):
                self._since = entry.time
        for bar in self._calls.values():
            if bar.state == "running" and not running:
                bar.state = "cut off"

    def _take(self, entry: Entry) -> None:
        if entry.kind == MESSAGE:
            message: dict[str, Any] = entry.payload.get("message") or {}
            if message.get("role") == "assistant":
                self.bars.append(self._model(entry))
            else:
                self.bars.append(self._note(entry, str(message.get("role") or "message")))
        elif entry.kind == TOOL_CALL:
            self._call(entry)
        elif entry.kind == TOOL_RESULT:
            self._result(entry)
        elif entry.kind != TURN:
            self.bars.append(self._note(entry, entry.kind))

    def _note(self, entry: Entry, name: str) -> Bar:
        return Bar("note", name, entry.time - self.begun, 0.0, 1, entry_id=entry.id)

    def _model(self, entry: Entry) -> Bar:
        number = sum(bar.kind == "model" for bar in self.bars)
        took = entry.time - self._since
        bar = Bar("model", f"model turn {number}", self._since - self.begun, took, DEPTH["model"], "ok")
        bar.detail, bar.entry_id = preview_of(MESSAGE, entry.payload), entry.id
        usage: dict[str, Any] = entry.meta.get("usage") or {}
        bar.facts = {"step": number, **plain(usage)}
        return bar

    def _call(self, entry: Entry) -> None:
        call_id = str(entry.payload.get("id") or entry.id)
        bar = Bar("tool", str(entry.payload.get("name")), entry.time - self.begun, 0.0, DEPTH["tool"])
        bar.state, bar.entry_id, bar.call_id = "running", entry.id, call_id
        self._calls[call_id] = bar
        self.bars.append(bar)

    def _result(self, entry: Entry) -> None:
        call_id = str(entry.payload.get("tool_call_id"))
        bar = self._calls.get(call_id)
        if bar is None:  # it was refused, so that no call was written down
            start = self._since - self.begun
            bar = Bar("tool", str(entry.payload.get("name")), start, 0.0, DEPTH["tool"])
            bar.entry_id, bar.call_id = entry.id, call_id
            self._calls[call_id] = bar
            self.bars.append(bar)
        bar.duration = entry.time - self.begun - bar.start
        failed = "failed" if entry.payload.get("is_error") else "ok"
        bar.state = failed if entry.payload.get("ran", True) else "denied"
        bar.detail = preview_of(TOOL_RESULT, entry.payload).partition(": ")[2]
        bar.facts["result_id"] = entry.id

    def with_hooks(self, hooks: list[tuple[Bar, TraceRecord]]) -> list[Bar]:
        """The bars with each dispatch after the bar that it happened in."""
        inside: dict[int, list[Bar]] = {}
        for bar, record in hooks:
            inside.setdefault(id(self._home(record)), []).extend([bar, *_handler_bars(bar, record)])
        return [each for bar in self.bars for each in (bar, *inside.get(id(bar), ()))]

    def _home(self, record: TraceRecord) -> Bar:
        if record.call and record.call in self._calls:
            return self._calls[record.call]
        models = (bar for bar in self.bars if bar.kind == "model" and bar.facts["step"] == record.step)
        return next(models, self.bars[0])


def _hook_bar(record: TraceRecord, begun: float) -> tuple[Bar, TraceRecord]:
    bar = Bar("hook", record.name, record.time - begun, record.duration, DEPTH["hook"])
    did = {handler.did for handler in record.handlers}
    faulty = bool(record.error) or bool(did & {"raised", "timed out"})
    bar.state = {"deny": "denied", "ask": "asked"}.get(record.decision, "")
    bar.state = bar.state or ("failed" if faulty else "rewrote" if "rewrote" in did else "ok")
    bar.detail = cut(record.reason or record.error, 120)
    bar.record_id, bar.call_id = record.id, record.call
    return bar, record


STATES: Final = {"denied": "denied", "asked": "asked", "rewrote": "rewrote", "raised": "failed"}


def _handler_bars(hook: Bar, record: TraceRecord) -> list[Bar]:
    return [
        Bar(
            "handler",
            handler.by,
            hook.start + handler.after,
            handler.duration,
            DEPTH["handler"],
            "failed" if handler.did == "timed out" else STATES.get(handler.did, "ok"),
            cut(handler.reason or handler.error, 120),
            call_id=record.call,
            record_id=record.id,
        )
        for handler in record.handlers
    ]
