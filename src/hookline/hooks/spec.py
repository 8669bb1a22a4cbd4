"""Specs: a hook is declared once, as data, and everything else is made from the declaration.

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
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType, NoneType, UnionType
from typing import (
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    is_typeddict,
    overload,
)

from .errors import DeclarationError, UnknownHook
from .reducers import (
    NEWEST,
    OLDEST,
    RAISE,
    SKIP,
    Errors,
    Order,
    Reducer,
    collect,
    first,
    legal,
)
from .verdict import Record

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

Answer = Union[T, None, Awaitable[Union[T, None]]]  # noqa: UP007  (a generic alias, subscripted at run time)
"""What an implementation of an async hook may return: a value, None, or either awaited."""

SPEC = "__hookspec__"


@dataclass(frozen=True, slots=True, eq=False)
class HookSpec:
    """The immutable record of one hook."""

    name: str
    params: tuple[str, ...]
    reducer: Reducer
    order: Order = NEWEST
    errors: Errors = RAISE
    result: Any = Any
    """What an implementation returns, None aside."""
    sync: bool = False
    """A bootstrap hook: called synchronously, awaitables are skipped."""
    timeout: float | None = None
    scope: str | None = None
    """Where a dispatch carries its scope key: `session_id`, or `ctx.session_id`."""
    match: str | None = None
    """The parameter, or the event's field (`tool_call.name`), that a pattern in `when=` is held
    against; the log of a failure names it."""
    family: str = "custom"
    doc: str = ""
    fires: str = ""
    """When it is called, in a phrase."""
    event: type | None = None
    """The event's class where the payload is one object."""
    withholds: tuple[str, ...] = ()
    """Fields of the event that observers see only as the verdict released them."""
    excludes: tuple[str, ...] = ()
    """Hooks that one plugin may not implement beside this one."""
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    function: Callable[..., Any] | None = None
    classes: tuple[type, ...] | None = field(default=None, init=False, repr=False)
    """The classes a result may have, or None when it may be anything."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", outer_classes(self.result))
        try:
            self._check()
        except DeclarationError as error:
            raise DeclarationError(f"hook {self.name!r}: {error}") from None

    @property
    def firstresult(self) -> bool:
        """Whether the first value that is not None is the answer."""
        return self.reducer.name == "first"

    @property
    def match_source(self) -> str | None:
        """The match field as an expression on the parameters."""
        return f"event.{self.match}" if self.match and self.event else self.match

    def accepts(self, value: Any) -> bool:
        """Whether a value, not None, is of the declared type (its outer class)."""
        if self.classes is None:
            return True
        return isinstance(value, self.classes) and (
            not has_literal(self.result) or fits(value, self.result)
        )

    def returns_only(self, *classes: type) -> bool:
        """Whether every legal result is of these classes, or the type says nothing."""
        own = self.classes
        return own is None or all(issubclass(c, classes) for c in own)

    def signature(self) -> str:
        """The hook as a call: `load_state(message, session_id) -> dict[str, Any]`."""
        shown = ", ".join(
            f"{p}: {type_name(self.annotations[p])}" if p in self.annotations else p
            for p in self.params
        )
        return f"{self.name}({shown}) -> {type_name(self.result)}"

    def _check(self) -> None:
        legal(self.reducer, self.errors)
        if reason := self.reducer.check(self):
            raise DeclarationError(reason)
        for name in self.params:
            if name.startswith("_") or not name.isidentifier():
                raise DeclarationError(f"parameter {name!r} must be a public name")
        if self.timeout is not None and not self.timeout > 0:
            raise DeclarationError(f"timeout must be above zero, not {self.timeout!r}")
        if self.scope is not None and self.scope.partition(".")[0] not in self.params:
            raise DeclarationError(f"scope={self.scope!r} names no parameter of the hook")
        if self.match is not None and self.match.partition(".")[0] not in self._matchable():
            raise DeclarationError(f"match={self.match!r} names no parameter or field of the hook")
        if any(hasattr(c, "__await__") for c in self.classes or ()):
            raise DeclarationError("a result that is itself awaitable cannot be told from a promise")

    def _matchable(self) -> tuple[str, ...]:
        if self.event is None:
            return self.params
        return tuple(getattr(self.event, "__dataclass_fields__", {}))


class Event(Record, Generic[R]):
    """Base of event classes; the type argument is what a handler may return."""

    __slots__ = ()


class Family:
    """Base of the classes that declare function-shaped hooks; plugins may inherit one for its types.

    The bodies of declared hooks do nothing and are never called.
    """

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for function in vars(cls).values() if name else ():
            spec = getattr(function, SPEC, None)
            if isinstance(spec, HookSpec):
                setattr(function, SPEC, replace(spec, family=name))


@overload
def hookspec(function: F, /) -> F: ...
@overload
def hookspec(
    reduce: Reducer | None = None,
    /,
    *,
    firstresult: bool = False,
    order: Order = NEWEST,
    errors: Errors = RAISE,
    sync: bool = False,
    timeout: float | None = None,
    scope: str | None = None,
    match: str | None = None,
    fires: str = "",
    excludes: tuple[str, ...] = (),
) -> Callable[[F], F]: ...
def hookspec(
    reduce: Any = None,
    /,
    *,
    firstresult: bool = False,
    order: Order = NEWEST,
    errors: Errors = RAISE,
    sync: bool = False,
    timeout: float | None = None,
    scope: str | None = None,
    match: str | None = None,
    fires: str = "",
    excludes: tuple[str, ...] = (),
) -> Any:
    """Declare a function-shaped hook: name, parameters, result and doc are the function's own.

    Without a reducer it means what it means in pluggy: a bare `@hookspec` collects the results, and
    `@hookspec(firstresult=True)` gives the first one that is not None.
    """
    if reduce is not None and not isinstance(reduce, Reducer):
        if not callable(reduce):
            raise DeclarationError(f"hookspec needs a reducer such as `collect`, not {reduce!r}")
        return hookspec()(reduce)
    if reduce is not None and firstresult:
        raise DeclarationError(f"firstresult=True contradicts the reducer `{reduce}`; leave one out")
    reducer = reduce or (first if firstresult else collect)

    def declare(function: F) -> F:
        hints = dict(function.__annotations__)
        returned = hints.pop("return", Any)
        like_pluggy = reduce is None and isinstance(returned, str)  # pluggy looks at no annotation
        spec = HookSpec(
            name=function.__name__,
            params=declared_parameters(function),
            reducer=reducer,
            order=order,
            errors=errors,
            result=Any if like_pluggy else plain_result(returned),
            sync=sync,
            timeout=timeout,
            scope=scope,
            match=match,
            doc=first_line(function.__doc__),
            fires=fires,
            excludes=excludes,
            annotations=hints,
            function=function,
        )
        setattr(function, SPEC, spec)
        function.firstresult = spec.firstresult  # pyright: ignore[reportFunctionMemberAccess]
        return function

    return declare


def event(
    reduce: Reducer,
    *,
    family: str = "custom",
    order: Order = OLDEST,
    errors: Errors = SKIP,
    timeout: float | None = None,
    scope: str | None = "ctx.session_id",
    match: str | None = None,
    fires: str = "",
    withholds: tuple[str, ...] = (),
) -> Callable[[C], C]:
    """Declare an event: its name is the default of `type`, its result the argument of `Event[...]`.

    What a gate holds back stands in `withholds`: subscribers and the trace see these fields as the
    verdict left them, and empty where it did not allow them or the event is `partial`.
    """

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
            name=fields["type"].default,
            params=("event", "ctx"),
            reducer=reduce,
            order=order,
            errors=errors,
            result=event_result(cls),
            timeout=timeout,
            scope=scope,
            match=match,
            family=family,
            doc=first_line(cls.__doc__),
            fires=fires,
            event=cls,
            withholds=withholds,
            annotations={"event": cls},
        )
        setattr(cls, SPEC, spec)
        return cls

    return declare


Source = type | ModuleType | HookSpec


class Catalog(Mapping[str, HookSpec]):
    """The declared hooks, by name, in the order of their declaration."""

    def __init__(self, *sources: Source) -> None:
        self._specs: dict[str, HookSpec] = {}
        for source in sources:
            self.declare(source)

    def declare(self, source: Source) -> list[HookSpec]:
        """Add every hook that a family class, event class, module or spec declares."""
        found = list(specs_in(source))
        if not found:
            raise DeclarationError(f"{source!r} declares no hook; mark one with @hookspec or @event")
        for spec in found:
            if self._specs.get(spec.name, spec) is not spec:
                raise DeclarationError(f"hook {spec.name!r} is declared already")
        self._specs.update((spec.name, spec) for spec in found)
        return found

    def remove(self, names: Iterable[str]) -> None:
        """Take declared hooks out again."""
        for name in names:
            del self._specs[name]

    def copy(self) -> Catalog:
        """A catalogue of its own with the same hooks."""
        return Catalog(*self._specs.values())

    def families(self) -> dict[str, list[HookSpec]]:
        """The hooks grouped by family, both in the order of their declaration."""
        grouped: dict[str, list[HookSpec]] = {}
        for spec in self._specs.values():
            grouped.setdefault(spec.family, []).append(spec)
        return grouped

    def __getitem__(self, name: str) -> HookSpec:
        try:
            return self._specs[name]
        except KeyError:
            raise UnknownHook(name, self._specs) from None

    def get(self, name: str, default: Any = None) -> Any:
        """The spec of that name, or the default."""
        return self._specs.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)


def specs_in(source: Source) -> Iterator[HookSpec]:
    """Find the hooks that an object declares."""
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
    """The parameters of a declared hook, `self` aside; each must be a plain one."""
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise DeclarationError(f"hook {function.__name__!r}: every parameter must be a plain one")
    names = code.co_varnames[: code.co_argcount]
    return names[1:] if names[:1] == ("self",) else names


def first_line(doc: str | None) -> str:
    """The summary line of a docstring."""
    return doc.strip().splitlines()[0] if doc and doc.strip() else ""


def plain_result(annotation: Any) -> Any:
    """What an implementation returns once None and awaiting are taken away."""
    if annotation is None or annotation is NoneType:
        return None
    if isinstance(annotation, str):
        raise DeclarationError(
            f"the result type {annotation!r} must be an object, not a string: "
            "declare hooks in a module without `from __future__ import annotations`"
        )
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    kept = [a for a in get_args(annotation) if a is not NoneType and get_origin(a) is not Awaitable_]
    if not kept:
        return None
    result = kept[0]
    for other in kept[1:]:
        result = Union[result, other]  # noqa: UP007  (built at run time)
    return result


Awaitable_ = get_origin(Awaitable[Any])


def event_result(cls: type) -> Any:
    """The argument of `Event[...]` among the bases, None when a handler returns nothing."""
    for base in getattr(cls, "__orig_bases__", ()):
        if get_origin(base) is Event:
            return plain_result(get_args(base)[0])
    return None


def outer_classes(annotation: Any) -> tuple[type, ...] | None:
    """The classes to check a value against; None where a type says too little to check.

    A hook that returns nothing looks at nothing: what comes back anyway is no error.
    """
    if annotation is None or annotation is NoneType:
        return None
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        parts = [outer_classes(a) for a in get_args(annotation)]
        return None if None in parts else tuple(c for p in parts for c in p or ())
    if origin is Literal:
        return tuple({type(value): None for value in get_args(annotation)})
    cls: Any = origin or annotation
    if is_typeddict(cls):
        return (dict,)
    if cls is float:
        return (float, int)
    unknown = cls is Any or cls is object or getattr(cls, "_is_protocol", False)
    if unknown or not isinstance(cls, type):
        return None
    return (cast("type", cls),)


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value has a type's outer class; a literal must be one of its values."""
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return any(fits(value, a) for a in get_args(annotation))
    classes = outer_classes(annotation)
    return classes is None or isinstance(value, classes)


def has_literal(annotation: Any) -> bool:
    """Whether a class check alone is not enough."""
    if get_origin(annotation) in (Union, UnionType):
        return any(has_literal(a) for a in get_args(annotation))
    return get_origin(annotation) is Literal


def type_name(annotation: Any) -> str:
    """A type as people write it."""
    if annotation is None or annotation is NoneType:
        return "None"
    if isinstance(annotation, str):
        return annotation
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(type_name(a) for a in get_args(annotation))
    if get_origin(annotation) is Literal:
        return " | ".join(repr(a) for a in get_args(annotation))
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(annotation))


__all__ = [
    "Answer",
    "Catalog",
    "Event",
    "Family",
    "HookSpec",
    "event",
    "hookspec",
]
