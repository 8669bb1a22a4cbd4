"""The turn pipeline."""

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.hooks import hookimpl
from hookline.hookspecs import Admission, MessageHandler, Stage
from hookline.tape import SQLiteStore, TapeContext, TapeStore
from hookline.types import AsyncStreamEvents, Envelope, Prompt, State, StreamEvent

if TYPE_CHECKING:
    import typer

log = logging.getLogger(__name__)


class Threads:
    """Gives each thread a session, and knows who speaks in it."""

    def __init__(self, home: Path = Path()) -> None:
        self.home = home

    @hookimpl
    def resolve_session(self, message: Envelope) -> str | None:
        """Give every thread its own session; leave other messages to other plugins."""
        thread = message.get("thread_id")
        return f"thread:{thread}" if thread else None

    @hookimpl
    def admit_message(self, session_id: str, message: Envelope, turn: Any) -> Admission | None:
        """Let a correction reach the turn that is running."""
        if turn is not None and message["content"].startswith("no, "):
            return Admission("steer", reason="a correction")
        return None

    @hookimpl
    async def load_state(self, message: Envelope, session_id: str) -> State:
        """Load the saved state of this session."""
        kept = self.home / f"{session_id}.json"
        return json.loads(kept.read_text()) if kept.exists() else {}

    @hookimpl
    def build_prompt(self, message: Envelope, state: State) -> Prompt:
        """Tell the model who is speaking."""
        return f"{state.get('user', 'someone')} writes: {message['content']}"

    @hookimpl
    async def save_state(self, session_id: str, state: State) -> None:
        """Save the user's name for the next turn."""
        kept = self.home / f"{session_id}.json"
        kept.write_text(json.dumps({"user": state.get("user")}))


class Parrot:
    """A model that needs no model: it repeats the prompt, word by word."""

    @hookimpl
    async def run_model_stream(
        self, prompt: Prompt, session_id: str, state: State
    ) -> AsyncStreamEvents:
        """Stream the prompt back."""

        async def words():
            for word in str(prompt).split():
                yield StreamEvent("text", {"delta": f"{word} "})

        return AsyncStreamEvents(words(), state=state)


class Canned:
    """A model that has one answer."""

    @hookimpl
    async def run_model(self, prompt: Prompt, session_id: str, state: State) -> str:
        """Answer with one text; there is nothing to stream."""
        return "We are closed until Monday."


class Mailer:
    """Sends answers as mail."""

    def __init__(self) -> None:
        self.outbox: list[Envelope] = []

    @hookimpl
    def render_outbound(self, message: Envelope, model_output: str) -> list[Envelope]:
        """Send the answer to the sender, and a copy to the archive."""
        answer = {"channel": "mail", "content": model_output}
        return [{**answer, "to": message["from"]}, {**answer, "to": "archive@example.org"}]

    @hookimpl
    async def dispatch_outbound(self, message: Envelope) -> bool:
        """Send mail; leave other messages to other plugins."""
        if message.get("channel") != "mail":
            return False
        self.outbox.append(message)
        return True

    @hookimpl(when="dispatch")
    def on_error(self, stage: Stage, error: Exception, message: Envelope | None) -> None:
        """Log what could not be sent."""
        log.warning("not delivered to %s: %s", message and message.get("to"), error)

    @hookimpl
    def provide_channels(self, message_handler: MessageHandler) -> list[Any]:
        """Add a channel; the gateway calls its methods, and it hands messages to the pipeline."""
        from .mailbox import Mailbox  # which needs the extra `gateway`

        return [Mailbox(message_handler)]

    @hookimpl
    def onboard_config(self, current_config: dict[str, Any]) -> dict[str, Any] | None:
        """Propose settings, unless they exist."""
        if "mail" in current_config:
            return None
        return {"mail": {"host": "localhost", "port": 25}}


class House:
    """House rules, tapes in a file of their own, and a command."""

    def __init__(self, home: Path = Path()) -> None:
        self.home = home

    @hookimpl
    def system_prompt(self, state: State) -> str | None:
        """Ask for the user's language if it is known."""
        language = state.get("language")
        return f"Answer in {language}." if language else None

    @hookimpl
    async def provide_tape_store(self) -> AsyncIterator[TapeStore]:
        """Keep tapes in a file of our own, open while the app runs."""
        store = SQLiteStore(self.home / "tapes.db")
        try:
            yield store
        finally:
            await store.close()

    @hookimpl
    def build_tape_context(self) -> TapeContext:
        """Show the model at most 40 earlier messages of a session."""
        return TapeContext(last=40)

    @hookimpl
    def register_cli_commands(self, app: "typer.Typer") -> None:
        """Add `hookline where`."""

        def where() -> None:
            print(self.home)

        app.command()(where)
