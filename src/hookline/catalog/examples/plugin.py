"""What plugins bring, and what they may permit."""

import sqlite3
from pathlib import Path
from typing import Any

from hookline.hooks import PluginManager, hookimpl

from ..plugin import Approval


class Library:
    """A plugin with something of each kind: a tool, a skill, a store, a pack and a command."""

    def __init__(self, home: Path = Path()) -> None:
        self.home = home
        self.books: sqlite3.Connection | None = None

    @hookimpl
    def hookline_startup(self, pm: PluginManager) -> None:
        """Open the database once for the whole run."""
        self.books = sqlite3.connect(self.home / "books.db")
        self.books.execute("create table if not exists books (title text)")

    @hookimpl
    async def hookline_shutdown(self, pm: PluginManager) -> None:
        """Close what startup opened, where it got that far."""
        if self.books is not None:
            self.books.close()

    @hookimpl
    def register_tools(self) -> list[Any]:
        """Bring a tool: a function or method with types and a docstring."""
        return [self.find_book]

    @hookimpl
    def register_skills(self) -> list[Any]:
        """Bring a way of working."""
        return [{"name": "librarian", "kind": "agent", "tools": ["find_book"]}]

    @hookimpl
    def register_stores(self) -> list[Any]:
        """Bring a store; the variable is filled in from the environment."""
        return [{"name": "books", "protocol": "doc", "config": {"url": "${BOOKS_URL}"}}]

    @hookimpl
    def register_packs(self) -> list[Any]:
        """Bring policy rules."""
        return [{"id": "library.lending", "version": "1.0.0", "manifest_path": "packs/lending.toml"}]

    @hookimpl
    def register_commands(self) -> list[Any]:
        """Bring `/shelf`."""

        def shelf(text: str) -> str:
            return f"{text} stands on shelf {len(text) % 7 + 1}"

        return [shelf]

    def find_book(self, title: str) -> list[str]:
        """Find books whose title contains a text."""
        assert self.books is not None
        rows = self.books.execute("select title from books where title like ?", [f"%{title}%"])
        return [row[0] for row in rows]


class OfficeHours:
    """Permits nothing irreversible, and knows what the night shift may approve."""

    @hookimpl
    def authorize_action(self, action: dict[str, Any]) -> bool | None:
        """Never let a tool near the secrets; for the rest, others decide."""
        return False if action.get("namespace") == "secrets" else None

    @hookimpl
    async def resolve_approval(self, request: Any) -> Approval | None:
        """Approve what only reads; everything else waits for a person."""
        return "approve" if request["side_effects"] == "read" else None
