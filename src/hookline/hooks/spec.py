"""Declarations: a hook is declared once, as data, and everything else is derived from that.

A function-shaped hook is a method of a `Family`; an event is a dataclass:

    class TurnHooks(Family, name="turn"):
        @hookspec(first)
        def resolve_session(self, message: Envelope) -> Answer[str]:
            '''Name the session that this message belongs to.'''

    @event(gate, family="tool", match="tool_name")
    @dataclass(slots=True)
    class ToolCallEvent(Event[ToolCallEventResult]):
        '''A tool is about to run.'''

        type: Literal["tool_call"] = field(default="tool_call", init=False)
        tool_name: str = ""

The bodies of declared hooks are never called.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    overload,
)

from .annotations import fits, has_literal, outer_classes, plain_result, type_name
from .errors import DeclarationError, UnknownHook
from .reducers import NEWEST, OLDEST, RAISE, SKIP, Errors, Order, Reducer, collect, first
from .verdict import Record

T = TypeVar("T")
R = TypeVar("R")
E_co = TypeVar("E_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

Answer = Union[T, None, Awaitable[Union[T, None]]]  # noqa: UP007  (a generic alias, subscripted at run time)
"""What an implementation of an async hook may return: a value, None, or either awaited."""

SPEC = "__hookspec__"


class SpecOptions(TypedDict, total=False):
    """The options that `@hookspec` and `@event` have in common; `HookSpec` documents them."""

    order: Order
    errors: Errors
    timeout: float | None
    scope: str | None
    match: str | None
    fires: str
    after: str


class HookOptions(SpecOptions, total=False):
    """The options of `@hookspec`."""

    sync: bool
    excludes: tuple[str, ...]


class EventOptions(SpecOptions, total=False):
    """The options of `@event`."""

    family: str
    withholds: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class HookSpec:
    """The immutable declaration of one hook."""

    name: str
    params: tuple[str, ...]
    reducer: Reducer
    order: Order = NEWEST
    errors: Errors = RAISE
    result: Any = Any
    """What an implementation returns, apart from None."""
    sync: bool = False
    """The hook is called synchronously; awaitables are skipped."""
    timeout: float | None = None
    scope: str | None = None
    """Where a dispatch carries its scope key: `session_id`, or `ctx.session_id`."""
    match: str | None = None
    """The parameter or the event's field (`tool_call.name`) that a pattern in `when=` is matched
    with; the log line of a failure shows its value."""
    family: str = "custom"
    doc: str = ""
    fires: str = ""
    """When it is called, in a phrase."""
    after: str = ""
    """The hook that it follows, which gives it a place in the picture of a turn."""
    event: type | None = None
    """The class of the event, if the hook's payload is one object."""
    withholds: tuple[str, ...] = ()
    """Fields of the event that observers see only as the verdict released them."""
    excludes: tuple[str, ...] = ()
    """Hooks that a plugin may not implement together with this one."""
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    function: Callable[..., Any] | None = None
    classes: tuple[type, ...] | None = field(default=None, init=False, repr=False)
    """The classes a result may have, or None if it may be anything."""
    check: Literal["class", "value", ""] = field(default="", init=False, repr=False)
    """How a result is checked: by its class, by its value for a `Literal`, or not at all."""
    match_source: str | None = field(default=None, init=False, repr=False)
    """The match field as an expression on the parameters."""
    scope_source: tuple[str, str] = field(default=("", ""), init=False, repr=False)
    """The parameter that carries the scope key, and the attribute of it, if it is one."""

    def __post_init__(self) -> None:
        parameter, _, attribute = (self.scope or "").partition(".")
        classes = outer_classes(self.result)
        by = "value" if has_literal(self.result) else "class"
        for name, value in (
            ("classes", classes),
            ("check", by if self.reducer.checked and classes is not None else ""),
            ("match_source", f"event.{self.match}" if self.match and self.event else self.match),
            ("scope_source", (parameter, attribute)),
        ):
            object.__setattr__(self, name, value)
        if problem := self._problem():
            raise DeclarationError(f"hook {self.name!r}: {problem}")

    @property
    def firstresult(self) -> bool:
        """Whether the first value that is not None is the answer."""
        return self.reducer.firstresult

    def accepts(self, value: Any) -> bool:
        """Return whether a value, not None, is of the declared type: its outer class."""
        if self.classes is None:
            return True
        return isinstance(value, self.classes) and (self.check != "value" or fits(value, self.result))

    def returns_only(self, *classes: type) -> bool:
        """Return whether every legal result is of these classes, or the type says nothing."""
        return self.classes is None or all(issubclass(c, classes) for c in self.classes)

    def signature(self) -> str:
        """Return the hook as a call: `load_state(message, session_id) -> dict[str, Any]`."""
        shown = ", ".join(
            f"{p}: {type_name(self.annotations[p])}" if p in self.annotations else p
            for p in self.params
        )
        return f"{self.name}({shown}) -> {type_name(self.result)}"

    def _problem(self) -> str | None:
        """Return why this declaration makes no sense, or None."""
        reducer, params = self.reducer, self.params
        if self.errors not in reducer.errors:
            fitting = ", ".join(e.name for e in Errors if e in reducer.errors)
            return f"errors={self.errors.name} means nothing with `{reducer.name}`; use {fitting}"
        if self.sync and reducer.nested:
            return f"`{reducer.name}` needs an async hook; leave out sync=True"
        if reason := reducer.check(self):
            return reason
        for name in params:
            if name.startswith("_") or not name.isidentifier():
                return f"parameter {name!r} must be a public name"
        if self.timeout is not None and not self.timeout > 0:
            return f"timeout must be above zero, not {self.timeout!r}"
        if self.scope is not None and self.scope_source[0] not in params:
            return f"scope={self.scope!r} names no parameter of the hook"
        fields = getattr(self.event, "__dataclass_fields__", {}) if self.event else params
        if self.match is not None and self.match.partition(".")[0] not in fields:
            return f"match={self.match!r} names no parameter or field of the hook"
        if any(hasattr(c, "__await__") for c in self.classes or ()):
            return "a result must not be awaitable itself: it would be awaited"
        return None


class Event(Record, Generic[R]):
    """Base of event classes; the type argument is what a handler may return."""

    __slots__ = ()

    if TYPE_CHECKING:

        @classmethod
        def __handled__(cls) -> Handled[Self, R]: ...


class Handled(Generic[E_co, R]):
    """An event together with what its handlers return, for type checkers."""


class EventClass(Protocol[E_co, R]):
    """The class of an event, for type checkers: what ties a handler to its event and its result."""

    def __handled__(self) -> Handled[E_co, R]:
        """Exists for type checkers only."""
        ...


class Family:
    """Base of classes that declare function-shaped hooks; a plugin may inherit one for its types."""

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for function in vars(cls).values() if name else ():
            spec = getattr(function, SPEC, None)
            if isinstance(spec, HookSpec):  # declared just now: no one else has it yet
                object.__setattr__(spec, "family", name)


@overload
def hookspec(function: F, /) -> F: ...
@overload
def hookspec(
    reduce: Reducer | None = None, /, *, firstresult: bool = False, **options: Unpack[HookOptions]
) -> Callable[[F], F]: ...
def hookspec(
    reduce: Any = None, /, *, firstresult: bool = False, **options: Unpack[HookOptions]
) -> Any:
    """Declare a function-shaped hook: its name, parameters, result and doc are the function's own.

    Without a reducer it means the same as in pluggy: a bare `@hookspec` collects the results, and
    `@hookspec(firstresult=True)` returns the first one that is not None.
    """
    if reduce is not None and not isinstance(reduce, Reducer):
        if not callable(reduce):
            raise DeclarationError(f"hookspec needs a reducer such as `collect`, not {reduce!r}")
        return hookspec()(reduce)
    if reduce is not None and firstresult:
        raise DeclarationError(f"firstresult=True contradicts the reducer `{reduce}`; leave one out")

    def declare(function: F) -> F:
        hints = dict(function.__annotations__)
        returned = hints.pop("return", Any)
        like_pluggy = reduce is None and isinstance(returned, str)  # pluggy ignores annotations
        spec = HookSpec(
            function.__name__,
            declared_parameters(function),
            reduce or (first if firstresult else collect),
            result=Any if like_pluggy else plain_result(returned),
            doc=first_line(function.__doc__),
            annotations=hints,
            function=function,
            **options,
        )
        setattr(function, SPEC, spec)
        function.firstresult = spec.firstresult  # pyright: ignore[reportFunctionMemberAccess]
        return function

    return declare


def event(reduce: Reducer, **options: Unpack[EventOptions]) -> Callable[[C], C]:
    """Declare an event: its name is the default of `type`, its result the argument of `Event[...]`.

    Unless the options say otherwise, handlers run oldest first, their errors are skipped, and the
    scope key is `ctx.session_id`. `withholds` names the fields that a gate holds back: subscribers and
    the trace see them as the verdict left them, and empty if it did not allow them or the event is
    `partial`.
    """
    settings: EventOptions = {"order": OLDEST, "errors": SKIP, "scope": "ctx.session_id", **options}

    def declare(cls: C) -> C:
        fields = getattr(cls, "__dataclass_fields__", None)
        if fields is None:
            raise DeclarationError(f"event {cls.__name__!r} must be a dataclass")
        if "type" not in fields or not isinstance(fields["type"].default, str):
            raise DeclarationError(
                f"event {cls.__name__!r} needs a field "
                'type: Literal["its_name"] = field(default="its_name", init=False)'
            )
        spec = HookSpec(
            fields["type"].default,
            ("event", "ctx"),
            reduce,
            result=event_result(cls),
            doc=first_line(cls.__doc__),
            event=cls,
            annotations={"event": cls},
            **settings,
        )
        setattr(cls, SPEC, spec)
        return cls

    return declare


Source = type | ModuleType | HookSpec


class Catalog(dict[str, HookSpec]):
    """The declared hooks by name, in the order of their declaration."""

    def __init__(self, *sources: Source) -> None:
        super().__init__()
        for source in sources:
            self.declare(source)

    def declare(self, source: Source) -> list[HookSpec]:
        """Add every hook that a family class, an event class, a module or a spec declares."""
        found = list(specs_in(source))
        if not found:
            raise DeclarationError(f"{source!r} declares no hook; mark one with @hookspec or @event")
        for spec in found:
            if self.get(spec.name, spec) is not spec:
                raise DeclarationError(f"hook {spec.name!r} is declared already")
        self.update((spec.name, spec) for spec in found)
        return found

    def copy(self) -> Catalog:
        """Return another catalogue with the same hooks."""
        copied = Catalog()
        copied.update(self)
        return copied

    def families(self) -> dict[str, list[HookSpec]]:
        """Return the hooks grouped by family, both in the order of their declaration."""
        grouped: dict[str, list[HookSpec]] = {}
        for spec in self.values():
            grouped.setdefault(spec.family, []).append(spec)
        return grouped

    def __missing__(self, name: str) -> HookSpec:
        raise UnknownHook(name, self)


def specs_in(source: Source) -> Iterator[HookSpec]:
    """Yield the hooks that an object declares."""
    if isinstance(source, HookSpec):
        yield source
        return
    own = vars(source)
    if isinstance(own.get(SPEC), HookSpec):
        yield own[SPEC]
        return
    for value in own.values():
        spec = getattr(value, SPEC, None)
        if isinstance(spec, HookSpec):
            yield spec


def declared_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameters of a declared hook, apart from `self`."""
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise DeclarationError(f"hook {function.__name__!r}: every parameter must be a plain one")
    names = code.co_varnames[: code.co_argcount]
    return names[1:] if names[:1] == ("self",) else names


def first_line(doc: str | None) -> str:
    """Return the summary line of a docstring."""
    return doc.strip().splitlines()[0] if doc and doc.strip() else ""


def event_result(cls: type) -> Any:
    """Return the argument of `Event[...]` among the bases; None if handlers return nothing."""
    for base in getattr(cls, "__orig_bases__", ()):
        if get_origin(base) is Event:
            return plain_result(get_args(base)[0])
    return None
