"""Records: what events and results have in common, told from their fields.

`@record` makes a slotted dataclass that takes `repr` and equality from here, instead of writing them
anew for each class: a catalogue of a hundred classes is then imported in half the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


class Record:
    """Base of classes made with `@record`."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in field_names(self))
        return f"{type(self).__qualname__}({shown})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in field_names(self))

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # they can change


def field_names(record: Any) -> tuple[str, ...]:
    """The names of a record's fields, in order."""
    return tuple(f.name for f in fields(record))


@dataclass_transform(field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a slotted dataclass of a subclass of `Record`: an event, or a result."""
    return dataclass(slots=True, repr=False, eq=False)(cls)
