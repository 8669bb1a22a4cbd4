"""The host: what Hookline can do of the specification, and the emitter that judges for it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookline.agent.segments import Streaming
from hookline.hooks.errors import error_text

from .errors import InterceptorError
from .settings import FACTORY, RESOLVER, AgentHooksSettings

if TYPE_CHECKING:
    from agent_hooks import HostRegistry, HostSurface, InterceptionEmitter, Interceptor

    from hookline.runtime.app import Hookline

    from .plugin import AgentHooks

CAPABILITIES = (
    "bigint_json",
    "host_declaration",
    "int64_json",
    "model_calls",
    "multi_turn",
    "parallel_tool_calls",
    "streaming",
    "tool_calls",
)
BOUND = "none: a segment is released on the verdict that covers it, and not before"
"""How much of an answer can go out ahead of its verdict."""


def load(app: Hookline) -> AgentHooks:
    """Attach the interceptors that the settings name."""
    emitter = configured(app, app.config.settings("agent_hooks", AgentHooksSettings))
    from .plugin import AgentHooks

    plugin = AgentHooks(app, emitter)
    app.plugins.add("agent_hooks", plugin)
    return plugin


def configured(app: Hookline, settings: AgentHooksSettings) -> InterceptionEmitter:
    """The emitter that the settings describe."""
    try:
        from agent_hooks import DeclarationError, HostDeclaration, InterceptionEmitter
    except ImportError:
        raise InterceptorError(
            "[agent_hooks] of the settings needs agent-hooks-sdk: pip install 'hookline[agent-hooks]'"
        ) from None
    from .approval import ApprovalDoor

    streaming = app.limits.streaming
    host = registry(surface(streaming)).approval_resolver(RESOLVER, cast("Any", ApprovalDoor(app)))
    try:
        if settings.declaration is None:
            emitter = InterceptionEmitter.from_declaration_value(settings.document(), host)
        else:
            path = app.home / Path(settings.declaration).expanduser()
            emitter = InterceptionEmitter.from_declaration(HostDeclaration.from_path(path), host)
    except DeclarationError as error:
        where = settings.declaration or "[agent_hooks]"
        raise InterceptorError(f"the interceptors of {where} cannot be used: {error}") from None
    declared = emitter.declaration
    if streaming.segment and declared is not None and declared.surface["buffered_output"]:
        raise InterceptorError(
            f"{settings.declaration} declares buffered output, and [streaming] shows answers by "
            "segments; take one of them out"
        )
    return emitter


def surface(streaming: Streaming) -> HostSurface:
    """What this host does: answers are buffered whole, or released by segments."""
    from agent_hooks import HostSurface

    if not streaming.segment:
        return HostSurface.from_capabilities(CAPABILITIES)
    found = HostSurface.from_capabilities([*CAPABILITIES, "incremental_output"])
    return found.with_exposure_bound(BOUND)


def registry(surface: HostSurface) -> HostRegistry:
    """The names that a host declaration may use."""
    from agent_hooks import HostRegistry

    return HostRegistry(surface).kind(FACTORY, from_factory)


def from_factory(config: Any, binding: Any) -> Interceptor:
    """The interceptor of a binding: what its factory gives for the options of the binding."""
    given = cast("dict[str, Any]", config) if isinstance(config, dict) else {}
    name, options = given.get("factory"), given.get("options", {})
    if (
        not isinstance(name, str)
        or not isinstance(options, dict)
        or set(given) - {"factory", "options"}
    ):
        raise InterceptorError('its config is {"factory": "module:function", "options": {…}}')
    return factory(name)(**cast("dict[str, Any]", options))


def factory(name: str) -> Callable[..., Any]:
    """Import the function behind a name such as `my_policies:egress`."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InterceptorError(f"{name!r} names no factory; write module:function")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:
        raise InterceptorError(f"{name} cannot be imported: {error_text(error)}") from error
    if not callable(found):
        raise InterceptorError(f"{name} is no function that makes an interceptor")
    return found
