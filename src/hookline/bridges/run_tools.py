"""`RunTools`: the tool calls of a run, from their gates to their results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from os import urandom
from typing import TYPE_CHECKING, Any, TypeVar

from hookline.errors import BridgeError
from hookline.models.model import content_text
from hookline.turn_context import TurnContext, at

from .reports import HostCall, ToolAnswer, plain, shown

if TYPE_CHECKING:
    from hookline.agent.engine import Engine
    from hookline.agent.run import AgentRun
    from hookline.tools.calls import ToolCaller

    from .host import HostRuntime

T = TypeVar("T")


class RunTools:
    """What a host reports of its tools."""

    app: HostRuntime
    session: str
    loop: asyncio.AbstractEventLoop
    _run: AgentRun
    _engine: Engine
    _caller: ToolCaller
    _open: set[asyncio.Task[Any]]

    async def _here(self, coroutine: Any) -> Any:
        """Run a coroutine in the event loop of the run, whichever loop the host calls from."""
        if asyncio.get_running_loop() is self.loop:
            return await self._in_turn(coroutine)
        waiting = asyncio.run_coroutine_threadsafe(self._in_turn(coroutine), self.loop)
        return await asyncio.wrap_future(waiting)

    async def _in_turn(self, coroutine: Any) -> Any:
        """Run a coroutine as a part of the turn: the host calls from a task that knows none."""
        ctx = self._run.ctx
        with at(TurnContext(ctx.session_id, self._run.turn_id, channel=ctx.channel)):
            return await coroutine

    def _back(self, function: Callable[[Any], Awaitable[T]]) -> Callable[[Any], Awaitable[T]]:
        """A function of the host that runs in the host's event loop, if that is another one."""
        host = asyncio.get_running_loop()
        if host is self.loop:
            return function

        async def run(argument: Any) -> T:
            return await function(argument)

        async def there(argument: Any) -> T:
            future = asyncio.run_coroutine_threadsafe(run(argument), host)
            return await asyncio.wrap_future(future)

        return there

    # --- tools --------------------------------------------------------------------------------

    async def admit(
        self, name: str, arguments: Mapping[str, Any] | str, call_id: str | None = None
    ) -> HostCall:
        """Pass a tool call through every gate: handlers, policy, approval.

        Call `finish` with the result, also if the call is refused.
        """
        return await self._here(self._begin(name, arguments, call_id))

    async def _begin(
        self, name: str, arguments: Mapping[str, Any] | str, call_id: str | None
    ) -> HostCall:
        """Admit a call, and run the handlers of `around_tool_call` up to the tool itself."""
        call = await self._admit(name, arguments, call_id)
        if call.refusal is not None or not self.app.hooks["around_tool_call"].count():
            return call
        reached: asyncio.Future[dict[str, Any]] = self.loop.create_future()
        ran = call.ran = self.loop.create_future()

        async def wait(given: dict[str, Any]) -> Any:
            if reached.done():
                raise BridgeError("this host cannot run a tool twice for one call")
            reached.set_result(given)
            return await ran

        task = call.outcome = asyncio.create_task(self._execute(call, wait))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        await asyncio.wait([reached, task], return_when=asyncio.FIRST_COMPLETED)
        if reached.done():
            call.arguments = reached.result()
        else:  # a handler answered in place of the tool
            call.refusal = str(task.result())
        return call

    async def _admit(
        self, name: str, arguments: Mapping[str, Any] | str, call_id: str | None
    ) -> HostCall:
        from hookline.tools.calls import Requested

        requested = Requested(call_id or f"call_{urandom(6).hex()}", name, arguments)
        admitted = await self._engine.runner.admit(requested, self._caller)
        values = {**admitted.call.arguments}
        return HostCall(admitted.call.id, name, values, admitted.refusal, admitted)

    async def admitted(self, name: str, arguments: Mapping[str, Any], call_id: str) -> HostCall:
        """A call that the host ran, where no admission of it is at hand.

        Another process may have admitted it; otherwise it is recorded now, as let through by the host.
        Without an id, the latest open call of this tool with these arguments is meant.
        """
        return await self._here(self._admitted(name, arguments, call_id))

    async def _admitted(self, name: str, arguments: Mapping[str, Any], call_id: str) -> HostCall:
        from hookline.hooks import Ruling
        from hookline.tape.entry import TOOL_CALL
        from hookline.tools.calls import Admitted, Requested
        from hookline.types import ToolCall

        ctx, values = self._caller.ctx, dict(arguments)
        turn = self._run.resume
        entries = [e.payload for e in turn.entries if e.kind == TOOL_CALL] if turn is not None else []
        if call_id:
            kept = [each for each in entries if each["id"] == call_id]
        else:
            answered = turn.results if turn is not None else {}
            kept = [e for e in entries if (e["name"], e["arguments"]) == (name, values)]
            kept = [each for each in kept if each["id"] not in answered]
            call_id = kept[-1]["id"] if kept else f"call_{urandom(6).hex()}"
        if kept:
            values = dict(kept[-1]["arguments"])
        call = ToolCall(call_id, name, values, ctx.agent_id, ctx.session_id)
        found = Admitted(call, Requested(call_id, name, values), self.app.tools.get(name), values)
        if not kept:
            found.rulings.append(Ruling(reason="the host let it run", by="host"))
            await self._caller.journal.tool_call(call, values, found.rulings)
        return HostCall(call_id, name, values, None, found)

    async def finish(self, call: HostCall, value: Any = None, error: Exception | None = None) -> Any:
        """Pass the result of a call through the gates; returns what the model may see.

        `value` is returned as it is if no handler changed or withheld it.
        """
        return await self._here(self._finish(call, value, error))

    async def _finish(self, call: HostCall, value: Any, error: Exception | None) -> Any:
        if call.outcome is not None and call.ran is not None:
            if not call.outcome.done() and error is None:
                call.ran.set_result(value)
            elif not call.outcome.done() and error is not None:
                call.ran.set_exception(error)
            return await call.outcome

        async def given(_: dict[str, Any]) -> Any:
            if error is not None:
                raise error
            return value

        return await self._execute(call, given)

    async def refuse(self, call: HostCall) -> str:
        """End a call that must not run; returns what the model may see of the reason.

        The tape gets its arguments as well, for a host that does not report the messages of its model.
        """
        return await self._here(self._refuse(call))

    async def _refuse(self, call: HostCall) -> str:
        from hookline.agent.journal import TapeJournal

        requested = dict(call.arguments)
        journal = TapeJournal(self._run.tape, self._run.journal.identity, requested=requested)
        caller = replace(self._caller, journal=journal)
        outcome = await self._engine.runner.execute(call.admitted, caller)
        return content_text(outcome.content)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        invoke: Callable[[dict[str, Any]], Awaitable[Any]],
        call_id: str | None = None,
    ) -> Any:
        """Judge a call, run it with `invoke` if it may run, and judge its result."""
        return await self._here(self._call(name, arguments, self._back(invoke), call_id))

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        invoke: Callable[[dict[str, Any]], Awaitable[Any]],
        call_id: str | None,
    ) -> Any:
        return await self._execute(await self._admit(name, arguments, call_id), invoke)

    async def _execute(self, call: HostCall, invoke: Callable[[dict[str, Any]], Awaitable[Any]]) -> Any:
        returned: list[Any] = []

        async def run(arguments: dict[str, Any]) -> Any:
            returned[:] = [await invoke(arguments)]
            return plain(returned[0])

        key = (self.session, call.id)  # models in two sessions may choose the same id
        self.app.executors[key] = run
        try:
            outcome = await self._engine.runner.execute(call.admitted, self._caller)
        finally:
            self.app.executors.pop(key, None)
        if returned and not outcome.is_error and outcome.content == shown(plain(returned[0])):
            return returned[0]
        return ToolAnswer(content_text(outcome.content), is_error=outcome.is_error, ran=outcome.ran)
