"""Moving tapes from one store to another, with proof that they arrived."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from hashlib import sha256

from hookline.errors import SessionExists

from .entry import Entry, row_of
from .store import TapeStore

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a copy. Every session was compared afterwards, entry by entry."""

    sessions: int
    added: int
    skipped: int
    """Entries that were there already."""


async def copy(
    source: TapeStore, target: TapeStore, *, on_session: Callable[[str, int], None] | None = None
) -> Copied:
    """Copy all sessions, with the same ids and in the same order, and compare them afterwards.

    What is there already is skipped, so a copy that was broken off goes on where it was, and copying
    twice does no harm. A session that went on differently there is refused, before anything of it is
    written. What is appended to the source meanwhile is left out. `on_session` is told of each session
    that was compared, and its number of entries.
    """
    counts = {info.id: info.entries for info in reversed(await source.sessions())}
    there = {info.id: info.entries for info in await target.sessions()}
    left = {session_id: count - there.get(session_id, 0) for session_id, count in counts.items()}
    for session_id in counts:
        await _check_leaf(source, target, session_id, left[session_id])
    added = sum(left.values())
    waiting = [session_id for session_id in counts if left[session_id]]
    while waiting:
        before = sum(left.values())
        for session_id in waiting:
            left[session_id] -= await _copy_session(source, target, session_id, left[session_id])
        waiting = [session_id for session_id in waiting if left[session_id]]
        if sum(left.values()) == before:
            raise SessionExists(
                f"session {waiting[0]!r} goes on from an entry that is on no tape; it is damaged"
            )
    for session_id, count in counts.items():
        await _compare(source, target, session_id, count)
        if on_session is not None:
            on_session(session_id, count)
    return Copied(len(counts), added, sum(counts.values()) - added)


async def digest(store: TapeStore, session_id: str, count: int) -> str:
    """A hash of the first entries of a session: their ids, order, times and content."""
    hashed = sha256()
    async for entry in _first(store, session_id, count):
        hashed.update(json.dumps(row_of(entry)).encode())
    return hashed.hexdigest()


async def _first(store: TapeStore, session_id: str, count: int) -> AsyncIterator[Entry]:
    after: str | None = None
    while count > 0:
        page = await store.entries(session_id, after=after, limit=min(count, _PAGE))
        for entry in page:
            yield entry
        if not page:
            return
        count -= len(page)
        after = page[-1].id


async def _check_leaf(source: TapeStore, target: TapeStore, session_id: str, left: int) -> None:
    """Refuse a session of which the other store has entries that this one lacks."""
    leaf = await target.leaf(session_id)
    if leaf is None:
        return
    kept = await source.get(leaf.id)
    if kept is None or kept != leaf or left < 0:
        raise SessionExists(
            f"session {session_id!r} went on there, after another entry ({leaf.id!r}); nothing was "
            "copied: copy the other way round, or into an empty store"
        )


async def _copy_session(source: TapeStore, target: TapeStore, session_id: str, left: int) -> int:
    """Append missing entries, up to one whose parent is not there yet. Returns how many."""
    leaf = await target.leaf(session_id)
    leaf_id = leaf and leaf.id
    done = 0
    while done < left:
        page = await source.entries(session_id, after=leaf_id, limit=min(left - done, _PAGE))
        ready = await _ready(target, page, leaf_id)
        if ready:
            await target.append(ready, expect={session_id: leaf_id})
            leaf_id = ready[-1].id
            done += len(ready)
        if len(ready) < len(page) or not page:
            break
    return done


async def _ready(target: TapeStore, page: list[Entry], leaf_id: str | None) -> list[Entry]:
    """The first entries of a page, as far as their parents are there or among them."""
    known = {None, leaf_id}
    for number, entry in enumerate(page):
        if entry.parent_id not in known and await target.get(str(entry.parent_id)) is None:
            return page[:number]
        known.add(entry.id)
    return page


async def _compare(source: TapeStore, target: TapeStore, session_id: str, count: int) -> None:
    if await digest(source, session_id, count) != await digest(target, session_id, count):
        raise SessionExists(
            f"session {session_id!r} is not the same in both stores; its entries there were not "
            "written by this copy: copy into an empty store"
        )
