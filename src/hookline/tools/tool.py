"""`@tool`: a typed function that a model may call.

    from hookline import tool

    @tool(side_effects="read")
    def weather(city: str, days: int = 1) -> str:
        '''Tell the weather.

        city: where
        days: how many days ahead
        '''

The function is called by the runner and by nobody else, so that no call goes around the gates.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from typing import Any, NoReturn, overload

from pydantic import ValidationError

from hookline.errors import ToolArgumentError, ToolError
from hookline.hooks.errors import DeclarationError
from hookline.specs import ReplayPolicy, SideEffects, ToolSpec

from .context import ToolContext, nobody_watches
from .invoke import invoke, runs_on_the_loop
from .rawschema import RawSignature
from .registry import REGISTRY, Registry
from .signature import Signature
from .threads import in_thread

Function = Callable[..., Any]
Preview = Callable[[Mapping[str, Any], ToolContext], str]
"""Describes the change of a call as a unified diff, and changes nothing."""
PREVIEW_SECONDS = 10.0


class Tool:
    """A tool: its spec, how its arguments are checked, and the function that only a runner calls."""

    __slots__ = (
        "__weakref__", "_function", "_on_loop", "_preview", "_signature", "module", "name", "place",
        "spec", "timeout",
    )  # fmt: skip

    def __init__(
        self,
        spec: ToolSpec,
        function: Function | None,
        signature: Signature | None = None,
        *,
        timeout: float | None = None,
        place: str | None = None,
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise DeclarationError(
                f"the tool {spec.qualified_name!r} needs a timeout above 0, not {timeout!r}"
            )
        self.spec = spec
        self.name = spec.qualified_name
        self.timeout = timeout
        """Seconds that a call may take; None leaves it to the runner."""
        self.module = "" if function is None else str(getattr(_target(function), "__module__", ""))
        """Where its function is defined."""
        self.place = place or (_place(function) if function else "a spec")
        self._function = function
        self._on_loop = function is not None and runs_on_the_loop(function)
        self._signature = signature or RawSignature(spec.input_schema, function)
        self._preview: Preview | None = None

    @classmethod
    def from_spec(
        cls, spec: ToolSpec, function: Function | None = None, *, timeout: float | None = None
    ) -> Tool:
        """A tool from a spec, its arguments checked against the spec's own JSON Schema.

        The function gets the arguments by name, as they came, and the context in a parameter
        annotated `ToolContext`. Without a function the tool is listed, and a call is an error.
        """
        return cls(spec, function, timeout=timeout)

    @property
    def description(self) -> str:
        """Its description for the model."""
        return self.spec.description

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self.spec.input_schema

    def is_of(self, function: Function) -> bool:
        """Return whether this is the function that it calls."""
        return self._function is function

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values that the function takes, from the JSON values of a call.

        Raises `ToolArgumentError` with a line for each wrong field.
        """
        values = self._signature.values(arguments)
        if isinstance(values, dict):
            return values
        raise ToolArgumentError(self.name, values)

    def preview(self, function: Preview) -> Preview:
        """Register a function that previews a call's changes, for the person who approves it."""
        self._preview = function
        return function

    async def preview_of(self, values: Mapping[str, Any], context: ToolContext) -> str | None:
        """Say what a call with these values would change; None if the tool cannot say.

        Raises `ToolError` if the preview does: the call would fail as well, and the model is told why
        without anyone's approval, so the text must not quote what the model may not read. The preview
        runs before anyone agreed to the call, so it gets nothing to write to: no app, no tape, and a
        copy of the state.
        """
        if self._preview is None:
            return None
        from asyncio import timeout

        bare = replace(
            context, app=None, tape=None, report=nobody_watches, state=copied_state(context.state)
        )
        preview = self._preview
        limit = timeout(PREVIEW_SECONDS)
        try:
            async with limit:
                found = await in_thread(lambda: preview(values, bare))
                return None if found is None else str(found)
        except ToolError:
            raise
        except (Exception, SystemExit) as error:  # a fault of the preview, not of the call
            if limit.expired():
                return f"[the preview did not finish within {PREVIEW_SECONDS:g} s]"
            return f"[there is no preview: {error}]"

    async def _invoke(
        self, arguments: Mapping[str, Any], context: ToolContext, report: Callable[[Any], None]
    ) -> Any:
        """Call the function with what `validate` gave. The runner does this, and nothing else may.

        Reports come from the thread that the function runs in.
        """
        if self._function is None:
            raise ToolError(
                f"the tool {self.name!r} has nothing to call: it was registered as a spec only"
            )
        args, kwargs = self._signature.bind(arguments, context)
        return await invoke(self.name, self._function, args, kwargs, report, on_loop=self._on_loop)

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse."""
        raise TypeError(
            f"the tool {self.name!r} cannot be called directly: tools run through the runner, so that "
            "no call goes around its gates; for use in code keep what it does in a function of its own"
        )

    def __repr__(self) -> str:
        return f"<Tool {self.name} from {self.place}>"


def copied_state(state: dict[str, Any]) -> dict[str, Any]:
    """A copy of what tools remember, without the values that cannot be copied."""
    found: dict[str, Any] = {}
    for key, value in state.items():
        with suppress(Exception):
            found[key] = deepcopy(value)
    return found


@overload
def tool(function: Function, /, **options: Any) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    namespace: str = "",
    version: str = "0.0.0",
    description: str | None = None,
    side_effects: SideEffects | str = SideEffects.external,
    permissions: Iterable[str] = (),
    idempotency_key: str | None = None,
    cost_estimate: Decimal | int | str | None = None,
    examples: Iterable[Any] = (),
    tags: Iterable[str] = (),
    deprecated: bool | str = False,
    timeout: float | None = None,
    replay_policy: ReplayPolicy | str = ReplayPolicy.recorded_result,
    registry: Registry | None = REGISTRY,
) -> Callable[[Function], Tool]: ...


def tool(function: Function | None = None, /, **options: Any) -> Any:
    """Make a tool of a function, bare or with options, and register it.

    An app has the tools of the plugins that it loads, and what it is given: `app.tools.add(weather)`.

    The function may be sync, async, or a generator of either kind: what it yields is progress,
    and the last of it the result, unless it returns or yields a `Result`. Name, description and
    parameters come from the function, its docstring and its types. `registry=None` leaves it
    unregistered, and so does a call with options: `tool(function, name="weather")` gives a tool to
    hand on.
    """
    names = sys._getframe(1).f_locals  # pyright: ignore[reportPrivateUsage]  # classes of a function
    if function is not None:
        # With options this is a call, not a decorator: the caller keeps the tool.
        return _declare(function, names, **({"registry": None, **options} if options else {}))

    def declare(function: Function) -> Tool:
        return _declare(function, names, **options)

    return declare


def _declare(
    function: Function,
    names: Mapping[str, Any],
    *,
    name: str | None = None,
    description: str | None = None,
    registry: Registry | None = REGISTRY,
    timeout: float | None = None,
    **fields: Any,
) -> Tool:
    if not callable(function):
        raise DeclarationError(f"@tool needs a function, not {function!r}")
    if isinstance(function, Tool):
        raise DeclarationError(f"{function.name!r} is a tool already")
    name = name or _name(function)
    signature = Signature(function, name, names)
    for option in ("permissions", "examples", "tags"):
        if option in fields:
            fields[option] = list(fields[option])
    try:
        spec = ToolSpec(
            name=name,
            description=signature.description if description is None else description,
            input_schema=signature.schema,
            output_schema=signature.output_schema,
            **fields,
        )
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise DeclarationError(f"the tool {name!r} is not declared well: {wrong}") from error
    made = Tool(spec, function, signature, timeout=timeout)
    return made if registry is None else registry.add(made)


def _name(function: Function) -> str:
    while hasattr(function, "func"):  # a partial
        function = function.func  # pyright: ignore[reportFunctionMemberAccess]
    return getattr(function, "__name__", type(function).__name__)


def _target(function: Function) -> Function:
    while hasattr(function, "func"):
        function = function.func  # pyright: ignore[reportFunctionMemberAccess]
    return inspect.unwrap(function)


def _place(function: Function) -> str:
    target = _target(function)
    module = getattr(target, "__module__", "?")
    name = getattr(target, "__qualname__", type(target).__qualname__)
    code = getattr(target, "__code__", None)
    return f"{module}.{name} ({code.co_filename}:{code.co_firstlineno})" if code else f"{module}.{name}"
