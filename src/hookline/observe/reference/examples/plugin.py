"""What plugins provide, and what they may permit."""

import sqlite3
from pathlib import Path
from typing import Any

from hookline import tool
from hookline.hooks import PluginManager, hookimpl
from hookline.hookspecs import Approval
from hookline.specs import PackSpec, SkillSpec, StoreProtocol, StoreSpec
from hookline.tools import Tool


class Library:
    """A plugin that provides one of each: a tool, a skill, a store, a pack and a command."""

    def __init__(self, home: Path = Path()) -> None:
        self.home = home
        self.books: sqlite3.Connection | None = None

    @hookimpl
    def hookline_startup(self, pm: PluginManager) -> None:
        """Open the database once, when the app starts."""
        self.books = sqlite3.connect(self.home / "books.db")
        self.books.execute("create table if not exists books (title text)")

    @hookimpl
    async def hookline_shutdown(self, pm: PluginManager) -> None:
        """Close the database, if it was opened."""
        if self.books is not None:
            self.books.close()

    @hookimpl
    def register_tools(self) -> list[Tool]:
        """Provide a tool: a function or method with types and a docstring."""
        return [tool(self.find_book, side_effects="read")]

    @hookimpl
    def register_skills(self) -> list[SkillSpec]:
        """Provide a skill: instructions that the model loads when it needs them."""
        text = "Look for a book with find_book before you recommend it."
        return [SkillSpec(name="librarian", description="Recommend books.", system_prompt=text)]

    @hookimpl
    def register_stores(self) -> list[StoreSpec]:
        """Provide a store; `${LOANS}` is filled in from the environment."""
        path = {"path": "${LOANS}"}
        doc = StoreProtocol.doc
        return [StoreSpec(name="loans", provider="sqlite", protocol=doc, config=path)]

    @hookimpl
    def register_packs(self) -> list[PackSpec]:
        """Provide policy rules: a folder with `pack.toml` and Cedar files."""
        pack = self.home / "lending" / "pack.toml"
        return [PackSpec(id="library.lending", version="1.0.0", manifest_path=pack)]

    @hookimpl
    def register_commands(self) -> list[Any]:
        """Add the command `/shelf`."""

        def shelf(text: str) -> str:
            return f"{text} stands on shelf {len(text) % 7 + 1}"

        return [shelf]

    async def find_book(self, title: str) -> list[str]:
        """Find books whose title contains a text."""
        assert self.books is not None
        rows = self.books.execute("select title from books where title like ?", [f"%{title}%"])
        return [row[0] for row in rows]


class OfficeHours:
    """Permits nothing irreversible, and knows what the night shift may approve."""

    @hookimpl
    def authorize_action(self, action: dict[str, Any]) -> bool | None:
        """Deny every tool in the namespace `secrets`; abstain on the others."""
        return False if action.get("namespace") == "secrets" else None

    @hookimpl
    async def resolve_approval(self, request: Any) -> Approval | None:
        """Approve tools that only read; a person decides on the others."""
        return "approve" if request["side_effects"] == "read" else None
