"""Verdicts: the outcome of an event that handlers may change, question or block.

A handler returns a *result*, and `result.verdict()` says what it means, as a `Ruling`. All rulings
together are the `Verdict`: the strictest decision wins, and every change is applied in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, dataclass_transform

from .errors import Unsettled, WrongResult, error_text

if TYPE_CHECKING:
    from .implementation import Implementation

T = TypeVar("T")


class Record:
    """Base of events and results: `repr` and equality, from their fields."""

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
    """Return the names of the fields of a record, in order."""
    return tuple(f.name for f in fields(record))


@dataclass_transform(field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a slotted dataclass of a subclass of `Record`: an event, or a result.

    Generating code for a class takes most of the time in which a large catalogue is imported. So `repr`
    and equality are inherited, and `__init__` is generated when the first object is made.
    """
    made: Any = dataclass(slots=True, init=False, repr=False, eq=False)(cls)
    made.__init__ = GeneratedInit(made)
    return made


class GeneratedInit:
    """The `__init__` of a dataclass, generated when it is first asked for."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        cls = self._cls
        own = [(f.name, f.type, copy(f)) for f in fields(cls)]
        methods = {name: getattr(cls, name) for name in ("__post_init__",) if hasattr(cls, name)}
        like = make_dataclass(cls.__name__, own, namespace=methods, repr=False, eq=False, slots=True)
        init: Any = like.__init__
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = init
        return init.__get__(instance, owner)


E = TypeVar("E")


class Decision(IntEnum):
    """Whether to go on; the greater one is the stricter one."""

    ALLOW = 0
    ASK = 1
    DENY = 2


@dataclass(slots=True)
class Ruling:
    """What one handler decided and changed; the trail of a verdict is a list of these."""

    decision: Decision = Decision.ALLOW
    reason: str | None = None
    changes: Mapping[str, Any] | None = None
    by: str = ""
    error: Exception | None = None


class EventResult(Record):
    """Base of result classes: every field that is set changes the event; nothing is decided."""

    __slots__ = ()

    def verdict(self) -> Ruling:
        """Return what this result means."""
        return Ruling(changes=self.set_fields())

    def set_fields(self, *omit: str) -> dict[str, Any]:
        """Return the fields that are not None, without the ones named."""
        values = {
            field.name: getattr(self, field.name)
            for field in fields(self)  # pyright: ignore[reportArgumentType]
        }
        return {k: v for k, v in values.items() if v is not None and k not in omit}


class Collected(EventResult):
    """Base of results that are collected in a list instead of changing the event."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Denied(EventResult):
    """The entry in a list of results for a guard that failed."""

    reason: str

    def verdict(self) -> Ruling:
        """Return a deny with its reason."""
        return Ruling(Decision.DENY, self.reason)


class Verdict(Generic[E]):
    """The outcome of a gate or patch: decision, reason, final event, and who did what."""

    __slots__ = ("decision", "event", "reason", "supplied", "trail", "withheld")

    def __init__(self, event: E) -> None:
        self.decision = Decision.ALLOW
        self.reason: str | None = None
        self.event: E = event
        self.supplied: dict[str, Any] = {}
        self.trail: list[Ruling] = []
        self.withheld = False

    @property
    def allowed(self) -> bool:
        """No handler denied or asked."""
        return self.decision is Decision.ALLOW

    @property
    def asked(self) -> bool:
        """A handler asked for approval, and none denied."""
        return self.decision is Decision.ASK

    @property
    def denied(self) -> bool:
        """A handler denied."""
        return self.decision is Decision.DENY

    @property
    def deciding(self) -> Ruling | None:
        """The ruling that made the decision: the first of the strictest."""
        if self.decision is Decision.ALLOW:
            return None
        return next(ruling for ruling in self.trail if ruling.decision is self.decision)

    @property
    def decided_by(self) -> str | None:
        """The name of the implementation that made the decision."""
        return self.deciding.by if self.deciding else None

    @property
    def changes(self) -> dict[str, Any]:
        """The fields of the event that results set, with their final values."""
        changed: dict[str, Any] = {}
        for ruling in self.trail:
            changed.update(ruling.changes or {})
        return {name: value for name, value in changed.items() if name not in self.supplied}

    @property
    def conflicts(self) -> dict[str, list[str]]:
        """The fields that several handlers set to different values, with the names of the handlers."""
        setters: dict[str, list[tuple[str, Any]]] = {}
        for ruling in self.trail:
            for name, value in (ruling.changes or {}).items():
                setters.setdefault(name, []).append((ruling.by, value))
        return {
            name: [by for by, _ in made]
            for name, made in setters.items()
            if any(not same(value, made[0][1]) for _, value in made[1:])
        }

    def apply(self, result: Any, by: Implementation) -> E:
        """Apply one result and return the event that the next handler sees."""
        ruling = _ruling_of(result)
        ruling = Ruling(ruling.decision, ruling.reason, ruling.changes, by.name, ruling.error)
        self._patch(ruling.changes)
        self._decide(ruling)
        return self.event

    def fail(self, error: Exception, by: Implementation) -> E:
        """Count a failure as a deny, with the error as its reason."""
        reason = f"{by.name} failed: {error_text(error)}"
        self._decide(Ruling(Decision.DENY, reason, by=by.name, error=error))
        return self.event

    def withhold(
        self, error: Exception, by: Implementation, field: str, wrap: Callable[[str], Any] | None
    ) -> E:
        """Replace a field of the event with the error text, because the guard that judges it failed."""
        text = withheld_text(error, by)
        value = wrap(text) if wrap else text
        self.withheld = True
        self._patch({field: value})
        self.trail.append(Ruling(reason=text, changes={field: value}, by=by.name, error=error))
        return self.event

    def _decide(self, ruling: Ruling) -> None:
        if ruling.decision > self.decision:
            self.decision = ruling.decision
            self.reason = ruling.reason
        self.trail.append(ruling)

    def _patch(self, changes: Mapping[str, Any] | None) -> None:
        patched = None
        # A later handler may change such a field in place; the trail must keep what this one said.
        copied = getattr(type(self.event), "copied", ())
        for name, value in (changes or {}).items():
            if name not in getattr(type(self.event), "__dataclass_fields__", ()):
                self.supplied[name] = value
            elif not same(getattr(self.event, name), value):
                patched = patched or copy(self.event)
                setattr(patched, name, deepcopy(value) if name in copied else value)
        if patched is not None:
            self.event = patched

    def __repr__(self) -> str:
        reason = f", reason={self.reason!r}" if self.reason else ""
        return f"Verdict({self.decision.name}{reason}, event={self.event!r})"


def _ruling_of(result: Any) -> Ruling:
    """Return what a result means; one that cannot say is of the wrong type, whatever its class."""
    try:
        ruling = result.verdict()
    except Exception as error:
        raise WrongResult(f"{type(result).__name__}.verdict() failed: {error_text(error)}") from error
    if not isinstance(ruling, Ruling):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongResult(f"{type(result).__name__}.verdict() must return a Ruling")
    return ruling


def emptied(event: E, names: tuple[str, ...]) -> E:
    """Return a copy of an event with these fields empty."""
    empty = copy(event)
    for each in fields(event):  # pyright: ignore[reportArgumentType]
        if each.name in names:
            made = each.default if each.default is not MISSING else None
            setattr(
                empty, each.name, each.default_factory() if callable(each.default_factory) else made
            )
    return empty


def as_released(verdict: Verdict[E], names: tuple[str, ...]) -> Verdict[E]:
    """Return a verdict as observers may see it: these fields only if the verdict allows them."""
    shown = copy(verdict)
    partial = getattr(verdict.event, "partial", False)  # the rest of it is still held back
    through = verdict.allowed and not partial
    shown.event = verdict.event if through else emptied(verdict.event, names)
    shown.trail = [
        Ruling(
            ruling.decision,
            ruling.reason,
            {
                k: getattr(shown.event, k) if k in names else v
                for k, v in (ruling.changes or {}).items()
            },
            ruling.by,
            ruling.error,
        )
        for ruling in verdict.trail
    ]
    return shown


def same(left: object, right: object) -> bool:
    """Return whether two values are equal; False if comparing them fails."""
    try:
        return left is right or bool(left == right)
    except Exception:
        return False


def withheld_text(error: Exception, by: Implementation) -> str:
    """Return what replaces a value that a failed guard should have judged."""
    return f"[withheld: {by.name} failed: {error_text(error)}]"


def unsettled(by: Implementation) -> Unsettled:
    """Return the error for guards that keep rewriting each other's result."""
    return Unsettled(f"guards do not settle: {by.name} rewrote the result again when asked once more")
