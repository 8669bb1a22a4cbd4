"""`hookline hooks`: the catalogue, as a table, one hook in detail, JSON or Markdown."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.markup import escape
from typer.core import TyperGroup

from hookline.hooks import Catalog, DeclarationError, HookSpec
from hookline.hooks.errors import suggestion
from hookline.hookspecs import CATALOG, Hooks
from hookline.observe.reference.markdown import describe, example_source, lifecycle, markdown

from .json_output import Json, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from hookline.plugins.trust import Trust
    from hookline.runtime.app import Hookline

HEADINGS = ("hook", "reduce", "order", "errors")
WIDE = 130
"""Columns that a table needs to be readable; a narrower terminal gets two lines for each hook."""


class ShowUnlessNamed(TyperGroup):
    """A group whose command `show` is meant wherever no other is named: `hookline hooks NAME`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `show` before an argument that is not a command of this group."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Show both forms."""
        formatter.write_usage(ctx.command_path, "[NAME] [OPTIONS]")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List what `show` takes, then the commands."""
        show = self.commands["show"]
        taken = [record for p in show.get_params(ctx) if (record := p.get_help_record(ctx))]
        for title in ("Arguments", "Options"):
            with formatter.section(title):
                formatter.write_dl([r for r in taken if r[0].startswith("-") == (title == "Options")])
        self.format_commands(ctx, formatter)


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline hooks`."""
    group = typer.Typer(cls=ShowUnlessNamed)
    cli.add_typer(
        group, name="hooks", help="Show every hook, one in detail, or check a plugin or hook file."
    )

    @group.command()
    def show(
        name: Annotated[
            str | None, typer.Argument(metavar="NAME", help="Show this hook in detail.")
        ] = None,
        family: Annotated[str | None, typer.Option(help="Only the hooks of this family.")] = None,
        as_json: Json = False,
        as_markdown: Annotated[
            bool, typer.Option("--markdown", help="Print the whole reference.")
        ] = False,
        turn: Annotated[bool, typer.Option("--turn", help="Show one turn, hook by hook.")] = False,
        source: Annotated[
            bool, typer.Option("--source", help="Print the code that dispatches the hook here.")
        ] = False,
    ) -> None:
        """Show every hook, or one in detail; the word `show` may be left out."""
        app.hook_files.load()
        if source:
            show_source(app.hooks, name)
            return
        show_hooks(app.hooks, name, family, as_json=as_json, as_markdown=as_markdown, turn=turn)

    @group.command()
    def check(
        file: Annotated[Path, typer.Argument(help="A plugin's module, or a hook file.")],
    ) -> None:
        """Import and check a plugin or a hook file without running an agent."""
        check_file(app.hooks, file, app.trust)

    @group.command()
    def stats(
        session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
        since: Annotated[
            str | None, typer.Option(help="Only from then on: 2026-01-31, 30m, 2h or 3d.")
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Count what hooks and plugins did: calls, time, errors."""
        from .why import show_stats

        show_stats(app, session, since, as_json=as_json)


def show_hooks(
    hooks: Hooks,
    name: str | None = None,
    family: str | None = None,
    *,
    as_json: bool = False,
    as_markdown: bool = False,
    turn: bool = False,
) -> None:
    """Show the catalogue in the form that was asked for."""
    catalog = hooks.catalog
    if turn:
        typer.echo(lifecycle(catalog))
    elif as_markdown:
        typer.echo(markdown(CATALOG), nl=False)
    elif as_json:
        told = [{**describe(s), "attached": attached(hooks, s)} for s in chosen(catalog, name, family)]
        print_json(told, indent=2)
    elif name is not None:
        detail(hooks, catalog[name])
    else:
        table(hooks, chosen(catalog, name, family))


def show_source(hooks: Hooks, name: str | None) -> None:
    """Print the generated code that dispatches a hook, with the names of its implementations."""
    if name is None:
        raise DeclarationError("--source needs the name of a hook: hookline hooks NAME --source")
    typer.echo(hooks[name].source(), nl=False)


def attached(hooks: Hooks, spec: HookSpec) -> list[str]:
    """Who is attached to a hook, in run order."""
    return [impl.name for impl in hooks[spec.name].run_order()]


def chosen(catalog: Catalog, name: str | None, family: str | None) -> list[HookSpec]:
    """The hooks that were asked for."""
    if name is not None:
        return [catalog[name]]
    families = catalog.families()
    if family is None:
        return [spec for specs in families.values() for spec in specs]
    if family not in families:
        known = ", ".join(families)
        raise DeclarationError(
            f"no family {family!r}{suggestion(family, families)} (there are: {known})"
        )
    return families[family]


def table(hooks: Hooks, specs: list[HookSpec]) -> None:
    """Print the hooks family by family, with the plugins and handlers that are attached."""
    from .console import GuardedConsole

    console = GuardedConsole(highlight=False)
    if not console.is_terminal:
        console.width = 240  # a program that reads it wants whole lines
    (grid if console.width >= WIDE else pairs)(console, hooks, specs)
    console.print(f"\n{len(specs)} hooks. One in detail: [bold]hookline hooks NAME[/]")


def grid(console: Console, hooks: Hooks, specs: list[HookSpec]) -> None:
    """Print a line for each hook."""
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, header_style="bold")
    for heading in HEADINGS:
        rows.add_column(heading, no_wrap=True)
    rows.add_column("attached", overflow="fold", style="green")
    rows.add_column("what it is for", overflow="fold")
    for number, (family, members) in enumerate(groupby(specs, key=lambda spec: spec.family)):
        if number:
            rows.add_row("")
        rows.add_row(f"[bold cyan]{family}[/]")
        for spec in members:
            by = escape(", ".join(attached(hooks, spec)))
            rows.add_row(spec.name, *rules(spec), by, spec.doc)
    console.print(rows)


def pairs(console: Console, hooks: Hooks, specs: list[HookSpec]) -> None:
    """Print two lines for each hook: its rules, and its purpose."""
    from rich.padding import Padding

    def line(*cells: str) -> str:
        name, reduce, order, errors = cells
        return f"{name:<22}  {reduce:<20}  {order:<6}  {errors}"

    console.print(line(*HEADINGS), style="bold")
    for family, members in groupby(specs, key=lambda spec: spec.family):
        console.print(f"\n[bold cyan]{family}[/]")
        for spec in members:
            console.print(line(spec.name, *rules(spec)), markup=False)
            by = escape(", ".join(attached(hooks, spec)))
            console.print(Padding(f"{spec.doc}{f' [green]({by})[/]' if by else ''}", (0, 0, 0, 4)))


def rules(spec: HookSpec) -> tuple[str, str, str]:
    """How results are combined, which handlers run first, and what an error does."""
    told = describe(spec)
    return told["reduce"], told["order"], told["errors"]


DETAILS = ("signature", "fires", "family", "reduce", "order", "errors", "mode", "timeout", "payload",
           "scope", "match", "excludes")  # fmt: skip


def detail(hooks: Hooks, spec: HookSpec) -> None:
    """Print one hook with everything that is declared of it, and an example."""
    from rich.syntax import Syntax
    from rich.table import Table

    from .console import GuardedConsole

    console = GuardedConsole()
    console.print(f"{spec.name}: {spec.doc}\n", style="bold", highlight=False, markup=False)
    told = describe(spec)
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column(overflow="fold")
    for name in DETAILS:
        value = told[name]
        if value:
            facts.add_row(
                name,
                escape(", ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)),
            )
    facts.add_row("attached", escape(", ".join(attached(hooks, spec)) or "nothing"))
    console.print(facts, highlight=False)
    console.print("\nAn example, as a method of a plugin:\n", style="bold")
    source = example_source(spec)
    if console.is_terminal:
        console.print(Syntax(source, "python", background_color="default", word_wrap=True))
    else:
        typer.echo(source)


def check_file(hooks: Hooks, file: Path, trust: Trust) -> None:
    """Check a plugin or hook file: a line for each problem, and exit code 2 if there are any."""
    from hookline.plugins.check import check

    from . import REFUSED

    found = check(file, hooks, trust)
    for problem in found.problems:
        typer.echo(str(problem), err=True)
    if found.problems:
        raise typer.Exit(REFUSED)
    typer.echo(f"{file}: {len(found.hooks)} fine: {', '.join(dict.fromkeys(found.hooks))}")
