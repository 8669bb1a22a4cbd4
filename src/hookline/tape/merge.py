"""Merging a fork back: its entries as copies for the tape that it came from."""

from __future__ import annotations

from hookline.errors import BadEntry

from .entry import FORK, LABEL, MERGE, NAME, SWITCH, Entry, Json
from .store import TapeStore

_NOT_COPIED = frozenset({FORK, NAME, SWITCH})  # they say where and what the fork is, not what it found


async def copies(
    store: TapeStore, session_id: str, leaf: Entry | None, child_leaf: Entry
) -> list[Entry]:
    """What the child wrote since it was forked or last merged, to follow the leaf; then a `merge`."""
    child_id = child_leaf.session_id
    first = await store.entries(child_id, limit=1)
    if not first or first[0].kind != FORK or first[0].payload.get("session_id") != session_id:
        raise BadEntry(f"session {child_id!r} is not a fork of {session_id!r}; merge it into its own")
    path = await store.branch(child_leaf.id, stop_at={FORK})
    merged = await _merged(store, session_id, child_id)
    new = [entry for entry in path if entry.session_id == child_id and entry.id not in merged]
    made: list[Entry] = []
    ids: dict[str, str] = {}
    parent_id = leaf and leaf.id
    for entry in new:
        if entry.kind in _NOT_COPIED:
            continue
        origin = {"session_id": entry.session_id, "entry_id": entry.id}
        meta = {**entry.meta, "origin": origin}
        copy = Entry.new(session_id, parent_id, entry.kind, _moved(entry, ids), meta)
        ids[entry.id] = parent_id = copy.id
        made.append(copy)
    if made:
        payload: Json = {
            "session_id": child_id,
            "entry_id": child_leaf.id,
            "count": len(made),
        }
        made.append(Entry.new(session_id, parent_id, MERGE, payload))
    return made


async def _merged(store: TapeStore, session_id: str, child_id: str) -> set[str]:
    """The ids of the child's entries that earlier merges covered."""
    covered: set[str] = set()
    for merge in await store.entries(session_id, kinds={MERGE}):
        if merge.payload.get("session_id") == child_id:
            path = await store.branch(merge.payload["entry_id"], stop_at={FORK})
            covered.update(entry.id for entry in path)
    return covered


def _moved(entry: Entry, ids: dict[str, str]) -> Json:
    """The payload, with the entries that it names replaced by their copies."""
    names = {"entry_id"} if entry.kind == LABEL else {"keep_from"}
    moved = {name: ids[entry.payload[name]] for name in names if entry.payload.get(name) in ids}
    return {**entry.payload, **moved} if moved else entry.payload
