"""Arguments of a tool call: plain JSON values, read once and never shared.

What is judged, approved, written on the tape and run must be one value. So whatever a model or a
plugin supplies becomes a new tree of exactly `dict`, `list`, `str`, `int`, `float`, `bool` and `None`.
The runner keeps that tree to itself and gives everyone else a copy. Anything JSON cannot carry from one
process to another unchanged is refused, and so is anything too large or too deep to judge in bounded
time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

from hookline.errors import BadArgumentValue

Arguments: TypeAlias = dict[str, Any]

SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""The integers that policies, providers and databases agree on."""


@dataclass(frozen=True, slots=True)
class ArgumentLimits:
    """How large the arguments of one call may be."""

    size: int = 1_000_000
    """Characters of JSON."""
    depth: int = 64
    """Objects and arrays inside each other."""


USUAL = ArgumentLimits()


def parse(
    arguments: str | Mapping[str, Any], limits: ArgumentLimits = USUAL
) -> tuple[Arguments, str | None]:
    """The arguments of a call, or an empty dict and what is wrong with them."""
    try:
        return read(arguments, limits), None
    except BadArgumentValue as error:
        return {}, str(error)


def read(arguments: Any, limits: ArgumentLimits = USUAL) -> Arguments:
    """The arguments as a new tree of plain values; `BadArgumentValue` says what is wrong with them."""
    if isinstance(arguments, str):
        text = str.__str__(arguments)
        arguments = _decoded(text, limits)
        if type(arguments) is not dict:
            kind = type(arguments).__name__
            raise BadArgumentValue(f"the arguments must be a JSON object, not {kind}")
        if _is_harmless(text, limits):
            return cast("Arguments", arguments)
    elif not isinstance(arguments, Mapping):
        kind = cast("type[Any]", type(arguments)).__name__
        raise BadArgumentValue(f"the arguments must be a JSON object, not {kind}")
    return _ArgumentCopy(limits).table(cast("Mapping[Any, Any]", arguments), 1)


def copied(arguments: Mapping[str, Any]) -> Arguments:
    """A copy of plain arguments that shares nothing with them."""
    return {name: _copied(value) for name, value in arguments.items()}


def _copied(value: Any) -> Any:
    kind = cast("type[Any]", type(value))
    if kind is dict:
        return {name: _copied(each) for name, each in value.items()}
    if kind is list:
        return [_copied(each) for each in value]
    return value


# --- from text ------------------------------------------------------------------------------------


def _decoded(text: str, limits: ArgumentLimits) -> Any:
    if len(text) > limits.size:
        raise _too_large(limits)
    try:
        return _DECODER.decode(text or "{}")
    except RecursionError:
        raise _too_deep(limits) from None
    except ValueError as error:
        if isinstance(error, BadArgumentValue):
            raise
        raise BadArgumentValue(f"the arguments are not valid JSON: {error}") from None


def _is_harmless(text: str, limits: ArgumentLimits) -> bool:
    """Whether JSON text can hold nothing that is refused: a quick look that spares most calls a walk.

    The decoder makes new values of plain types; what is left to find is depth, numbers without bound
    and halves of surrogate pairs.
    """
    return (
        text.isascii()
        and text.count("[") + text.count("{") <= limits.depth
        and _DOUBTFUL.search(text) is None
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Parsers disagree on which of two equal names counts, so neither does."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise BadArgumentValue(f"the arguments name {twice[:80]!r} twice; name it once")
    return found


def _no_number(name: str) -> NoReturn:
    raise BadArgumentValue(f"the arguments contain {name}, which is not JSON; use a number or null")


_DOUBTFUL = re.compile(r"\\u|[0-9]{19}|[0-9.][eE]")
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)


# --- from values ----------------------------------------------------------------------------------


_Items: TypeAlias = Callable[[Any], Iterable[Any]]
_DICT: _Items = cast("Any", dict).items
_LIST: _Items = cast("Any", list).__iter__
_TUPLE: _Items = cast("Any", tuple).__iter__


class _ArgumentCopy:
    """Copies a value into plain types, within limits.

    The values of subclasses are read with the methods of their base type: an override cannot show one
    value here and another one later.
    """

    __slots__ = ("_depth", "_left", "_limits")

    def __init__(self, limits: ArgumentLimits) -> None:
        self._limits = limits
        self._depth = limits.depth
        self._left = limits.size

    def table(self, value: Mapping[Any, Any], depth: int) -> Arguments:
        if depth > self._depth:
            raise _too_deep(self._limits)
        found: Arguments = {}
        pairs = _DICT(value) if isinstance(value, dict) else self._pairs(value)
        for name, each in pairs:
            kind = cast("type[Any]", type(name))
            if kind is not str:
                if not isinstance(name, str):
                    raise BadArgumentValue(
                        f"the arguments have a name that is not text: {kind.__name__}"
                    )
                name = str.__str__(name)
            if name in found:
                raise BadArgumentValue(f"the arguments name {name[:80]!r} twice; name it once")
            self._text(name)
            found[name] = self._value(each, depth)
        return found

    def _pairs(self, value: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        """The items of a mapping that is not a dict, read once, and not without end."""
        found: list[tuple[Any, Any]] = []
        for name in value:
            found.append((name, value[name]))
            if len(found) > self._left:
                raise _too_large(self._limits)
        return found

    def _value(self, value: Any, depth: int) -> Any:
        kind = cast("type[Any]", type(value))
        if kind is str:
            self._text(value)
            return value
        self._spend(1)
        if value is None or kind is bool:
            return value
        if kind is int:
            if SMALLEST <= value <= LARGEST:
                return value
            raise BadArgumentValue("the arguments contain an integer beyond 64 bits; pass it as text")
        if kind is float:
            if value - value == 0.0:  # neither infinite nor NaN
                return value
            raise BadArgumentValue(
                "the arguments contain a number that is not finite; use a number or null"
            )
        return self._other(value, kind, depth)

    def _other(self, value: Any, kind: type[Any], depth: int) -> Any:
        if issubclass(kind, dict):
            return self.table(cast("dict[Any, Any]", value), depth + 1)
        if issubclass(kind, list | tuple):
            if depth >= self._depth:
                raise _too_deep(self._limits)
            items = _LIST if issubclass(kind, list) else _TUPLE
            return [self._value(each, depth + 1) for each in items(value)]
        if issubclass(kind, str):
            return self._value(str.__str__(value), depth)
        if issubclass(kind, int):
            return self._value(int.__int__(value), depth)
        if issubclass(kind, float):
            return self._value(float.__float__(value), depth)
        if issubclass(kind, Mapping):
            return self.table(value, depth + 1)
        raise BadArgumentValue(f"the arguments contain a {kind.__name__}, which JSON does not have")

    def _text(self, value: str) -> None:
        self._spend(len(value) + 2)
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise BadArgumentValue("the arguments contain half of a surrogate pair") from None

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _too_large(self._limits)


def _too_large(limits: ArgumentLimits) -> BadArgumentValue:
    return BadArgumentValue(
        f"the arguments are larger than {limits.size:,} characters ([limits] argument_size); "
        "pass less, or in several calls"
    )


def _too_deep(limits: ArgumentLimits) -> BadArgumentValue:
    return BadArgumentValue(
        f"the arguments are nested deeper than {limits.depth} levels ([limits] argument_depth)"
    )
