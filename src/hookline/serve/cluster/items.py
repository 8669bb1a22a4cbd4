"""Items: what goes from a worker to the gateway that has a message's sender, as JSON.

An item is a pair of what it is and what it says:

| item | says |
|---|---|
| `stream` | a piece of the answer: its kind and its data |
| `notify` | a note and its session |
| `ask` | a question, as it is kept; `asked` says that nobody waits for it any more |
| `end` | the end of the answer, and what became of the message |
| `send` | an outbound envelope |
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hookline.agent.journal import plain_envelope
from hookline.runtime.inbox.codec import part_of, plain
from hookline.runtime.turn import TurnResult
from hookline.types import Envelope, StreamEvent

Item: TypeAlias = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Items that are on their way, and the message that they are about."""

    to: dict[str, Any]
    items: list[Item] = field(default_factory=list[Item])

    def encode(self) -> str:
        """Encode the bundle as JSON."""
        return json.dumps([self.to, self.items], separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> Bundle:
        """Decode a bundle from JSON."""
        to, items = json.loads(text)
        return cls(to, [(kind, said) for kind, said in items])


def address(message: Envelope) -> dict[str, Any]:
    """Where a message came from: its fields without its content."""
    found = plain_envelope(message) or {}
    return {name: value for name, value in found.items() if name != "content"}


def stream_item(event: StreamEvent) -> Item:
    """A piece of an answer."""
    return "stream", [event.kind, plain(event.data)]


def event_of(said: Any) -> StreamEvent:
    """Decode a piece."""
    kind, data = said
    if isinstance(data.get("content"), list):
        data["content"] = [part_of(part) for part in data["content"]]
    return StreamEvent(kind, data)


def end_item(result: TurnResult) -> Item:
    """The end of an answer."""
    return "end", {
        "session_id": result.session_id,
        "model_output": result.model_output,
        "outbounds": [plain_envelope(each) for each in result.outbounds],
        "usage": plain(result.usage),
        "outcome": result.outcome,
        "stopped": result.stopped,
    }


def result_of(said: dict[str, Any]) -> TurnResult:
    """Decode an end."""
    return TurnResult(**said)


def together(items: list[Item]) -> list[Item]:
    """Merge consecutive pieces of text."""
    joined: list[Item] = []
    for kind, said in items:
        last = joined[-1] if joined else None
        if (
            last is not None
            and kind == last[0] == "stream"
            and said[0] == last[1][0]
            and said[0] in ("text", "reasoning")
            and said[1].keys() == last[1][1].keys() == {"delta"}
        ):
            joined[-1] = ("stream", [said[0], {"delta": last[1][1]["delta"] + said[1]["delta"]}])
        else:
            joined.append((kind, said))
    return joined
