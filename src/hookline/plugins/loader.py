"""Loading: which plugins take part, in what order, and how far each of them came.

Manifests are read first; they decide which plugins are imported, when and in which order. The plugins
that come with Hookline pass through the same steps as those of other packages, and load before them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hookline.errors import PluginError
from hookline.hooks import HooklineError

from .arrangement import arranged, owners, tied
from .candidate import Candidate, candidates
from .declared_tools import declared_so_far, note_declared
from .failure import PluginFailure
from .packages import GROUP, EntryPoint, entries, made, own_entries
from .registrations import Registrations
from .state import PluginState
from .trace import trace

if TYPE_CHECKING:
    from typing import Protocol

    from hookline.config.user_choices import UserChoices
    from hookline.hookspecs import Hooks
    from hookline.tools.tool import Tool

    from .lockfile import PluginLock

    class PluginHost(Protocol):
        """What loading needs of the app."""

        hooks: Hooks
        extensions: dict[type, Any]


class Plugins(Registrations):
    """The plugins of one app."""

    def __init__(
        self,
        app: PluginHost,
        settings: Callable[[], UserChoices],
        lock: Callable[[], PluginLock],
        without: Callable[[], frozenset[str]],
        declare: Callable[[Mapping[str, str]], object],
    ) -> None:
        super().__init__(app.hooks)
        self._app = app
        self._settings = settings
        self.lock = lock
        """Reads what plugins of packages are compared with."""
        self._without = without
        self._declare = declare
        self._refused: set[str] = set()
        """The plugins that the lock file refused."""
        self.disabled: frozenset[str] = frozenset()
        self._shipped: list[str] = []
        self._found: dict[str, Candidate] = {}
        self._loaded: dict[str, object] = {}
        """The plugins that are imported, by name."""
        self.sections: dict[str, str] = {}
        """The sections of the settings that plugins read, with their forms."""
        self.missing: list[str] = []
        """Plugins that Hookline declares, and whose files were removed."""
        self._out: set[str] = set()
        """Those of them that were left out."""
        self._looked = False
        """Whether installed packages were looked for, and not yet compared with the lock file."""
        self._put_off = False
        self._unread = False
        """The settings could not be read, so no plugin was loaded yet."""
        self.gone: dict[str, str] = {}
        """Required plugins that are not installed any more, each with the package that had it."""

    # --- loading ------------------------------------------------------------------------------

    def add(self, name: str, plugin: object) -> None:
        """Add a plugin that has no entry point."""
        self.hooks.add(plugin, name=name)
        self._shipped.append(name)
        trace("added", name)

    def load(
        self, *, packages: bool = True, only_cli: bool = False, own: Collection[str] | None = None
    ) -> None:
        """Load the plugins that come with Hookline, then those of installed packages.

        With `only_cli`, those alone that may add commands to the command line; `finish` loads the rest.
        `own` names the plugins that come with Hookline and take part; by default, all do.
        """
        self._looked = packages
        installed = entries() if packages else []
        found, wrong = candidates([*self._own_entries(), *installed])
        self._found = {c.name: c for c in found}
        refused: dict[str, PluginError] | None = None
        try:
            if installed or not only_cli:
                refused = self._read_settings(installed)
        except HooklineError:
            if installed and not only_cli:
                raise
        if refused is None and only_cli:  # help is shown whatever the settings are like
            self._unread = True
            self._load_early([c for c in found if c.own])
            return
        refused = refused or {}  # the next reader of the settings reports the error
        self._refused = set(refused)
        without = self._without()
        for name, error in wrong:
            if name not in without:
                self.failed(name, "finding", error)
        for name, error in refused.items():
            if name not in without:
                self.leave_out(name, "checking the lock file", error)
        out = self.disabled | without | refused.keys()
        usable = [c for c in found if c.name not in out]
        if own is not None:
            usable = [c for c in usable if not c.own or c.name in own]
        for candidate in found:
            trace("found", candidate.name, f"in {candidate.entry}" + self._off_note(candidate))
        self._put_off = only_cli
        if only_cli:
            self._load_early(usable)
        else:
            self._load_all(usable)

    def _own_entries(self) -> list[EntryPoint]:
        """Hookline's own entry points, without those whose files were removed."""
        own = own_entries()
        if not own:
            raise PluginError(
                "Hookline's own plugins are not found: it runs from files that were not installed; "
                "run `pip install hookline`, or `pip install -e .` in a checkout"
            )
        here = {entry.name for entry in own if entry.group == GROUP and entry.is_on_disk}
        self.missing = sorted({entry.name for entry in own} - here)
        return [entry for entry in own if entry.name in here]

    def _read_settings(self, installed: list[EntryPoint]) -> dict[str, PluginError]:
        """Apply what the settings and the lock file say; return the plugins that the latter refuses."""
        settings = self._settings()
        self.disabled = frozenset(settings.disabled_plugins())
        for name, order in settings.plugin_orders().items():
            if name in self._found:
                self._found[name].placed = order
            else:
                self.warn(f"[plugins.order] names {name!r}, and no installed plugin has this name")
        wanted = [entry for entry in installed if entry.name not in self.disabled]
        lock = self.lock() if wanted else None
        refused = lock.check(wanted) if lock is not None else {}
        for text in lock.news if lock is not None else ():
            self.announce(text)
        return refused

    def finish(self) -> None:
        """Load the deferred plugins; nothing if all are loaded."""
        if self._unread:
            self._unread = False
            self.load(packages=self._looked)
        elif self._put_off:
            self._put_off = False
            out = self.disabled | self._without() | self._out
            self._load_all([c for c in self._found.values() if c.name not in out])

    def requires_itself(self, name: str) -> bool:
        """Whether a plugin's manifest says that nothing may run without it.

        The lock file remembers it for a plugin whose manifest cannot be read, or must not run.
        """
        if name in self.gone:
            return True
        candidate = self._found.get(name)
        if candidate is None or name in self.disabled:
            return False
        if name not in self._refused and candidate.error is None:
            return candidate.required
        lock = self.lock()
        pin = lock.pins().get(candidate.entry.distribution)
        return pin is not None and name in pin.required

    def find_gone(self) -> None:
        """Report required plugins of the lock file that are not installed any more, each once."""
        lock = self.lock() if self._looked else None
        self._looked = False
        for package, pin in lock.pins().items() if lock is not None else ():
            for name in pin.required:
                if not {name} & {*self._found, *self.disabled, *self.gone}:
                    self.gone[name] = package
                    gone = PluginError(f"{package} {pin.version}, which brings it, is not installed")
                    self.failed(name, "finding", gone)

    def _note_required(self, ordered: list[Candidate]) -> None:
        """Remember who is required, so that this holds when a manifest cannot be read any more."""
        names: dict[str, set[str]] = {}
        for candidate in ordered:
            if candidate.required and not candidate.own:
                names.setdefault(candidate.entry.distribution, set()).add(candidate.name)
        lock = self.lock() if names else None
        if lock is not None:
            try:
                lock.note_required(names)
            except PluginError as error:
                self.warn(f"that {', '.join(names)} is required cannot be remembered: {error}")

    def _off_note(self, candidate: Candidate) -> str:
        return ", disabled" if candidate.name in self.disabled else ""

    def _load_early(self, usable: list[Candidate]) -> None:
        """The plugins that may have commands, and their requirements."""
        fitting = {c.name: c for c in usable if c.in_order}
        wanted: dict[str, Candidate] = {}
        pending = [c for c in fitting.values() if c.has_cli]
        while pending:
            candidate = pending.pop()
            if candidate.name not in wanted:
                wanted[candidate.name] = candidate
                pending += [fitting[name] for name in candidate.requires if name in fitting]
        for candidate in arranged(fitting.values(), self._shipped)[0]:
            if candidate.name in wanted:
                self._load(candidate)

    def _load_all(self, usable: list[Candidate]) -> None:
        """Every plugin, in order; one that is already loaded moves to its place."""
        ordered = self._arrange([c for c in usable if c.name not in self._out and self._fits(c)])
        for order, names in tied(ordered):
            self.warn(
                f"plugins {' and '.join(map(repr, names))} state the same order {order}; "
                "they run by name, and another order in a manifest decides it"
            )
        self._note_required(ordered)
        self.sections = {at: form for c in ordered for at, form in c.settings.items()}
        self._declare(self.sections)
        for candidate in ordered:
            if candidate.name not in self._loaded:
                self._load(candidate)
            elif not candidate.own:
                self._place(candidate)

    def _place(self, candidate: Candidate) -> None:
        """Move a plugin that was loaded early behind its predecessors."""
        self.hooks.remove(candidate.name)
        try:
            self.hooks.add(self._loaded[candidate.name], name=candidate.name)
        except Exception as error:  # as when the hooks that it is on went with another plugin
            self.leave_out(candidate.name, "loading", error)
            return
        trace("placed", candidate.name, f"order={candidate.order}")

    def _fits(self, candidate: Candidate) -> bool:
        try:  # an own manifest is checked by the tests: pydantic would cost more than all of them
            manifest = candidate.said if candidate.own and not candidate.error else candidate.manifest
        except Exception as error:
            self.leave_out(candidate.name, "reading the manifest", error)
            return False
        trace("manifest", candidate.name, repr(manifest) if manifest else "none")
        return True

    def _arrange(self, usable: list[Candidate]) -> list[Candidate]:
        """The plugins in order, without those whose requirements or namespaces conflict."""
        while True:
            ordered, refused = arranged(usable, self._shipped)
            self.owners, clashing = owners(ordered)
            for candidate, error in refused:
                self.leave_out(candidate.name, "ordering", error)
            for candidate, error in clashing:
                self.leave_out(candidate.name, "claiming namespaces", error)
            if not clashing:
                return ordered
            gone = {candidate.name for candidate, _ in (*refused, *clashing)}
            usable = [c for c in usable if c.name not in gone]

    def _load(self, candidate: Candidate) -> None:
        name, hooks = candidate.name, self.hooks
        missing = [r for r in candidate.requires if not hooks.pm.has_plugin(r)]
        if missing:
            error = PluginError(f"it requires plugin {missing[0]!r}, which could not be loaded")
            self.leave_out(name, "loading", error)
            return
        trace("importing", name, candidate.entry.value)
        tools = declared_so_far()
        try:
            self.undo_with(name, partial(hooks.remove_owned, name))
            with hooks.owner(name):
                plugin = made(candidate.entry.load(), self._app)
                hooks.add(plugin, name=name)
        except (Exception, SystemExit) as error:
            self.leave_out(name, "loading", error)
            return
        note_declared(candidate.entry.module, tools)
        self._loaded[name] = plugin
        self._app.extensions[type(plugin)] = plugin
        trace("loaded", name, f"order={candidate.order}")
        if candidate.said is not None and not candidate.has_cli:
            self._expect_no_commands(name)

    def declared_tools(self) -> dict[str, list[Tool]]:
        """The tools that each plugin declared with `@tool`; every plugin is there, in its order."""
        from hookline.tools.registry import REGISTRY

        plugins = {
            name: plugin for name, plugin in self.hooks.pm.list_name_plugin() if plugin is not None
        }
        found: dict[str, list[Tool]] = {name: [] for name in plugins}
        for name in self._loaded:
            entry = self._found[name].entry
            found[name] = [] if entry.own else REGISTRY.brought_by(entry.module, entry.package)
        claimed = {id(tool) for tools in found.values() for tool in tools}
        for name in plugins.keys() - self._loaded.keys() - {*self._shipped}:
            plugin = plugins[name]
            module = getattr(plugin, "__name__", None) or type(plugin).__module__
            found[name] = [t for t in REGISTRY.brought_by(module) if id(t) not in claimed]
        return found

    def _expect_no_commands(self, name: str) -> None:
        implementations = self.hooks["register_cli_commands"].implementations
        if any(impl.name == name for impl in implementations):
            self.warn(
                f"plugin {name!r} has commands for the command line, which only shows those of plugins "
                "that say 'cli' in `provides` of their manifest"
            )

    def take_out(self, plugin: str) -> None:
        """Take a plugin out, with all that it brought."""
        super().take_out(plugin)
        self._app.extensions.pop(type(self._loaded.pop(plugin, None)), None)
        candidate = self._found.get(plugin)
        if candidate is not None:
            self._out.add(plugin)
            self._detach_handlers_of(candidate.entry.module)

    def _detach_handlers_of(self, module: str) -> None:
        """Handlers that a plugin attached later than when it was loaded, as in its startup."""
        hooks = self.hooks
        with hooks.lock:
            for hook in map(hooks.__getitem__, hooks.catalog):
                for key in (None, *hook.scope_keys()):
                    hook.detach(
                        lambda impl: impl.plugin is not None or not _is_from(impl.function, module), key
                    )

    # --- looking ------------------------------------------------------------------------------

    def states(self) -> list[PluginState]:
        """Every plugin that there is, in the order in which they load, then those left out."""
        plugins = self.hooks.pm.list_name_plugin()
        present = [name for name, plugin in plugins if plugin is not None]
        waiting = [c for n, c in sorted(self._found.items()) if n not in present and n not in self._out]
        return [
            *map(self._present, present),
            *(PluginState.of(c, self._absent_state(c)) for c in waiting),
            *(PluginState(n, "", None, [], GROUP, "not installed") for n in self.missing),
            *map(self._failed, self.failures),
        ]

    def _absent_state(self, candidate: Candidate) -> str:
        if candidate.name in self.disabled:
            return "disabled"
        return "left out" if candidate.name in self._without() else "not loaded"

    def _present(self, name: str) -> PluginState:
        if name in self._found:
            return PluginState.of(self._found[name], "loaded")
        source = "hookline" if name in self._shipped else "added"
        return PluginState(name, "", None, [], source, "loaded")

    def _failed(self, failure: PluginFailure) -> PluginState:
        candidate = self._found.get(failure.plugin)
        reason = str(failure).partition(": ")[2]
        if candidate is not None:
            return PluginState.of(candidate, "failed", reason)
        return PluginState(failure.plugin, "", None, [], "added", "failed", reason)

    def missing_note(self) -> str:
        """What to say of plugins of Hookline that are not on disk, after a name that is unknown."""
        return f" (not installed: {', '.join(self.missing)})" if self.missing else ""

    def check_loaded(self, name: str, what: str) -> None:
        """Raise `PluginError` unless the plugin is loaded that `what` needs."""
        if name not in self._loaded:
            failed = next((str(f.error) for f in self.failures if f.plugin == name), "")
            why = "disabled" if name in self.disabled else failed or "not installed"
            raise PluginError(f"{what} needs the plugin {name!r}: {why}")

    def candidate(self, name: str) -> Candidate | None:
        """The plugin of a package, by name."""
        return self._found.get(name)


def _is_from(function: Any, module: str) -> bool:
    origin = str(getattr(function, "__module__", ""))
    return origin == module or origin.startswith(f"{module}.")
