"""`hookline plugins`: which there are, what state they are in, switching them, and new ones."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.errors import BadInput, PluginError
from hookline.hooks.errors import suggestion
from hookline.plugins.candidate import strings
from hookline.plugins.contents import Contents, changed_dependency_files, contents_of
from hookline.plugins.lockfile import LOCK, Pin, PluginLock, difference
from hookline.plugins.packages import entries
from hookline.text.printable import printable

from . import FAILED
from .json_output import Json, print_json

if TYPE_CHECKING:
    from hookline.plugins.state import PluginState
    from hookline.runtime.app import Hookline

Name = Annotated[str, typer.Argument(help="The plugin.")]


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline plugins`."""
    group = typer.Typer(help="Show, enable, disable, verify and create plugins.", no_args_is_help=True)
    cli.add_typer(group, name="plugins")

    @group.command("list")
    def list_(
        as_json: Json = False,
    ) -> None:
        """List every plugin with its state, in the order of loading."""
        list_plugins(app, as_json=as_json)

    @group.command()
    def show(name: Name) -> None:
        """Show one plugin: its manifest, its hooks, its problems."""
        show_plugin(app, name)

    @group.command()
    def enable(name: Name) -> None:
        """Load a plugin again that was disabled."""
        switch(app, name, on=True)

    @group.command()
    def disable(name: Name) -> None:
        """Leave a plugin out from now on."""
        switch(app, name, on=False)

    @group.command()
    def verify(
        name: Annotated[str | None, typer.Argument(help="Only this plugin or package.")] = None,
    ) -> None:
        """Compare every file of the installed plugins with the lock file."""
        verify_plugins(app, name)

    @group.command()
    def lock(
        name: Annotated[str | None, typer.Argument(help="Only this plugin or package.")] = None,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    ) -> None:
        """Show what changed in installed plugins, and pin them."""
        lock_plugins(app, name, yes=yes)

    @group.command()
    def new(
        name: Annotated[str, typer.Argument(help="What the plugin is to be called.")],
        folder: Annotated[
            Path | None, typer.Argument(help="Where to write it; ./hookline-NAME unless said.")
        ] = None,
    ) -> None:
        """Write a new package with a working plugin."""
        write_new(name, folder)


def every_state(app: Hookline) -> list[PluginState]:
    """The plugins, then the hook files, after asking for everything that they bring."""
    from hookline.plugins.state import PluginState

    app.hook_files.load()
    brought(app)
    files = [
        PluginState(f.name, "", None, [], str(f.source.path), "loaded") for f in app.hook_files.files
    ]
    inert = [
        PluginState(source.path.name, "", None, [], str(source.path), "not trusted", "hookline trust")
        for source in app.hook_files.inert()
    ]
    states = app.plugins.states()
    failed = [state for state in states if state.state == "failed"]
    return [s for s in states if s not in failed] + files + inert + failed


def brought(app: Hookline) -> dict[str, list[str]]:
    """The names of everything that plugins provide. A plugin that fails is then among the failures."""
    from .chat.commands import plugin_commands

    app.plugins.find_gone()
    app.models  # noqa: B018  (asks for providers)
    return {
        "tools": app.tools.names(),
        "stores": stores_of(app),
        "packs": [spec.id for spec in app.plugins.pack_specs],
        "commands": [*plugin_commands(app)[0]],
    }


def stores_of(app: Hookline) -> list[str]:
    """The names of the stores, if the extension that has them is loaded."""
    try:
        from hookline.ext.stores import Stores
        from hookline.ext.stores.plugin import StoresPlugin
    except ImportError:
        return []
    return Stores.of(app).names() if StoresPlugin in app.extensions else []


def list_plugins(app: Hookline, *, as_json: bool = False) -> None:
    """Print a line for each plugin."""
    states = every_state(app)
    if as_json:
        print_json([asdict(state) for state in states], indent=2)
        return
    rows = [("plugin", "version", "order", "provides", "state", "from")]
    rows += [
        (
            state.name,
            state.version or "-",
            "-" if state.order is None else str(state.order),
            ", ".join(state.provides) or "-",
            state.state,
            state.source,
        )
        for state in states
    ]
    widths = [max(len(row[n]) for row in rows) for n in range(5)]
    reasons = ["", *(state.reason for state in states)]
    for row, reason in zip(rows, reasons, strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        typer.echo("  ".join([*cells, row[5]]).rstrip())
        if reason:
            typer.echo(f"    {reason}")
    for news in app.plugins.news:
        typer.echo(f"new: {news}", err=True)
    for warning in app.plugins.warnings:
        typer.echo(f"warning: {warning}", err=True)


def show_plugin(app: Hookline, name: str) -> None:
    """Print all that is known of one plugin."""
    found = [state for state in every_state(app) if state.name == name]
    if not found:
        raise unknown(app, name)
    for state in found:
        typer.echo(f"{state.name} {state.version}".rstrip())
        typer.echo(f"  state       {state.state}" + (f": {state.reason}" if state.reason else ""))
        typer.echo(f"  from        {state.source}")
    candidate = app.plugins.candidate(name)
    if candidate is not None:
        typer.echo(f"  imports     {candidate.entry.value}")
        said = candidate.said or {"manifest": "none; it is imported whenever hookline starts"}
        if candidate.placed is not None:
            said = {**said, "order": f"{candidate.placed} (from [plugins.order])"}
        for field, value in said.items():
            if field not in ("name", "version"):
                shown = ", ".join(strings(value)) if isinstance(value, list) else str(value)
                typer.echo(f"  {field:<11} {shown or '-'}")
    hooks = [hook for hook, plugins in app.hooks.report().items() if name in plugins]
    typer.echo(f"  hooks       {', '.join(hooks) or '-'}")
    tools = app.plugins.tools_of(name)
    typer.echo(f"  tools       {', '.join(tools) or '-'}")


def switch(app: Hookline, name: str, *, on: bool) -> None:
    """Write into the user's settings that a plugin is left out, or is not any more."""
    from hookline.config.config import FILE
    from hookline.config.layers import find, read_file
    from hookline.config.writer import write

    path = app.config.home / FILE
    disabled = [str(each) for each in find(read_file(path) or {}, "plugins.disabled", [])]
    if app.plugins.candidate(name) is None and not (on and name in disabled):
        raise unknown(app, name, only_packages=True)
    if on == (name not in disabled):
        state = "enabled" if on else "disabled"
        elsewhere = app.config.source("plugins.disabled")
        if on and name in app.plugins.disabled:
            raise PluginError(f"plugin {name!r} is disabled in {elsewhere}; change it there")
        typer.echo(f"{name} is {state} already")
        return
    after = [each for each in disabled if each != name] if on else [*disabled, name]
    write(path, {"plugins": {"disabled": after}})
    typer.echo(f"{name} is {'enabled' if on else 'disabled'} ({path})")


def unknown(app: Hookline, name: str, *, only_packages: bool = False) -> PluginError:
    """The error for a name that no plugin has."""
    names = [s.name for s in app.plugins.states() if not only_packages or s.order is not None]
    if only_packages and app.hooks.pm.has_plugin(name):
        return PluginError(f"plugin {name!r} comes with Hookline and cannot be switched off")
    known = f" (there are: {', '.join(names)})" if names else "; no package brings one"
    return PluginError(f"no plugin {name!r}{suggestion(name, names)}{known}")


def write_new(name: str, folder: Path | None) -> None:
    """Write a new plugin and say what to do with it."""
    from hookline.plugins.new import new_plugin

    target = new_plugin(name, folder)
    typer.echo(f"wrote {target}")
    typer.echo(f"next: cd {target} && pip install -e '.[test]' && pytest")


def installed(lock: PluginLock, name: str | None) -> dict[str, Contents]:
    """The plugin packages that are installed, all or one; one may be named by its plugin."""
    groups = lock.groups(entries())
    if name is not None:
        groups = {
            package: group
            for package, group in groups.items()
            if name == package or name in [entry.name for entry in group]
        }
        if not groups and name not in lock.pins():
            raise BadInput(
                f"no installed package brings a plugin {name!r}; see `hookline plugins list`"
            )
    return {package: contents_of(group) for package, group in groups.items()}


def verify_plugins(app: Hookline, name: str | None) -> None:
    """Read every file of every plugin and compare it with the lock; exit with 1 on a difference."""
    lock = app.plugins.lock()
    pins, found = lock.pins(), installed(lock, name)
    wrong = False
    for package, contents in found.items():
        lines = contents.faults
        if package in pins:
            lines = [*difference(pins[package], Pin.of(contents)), *lines]
        else:
            lines = [f"not in {lock.home / LOCK}", *lines]
        damaged = changed_dependency_files(contents.dependencies)
        lines += [f"{path} is not what RECORD says" for path in damaged]
        told = f"{len(contents.files)} files, {contents.digest[:16]}"
        print_mark("!!" if lines else "ok", f"{package} {contents.version}: {told}")
        for line in lines:
            typer.echo(f"    {printable(line)}")
        wrong = wrong or bool(lines)
    for package in sorted(set(pins) - set(found)) if name is None else ():
        print_mark("--", f"{package} {pins[package].version}: pinned, and not installed")
    if not found and not pins:
        typer.echo("no package brings a plugin")
    if wrong:
        raise typer.Exit(FAILED)


def lock_plugins(app: Hookline, name: str | None, *, yes: bool) -> None:
    """Show what changed since plugins were pinned, and pin them as they are."""
    lock = app.plugins.lock()
    pins, found = lock.pins(), installed(lock, name)
    after = dict(pins)
    for package, contents in found.items():
        pin = Pin.of(contents)
        lines = difference(pins.get(package), pin)
        if not lines:
            continue
        after[package] = pin
        print_mark("++" if package not in pins else "~~", f"{package} {contents.version}")
        for line in [*lines, *contents.faults]:
            typer.echo(f"    {printable(line)}")
    for package in sorted(set(pins) - set(found)):
        if name in (None, package):
            del after[package]
            print_mark("--", f"{package} {pins[package].version} is not installed any more")
    if after == pins:
        typer.echo(f"{lock.home / LOCK} is up to date")
        return
    if not yes and not typer.confirm("Pin these plugins as they are?", default=False):
        raise typer.Exit(FAILED)
    lock.write(after)
    typer.echo(f"wrote {lock.home / LOCK}")


def print_mark(mark: str, text: str) -> None:
    """One line about a package."""
    typer.echo(f"{mark}  {printable(text)}")
