"""Full text in SQLite: indexes entries appended since the last search, and searches them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from ..placement import PLACES
from ..text import Phrase, text_of, words_of
from .schema import transaction

BATCH = 500
LARGEST_BATCH = 1_000_000
"""How many entries, and about how many characters, are indexed at once: some milliseconds of work."""

_BEHIND = f"""
    SELECT number, coalesce(next, number * {PLACES}) FROM sessions
    LEFT JOIN indexed ON session = number
    WHERE EXISTS (SELECT 1 FROM entries WHERE seq = coalesce(next, number * {PLACES}))
"""
_NEW = "SELECT seq, time, payload FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq"
_NUMBER = "SELECT max(number) FROM texts WHERE number BETWEEN ? AND ?"
_PER_TICK = 2**17  # a tick is a tenth of a millisecond
_MOST_TICKS = 2**45  # until the year 3084


def catch_up(db: sqlite3.Connection) -> bool:
    """Index the next entries that are not yet; whether there may be more."""
    if db.execute(_BEHIND + " LIMIT 1").fetchone() is None:
        return False
    entries, characters = BATCH, LARGEST_BATCH
    with transaction(
        db
    ):  # another process may index too: only what is read inside the transaction counts
        for session, start in db.execute(_BEHIND + f" LIMIT {BATCH}").fetchall():
            done = start
            for seq, time, payload in db.execute(_NEW, (start, (session + 1) * PLACES - 1)):
                number = _free_number(db, time)
                db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, _words(payload)))
                db.execute("INSERT INTO texts VALUES (?, ?)", (number, seq))
                done = seq + 1
                entries -= 1
                characters -= len(payload)
                if entries <= 0 or characters <= 0:
                    break
            db.execute("INSERT OR REPLACE INTO indexed VALUES (?, ?)", (session, done))
            if entries <= 0 or characters <= 0:
                break
    return True


def _words(payload: str) -> str:
    try:
        return " ".join(words_of(text_of(json.loads(payload))))
    except ValueError:
        return ""  # reading the entry says that it is damaged; the others can be found all the same


def _free_number(db: sqlite3.Connection, time: float) -> int:
    """A row number that grows with time; entries of one tick follow each other."""
    tick = max(0, min(int(time * 10_000), _MOST_TICKS))
    while True:
        first = tick * _PER_TICK
        (last,) = db.execute(_NUMBER, (first, first + _PER_TICK - 1)).fetchone()
        if last is None:
            return first
        if last + 1 < first + _PER_TICK:
            return last + 1
        tick += 1


def find(
    db: sqlite3.Connection, phrases: Sequence[Phrase], where: str, values: Sequence[Any], limit: int
) -> list[int]:
    """The places of the entries with all these phrases, newest first."""
    statement = (
        "SELECT seq FROM words CROSS JOIN texts ON number = words.rowid "
        f"CROSS JOIN entries USING (seq) WHERE words MATCH ?{where} "
        "ORDER BY words.rowid DESC LIMIT ?"
    )
    return [seq for (seq,) in db.execute(statement, (_query(phrases), *values, limit))]


def _query(phrases: Sequence[Phrase]) -> str:
    return " ".join(f'"{" ".join(p.words)}"{"*" if p.prefix else ""}' for p in phrases)
