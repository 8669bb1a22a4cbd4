"""`hookline hooks`: the catalogue, as a table, one hook in detail, JSON or Markdown."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hookline.catalog import CATALOG
from hookline.catalog.reference import describe, example_source, lifecycle, markdown
from hookline.hooks import Catalog, DeclarationError, HookSpec
from hookline.hooks.errors import suggestion


def show(
    name: Annotated[str | None, typer.Argument(help="Show this hook in detail.")] = None,
    family: Annotated[str | None, typer.Option(help="Only the hooks of this family.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the whole reference.")] = False,
    turn: Annotated[bool, typer.Option("--turn", help="Show one turn, hook by hook.")] = False,
) -> None:
    """Show every hook in the order a turn meets them: what becomes of results, who runs first, what an error does."""
    if turn:
        typer.echo(lifecycle(CATALOG))
    elif as_markdown:
        typer.echo(markdown(CATALOG), nl=False)
    elif as_json:
        typer.echo(json.dumps([describe(spec) for spec in chosen(CATALOG, name, family)], indent=2))
    elif name is not None:
        detail(CATALOG[name])
    else:
        table(chosen(CATALOG, name, family))


def chosen(catalog: Catalog, name: str | None, family: str | None) -> list[HookSpec]:
    """The hooks that were asked for."""
    if name is not None:
        return [catalog[name]]
    families = catalog.families()
    if family is None:
        return [spec for specs in families.values() for spec in specs]
    if family not in families:
        known = ", ".join(families)
        raise DeclarationError(f"no family {family!r}{suggestion(family, families)} (there are: {known})")
    return families[family]


def table(specs: list[HookSpec]) -> None:
    """Print the hooks, family by family."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("hook", "reduce", "order", "errors"):
        grid.add_column(heading, no_wrap=True)
    grid.add_column("what it is for", overflow="fold")
    family = ""
    for spec in specs:
        if spec.family != family:
            family = spec.family
            grid.add_row(*([] if grid.row_count == 0 else [""]))
            grid.add_row(f"[bold cyan]{family}[/]")
        told = describe(spec)
        grid.add_row(spec.name, told["reduce"], told["order"], told["errors"], spec.doc)
    console = Console()
    console.print(grid)
    console.print(f"\n{len(specs)} hooks. One in detail: [bold]hookline hooks NAME[/]")


def detail(spec: HookSpec) -> None:
    """Print one hook with everything that is declared of it, and an example."""
    from rich.console import Console
    from rich.syntax import Syntax

    console = Console()
    console.print(f"[bold]{spec.name}[/] — {spec.doc}\n", highlight=False)
    for label, value in describe(spec).items():
        if label not in ("name", "doc") and value not in (None, [], ""):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            console.print(f"  [cyan]{label:<10}[/] {shown}", highlight=False, markup=True)
    console.print("\n[bold]Example[/]\n")
    console.print(Syntax(example_source(spec.name), "python", background_color="default"))
