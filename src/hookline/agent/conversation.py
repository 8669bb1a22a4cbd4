"""`Conversation`: what a live session keeps of its context between turns.

An entry of a tape never changes, and neither does the path to it. So what was read once needs no check
but one: which entry is the leaf now. If another process has appended, only what follows the known leaf
is read; after a switch to another branch or a new anchor, the context is read as a whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hookline.tape import ANCHOR, Entry, Tape, TapeContext
from hookline.tape.context import copied
from hookline.types import Message

LARGEST = 16_000_000
"""How many characters of encoded messages a session keeps; a longer conversation is read each time."""
_ANCHORS = frozenset({ANCHOR})


class Conversation:
    """The entries of a session's context, and its messages as they were sent to a model."""

    __slots__ = ("_entries", "_leaf_id", "encoded")

    def __init__(self) -> None:
        self._leaf_id: str | None = None
        self._entries: list[Entry] = []
        self.encoded: dict[Any, Any] = {}
        """What the encoders of models keep between requests."""

    async def messages(self, tape: Tape, context: TapeContext) -> list[Message]:
        """Return the messages of the context, for the caller to change as it likes."""
        if sum(kept.size for kept in self.encoded.values()) > LARGEST:
            self._leaf_id, self._entries = None, []
            self.encoded.clear()
        entries = await self._read(tape)
        if type(context) is not TapeContext:  # a plugin's own, which may change what it is given
            entries = [replace(e, payload=copied(e.payload), meta=copied(e.meta)) for e in entries]
        return context.messages(entries)

    async def _read(self, tape: Tape) -> list[Entry]:
        leaf = tape.leaf
        if leaf is None or leaf.id == self._leaf_id:
            return self._entries if leaf is not None else []
        new: list[Entry] = []
        if self._leaf_id is not None:
            new = await tape.store.branch(leaf.id, stop_at=_ANCHORS, until=self._leaf_id)
        if new and new[0].id == self._leaf_id:
            self._entries += new[1:]
        else:
            self._entries = await tape.context_entries()
        self._leaf_id = leaf.id
        return self._entries
