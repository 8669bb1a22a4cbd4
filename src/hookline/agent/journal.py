"""The journal: how a turn is written on the tape, step by step, before the next step starts.

| entry | payload |
|---|---|
| `turn` | `status` started, with the prompt; or finished, with how it ended |
| `message` | `message`: a user's or assistant's model message |
| `tool_call` | a call that is about to run: final arguments, the model's own, who decided |
| `tool_result` | what it came to, as it was kept |
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from hookline.hooks import Ruling
from hookline.tape import FORK, IMPORT, SWITCH, Entry, Tape
from hookline.tape.entry import MESSAGE, TOOL_CALL, TOOL_RESULT, TURN
from hookline.types import (
    NOBODY,
    Content,
    FilePart,
    Identity,
    ImagePart,
    Message,
    Part,
    TextPart,
    ToolCall,
    ToolResultContent,
    field_of,
)

KEPT_BYTES = 5_000_000
"""The fields of an image or sound that the tape keeps, so that the model can see it again."""


class TapeJournal:
    """Writes one session's turns on its tape."""

    def __init__(
        self,
        tape: Tape,
        identity: Identity | None = None,
        source: str | None = None,
        requested: dict[str, Any] | None = None,
    ) -> None:
        self.tape = tape
        self.identity = identity
        """Kept with each call, if it is another one than the turn started with."""
        self.source = source
        """Kept with each call, if something else than the model makes it."""
        self.requested = requested
        """The arguments of a person's call: kept with its refusal, since no message asks for it."""

    async def begin(
        self,
        message: Message,
        turn_id: str,
        envelope: Any,
        system: str,
        identity: Identity = NOBODY,
        workspace: str = "",
        tools: list[str] | None = None,
        missing: list[str] | None = None,
    ) -> None:
        """A turn starts with a user's message; both are one write.

        `tools` are those that the agent has, if a hook hid some of them; `missing` says which plugins
        and files the app runs without.
        """
        started: dict[str, Any] = {
            "status": "started",
            "turn_id": turn_id,
            "envelope": plain_envelope(envelope),
            "identity": identity.plain(),
            "workspace": workspace,
            "system": system,
        }
        if tools is not None:
            started["tools"] = tools
        if missing:
            started["missing"] = missing
        await self.tape.append_many([(TURN, started), (MESSAGE, {"message": message})])

    async def joined(self, message: Message, origin: dict[str, Any]) -> None:
        """A message joined the turn while it ran."""
        await self.tape.append(MESSAGE, {"message": message}, meta=origin)

    async def assistant(self, message: Message, usage: dict[str, Any]) -> None:
        """The model answered."""
        await self.tape.append(MESSAGE, {"message": message}, meta={"usage": usage} if usage else None)

    async def tool_call(self, call: ToolCall, requested: Any, rulings: list[Ruling]) -> None:
        """A tool is about to run."""
        payload = {
            "id": call.id,
            "name": call.name,
            "arguments": dict(call.arguments),
            "requested": requested if isinstance(requested, str) else dict(requested),
        }
        await self.tape.append(TOOL_CALL, payload, meta=self._meta(rulings))

    async def tool_result(
        self, result: ToolResultContent, *, ran: bool, terminate: bool, rulings: list[Ruling]
    ) -> None:
        """A tool call has its result."""
        payload = {
            "tool_call_id": result.tool_call_id,
            "name": result.name,
            "content": plain_content(result.content),
            "is_error": result.is_error,
            "ran": ran,
            "terminate": terminate,
        }
        if not ran and self.requested is not None:
            payload["requested"] = self.requested
        await self.tape.append(TOOL_RESULT, payload, meta=self._meta(rulings))

    def _meta(self, rulings: list[Ruling]) -> dict[str, Any] | None:
        meta = decisions(rulings)
        if self.identity is None and self.source is None:
            return meta
        found = meta or {}
        if self.identity is not None:
            found["identity"] = self.identity.plain()
        if self.source is not None:
            found["source"] = self.source
        return found

    async def finish(
        self, turn_id: str, status: str, error: str | None = None, partial: str = ""
    ) -> None:
        """Record the end of the turn; `partial` is the part that was shown of an incomplete answer."""
        payload = {"status": status, "turn_id": turn_id}
        if error is not None:
            payload["error"] = error
        if partial:
            payload["partial"] = partial
        await self.tape.append(TURN, payload)


@dataclass(slots=True)
class CutOffTurn:
    """A turn that was started and not finished, as far as it came."""

    turn_id: str
    envelope: dict[str, Any] | None
    identity: Identity
    """On whose behalf it ran: the sender of its message, and of each that joined it."""
    system: str
    entries: list[Entry]
    tools: list[str] | None = None
    """The tools that the agent has, if a hook hid some of them."""

    @property
    def prompt(self) -> Any:
        """What the user said."""
        said = (e.payload["message"] for e in self.entries if e.kind == MESSAGE)
        return next((message["content"] for message in said if message["role"] == "user"), "")

    @property
    def last_message(self) -> Message | None:
        """The last thing said by the user or the model."""
        said = [e.payload["message"] for e in self.entries if e.kind == MESSAGE]
        return said[-1] if said else None

    @property
    def started_calls(self) -> set[str]:
        """The tool calls that may have run."""
        return {e.payload["id"] for e in self.entries if e.kind == TOOL_CALL}

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The results that were kept, by call."""
        return {e.payload["tool_call_id"]: e.payload for e in self.entries if e.kind == TOOL_RESULT}

    @property
    def model_turns(self) -> int:
        """How many times the model has answered."""
        said = (e.payload["message"] for e in self.entries if e.kind == MESSAGE)
        return sum(message["role"] == "assistant" for message in said)


async def cut_off_turn(tape: Tape, *, imported: bool = False) -> CutOffTurn | None:
    """The turn at the end of a branch that was begun and never finished, if there is one.

    One that was imported counts only with `imported`, that is if a person asks to continue it: the
    tape says what it does next and for whom.
    It may have been compacted while it ran: what it has done is read from where it began. Whoever went
    elsewhere in the middle of a turn has left it.
    """
    last = await tape.last(TURN)
    if last is None or tape.leaf is None or last.payload["status"] != "started":
        return None
    _, *entries = await tape.store.branch(tape.leaf.id, until=last.id)
    left = (FORK, SWITCH) if imported else (FORK, SWITCH, IMPORT)
    if any(entry.kind in left for entry in entries):
        return None
    begun = last.payload
    identity = Identity.restored(begun.get("identity"))
    for entry in entries:
        if entry.kind == MESSAGE and entry.meta.get("steered"):
            identity = identity.joined_by(Identity.restored(entry.meta.get("identity")))
    envelope, system = begun.get("envelope"), begun.get("system", "")
    return CutOffTurn(begun["turn_id"], envelope, identity, system, entries, begun.get("tools"))


def plain_message(message: Message) -> Message:
    """Return a message as JSON, for the tape."""
    content = message["content"]
    if isinstance(content, str) or all(isinstance(part, dict) for part in content):
        return message
    return {**message, "content": plain_content(content)}


def plain_content(content: Content) -> Any:
    """Content as JSON: text stays text, pictures and sounds are kept in base 64."""
    return content if isinstance(content, str) else [plain_part(part) for part in content]


def plain_part(part: Part | dict[str, Any]) -> dict[str, Any]:
    """A part as JSON; of one that is too large to be kept, a note."""
    if isinstance(part, dict):
        return part
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    named = {"name": part.name} if isinstance(part, FilePart) and part.name else {}
    if isinstance(part, ImagePart | FilePart) and part.url:
        return {"type": part.type, "mime_type": part.mime_type, "url": part.url, **named}
    if len(part.data) > KEPT_BYTES:
        size = f"{len(part.data):,} bytes"
        return {
            "type": "text",
            "text": f"[{part.type}, {part.mime_type}, {size}: too large to be kept]",
        }
    data = b64encode(part.data).decode()
    return {"type": part.type, "mime_type": part.mime_type, "data": data, **named}


def plain_envelope(envelope: Any) -> dict[str, Any] | None:
    """The fields of an envelope that JSON can hold, so that a resumed turn knows where to answer."""
    if envelope is None:
        return None
    plain = (str, int, float, bool, type(None))
    found = {name: field_of(envelope, name) for name in field_names(envelope)}
    return {name: value for name, value in found.items() if isinstance(value, plain)}


def field_names(envelope: Any) -> list[str]:
    """The fields that an envelope has, whatever it is."""
    if isinstance(envelope, Mapping):
        return [str(name) for name in cast("Mapping[Any, Any]", envelope)]
    declared = getattr(envelope, "__dataclass_fields__", ())
    return [*declared, *getattr(envelope, "__dict__", ())]


def decisions(rulings: list[Ruling]) -> dict[str, Any] | None:
    """Who decided what, for the tape."""
    if not rulings:
        return None
    return {
        "rulings": [
            {
                "by": ruling.by,
                "decision": ruling.decision.name.lower(),
                "reason": ruling.reason,
                "changed": sorted(ruling.changes or ()),
            }
            for ruling in rulings
        ]
    }
