"""How a database of tapes is: for people who look after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .connection import Database
from .roles import Standing, standing_of
from .schema import Version, check_name, is_read_only, version_of
from .store import private
from .tables import BROKEN, within


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a schema, found without changing anything."""

    place: str
    server: str
    read_only: bool
    version: Version
    home: str | None
    """The name of the home, and where it was first seen."""
    sessions: int
    entries: int
    """As the server estimates: counting a million takes its time."""
    standing: Standing | None
    """The privileges of the connecting role; None if there are no tables."""

    @property
    def advice(self) -> str:
        """What to do about the version."""
        return self.version.advice


async def status_of(url: str, schema: str) -> Status:
    """Look at a database; nothing is made or changed."""
    check_name(schema)
    database = Database(url)
    async with private(database) as connection:
        version = await version_of(connection, schema)
        home, sessions, entries, standing = None, 0, 0, None
        if version.present:
            standing = await standing_of(connection, schema)
            row = await (
                await connection.execute(within("SELECT id, place FROM {schema}.home", schema))
            ).fetchone()
            home = f"{row[0]} ({row[1]})" if row else None
            counted = await connection.execute(within("SELECT count(*) FROM {schema}.sessions", schema))
            (sessions,) = await counted.fetchone() or (0,)
            estimated = await connection.execute(
                "SELECT greatest(0, reltuples::bigint) FROM pg_class "
                "WHERE oid = format('%%I.entries', %s::text)::regclass",
                (schema,),
            )
            (entries,) = await estimated.fetchone() or (0,)
        told = await connection.execute("SELECT current_setting('server_version')")
        (server,) = await told.fetchone() or ("",)
        read_only = await is_read_only(connection)
    return Status(database.place, server, read_only, version, home, sessions, entries, standing)


async def parts_of(url: str, schema: str, parts: Mapping[str, Sequence[str]]) -> dict[str, Version]:
    """The versions of tables next to the tape's, given their migrations; nothing is changed."""
    check_name(schema)
    async with private(Database(url)) as connection:
        return {
            part: await version_of(connection, schema, part, steps) for part, steps in parts.items()
        }


async def broken_entry(url: str, schema: str) -> tuple[str, str, int] | None:
    """The first entry that is not as it was appended: its session, id and place; None if all are."""
    check_name(schema)
    async with private(Database(url)) as connection, connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0")  # it reads the whole tape
        return await (await connection.execute(within(BROKEN, schema))).fetchone()  # pyright: ignore[reportReturnType]
