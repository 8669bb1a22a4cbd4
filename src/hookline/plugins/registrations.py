"""The registrations of plugins, and the removal of a plugin that fails.

A plugin that fails at any stage is removed whole: its hooks, the handlers it attached, the hooks it
declared, its tools, skills, stores, packs and commands. The others continue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hookline.errors import PluginError
from hookline.hooks.errors import HooklineError, NotAwaited, error_text

from .failure import PluginFailure
from .trace import trace

if TYPE_CHECKING:
    import typer
    from typer.models import CommandInfo, TyperInfo

    from hookline.hooks import Outcome
    from hookline.hookspecs import Hooks
    from hookline.models.registry import ModelProvider, Models
    from hookline.specs import PackSpec, ToolSpec
    from hookline.tools.registry import Registry
    from hookline.tools.tool import Tool

log = logging.getLogger("hookline")

T = TypeVar("T")


class Registrations:
    """What plugins bring to one app, and who could not take part."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self.failures: list[PluginFailure] = []
        self.warnings: list[str] = []
        self.news: list[str] = []
        """Plugins that were seen for the first time."""
        self.owners: dict[str, str] = {}
        """The plugin that each namespace belongs to."""
        self._tools: dict[str, set[str]] = {}
        self._undo: dict[str, list[Callable[[], object]]] = {}
        """Removes a plugin's registrations."""

    # --- failures -----------------------------------------------------------------------------

    def undo_with(self, plugin: str, undo: Callable[[], object]) -> None:
        """Let something be undone when this plugin is left out."""
        self._undo.setdefault(plugin, []).append(undo)

    def leave_out(self, plugin: str, stage: str, error: BaseException) -> None:
        """Remove a plugin with all its registrations, and report it."""
        self.take_out(plugin)
        self.failed(plugin, stage, error)

    def take_out(self, plugin: str) -> None:
        """Take a plugin out, with all that it brought."""
        if self.hooks.pm.has_plugin(plugin):
            self.hooks.remove(plugin)
        self._tools.pop(plugin, None)
        for undo in reversed(self._undo.pop(plugin, [])):
            undo()

    def forget_failures(self, plugins: Iterable[str]) -> None:
        """Withdraw the reports about some plugins, because they are loaded again."""
        gone = set(plugins)
        self.failures[:] = [failure for failure in self.failures if failure.plugin not in gone]

    def failed(self, plugin: str, stage: str, error: BaseException, *, left_out: bool = True) -> None:
        """Report a plugin's failure; `left_out` unless all of it still takes part."""
        if isinstance(error, HooklineError) and error.plugin is None:
            error.plugin = plugin
        failure = PluginFailure(plugin, stage, error, left_out)
        self.failures.append(failure)
        trace("failed", plugin, f"{stage}: {error_text(error)}")
        log.warning("plugin.failed plugin=%s stage=%s: %s", plugin, stage, error_text(error))
        self.hooks.call_sync("on_error", stage="bootstrap", error=error, message=None, agent_id="")

    def warn(self, text: str) -> None:
        """Report a problem that does not prevent loading."""
        self.warnings.append(text)
        trace("warning", detail=text)
        log.warning("plugin.warning %s", text)

    def announce(self, text: str) -> None:
        """Report a plugin that is new."""
        self.news.append(text)
        trace("new", detail=text)
        log.warning("plugin.new %s", text)

    # --- what plugins bring -------------------------------------------------------------------

    def gather(
        self,
        hook: str,
        read: Callable[[Any], T],
        key: Callable[[T], str],
        what: str,
        undo: Callable[[T], object] | None = None,
        take: Callable[[str, list[T]], object] | None = None,
    ) -> list[T]:
        """The values that plugins return from a registration hook, each checked by `read`.

        `take` gets the name of a plugin and its values. A plugin that fails, returns something
        invalid, is refused by `take`, or uses the id of another plugin is left out. A plugin's values
        leave the list with it, and `undo` is called for it.
        """
        brought: dict[str, tuple[str, T]] = {}
        kept: list[T] = []
        for outcome in self.hooks.call_sync(hook):
            plugin = outcome.plugin_name
            try:
                if not outcome.success:
                    raise outcome.error
                items = [read(given) for given in _listed(outcome.result, hook)]
                for item in items:
                    self._refuse_clash(brought, plugin, key(item), what)
                    brought[key(item)] = plugin, item
                if take is not None:
                    take(plugin, items)
            except Exception as error:
                brought = {k: v for k, v in brought.items() if v[0] != plugin}
                self.leave_out(plugin, hook, error)
                continue
            trace("gathered", plugin, f"{len(items)} from {hook}")
            kept += items
            self.undo_with(plugin, partial(_drop, kept, items, undo))
        return kept

    def _refuse_clash(
        self, brought: dict[str, tuple[str, T]], plugin: str, id_: str, what: str
    ) -> None:
        if id_ in brought:
            owner = brought[id_][0]
            raise PluginError(f"{what} {id_!r} is brought by plugin {owner!r} and by {plugin!r}")

    def register_tools(self, registry: Registry, outcomes: Iterable[Outcome] | None = None) -> None:
        """Put the tools of plugins into a registry: of all, or what some of them gave."""
        declared = self.declared_tools() if outcomes is None else {}
        asked: list[Any] = self.hooks.call_sync("register_tools") if outcomes is None else [*outcomes]
        for plugin in dict.fromkeys([*declared, *(outcome.plugin_name for outcome in asked)]):
            given = [partial(_given, outcome) for outcome in asked if outcome.plugin_name == plugin]
            for tools in (lambda plugin=plugin: declared.get(plugin, []), *given):
                self._add_tools(registry, plugin, tools)

    def declared_tools(self) -> dict[str, list[Tool]]:
        """The tools that each plugin declared with `@tool`; every plugin is there, in its order."""
        return {}

    def _add_tools(
        self, registry: Registry, plugin: str, given: Callable[[], Iterable[Tool | ToolSpec]]
    ) -> None:
        before = set(registry.names())
        try:
            for tool in given():
                self._refuse_namespace(registry.add(tool).spec.namespace, plugin)
        except Exception as error:
            _take_back(registry, set(registry.names()) - before)
            self.leave_out(plugin, "register_tools", error)
            return
        new = set(registry.names()) - before
        trace("gathered", plugin, f"{len(new)} from register_tools")
        self._tools.setdefault(plugin, set()).update(new)
        self.undo_with(plugin, partial(_take_back, registry, new))

    def tools_of(self, plugin: str) -> list[str]:
        """The tools that a plugin brought."""
        return sorted(self._tools.get(plugin, ()))

    def _refuse_namespace(self, namespace: str, plugin: str) -> None:
        owner = self.owners.get(namespace, plugin)
        if owner != plugin:
            raise PluginError(
                f"plugin {plugin!r} brings a tool in namespace {namespace!r}, "
                f"which belongs to plugin {owner!r}"
            )

    def register_cli_commands(self, cli: typer.Typer) -> None:
        """Let plugins extend the command line, newest first; undo what a failing one added.

        Of two commands or groups with one name, the first added stays.
        """
        hook = self.hooks["register_cli_commands"]
        seen: set[str] = set()
        for impl in hook.run_order():
            commands, groups = len(cli.registered_commands), len(cli.registered_groups)
            [outcome] = hook.only([impl])(app=cli)
            if outcome.success:
                _keep_unseen(cli.registered_commands, commands, seen, name_of)
                _keep_unseen(cli.registered_groups, groups, seen, group_name)
                continue
            del cli.registered_commands[commands:], cli.registered_groups[groups:]
            if isinstance(outcome.error, NotAwaited):
                self.warn(
                    f"plugin {outcome.plugin_name!r} adds no commands: register_cli_commands must not "
                    "be async"
                )
            else:
                self.leave_out(outcome.plugin_name, "register_cli_commands", outcome.error)

    def register_models(self, models: Models) -> None:
        """Add the providers of models that plugins bring; one may not replace another."""
        from hookline.models.registry import provider_from

        def take(plugin: str, providers: list[ModelProvider]) -> None:
            taken = [each.name for each in providers if each.name in models.providers]
            if taken:
                raise PluginError(f"there is a provider of models {taken[0]!r} already")
            for provider in providers:
                models.register(provider)

        self.gather(
            "register_models",
            provider_from,
            lambda provider: provider.name,
            "provider of models",
            undo=lambda provider: models.remove(provider.name),
            take=take,
        )

    @cached_property
    def pack_specs(self) -> list[PackSpec]:
        """The policy packs that plugins bring."""
        from hookline.specs import PackSpec

        return self.gather("register_packs", PackSpec.model_validate, lambda s: s.id, "pack")


def name_of(command: CommandInfo) -> str:
    """The name of a command on the command line."""
    function = command.callback
    return command.name or (function.__name__.lower().replace("_", "-") if function else "")


def group_name(group: TyperInfo) -> str:
    """The name of a group on the command line; one without a name gets its own."""
    return str(group.name or id(group))


def _keep_unseen(added: list[Any], start: int, seen: set[str], name: Callable[[Any], str]) -> None:
    """Drop what was added from `start` on under a name that is taken."""
    named = {name(each): each for each in reversed(added[start:])}
    added[start:] = [each for at, each in reversed(named.items()) if at not in seen]
    seen.update(named)


def _given(outcome: Outcome) -> list[Any]:
    """The tools that a plugin gave, or its error."""
    if outcome.error is not None:
        raise outcome.error
    return _listed(outcome.result, "register_tools")


def _listed(given: Any, hook: str) -> list[Any]:
    """The value of a registration hook as a list."""
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        raise TypeError(f"{hook} must give a list, not {given!r}")
    return [*cast("Iterable[Any]", given)]


def _drop(kept: list[T], items: list[T], undo: Callable[[T], object] | None) -> None:
    gone = set(map(id, items))
    kept[:] = [item for item in kept if id(item) not in gone]
    if undo is not None:
        for item in items:
            undo(item)


def _take_back(registry: Registry, names: set[str]) -> None:
    for name in names:
        if name in registry:
            registry.remove(name)
