"""Implementations: callables attached to a hook, with their signature read and checked."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from re import Pattern
from types import CoroutineType, FunctionType, MethodType
from typing import Any, NamedTuple, TypedDict, TypeGuard, cast

from .errors import RegistrationError, suggestion
from .reducers import DENY, NEWEST
from .spec import HookSpec, type_name

log = logging.getLogger("hookline.hooks")

_ONLY, _PLAIN, _BY_NAME = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)

When = str | Pattern[str] | Callable[..., Any]


class Options(TypedDict, total=False):
    """The options of a handler or of `@hookimpl`."""

    when: When | None
    """Run only if this matches: a predicate on the hook's parameters, or a pattern for the hook's
    match field (`shell`, `fs_*`, or a compiled regular expression)."""
    timeout: float | None
    tryfirst: bool
    trylast: bool
    order: float
    """Lower runs first, whatever the hook's order, which breaks ties; 0 by default."""
    guard: bool
    """A failure of this one is a deny, or withholds the value if there is nothing to deny."""
    once: bool


class Arguments(NamedTuple):
    """What a callable takes, in terms of a hook's parameters: `(own name, hook parameter)`."""

    positional: tuple[tuple[str, str], ...] = ()
    keyword: tuple[tuple[str, str], ...] = ()
    required: frozenset[str] = frozenset()
    rest: bool = False
    """It takes `**kwargs`: everything that was passed."""
    subject: str | None = None
    """It takes one expression on the parameters instead: `event.tool_name`."""

    def missing(self, passed: tuple[str, ...]) -> list[str]:
        """Return the required parameters that were not passed."""
        required = {self.subject.partition(".")[0]} if self.subject else self.required
        return sorted(missing) if (missing := required.difference(passed)) else []

    def source(self, given: tuple[str, ...]) -> str:
        """Return the argument list of a call as source text: `message, state=state`."""
        if self.subject:
            return self.subject
        parts: list[str] = []
        used: set[str] = set()
        by_name = False
        for own, param in self.positional:
            if param not in given:
                by_name = True  # its default is used, so the following ones are passed by name
                continue
            parts.append(f"{own}={param}" if by_name else param)
            used.add(param)
        for own, param in self.keyword:
            if param in given:
                parts.append(f"{own}={param}")
                used.add(param)
        if self.rest:
            own_names = {own for own, _ in self.positional}
            parts.extend(f"{p}={p}" for p in given if p not in used and p not in own_names)
        return ", ".join(parts)


class Implementation:
    """One callable on one hook, with everything that a dispatch needs to know about it."""

    __slots__ = (
        "_location", "arguments", "function", "guard", "is_async", "left_behind", "name",
        "order", "plugin", "seq", "sort_key", "spec", "take", "timeout", "tryfirst", "trylast", "when",
        "when_arguments", "wrapper",
    )  # fmt: skip

    def __init__(
        self,
        spec: HookSpec,
        function: Callable[..., Any],
        options: Options,
        *,
        name: str = "",
        plugin: object = None,
        seq: int = 0,
        index: int = 0,
        wrapper: bool = False,
        location: str = "",
    ) -> None:
        self._location = location
        self.spec = spec
        self.function = function
        self.name = name or callable_name(function)
        self.plugin = plugin
        self.seq = seq
        self.wrapper = wrapper
        self.guard = options.get("guard", False)
        self.tryfirst = options.get("tryfirst", False)
        self.trylast = options.get("trylast", False)
        self.order = options.get("order", 0)
        self.take: Callable[[], bool] | None = None
        """With `once=`: returns whether this is the one time that it may run."""
        self.timeout = options.get("timeout") or spec.timeout
        self.left_behind = 0
        self.is_async = is_async(function)
        self.arguments = arguments_of(spec, function, by_position=plugin is None)
        self.when, self.when_arguments = self._filter(options.get("when"))
        self.place_at(index)
        self._check(options)

    def place_at(self, index: int) -> None:
        """Set its place among those of one registration, and with that in the run order of its hook.

        Wrappers are outside of everything, and guards judge last.
        """
        group = -1 if self.wrapper else 1 if self.guard and self.spec.reducer.guarded else 0
        tried = 0 if self.tryfirst else 2 if self.trylast else 1
        newest = self.tryfirst or (self.spec.order is NEWEST and not self.trylast)
        seq = -self.seq if newest else self.seq
        self.sort_key = (group, tried, self.order, seq, index)

    @property
    def location(self) -> str:
        """Where it is written: `file.py:12`."""
        return self._location or callable_location(self.function)

    @property
    def place(self) -> str:
        """Its name and where it is written, on one line."""
        return " ".join(f"{self.name} ({self.location})".split())

    def is_of(self, function: Callable[..., Any]) -> bool:
        """Return whether this was made from that callable: the same object, or method of one."""
        own = self.function
        if isinstance(own, MethodType) and isinstance(function, MethodType):
            return own.__self__ is function.__self__ and own.__func__ is function.__func__
        return own is function

    def refuse(self, reason: str) -> RegistrationError:
        """Return the error that says why this cannot be attached, and where it is written."""
        return refusal(self.spec, self.function, reason)

    def _filter(self, when: When | None) -> tuple[Callable[..., Any] | None, Arguments]:
        if when is None:
            return None, Arguments()
        if isinstance(when, str | Pattern):
            if self.spec.match is None:
                raise self.refuse("has a pattern in when=, but the hook has no field to match")
            return matcher(when), Arguments(subject=self.spec.match_source)
        if not callable(when):
            raise self.refuse(f"has when={when!r}, which is neither a pattern nor a predicate")
        if is_async(when):
            raise self.refuse("has an async predicate in when=; a predicate must be a plain function")
        return when, arguments_of(self.spec, when, by_position=self.plugin is None)

    def _check(self, options: Options) -> None:
        reducer = self.spec.reducer
        limit = options.get("timeout")
        if limit is not None and not (isinstance(limit, int | float) and limit > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self.refuse(f"has timeout={limit!r}; a time limit is a number of seconds above zero")
        order: Any = self.order
        if isinstance(order, bool) or not isinstance(order, int | float) or order != order:
            raise self.refuse(f"has order={order!r}; an order is a number, and lower runs first")
        if self.tryfirst and self.trylast:
            raise self.refuse("asks for both tryfirst and trylast")
        if self.guard and options.get("once"):
            raise self.refuse("is a guard that goes after one dispatch, which guards nothing")
        if self.guard and not reducer.can_guard(self.spec):
            raise self.refuse(
                f"is a guard, but the reducer `{reducer}` has nothing to deny or withhold; "
                "guards belong on gate, patch and chain, and on `first` where a value denies"
            )
        if self.wrapper:
            self._check_wrapper(options)
        elif reducer.nested and not self._takes("call_next"):
            raise self.refuse("does not take call_next, so it could never call on")

    def _takes(self, parameter: str) -> bool:
        named = (*self.arguments.positional, *self.arguments.keyword)
        return self.arguments.rest or any(param == parameter for _, param in named)

    def _check_wrapper(self, options: Options) -> None:
        if not self.spec.reducer.wrappable or self.spec.errors is DENY:
            raise self.refuse(
                f"is a wrapper, refused on `{self.spec.reducer}` with {self.spec.errors.name}: "
                "a wrapper must not turn a deny into an allow"
            )
        if not inspect.isgeneratorfunction(self.function):
            raise self.refuse("is marked wrapper=True but is not a generator with one plain `yield`")
        for option in ("guard", "timeout"):
            if options.get(option):
                raise self.refuse(f"is a wrapper, which cannot take {option}=")
        self.timeout = None

    def __repr__(self) -> str:
        return f"<Implementation {self.name} of {self.spec.name}>"


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling it is known to return a coroutine."""
    if isinstance(function, FunctionType | MethodType):
        return bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(type(function).__call__)


def callable_name(function: Callable[..., Any]) -> str:
    """Return the name of a callable: its module and qualified name."""
    if isinstance(function, partial):
        return callable_name(function.func)
    qualname = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}.{qualname}"


def callable_location(function: Callable[..., Any]) -> str:
    """Return where a callable is written, as far as this is known."""
    if isinstance(function, partial):
        return callable_location(function.func)
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        code = getattr(type(function).__call__, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else callable_name(function)


def refusal(spec: HookSpec, function: Callable[..., Any], reason: str) -> RegistrationError:
    """Return the error for an implementation that does not fit its hook."""
    return RegistrationError(
        f"{callable_name(function)} on hook {spec.name!r} {reason} ({callable_location(function)})"
    )


def arguments_of(spec: HookSpec, function: Callable[..., Any], *, by_position: bool) -> Arguments:
    """Map the parameters of a callable to those of a hook; an unknown one is an error.

    The first parameter of an event's handler is the event, whatever its name (`by_position`).
    A parameter that the hook does not have and that has a default is ignored, as in pluggy:
    `lambda event, word=word: ...`.
    """
    positional: list[tuple[str, str]] = []
    keyword: list[tuple[str, str]] = []
    required: set[str] = set()
    unknown: list[str] = []
    rest = starred = False
    event_first = by_position and spec.event is not None
    for name, kind, has_default in parameters_of(spec, function):
        if kind is inspect.Parameter.VAR_KEYWORD:
            rest = True
            continue
        if kind is inspect.Parameter.VAR_POSITIONAL:
            if event_first and not positional:
                positional.append((name, "event"))
            starred = True
            continue
        takes_event = event_first and not positional and kind is not inspect.Parameter.KEYWORD_ONLY
        param = "event" if takes_event else name
        if param not in spec.params:
            if not has_default:
                unknown.append(name)
            elif near := suggestion(name, spec.params, cutoff=0.85):
                log.warning(
                    "%s on hook %r never gets %r%s", callable_name(function), spec.name, name, near
                )
            continue
        if not has_default or (kind is inspect.Parameter.POSITIONAL_ONLY and not takes_event):
            required.add(param)  # a positional-only one cannot be left out in the middle
        by_name = kind is inspect.Parameter.KEYWORD_ONLY
        (keyword if by_name else positional).append((name, param))
    if unknown:
        raise refusal(spec, function, unknown_parameters(spec, unknown))
    if starred and not (positional or keyword or rest):
        raise refusal(spec, function, "takes only *args; a hook passes its parameters by name")
    return Arguments(tuple(positional), tuple(keyword), frozenset(required), rest)


def unknown_parameters(spec: HookSpec, unknown: list[str]) -> str:
    """Say which parameters do not exist, which do, and which one was probably meant."""
    wrong = ", ".join(map(repr, unknown))
    have = ", ".join(spec.params) or "none"
    shape = f" ({type_name(spec.event)})" if spec.event else ""
    return f"asks for {wrong}; its parameters are: {have}{shape}{suggestion(unknown[0], spec.params)}"


def parameters_of(spec: HookSpec, function: Callable[..., Any]) -> Iterable[tuple[str, Any, bool]]:
    """Return the name, the kind and whether there is a default, for each parameter."""
    if isinstance(function, FunctionType | MethodType) and not hasattr(function, "__wrapped__"):
        return plain_parameters(function)
    fixed: set[str] = set(getattr(function, "keywords", ()))  # filled in by a partial
    try:
        signature = inspect.signature(cast("Callable[..., Any]", function))
    except (TypeError, ValueError):
        raise refusal(spec, function, "has no signature that can be read; wrap it in a def") from None
    return [
        (p.name, p.kind, p.default is not p.empty)
        for p in signature.parameters.values()
        if p.name not in fixed
    ]


def plain_parameters(function: FunctionType | MethodType) -> list[tuple[str, Any, bool]]:
    """Do the same for a def from its code: `inspect.signature` costs twenty times as much."""
    code = function.__code__
    by_name: dict[str, Any] = getattr(function, "__kwdefaults__", None) or {}
    names, count = code.co_varnames, code.co_argcount
    end = count + code.co_kwonlyargcount
    required = count - len(function.__defaults__ or ())
    found: list[tuple[str, Any, bool]] = [
        (name, _ONLY if number < code.co_posonlyargcount else _PLAIN, number >= required)
        for number, name in enumerate(names[:count])
    ]
    if isinstance(function, MethodType):
        del found[:1]
    if len(names) > count:  # what follows, and the function's own variables
        found += [(name, _BY_NAME, name in by_name) for name in names[count:end]]
        if code.co_flags & inspect.CO_VARARGS:
            found.append((names[end], inspect.Parameter.VAR_POSITIONAL, False))
            end += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            found.append((names[end], inspect.Parameter.VAR_KEYWORD, False))
    return found


def matcher(pattern: str | Pattern[str]) -> Callable[[Any], Any]:
    """Return a predicate on one value: a glob, alternatives with `|`, or a regular expression."""
    if isinstance(pattern, str):
        from hookline.text.patterns import Glob

        globs = [Glob(part) for part in pattern.split("|")]
        return lambda value: any(glob.matches(str(value)) for glob in globs)
    return lambda value: pattern.fullmatch(value if isinstance(value, str) else str(value))


def is_awaitable(value: Any) -> TypeGuard[Awaitable[Any]]:
    """Return whether a value must be awaited to become a result."""
    return type(value) is CoroutineType or isinstance(value, Awaitable)  # the first is quicker


async def awaited(value: Any) -> Any:
    """Return the value, awaited if it must be."""
    return await value if is_awaitable(value) else value


def discard(value: Any) -> None:
    """Close a coroutine that will not run, so that Python does not warn about it."""
    close = getattr(value, "close", None)
    if close is not None:
        close()


def awaitable(fire: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a synchronous function as one that is awaited."""

    async def call(*args: Any) -> Any:
        return fire(*args)

    return call


def finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never has to wait, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    except RuntimeError as error:
        if isinstance(error.__cause__, StopIteration):  # which a coroutine cannot raise itself
            raise error.__cause__ from None
        raise
    raise AssertionError("a synchronous dispatch waited for something")
