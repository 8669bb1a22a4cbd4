"""Snapshots: a payload as JSON text, taken at once, since what it was made of may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from json import JSONEncoder
from json.encoder import c_make_encoder, encode_basestring_ascii  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from math import isfinite
from operator import attrgetter
from typing import Any, Final, cast

from hookline.hooks.errors import error_text

LEFT_OUT: Final = frozenset({"app", "call_next", "ctx", "deps", "pm"})
"""Parameters that say nothing of what a hook was about."""
DEEPEST: Final = 6
LONGEST: Final = 20
"""Items that are kept of a list or table whose text is too long."""


def snapshot(value: Any, limit: int) -> str:
    """Any value as JSON text of about this length at most."""
    try:
        text = encode(value)
        if len(text) <= limit:
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    room = limit
    while True:
        text = encode(shortened(value, max(20, room // 8)))
        if len(text) <= limit or room < 200:
            return text if len(text) <= limit else encode(f"… {len(text):,} characters left out")
        room //= 2


def payload_of(arguments: Mapping[str, Any]) -> Any:
    """What a hook was called with: an event's fields, or its parameters."""
    event = arguments.get("event")
    if type(event) in _FIELDS or is_dataclass(event):
        return fields_of(event)
    return {name: value for name, value in arguments.items() if name not in LEFT_OUT}


def shortened(value: Any, room: int, depth: int = 0) -> Any:
    """The same with long texts and lists cut, and with nothing that JSON cannot hold."""
    if isinstance(value, str):
        return value if len(value) <= room else f"{value[:room]}… ({len(value):,} characters)"
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if depth >= DEEPEST:
        return f"<{type(value).__name__}>"
    if isinstance(value, Mapping):
        return _shortened_table(cast("Mapping[Any, Any]", value), room, depth)
    if isinstance(value, list | tuple | set | frozenset):
        items = list(cast("Iterable[Any]", value))
        kept = [shortened(each, room, depth + 1) for each in items[-LONGEST:]]
        return kept if len(items) <= LONGEST else [f"… {len(items) - LONGEST} before", *kept]
    return shortened(_plain(value), room, depth + 1)


def _shortened_table(value: Mapping[Any, Any], room: int, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, (key, each) in enumerate(value.items()):
        if number == LONGEST:
            found["…"] = f"{len(value) - LONGEST} more"
            break
        found[shortened(str(key), room)] = shortened(each, room, depth + 1)
    return found


_FIELDS: dict[type, tuple[tuple[str, ...], attrgetter[Any]]] = {}


def fields_of(value: Any) -> dict[str, Any]:
    """A record's fields by name."""
    kind = cast("type[Any]", type(value))
    known = _FIELDS.get(kind)
    if known is None:
        names = tuple(name for name in kind.__dataclass_fields__ if name not in LEFT_OUT)
        known = _FIELDS[kind] = (names, attrgetter(*(names if len(names) > 1 else ("__class__",) * 2)))
    names, get = known
    if len(names) > 1:
        try:
            return dict(zip(names, get(value), strict=True))
        except AttributeError:  # one that was never set
            pass
    return {name: getattr(value, name, None) for name in names}


def _plain(value: Any) -> Any:
    """What stands for an object that JSON does not know."""
    if is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    if isinstance(value, Mapping):
        return {str(name): each for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, set | frozenset):
        return list(cast("Iterable[Any]", value))
    if isinstance(value, bytes | bytearray):
        return f"<{len(value):,} bytes>"
    if isinstance(value, BaseException):
        return error_text(value)
    return f"<{type(value).__name__}>"


def _encoder() -> Callable[[Any], str]:
    """A JSON encoder that is made once; `JSONEncoder` makes another for every value."""
    if c_make_encoder is None:
        options: Any = {"allow_nan": False, "skipkeys": True, "separators": (",", ":")}
        return JSONEncoder(default=_plain, **options).encode
    # markers, default, encoder, indent, separators, sort_keys, skipkeys, allow_nan
    made = cast("Any", c_make_encoder)(
        None, _plain, encode_basestring_ascii, None, ":", ",", False, True, False
    )

    return lambda value: "".join(cast("Iterable[str]", made(value, 0)))


encode = _encoder()
"""Any value as JSON text in ASCII; what JSON does not know is named."""
