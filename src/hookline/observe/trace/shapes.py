"""Shapes: the common part of a hook's dispatches, so that each one is only its values and times.

Names are stored once per chunk. The work per dispatch is done by the interpreter itself.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from operator import itemgetter
from typing import Any, cast

from hookline.hooks import HookSpec, Implementation
from hookline.hooks.observers import Observed

from .snapshot import LEFT_OUT, Values, field_names, quick_reader


class PayloadShape:
    """The names of a hook's payload, and the function that reads its values."""

    __slots__ = ("castings", "event", "hook", "is_plain", "is_whole", "names", "values")

    def __init__(
        self, spec: HookSpec, names: tuple[str, ...], values: Values | None, event: type | None = None
    ) -> None:
        self.hook: str = spec.name
        self.is_whole = values is not None and not spec.withholds
        """Whether all of the payload may be kept."""
        self.is_plain = values is not None and not spec.reducer.replaces
        """Whether a result that is not a ruling is stored unchanged."""
        self.names = names
        self.values = values or tuple
        """Reads the values; raises `AttributeError` if a field was never set."""
        self.event = event
        """The class of the event that `values` is for; None: it is for the arguments."""
        self.castings: dict[Implementation | tuple[Implementation, ...], Casting] = {}
        """By who was called: one, or several in their order."""


class Casting:
    """A shape, and who was called: most dispatches of a hook have the same one."""

    __slots__ = ("shape", "written")

    def __init__(self, shape: PayloadShape, written: bytes) -> None:
        self.shape = shape
        self.written = written
        """The hook, the names of its payload, and the handlers, as `rows` has it."""


def shape_of(watched: Observed, args: tuple[Any, ...]) -> PayloadShape:
    """The shape of a hook's arguments: an event's fields, or its parameters."""
    spec = watched.spec
    kind = cast("type[Any]", type(args[0])) if spec.event is not None else None
    if kind is not None and is_dataclass(kind):
        fields = field_names(kind)
        return PayloadShape(spec, fields, quick_reader(fields), kind)
    shown = [(at, name) for at, name in enumerate(watched.passed) if name not in LEFT_OUT]
    places = [at for at, _ in shown]
    return PayloadShape(spec, tuple(name for _, name in shown), arguments_reader(places, len(args)))


def bare_shape(watched: Observed) -> PayloadShape:
    """The shape of a hook whose payload is not stored."""
    return PayloadShape(watched.spec, (), None)


def arguments_reader(places: list[int], count: int) -> Values:
    """A function that reads the arguments at these positions."""
    if len(places) == count:
        return tuple
    if len(places) < 2:  # of one, `itemgetter` gives no tuple
        return lambda args: tuple(args[at] for at in places)
    return itemgetter(*places)
