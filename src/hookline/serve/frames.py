"""Frames: the JSON objects that travel between the gateway and a page or program.

Incoming frames are validated; outgoing ones are plain dictionaries of a known shape.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from hookline.errors import BadInput
from hookline.runtime.gateway_channel import Pending
from hookline.runtime.turn import Outcome, TurnResult
from hookline.types import AudioPart, Content, FilePart, ImagePart, Part, StreamEvent, TextPart

SessionId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f/\\]+$",
        description="A session, such as `web:garden`; no slashes and no control characters.",
        examples=["web:garden"],
    ),
]
MessageId = Annotated[str, Field(min_length=1, max_length=100)]
SEEN = (
    "The `hash` of the question that was shown, which an approval needs; an answer to any other call "
    "is refused."
)


# --- in ---------------------------------------------------------------------------------------------


class _Frame(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PartIn(_Frame):
    """Audio, an image or a file in base64, or more text."""

    type: Literal["text", "audio", "image", "file"]
    text: str | None = None
    name: str | None = Field(default=None, max_length=255, description="The name of a file.")
    mime_type: str | None = Field(default=None, max_length=100)
    data: str | None = Field(default=None, description="Base 64.")

    def part(self) -> Part:
        """Convert it to a content part."""
        if self.type == "text":
            if self.text is None:
                raise BadInput("a text part needs 'text'")
            return TextPart(self.text)
        if not self.data:
            raise BadInput(f"an {self.type} part needs 'data' in base 64, and it must not be empty")
        try:
            data = b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise BadInput(f"the data of an {self.type} part is not base 64") from None
        if self.type == "audio":
            return AudioPart(data, self.mime_type or "audio/wav")
        if self.type == "file":
            return FilePart(data, self.mime_type or "application/pdf", self.name or "")
        return ImagePart(data, self.mime_type or "image/png")


class MessageIn(_Frame):
    """A message's content."""

    text: str = ""
    parts: list[PartIn] = Field(default_factory=list[PartIn], max_length=20)
    id: MessageId | None = Field(default=None, description="Comes back with every frame of the answer.")

    def content(self) -> tuple[str, list[Part]]:
        """Return the text, and all parts if there are others. One of them must be present."""
        others = [part.part() for part in self.parts]
        said = [part.text for part in others if isinstance(part, TextPart)]
        text = "\n".join(filter(None, [self.text, *said]))
        if all(isinstance(part, TextPart) for part in others):
            if not text.strip():
                raise BadInput("the message is empty: it needs 'text', or 'parts'")
            return text, []
        return text, [TextPart(self.text), *others] if self.text else others


class MessageFrame(MessageIn):
    """`{"type": "message", "id": "m1", "text": "…"}`"""

    type: Literal["message"]
    session: SessionId | None = Field(default=None, description="On stdio: which session.")


class CancelFrame(_Frame):
    """`{"type": "cancel"}`: stop the running turn."""

    type: Literal["cancel"]
    session: SessionId | None = None


class AnswerFrame(_Frame):
    """`{"type": "answer", "id": "…", "answer": "approve", "hash": "…"}`"""

    type: Literal["answer"]
    id: Annotated[str, Field(max_length=100)]
    answer: Annotated[str, Field(max_length=10_000)]
    hash: Annotated[str, Field(max_length=100)] | None = Field(default=None, description=SEEN)


class PingFrame(_Frame):
    """`{"type": "ping"}`, answered with a pong."""

    type: Literal["ping"]


Incoming: TypeAlias = MessageFrame | CancelFrame | AnswerFrame | PingFrame
_INCOMING: TypeAdapter[Incoming] = TypeAdapter(Annotated[Incoming, Field(discriminator="type")])


def incoming(text: str | bytes) -> Incoming:
    """Parse a frame, or raise an error that names what is wrong."""
    try:
        return _INCOMING.validate_json(text)  # rejects JSON that is nested too deeply
    except ValidationError as error:
        raise BadInput(faults_of(error)) from None


def faults_of(error: ValidationError) -> str:
    """What is wrong, field by field, without repeating the input."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = (f"{'.'.join(map(str, fault['loc'])) or 'frame'}: {fault['msg']}" for fault in found)
    return "; ".join(lines)


# --- out --------------------------------------------------------------------------------------------

Frame: TypeAlias = dict[str, Any]
"""One outgoing object; `type` names its kind."""


class PartOut(TypedDict, total=False):
    """A part of an answer."""

    type: Literal["text", "audio", "image", "file"]
    text: str
    mime_type: str
    data: str
    url: str | None
    name: str


class EndFrame(TypedDict):
    """The end of an answer, with the message's outcome."""

    type: Literal["end"]
    id: str | None
    outcome: Outcome
    text: str
    reason: str | None
    usage: dict[str, float]
    session_id: str


def part_frame(part: Part) -> PartOut:
    """A part as JSON."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    said: PartOut = {"type": part.type, "mime_type": part.mime_type}
    if isinstance(part, FilePart) and part.name:
        said["name"] = part.name
    if isinstance(part, ImagePart | FilePart) and part.url:
        return {**said, "url": part.url}
    return {**said, "data": b64encode(part.data).decode()}


def event_frame(message_id: str | None, event: StreamEvent) -> Frame | None:
    """The frame of a piece of an answer, or None if it shows nothing."""
    kind, data = event.kind, event.data
    if kind in ("text", "reasoning"):
        return {"type": kind, "id": message_id, "delta": data["delta"]}
    if kind == "tool_call":
        return {
            "type": kind,
            "id": message_id,
            "call_id": data.get("id"),
            "name": data.get("name"),
            "arguments": data.get("arguments"),
        }
    if kind == "tool_result":
        return {
            "type": kind,
            "id": message_id,
            "call_id": data.get("id"),
            "name": data.get("name"),
            "content": plain_text(data.get("content", "")),
            "is_error": bool(data.get("is_error")),
        }
    return None


def plain_text(content: Content | Any) -> str:
    """Content as text; images and audio are named."""
    if isinstance(content, str):
        return content
    said = (part.text if isinstance(part, TextPart) else f"[{part.type}]" for part in content)
    return "\n".join(said)


def end_frame(message_id: str | None, result: TurnResult) -> EndFrame:
    """The end of an answer."""
    return {
        "type": "end",
        "id": message_id,
        "outcome": result.outcome,
        "text": result.model_output,
        "reason": result.stopped,
        "usage": dict(result.usage),
        "session_id": result.session_id,
    }


def question_frame(pending: Pending) -> Frame:
    """A question for a person: `approval` contains the call, `question` is what a hook asks."""
    request, question = pending.request, pending.question
    frame: Frame = {
        "type": "approval" if question.is_approval else "question",
        "id": pending.id,
        "question": question.text,
        "choices": [{"answer": word, "label": label} for word, label in question.labels.items()],
        "default": question.default,
        "hash": pending.hash,
        "session_id": pending.session_id,
    }
    if question.is_approval:
        frame |= {name: request.get(name) for name in ("tool", "arguments", "diff")}
    return frame
