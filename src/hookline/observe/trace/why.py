"""Why: who saw, changed and decided on a call, a message or a turn, from the tape and the trace.

explanation = await explain(app.store(), await Tracing.of(app).store(), "terminal:local", "call_1")
for step in explanation.steps:
    print(step.hook, step.by, step.did, step.changes)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from hookline.errors import TraceError
from hookline.hooks.errors import suggestion
from hookline.tape import DECISION, Entry, TapeStore
from hookline.text.foreign_json import parse_json

from .diff import PayloadChange, differences
from .gate_failures import lets_through
from .record import HandlerRecord, TraceRecord
from .spans import with_spans
from .store import Trace, TraceStore
from .turns import TapeTurn, call_id_of, identity_of, interval, message_of, requested, turns_of

CONNECTION = "network_request"
NOTHING = (
    "the trace has nothing of this: no handler decided or changed anything, or the trace was off then; "
    "`hookline config set trace.level full` also keeps the handlers that said nothing"
)
QUIET = 'at level "decisions" handlers that said nothing are not kept; "full" keeps them'


@dataclass(slots=True)
class WhyStep:
    """The action of one handler, or one ruling of the tape."""

    by: str
    did: str
    hook: str = ""
    """Empty for a ruling without a hook, such as the policy's."""
    place: str = ""
    duration: float | None = None
    decision: str = ""
    reason: str = ""
    error: str = ""
    changes: list[PayloadChange] = field(default_factory=list[PayloadChange])
    call: str = ""
    time: float = 0.0
    let_through: bool = False
    """Whether the handler failed at a gate that did not deny."""


@dataclass(slots=True)
class Explanation:
    """Everything that is known of one call, message or turn."""

    session: str
    kind: Literal["call", "message", "turn"]
    id: str
    title: str
    outcome: str
    steps: list[WhyStep] = field(default_factory=list[WhyStep])
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """The tool calls of a turn: what each asked for, and its outcome."""
    changes: list[PayloadChange] = field(default_factory=list[PayloadChange])
    """The changes of a call's arguments, from the tape."""
    identity: dict[str, Any] | None = None
    """On whose behalf it was judged."""
    seconds: float | None = None
    notes: list[str] = field(default_factory=list[str])
    records: list[TraceRecord] = field(default_factory=list[TraceRecord], repr=False)

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        found = asdict(self)
        found["records"] = [record.as_json() for record in self.records]
        return found


async def explain(
    tape: TapeStore,
    traces: TraceStore,
    session: str,
    target: str | None = None,
    *,
    turn: int | None = None,
    present: Collection[str] = (),
) -> Explanation:
    """Explain a tool call or an entry by its id, or a turn by its number; by default, the last turn.

    `present` are the names of the attached plugins: others are marked as gone.
    """
    entries = await tape.entries(session)
    if not entries:
        known = [info.id for info in await tape.sessions()]
        near = suggestion(session, known) or "; `hookline tape list` shows the sessions"
        raise TraceError(f"no session {session!r}{near}")
    trace, turns = await traces.read(session), turns_of(entries)
    trace.records = with_spans(trace.records, turns)
    if target is None:
        found = of_turn(session, chosen(turns, turn, session), trace)
    else:
        found = of_target(session, target, entries, turns, trace)
    found.notes += notes_of(found, trace, present)
    return found


def chosen(turns: list[TapeTurn], number: int | None, session: str) -> TapeTurn:
    """The turn of a number, counted from 1; the last by default."""
    if not turns:
        raise TraceError(
            f"session {session!r} has no turn; `hookline tape show {session}` has all of it"
        )
    if number is not None and not 1 <= number <= len(turns):
        raise TraceError(f"session {session!r} has {len(turns)} turn(s), so there is no turn {number}")
    return turns[(number or len(turns)) - 1]


def of_target(
    session: str, target: str, entries: Sequence[Entry], turns: list[TapeTurn], trace: Trace
) -> Explanation:
    """Explain the entry or call of an id."""
    calls = {str(call_id_of(e)): None for e in entries if call_id_of(e)}
    calls.update((str(c.get("id")), None) for e in entries for c in requested(e))
    if target in calls:
        return of_call(session, target, entries, turns, trace)
    entry = next((e for e in entries if e.id == target), None)
    if entry is None:
        known = [*calls, *(e.id for e in entries)]
        near = suggestion(target, known) or f"; `hookline tape show {session}` lists what there is"
        raise TraceError(f"session {session!r} has no call or entry {target!r}{near}")
    call = call_id_of(entry)
    if call:
        return of_call(session, call, entries, turns, trace)
    within = next((t for t in turns if entry in t.entries), None)
    if within is None:
        raise TraceError(
            f"entry {target!r} is a {entry.kind} outside of any turn: no hook decided on it"
        )
    if entry.kind == "message":
        return of_message(session, entry, within, trace)
    return of_turn(session, within, trace)


def of_call(
    session: str, call: str, entries: Sequence[Entry], turns: list[TapeTurn], trace: Trace
) -> Explanation:
    """Explain a tool call."""
    own = [e for e in entries if call_id_of(e) == call]
    name, wanted, began, ended = asked_for(call, entries)
    final: Any = began.payload.get("arguments") if began else wanted
    found = Explanation(session, "call", call, f"{name} {brief(wanted)}", outcome_of(began, ended))
    found.changes = differences(wanted, final)
    within = next((t for t in turns if any(e in t.entries for e in own)), None)
    turn = within.id if within is not None else None
    found.identity = identity_of(own, within.entries[0] if within is not None else None).plain()
    found.notes += missing_in(within)
    found.records = [
        r for r in trace.records if r.call == call and (turn is None or r.turn in ("", turn))
    ]
    if found.records or (began is not None and ended is not None):
        here = own if within is None else [e for e in own if e in within.entries]
        first, last = interval(here, found.records)
        found.seconds = last - first
    found.steps = steps_of(found.records)
    last = next((e for e in reversed(own) if e.meta.get("rulings")), None)
    found.steps += rulings_of(last, found.steps)
    found.steps = with_connections(
        found.steps, [e for e in entries if e.payload.get("call_id") == call]
    )
    return found


def asked_for(call: str, entries: Sequence[Entry]) -> tuple[str, Any, Entry | None, Entry | None]:
    """The tool and the arguments that a call asked for, and the entries of its start and its end."""
    own = [e for e in entries if call_id_of(e) == call]
    began = next((e for e in own if e.kind == "tool_call"), None)
    ended = next((e for e in reversed(own) if e.kind == "tool_result"), None)
    calls = (c for e in entries for c in requested(e) if c.get("id") == call)
    asked = next(calls, dict[str, Any]())
    kept = began or (ended if not asked else None)  # a refusal has what no message asked for
    wanted = parsed(asked.get("arguments") if kept is None else kept.payload.get("requested"))
    known = began or ended
    name = known.payload.get("name") if known is not None else asked.get("name")
    return str(name), wanted, began, ended


def of_message(session: str, entry: Entry, turn: TapeTurn, trace: Trace) -> Explanation:
    """Explain a message: the user's before the model call, the model's in its model turn."""
    message = message_of(entry)
    role = str(message.get("role", "?"))
    title = f"{role}: {brief(message.get('content'))}"
    found = Explanation(session, "message", entry.id, title, turn.status, notes=missing_in(turn))
    said = [e for e in turn.entries if e.kind == "message"]
    answers = [e for e in said if message_of(e).get("role") == "assistant"]
    own = [r for r in trace.records if r.turn == turn.id and not r.call]
    if entry in answers:
        step = answers.index(entry)
        final = entry is answers[-1]
        found.records = [r for r in own if r.step == step or (final and r.name == "output")]
    else:
        begun = min((r.time for r in own if r.step is not None), default=float("inf"))
        found.records = [r for r in own if r.step is None and r.time < begun]
    found.steps = steps_of(found.records)
    return found


def of_turn(session: str, turn: TapeTurn, trace: Trace) -> Explanation:
    """Explain a turn, its calls with it."""
    first = next((e for e in turn.entries if e.kind == "message"), None)
    said = message_of(first).get("content") if first else ""
    found = Explanation(session, "turn", turn.id, brief(said), turn.status, notes=missing_in(turn))
    found.identity = identity_of([], turn.entries[0]).plain()
    found.records = [r for r in trace.records if r.turn == turn.id]
    began, ended = interval(turn.entries, found.records)
    found.seconds = ended - began
    found.steps = steps_of(found.records)
    seen: dict[str, Entry] = {}
    for entry in turn.entries:  # the last one of a call has all of its rulings
        if call_id_of(entry) and entry.meta.get("rulings"):
            seen[str(call_id_of(entry))] = entry
    for call, entry in seen.items():
        found.steps += rulings_of(entry, [s for s in found.steps if s.call == call])
    found.steps = with_connections(found.steps, turn.entries)
    for call in dict.fromkeys(step.call for step in found.steps if step.call):
        name, wanted, began, ended = asked_for(call, turn.entries)
        found.calls[call] = f"{name} {brief(wanted)}: {outcome_of(began, ended)}"
    return found


# --- steps ---


def steps_of(records: Iterable[TraceRecord]) -> list[WhyStep]:
    """What each handler did, in the order in which they ran."""
    return [step_of(r, h) for r in records if r.kind == "hook" for h in r.handlers]


def step_of(record: TraceRecord, handler: HandlerRecord) -> WhyStep:
    """One handler's part."""
    changes: list[PayloadChange] = []
    for name, pair in handler.changes.items():
        before, after = pair if len(pair) == 2 else (None, pair)
        changes += differences(before, after, name)
    return WhyStep(
        handler.by,
        handler.did,
        record.name,
        handler.place,
        handler.duration,
        handler.decision,
        handler.reason,
        handler.error,
        changes,
        record.call,
        record.time + handler.after,
        lets_through(record, handler),
    )


def rulings_of(entry: Entry | None, known: Iterable[WhyStep]) -> list[WhyStep]:
    """The rulings that the tape has and the trace does not: the policy's, or all of them."""
    if entry is None:
        return []
    rulings: list[dict[str, Any]] = entry.meta.get("rulings") or []
    told = {(step.by, step.decision or "allow") for step in known}
    return [
        WhyStep(
            str(ruling.get("by", "?")),
            {"deny": "denied", "ask": "asked"}.get(decision, "rewrote" if changed else "allowed"),
            decision=decision,
            reason=str(ruling.get("reason") or ""),
            changes=[PayloadChange(str(name), "…", "…") for name in changed],
            call=str(call_id_of(entry)),
            time=entry.time,
        )
        for ruling in rulings
        for decision in [str(ruling.get("decision", ""))]
        for changed in [list[Any](ruling.get("changed") or ())]
        if (str(ruling.get("by", "?")), decision) not in told
    ]


def with_connections(steps: list[WhyStep], entries: Iterable[Entry]) -> list[WhyStep]:
    """The steps with those of connections, of which the tape knows more than the trace."""
    found = connections_of(entries)
    return [step for step in steps if step.hook != CONNECTION or not found] + found


def connections_of(entries: Iterable[Entry]) -> list[WhyStep]:
    """Who let a sandboxed child connect to which host, or did not."""
    return [
        WhyStep(
            step.by,
            step.did,
            CONNECTION,
            reason=": ".join(
                filter(None, [f"{payload.get('host')}:{payload.get('port')}", step.reason])
            )
            + f" ({payload.get('child')}: {brief(payload.get('command'))})",
            decision=step.decision,
            call=str(payload.get("call_id") or ""),
            time=entry.time,
        )
        for entry in entries
        if entry.kind == DECISION and entry.payload.get("hook") == CONNECTION
        for payload in [entry.payload]
        for step in rulings_of(entry, ())
    ]


def notes_of(found: Explanation, trace: Trace, present: Collection[str]) -> list[str]:
    """Notes about the sources of this explanation."""
    notes: list[str] = []
    if not found.records:
        notes.append(NOTHING)
    elif not any(r.payload is not None or r.kind != "hook" for r in found.records):
        notes.append(QUIET)
    if trace.damaged:
        notes.append(f"{trace.damaged} part(s) of the trace are damaged and left out")
    if trace.dropped:
        notes.append(f"{trace.dropped:,} older record(s) of this session were dropped to make room")
    own = "hookline."  # handlers that Hookline attaches for one command
    gone = {
        s.by
        for s in found.steps
        if s.hook and present and s.by not in present and not s.by.startswith(own)
    }
    notes += [f"{name!r} took part then and is not attached now" for name in sorted(gone)]
    return notes


def missing_in(turn: TapeTurn | None) -> list[str]:
    """What the app ran without when it made a turn, a note for each."""
    told: list[str] = turn.entries[0].payload.get("missing") or [] if turn is not None else []
    return [f"this turn was made although {each}" for each in told]


# --- entries ---


def outcome_of(began: Entry | None, ended: Entry | None) -> str:
    """The result of a call."""
    if ended is None:
        return "no result" if began is not None else "not admitted"
    if not ended.payload.get("ran"):
        return "denied"
    return "failed" if ended.payload.get("is_error") else "ran"


def parsed(arguments: Any) -> Any:
    """A model's arguments, which are text, as data."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return parse_json(arguments or "{}")
    except ValueError:
        return arguments


def brief(value: Any, length: int = 100) -> str:
    """A value in one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
