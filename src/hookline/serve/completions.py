"""Chat completions: converts a client's request to a message and an answer to a completion."""

from __future__ import annotations

import binascii
import json
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from hookline.errors import BadInput
from hookline.types import AudioPart, FilePart, ImagePart, Part, TextPart, text_of

from .frames import Frame
from .outbox import Outbox

FILTERED = ("blocked", "rejected", "dropped")


class ChatMessage(BaseModel):
    """One message of a conversation. Fields not listed here are ignored."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[dict[str, Any]], Field(max_length=100)] | None = None

    def parts(self) -> list[Part]:
        """The text of the message."""
        if isinstance(self.content, str):
            return [TextPart(self.content)]
        return [_part(each) for each in self.content or ()]


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    model_config = ConfigDict(extra="allow")

    include_usage: bool = False


class CompletionRequest(BaseModel):
    """The request of an OpenAI client. The agent has its own tools and options; others are ignored."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(max_length=200)
    messages: list[ChatMessage] = Field(min_length=1, max_length=10_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = Field(default=None, max_length=180)

    def latest(self) -> tuple[str, list[Part]]:
        """The user's last input: everything after the last answer."""
        last: list[Part] = []
        for message in self.messages:
            if message.role == "user":
                last += message.parts()
            elif message.role == "assistant":
                last = []
        text = text_of(last)
        if not text.strip() and all(isinstance(part, TextPart) for part in last):
            raise BadInput("messages: the last one must be a user's, and must say something")
        return text, [] if all(isinstance(part, TextPart) for part in last) else last

    def earlier(self) -> list[dict[str, str]]:
        """The conversation before that, as model messages."""
        answers = [i for i, message in enumerate(self.messages) if message.role == "assistant"]
        end = answers[-1] + 1 if answers else 0
        said = [
            {"role": m.role, "content": text_of(m.parts())}
            for i, m in enumerate(self.messages)
            if i < end and m.role in ("user", "assistant")
        ]
        rules = [text_of(m.parts()) for m in self.messages if m.role in ("system", "developer")]
        if rules := [rule for rule in rules if rule]:
            said.insert(0, {"role": "user", "content": "Instructions:\n" + "\n\n".join(rules)})
        return said


def _part(given: dict[str, Any]) -> Part:
    try:
        match given["type"]:
            case "text" | "input_text":
                if not isinstance(given["text"], str):
                    raise TypeError
                return TextPart(given["text"])
            case "image_url":
                url = str(given["image_url"]["url"])
                if url.startswith(("https://", "http://")):
                    return ImagePart(url=url)
                if not url.startswith("data:"):  # a model's server might read a file of its machine
                    raise BadInput("messages: an image_url must begin with https:, http: or data:")
                mime_type, _, data = url.removeprefix("data:").partition(";base64,")
                return ImagePart(b64decode(data, validate=True), mime_type or "image/png")
            case "input_audio":
                sound = given["input_audio"]
                data = b64decode(str(sound["data"]), validate=True)
                return AudioPart(data, f"audio/{sound.get('format', 'wav')}")
            case "file":
                file = given["file"]
                mime_type, _, data = str(file["file_data"]).removeprefix("data:").partition(";base64,")
                name = str(file.get("filename", ""))
                return FilePart(b64decode(data, validate=True), mime_type or "application/pdf", name)
            case kind:
                raise BadInput(f"messages: content of type {kind!r} is not understood")
    except (KeyError, TypeError, AttributeError, binascii.Error, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput("messages: a content part is malformed") from None


def usage_of(end: Frame) -> dict[str, int]:
    """An answer's usage as this API spells it."""
    asked, said = (int(end["usage"].get(name, 0)) for name in ("input_tokens", "output_tokens"))
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def finish_reason(end: Frame) -> str:
    """An answer's finish reason as this API spells it."""
    return "content_filter" if end["outcome"] in FILTERED else "stop"


def part_text(part: Mapping[str, Any]) -> str:
    """A content part as text of an answer: text as it is, an image as Markdown, nothing for audio."""
    if part["type"] == "text":
        return str(part["text"])
    if part["type"] == "image":
        return f"![image]({part.get('url') or 'data:{mime_type};base64,{data}'.format(**part)})"
    return ""


def part_audio(part: Mapping[str, Any]) -> dict[str, Any]:
    """Audio as this API encodes it."""
    expires = int(time.time()) + 3600
    return {"id": f"audio_{uuid4().hex}", "data": part["data"], "expires_at": expires, "transcript": ""}


def completion(model: str, end: Frame, parts: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A complete answer with the parts that hooks added, or the reason why there is none."""
    texts = [end["text"] or end["reason"] or "", *filter(None, map(part_text, parts))]
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(filter(None, texts))}
    for part in parts:
        if part["type"] == "audio":
            message["audio"] = part_audio(part)
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": finish_reason(end),
            }
        ],
        "usage": usage_of(end),
    }


class ChunkOutbox(Outbox):
    """Convert frames to the chunks of a streamed completion."""

    __slots__ = ("_head", "_said", "_usage")

    def __init__(self, limit: int, model: str, *, usage: bool) -> None:
        super().__init__(limit)
        head = {
            "id": f"chatcmpl-{uuid4().hex}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
        }
        self._head = json.dumps(head)[:-1]
        self._usage = usage
        self._said = False

    def encode(self, frame: Frame) -> str:
        """What a client of this API sees of a frame: text, added parts, and the end."""
        kind = frame["type"]
        if kind == "text":
            self._said = True
            return self._chunk({"content": frame["delta"]})
        if kind == "error":
            error = {"message": frame["message"], "type": "server_error", "code": None, "param": None}
            return f"data: {json.dumps({'error': error})}\n\n"
        if kind == "part":
            return self._part(frame["part"])
        if kind != "end":
            return ""
        text = "" if self._said else frame["text"] or frame["reason"] or ""
        before = self._chunk({"content": text}) if text else ""
        last = f"{before}{self._chunk({}, finish_reason(frame))}"
        if self._usage:
            last += f'data: {self._head}, "choices": [], "usage": {json.dumps(usage_of(frame))}}}\n\n'
        return last

    def begin(self) -> None:
        """The first chunk, which names the role."""
        self.write(self._chunk({"role": "assistant", "content": ""}))

    def _part(self, part: Mapping[str, Any]) -> str:
        if part["type"] == "audio":
            return self._chunk({"audio": part_audio(part)})
        return self._chunk({"content": f"\n\n{part_text(part)}"})

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return f'data: {self._head}, "choices": [{json.dumps(choice)}]}}\n\n'
