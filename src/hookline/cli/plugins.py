"""`hookline plugins`: which there are, what state they are in, switching them, and new ones."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hookline.errors import PluginError
from hookline.hooks.errors import suggestion
from hookline.plugins.candidate import strings

from .json_output import print_json

if TYPE_CHECKING:
    from hookline.plugins.loader import PluginState
    from hookline.runtime.app import Hookline


def every_state(app: Hookline) -> list[PluginState]:
    """The plugins, then the hook files, after asking for everything that they bring."""
    from hookline.plugins.loader import PluginState

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
