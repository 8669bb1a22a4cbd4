"""Compaction: which entries of a context a summary takes the place of, and whether one fits.

preparation = plan(await tape.context_entries(), keep_tokens=20_000)
request = summary_request(preparation)  # for a model
result = CompactionResult(summary, preparation.first_kept_entry_id, preparation.tokens_before)
await apply(tape, result)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hookline.errors import BadCompaction
from hookline.events import CompactionResult
from hookline.tape import ANCHOR, MESSAGE, TOOL_CALL, TOOL_RESULT, Entry, Tape
from hookline.tape.entry import TURN

from .summary import branch_request, summary_request
from .tokens import Estimate, calls_of, context_tokens, estimate_messages, estimate_tokens, role_of

__all__ = [
    "CompactionResult",
    "Preparation",
    "apply",
    "branch_request",
    "check",
    "context_tokens",
    "estimate_messages",
    "estimate_tokens",
    "plan",
    "summary_request",
]

NAME: Final = "compaction"
"""The name of the anchor that a compaction writes."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """The plan of a compaction."""

    entries: tuple[Entry, ...]
    """What the summary takes the place of, oldest first."""
    first_kept_entry_id: str | None
    """Where the entries begin that stay whole; None: none stay."""
    tokens_before: int
    kept_tokens: int
    previous_summary: str | None = None
    """What the last compaction said, which the new summary carries forward."""
    turn_prefix: tuple[Entry, ...] = ()
    """When the cut goes through a turn: the part of it that is among `entries`."""

    @property
    def splits_turn(self) -> bool:
        """Whether the cut goes through a turn that alone exceeds what may be kept."""
        return bool(self.turn_prefix)


# --- Planning ---


def plan(
    entries: Sequence[Entry], *, keep_tokens: int, estimate: Estimate = estimate_tokens
) -> Preparation | None:
    """Where to cut a context, so that about `keep_tokens` stay whole; None: there is nothing to cut.

    `entries` are a tape's `context_entries()`. The cut is where a turn begins. Only when the last turn
    alone is larger than `keep_tokens`, it is inside of it, where the model began to answer: the last
    model turn always stays. A tool call stays with its result. With `keep_tokens=0`, nothing stays,
    unless a turn is under way.
    """
    first = 1 if entries and entries[0].kind == ANCHOR else 0
    cut = _cut(entries, first, keep_tokens, estimate)
    done = tuple(entries[first:cut])
    if not any(map(estimate, done)):
        return None
    start = max((n for n in _turn_starts(entries) if n <= cut), default=first)
    inside = cut < len(entries) and start < cut
    return Preparation(
        entries=done,
        first_kept_entry_id=entries[cut].id if cut < len(entries) else None,
        tokens_before=context_tokens(entries, estimate),
        kept_tokens=sum(map(estimate, entries[cut:])),
        previous_summary=entries[0].payload.get("summary") if first else None,
        turn_prefix=tuple(entries[max(start, first) : cut]) if inside else (),
    )


def _cut(entries: Sequence[Entry], first: int, keep_tokens: int, estimate: Estimate) -> int:
    """The place of the first entry to keep."""
    room, fits = keep_tokens, len(entries)
    while fits > first and (size := estimate(entries[fits - 1])) <= room:
        room -= size
        fits -= 1
    if fits <= first:
        return first
    whole = _whole(entries)
    turns = [n for n in _turn_starts(entries) if n > first and whole[n]]
    if keep_tokens <= 0 and whole[len(entries)] and not _under_way(entries):
        return len(entries)
    if after := [n for n in turns if n >= fits]:
        return after[0]
    answers = [n for n, e in enumerate(entries) if n > first and whole[n] and role_of(e) == "assistant"]
    places = sorted({*turns, *answers})
    return next((n for n in places if n >= fits), places[-1] if places else first)


def _turn_starts(entries: Sequence[Entry]) -> list[int]:
    """Where turns begin: at the journal's entry, or at a user's message outside of such a turn."""
    starts: list[int] = []
    under_way = False
    for place, entry in enumerate(entries):
        if entry.kind == TURN:
            under_way = _begins_turn(entry)
        if _begins_turn(entry) or (role_of(entry) == "user" and not under_way):
            starts.append(place)
    return starts


def _begins_turn(entry: Entry) -> bool:
    return entry.kind == TURN and entry.payload.get("status") == "started"


def _under_way(entries: Sequence[Entry]) -> bool:
    """Whether the last turn has begun and not ended."""
    turns = [entry for entry in entries if entry.kind == TURN]
    return bool(turns) and _begins_turn(turns[-1])


def _whole(entries: Sequence[Entry]) -> list[bool]:
    """For each place, whether a cut before it leaves every call with its result."""
    whole = [True] * (len(entries) + 1)
    turns = set(_turn_starts(entries))
    made: dict[str, int] = {}  # by call id, the last message that made such a call
    unanswered: dict[str, int] = {}
    for place, entry in enumerate(entries):
        if place in turns:
            unanswered.clear()  # calls that were given up: nothing answers them any more
        if entry.kind == MESSAGE:
            calls = dict.fromkeys((str(call.get("id")) for call in calls_of(entry)), place)
            made.update(calls)
            unanswered.update(calls)
        elif entry.kind in (TOOL_CALL, TOOL_RESULT):
            call_id = str(entry.payload.get("id" if entry.kind == TOOL_CALL else "tool_call_id"))
            if call_id in made:
                _forbid(whole, made[call_id], place)
            if entry.kind == TOOL_RESULT:
                unanswered.pop(call_id, None)
    for place in unanswered.values():  # its result may be on the way
        _forbid(whole, place, len(entries))
    return whole


def _forbid(whole: list[bool], start: int, end: int) -> None:
    """No cut after the start and up to the end."""
    whole[start + 1 : end + 1] = [False] * (end - start)


# --- Doing ---


def check(compaction: CompactionResult, entries: Sequence[Entry]) -> None:
    """Refuse a compaction that does not fit these entries, a tape's `context_entries()`."""
    if not isinstance(compaction, CompactionResult):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadCompaction(f"it must be a CompactionResult, not {type(compaction).__name__}")
    summary: Any = compaction.summary
    if not isinstance(summary, str) or not summary.strip():
        raise BadCompaction("its summary is empty; say what happened so far")
    kept = compaction.first_kept_entry_id
    place = len(entries)
    if kept is not None:
        place = next((n for n, entry in enumerate(entries) if entry.id == kept), -1)
        if place < 0:
            raise BadCompaction(
                f"its first_kept_entry_id {kept!r} is no entry of the context; take one of "
                "branch_entries, or the one that preparation names"
            )
        if entries[place].kind == ANCHOR:
            raise BadCompaction(
                f"its first_kept_entry_id {kept!r} is an anchor; name the entry after it"
            )
    if not _whole(entries)[place]:
        where = f"at entry {kept!r}" if kept is not None else "after the last entry"
        raise BadCompaction(
            f"a cut {where} parts a tool call from its result; keep from the message that made the call"
        )


async def apply(tape: Tape, compaction: CompactionResult) -> Entry:
    """Write the compaction's anchor. What it leaves out of the context stays on the tape.

    State that the last anchor carried, as a handoff does, is carried over.
    """
    entries = await tape.context_entries()
    check(compaction, entries)
    return await tape.anchor(
        NAME,
        state=entries[0].payload.get("state") if entries and entries[0].kind == ANCHOR else None,
        summary=compaction.summary,
        keep_from=compaction.first_kept_entry_id,
        meta={"tokens_before": compaction.tokens_before, "details": compaction.details},
    )
