"""A tape's entries in outline: enough of each to draw the tree, without reading the payloads whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, NamedTuple, cast

from .entry import ANCHOR, FORK, LABEL, MESSAGE, NAME, SWITCH, TOOL_CALL, TOOL_RESULT

HEAD: Final = 240
"""How many characters of a payload an outline has: role, text and tool names are found in them."""


PREVIEW: Final = 80
"""How long a preview is at most."""

_USER = '{"message":{"role":"user"'
_ASSISTANT = '{"message":{"role":"assistant"'


class OutlineEntry(NamedTuple):
    """One entry in outline. It knows only the first characters of the payload."""

    id: str
    session_id: str
    parent_id: str | None
    kind: str
    time: float
    head: str
    """The payload's JSON, cut off after `HEAD` characters."""

    @property
    def role(self) -> str:
        """Who said it: `user`, `assistant` and so on; empty when it is no message."""
        if self.kind != MESSAGE:
            return ""
        if self.head.startswith(_USER):
            return "user"
        if self.head.startswith(_ASSISTANT):
            return "assistant"
        return str(_object(opened(self.head).get("message")).get("role") or "")

    @property
    def preview(self) -> str:
        """The start of its text in one line: the message, the tool's name, or the summary."""
        return preview_of(self.kind, opened(self.head))

    @property
    def target(self) -> str | None:
        """The entry that a label, a switch or a fork is about."""
        if self.kind not in (LABEL, SWITCH, FORK):
            return None
        found = opened(self.head).get("entry_id")
        return found if isinstance(found, str) else None


def outline_columns(entries: str = "entries", session: str = "''") -> str:
    """The columns of an `OutlineEntry` in SQL, of a table of this name."""
    own = {"session_id": session, "head": f"substr({entries}.payload, 1, {HEAD})"}
    return ", ".join(own.get(name, f"{entries}.{name}") for name in OutlineEntry._fields)


def preview_of(kind: str, payload: dict[str, Any]) -> str:
    """The start of an entry's text in one line, `PREVIEW` characters at most."""
    if kind == MESSAGE:
        message = _object(payload.get("message"))
        text = _text(message.get("content")) or _called(message.get("tool_calls"))
    elif kind == TOOL_RESULT:
        text = f"{payload.get('name') or ''}: {_text(payload.get('content'))}"
    elif kind in (TOOL_CALL, LABEL, NAME):
        text = payload.get("name")
    elif kind == ANCHOR:
        text = payload.get("summary") or payload.get("name")
    elif kind == SWITCH:
        text = payload.get("summary")
    else:
        text = payload.get("text") or payload.get("status")
    return one_line(text if isinstance(text, str) else "")


def one_line(text: str, width: int = PREVIEW) -> str:
    """The text with its blanks as single spaces and nothing a terminal would obey, cut to a width."""
    line = " ".join(text[: 4 * width].split())
    if not line.isprintable():
        line = "".join(letter for letter in line if letter.isprintable())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    said = (_object(part).get("text") for part in parts)
    return " ".join(text for text in said if isinstance(text, str))


def _called(calls: Any) -> str:
    named = cast("list[Any]", calls) if isinstance(calls, list) else []
    return ", ".join(str(name) for call in named if (name := _object(call).get("name")))


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def opened(head: str) -> dict[str, Any]:
    """The JSON object that a text begins with, as far as the text goes."""
    # Most texts are whole, or were cut in a message's content. Of others, close what is open; where
    # the cut left a key without its value, or half a number, go back to what was whole before.
    for text, closing in chain(((head, ""), (head, '"}}')), _cuts(head)):
        try:
            return _object(json.loads(text + closing))
        except ValueError:
            continue
    return {}


def _cuts(head: str) -> Iterator[tuple[str, str]]:
    """Where the text may be cut, the longest first, each with what closes it there."""
    cuts: list[tuple[str, str]] = []
    stack: list[str] = []
    in_string = escaped = False
    for place, letter in enumerate(head):
        if in_string:
            if escaped:
                escaped = False
            elif letter == "\\":
                escaped = True
            elif letter == '"':
                in_string = False
        elif letter == '"':
            in_string = True
        elif letter in "{[":
            stack.append("}" if letter == "{" else "]")
            cuts.append((head[: place + 1], "".join(reversed(stack))))
        elif letter in "}]" and stack:
            stack.pop()
        elif letter == ",":
            cuts.append((head[:place], "".join(reversed(stack))))
    closing = "".join(reversed(stack))
    cuts.append((head, closing))
    if in_string:  # the cut may have gone through an escape, which has six characters at most
        cuts += [(head[: len(head) - back], '"' + closing) for back in range(6, -1, -1)]
    yield from reversed(cuts)
