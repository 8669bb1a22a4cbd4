"""Check the arguments of an `Agent`: tools, handlers, plugins, a policy."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args, get_type_hints
from weakref import WeakValueDictionary

from hookline.errors import AgentUsage, DuplicateTool
from hookline.hooks.errors import suggestion

if TYPE_CHECKING:
    from hookline.agent.output import OutputForm
    from hookline.hookspecs import Hooks
    from hookline.policy import Policy
    from hookline.tools.tool import Tool


_MADE: WeakValueDictionary[int, Tool] = WeakValueDictionary()
"""The tools made of functions, by the id of the function. Agents with one function share its schema."""


def read_tools(given: Iterable[Any]) -> list[Tool]:
    """Functions, tools and agents as tools."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise AgentUsage(f"tools= takes a list of functions, not {type(given).__name__}")
    tools: dict[str, Tool] = {}
    for each in given:
        tool = read_tool(each)
        other = tools.setdefault(tool.name, tool)
        if other is not tool:
            raise DuplicateTool(
                f"two tools are named {tool.name!r}: {other.place} and {tool.place}; rename one, "
                "or pass tool(function, name='another_name')"
            )
    return [*tools.values()]


def read_tool(given: Any) -> Tool:
    """A function, a tool or an agent as a tool."""
    from hookline.tools.tool import Tool, tool

    if isinstance(given, Tool):
        return given
    if hasattr(given, "as_tool"):
        return given.as_tool()
    check_function(given, "a tool")
    made = _MADE.get(id(given))
    if made is not None and made.is_of(given):
        return made
    name = getattr(given, "__name__", type(given).__name__)
    for parameter in inspect.signature(given).parameters.values():
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls"):
            raise AgentUsage(
                f"the tool {name!r} has a parameter without a type, {parameter.name!r}: the model must "
                f"know what to pass; write `{parameter.name}: str`, or the type that it has"
            )
    made = _MADE[id(given)] = tool(given, registry=None)
    return made


def check_function(given: Any, what: str) -> None:
    """Refuse what cannot be called, with the likeliest reason."""
    if inspect.iscoroutine(given):
        given.close()
        name = given.__name__
        raise AgentUsage(f"{what} is a function, not a coroutine: pass `{name}`, not `{name}(...)`")
    if not callable(given) or isinstance(given, type):
        raise AgentUsage(f"{what} is a function, not {given!r}")


def register_handlers(hooks: Hooks, given: Iterable[Any]) -> None:
    """Attach functions to the events that their first parameters are annotated with."""
    for each in given:
        if isinstance(each, tuple):
            hook, handler = cast("tuple[Any, Any]", each)
        else:
            check_function(each, "a handler in hooks=")
            hook, handler = event_of(each), each
        hooks.register(hook, handler)


def event_of(handler: Any) -> Any:
    """The event that a handler is for."""
    from hookline.hooks import Event

    name = getattr(handler, "__qualname__", repr(handler))
    target = handler if inspect.isroutine(handler) else type(handler).__call__
    try:
        hints = list(get_type_hints(target).items())
    except NameError as error:
        raise AgentUsage(
            f"hooks= cannot tell which event {name} handles: its annotations name {error.name!r}, "
            "which does not exist there; hookline.events has every event"
        ) from None
    hint = hints[0][1] if hints and hints[0][0] != "return" else None
    choices: tuple[Any, ...] = (hint, *get_args(hint))
    found: list[Any] = [e for e in choices if isinstance(e, type) and issubclass(e, Event)]
    if not found:
        raise AgentUsage(
            f"hooks= cannot tell which event {name} handles: annotate its first parameter, as in "
            f"`def {getattr(handler, '__name__', 'handler')}(event: ToolCallEvent)`, or use "
            "`@agent.on.tool_call`"
        )
    return found[0]


def hook_plugins(given: Iterable[object]) -> tuple[object, ...]:
    """The plugins, as a tuple; a name is refused, since nothing is loaded from elsewhere."""
    plugins = tuple(given)
    for plugin in plugins:
        if isinstance(plugin, str | type):
            shown = plugin if isinstance(plugin, str) else plugin.__name__
            raise AgentUsage(
                f"plugins= takes plugin objects, not {shown!r}; Agent.from_home() loads installed ones"
            )
    return plugins


def output_form(kind: Any) -> OutputForm[Any] | None:
    """The form of the answers of an agent; None for text."""
    if kind is str:
        return None
    from hookline.agent.output import OutputForm

    return OutputForm(kind)


PolicyDefault: TypeAlias = Literal["allow", "auto", "ask", "deny"]
DEFAULTS: Final[tuple[str, ...]] = get_args(PolicyDefault)
CONFIGURED: Final = "configured"
"""In place of a model, in an agent with a home: what the settings say."""


def check_model(model: Any) -> Any:
    """Refuse a value that is neither a model nor the name of one."""
    if isinstance(model, str) and model.strip():
        return model
    if isinstance(model, str | type) or not callable(getattr(model, "stream", None)):
        raise AgentUsage(
            f"an agent needs a model: a name such as 'openai:gpt-5' or 'local', or a model object, "
            f"not {model!r}"
        )
    return model


def plain_policy(given: Policy | PolicyDefault | Mapping[str, Any] | None) -> Policy:
    """The policy of an agent: by default every tool that it was given may be called."""
    from hookline.policy import Policy

    if isinstance(given, Policy):
        return given
    if given is None or isinstance(given, str):
        default: Any = given or "allow"
        if default not in DEFAULTS:
            raise AgentUsage(
                f"policy= is one of {', '.join(DEFAULTS)}, or a Policy, not {default!r}"
                f"{suggestion(default, DEFAULTS)}"
            )
        return Policy(default=default)
    return Policy.load(given)
