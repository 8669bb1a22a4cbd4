"""The tables of a tape in PostgreSQL: their versions, bringing them up to date, whose they are."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hookline.errors import ConfigError, NotATape, TapeDenied, TapeReadOnly, TapeVersionMismatch

from .connection import Connection
from .failures import READ_ONLY
from .roles import secure
from .tables import GUARD, TABLES, within

TAPE: Final = "tape"
"""The tape's part of a schema. Other parts may have tables next to it, with their own versions."""

MIGRATIONS: Final[list[str]] = [TABLES + GUARD]
"""What leads from each version of the tape's tables to the next. Never change one that was released."""

# PostgreSQL has no privileges on notices: whoever knows the name of a channel can listen to it and send
# to it. So the names contain a key that only roles with access to the schema can read.
_VERSIONS = """
    CREATE TABLE IF NOT EXISTS {schema}.versions (
        part text PRIMARY KEY, version integer NOT NULL, changed timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE IF NOT EXISTS {schema}.home (
        single boolean PRIMARY KEY DEFAULT true CHECK (single), id text NOT NULL, place text NOT NULL
    );
    CREATE TABLE IF NOT EXISTS {schema}.members (
        role regrole PRIMARY KEY, admitted timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE IF NOT EXISTS {schema}.channels (
        single boolean PRIMARY KEY DEFAULT true CHECK (single),
        key text NOT NULL DEFAULT md5(gen_random_uuid()::text || gen_random_uuid()::text)
    );
    INSERT INTO {schema}.channels DEFAULT VALUES ON CONFLICT DO NOTHING;
"""
_MAY_CREATE = """
    SELECT coalesce(
        (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %(schema)s),
        has_database_privilege(current_database(), 'CREATE'))
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")


@dataclass(frozen=True, slots=True)
class Version:
    """The version of one part's tables; 0 if there are none."""

    present: int
    known: int
    """The one that this program knows."""

    @property
    def advice(self) -> str:
        """What to do about it."""
        if self.present > self.known:
            return "newer than this Hookline; update it"
        return "up to date" if self.present == self.known else "run `hookline db migrate`"


def check_name(schema: str) -> None:
    """Refuse what cannot be the name of a schema."""
    if not _NAME.match(schema) or schema.startswith("pg_"):
        raise ConfigError(
            f"{schema!r} cannot be the schema of a tape; use small letters, digits and underscores, "
            "such as 'hookline'"
        )


async def version_of(
    connection: Connection, schema: str, part: str = TAPE, steps: Sequence[str] = MIGRATIONS
) -> Version:
    """Which version the tables of a part have; refuse a schema that is another program's."""
    tables = {name for (name,) in await (await connection.execute(_TABLES, (schema,))).fetchall()}
    if "versions" not in tables:
        if taken := tables & {"sessions", "entries", "words", "home"}:
            raise NotATape(
                f"schema {schema!r} has a table {min(taken)!r} of another program; "
                "name another one in [tape] schema, it was left as it is"
            )
        return Version(0, len(steps))
    found = await connection.execute(within("SELECT part, version FROM {schema}.versions", schema))
    versions: dict[str, int] = dict(await found.fetchall())
    if not versions and await _is_shut_out(connection, schema):
        raise TapeDenied(
            f"this role is not admitted to schema {schema!r}; its owner admits it by "
            "`hookline db grant ROLE`"
        )
    return Version(versions.get(part, 0), len(steps))


async def _is_shut_out(connection: Connection, schema: str) -> bool:
    """Whether row security hides the tables from this role."""
    statement = "SELECT row_security_active(format('%%I.versions', %s::text)::regclass)"
    (is_active,) = await (await connection.execute(statement, (schema,))).fetchone() or (False,)
    return is_active


def check(version: Version, schema: str, place: str) -> None:
    """Refuse tables of another version than this program's."""
    if version.present > version.known:
        raise TapeVersionMismatch(
            f"schema {schema!r} of {place} has version {version.present}, and this Hookline knows "
            f"versions up to {version.known}; update Hookline here, the database was left as it is"
        )
    if version.present < version.known:
        raise TapeVersionMismatch(
            f"schema {schema!r} of {place} has version {version.present}, and this Hookline needs "
            f"{version.known}; stop older programs and run `hookline db migrate`"
        )


async def is_read_only(connection: Connection) -> bool:
    """Whether the server cannot be written, as a replica cannot."""
    found = await connection.execute("SELECT current_setting('transaction_read_only')::bool")
    (read_only,) = await found.fetchone() or (False,)
    return read_only


async def check_writable(connection: Connection, place: str) -> None:
    """Refuse a server that cannot be written, before anything is begun that would write."""
    if await is_read_only(connection):
        raise TapeReadOnly(f"cannot write the tape: {place} {READ_ONLY}")


async def migrate(
    connection: Connection, schema: str, part: str = TAPE, steps: Sequence[str] = MIGRATIONS
) -> Version:
    """Migrate a part to the current version atomically. Returns its previous version.

    A step is SQL in which `{schema}` stands for the schema. Concurrent migrations wait.
    """
    async with connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0")  # a long tape takes its time
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_of(schema),))
        before = await version_of(connection, schema, part, steps)
        if before.present >= before.known:
            return before
        await _check_may_create(connection, schema, part)
        present = await connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (schema,))
        if not present.rowcount:  # a role that may only use a schema need not be allowed to create one
            await connection.execute(within("CREATE SCHEMA {schema}", schema))
        await connection.execute(within(_VERSIONS, schema))
        for step in steps[before.present :]:
            await connection.execute(within(step, schema))
        await connection.execute(
            within(
                "INSERT INTO {schema}.versions (part, version) VALUES (%s, %s) "
                "ON CONFLICT (part) DO UPDATE SET version = excluded.version, changed = now()",
                schema,
            ),
            (part, len(steps)),
        )
        await secure(connection, schema)
        return before


async def _check_may_create(connection: Connection, schema: str, part: str) -> None:
    """Raise if the role may only use the tables."""
    found = await connection.execute(_MAY_CREATE, {"schema": schema})
    (may,) = await found.fetchone() or (False,)
    if not may:
        raise TapeDenied(
            f"schema {schema!r} lacks tables for the {part}, and this role may not create them; "
            "run `hookline db migrate --url …` as the owner, then `hookline db grant ROLE`"
        )


async def channel_key(connection: Connection, schema: str) -> str:
    """The key in the names of this schema's notices."""
    found = await connection.execute(within("SELECT key FROM {schema}.channels", schema))
    (key,) = await found.fetchone() or ("",)
    return key


async def claim(connection: Connection, schema: str, home: str, place: str, *, where: str) -> None:
    """Make the schema this home's, unless it is another's: two homes would mix their sessions."""
    statement = within("SELECT id, place FROM {schema}.home", schema)
    row = await (await connection.execute(statement)).fetchone()
    if row is None:
        await connection.execute(
            within(
                "INSERT INTO {schema}.home (id, place) VALUES (%s, %s) ON CONFLICT DO NOTHING", schema
            ),
            (home, where),
        )
        row = await (await connection.execute(statement)).fetchone()
    if row is not None and row[0] != home:
        raise NotATape(
            f"schema {schema!r} of {place} keeps the tapes of another home ({row[1]}); name another "
            f'one in [tape] schema, or, to share its sessions, set [tape] home = "{row[0]}" here'
        )


def lock_of(name: str) -> int:
    """The number of the advisory lock for a name."""
    return zlib.crc32(b"hookline:" + name.encode())
