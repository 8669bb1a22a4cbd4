"""JSON files of other programs, changed in place: what is not changed stays as it is written.

    text = JsonText('{"a": [1]}', "settings.json").with_item(("a",), "2")

Comments are kept as well, for programs that allow them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hookline.errors import BadInput

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN = re.compile(r"[^\s,\]}:/]+")
DEEPEST = 100


@dataclass(slots=True)
class JsonSpan:
    """A value, and where it stands."""

    start: int
    end: int = 0
    members: dict[str, tuple[int, JsonSpan]] = field(default_factory=dict[str, "tuple[int, JsonSpan]"])
    """The values of an object, each with the place of its key."""
    items: list[JsonSpan] = field(default_factory=list["JsonSpan"])


class JsonText:
    """A JSON object as it is written in a file."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self._name = text, name
        if not text.strip():
            self.text = "{}\n"
        self.root = self._value(self._skip(0), 0)
        if (rest := self._skip(self.root.end)) != len(self.text):
            raise self._wrong(rest, "there is something after the end")
        if self.text[self.root.start] != "{":
            raise self._wrong(self.root.start, "it is not an object")

    # --- reading --------------------------------------------------------------------------------

    def _wrong(self, place: int, what: str) -> BadInput:
        line = self.text.count("\n", 0, place) + 1
        return BadInput(f"{self._name}, line {line}: {what}; it was left as it is")

    def _skip(self, place: int) -> int:
        found = _SPACE.match(self.text, place)
        return found.end() if found else place

    def _value(self, place: int, depth: int) -> JsonSpan:
        span = JsonSpan(place)
        first = self.text[place : place + 1]
        if depth > DEEPEST:
            raise self._wrong(place, f"it is nested more than {DEEPEST} levels deep")
        if first == "{":
            span.end = self._members(span, depth)
        elif first == "[":
            span.end = self._items(span, depth)
        else:
            span.end = self._scalar(place)
        return span

    def _scalar(self, place: int) -> int:
        found = _TEXT.match(self.text, place) or _PLAIN.match(self.text, place)
        try:
            json.loads(found.group() if found else "")
        except ValueError:
            raise self._wrong(place, "here should be a value") from None
        assert found is not None
        return found.end()

    def _members(self, span: JsonSpan, depth: int) -> int:
        place = self._skip(span.start + 1)
        while self.text[place : place + 1] != "}":
            if span.members:
                place = self._expected(place, ",")
            found = _TEXT.match(self.text, place)
            if found is None:
                raise self._wrong(place, "here should be a key in double quotes")
            value = self._expected(self._skip(found.end()), ":")
            inner = self._value(value, depth + 1)
            span.members[json.loads(found.group())] = (place, inner)
            place = self._skip(inner.end)
        return place + 1

    def _items(self, span: JsonSpan, depth: int) -> int:
        place = self._skip(span.start + 1)
        while self.text[place : place + 1] != "]":
            if span.items:
                place = self._expected(place, ",")
            span.items.append(self._value(place, depth + 1))
            place = self._skip(span.items[-1].end)
        return place + 1

    def _expected(self, place: int, sign: str) -> int:
        if self.text[place : place + 1] != sign:
            raise self._wrong(place, f"here should be a {sign!r}")
        return self._skip(place + 1)

    def find(self, path: Iterable[str]) -> JsonSpan | None:
        """The value at a path of keys."""
        span = self.root
        for key in path:
            if key not in span.members:
                return None
            span = span.members[key][1]
        return span

    def value(self, span: JsonSpan) -> Any:
        """What a value says."""
        kind = self.text[span.start]
        if kind == "{":
            return {key: self.value(inner) for key, (_, inner) in span.members.items()}
        if kind == "[":
            return [self.value(inner) for inner in span.items]
        return json.loads(self.text[span.start : span.end])

    # --- changing -------------------------------------------------------------------------------

    def with_item(self, path: tuple[str, ...], item: Any) -> JsonText:
        """The same with one more item in the list at a path, which is made if it is not there."""
        found = self.find(path)
        if found is None:
            return self._with_member(path, item)
        if self.text[found.start] != "[":
            raise self._wrong(found.start, f"{'.'.join(path)} is not a list")
        ends = [each.end for each in found.items]
        return self._inserted(found, ends, self._written(item, len(path) + 1), len(path) + 1)

    def _with_member(self, path: tuple[str, ...], item: Any) -> JsonText:
        """Add the first part of a path that is missing, with the rest of it inside."""
        depth = next(n for n in range(1, len(path) + 1) if self.find(path[:n]) is None)
        above = self.find(path[: depth - 1])
        assert above is not None
        if self.text[above.start] != "{":
            raise self._wrong(above.start, f"{'.'.join(path[: depth - 1])} is not an object")
        value: Any = [item]
        for key in reversed(path[depth:]):
            value = {key: value}
        ends = [inner.end for _, inner in above.members.values()]
        written = f"{json.dumps(path[depth - 1])}: {self._written(value, depth)}"
        return self._inserted(above, ends, written, depth)

    def _inserted(self, span: JsonSpan, ends: list[int], written: str, depth: int) -> JsonText:
        lead = "\n" + self.indent * depth
        if ends:
            place, added = ends[-1], f",{lead}{written}"
            after = place
        else:
            place, after = span.start + 1, span.end - 1
            added = f"{lead}{written}\n{self.indent * (depth - 1)}"
            if self.text[place:after].strip():  # a comment
                after = place
                added = f"{lead}{written}"
        return JsonText(self.text[:place] + added + self.text[after:], self._name)

    def _written(self, value: Any, depth: int) -> str:
        return json.dumps(value, indent=self.indent, ensure_ascii=False).replace(
            "\n", "\n" + self.indent * depth
        )

    @property
    def indent(self) -> str:
        """The indentation of the file."""
        for place, _ in self.root.members.values():
            before = self.text[:place].rpartition("\n")
            if before[1] and before[2] and not before[2].strip():
                return before[2]
        return "  "

    def without_items(self, path: tuple[str, ...], unwanted: Callable[[Any], bool]) -> JsonText:
        """The same without some items of a list; what is empty then goes as well."""
        found = self.find(path)
        if found is None:
            return self
        left = [item for item in found.items if not unwanted(self.value(item))]
        if len(left) == len(found.items):
            return self
        if not left:
            return self._without_member(path)
        number = next(n for n, item in enumerate(found.items) if unwanted(self.value(item)))
        places = [(item.start, item.end) for item in found.items]
        return self._cut(places, number).without_items(path, unwanted)

    def _without_member(self, path: tuple[str, ...]) -> JsonText:
        above = self.find(path[:-1])
        assert above is not None
        if len(above.members) == 1 and len(path) > 1:
            return self._without_member(path[:-1])
        places = [(place, inner.end) for place, inner in above.members.values()]
        return self._cut(places, [*above.members].index(path[len(path) - 1]))

    def _cut(self, places: list[tuple[int, int]], number: int) -> JsonText:
        """Remove one of several neighbours, with the comma that it had."""
        if len(places) == 1:
            start, end = places[0]
            return JsonText(self.text[:start].rstrip() + self.text[end:].lstrip(), self._name)
        if number:
            start, end = places[number - 1][1], places[number][1]
        else:
            start, end = places[0][0], places[1][0]
        return JsonText(self.text[:start] + self.text[end:], self._name)
