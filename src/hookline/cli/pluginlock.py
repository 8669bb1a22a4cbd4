"""`hookline plugins verify` and `lock`: compare installed plugins with the lock file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hookline.errors import BadInput
from hookline.plugins.contents import Contents, changed_dependency_files, contents_of
from hookline.plugins.lockfile import LOCK, Pin, PluginLock, difference
from hookline.plugins.packages import entries
from hookline.text.printable import printable

from . import FAILED

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline


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
    lock = app.plugin_lock()
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
        show("!!" if lines else "ok", f"{package} {contents.version}: {told}")
        for line in lines:
            typer.echo(f"    {printable(line)}")
        wrong = wrong or bool(lines)
    for package in sorted(set(pins) - set(found)) if name is None else ():
        show("--", f"{package} {pins[package].version}: pinned, and not installed")
    if not found and not pins:
        typer.echo("no package brings a plugin")
    if wrong:
        raise typer.Exit(FAILED)


def lock_plugins(app: Hookline, name: str | None, *, yes: bool) -> None:
    """Show what changed since plugins were pinned, and pin them as they are."""
    lock = app.plugin_lock()
    pins, found = lock.pins(), installed(lock, name)
    after = dict(pins)
    for package, contents in found.items():
        pin = Pin.of(contents)
        lines = difference(pins.get(package), pin)
        if not lines:
            continue
        after[package] = pin
        show("++" if package not in pins else "~~", f"{package} {contents.version}")
        for line in [*lines, *contents.faults]:
            typer.echo(f"    {printable(line)}")
    for package in sorted(set(pins) - set(found)):
        if name in (None, package):
            del after[package]
            show("--", f"{package} {pins[package].version} is not installed any more")
    if after == pins:
        typer.echo(f"{lock.home / LOCK} is up to date")
        return
    if not yes and not typer.confirm("Pin these plugins as they are?", default=False):
        raise typer.Exit(FAILED)
    lock.write(after)
    typer.echo(f"wrote {lock.home / LOCK}")


def show(mark: str, text: str) -> None:
    """One line about a package."""
    typer.echo(f"{mark}  {printable(text)}")
