"""Where appended entries go, in both databases: each at the next place of its session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, get_type_hints

from .entry import STORED, EntryRow, stored_values

Expected: TypeAlias = Mapping[str, str | None]
"""The leaves that sessions must have for an append."""

PLACES: Final = 2**32
"""How many places a session has: `seq` is the session's number times this, plus the place."""

COLUMNS: Final = (*STORED, "seq", "jump")
"""The columns of a placed row: `jump` is whether its parent is not the entry before it."""

# An entry's `seq` is its session's number and its place in the session, counted from 0. So the table
# itself is the order, the length and the leaf of every session, an append touches no index but the one
# on `id`, and two writers at one place are an error of the database.
# `jump` is true where the parent is not the entry before. Only those need an index to be found from
# their parent, and a branch between two of them is one range of places.


def declared_columns(*, real: str, flag: str, text: str) -> str:
    """The columns of the table of entries after `seq`, declared with a database's own types.

    Texts follow the numbers, the payload last: the columns before it are read without it.
    """
    types = {float: f"{real} NOT NULL", str: f"{text} NOT NULL", str | None: text}
    hints = get_type_hints(EntryRow)
    numbers = [name for name in STORED if hints[name] is float]
    texts = [name for name in STORED if hints[name] is not float]
    declared = [f"{name} {types[hints[name]]}" for name in (*numbers, *texts)]
    declared.insert(len(numbers), f"jump {flag} NOT NULL")
    return ", ".join(declared)


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
