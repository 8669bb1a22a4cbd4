"""Plugins: pluggy's public interface, with stricter validation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import pluggy

from .errors import RegistrationError, UnknownHook
from .implementation import Implementation, Options, When, callable_location
from .spec import SPEC, Answer, EventClass, HookSpec
from .verdict import same

if TYPE_CHECKING:
    from .hook import HookCaller
    from .registry import HookRegistry

F = TypeVar("F", bound=Callable[..., Any])
E = TypeVar("E")
R = TypeVar("R")
P = ParamSpec("P")
E_co = TypeVar("E_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)

PROJECT = "hookline"
MARK = f"{PROJECT}_impl"
MARKABLE = (FunctionType, MethodType, staticmethod, classmethod, MemberDescriptorType)
"""What can be marked, or is a slot that can hold it."""
_mark = pluggy.HookimplMarker(PROJECT)
_namespace = type.__dict__["__dict__"].__get__


class MarkOptions(TypedDict, total=False):
    """The options of `@hookimpl`; `Options` documents the last four."""

    specname: str | None
    """The name of the hook, where the method has another."""
    tryfirst: bool
    trylast: bool
    wrapper: bool
    """It is a generator around the whole dispatch."""
    optionalhook: bool
    """It is not an error if no such hook is declared."""
    order: float
    guard: bool
    timeout: float | None
    when: When | None


class Marker(Protocol[E_co, R_contra]):
    """The decorator that `hookimpl(SomeEvent)` returns: for a function or a method of that event."""

    def __call__(
        self,
        function: Callable[Concatenate[E_co, P], Answer[R_contra]]
        | Callable[Concatenate[Any, E_co, P], Answer[R_contra]],
        /,
    ) -> Callable[..., Any]:
        """Mark it."""
        ...


@overload
def hookimpl(event: EventClass[E, R], /, **options: Unpack[MarkOptions]) -> Marker[E, R]: ...
@overload
def hookimpl(function: F, /) -> F: ...
@overload
def hookimpl(**options: Unpack[MarkOptions]) -> Callable[[F], F]: ...
def hookimpl(hook: Any = None, /, **options: Unpack[MarkOptions]) -> Any:
    """Mark a plugin's method or a module's function as the implementation of a hook.

    The hook is the one of the same name. `@hookimpl(ToolCallEvent)` names the event instead: the method
    may have any name, and a type checker knows what it takes and returns.
    """
    if isinstance(hook, type):
        spec = getattr(hook, SPEC, None)
        if not isinstance(spec, HookSpec):
            raise TypeError(f"hookimpl() takes an event or a function, and {hook.__name__} is neither")
        return hookimpl(**{**options, "specname": spec.name})
    for option in set(options).difference(MarkOptions.__annotations__):
        raise TypeError(f"hookimpl() has no option {option!r}")
    ours = {name: value for name, value in options.items() if name in Options.__annotations__}
    theirs: dict[str, Any] = {n: v for n, v in options.items() if n not in ours or n.startswith("try")}

    def mark(function: F) -> F:
        marked = _mark(function, **theirs)
        getattr(marked, MARK)["options"] = ours
        return marked

    return mark if hook is None else mark(hook)


class PluginManager(pluggy.PluginManager):
    """pluggy's manager, which tells the kernel about every change.

    `pm.hook.name(...)` stays pluggy's own call: newest first, plugins only, nothing awaited.
    """

    def __init__(self, hooks: HookRegistry) -> None:
        super().__init__(PROJECT)
        self._hooks = hooks

    def register(self, plugin: object, name: str | None = None) -> str | None:
        """Check and register a plugin and return its name; None if the name is blocked."""
        with self._hooks.lock:
            name = name or self.get_canonical_name(plugin)
            if self.is_blocked(name):
                return None
            self._refuse_twice(plugin, name)
            found = self._implementations(plugin, name)
            registered = super().register(plugin, name)
            self._hooks.attach(found)
            self._hooks.own(partial(self._withdraw, name))
            return registered

    def _withdraw(self, name: str) -> None:
        if self.has_plugin(name):
            self.unregister(name=name)

    def unregister(self, plugin: object | None = None, name: str | None = None) -> Any | None:
        """Remove a plugin and everything it implements."""
        with self._hooks.lock:
            removed = super().unregister(plugin, name)
            if removed is not None:
                self._hooks.detach(lambda impl: impl.plugin is not removed)
            return removed

    def get_canonical_name(self, plugin: object) -> str:
        """Return a module's name, or the name of an object's class."""
        return getattr(plugin, "__name__", None) or type(plugin).__name__

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        """Return the options of a marked attribute, or None.

        Few attributes are marked, and pluggy's own search is slow: most are ruled out before it.
        """
        try:
            found = object.__getattribute__(plugin, "__dict__")[name]
        except (AttributeError, KeyError):
            for base in type(plugin).__mro__:
                if name in (space := _namespace(base)):
                    found = space[name]
                    break
            else:
                return super().parse_hookimpl_opts(plugin, name)
        if type(found) is FunctionType:
            if MARK not in found.__dict__:
                return None
        elif not isinstance(found, MARKABLE):
            return None
        return super().parse_hookimpl_opts(plugin, name)

    def add_hookspecs(self, module_or_class: Any) -> None:
        """Declare further hooks."""
        self._hooks.declare(module_or_class)

    def subset_hook_caller(self, name: str, remove_plugins: Iterable[object]) -> HookCaller:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a caller that leaves out these plugins; awaitable on async hooks."""
        return self._hooks[name].without(remove_plugins)

    def declare_to_pluggy(self, specs: Iterable[HookSpec]) -> None:
        """Declare hooks to pluggy, so that `pm.hook` has them."""
        super().add_hookspecs(_declared(tuple(specs)))

    @property
    def kernel(self) -> HookRegistry:
        """The `HookRegistry` that these plugins belong to."""
        return self._hooks

    def forget(self, name: str) -> None:
        """Remove a hook from pluggy."""
        self.hook.__dict__.pop(name, None)

    def optional_implementations(self, name: str) -> Iterator[Implementation]:
        """Yield what registered plugins implement of a hook that was declared after them."""
        for plugin_name, plugin in self.list_name_plugin():
            if plugin is not None:
                found = self._implementations(plugin, plugin_name)
                yield from (impl for impl in found if impl.spec.name == name)

    def _refuse_twice(self, plugin: object, name: str) -> None:
        if self.has_plugin(name):
            if self.get_plugin(name) is plugin:
                raise RegistrationError(f"plugin {name!r} is registered already")
            raise RegistrationError(
                f"another plugin is registered as {name!r}; pass name= to tell them apart"
            )
        for other_name, other in self.list_name_plugin():
            if other is plugin:
                raise RegistrationError(f"plugin {name!r} is registered already, as {other_name!r}")
            if other is not None and same(other, plugin):  # pluggy tells plugins apart by equality
                raise RegistrationError(
                    f"plugin {name!r} equals plugin {other_name!r}, so the two cannot be told apart; "
                    "compare them by identity: @dataclass(eq=False)"
                )

    def _implementations(self, plugin: object, name: str) -> list[Implementation]:
        """Return every implementation of a plugin, checked; nothing is registered yet."""
        if inspect.isclass(plugin):
            raise RegistrationError(
                f"plugin {name!r} is a class, not an instance; register {plugin.__name__}() instead"
            )
        seq = self._hooks.next_seq()
        found: list[Implementation] = []
        optional = False
        for attribute in dir(plugin):
            options = cast("dict[str, Any] | None", self.parse_hookimpl_opts(plugin, attribute))
            if options is None:
                self._refuse_unmarked(plugin, name, attribute)
                continue
            optional = optional or bool(options.get("optionalhook"))
            impl = self._implementation(plugin, name, attribute, options, seq, len(found))
            found += [impl] if impl else []
        if not found and not optional:
            raise RegistrationError(
                f"plugin {name!r} implements no hook; mark its methods with @hookimpl"
            )
        self._refuse_exclusive(name, found)
        return found

    def _implementation(
        self, plugin: object, name: str, attribute: str, options: dict[str, Any], seq: int, index: int
    ) -> Implementation | None:
        function = getattr(plugin, attribute)
        hook_name = options.get("specname") or attribute
        spec = self._hooks.catalog.get(hook_name)
        if spec is None:
            if options.get("optionalhook"):
                return None
            unknown = UnknownHook(hook_name, self._hooks.catalog)
            raise RegistrationError(f"plugin {name!r}: {unknown} ({callable_location(function)})")
        if options.get("hookwrapper"):
            raise RegistrationError(
                f"plugin {name!r} uses the old hookwrapper=True on {hook_name!r}; use wrapper=True "
                f"and return the value ({callable_location(function)})"
            )
        own = Options(**options.get("options", {}))
        own["tryfirst"], own["trylast"] = bool(options.get("tryfirst")), bool(options.get("trylast"))
        return Implementation(
            spec,
            function,
            own,
            name=name,
            plugin=plugin,
            seq=seq,
            index=index,
            wrapper=bool(options.get("wrapper")),
        )

    def _refuse_unmarked(self, plugin: object, name: str, attribute: str) -> None:
        if attribute not in self._hooks.catalog:
            return
        static: Any = inspect.getattr_static(plugin, attribute, None)
        function: Any = getattr(static, "__func__", static)
        if not isinstance(function, FunctionType | MethodType) or hasattr(function, SPEC):
            return
        if isinstance(plugin, ModuleType) and function.__module__ != plugin.__name__:
            return  # a helper that the module imported
        raise RegistrationError(
            f"plugin {name!r} has {attribute!r}, named like a hook but not marked: add @hookimpl, "
            f"or rename it ({callable_location(function)})"
        )

    def _refuse_exclusive(self, name: str, found: list[Implementation]) -> None:
        present = {impl.spec.name for impl in found}
        for impl in found:
            for other in present.intersection(impl.spec.excludes):
                raise RegistrationError(
                    f"plugin {name!r} implements both {other!r} and {impl.spec.name!r}; keep one"
                )


@lru_cache(maxsize=16)
def _declared(specs: tuple[HookSpec, ...]) -> type:
    """Return the class that declares hooks to pluggy; registries with the same hooks share it."""
    functions: dict[str, Any] = {}
    marker = pluggy.HookspecMarker(PROJECT)
    for spec in specs:
        template = spec.function or _event_template
        copied = FunctionType(template.__code__, {}, template.__name__, template.__defaults__)
        functions[spec.name] = marker(copied, firstresult=spec.firstresult)
    return type("Declared", (), functions)


def _event_template(event: Any, ctx: Any) -> Any:
    """The signature of every event's hook, for pluggy."""
