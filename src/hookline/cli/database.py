"""`hookline db`: its commands, with their work in `db.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Owner = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="HOOKLINE_DB_OWNER_URL",
        help="Connect as this role, the owner of the tables, instead of [tape] url.",
    ),
]
Role = Annotated[str, typer.Argument(help="A role of the database.")]


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
    def migrate(url: Owner = None) -> None:
        """Make the tables, or bring them to the version of this program."""
        from .db import migrate_database

        migrate_database(app, url)

    @group.command()
    def roles(
        url: Owner = None,
        as_sql: Annotated[
            bool, typer.Option("--sql", help="Print the SQL that creates the two roles.")
        ] = False,
        owner: Annotated[str, typer.Option(help="For --sql: the owner.")] = "hookline_owner",
        role: Annotated[str, typer.Option(help="For --sql: the role that appends.")] = "hookline_app",
    ) -> None:
        """Show which roles own the tables and may append to them."""
        from .db import show_role_sql, show_roles

        if as_sql:
            show_role_sql(app, owner, role)
        else:
            show_roles(app, url)

    @group.command()
    def grant(role: Role, url: Owner = None) -> None:
        """Let a role append to the tapes, as the owner of the tables."""
        from .db import change_role

        change_role(app, role, url, admitted=True)

    @group.command()
    def revoke(role: Role, url: Owner = None) -> None:
        """Take all access to the tapes away from a role."""
        from .db import change_role

        change_role(app, role, url, admitted=False)

    @group.command()
    def verify(url: Owner = None) -> None:
        """Check that no entry in PostgreSQL was changed, by its hash."""
        from .db import verify_entries

        verify_entries(app, url)

    @group.command("copy")
    def copy_(
        source: Annotated[str, typer.Argument(help="'sqlite', 'postgres', an address or a file.")],
        target: Annotated[str, typer.Argument(help="The same, for where the sessions go.")],
    ) -> None:
        """Copy all sessions to another store and compare them."""
        from .db import copy_tapes

        copy_tapes(app, source, target)
