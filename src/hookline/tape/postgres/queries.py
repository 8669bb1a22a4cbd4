"""The questions that a tape in PostgreSQL is asked, each one statement."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from ..entry import columns
from ..outline import outline_columns
from ..placement import PLACES
from ..store import OPENING
from .tables import within

_FROM: Final = f"FROM {{schema}}.entries e JOIN {{schema}}.sessions s ON s.number = e.seq / {PLACES}"
_SELECT: Final = f"SELECT {columns()}, e.seq {_FROM}"
_SHAPE: Final = outline_columns("e", "s.id")

_LEAF: Final = f"""
    SELECT {columns()}, e.seq FROM {{schema}}.sessions s CROSS JOIN LATERAL (
        SELECT * FROM {{schema}}.entries
        WHERE seq BETWEEN s.number * {PLACES} AND s.number * {PLACES} + {PLACES - 1}
        ORDER BY seq DESC LIMIT 1
    ) e WHERE s.id = %s
"""

# From an entry to the root: from each jump to the one before is a range of places, a run. Of each, the
# last place is known, the first is the nearest jump (or the session's start), and the walk ends at the
# nearest entry of the kinds asked for, or at the one named. Each is found by an index, so that a run
# costs the same however long it is. The limit of the kinds leaves out none: with it the planner takes
# them for few, and keeps its plan. Making a new one for each call takes longer than the call itself.
_RUNS: Final = """
    WITH RECURSIVE found AS (SELECT seq FROM {schema}.entries WHERE id = %(id)s),
    last AS (SELECT seq FROM {schema}.entries WHERE id = %(until)s),
    runs AS (
        SELECT 0 AS depth, run.* FROM found CROSS JOIN LATERAL ({run}) run
        UNION ALL
        SELECT depth + 1, run.* FROM runs
        JOIN {schema}.entries parent ON parent.id = runs.parent_id AND runs.stop IS NULL
        CROSS JOIN LATERAL ({parent_run}) run
    )
"""
_RUN: Final = f"""
    SELECT place.low, place.high, place.parent_id, stops.stop FROM (
        SELECT coalesce(jump.seq, at.seq - at.seq %% {PLACES}) AS low, at.seq AS high, jump.parent_id
        FROM (SELECT {{at}}.seq) at LEFT JOIN LATERAL (
            SELECT seq, parent_id FROM {{schema}}.entries
            WHERE jump AND seq BETWEEN at.seq - at.seq %% {PLACES} AND at.seq
            ORDER BY seq DESC LIMIT 1
        ) jump ON true
    ) place CROSS JOIN LATERAL (
        SELECT max(seq) AS stop FROM (
            SELECT nearest.seq FROM (
                SELECT unnest(%(kinds)s::text[]) AS kind LIMIT cardinality(%(kinds)s::text[])
            ) wanted CROSS JOIN LATERAL (
                SELECT seq FROM {{schema}}.entries
                WHERE kind = wanted.kind AND seq BETWEEN place.low AND place.high
                ORDER BY seq DESC LIMIT 1
            ) nearest
            UNION ALL
            SELECT seq FROM last WHERE seq BETWEEN place.low AND place.high
        ) candidates
    ) stops
"""
_SPANNED: Final = """
    FROM runs CROSS JOIN LATERAL (
        SELECT * FROM {schema}.entries
        WHERE seq BETWEEN coalesce(runs.stop, runs.low) AND runs.high ORDER BY seq
    ) e
"""
_ON_BRANCH: Final = (
    f"{_SPANNED} JOIN {{schema}}.sessions s ON s.number = e.seq / {PLACES} "
    "ORDER BY runs.depth DESC, e.seq"
)

_CHILDREN: Final = f"""
    {_SELECT} WHERE (e.parent_id = %(id)s AND e.jump) OR (e.seq = %(seq)s + 1 AND NOT e.jump)
    ORDER BY e.time, e.id
"""

_SESSIONS: Final = f"""
    SELECT listed.number, listed.seq, listed.time,
        {columns("first", "listed")}, name.id IS NOT NULL, {columns("name", "listed")}
    FROM (
        SELECT s.number, s.id, leaf.seq, leaf.time, leaf.id AS leaf_id
        FROM {{schema}}.sessions s CROSS JOIN LATERAL (
            SELECT seq, time, id FROM {{schema}}.entries
            WHERE seq BETWEEN s.number * {PLACES} AND s.number * {PLACES} + {PLACES - 1}
            ORDER BY seq DESC LIMIT 1
        ) leaf
        WHERE starts_with(s.id, %(prefix)s)
        ORDER BY leaf.time DESC, leaf.id DESC LIMIT %(limit)s
    ) listed
    JOIN {{schema}}.entries first ON first.seq = listed.number * {PLACES}
    LEFT JOIN LATERAL (
        SELECT * FROM {{schema}}.entries
        WHERE kind = 'name' AND seq BETWEEN listed.number * {PLACES} AND listed.seq
        ORDER BY seq DESC LIMIT 1
    ) name ON true
    ORDER BY listed.time DESC, listed.leaf_id DESC
"""
_OPENINGS: Final = f"""
    SELECT number, {outline_columns("e")}
    FROM unnest(%s::bigint[]) number CROSS JOIN LATERAL (
        SELECT * FROM {{schema}}.entries
        WHERE seq BETWEEN number * {PLACES} AND number * {PLACES} + {OPENING - 1} AND kind = 'message'
        ORDER BY seq
    ) e
"""


class PathRange(NamedTuple):
    """A range of places on the path from an entry to the root."""

    low: int
    high: int
    stop: int | None
    """The nearest place in it at which the walk was to end."""


class Queries:
    """The statements over the tables of one schema."""

    def __init__(self, schema: str) -> None:
        # Braces of the schema wait, as there are two forms of a run to be put in first.
        run = _RUN.replace("{at}", "found")
        parent_run = _RUN.replace("{at}", "parent")
        runs = _RUNS.replace("{run}", run).replace("{parent_run}", parent_run)
        made = partial(within, schema=schema)
        self.get = made(f"{_SELECT} WHERE e.id = %s")
        self.at = made(f"{_SELECT} WHERE e.seq = %s")
        self.at_all = made(f"{_SELECT} WHERE e.seq = ANY(%s::bigint[]) ORDER BY e.time DESC, e.id DESC")
        self.seq = made(f"SELECT e.seq, s.id {_FROM} WHERE e.id = %s")
        self.number = made("SELECT number FROM {schema}.sessions WHERE id = %s")
        self.leaf = made(_LEAF)
        self.runs = made(f"{runs} SELECT low, high, stop FROM runs ORDER BY depth")
        self.branch = made(f"{runs} SELECT {columns()} {_ON_BRANCH}")
        self.outline = made(f"SELECT {_SHAPE} {_FROM} WHERE e.seq BETWEEN %s AND %s ORDER BY e.seq")
        self.outline_branch = made(f"{runs} SELECT {_SHAPE} {_ON_BRANCH}")
        self.children = made(_CHILDREN)
        self.sessions = made(_SESSIONS)
        self.openings = made(_OPENINGS)
        self._made = made

    def entries(self, *, of_kinds: bool, newest_first: bool) -> bytes:
        """A session's entries, optionally between two positions."""
        order = "DESC" if newest_first else "ASC"
        within_session = f"""
            seq BETWEEN coalesce(%(low)s::bigint, s.number * {PLACES})
            AND coalesce(%(high)s::bigint, s.number * {PLACES} + {PLACES - 1})
        """
        chosen = f"""
            SELECT * FROM {{schema}}.entries WHERE {within_session}
            ORDER BY seq {order} LIMIT %(limit)s
        """
        if of_kinds:
            chosen = f"""
                SELECT of_kind.* FROM unnest(%(kinds)s::text[]) wanted CROSS JOIN LATERAL (
                    SELECT * FROM {{schema}}.entries WHERE kind = wanted AND {within_session}
                    ORDER BY seq {order} LIMIT %(limit)s
                ) of_kind ORDER BY of_kind.seq {order} LIMIT %(limit)s
            """
        return self._made(
            f"""
            SELECT {columns()} FROM {{schema}}.sessions s CROSS JOIN LATERAL ({chosen}) e
            WHERE s.id = %(session)s ORDER BY e.seq {order}
            """
        )
