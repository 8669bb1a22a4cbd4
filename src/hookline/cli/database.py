"""`hookline db`: its commands, with their work in `db.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hookline.app import Hookline


def add_db(cli: typer.Typer, app: Hookline) -> None:
    """`hookline db`."""
    group = typer.Typer(help="Look after the database of the tapes.", no_args_is_help=True)
    cli.add_typer(group, name="db")

    @group.command()
    def status() -> None:
        """Show where the tapes are, and the version of the tables."""
        from .db import show_status

        show_status(app)

    @group.command()
    def migrate() -> None:
        """Make the tables, or bring them to the version of this program."""
        from .db import migrate_database

        migrate_database(app)

    @group.command("copy")
    def copy_(
        source: Annotated[str, typer.Argument(help="'sqlite', 'postgres', an address or a file.")],
        target: Annotated[str, typer.Argument(help="The same, for where the sessions go.")],
    ) -> None:
        """Copy all sessions to another store and compare them; may be repeated."""
        from .db import copy_tapes

        copy_tapes(app, source, target)
