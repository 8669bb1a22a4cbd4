"""Sessions in outline: their events by range, their turns, their tree.

An outline is read once for as long as its session does not grow, so that a page that scrolls through
ten thousand events asks the store for the leaf alone.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from hookline.tape import TOOL_RESULT, Tape
from hookline.tape.entry import TURN
from hookline.tape.outline import opened
from hookline.tape.tree import Tree

from ..trace.turns import interval

if TYPE_CHECKING:
    from hookline.tape import TapeStore
    from hookline.tape.outline import OutlineEntry
    from hookline.tape.tree import Stretch

    from ..trace import TraceRecord

KEPT: Final = 8
"""How many outlines are kept."""
LINES: Final = 2000
"""How many lines a tree has at most."""

# As the journal writes them. Parsing a truncated payload takes ten times as long.
_TURNED = re.compile(r'\{"status":"([\w ]*)","turn_id":"([\w-]*)"')


@dataclass(frozen=True, slots=True)
class OutlineTurn:
    """A turn by its place in the outline: from its start up to its end, or to the next one."""

    number: int
    """From 1, in the order in which they were begun."""
    turn_id: str
    start: int
    end: int
    status: str


@dataclass(frozen=True)
class Outline:
    """One session in outline."""

    session_id: str
    entries: list[OutlineEntry]

    @cached_property
    def turns(self) -> list[OutlineTurn]:
        """The turns, the oldest first."""
        found: list[OutlineTurn] = []
        begun: tuple[int, str] | None = None
        for place, entry in enumerate(self.entries):
            if entry.kind != TURN:
                continue
            status, turn_id = turned(entry.head)
            if status == "started":
                if begun is not None:
                    found.append(OutlineTurn(len(found) + 1, begun[1], begun[0], place, "cut off"))
                begun = place, turn_id
            elif begun is not None:
                found.append(OutlineTurn(len(found) + 1, begun[1], begun[0], place + 1, status))
                begun = None
        if begun is not None:
            found.append(OutlineTurn(len(found) + 1, begun[1], begun[0], len(self.entries), "started"))
        return found

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each entry stands."""
        return {entry.id: place for place, entry in enumerate(self.entries)}

    @cached_property
    def _turn_at(self) -> list[int | None]:
        numbers: list[int | None] = [None] * len(self.entries)
        for turn in self.turns:
            numbers[turn.start : turn.end] = [turn.number] * (turn.end - turn.start)
        return numbers

    def turn_at(self, place: int) -> OutlineTurn | None:
        """The turn that an entry is in."""
        number = self._turn_at[place]
        return None if number is None else self.turns[number - 1]

    def events(self, start: int, count: int) -> list[dict[str, Any]]:
        """A range of the entries."""
        return [self._event(place) for place in range(start, min(start + count, len(self.entries)))]

    def _event(self, place: int) -> dict[str, Any]:
        entry = self.entries[place]
        return {
            "place": place,
            "id": entry.id,
            "kind": entry.kind,
            "role": entry.role,
            "time": entry.time,
            "preview": entry.preview,
            "turn": self._turn_at[place],
            "session": entry.session_id,
        }

    def turn_line(self, turn: OutlineTurn, records: Iterable[TraceRecord]) -> dict[str, Any]:
        """A turn in the list, with a summary of its trace."""
        own = self.entries[turn.start : turn.end]
        began, ended = interval(own, records)
        said = next((entry.preview for entry in own if entry.role == "user"), "")
        return {
            "number": turn.number,
            "turn_id": turn.turn_id,
            "entry_id": own[0].id,
            "started": began,
            "duration": ended - began,
            "status": turn.status,
            "preview": said,
            "entries": len(own),
            "tools": sum(entry.kind == TOOL_RESULT for entry in own),
        }

    @cached_property
    def tree(self) -> dict[str, Any]:
        """The tree as lines: depth, entry and text."""
        tree = Tree.of(self.entries)
        trunk = set(map(id, tree.trunk()))
        lines: list[dict[str, Any]] = []
        waiting: list[tuple[Stretch, int]] = [(run, 0) for run in reversed(tree.roots)]
        more = 0
        while waiting:
            run, depth = waiting.pop()
            waiting += [(child, depth + 1) for child in reversed(run.children)]
            shown = [entry for entry in run.entries if self._is_told(entry, tree)]
            for entry in shown or run.entries[:1]:
                if len(lines) >= LINES:
                    more += 1
                    continue
                lines.append(
                    {
                        "id": entry.id,
                        "depth": depth,
                        "kind": entry.kind,
                        "role": entry.role,
                        "preview": entry.preview,
                        "labels": tree.labels.get(entry.id, []),
                        "turn": self._turn_at[self.places[entry.id]],
                        "on_branch": id(run) in trunk,
                        "first": entry is (shown or run.entries)[0],
                        "branches": len(run.children) if entry is (shown or run.entries)[-1] else 0,
                    }
                )
        here = [line["id"] for line in lines if line["on_branch"]]
        return {"lines": lines, "more": more, "here": here[-1] if here else None}

    @staticmethod
    def _is_told(entry: OutlineEntry, tree: Tree) -> bool:
        said = entry.role in ("user", "assistant") and entry.preview
        return bool(said) or entry.id in tree.labels or entry.kind in ("anchor", "fork", "switch")


def turned(head: str) -> tuple[str, str]:
    """The state and id of a turn, from an entry."""
    if found := _TURNED.match(head):
        return found[1], found[2]
    said = opened(head)
    return str(said.get("status", "")), str(said.get("turn_id", ""))


class Outlines:
    """The outlines of the sessions that were looked at last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, Outline]] = OrderedDict()
        self._reading = asyncio.Lock()

    async def of(self, store: TapeStore, session_id: str) -> Outline | None:
        """A session's outline; None if there is no such session."""
        async with self._reading:  # a page asks for several things of a session at once
            return await self._of(store, session_id)

    async def _of(self, store: TapeStore, session_id: str) -> Outline | None:
        leaf = await store.leaf(session_id)
        if leaf is None:
            return None
        known = self._kept.get(session_id)
        if known is None or known[0] != leaf.id:
            tape = Tape(store, session_id, leaf)
            known = leaf.id, Outline(session_id, await tape.outline())
            self._kept[session_id] = known
        self._kept.move_to_end(session_id)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return known[1]
