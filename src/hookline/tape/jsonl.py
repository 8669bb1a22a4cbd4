"""Tapes as JSON Lines: a header, then one entry on each line, parents before children."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from hookline.errors import BadEntry, BadLine, TapeError
from hookline.text.foreign_json import parse_json

from .entry import IMPORT, Entry, Json, row_of
from .store import TapeStore

FORMAT: Final = 1
"""The version of the format, in the header line."""

_PAGE = 1000
_FIELDS = tuple(field.name for field in fields(Entry))


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    sessions: int
    added: int
    skipped: int
    """Entries that were on the tape already."""


async def export(store: TapeStore, session_ids: Iterable[str] | None = None) -> AsyncIterator[str]:
    """The lines of these sessions, or of all, each ending in a newline.

    The sessions that they were forked from are exported with them, because their branches run through
    those. Entries appended meanwhile are left out.
    """
    counts = {info.id: info.entries for info in await store.sessions()}
    wanted = list(reversed(counts)) if session_ids is None else list(session_ids)
    if missing := [name for name in wanted if name not in counts]:
        raise TapeError(f"no session {missing[0]!r}; `hookline tape list` shows the sessions")
    order = await _with_ancestors(store, wanted)
    sessions = {session_id: counts[session_id] for session_id in order}
    yield _line({"hookline_tape": FORMAT, "sessions": sessions})
    for session_id, count in sessions.items():
        after: str | None = None
        while count > 0:
            page = await store.entries(session_id, after=after, limit=min(count, _PAGE))
            for entry in page:
                yield _line({name: getattr(entry, name) for name in _FIELDS})
            count -= len(page)
            after = page[-1].id


async def _with_ancestors(store: TapeStore, wanted: Sequence[str]) -> list[str]:
    """The sessions and those that they were forked from, which come first."""
    order: dict[str, None] = {}
    for session_id in wanted:
        line = [session_id]
        while line[-1] not in order:
            (first,) = await store.entries(line[-1], limit=1)
            parent = first.parent_id and await store.get(first.parent_id)
            if not parent or parent.session_id in line:
                break
            line.append(parent.session_id)
        order.update(dict.fromkeys(reversed(line)))
    return list(order)


def _line(value: Json) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


async def import_(
    store: TapeStore, lines: Iterable[str | bytes] | AsyncIterable[str | bytes], *, mark: bool = True
) -> Imported:
    """Append the entries of an export that the store does not have yet, all or none.

    Everything is checked before anything is written; `BadLine` names the line. A session to which
    something else was appended here is refused, since its leaf would move. With `mark`, an entry at
    the end of each session says that it was imported: its model then counts only if it is configured,
    and its cut-off turn is continued only on request. Leave it out for a copy of your own tape.
    """
    header, entries = await _read(lines)
    _check_counts(header, entries)
    known = {entry.id: number for number, entry in entries.items()}
    new: dict[int, Entry] = {}
    for number, entry in entries.items():
        kept = await store.get(entry.id)
        if kept is None:
            new[number] = entry
        elif row_of(kept) != row_of(entry):
            raise BadLine(number, f"entry {entry.id!r} is on the tape already, with other content")
        parent_id = entry.parent_id
        if parent_id is not None and parent_id not in known and await store.get(parent_id) is None:
            raise BadLine(number, f"the parent {parent_id!r} is neither in the file nor on a tape")
    expect: dict[str, str | None] = {}
    for number, entry in new.items():
        if entry.session_id not in expect:
            leaf = last = await store.leaf(entry.session_id)
            while last is not None and last.kind == IMPORT and last.parent_id is not None:
                last = await store.get(last.parent_id)
            if leaf is not None and last is not None and last.id not in known:
                raise BadLine(
                    number,
                    f"session {entry.session_id!r} went on here, after another entry ({leaf.id!r})",
                )
            expect[entry.session_id] = leaf and leaf.id
    if new:
        ordered = _parents_first(new)
        await store.append([*ordered, *(_marks(ordered) if mark else ())], expect=expect)
    sessions = {entry.session_id for entry in entries.values()}
    return Imported(len(sessions), len(new), len(entries) - len(new))


def _marks(ordered: list[Entry]) -> list[Entry]:
    """An entry for the end of each session that says where its entries come from."""
    last = {entry.session_id: entry for entry in ordered}
    counts = Counter(entry.session_id for entry in ordered)
    return [
        Entry.new(name, entry.id, IMPORT, {"entries": counts[name]}) for name, entry in last.items()
    ]


async def _read(
    lines: Iterable[str | bytes] | AsyncIterable[str | bytes],
) -> tuple[Json, dict[int, Entry]]:
    """The header, and the entries by the number of their line."""
    header: Json | None = None
    entries: dict[int, Entry] = {}
    seen: dict[str, int] = {}
    number = 0
    async for line in _each(lines):
        number += 1
        if not line.strip():
            continue
        value = _parsed(number, line)
        if header is None:
            header = _checked_header(number, value)
            continue
        entry = _entry(number, value)
        if entry.id in seen:
            raise BadLine(number, f"entry {entry.id!r} is on line {seen[entry.id]} too")
        seen[entry.id] = number
        entries[number] = entry
    if header is None:
        raise BadLine(1, "no header; this is not an export of a tape")
    return header, entries


async def _each(
    lines: Iterable[str | bytes] | AsyncIterable[str | bytes],
) -> AsyncIterator[str | bytes]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line


def _parsed(number: int, line: str | bytes) -> Json:
    try:
        value: Any = parse_json(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(number, f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise BadLine(number, "not a JSON object")
    return value  # pyright: ignore[reportUnknownVariableType]


def _checked_header(number: int, value: Json) -> Json:
    version = value.get("hookline_tape")
    if not isinstance(version, int):
        raise BadLine(number, "no header; this is not an export of a tape")
    if version > FORMAT:
        raise BadLine(
            number, f"the format is version {version}, and this Hookline knows {FORMAT}; update it"
        )
    if not isinstance(value.get("sessions"), dict):
        raise BadLine(number, "the header has no counts of the sessions' entries")
    return value


def _entry(number: int, value: Json) -> Entry:
    if missing := [name for name in _FIELDS if name not in value]:
        raise BadLine(number, f"the entry has no {missing[0]!r}")
    entry = Entry(**{name: value[name] for name in _FIELDS})
    try:
        row_of(entry)
    except BadEntry as error:
        raise BadLine(number, str(error)) from error
    return entry


def _check_counts(header: Json, entries: dict[int, Entry]) -> None:
    counts: dict[str, int] = {}
    for entry in entries.values():
        counts[entry.session_id] = counts.get(entry.session_id, 0) + 1
    for session_id in {**header["sessions"], **counts}:
        promised, found = header["sessions"].get(session_id, 0), counts.get(session_id, 0)
        if promised != found:
            raise BadLine(
                max(entries, default=1),
                f"the file ends with {found} entries of session {session_id!r}, and its header "
                f"says {promised}; it was cut off or edited",
            )


def _parents_first(entries: dict[int, Entry]) -> list[Entry]:
    """The entries in an order in which each comes after its parent, and each session in its own."""
    waiting = {entry.id: number for number, entry in entries.items()}
    order: list[Entry] = []
    left = dict(entries)
    while left:
        before = len(left)
        stuck: set[str] = set()  # sessions whose next entry waits for its parent
        for number, entry in list(left.items()):
            if entry.session_id in stuck or entry.parent_id in waiting:
                stuck.add(entry.session_id)
                continue
            order.append(left.pop(number))
            del waiting[entry.id]
        if len(left) == before:
            number = min(left)
            raise BadLine(number, f"entry {left[number].id!r} is its own ancestor")
    return order
