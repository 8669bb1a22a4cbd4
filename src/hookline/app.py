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
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.agent.errors import Blocked, Cancelled
from hookline.catalog import Hooks
from hookline.catalog.context import HookContext
from hookline.catalog.envelope import Envelope, State, address_of, check_envelope, content_of
from hookline.catalog.events.agent import InputEvent, OutputEvent, SavePointEvent, SettledEvent
from hookline.catalog.events.session import ShutdownReason
from hookline.catalog.parts import Prompt
from hookline.catalog.stream import AsyncStreamEvents
from hookline.catalog.turn import Admission
from hookline.home import home as default_home
from hookline.hookfiles import HookFiles
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.lanes import Lane, Lanes
from hookline.loading import Plugins
from hookline.scope import entered
from hookline.sessions import Sessions
from hookline.turn import (
    Listener,
    Outcome,
    StreamedAnswer,
    TurnResult,
    echo,
    one_chunk,
    with_content,
    with_context,
)

if TYPE_CHECKING:
    import typer

    from hookline.agent.engine import AgentRun, Engine, Limits
    from hookline.agent.journal import CutOffTurn
    from hookline.config import Config
    from hookline.exchange import Exchange
    from hookline.models import Models
    from hookline.plugins import PluginFailure
    from hookline.plugins.trust import Trust
    from hookline.policy import Policy
    from hookline.stores import Stores
    from hookline.subagents import Subagents
    from hookline.tape import Entry, Tape, TapeContext, TapeStore
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
        config: Config | None = None,
        profile: str | None = None,
        project: bool = True,
        overrides: Mapping[str, Any] | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.home = home or default_home()
        self.workspace = (workspace or Path.cwd()).resolve()
        self.hooks = hooks or Hooks()
        self._models = models
        self._model = model
        self._limits = limits
        self._options = options
        self._config = config
        self._profile = profile
        self.project = project
        """Whether the workspace's own files count."""
        self._overrides = overrides
        self._policy = policy
        self.tool_choice: Any = "auto"
        self.plugins = Plugins(self, lambda: self.config.disabled_plugins())
        """Which plugins take part, and what they bring."""
        self.hook_files = HookFiles(self)
        self.runs: dict[str, AgentRun] = {}
        """The agent runs in flight, by session."""
        self.deliver: Deliver | None = None
        """Where the builtin plugin hands outbound envelopes; the door sets it."""
        self.progress: Callable[[str, int, int], None] | None = None
        """Is shown how far a model's first download has come; the door sets it."""
        self.lanes = Lanes()
        """What each session is doing, and who waits for it."""
        self.sessions = Sessions(self)
        self._store: TapeStore | None = None

    # --- parts: made when first used, so that the command line starts without them ---------------

    @cached_property
    def config(self) -> Config:
        """The settings: files of the user, the profile and the project, environment, command line."""
        from hookline.config import Config

        return self._config or Config.load(
            self.home,
            workspace=self.workspace,
            profile=self._profile,
            project=self.project,
            overrides=self._overrides,
        )

    @cached_property
    def models(self) -> Models:
        """The models within reach."""
        from hookline.models import DEFAULT_MODEL, Models

        return self._models or Models(
            default=self.config.get("model") or DEFAULT_MODEL,
            home=self.home,
            settings=self.config.expanded("providers"),
            progress=self.progress,
        )

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self._model or self.config.get("model") or self.models.default

    @model.setter
    def model(self, name: str) -> None:
        self._model = name

    @property
    def limits(self) -> Limits:
        """What a run may use up: as given, or else `[limits]` of the settings."""
        from hookline.agent.engine import Limits

        if self._limits is not None:
            return self._limits
        if not self.config.section("limits"):
            return Limits()
        from hookline.config.schema import LimitsSettings

        return Limits(**self.config.settings("limits", LimitsSettings).given())

    @limits.setter
    def limits(self, limits: Limits | None) -> None:
        self._limits = limits

    @property
    def options(self) -> dict[str, Any]:
        """What every model is asked with: as given, or else `thinking` and `[options]`."""
        if self._options is None:
            thinking = self.config.get("thinking")
            chosen = {"thinking": thinking} if thinking else {}
            self._options = {**self.config.section("options"), **chosen}
        return self._options

    @options.setter
    def options(self, options: dict[str, Any]) -> None:
        self._options = options

    @cached_property
    def tools(self) -> Registry:
        """The tools of this app: what modules registered at import, and what plugins provide."""
        from hookline.tools.registry import REGISTRY, Registry

        registry = Registry(parent=REGISTRY)
        self.plugins.register_tools(registry)
        return registry

    @cached_property
    def stores(self) -> Stores:
        """The stores of this app: what the configuration says, and what plugins provide."""
        from hookline.stores import Stores

        def gather(stores: Stores) -> None:
            stores.configure(self.config.section("stores"))
            self.plugins.register_stores(stores)

        return Stores(self.home / "stores", gather=gather)

    @cached_property
    def trust(self) -> Trust:
        """What may run of the projects that a person works in."""
        from hookline.plugins.trust import Trust

        return Trust(self.home)

    @cached_property
    def runner(self) -> ToolRunner:
        """The one runner of tools."""
        from hookline.tools.runner import ToolRunner

        return ToolRunner(self.hooks, self.tools, judge=self.policy.judge)

    @cached_property
    def policy(self) -> Policy:
        """What decides on a tool call where no plugin does, and what no plugin can loosen."""
        from hookline.policy import KINDS, Meter, Policy

        async def entries(session_id: str, after: str | None) -> list[Entry]:
            return await self.store().entries(session_id, kinds=KINDS, after=after)

        return self._policy or Policy.load(
            self.config.of_user("policy"),
            self.config.of_project("policy"),
            home=self.home,
            workspace=self.workspace,
            registered=self.plugins.pack_specs,
            spending=Meter(entries).spent,
        )

    @cached_property
    def subagents(self) -> Subagents:
        """Agents that an agent gives tasks to."""
        from hookline.subagents import Subagents

        return Subagents(self)

    @cached_property
    def engine(self) -> Engine:
        """The agent's loop."""
        from hookline.agent.engine import Engine

        return Engine(self.hooks, self.tools, self.runner)

    # --- plugins ------------------------------------------------------------------------------

    @property
    def _plugin_manager(self) -> Any:
        return self.hooks.pm

    @property
    def failures(self) -> list[PluginFailure]:
        """The plugins that were left out, and why."""
        return self.plugins.failures

    def load_hooks(self, *, packages: bool = True, only_cli: bool = False) -> None:
        """Load the builtin plugins, then the plugins of installed packages; later ones win.

        Hook files follow when the app runs, or by `hook_files.load()`.

        A plugin that fails is left out and told in `failures`; the others load. With `only_cli`, what
        the command line does not need to know itself is put off until `plugins.finish()`.
        """
        from hookline.builtin import BuiltinPlugin
        from hookline.skills.plugin import SkillsPlugin

        self.plugins.add("builtin", BuiltinPlugin(self))
        self.plugins.add("skills", SkillsPlugin(self, profile=lambda: self.config.profile_dir))
        if packages:
            self.plugins.load(only_cli=only_cli)
        self.hook_files.wanted = True

    def create_cli_app(self) -> typer.Typer:
        """The command line, with what plugins add to it."""
        from hookline.cli.root import create_app, keep_first

        app = create_app(self.plugins.finish)
        self.plugins.register_cli_commands(app)
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
        await self.hook_files.start()
        async with AsyncExitStack() as stack:
            self._store = await entered(stack, self.hooks.call_sync("provide_tape_store"))
            stack.callback(setattr, self, "_store", None)
            stack.push_async_callback(self._close_models)
            stack.push_async_callback(self._close_stores)
            if self.hooks["register_stores"].live or self.config.section("stores"):
                self.stores.gather()
            for outcome in await self.hooks.call("hookline_startup", pm=self.hooks.pm):
                if not outcome.success:
                    self.plugins.leave_out(outcome.plugin_name, "hookline_startup", outcome.error)
            try:
                yield self
            except BaseException as error:
                reason = "error" if isinstance(error, Exception) else "cancelled"
                raise
            finally:
                await self.sessions.close_all(reason)
                for outcome in await self.hooks.call("hookline_shutdown", pm=self.hooks.pm):
                    if not outcome.success:
                        self.plugins.failed(outcome.plugin_name, "hookline_shutdown", outcome.error)

    async def _close_stores(self) -> None:
        if "stores" in self.__dict__:
            await self.stores.close()

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

    # --- one turn -----------------------------------------------------------------------------

    async def process_inbound(
        self,
        envelope: Envelope,
        *,
        stream: Listener | None = None,
        session_id: str | None = None,
        exchange: Exchange | None = None,
    ) -> TurnResult:
        """Process one inbound message to the end; a door with a channel passes its `exchange`."""
        message = check_envelope(envelope)
        try:
            if exchange is not None:
                message, rejected = await exchange.receive(self.hooks, message, self.context(""))
                if rejected is not None:
                    return TurnResult("", outcome="rejected", stopped=rejected)
            session_id = session_id or await self.resolve_session(message)
            return await self._admit(message, session_id, stream, exchange)
        except _Reported as reported:
            raise reported.error from None
        except Exception as error:
            await self._notify_error("turn", error, message)
            raise

    async def is_cut_off(self, session_id: str) -> bool:
        """Whether a turn of this session was begun and never finished."""
        from hookline.agent.journal import cut_off_turn

        return await cut_off_turn(await self.tape(session_id)) is not None

    async def resume(
        self, session_id: str, *, stream: Listener | None = None, exchange: Exchange | None = None
    ) -> TurnResult | None:
        """Continue the session's cut-off turn where it stopped; None when there is none."""
        from hookline.agent.journal import cut_off_turn

        lane = self.lanes.of(session_id)
        async with lane.turn():
            cut = await cut_off_turn(await self.tape(session_id))
            if cut is None:
                return None
            message = cut.envelope or {"content": "", "session_id": session_id}
            try:
                result = await self._continue(cut, message, session_id, stream)
                await self._finish(lane, message, result, exchange)
                return result
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

    async def cancel(self, session_id: str) -> bool:
        """Stop a session's running turn, with its tools and subagents; whether there was one."""
        run = self.runs.get(session_id)
        return run is not None and await run.cancel()

    async def park(self, session_id: str) -> bool:
        """Stop a session's running turn so that `resume` continues it; whether there was one."""
        run = self.runs.get(session_id)
        return run is not None and await run.cancel(park=True)

    # --- admission ----------------------------------------------------------------------------

    async def _admit(
        self, message: Envelope, session_id: str, stream: Listener | None, exchange: Exchange | None
    ) -> TurnResult:
        """Give a message its own turn, let it join the running one, or drop it."""
        lane = self.lanes.of(session_id)
        admission = await self._admission(lane, message)
        if admission.action == "drop":
            result = await self._unanswered(session_id, message, "dropped", admission.reason)
            await self._end(message, result, exchange)
            return result
        screened = False
        if admission.action == "steer" and lane.phase != "idle":
            message, result = await self._steer(message, session_id)
            if result is not None:
                await self._end(message, result, exchange)
                return result
            screened = True
        async with lane.turn(ahead=admission.action == "process"):
            result: TurnResult | None = None
            try:
                result = await self._turn(message, session_id, stream, screened=screened)
                return result
            finally:
                await self._finish(lane, message, result, exchange)

    async def _admission(self, lane: Lane, message: Envelope) -> Admission:
        """What `admit_message` says; a busy session's message is a follow-up unless it says more."""
        hook = self.hooks["admit_message"]
        answer = await hook.fire(lane.session_id, message, lane.activity) if hook.live else None
        if isinstance(answer, Admission):
            return answer
        return Admission(answer or "follow_up")

    async def _steer(self, message: Envelope, session_id: str) -> tuple[Envelope, TurnResult | None]:
        """Let a message join the running turn; no result where that ended too soon."""
        run = self.runs.get(session_id)
        if run is None:
            return message, None
        message, stopped = await self._input(message, session_id)
        if stopped is not None:
            return message, stopped
        prompt = await self.hooks["build_prompt"].fire(message, session_id, run.state)
        joined = await run.steering.join(prompt or content_of(message), message)
        return message, TurnResult(session_id, outcome="steered") if joined else None

    async def _unanswered(
        self, session_id: str, message: Envelope, outcome: Outcome, reason: str | None
    ) -> TurnResult:
        """Note on the tape what became of a message that gets no turn."""
        from hookline.agent.journal import INBOUND, plain_envelope

        run = self.runs.get(session_id)
        tape = run.tape if run is not None else await self.tape(session_id)
        noted = {"envelope": plain_envelope(message), "outcome": outcome, "reason": reason}
        await tape.append(INBOUND, noted)
        return TurnResult(session_id, outcome=outcome, stopped=reason or outcome)

    async def _finish(
        self, lane: Lane, message: Envelope, result: TurnResult | None, exchange: Exchange | None
    ) -> None:
        """After a turn, answered or not: its end is marked, and everybody may rest."""
        ctx = self.context(lane.session_id)
        if result is not None:
            await self._end(message, result, exchange)
        save_point, settled = self.hooks["save_point"], self.hooks["settled"]
        if save_point.live:
            await save_point.fire(SavePointEvent(), ctx)
        if settled.live and not lane.waiting:
            await settled.fire(SettledEvent(), ctx)

    async def _end(self, message: Envelope, result: TurnResult, exchange: Exchange | None) -> None:
        if exchange is not None:
            await exchange.send(self.hooks, message, result, self.context(result.session_id))

    # --- the stages of a turn --------------------------------------------------------------------

    async def _turn(
        self, message: Envelope, session_id: str, stream: Listener | None, *, screened: bool = False
    ) -> TurnResult:
        state: State = await self.hooks["load_state"].fire(message, session_id)
        opened = await self.sessions.open(session_id)
        if not screened:
            message, stopped = await self._input(message, session_id)
            if stopped is not None:
                await self._save_state(session_id, state, message, "")
                return stopped
        prompt = await self.hooks["build_prompt"].fire(message, session_id, state)
        prompt = prompt or content_of(message)
        result = TurnResult(session_id, prompt=with_context(prompt, opened.added))
        opened.added = ""
        return await self._answer(result, message, state, stream)

    async def _continue(
        self, cut: CutOffTurn, message: Envelope, session_id: str, stream: Listener | None
    ) -> TurnResult:
        state: State = await self.hooks["load_state"].fire(message, session_id)
        await self.sessions.open(session_id, "resume")
        state["resume"] = cut
        result = TurnResult(session_id, prompt=cut.prompt)
        return await self._answer(result, message, state, stream)

    async def _input(self, message: Envelope, session_id: str) -> tuple[Envelope, TurnResult | None]:
        """Let `input` judge what came; a result where it needs no agent turn."""
        hook = self.hooks["input"]
        if not hook.live:
            return message, None
        event = InputEvent(content_of(message), address_of(message)[0])
        verdict = await hook.fire(event, self.context(session_id))
        if verdict.denied:
            changes: dict[str, Any] = dict(verdict.deciding.changes or {})
            outcome: Outcome = "handled" if changes.get("action") == "handled" else "blocked"
            return message, await self._unanswered(session_id, message, outcome, verdict.reason)
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
            except Cancelled as error:
                status, result.outcome, result.stopped = "cancelled", "cancelled", str(error)
                return result
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
                # A parked turn goes on later; on a broken tape nothing could be noted.
                if not (run.parked or self._tape_is_broken(run.error)):
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
