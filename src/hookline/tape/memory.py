"""Tapes in memory: for tests, and for sessions that need not outlive the process."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from hookline.errors import DuplicateEntry, TapeClosed, TapeConflict, UnknownEntry

from .entry import NAME, Entry, EntryRow, entry_of, row_of
from .outline import HEAD, OutlineEntry
from .store import OPENING, Hit, SessionInfo
from .text import matches, phrases_of, text_of, words_of


class MemoryTapeStore:
    """A `TapeStore` in memory. Entries are stored as JSON, as in other stores: changing a payload
    afterwards does not change the tape.
    """

    def __init__(self) -> None:
        self._rows: dict[int, EntryRow] = {}
        self._next = 0
        self._numbers: dict[str, int] = {}
        self._sessions: dict[str, list[int]] = {}
        self._children: dict[str, list[int]] = {}
        self._closed = False

    async def append(
        self, entries: Sequence[Entry], *, expect: Mapping[str, str | None] | None = None
    ) -> None:
        """Keep the entries, all or none."""
        self._check_open()
        rows = [row_of(entry) for entry in entries]
        for session_id, expected in (expect or {}).items():
            leaf = self._leaf_id(session_id)
            if leaf != expected:
                raise TapeConflict(session_id, expected, leaf)
        new: set[str] = set()
        for row in rows:
            if row.id in self._numbers or row.id in new:
                raise DuplicateEntry(row.id)
            parent = row.parent_id
            if parent is not None and parent not in self._numbers and parent not in new:
                raise UnknownEntry(parent, parent_of=row.id)
            new.add(row.id)
        for row in rows:
            number, self._next = self._next, self._next + 1
            self._rows[number] = row
            self._numbers[row.id] = number
            self._sessions.setdefault(row.session_id, []).append(number)
            if row.parent_id is not None:
                self._children.setdefault(row.parent_id, []).append(number)

    async def get(self, entry_id: str) -> Entry | None:
        """The entry with this id."""
        self._check_open()
        number = self._numbers.get(entry_id)
        return None if number is None else self._entry(number)

    async def leaf(self, session_id: str) -> Entry | None:
        """The entry last appended to the session."""
        self._check_open()
        numbers = self._sessions.get(session_id)
        return self._entry(numbers[-1]) if numbers else None

    async def branch(
        self, entry_id: str, *, stop_at: Collection[str] = frozenset(), until: str | None = None
    ) -> list[Entry]:
        """The path to this entry, oldest first."""
        path: list[Entry] = []
        for number in self._path(entry_id):
            path.append(self._entry(number))
            if path[-1].kind in stop_at or path[-1].id == until:
                break
        path.reverse()
        return path

    async def nearest(self, entry_id: str, kinds: Collection[str]) -> Entry | None:
        """The nearest entry of one of these kinds on the path to the root."""
        return next((self._entry(n) for n in self._path(entry_id) if self._rows[n][3] in kinds), None)

    async def entries(
        self,
        session_id: str,
        *,
        kinds: Collection[str] | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Entry]:
        """The session's entries as appended."""
        self._check_open()
        low = -1 if after is None else self._number_in(session_id, after)
        high = self._next if before is None else self._number_in(session_id, before)
        numbers = [
            number
            for number in self._sessions.get(session_id, ())
            if low < number < high and (kinds is None or self._rows[number][3] in kinds)
        ]
        if newest_first:
            numbers.reverse()
        return [self._entry(number) for number in numbers[:limit]]

    async def outline(self, session_id: str) -> list[OutlineEntry]:
        """The session's tree in outline."""
        self._check_open()
        numbers = self._sessions.get(session_id, [])
        parent_id = self._rows[numbers[0]][2] if numbers else None
        inherited = [] if parent_id is None else list(self._path(parent_id))[::-1]
        return [self._outlined(number) for number in (*inherited, *numbers)]

    async def common_ancestor(self, first_id: str, second_id: str) -> str | None:
        """The nearest entry that is on the paths to both."""
        second = set(self._path(second_id))
        shared = (number for number in self._path(first_id) if number in second)
        return next((self._rows[number][0] for number in shared), None)

    async def children(self, entry_id: str) -> list[Entry]:
        """The entries whose parent this is."""
        self._number(entry_id)
        children = [self._entry(number) for number in self._children.get(entry_id, ())]
        return sorted(children, key=lambda entry: (entry.time, entry.id))

    async def sessions(
        self, *, prefix: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The sessions, the one written to last first."""
        self._check_open()
        found = [item for item in self._sessions.items() if item[0].startswith(prefix or "")]
        found.sort(key=lambda item: self._age(item[1][-1]), reverse=True)
        return [self._info(numbers) for _, numbers in found[:limit]]

    async def search(
        self,
        text: str,
        *,
        session_id: str | None = None,
        kinds: Collection[str] | None = None,
        limit: int = 20,
    ) -> list[Hit]:
        """The entries with all these words, newest first."""
        self._check_open()
        phrases = phrases_of(text)
        hits: list[Hit] = []
        newest = sorted(self._rows, key=self._age, reverse=True) if phrases else []
        for number in newest:
            _, session, _, kind, *_ = self._rows[number]
            if len(hits) >= limit:
                break
            if session_id in (None, session) and (kinds is None or kind in kinds):
                entry = self._entry(number)
                if matches(phrases, words_of(text_of(entry.payload))):
                    hits.append(Hit.of(entry, phrases))
        return hits

    def forget(self, session_id: str) -> None:
        """Drop a session, unless another one branches off from it."""
        numbers = self._sessions.get(session_id, [])
        entries = {self._rows[number][0] for number in numbers}
        of_others = (
            child
            for entry in entries
            for child in self._children.get(entry, ())
            if child not in numbers
        )
        if any(True for _ in of_others):
            return
        for entry in entries:
            del self._rows[self._numbers.pop(entry)]
            self._children.pop(entry, None)
        self._sessions.pop(session_id, None)

    async def close(self) -> None:
        """Refuse everything from now on. Closing twice does no harm."""
        self._closed = True

    def _age(self, number: int) -> tuple[float, str]:
        return self._rows[number][4], self._rows[number][0]

    def _check_open(self) -> None:
        if self._closed:
            raise TapeClosed

    def _leaf_id(self, session_id: str) -> str | None:
        numbers = self._sessions.get(session_id)
        return self._rows[numbers[-1]][0] if numbers else None

    def _number(self, entry_id: str) -> int:
        self._check_open()
        if entry_id not in self._numbers:
            raise UnknownEntry(entry_id)
        return self._numbers[entry_id]

    def _number_in(self, session_id: str, entry_id: str) -> int:
        number = self._number(entry_id)
        if self._rows[number][1] != session_id:
            raise UnknownEntry(entry_id, session_id)
        return number

    def _path(self, entry_id: str) -> Iterator[int]:
        number = self._number(entry_id)
        yield number
        while (parent := self._rows[number][2]) is not None:
            number = self._numbers[parent]
            yield number

    def _info(self, numbers: Sequence[int]) -> SessionInfo:
        names = (self._entry(number) for number in reversed(numbers) if self._rows[number][3] == NAME)
        return SessionInfo.of(
            self._entry(numbers[0]),
            self._rows[numbers[-1]][4],
            len(numbers),
            next(names, None),
            map(self._outlined, numbers[:OPENING]),
        )

    def _outlined(self, number: int) -> OutlineEntry:
        row = self._rows[number]
        return OutlineEntry(
            row.id, row.session_id, row.parent_id, row.kind, row.time, row.payload[:HEAD]
        )

    def _entry(self, number: int) -> Entry:
        return entry_of(self._rows[number])
