"""One session's tape: an agent writes to it and reads its context from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Literal, TypeAlias

from hookline.errors import BadEntry, SessionExists, TapeConflict, UnknownEntry

from .entry import ANCHOR, FORK, LABEL, NAME, SWITCH, Entry, Json, new_id
from .merge import copies
from .outline import OutlineEntry
from .store import Hit, TapeStore

New: TypeAlias = tuple[str, Json] | tuple[str, Json, Json | None]
"""An entry to be made: kind, payload, and meta when there is any."""

_ANCHORS = frozenset({ANCHOR})


class Tape:
    """A session on a store. Get one by `await Tape.open(store, session_id)`.

    Entries go to the leaf, which the tape remembers. When somebody else has appended to the session
    since, an append is refused with `TapeConflict`; `refresh()` reads the leaf again. Tasks may share
    a tape: their appends follow each other.
    """

    def __init__(self, store: TapeStore, session_id: str, leaf: Entry | None) -> None:
        self.store = store
        self.session_id = session_id
        self._leaf = leaf
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, store: TapeStore, session_id: str | None = None) -> Tape:
        """Open a session; one that does not exist, or has no name yet, begins with its first entry."""
        if session_id is None:
            return cls(store, new_id(), None)
        return cls(store, session_id, await store.leaf(session_id))

    @property
    def leaf(self) -> Entry | None:
        """The entry that the next one will follow."""
        return self._leaf

    async def refresh(self) -> Entry | None:
        """Read the leaf again, after another writer appended."""
        async with self._lock:
            self._leaf = await self.store.leaf(self.session_id)
            return self._leaf

    # --- Writing ---

    async def append(self, kind: str, payload: Json, *, meta: Json | None = None) -> Entry:
        """Append an entry after the leaf. It is durable when this returns."""
        async with self._lock:
            leaf_id = self._leaf.id if self._leaf else None
            return await self._write(Entry.new(self.session_id, leaf_id, kind, payload, meta))

    async def append_many(self, entries: Iterable[New]) -> list[Entry]:
        """Append entries after each other in one transaction: all or none."""
        async with self._lock:
            made: list[Entry] = []
            parent_id = self._leaf.id if self._leaf else None
            for kind, payload, *meta in entries:
                made.append(Entry.new(self.session_id, parent_id, kind, payload, *meta))
                parent_id = made[-1].id
            if made:
                await self._write(*made)
            return made

    async def anchor(
        self,
        name: str,
        *,
        state: Json | None = None,
        summary: str | None = None,
        keep_from: str | None = None,
        meta: Json | None = None,
    ) -> Entry:
        """Append an anchor: context starts here from now on, with its summary and state.

        `keep_from` names an entry of this branch from which on entries before the anchor stay in the
        context, after the summary.
        """
        return await self._anchor(name, state, summary, keep_from, meta)

    async def handoff(self, name: str, *, state: Json, summary: str | None = None) -> Entry:
        """Append an anchor with the state that is needed to continue from here."""
        return await self._anchor(name, state, summary, None, {"handoff": True})

    async def _anchor(
        self,
        name: str,
        state: Json | None,
        summary: str | None,
        keep_from: str | None,
        meta: Json | None,
    ) -> Entry:
        payload: Json = {"name": name, "state": state or {}, "summary": summary}
        if keep_from is not None:
            await self._on_branch(keep_from)
            payload["keep_from"] = keep_from
        return await self.append(ANCHOR, payload, meta=meta)

    async def switch(self, entry_id: str | None, *, summary: str | None = None) -> Entry:
        """Continue from another entry of the tree; None means before the first.

        `summary` describes the abandoned branch to the model. The switch is an entry like any other,
        so the session still continues from there when it is opened again.
        """
        if entry_id is not None:
            await self.entry(entry_id)
        async with self._lock:
            left = self._leaf.id if self._leaf else None
            payload: Json = {"entry_id": entry_id, "from_id": left, "summary": summary}
            return await self._write(Entry.new(self.session_id, entry_id, SWITCH, payload))

    async def label(self, entry_id: str | None, name: str) -> Entry:
        """Give an entry a name, which no other entry has then; None takes the name away."""
        if entry_id is not None:
            await self.entry(entry_id)
        return await self.append(LABEL, {"entry_id": entry_id, "name": name})

    async def rename(self, name: str) -> Entry:
        """Call the session something; the id stays. The last name is the one that is listed."""
        if not name.strip():
            raise BadEntry(f"the name of session {self.session_id!r} must not be empty")
        return await self.append(NAME, {"name": name.strip()})

    async def fork(
        self,
        session_id: str | None = None,
        *,
        entry_id: str | None = None,
        position: Literal["at", "before"] = "at",
    ) -> Tape:
        """Begin a session that shares this one's entries up to the leaf, or up to an entry.

        Nothing is copied. With `position="before"` the entry itself is left out. When another writer
        has appended since, the fork is refused with `TapeConflict`, as an append would be.
        """
        if position not in ("at", "before"):
            raise ValueError(f"a fork is 'at' an entry or 'before' it, not {position!r}")
        at = await self.entry(entry_id) if entry_id is not None else self._leaf
        parent_id = at and (at.id if position == "at" else at.parent_id)
        payload: Json = {
            "session_id": self.session_id,
            "entry_id": at and at.id,
            "position": position,
        }
        child_id = session_id or new_id()
        if child_id == self.session_id:
            raise SessionExists(f"session {child_id!r} exists; fork into a new one")
        first = Entry.new(child_id, parent_id, FORK, payload)
        leaf_id = self._leaf.id if self._leaf else None
        try:
            await self.store.append([first], expect={child_id: None, self.session_id: leaf_id})
        except TapeConflict as error:
            if error.session_id != child_id:
                raise
            raise SessionExists(
                f"session {child_id!r} exists; fork into a new one, or open that one"
            ) from error
        return Tape(self.store, child_id, first)

    async def merge(self, child: Tape) -> list[Entry]:
        """Copy what a fork of this session wrote on its branch to the end of this tape.

        The copies name their origin in `meta`. A `merge` entry ends them; a second merge takes only
        later entries. All in one transaction.
        """
        if child.leaf is None or child.session_id == self.session_id:
            raise BadEntry(f"session {child.session_id!r} is not a fork of {self.session_id!r}")
        async with self._lock:
            made = await copies(self.store, self.session_id, self._leaf, child.leaf)
            if made:
                await self._write(*made)
            return made

    async def _write(self, *entries: Entry) -> Entry:
        leaf_id = self._leaf.id if self._leaf else None
        await self.store.append(entries, expect={self.session_id: leaf_id})
        self._leaf = entries[-1]
        return self._leaf

    # --- Reading ---

    async def branch(self) -> list[Entry]:
        """The path from the root to the leaf."""
        return await self.store.branch(self._leaf.id) if self._leaf else []

    async def context_entries(self) -> list[Entry]:
        """The branch from its last anchor: the anchor, what it keeps, and what follows it."""
        if self._leaf is None:
            return []
        entries = await self.store.branch(self._leaf.id, stop_at=_ANCHORS)
        keep_from = entries[0].payload.get("keep_from") if entries[0].kind == ANCHOR else None
        if keep_from is None or entries[0].parent_id is None:
            return entries
        kept = await self.store.branch(entries[0].parent_id, until=keep_from)
        if kept[0].id != keep_from:  # a copied anchor may name an entry of another branch
            return entries
        return [entries[0], *(entry for entry in kept if entry.kind != ANCHOR), *entries[1:]]

    async def left_behind(self, entry_id: str | None) -> tuple[str | None, list[Entry]]:
        """What a switch to this entry would leave: the last shared entry's id, and what follows it."""
        if entry_id is not None:
            await self.entry(entry_id)
        if self._leaf is None:
            return None, []
        shared = entry_id and await self.store.common_ancestor(self._leaf.id, entry_id)
        if not shared:
            return None, await self.branch()
        return shared, (await self.store.branch(self._leaf.id, until=shared))[1:]

    async def last(self, kind: str) -> Entry | None:
        """The last entry of this kind on the branch."""
        if self._leaf is None or not await self._has(kind):
            return None
        return await self.store.nearest(self._leaf.id, {kind})

    async def _has(self, kind: str) -> bool:
        """Whether the session or its origin has such an entry: saves a walk if there is none."""
        session_id = self.session_id
        while True:
            if await self.store.entries(session_id, kinds={kind}, limit=1):
                return True
            first = await self.store.entries(session_id, limit=1)
            if not first or first[0].kind != FORK:
                return False
            session_id = first[0].payload["session_id"]

    async def outline(self) -> list[OutlineEntry]:
        """The outline of the session's tree, with its origin: see `tree.Tree`."""
        return await self.store.outline(self.session_id)

    async def name(self) -> str | None:
        """What the session was called last."""
        named = await self.store.entries(self.session_id, kinds={NAME}, limit=1, newest_first=True)
        return named[0].payload.get("name") if named else None

    async def labels(self) -> dict[str, str]:
        """The names given in this session, each with its entry's id."""
        names: dict[str, str] = {}
        for entry in await self.store.entries(self.session_id, kinds={LABEL}):
            name, entry_id = entry.payload.get("name", ""), entry.payload.get("entry_id")
            names.pop(name, None)
            if entry_id is not None:
                names[name] = entry_id
        return names

    async def search(self, text: str, *, limit: int = 20) -> list[Hit]:
        """The session's entries with all these words, newest first."""
        return await self.store.search(text, session_id=self.session_id, limit=limit)

    async def entry(self, entry_id: str) -> Entry:
        """The entry, if it is this session's, or on the branch that the session was forked from."""
        entry = await self.store.get(entry_id)
        if entry is None:
            raise UnknownEntry(entry_id)
        if entry.session_id != self.session_id:
            first = await self.store.entries(self.session_id, limit=1)
            parent_id = first[0].parent_id if first else None
            if not parent_id or await self.store.common_ancestor(entry_id, parent_id) != entry_id:
                raise BadEntry(
                    f"entry {entry_id!r} belongs to session {entry.session_id!r}; "
                    f"open that session, or name an entry of {self.session_id!r}"
                )
        return entry

    async def _on_branch(self, entry_id: str) -> None:
        leaf = self._leaf
        if leaf is None or await self.store.common_ancestor(entry_id, leaf.id) != entry_id:
            raise BadEntry(f"entry {entry_id!r} is not on the branch; name one that is")
