"""`hookline db`: the database of the tapes, its version, and moving tapes into it and out of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hookline.tape import SQLiteStore, TapeStore
from hookline.tape.copying import copy
from hookline.tape.opening import FILE, open_postgres, open_sqlite
from hookline.tape.settings import SCHEMES, TapeSettings

from .run import BadInput

if TYPE_CHECKING:
    from hookline.app import Hookline


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
    from hookline.tape.postgres_status import parts_of, status_of

    url = settings.url.get_secret_value()
    status = asyncio.run(status_of(url, settings.schema_))
    versions = asyncio.run(parts_of(url, settings.schema_, parts()))
    typer.echo(f"postgres  {status.place} schema {settings.schema_}")
    typer.echo(f"server    PostgreSQL {status.server}{', read-only' if status.read_only else ''}")
    typer.echo(f"version   {status.version.present} of {status.version.known}: {status.advice}")
    if status.home:
        typer.echo(f"home      {status.home}")
    typer.echo(f"sessions  {status.sessions}, with about {status.entries} entries")
    for name, version in versions.items():
        said = f"version {version.present} of {version.known}: {version.advice}"
        typer.echo(f"{name:<9} {said if version.present else 'no tables; made when first used'}")
    if any(version.present not in (0, version.known) for version in versions.values()):
        raise typer.Exit(1)
    if status.version.present != status.version.known:
        raise typer.Exit(1)


def parts() -> dict[str, list[str]]:
    """The tables beside the tape's, each with what leads from one version to the next."""
    from hookline.policy import postgres_approvals
    from hookline.trace import postgres as trace
    from hookline.triggers import postgres_ledger

    found = {
        postgres_approvals.PART: postgres_approvals.MIGRATIONS,
        postgres_ledger.PART: postgres_ledger.MIGRATIONS,
        trace.PART: trace.MIGRATIONS,
    }
    try:
        from hookline.cluster import schema
    except ImportError:  # a plain tape: whoever runs workers has what they need
        return found
    return {schema.PART: schema.steps(), **found}


def migrate_database(app: Hookline) -> None:
    """Bring the tables to the version of this program."""
    settings = settings_of(app)
    if settings.url is None:
        open_sqlite(app.home)
        typer.echo(f"{app.home / FILE} is up to date; a SQLite file is brought up to date when opened")
        return

    async def run() -> str:
        from hookline.tape.postgres import private
        from hookline.tape.postgres_schema import check, migrate, version_of

        store = await open_postgres(app.home, settings, migrate=True)
        try:
            async with private(store.database) as connection:
                for part, steps in parts().items():
                    await migrate(connection, store.schema, part, steps)
                    version = await version_of(connection, store.schema, part, steps)
                    check(version, store.schema, store.database.place)
        finally:
            await store.close()
        return store.place

    typer.echo(f"{asyncio.run(run())} is up to date")


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
    file.parent.mkdir(parents=True, exist_ok=True)
    return SQLiteStore(file, lock_timeout=5.0)
