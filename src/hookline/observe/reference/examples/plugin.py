"""What plugins provide, and what they may permit."""

import sqlite3
from pathlib import Path
from typing import Any

from hookline import tool
from hookline.hooks import PluginManager, hookimpl
from hookline.hookspecs import Approval
from hookline.models import ModelProvider, ScriptedModel
from hookline.runtime.gateway_channel import ChannelSpec, GatewayChannel, GatewayServices
from hookline.specs import PackSpec, SkillSpec, StoreProtocol, StoreSpec
from hookline.tools import Tool


class LendingDesk(GatewayChannel):
    """A channel of the gateway; here, reminders put on a desk."""

    name = "desk"

    def __init__(self, gateway: GatewayServices) -> None:
        self.gateway = gateway
        self.answers: list[str] = []

    async def remind(self, reader: str) -> None:
        """Have the agent write a reminder; its answer comes to `send`."""
        envelope = {"content": f"remind {reader}", "channel": self.name, "chat_id": reader}
        await self.gateway.handle(envelope)

    async def send(self, outbound: Any) -> bool:
        """Deliver an answer."""
        self.answers.append(outbound["content"])
        return True


class Library:
    """A plugin that provides one of each: a tool, a skill, a store, a model, a channel, a command."""

    def __init__(self, home: Path = Path()) -> None:
        self.home = home
        self.books: sqlite3.Connection | None = None
        self.closed: list[str] = []

    @hookimpl
    def resources_loaded(self) -> None:
        """Read a file when the app starts, and again after each reload."""
        file = self.home / "closed.txt"
        self.closed = file.read_text().split() if file.exists() else []

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
    def register_models(self) -> list[ModelProvider]:
        """Provide the models `library:NAME`; the settings are those of `[providers.library]`."""

        def make(name: str, settings: Any) -> ScriptedModel:
            return ScriptedModel([f"The {name} is open."], repeat=True)

        return [ModelProvider("library", make, "answers for the library")]

    @hookimpl
    def register_channels(self) -> list[ChannelSpec]:
        """Provide the channel `desk`, which `[channels.desk]` enables."""
        return [ChannelSpec("desk", LendingDesk)]

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
