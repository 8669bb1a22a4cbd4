"""`Hookline`: plugins loaded, a running scope, and one message in, one answer out.

    app = Hookline()
    app.load_hooks()
    async with app.running():
        result = await app.process_inbound({"content": "hello"})
    print(result.model_output)

`process_inbound` is the whole pipeline; every stage of it is a hook, and the builtin plugin is one
implementation among others.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from hookline.agent.errors import Blocked
from hookline.catalog import Hooks
from hookline.catalog.context import HookContext
from hookline.catalog.envelope import Envelope, State, address_of, check_envelope, content_of
from hookline.catalog.events.agent import InputEvent, OutputEvent
from hookline.catalog.events.session import (
    SessionBeforeStartEvent,
    SessionReason,
    SessionShutdownEvent,
    SessionStartEvent,
    ShutdownReason,
)
from hookline.catalog.parts import Prompt
from hookline.catalog.stream import AsyncStreamEvents
from hookline.home import home as default_home
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.plugins import PluginFailure
from hookline.scope import entered
from hookline.turn import (
    Listener,
    StreamedAnswer,
    TurnResult,
    echo,
    one_chunk,
    with_content,
    with_context,
)

if TYPE_CHECKING:
    from asyncio import Lock

    import typer

    from hookline.agent.engine import AgentRun, Engine, Limits
    from hookline.agent.journal import CutOffTurn
    from hookline.models import Models
    from hookline.tape import Tape, TapeContext, TapeStore
    from hookline.tools.registry import Registry
    from hookline.tools.runner import ToolRunner

log = logging.getLogger("hookline")

Deliver = Callable[[Envelope], Any]
"""Sends one outbound envelope where it belongs, and says whether it was sent; may be async."""


class NotRunning(HooklineError, RuntimeError):
    """Something was asked of the app outside its running scope."""


class Hookline:
    """The runtime: hooks, models, tools and sessions under one roof."""

    def __init__(
        self,
        *,
        home: Path | None = None,
        workspace: Path | None = None,
        model: str | None = None,
        models: Models | None = None,
        hooks: Hooks | None = None,
        limits: Limits | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.home = home or default_home()
        self.workspace = (workspace or Path.cwd()).resolve()
        self.hooks = hooks or Hooks()
        self._models = models
        self._model = model
        self.limits = limits
        self.options = options or {}
        self.tool_choice: Any = "auto"
        self.failures: list[PluginFailure] = []
        self.runs: dict[str, AgentRun] = {}
        """The agent runs in flight, by session."""
        self.deliver: Deliver | None = None
        """Where the builtin plugin hands outbound envelopes; the door sets it."""
        self.progress: Callable[[str, int, int], None] | None = None
        """Is shown how far a model's first download has come; the door sets it."""
        self._store: TapeStore | None = None
        self._opened: dict[str, str] = {}
        """The open sessions, each with what is to be added to its next prompt."""
        self._locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()

    # --- parts: made when first used, so that the command line starts without them ---------------

    @cached_property
    def models(self) -> Models:
        """The models within reach."""
        from hookline.models import Models

        return self._models or Models(home=self.home, progress=self.progress)

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self._model or self.models.default

    @model.setter
    def model(self, name: str) -> None:
        self._model = name

    @cached_property
    def tools(self) -> Registry:
        """The tools of this app: what modules registered at import, and what plugins provide."""
        from hookline.tools.registry import REGISTRY, Registry

        registry = Registry(parent=REGISTRY)
        self._register_tools(registry)
        return registry

    @cached_property
    def runner(self) -> ToolRunner:
        """The one runner of tools."""
        from hookline.tools.runner import ToolRunner

        return ToolRunner(self.hooks, self.tools)

    @cached_property
    def engine(self) -> Engine:
        """The agent's loop."""
        from hookline.agent.engine import Engine

        return Engine(self.hooks, self.tools, self.runner)

    # --- plugins ------------------------------------------------------------------------------

    @property
    def _plugin_manager(self) -> Any:
        return self.hooks.pm

    def load_hooks(self, *, packages: bool = True) -> None:
        """Load the builtin plugins, then the plugins of installed packages; later ones win.

        A plugin that fails is left out and told in `failures`; the others load.
        """
        from hookline.builtin import BuiltinPlugin
        from hookline.plugins import installed
        from hookline.skills.plugin import SkillsPlugin

        self.hooks.add(BuiltinPlugin(self), name="builtin")
        self.hooks.add(SkillsPlugin(self), name="skills")
        for name, load in installed() if packages else ():
            try:
                self.hooks.add(load(self), name=name)
            except Exception as error:
                self._failed(name, "loading", error)

    def _register_tools(self, registry: Registry) -> None:
        for outcome in self.hooks.call_sync("register_tools"):
            if not outcome.success:
                self._leave_out(outcome.plugin_name, "register_tools", outcome.error)
                continue
            before = set(registry.names())
            try:
                for given in outcome.result or ():
                    registry.add(given)
            except Exception as error:
                for name in set(registry.names()) - before:
                    registry.remove(name)
                self._leave_out(outcome.plugin_name, "register_tools", error)

    def _leave_out(self, plugin: str, stage: str, error: BaseException) -> None:
        if self.hooks.pm.has_plugin(plugin):
            self.hooks.remove(plugin)
        self._failed(plugin, stage, error)

    def _failed(self, plugin: str, stage: str, error: BaseException) -> None:
        self.failures.append(PluginFailure(plugin, stage, error))
        log.warning("plugin.failed plugin=%s stage=%s: %s", plugin, stage, error_text(error))
        self.hooks.call_sync("on_error", stage="bootstrap", error=error, message=None, agent_id="")

    def create_cli_app(self) -> typer.Typer:
        """The command line, with what plugins add to it."""
        from hookline.cli.root import create_app, keep_first

        app = create_app()
        for outcome in self.hooks.call_sync("register_cli_commands", app=app):
            if not outcome.success:
                self._failed(outcome.plugin_name, "register_cli_commands", outcome.error)
        keep_first(app)  # newest first: a plugin's command beats the builtin one of its name
        return app

    def collect_onboard_config(self, current_config: dict[str, Any]) -> dict[str, Any]:
        """A configuration, put together from what plugins contribute to the current one."""
        return self.hooks.call_sync("onboard_config", current_config=current_config)

    def get_system_prompt(self, prompt: Prompt, state: State) -> str:
        """The fragments of all plugins, lowest priority first."""
        return self.hooks.call_sync("system_prompt", prompt=prompt, state=state)

    def get_channels(self, message_handler: Any) -> list[Any]:
        """The channels that plugins provide, one for each name."""
        return self.hooks.call_sync("provide_channels", message_handler=message_handler)

    def get_tape_store(self) -> TapeStore | None:
        """The store of the running scope; None outside it."""
        return self._store

    def build_tape_context(self) -> TapeContext:
        """How tape entries become model messages."""
        from hookline.tape import TapeContext

        return self.hooks.call_sync("build_tape_context") or TapeContext()

    # --- the running scope --------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Hookline]:
        """Open what a run needs: the tape's store, then the plugins; close them in reverse."""
        reason: ShutdownReason = "completed"
        async with AsyncExitStack() as stack:
            self._store = await entered(stack, self.hooks.call_sync("provide_tape_store"))
            stack.callback(setattr, self, "_store", None)
            stack.push_async_callback(self._close_models)
            for outcome in await self.hooks.call("hookline_startup", pm=self.hooks.pm):
                if not outcome.success:
                    self._leave_out(outcome.plugin_name, "hookline_startup", outcome.error)
            try:
                yield self
            except BaseException as error:
                reason = "error" if isinstance(error, Exception) else "cancelled"
                raise
            finally:
                for session_id in list(self._opened):
                    await self.close_session(session_id, reason)
                for outcome in await self.hooks.call("hookline_shutdown", pm=self.hooks.pm):
                    if not outcome.success:
                        self._failed(outcome.plugin_name, "hookline_shutdown", outcome.error)

    async def _close_models(self) -> None:
        if "models" in self.__dict__:
            await self.models.close()

    def store(self) -> TapeStore:
        """The store of the running scope, or an error that says what is missing."""
        if self._store is None:
            raise NotRunning("the tape is open only inside `async with app.running()`")
        return self._store

    async def tape(self, session_id: str) -> Tape:
        """A session's tape."""
        from hookline.tape import Tape

        return await Tape.open(self.store(), session_id)

    def context(self, session_id: str) -> HookContext:
        """What handlers get as `ctx` in a session."""
        return HookContext(session_id=session_id, agent_id="main", app=self)

    # --- sessions -----------------------------------------------------------------------------

    async def _open_session(self, session_id: str, reason: SessionReason = "startup") -> None:
        """Open a session the first time this process sees it."""
        if session_id in self._opened:
            return
        ctx = self.context(session_id)
        before = self.hooks["session_before_start"]
        if before.live:
            event = SessionBeforeStartEvent(session_id, ctx.agent_id, self.tools.names(), reason)
            verdict = await before.fire(event, ctx)
            if not verdict.allowed:
                await self._shut_down(session_id, "error")
                raise Blocked("the session", verdict.reason, verdict.decided_by)
        self._opened[session_id] = ""
        start = self.hooks["session_start"]
        if start.live:
            answers = await start.fire(SessionStartEvent(reason), ctx)
            added = (answer.additional_context for answer in answers)
            self._opened[session_id] = "\n\n".join(text for text in added if text)

    async def close_session(self, session_id: str, reason: ShutdownReason = "completed") -> None:
        """Tell everybody that a session closes."""
        if self._opened.pop(session_id, None) is not None:
            await self._shut_down(session_id, reason)

    async def _shut_down(self, session_id: str, reason: ShutdownReason) -> None:
        shutdown = self.hooks["session_shutdown"]
        if shutdown.live:
            await shutdown.fire(SessionShutdownEvent(reason), self.context(session_id))

    # --- one turn -----------------------------------------------------------------------------

    async def process_inbound(
        self, envelope: Envelope, *, stream: Listener | None = None, session_id: str | None = None
    ) -> TurnResult:
        """Process one inbound message to the end."""
        message = check_envelope(envelope)
        try:
            session_id = session_id or await self.resolve_session(message)
            async with self._turn_of(session_id):
                return await self._turn(message, session_id, stream)
        except _Reported as reported:
            raise reported.error from None
        except Exception as error:
            await self._notify_error("turn", error, message)
            raise

    async def resume(self, session_id: str, *, stream: Listener | None = None) -> TurnResult | None:
        """Continue the session's cut-off turn where it stopped; None when there is none."""
        from hookline.agent.journal import cut_off_turn

        async with self._turn_of(session_id):
            tape = await self.tape(session_id)
            cut = cut_off_turn(await tape.context_entries())
            if cut is None:
                return None
            message = cut.envelope or {"content": "", "session_id": session_id}
            try:
                return await self._continue(cut, message, session_id, stream)
            except _Reported as reported:
                raise reported.error from None
            except Exception as error:
                await self._notify_error("turn", error, message)
                raise

    async def resolve_session(self, message: Envelope) -> str:
        """The session that a message belongs to."""
        named = await self.hooks["resolve_session"].fire(message)
        if named is not None:
            return named
        return ":".join(address_of(message))

    @asynccontextmanager
    async def _turn_of(self, session_id: str) -> AsyncGenerator[None]:
        """Never two turns of one session at once."""
        from asyncio import Lock

        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = Lock()
        async with lock:
            yield

    async def _turn(self, message: Envelope, session_id: str, stream: Listener | None) -> TurnResult:
        state: State = await self.hooks["load_state"].fire(message, session_id)
        await self._open_session(session_id)
        result = TurnResult(session_id)
        message, result.stopped = await self._input(message, session_id)
        if result.stopped is not None:
            await self._save_state(session_id, state, message, "")
            return result
        prompt = await self.hooks["build_prompt"].fire(message, session_id, state)
        prompt = prompt or content_of(message)
        result.prompt = with_context(prompt, self._opened[session_id])
        self._opened[session_id] = ""
        return await self._answer(result, message, state, stream)

    async def _continue(
        self, cut: CutOffTurn, message: Envelope, session_id: str, stream: Listener | None
    ) -> TurnResult:
        state: State = await self.hooks["load_state"].fire(message, session_id)
        await self._open_session(session_id, "resume")
        state["resume"] = cut
        result = TurnResult(session_id, prompt=cut.prompt)
        return await self._answer(result, message, state, stream)

    async def _input(self, message: Envelope, session_id: str) -> tuple[Envelope, str | None]:
        """Let `input` judge what came; why it needs no agent turn, where it does not."""
        hook = self.hooks["input"]
        if not hook.live:
            return message, None
        event = InputEvent(content_of(message), address_of(message)[0])
        verdict = await hook.fire(event, self.context(session_id))
        if verdict.denied:
            changes: dict[str, Any] = dict(verdict.deciding.changes or {})
            return message, verdict.reason or changes.get("action", "block")
        if "text" in verdict.changes:
            message = with_content(message, verdict.event.text)
        return message, None

    async def _answer(
        self, result: TurnResult, message: Envelope, state: State, stream: Listener | None
    ) -> TurnResult:
        """From the prompt to the outbound envelopes."""
        session_id = result.session_id
        state["message"] = message
        status, failure = "failed", None
        try:
            try:
                result.model_output = await self._run_model(result, state, stream)
            except BaseException as error:
                failure = error_text(error)
                if isinstance(error, Exception):
                    await self._notify_error("run_model", error, message)
                    raise _Reported(error) from error
                status = "cancelled"
                raise
            finally:
                await self._save_state(session_id, state, message, result.model_output)
            result.outbounds = await self.hooks["render_outbound"].fire(
                message, session_id, state, result.model_output
            ) or [echo(message, session_id, result.model_output)]
            await self._dispatch(result.outbounds)
            status = "completed"
            return result
        finally:
            run = self.runs.pop(session_id, None)
            if run is not None:
                result.usage = dict(run.usage)
                if not self._tape_is_broken(run.error):  # then it could not be noted either
                    await run.finish(status, failure)

    @staticmethod
    def _tape_is_broken(error: Exception | None) -> bool:
        from hookline.tape import TapeError

        return isinstance(error, TapeError)

    async def _save_state(
        self, session_id: str, state: State, message: Envelope, model_output: str
    ) -> None:
        await self.hooks["save_state"].fire(session_id, state, message, model_output)

    async def _dispatch(self, outbounds: list[Envelope]) -> None:
        for outbound in outbounds:
            try:
                await self.hooks["dispatch_outbound"].fire(outbound)
            except Exception as error:
                await self._notify_error("dispatch", error, outbound)
                raise _Reported(error) from error

    async def _notify_error(self, stage: str, error: Exception, message: Envelope | None) -> None:
        on_error = self.hooks["on_error"]
        if on_error.live:
            await on_error.fire(stage, error, message, "main")

    # --- the model's stage --------------------------------------------------------------------

    async def _run_model(self, result: TurnResult, state: State, stream: Listener | None) -> str:
        """Read the stream of whoever answers; give the text that may go out."""
        events = await self.run_model_stream(result.prompt, result.session_id, state)
        output = self.hooks["output"]
        answer = StreamedAnswer(stream, held=output.count() > 0)
        try:
            async for event in events:
                await answer.take(event)
        finally:
            await events.aclose()
        text = answer.text or getattr(events.state, "text", "")
        if output.live:
            verdict = await output.fire(OutputEvent(text), self.context(result.session_id))
            if not verdict.allowed:
                raise Blocked("the answer", verdict.reason, verdict.decided_by)
            text = verdict.event.content
        await answer.release(text)
        return text

    async def run_model_stream(
        self, prompt: Prompt, session_id: str, state: State
    ) -> AsyncStreamEvents:
        """The stream of the newest plugin that answers, by `run_model_stream` or `run_model`.

        The two hooks are walked together, in one order: the builtin's stream never shadows a newer
        plugin's text.
        """
        arguments = {"prompt": prompt, "session_id": session_id, "state": state}
        streams, texts = self.hooks["run_model_stream"], self.hooks["run_model"]
        if not texts.count():
            answer = await streams.fire(prompt, session_id, state)
            if answer is not None:
                return answer
        both = [*streams.run_order(session_id), *texts.run_order(session_id)]
        for impl in sorted((i for i in both if not i.wrapper), key=lambda i: i.sort_key):
            hook = streams if impl.spec is streams.spec else texts
            answer = await hook.only([impl, *(i for i in both if i.wrapper)])(**arguments)
            if answer is not None:
                return answer if hook is streams else one_chunk(answer)
        raise NotRunning("no plugin answers run_model_stream or run_model: is the builtin loaded?")


class _Reported(Exception):
    """Carries an error that `on_error` has been told of."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
