"""Checks JSON against the types that the providers' own packages publish, and allows nothing else."""

import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

import typing_extensions
from typing_extensions import get_type_hints, is_typeddict

_WRAPPERS = (
    typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired,
)  # fmt: skip


def mismatch(value: Any, kind: Any, place: str = "") -> str:
    """Where a value is not of a type, and why; empty if it is."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return ""
    if origin in _WRAPPERS or origin is typing.Annotated:
        return mismatch(value, arguments[0], place)
    if origin in (Union, types.UnionType):
        return _none_of(value, arguments, place)
    if origin is Literal:
        return "" if value in arguments else f"{place}: {value!r} is not one of {arguments}"
    if is_typeddict(kind):
        return _wrong_object(value, kind, place)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            return f"{place}: {value!r} is not an object"
        return _first(mismatch(v, arguments[1], f"{place}.{k}") for k, v in value.items())
    if (origin is not None and issubclass(origin, Iterable)) or "SequenceNotStr" in str(origin):
        if not isinstance(value, list):
            return f"{place}: {value!r} is not a list"
        return _first(mismatch(v, arguments[0], f"{place}[{n}]") for n, v in enumerate(value))
    if kind in (None, type(None)):
        return "" if value is None else f"{place}: {value!r} is not null"
    if kind is float:
        return "" if type(value) in (int, float) else f"{place}: {value!r} is not a number"
    if not isinstance(kind, type):
        raise TypeError(f"no rule for {kind!r} at {place}")
    return "" if type(value) is kind else f"{place}: {value!r} is not {kind.__name__}"


def _wrong_object(value: Any, kind: Any, place: str) -> str:
    if not isinstance(value, dict):
        return f"{place}: {value!r} is not an object"
    hints = get_type_hints(kind, include_extras=True)
    if unknown := value.keys() - hints.keys():
        return f"{place}.{min(unknown)}: Extra inputs are not permitted"
    for name, hint in hints.items():
        if name not in value:
            if get_origin(hint) in (typing.Required, typing_extensions.Required):
                return f"{place}.{name}: Field required"
        elif wrong := mismatch(value[name], hint, f"{place}.{name}"):
            return wrong
    return ""


def _none_of(value: Any, kinds: tuple[Any, ...], place: str) -> str:
    """The complaint of the type that fits the value's own tag, or the shortest."""
    wrong: list[str] = []
    for kind in kinds:
        found = mismatch(value, kind, place)
        if not found:
            return ""
        wrong.append(found)
    tagged = [each for each in wrong if not each.startswith((f"{place}.type", f"{place}: "))]
    return (tagged or wrong)[0]


def _first(found: Iterable[str]) -> str:
    return next((each for each in found if each), "")
