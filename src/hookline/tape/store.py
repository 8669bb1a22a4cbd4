"""The storage interface for tapes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from .entry import FORK, Entry
from .outline import OutlineEntry
from .text import Phrase, snippet, text_of

OPENING: Final = 20
"""How many of a session's entries a listing looks at for the user's first message."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a store knows about a session without reading it."""

    id: str
    created: float
    updated: float
    entries: int
    parent: str | None
    """The session that it was forked from."""
    name: str | None = None
    """Its latest name."""
    preview: str = ""
    """The start of the user's first message, when it is among the first `OPENING` entries."""
    workspace: str | None = None
    """The folder of its first turn, if it begins with one."""
    channel: str | None = None
    """The channel of its first message, if it begins with a turn."""

    @classmethod
    def of(
        cls,
        first: Entry,
        updated: float,
        entries: int,
        name: Entry | None,
        opening: Iterable[OutlineEntry],
    ) -> SessionInfo:
        """Describe a session by its first entries, its last time, its length and its last name."""
        parent = first.payload.get("session_id") if first.kind == FORK else None
        called = name.payload.get("name") if name else None
        preview = next((entry.preview for entry in opening if entry.role == "user"), "")
        workspace, envelope = first.payload.get("workspace"), first.payload.get("envelope")
        known = cast("dict[str, Any]", envelope) if isinstance(envelope, dict) else {}
        channel = known.get("channel")
        return cls(
            first.session_id, first.time, updated, entries, parent, called, preview, workspace, channel
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that a search found, and the words around the place."""

    entry: Entry
    snippet: str

    @classmethod
    def of(cls, entry: Entry, phrases: Sequence[Phrase]) -> Hit:
        """Show where the entry has the first of these phrases."""
        return cls(entry, snippet(text_of(entry.payload), phrases))


class TapeStore(Protocol):
    """Keeps the entries of many sessions, those of each in the order in which they were appended.

    Nothing is ever updated or deleted. A session exists from its first entry on.
    """

    async def append(
        self, entries: Sequence[Entry], *, expect: Mapping[str, str | None] | None = None
    ) -> None:
        """Keep the entries, all or none. Each parent must be kept already, or come before its child.

        `expect` names for a session the id of its leaf (None: the session must not exist yet). When
        another writer was faster, the append is refused with `TapeConflict`.
        """
        ...

    async def get(self, entry_id: str) -> Entry | None:
        """The entry with this id."""
        ...

    async def leaf(self, session_id: str) -> Entry | None:
        """The entry last appended to the session: where the next one goes."""
        ...

    async def branch(
        self, entry_id: str, *, stop_at: Collection[str] = frozenset(), until: str | None = None
    ) -> list[Entry]:
        """The path to this entry, oldest first, across sessions.

        It starts at the root, or at the nearest entry whose kind is in `stop_at` or whose id is
        `until`, that entry included.
        """
        ...

    async def nearest(self, entry_id: str, kinds: Collection[str]) -> Entry | None:
        """The nearest entry of one of these kinds on the path from this entry to the root."""
        ...

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
        """The session's entries as appended: those after and before the named entries of it."""
        ...

    async def outline(self, session_id: str) -> list[OutlineEntry]:
        """The session's tree in outline, parents before children.

        First the path that it was forked from, from the root on, then its own entries as appended.
        """
        ...

    async def common_ancestor(self, first_id: str, second_id: str) -> str | None:
        """The nearest entry that is on the paths to both, which may be one of the two."""
        ...

    async def children(self, entry_id: str) -> list[Entry]:
        """The entries whose parent this is, in all sessions, the oldest first."""
        ...

    async def sessions(
        self, *, prefix: str | None = None, limit: int | None = None
    ) -> list[SessionInfo]:
        """The sessions, the one written to last first, by the time of its last entry."""
        ...

    async def search(
        self,
        text: str,
        *,
        session_id: str | None = None,
        kinds: Collection[str] | None = None,
        limit: int = 20,
    ) -> list[Hit]:
        """The entries with all these words (`word*`: words that start so), newest first."""
        ...

    async def close(self) -> None:
        """Release files and connections. Closing twice does no harm."""
        ...
