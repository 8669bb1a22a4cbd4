"""`hookline db`: the database of the tapes, its version, and moving tapes into it and out of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.errors import BadInput
from hookline.system.private_files import private_folder
from hookline.tape import SQLiteStore, TapeStore
from hookline.tape.copy import copy
from hookline.tape.open import FILE, open_postgres, open_sqlite
from hookline.tape.settings import SCHEMES, TapeSettings

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


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline db`."""
    group = typer.Typer(help="Manage the database of the tapes.", no_args_is_help=True)
    cli.add_typer(group, name="db")

    @group.command()
    def status() -> None:
        """Show where the tapes are, and the version of the tables."""
        show_status(app)

    @group.command()
    def migrate(url: Owner = None) -> None:
        """Make the tables, or bring them to the version of this program."""
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
        if as_sql:
            show_role_sql(app, owner, role)
        else:
            show_roles(app, url)

    @group.command()
    def grant(role: Role, url: Owner = None) -> None:
        """Let a role append to the tapes, as the owner of the tables."""
        change_role(app, role, url, admitted=True)

    @group.command()
    def revoke(role: Role, url: Owner = None) -> None:
        """Take all access to the tapes away from a role."""
        change_role(app, role, url, admitted=False)

    @group.command()
    def verify(url: Owner = None) -> None:
        """Check that no entry in PostgreSQL was changed, by its hash."""
        verify_entries(app, url)

    @group.command("copy")
    def copy_(
        source: Annotated[str, typer.Argument(help="'sqlite', 'postgres', an address or a file.")],
        target: Annotated[str, typer.Argument(help="The same, for where the sessions go.")],
    ) -> None:
        """Copy all sessions to another store and compare them."""
        copy_tapes(app, source, target)


def settings_of(app: Hookline) -> TapeSettings:
    """`[tape]` of the settings."""
    return app.config.settings("tape", TapeSettings)


def show_status(app: Hookline) -> None:
    """Where the tapes are, which version the tables have, and how much is in them."""
    settings = settings_of(app)
    if settings.url is None:
        file = app.home / FILE
        typer.echo(f"sqlite  {file}{'' if file.exists() else ' (made when first used)'}")
        return
    from hookline.tape.postgres.status import parts_of, status_of

    url = settings.url.get_secret_value()
    status = asyncio.run(status_of(url, settings.schema_))
    versions = asyncio.run(parts_of(url, settings.schema_, parts()))
    typer.echo(f"postgres  {status.place} schema {settings.schema_}")
    typer.echo(f"server    PostgreSQL {status.server}{', read-only' if status.read_only else ''}")
    typer.echo(f"version   {status.version.present} of {status.version.known}: {status.advice}")
    if status.home:
        typer.echo(f"home      {status.home}")
    if status.standing:
        typer.echo(f"role      {status.standing.summary}")
    typer.echo(f"sessions  {status.sessions}, with about {status.entries} entries")
    for name, version in versions.items():
        said = f"version {version.present} of {version.known}: {version.advice}"
        typer.echo(f"{name:<9} {said if version.present else 'no tables; made when first used'}")
    if any(version.present not in (0, version.known) for version in versions.values()):
        raise typer.Exit(1)
    if status.version.present != status.version.known:
        raise typer.Exit(1)


def parts() -> dict[str, list[str]]:
    """The tables besides the tape's, each with its migrations."""
    from hookline.observe.trace import postgres as trace
    from hookline.policy import postgres_approvals

    found = {
        postgres_approvals.PART: postgres_approvals.MIGRATIONS,
        trace.PART: trace.MIGRATIONS,
    }
    with suppress(ImportError):
        from hookline.ext.triggers import ledger
        from hookline.runtime.inbox.storage import postgres_tables

        found[ledger.PART] = postgres_tables(ledger.TABLE)
    try:
        from hookline.serve.cluster import schema
    except ImportError:  # a plain tape: those who run workers have what they need
        return found
    return {schema.PART: schema.steps(), **found}


def migrate_database(app: Hookline, url: str | None) -> None:
    """Bring the tables to the version of this program; as the owner, where `url` names it."""
    settings = settings_of(app)
    if settings.url is None and url is None:
        open_sqlite(app.home)
        typer.echo(f"{app.home / FILE} is up to date; a SQLite file is brought up to date when opened")
        return

    async def run() -> str:
        from hookline.tape.postgres.roles import secure
        from hookline.tape.postgres.schema import check, migrate, version_of
        from hookline.tape.postgres.store import PostgresStore, private

        # The owner is no home: the schema is claimed by the first home that opens it to append.
        if url is not None:
            store = await PostgresStore.open(url, schema=settings.schema_, migrate=True)
        else:
            store = await open_postgres(app.home, settings, migrate=True)
        try:
            async with private(store.database) as connection:
                for part, steps in parts().items():
                    await migrate(connection, store.schema, part, steps)
                    version = await version_of(connection, store.schema, part, steps)
                    check(version, store.schema, store.database.place)
                await secure(connection, store.schema)
        finally:
            await store.close()
        return store.place

    typer.echo(f"{asyncio.run(run())} is up to date")


def show_roles(app: Hookline, url: str | None) -> None:
    """Who owns the tables, who may append, and what the connecting role may do."""
    from hookline.tape.postgres.status import status_of

    settings = settings_of(app)
    status = asyncio.run(status_of(url or configured(app), settings.schema_))
    if status.standing is None:
        raise BadInput(f"schema {settings.schema_!r} has no tables yet; run `hookline db migrate`")
    typer.echo(f"owner     {status.standing.owner}")
    typer.echo(f"admitted  {', '.join(status.standing.members) or 'no other role'}")
    typer.echo(f"role      {status.standing.summary}")


def show_role_sql(app: Hookline, owner: str, role: str) -> None:
    """Print the statements with which an administrator separates the owner from the appending role."""
    try:
        from psycopg.conninfo import conninfo_to_dict

        from hookline.tape.postgres.roles import creation_sql
    except ImportError as error:
        raise BadInput(f"this needs psycopg: pip install 'hookline[postgres]' ({error})") from None
    settings = settings_of(app)
    if owner == role:
        raise BadInput("the owner and the role that appends must be two roles")
    url = settings.url.get_secret_value() if settings.url else ""
    database = str(conninfo_to_dict(url).get("dbname") or "hookline")
    typer.echo(f"-- As an administrator, by psql, in database {database}:")
    typer.echo(creation_sql(settings.schema_, database, owner, role))
    typer.echo("-- Then, as the owner:")
    typer.echo(f"--   hookline db migrate --url postgresql://{owner}@HOST/{database}")
    typer.echo(f"--   hookline db grant {role} --url postgresql://{owner}@HOST/{database}")
    typer.echo(f"-- And in the settings: [tape] url = postgresql://{role}:...@HOST/{database}")


def change_role(app: Hookline, role: str, url: str | None, *, admitted: bool) -> None:
    """Admit a role to the schema, or take everything in it away from that role."""
    schema = settings_of(app).schema_
    address = url or configured(app)

    async def run() -> bool:
        from hookline.tape.postgres.connection import Database
        from hookline.tape.postgres.roles import admit, expel
        from hookline.tape.postgres.schema import check, check_name, version_of
        from hookline.tape.postgres.store import private

        check_name(schema)
        database = Database(address)
        async with private(database) as connection:
            check(await version_of(connection, schema), schema, database.place)
            if not admitted:
                return await expel(connection, schema, role)
            await admit(connection, schema, role)
            return True

    if not asyncio.run(run()):
        raise BadInput(f"role {role!r} is not admitted to schema {schema!r}")
    done = "may append to" if admitted else "has no access any more to"
    typer.echo(f"{role} {done} schema {schema}")


def verify_entries(app: Hookline, url: str | None) -> None:
    """Recompute the hash chain of every session; exit with 1 at the first entry that breaks it."""
    from hookline.tape.postgres.status import broken_entry

    schema = settings_of(app).schema_
    broken = asyncio.run(broken_entry(url or configured(app), schema))
    if broken is not None:
        session, entry, place = broken
        typer.echo(
            f"hookline: entry {entry} of session {session or '(removed)'} (number {place + 1}) is not "
            "as it was appended: it or the one before it was changed, removed or put in",
            err=True,
        )
        raise typer.Exit(1)
    typer.echo("every entry is as it was appended")


def configured(app: Hookline) -> str:
    """The address that `[tape] url` names."""
    settings = settings_of(app)
    if settings.url is None:
        raise BadInput("no PostgreSQL is configured; set [tape] url, or give --url")
    return settings.url.get_secret_value()


def copy_tapes(app: Hookline, source: str, target: str) -> None:
    """Copy all sessions from one store to another, and compare them."""

    async def run() -> str:
        async with named(app, source, new=False) as first, named(app, target) as second:
            done = await copy(first, second, on_session=told)
        return (
            f"{done.sessions} sessions are the same in both: {done.added} entries copied, "
            f"{done.skipped} were there already"
        )

    def told(session_id: str, count: int) -> None:
        typer.echo(f"ok  {count:>8} entries  {session_id}")

    typer.echo(asyncio.run(run()))


@asynccontextmanager
async def named(app: Hookline, name: str, *, new: bool = True) -> AsyncGenerator[TapeStore]:
    """A store by its name on the command line: `sqlite`, `postgres`, an address or a file."""
    store = await _opened(app, name, new=new)
    try:
        yield store
    finally:
        await store.close()


async def _opened(app: Hookline, name: str, *, new: bool) -> TapeStore:
    settings = settings_of(app)
    if name.startswith(SCHEMES):
        given = {**settings.model_dump(by_alias=True, exclude_unset=True), "url": name}
        return await open_postgres(app.home, TapeSettings.model_validate(given))
    if name == "postgres":
        if settings.url is None:
            raise BadInput("no PostgreSQL is configured; set [tape] url, or name its address")
        return await open_postgres(app.home, settings)
    file = app.home / FILE if name == "sqlite" else Path(name)
    if not new and not file.exists():
        raise BadInput(f"there is no tape {file}; name 'sqlite', 'postgres', an address or a file")
    private_folder(file.parent)
    return SQLiteStore(file, lock_timeout=5.0)
