"""Snapshots: a payload as JSON text, taken immediately, because the objects may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from json import JSONEncoder
from json.encoder import c_make_encoder, encode_basestring_ascii  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from math import isfinite
from operator import attrgetter
from typing import Any, Final, cast

from orjson import OPT_PASSTHROUGH_DATACLASS, dumps

from hookline.hooks.errors import error_text

Values = Callable[[Any], tuple[Any, ...]]
"""Reads the values off an event, or off the arguments of a hook."""
LEFT_OUT: Final = frozenset({"app", "call_next", "ctx", "deps", "pm"})
"""Parameters that are not worth recording."""
DEEPEST: Final = 6
OPTIONS: Final = OPT_PASSTHROUGH_DATACLASS
"""Of `orjson`: dataclasses are for `plain`, which leaves some fields out."""
LONGEST: Final = 20
"""Items that are kept of a list or table whose text is too long."""


def snapshot(value: Any, limit: int) -> bytes:
    """Any value as JSON text of about this length at most."""
    try:
        text = encode(value)
        if len(text) <= limit:
            return text
    except UNKNOWN:
        pass
    room = limit
    while True:
        text = encode(shortened(value, max(20, room // 8)))
        if len(text) <= limit or room < 200:
            return text if len(text) <= limit else encode(f"… {len(text):,} characters left out")
        room //= 2


def payload_of(arguments: Mapping[str, Any]) -> Any:
    """The payload of a hook: an event's fields, or its parameters."""
    event = arguments.get("event")
    if is_dataclass(event):
        return plain(event)
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
    return shortened(plain(value), room, depth + 1)


def _shortened_table(value: Mapping[Any, Any], room: int, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, (key, each) in enumerate(value.items()):
        if number == LONGEST:
            found["…"] = f"{len(value) - LONGEST} more"
            break
        found[shortened(str(key), room)] = shortened(each, room, depth + 1)
    return found


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a dataclass that say something."""
    return tuple(name for name in kind.__dataclass_fields__ if name not in LEFT_OUT)


def fields_reader(names: tuple[str, ...]) -> Values:
    """A function that reads these fields, with None for one that was never set."""
    quickly = quick_reader(names)

    def read(event: Any) -> tuple[Any, ...]:
        try:
            return quickly(event)
        except AttributeError:
            return read_carefully(event, names)

    return read


def quick_reader(names: tuple[str, ...]) -> Values:
    """The same for objects with all fields set; otherwise it raises `AttributeError`."""
    if len(names) < 2:  # of one, `attrgetter` gives no tuple
        return lambda event: read_carefully(event, names)
    return attrgetter(*names)


def read_carefully(event: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """These fields, None for one that was never set."""
    return tuple(getattr(event, name, None) for name in names)


_STAND_INS: dict[type, Callable[[Any], Any]] = {}


def plain(value: object) -> Any:
    """The substitute for an object that JSON does not know."""
    kind = type(value)
    found = _STAND_INS.get(kind)
    if found is None:
        found = _STAND_INS[kind] = _stand_in(kind)
    return found(value)


def _stand_in(kind: type[Any]) -> Callable[[Any], Any]:
    """A function that converts the objects of a class; looked up once, because that is slow."""
    if is_dataclass(kind):
        names = field_names(kind)
        values = fields_reader(names)
        return lambda value: dict(zip(names, values(value), strict=True))
    if issubclass(kind, Mapping):
        return lambda value: {str(name): each for name, each in value.items()}
    if issubclass(kind, set | frozenset | tuple):
        return list
    if issubclass(kind, float):
        return float
    if issubclass(kind, bytes | bytearray):
        return lambda value: f"<{len(value):,} bytes>"
    if issubclass(kind, BaseException):
        return error_text
    return lambda value: f"<{kind.__name__}>"


def _encoder() -> Callable[[Any], str]:
    """A JSON encoder that is made once; `JSONEncoder` makes another for every value."""
    if c_make_encoder is None:
        options: Any = {"allow_nan": False, "skipkeys": True, "separators": (",", ":")}
        return JSONEncoder(default=plain, **options).encode
    # markers, default, encoder, indent, separators, sort_keys, skipkeys, allow_nan
    made: Callable[[Any, int], Iterable[str]] = cast("Any", c_make_encoder)(
        None, plain, encode_basestring_ascii, None, ":", ",", False, True, False
    )
    join = "".join
    return lambda value: join(made(value, 0))


_encode_carefully = _encoder()
UNKNOWN: Final = (TypeError, ValueError, RecursionError)
"""The errors of JSON for a value that it cannot represent."""


def encode(value: Any) -> bytes:
    """Any value as JSON text; what JSON does not know is named.

    Payloads are most of the work of a trace, and this takes a third of the time that `json` does.
    `to_json` of pydantic would run a generator that it comes upon.
    """
    try:
        return dumps(value, plain, OPTIONS)
    except TypeError:  # a long number, a key that is no text, half of a surrogate pair
        return _encode_carefully(value).encode()
