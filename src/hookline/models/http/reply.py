"""What the answers of all services share: tool names, limits, and the state of a streamed answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast
from zlib import crc32

from hookline.errors import BadResponse
from hookline.types import StreamEvent

MOST_CALLS = 256
MOST_ARGUMENTS = 64 * 1024 * 1024
"""More tool calls, or more characters of arguments, are no answer but a fault."""

GOOD_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BAD_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


class ToolNames:
    """Names that the API takes for the tools of one request, and back."""

    __slots__ = ("_back", "_there")

    def __init__(self, names: Iterable[str]) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}
        changed: list[str] = []
        for name in names:
            if GOOD_NAME.fullmatch(name):
                self._there[name] = self._back[name] = name
            else:
                changed.append(name)
        for name in changed:
            self._add(name)

    def copy(self) -> ToolNames:
        """The same names, for another request with the same tools."""
        twin = ToolNames(())
        twin._there, twin._back = self._there.copy(), self._back.copy()
        return twin

    def wire(self, name: str) -> str:
        """The name for the API. One of an earlier request, not offered now, gets one as well."""
        return self._there.get(name) or (name if GOOD_NAME.fullmatch(name) else self._add(name))

    def own(self, wire: str) -> str:
        """The tool's own name; what the model made up stays as it is."""
        return self._back.get(wire, wire)

    def _add(self, name: str) -> str:
        wire = _BAD_CHARACTER.sub("_", name) or "_"
        if len(wire) > _LONGEST_NAME or wire in self._back:
            # Made from the name alone, so that a prompt stays the same from turn to turn.
            wire = f"{wire[: _LONGEST_NAME - 9]}_{crc32(name.encode(errors='replace')):08x}"
        self._there[name] = wire
        self._back[wire] = name
        return wire


class StreamedReply:
    """An answer as its chunks come in."""

    __slots__ = (
        "_calls",
        "_names",
        "_size",
        "counts",
        "done",
        "error",
        "failure",
        "reason",
        "spoken",
        "transient",
    )

    def __init__(self, names: ToolNames) -> None:
        self._names = names
        self._calls: dict[Any, Any] = {}
        self._size = 0
        self.counts: dict[str, Any] | None = None
        self.reason = ""
        self.spoken = False
        self.done = False
        """Whether the answer itself said that it is over."""
        self.error: object = None
        """An error that ends the answer, as the service wrote it."""
        self.failure = ""
        """Why there is no answer, after the name of the service."""
        self.transient = False
        """Whether another attempt may succeed after this failure."""

    def take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        """The events of one chunk; one of an unknown kind has none."""
        try:
            return self._take(chunk)
        except (AttributeError, TypeError, KeyError, IndexError, ValueError) as error:
            raise BadResponse("a chunk of another form") from error

    def _take(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        raise NotImplementedError

    def end(self) -> list[StreamEvent]:
        """The tool calls, when everything has come in."""
        raise NotImplementedError

    @property
    def usage(self) -> dict[str, Any]:
        """What was counted, under the names that all models use."""
        raise NotImplementedError

    @property
    def finish_reason(self) -> str:
        """The finish reason; some endpoints report `stop` for tool calls."""
        if self._calls and self.reason in ("", "stop", "function_call"):
            return "tool_calls"
        return self.reason or "stop"

    def _add_call(self, place: Any, call: Any) -> Any:
        """Keep a new call, unless there are too many."""
        if len(self._calls) >= MOST_CALLS:
            raise BadResponse(f"more than {MOST_CALLS} tool calls")
        self._calls[place] = call
        self.spoken = True
        return call

    def _grow(self, text: str) -> str:
        """Count a piece of a call's arguments."""
        self._size += len(text)
        if self._size > MOST_ARGUMENTS:
            raise BadResponse(f"more than {MOST_ARGUMENTS} characters of arguments")
        return text


def count(value: object) -> int:
    """A number of tokens; 0 for anything that is none."""
    return value if type(value) is int and value > 0 else 0


def table(value: object) -> dict[str, Any]:
    """An object of JSON; an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def plain_text(value: object) -> str:
    """A text; anything else is no chunk of the API."""
    if not isinstance(value, str):
        raise TypeError
    return value
