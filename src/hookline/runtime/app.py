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
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hookline.channel import NOWHERE, Channel
from hookline.errors import ConfigError, NotRunning
from hookline.events import ShutdownReason
from hookline.hookspecs import Hooks
from hookline.plugins.loader import Plugins
from hookline.system.home import home as default_home
from hookline.system.private_files import prepare_home
from hookline.turn_context import at
from hookline.types import NOBODY, Envelope, HookContext, Identity, Prompt, State

from .absences import Absences, OnLoadError
from .app_channels import AppChannels
from .hook_files import HookFiles
from .parts import AppParts
from .safeguards import Safeguards
from .session_tree import Sessions
from .turn import ActiveTurn, Command, TurnResult

if TYPE_CHECKING:
    import asyncio

    import typer

    from hookline.agent.output import OutputForm
    from hookline.agent.run import Limits
    from hookline.config import Config
    from hookline.models import Models
    from hookline.plugins import PluginFailure
    from hookline.plugins.lockfile import PluginLock
    from hookline.plugins.trust import Trust
    from hookline.policy import Policy
    from hookline.tape import Tape, TapeContext, TapeStore


class Hookline(AppParts):
    """An app: hooks, plugins, models, tools and sessions. `AppParts` has its parts."""

    embedded: ClassVar[bool] = False
    """Whether it has no home: nothing is read from or written to disk."""
    foreign_hooks: ClassVar[bool] = True
    """Whether the command hooks in the settings of other agents run here, too."""

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
            self._plugin_lock,
            lambda: self.absences.without,
            self._declare,
        )
        """Which plugins take part, and what they bring."""
        self.hook_files = HookFiles(self)
        self.channel: Channel = NOWHERE
        """The channel of what happens outside of messages; `running` sets it."""
        self.channels = AppChannels(self, lambda: self._loop)
        self.sessions = Sessions(self)
        self._store: TapeStore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

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
        channel = self.channels.of(message) if channel is None else channel
        turn = ActiveTurn(message, channel, command=command, on_placed=on_placed)
        with at(turn.context):
            return await self.pipeline.process(turn, session_id)

    process_inbound = process  # the name that other hook systems of this kind use

    async def resume(self, session_id: str, channel: Channel | None = None) -> TurnResult | None:
        """Continue the session's interrupted turn where it stopped; return None if there is none."""
        channel = self.channels.of({"session_id": session_id}) if channel is None else channel
        turn = ActiveTurn(channel=channel)
        with at(turn.context):
            return await self.pipeline.resume(turn, session_id)

    async def cancel(self, session_id: str) -> bool:
        """Stop a session's running turn with its tools and subagents; return whether there was one."""
        turn = self.sessions.turn(session_id)
        return turn is not None and await turn.stop()

    async def park(self, session_id: str) -> bool:
        """Stop a session's running turn so that `resume` continues it; return whether there was one."""
        turn = self.sessions.turn(session_id)
        return turn is not None and await turn.stop(park=True)

    # --- the running scope --------------------------------------------------------------------

    @asynccontextmanager
    async def running(self, channel: Channel | None = None) -> AsyncGenerator[Hookline]:
        """Open the tape's store, then the plugins, and close them in reverse.

        `channel` serves everything outside of messages, such as a turn that a plugin starts.
        Raises `LoadFailed` if something could not be loaded that the app may not run without.
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
        """Collect what plugins contribute; a plugin that fails is removed, with its guards."""
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

    def store(self) -> TapeStore:
        """Return the store of the running scope; raise `NotRunning` outside it."""
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
                channel = run.ctx.channel if run else self.channels.current()
        return HookContext(session_id, "main", app=self, channel=channel, identity=identity)

    # --- plugins ------------------------------------------------------------------------------

    @property
    def _plugin_manager(self) -> Any:
        return self.hooks.pm

    @property
    def failures(self) -> list[PluginFailure]:
        """The plugins that were left out, and why."""
        return self.plugins.failures

    def _plugin_lock(self) -> PluginLock:
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
