"""Shapes: what the payloads of one hook have in common, so that each is its values alone.

Names are kept once in a chunk. What is done for every dispatch is done by the interpreter itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from operator import attrgetter, itemgetter
from typing import Any, cast

from hookline.hooks.trace import Watched

from .snapshot import LEFT_OUT, encode

Values = Callable[[Any], tuple[Any, ...]]
"""Reads the values off an event, or off the arguments of a hook."""


class Shape:
    """The names of a hook's payload, and what reads its values."""

    __slots__ = ("event", "hook", "names", "values", "written")

    def __init__(self, hook: str, names: tuple[str, ...], values: Values, event: type | None) -> None:
        self.hook = hook
        self.names = names
        self.values = values
        self.event = event
        """The class of the event that `values` is for; None: it is for the arguments."""
        self.written = encode([hook, names])


def shape_of(watched: Watched, args: tuple[Any, ...]) -> Shape:
    """The shape of what a hook was called with: an event's fields, or its parameters."""
    hook = watched.spec.name
    kind = cast("type[Any]", type(args[0])) if watched.spec.event is not None else None
    if kind is not None and is_dataclass(kind):
        fields = tuple(name for name in kind.__dataclass_fields__ if name not in LEFT_OUT)
        return Shape(hook, fields, fields_reader(fields), kind)
    shown = [(at, name) for at, name in enumerate(watched.passed) if name not in LEFT_OUT]
    places = [at for at, _ in shown]
    return Shape(hook, tuple(name for _, name in shown), arguments_reader(places, len(args)), None)


def bare_shape(watched: Watched) -> Shape:
    """The shape of a hook of which no payload is kept."""
    return Shape(watched.spec.name, (), tuple, None)


def fields_reader(names: tuple[str, ...]) -> Values:
    """What reads these fields, None for one that was never set."""

    def carefully(event: Any) -> tuple[Any, ...]:
        return tuple(getattr(event, name, None) for name in names)

    if len(names) < 2:  # of one, `attrgetter` gives no tuple
        return carefully
    quickly: Values = attrgetter(*names)

    def read(event: Any) -> tuple[Any, ...]:
        try:
            return quickly(event)
        except AttributeError:
            return carefully(event)

    return read


def arguments_reader(places: list[int], count: int) -> Values:
    """What reads the arguments at these places."""
    if len(places) == count:
        return tuple
    if len(places) < 2:  # of one, `itemgetter` gives no tuple
        return lambda args: tuple(args[at] for at in places)
    return itemgetter(*places)
