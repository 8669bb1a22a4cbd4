"""`Bridge`: the hooks of Hookline around an agent that another framework runs.

    bridge = Bridge([no_sudo], host="my framework")
    run = await bridge.start("Tidy up.")                      # `input`, `before_agent_start`, …
    call = await run.admit("shell", {"command": "rm -r tmp"})  # every gate of a tool call
    if call.refusal is None:
        result = await run.finish(call, my_shell(call.arguments))
    text = await run.end("Done.")                             # `output`, `agent_end`, …

The host keeps its own loop, model and tools. The stages, gates, policy, approvals and tape are those of
every Hookline app: a run of a bridge is a turn whose answer comes from the host.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from functools import cached_property
from os import urandom
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.channel import NOWHERE, Channel
from hookline.errors import Blocked, BridgeError
from hookline.runtime.agent_loops import LoopScope, background
from hookline.runtime.agent_parts import plain_policy

from .host import BridgePlugin, HostRuntime, host_parts
from .limits import UNREPORTED, check_versions
from .run import BridgeRun

if TYPE_CHECKING:
    from hookline.hooks.implementation import Implementation
    from hookline.hookspecs import Hooks
    from hookline.policy import Policy
    from hookline.runtime.agent_app import AgentParts
    from hookline.runtime.agent_parts import PolicyDefault
    from hookline.tape import TapeStore

log = logging.getLogger("hookline.bridges")


class Bridge:
    """Hookline's hooks for the agents of one host."""

    def __init__(
        self,
        hooks: Hooks | Iterable[Any] = (),
        *,
        host: str,
        plugins: Iterable[object] = (),
        policy: PolicyDefault | Policy | Mapping[str, Any] | None = None,
        tape: TapeStore | None = None,
        home: str | Path | None = None,
        name: str = "",
        channel: Channel = NOWHERE,
        carried: Iterable[str] = (),
        unreachable: Mapping[str, str] | None = None,
        partial: bool = False,
        tested: Mapping[str, tuple[str, str]] | None = None,
        any_version: bool = False,
    ) -> None:
        """Make a bridge.

        `hooks` is a `Hooks`, or handlers whose first parameter is annotated with an event. `plugins`
        are objects or modules with `@hookimpl` functions. `channel` is where questions are asked.
        With a `home`, its settings and plugins hold as well (policy, redaction, audit, trace), and its
        tape records the host's conversations: `hookline why` and the inspector show them.

        A handler of a hook that the host cannot carry is refused unless `partial` is set: besides the
        hooks that no bridge reports, those are `unreachable`, each with the reason. `carried` are hooks
        that this host does report. `tested` has the versions of the host's packages that the bridge was
        tested with, from one up to another; other versions are refused unless `any_version` is set.
        """
        from hookline.hookspecs import Hooks as ShippedHooks
        from hookline.runtime.agent_parts import hook_plugins, register_handlers

        if not any_version:
            check_versions(host, tested or {})
        self.host, self.name, self.channel = host, name or host, channel
        self._reported: set[str] = set()
        self.hooks = ShippedHooks(on_gate_error="deny")
        self._given = hooks if isinstance(hooks, ShippedHooks) else None
        self._attached: dict[int, Implementation] = {}
        if isinstance(hooks, ShippedHooks):
            self._attach_given()
        else:
            register_handlers(self.hooks, hooks)
        self._plugins = hook_plugins(plugins)
        for plugin in self._plugins:
            self.hooks.add(plugin)
        self._policy: PolicyDefault | Policy | Mapping[str, Any] | None = policy
        if tape is not None and home is not None:
            raise BridgeError("a bridge has a tape or a home, which has its own tape; pass one of them")
        self._tape = tape
        self._kept_in = None if home is None else Path(home).expanduser()
        self._scopes: dict[asyncio.AbstractEventLoop, LoopScope] = {}
        if not partial:
            left_out = {name: why for name, why in UNREPORTED.items() if name not in {*carried}}
            self._refuse_unreachable({**left_out, **(unreachable or {})})

    def _attach_given(self) -> None:
        """Take over the handlers of the given `Hooks`, which others may use and change as well."""
        if self._given is None:
            return
        given = self._given
        used = [given[name] for name in given.catalog if given[name].count()]
        found = {id(impl): impl for hook in used for impl in hook.run_order()}
        if found.keys() == self._attached.keys():
            return
        gone = self._attached.keys() - found.keys()
        self.hooks.detach(lambda impl: id(impl) not in gone)
        self.hooks.attach(impl for key, impl in found.items() if key not in self._attached)
        self._attached = found

    def _refuse_unreachable(self, unreachable: Mapping[str, str]) -> None:
        """A handler that would never run must not look as if it guarded something."""
        used = [name for name in unreachable if self.hooks[name].count()]
        if used:
            why = "; ".join(f"{name}: {unreachable[name]}" for name in used)
            raise BridgeError(
                f"{self.host} cannot carry these hooks, which have handlers: {why}. "
                "Remove the handlers, or pass partial=True to run without them"
            )

    def out_of_reach(self, tool: str, where: str) -> None:
        """Report, once, a tool that runs where no hook sees its calls."""
        if tool not in self._reported:
            self._reported.add(tool)
            log.warning(
                "bridge.unreachable tool=%s: it runs %s, where no hook sees its calls", tool, where
            )

    async def start(
        self,
        prompt: str = "",
        *,
        session: str | None = None,
        system: str = "",
        user: str = "",
        channel: Channel | None = None,
    ) -> BridgeRun:
        """Begin a run. Raises `Blocked` if a handler of `input` blocks the prompt."""
        begun = self._start(prompt, session, system, user, channel or self.channel)
        if self._kept_in is None or background().loop is asyncio.get_running_loop():
            return await begun
        # A home has one app, which has one event loop, whichever loops the host runs its agents in.
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(begun, background().loop))

    async def _start(
        self, prompt: str, session: str | None, system: str, user: str, channel: Channel
    ) -> BridgeRun:
        self._attach_given()
        app = await self._app()
        name = session or f"{self.host}-{urandom(8).hex()}"
        run = BridgeRun(app, name)
        run.system = system
        message: dict[str, Any] = {"content": prompt, "channel": self.host, "chat_id": name}
        if user:
            message["sender_id"] = user
        if not await run.begin(app.process(message, channel, session_id=name)):
            raise Blocked("the prompt", (await run.turn).stopped, None)
        return run

    async def resume(self, session: str, *, channel: Channel | None = None) -> BridgeRun | None:
        """Continue a run that another process began and parked; None if there is none."""
        self._attach_given()
        app = await self._app()
        run = BridgeRun(app, session)
        return run if await run.begin(app.resume(session, channel or self.channel)) else None

    def start_sync(
        self, prompt: str = "", *, session: str | None = None, system: str = "", user: str = ""
    ) -> BridgeRun:
        """Begin a run from synchronous code."""
        return background().call(self.start(prompt, session=session, system=system, user=user))

    async def close(self) -> None:
        """Close the tape and the sessions of all runs."""
        for scope in [*self._scopes.values()]:
            await scope.close()

    @cached_property
    def _parts(self) -> AgentParts:
        from hookline.runtime.agent_setup import add_budgets
        from hookline.tape.memory import MemoryTapeStore

        if self._kept_in is not None:
            parts = host_parts(self.name, self.host, self.hooks, None, None)
            app = self._home_app(parts, self._kept_in)
            parts.make = lambda _: app
            return parts
        store = MemoryTapeStore() if self._tape is None else self._tape
        parts = host_parts(self.name, self.host, self.hooks, plain_policy(self._policy), store)
        self.hooks.add(BridgePlugin(parts), name="builtin")
        add_budgets(parts)
        return parts

    def _home_app(self, parts: AgentParts, home: Path) -> HostRuntime:
        from .hosts.home import HomeBridgeApp

        app = HomeBridgeApp(parts, home, None)
        if self._policy is not None:
            app.policy = plain_policy(self._policy)
        return app

    async def _app(self) -> HostRuntime:
        """The running app of the bridge in this event loop."""
        for loop in [each for each, scope in self._scopes.items() if scope.ended]:
            del self._scopes[loop]
        loop = asyncio.get_running_loop()
        scope = self._scopes.get(loop)
        if scope is None:
            scope = self._scopes[loop] = LoopScope(self._parts)
        app = await scope.opened()
        assert isinstance(app, HostRuntime)
        return app
