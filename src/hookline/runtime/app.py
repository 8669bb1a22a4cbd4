"""`Hookline`: plugins loaded, a running scope, and one message in, one answer out.

    app = Hookline()
    app.load_hooks()
    async with app.running():
        result = await app.process({"content": "hello"})
    print(result.model_output)

`process` is the whole pipeline; every stage of it is a hook, and the builtin plugin is one
implementation among others.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hookline.channel import NOWHERE, Channel, Note, Question, Router, started
from hookline.errors import ConfigError, NotRunning
from hookline.events import ShutdownReason
from hookline.hookspecs import Hooks
from hookline.plugins.loader import Plugins
from hookline.system.home import home as default_home
from hookline.system.private_files import check_home, prepare_home
from hookline.turn_context import at, here
from hookline.types import NOBODY, Envelope, HookContext, Identity, Prompt, State, StreamEvent

from .absences import Absences, OnLoadError
from .hook_files import HookFiles
from .pipeline import Pipeline
from .safeguards import Safeguards
from .session_tree import Sessions
from .turn import ActiveTurn, Command, TurnResult

if TYPE_CHECKING:
    import asyncio

    import typer

    from hookline.agent.engine import Engine
    from hookline.agent.output import OutputForm
    from hookline.agent.run import Limits
    from hookline.config import Config
    from hookline.models import Models
    from hookline.plugins import PluginFailure
    from hookline.plugins.lockfile import PluginLock
    from hookline.plugins.trust import Trust
    from hookline.policy import Policy
    from hookline.policy.approvals import Approvals
    from hookline.sandbox import Sandbox
    from hookline.tape import Entry, Tape, TapeContext, TapeStore
    from hookline.tools.registry import Registry
    from hookline.tools.runner import ToolRunner

    from .subagents import Subagents


SECTIONS = {
    "audit": "hookline.policy.settings:AuditSettings",
    "policy": "hookline.policy.settings:PolicySettings",
    "redaction": "hookline.policy.redaction:RedactionSettings",
    "sandbox": "hookline.sandbox:SandboxSettings",
    "tape": "hookline.tape.settings:TapeSettings",
}
"""The sections of the settings that the runtime itself reads; plugins declare their own."""


class Hookline:
    """The runtime: hooks, models, tools and sessions under one roof."""

    embedded: ClassVar[bool] = False
    """Whether it has no home: nothing is read from or written to disk."""

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
        without: Iterable[str] = (),
        on_load_error: OnLoadError | None = None,
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
        self.given_policy = policy
        """The policy, where the settings do not decide on it."""
        self.safeguards = Safeguards(self)
        self.extensions: dict[type, Any] = {}
        """The loaded plugins and what they keep with the app, by class: `Stores.of(app)` is here."""
        self.user_home: Path | None = None
        """The folder where the user's own skills and hooks are looked for, in place of `~`."""
        self.passive = False
        """Set for a look at what was recorded: no server is connected, and no trace is written."""
        self._trust: Trust | None = None
        self.tool_choice: Any = "auto"
        self.output: OutputForm[Any] | None = None
        """The form that answers must have; None: any text."""
        self.absences = Absences(self, without, on_load_error)
        """What could not be loaded, and whether the app may run without it."""
        self.plugins = Plugins(
            self,
            self._plugin_settings,
            self.plugin_lock,
            lambda: self.absences.without,
            self._declare,
        )
        """Which plugins take part, and what they bring."""
        self.hook_files = HookFiles(self)
        self.channel: Channel = NOWHERE
        """The channel of what happens outside of messages; `running` sets it."""
        self.sessions = Sessions(self)
        self._store: TapeStore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- parts: made when first used, so that the command line starts without them ---------------

    @cached_property
    def config(self) -> Config:
        """The settings: files of the user, the profile and the project, environment, command line."""
        config = self._config or self._load_config()
        for name, form in {**SECTIONS, **self.plugins.sections}.items():
            config.declare(name, form)
        return config

    def _load_config(self) -> Config:
        from hookline.config import Config

        check_home(self.home)  # before any setting of it is read
        return Config.load(
            self.home,
            workspace=self.workspace,
            profile=self._profile,
            project=self.project,
            overrides=self._overrides,
            trusts=self._trusts_config,
        )

    def _declare(self, sections: Mapping[str, str]) -> None:
        """Make the sections of plugins known to settings that are read already."""
        for name, form in sections.items() if "config" in self.__dict__ else ():
            self.config.declare(name, form)

    def _plugin_settings(self) -> Config:
        """What the user's files say of plugins, without fixing the settings before they are used."""
        if self._config is not None or "config" in self.__dict__:
            return self.config
        from hookline.config import Config

        check_home(self.home)
        return Config.load(self.home, profile=self._profile, project=False, overrides=self._overrides)

    def _trusts_config(self, path: Path, content: bytes) -> bool:
        """Whether a person trusted the project's settings, and every file that they run."""
        from hookline.plugins.project import config_item
        from hookline.plugins.sources import FileSource

        return self.trust.covers(config_item(FileSource(path, content), path.parent.parent))

    @cached_property
    def models(self) -> Models:
        """The models within reach."""
        from hookline.models import DEFAULT_MODEL, Models

        models = self._models or Models(
            default=self.config.get("model") or DEFAULT_MODEL,
            home=self.home,
            settings=self.config.expanded("providers"),
            progress=self._progress,
        )
        self.plugins.register_models(models)
        return models

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self._model or self.config.get("model") or self.models.default

    @model.setter
    def model(self, name: str) -> None:
        self._model = name

    @property
    def limits(self) -> Limits:
        """What a run may use up: as given, or else as the settings have it."""
        from hookline.agent.run import Limits

        if self._limits is not None:
            return self._limits
        if not any(map(self.config.section, ("limits", "streaming", "compaction"))):
            return Limits()
        from hookline.agent.compactor import Compacting
        from hookline.agent.segments import Streaming
        from hookline.config.schema import CompactionSettings, LimitsSettings, StreamingSettings

        streaming = self.config.settings("streaming", StreamingSettings)
        compaction = self.config.settings("compaction", CompactionSettings)
        return Limits(
            **self.config.settings("limits", LimitsSettings).given(),
            streaming=Streaming(streaming.segment, streaming.overlap),
            compacting=Compacting(**compaction.model_dump(exclude_none=True)),
        )

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
        """The tools of this app: what its plugins declare and provide, and what is added to it."""
        from hookline.tools.registry import Registry

        registry = Registry()
        self.plugins.register_tools(registry)
        return registry

    @property
    def trust(self) -> Trust:
        """What may run of the projects that a person works in."""
        if self._trust is None:
            from hookline.plugins.trust import Trust

            self._trust = Trust(self.home)
        return self._trust

    @cached_property
    def runner(self) -> ToolRunner:
        """The one runner of tools."""
        from hookline.tools.runner import ToolRunner

        from .confinement import Confinement

        return ToolRunner(
            self.hooks,
            self.tools,
            judge=Confinement(self).judge,
            approve=self.safeguards.approve,
            record=self.safeguards.record,
        )

    @cached_property
    def policy(self) -> Policy:
        """What decides on a tool call where no plugin does, and what no plugin can loosen."""
        from hookline.policy import METERED, Meter, Policy

        async def entries(session_id: str, after: str | None) -> list[Entry]:
            return await self.store().entries(session_id, kinds=METERED, after=after)

        return self.given_policy or Policy.load(
            self.config.own("policy"),
            self.config.of_project("policy"),
            home=self.home,
            workspace=self.workspace,
            registered=self.plugins.pack_specs,
            spending=Meter(entries).spent,
        )

    @cached_property
    def sandbox(self) -> Sandbox:
        """Confines the children that the agent causes to start, as `[sandbox]` says."""
        from hookline.sandbox import Sandbox
        from hookline.sandbox.settings import layered

        sandbox = Sandbox(
            workspace=self.workspace,
            home=self.home,
            settings=layered(self.config.own("sandbox"), self.config.of_project("sandbox")),
        )
        if self._loop is not None:
            from .network import NetworkGate

            sandbox.start(NetworkGate(self).judge, self._loop)
        return sandbox

    def _close_sandbox(self) -> None:
        self._loop = None
        if "sandbox" in self.__dict__:
            self.sandbox.close()
            del self.sandbox

    @property
    def approvals(self) -> Approvals:
        """The questions that wait for a person, and what people allowed."""
        return self.safeguards.approvals

    @cached_property
    def subagents(self) -> Subagents:
        """Agents that an agent gives tasks to."""
        from .subagents import Subagents

        return Subagents(self)

    @cached_property
    def pipeline(self) -> Pipeline:
        """The stages of a turn."""
        return Pipeline(self)

    @cached_property
    def engine(self) -> Engine:
        """The agent's loop."""
        from hookline.agent.engine import Engine

        return Engine(self.hooks, self.tools, self.runner, lambda name: self.models.get(name))

    # --- plugins ------------------------------------------------------------------------------

    @property
    def _plugin_manager(self) -> Any:
        return self.hooks.pm

    @property
    def failures(self) -> list[PluginFailure]:
        """The plugins that were left out, and why."""
        return self.plugins.failures

    def plugin_lock(self) -> PluginLock:
        """What plugins of packages are compared with. A project has no say in it."""
        from hookline.plugins.lockfile import PluginLock

        require, unpinned = self.config.plugin_pinning()
        return PluginLock(self.home, require=require, unpinned=unpinned)

    def load_hooks(self, *, packages: bool = True, only_cli: bool = False) -> None:
        """Load the plugins that come with Hookline, then those of installed packages; later ones win.

        Hook files follow when the app runs, or by `hook_files.load()`.

        A plugin that fails is left out and listed in `failures`; the others load. With `only_cli`,
        plugins that add no commands are put off until `plugins.finish()`.
        """
        from .builtin import BuiltinPlugin

        self.plugins.add("builtin", BuiltinPlugin(self))
        self.plugins.load(packages=packages, only_cli=only_cli)
        self.hook_files.wanted = True

    def create_cli_app(self) -> typer.Typer:
        """The command line: what plugins add to it, Hookline's own commands among them."""
        import typer

        app = typer.Typer(
            name="hookline",
            add_completion=False,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,  # drawing boxes around the help costs more than all the rest
        )
        self.plugins.register_cli_commands(app)
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
    async def running(self, channel: Channel | None = None) -> AsyncGenerator[Hookline]:
        """Open what a run needs: the tape's store, then the plugins; close them in reverse.

        `channel` is for what happens outside of messages, such as a turn that a plugin starts.
        What could not be loaded stops it with `LoadFailed`, unless the app may go on without it.
        """
        from asyncio import get_running_loop  # the command line starts without it

        from hookline.tape.synchronous import entered_store

        reason: ShutdownReason = "completed"
        if not self.embedded:
            prepare_home(self.home)
        await self.hook_files.start()
        self.absences.check()
        async with AsyncExitStack() as stack:
            self.__dict__.pop("sandbox", None)  # one without a loop serves no network
            self._loop = get_running_loop()
            if channel is not None:
                stack.callback(setattr, self, "channel", self.channel)
                self.channel = channel
            stack.callback(self._close_sandbox)
            stack.enter_context(self.safeguards.attached())
            given = self.hooks.call_sync("provide_tape_store")
            self._store = self.safeguards.keeping(await entered_store(stack, given))
            stack.callback(setattr, self, "_store", None)
            stack.push_async_callback(self._close_models)
            try:
                for outcome in await self.hooks.call("hookline_startup", pm=self.hooks.pm):
                    if isinstance(outcome.error, ConfigError):
                        raise outcome.error
                    if not outcome.success:
                        self.plugins.leave_out(outcome.plugin_name, "hookline_startup", outcome.error)
                self._gather()
                yield self
            except BaseException as error:
                reason = "error" if isinstance(error, Exception) else "cancelled"
                raise
            finally:
                await self.sessions.close_all(reason)
                for outcome in await self.hooks.call("hookline_shutdown", pm=self.hooks.pm):
                    if not outcome.success:
                        self.plugins.failed(
                            outcome.plugin_name, "hookline_shutdown", outcome.error, left_out=False
                        )

    def _gather(self) -> None:
        """Ask plugins for what they bring: one that fails is taken out, and its guards with it."""
        if not self.absences.enforced:
            return
        self.tools  # noqa: B018
        if self.hooks["register_models"].live:
            self.models  # noqa: B018
        if self.hooks["register_packs"].live:
            self.plugins.pack_specs  # noqa: B018
        if self.hooks["register_commands"].live:
            from .user_commands import plugin_commands

            plugin_commands(self)
        self.absences.check()

    async def _close_models(self) -> None:
        if "models" in self.__dict__:
            await self.models.close()

    def store(self) -> TapeStore:
        """The store of the running scope, or an error that says what is missing."""
        if self._store is None:
            raise NotRunning("the tape is open only inside `async with app.running()`")
        return self._store

    async def tape(self, session_id: str) -> Tape:
        """Return a session's tape: that of its running agent, or one that is opened now."""
        run = self.sessions.run(session_id)
        if run is not None:
            return run.tape
        from hookline.tape import Tape

        return await Tape.open(self.store(), session_id)

    def context(
        self, session_id: str, identity: Identity | None = None, channel: Channel | None = None
    ) -> HookContext:
        """Return the `ctx` of handlers in a session: by default, for the user of its running turn."""
        if identity is None or channel is None:
            turn = self.sessions.turn(session_id)
            run = turn and turn.run
            if identity is None:
                identity = turn.acts_for if turn else NOBODY
            if channel is None:
                channel = run.ctx.channel if run else self.current_channel()
        return HookContext(session_id, "main", app=self, channel=channel, identity=identity)

    # --- the person -----------------------------------------------------------------------------

    def current_channel(self) -> Channel:
        """The channel of the message that this code runs for; outside of messages, the app's own."""
        place = here()
        return self.channel if place is None or place.channel is None else place.channel

    def _channel_of(self, message: Envelope) -> Channel:
        return self.channel.to(message) if isinstance(self.channel, Router) else self.channel

    def notify(self, channel: Channel, note: Note) -> None:
        """Show a note on a channel, from any thread."""
        self._on_loop(partial(channel.notify, note))

    async def ask(self, ctx: HookContext, question: Question) -> str | None:
        """Ask the person at a channel; the question is kept until it is answered, as approvals are."""
        from hookline.policy.approval_flow import Approving, ask

        return await ask(Approving(self.approvals), self.hooks, ctx, question)

    def _progress(self, step: str, done: int, total: int) -> None:
        channel = self.current_channel()
        if channel.streams:
            data = {"step": step, "done": done, "total": total}
            self._on_loop(partial(channel.stream, StreamEvent("progress", data)))

    def _on_loop(self, show: Callable[[], Any]) -> None:
        """Call a method of a channel where channels live: in the event loop of the running scope."""
        from asyncio import get_running_loop

        try:
            is_here = self._loop is None or get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here or self._loop is None:
            started(show)
        else:
            self._loop.call_soon_threadsafe(started, show)

    # --- turns --------------------------------------------------------------------------------

    async def process(
        self,
        message: Envelope,
        channel: Channel | None = None,
        *,
        session_id: str | None = None,
        command: Command | None = None,
        on_placed: Callable[[], None] | None = None,
    ) -> TurnResult:
        """Process one inbound message to the end, and answer through its channel.

        `command` runs slash commands; without it a message that begins with a slash is a message like
        any other. `on_placed` is called when no later message can overtake this one.
        """
        channel = self._channel_of(message) if channel is None else channel
        turn = ActiveTurn(message, channel, command=command, on_placed=on_placed)
        with at(turn.context):
            return await self.pipeline.process(turn, session_id)

    process_inbound = process  # the name that other hook systems of this kind use

    async def resume(self, session_id: str, channel: Channel | None = None) -> TurnResult | None:
        """Continue the session's cut-off turn where it stopped; None when there is none."""
        channel = self._channel_of({"session_id": session_id}) if channel is None else channel
        turn = ActiveTurn(channel=channel)
        with at(turn.context):
            return await self.pipeline.resume(turn, session_id)

    async def is_cut_off(self, session_id: str) -> bool:
        """Whether a turn of this session was begun and never finished."""
        from hookline.agent.journal import cut_off_turn

        return await cut_off_turn(await self.tape(session_id)) is not None

    async def cancel(self, session_id: str) -> bool:
        """Stop a session's running turn, with its tools and subagents; whether there was one."""
        turn = self.sessions.turn(session_id)
        return turn is not None and await turn.stop()

    async def park(self, session_id: str) -> bool:
        """Stop a session's running turn so that `resume` continues it; whether there was one."""
        turn = self.sessions.turn(session_id)
        return turn is not None and await turn.stop(park=True)
