"""Where appended entries go, in both databases: each at the next place of its session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from .entry import STORED, EntryRow, stored_values

Expected: TypeAlias = Mapping[str, str | None]
"""The leaves that sessions must have for an append."""

COLUMNS = (*STORED, "seq", "jump")
"""The columns of a placed row: `jump` is whether its parent is not the entry before it."""


class Leaf(NamedTuple):
    """Where the next entry of a session goes: after which entry, and at which place."""

    id: str | None
    next_seq: int


def only_session(session_id: str, leaf: Leaf, rows: Sequence[EntryRow], expect: Expected) -> bool:
    """Whether this is about one session alone, and its leaf is the expected one."""
    for expected_of, leaf_id in expect.items():
        if expected_of != session_id or leaf_id != leaf.id:
            return False
    return len(rows) == 1 or all(row.session_id == session_id for row in rows)


def place(
    rows: Sequence[EntryRow], leaves: dict[str, Leaf]
) -> tuple[list[tuple[Any, ...]], dict[str, str]]:
    """Return the values of `COLUMNS` for each row, and the parents that must be on a tape already.

    The parents are by the ids of their children. Afterwards `leaves` are the new ones.
    """
    placed: list[tuple[Any, ...]] = []
    foreign: dict[str, str] = {}
    new: set[str] = set()
    for row in rows:
        leaf_id, seq = leaves[row.session_id]
        jump = row.parent_id != leaf_id
        if jump and row.parent_id is not None and row.parent_id not in new:
            foreign[row.id] = row.parent_id
        placed.append((*stored_values(row), seq, jump))
        new.add(row.id)
        leaves[row.session_id] = Leaf(row.id, seq + 1)
    return placed, foreign
