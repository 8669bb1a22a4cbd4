"""Machines that share tapes in PostgreSQL: each has a home, a clock and a model of its own."""

from contextlib import asynccontextmanager
from pathlib import Path

from hookline.channel import Channel
from hookline.ext.triggers import Triggers
from hookline.models import ScriptedModel
from hookline.policy import Policy
from hookline.runtime.app import Hookline
from hookline.testing import VirtualClock

from .. import postgres


def write_settings(home: Path, schema: str, text: str, url: str | None = None) -> None:
    """The settings of one machine of those that share a schema."""
    home.mkdir(parents=True, exist_ok=True)
    tape = (
        f'[tape]\nurl = "{url or postgres.url()}"\nschema = "{schema}"\nhome = "shared"\ntimeout = 2\n'
    )
    (home / "config.toml").write_text(tape + text)


class Machine(Channel):
    """One of several, with triggers that are running."""

    def __init__(self, home: Path, now: float, *answers: str) -> None:
        self.clock = VirtualClock(now)
        self.app = Hookline(home=home, workspace=home, policy=Policy(default="allow"))
        self.app.load_hooks(packages=False)
        self.model = ScriptedModel([*answers] or ["ok"], repeat=True)
        self.app.models.add(self.model)
        self.app.model = self.model.name
        self.sent: list[str] = []
        self.app.channel = self
        self.triggers = Triggers(self.app, clock=self.clock)

    async def send(self, message) -> bool:
        """Deliver to the one chat that there is."""
        if message["channel"] == "telegram":
            self.sent.append(message["content"])
        return message["channel"] == "telegram"

    @asynccontextmanager
    async def running(self):
        """Run the app and its triggers."""
        async with self.app.running():
            await self.triggers.start()
            try:
                yield self
            finally:
                await self.triggers.stop(drain=0.1)

    async def heard(self, session_id: str, role: str) -> list[str]:
        """What was said in a session, as the tape has it."""
        entries = await self.app.store().entries(session_id, kinds={"message"})
        messages = [entry.payload["message"] for entry in entries]
        return [message["content"] for message in messages if message["role"] == role]

    async def ends(self, session_id: str) -> list[str]:
        """How the turns of a session ended, as the tape has it."""
        entries = await self.app.store().entries(session_id, kinds={"turn"})
        return [e.payload["status"] for e in entries if e.payload["status"] != "started"]
