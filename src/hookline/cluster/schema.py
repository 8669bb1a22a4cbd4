"""The tables of a cluster, beside the tape's: procrastinate's, the inbox, and the way back."""

from __future__ import annotations

from typing import Final

from procrastinate.schema import SchemaManager

from hookline.tape.postgres import PostgresStore, private
from hookline.tape.postgres_connecting import Connection
from hookline.tape.postgres_schema import Version, check, check_writable, migrate, version_of

PART: Final = "cluster"

# A lock is looked for among all that wait, for every job that is taken: with a long backlog that needs
# an index of its own, which procrastinate does not bring. The planner is told to use it: before the
# server has looked at a queue that grew quickly, it takes it for a short one, and would read all of it.
_ENGINE: Final = """
    SET LOCAL search_path TO {{schema}};
    {engine}
    CREATE INDEX hookline_jobs_locks ON procrastinate_jobs (lock, id) WHERE status IN ('todo', 'doing');
    ALTER FUNCTION procrastinate_fetch_job_v2 SET enable_seqscan = off SET enable_bitmapscan = off
        SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
        SET enable_sort = off;
"""

# `id` is what a channel knows a message by, `number` the order in which they were accepted. `ticket`
# tells whoever accepts a message and loses the answer that the row is its own. `deaths` is how many
# workers ended in the middle of it.
_INBOX: Final = """
    CREATE TABLE {schema}.inbox (
        id text COLLATE "C" PRIMARY KEY,
        number bigint GENERATED ALWAYS AS IDENTITY,
        ticket text NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        gateway text NOT NULL,
        alone boolean NOT NULL,
        accepted double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp()),
        deaths integer NOT NULL DEFAULT 0,
        envelope text,
        outcome text,
        settled double precision
    );
    CREATE INDEX inbox_waiting ON {schema}.inbox (session_id, number) WHERE outcome IS NULL;
    CREATE INDEX inbox_settled ON {schema}.inbox (settled) WHERE outcome IS NOT NULL;
    CREATE TABLE {schema}.deliveries (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        gateway text NOT NULL,
        channel text NOT NULL,
        item text NOT NULL,
        made double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp())
    );
    CREATE INDEX deliveries_gateways ON {schema}.deliveries (gateway, id);
    CREATE TABLE {schema}.pieces (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        text text NOT NULL,
        made double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp())
    );
"""


def _engine() -> str:
    """Procrastinate's own tables; the braces in them are no places of ours."""
    text = SchemaManager.get_schema().replace("{", "{{").replace("}", "}}")
    return _ENGINE.format(engine=text)


def steps() -> list[str]:
    """What leads from each version of these tables to the next. Never change one that was released."""
    return [_engine() + _INBOX]


async def prepare(store: PostgresStore, *, allowed: bool = False) -> Version:
    """Make the tables where there are none, and refuse those of another version.

    With `allowed`, older ones are brought up to date. A replica is refused: all that follows writes.
    """
    async with private(store.database) as connection:
        await check_writable(connection, store.database.place)
        version = await present(connection, store.schema)
        if version.present == 0 or (allowed and version.present < version.known):
            await migrate(connection, store.schema, PART, steps())
            version = await present(connection, store.schema)
        check(version, store.schema, store.database.place)
        return version


async def present(connection: Connection, schema: str) -> Version:
    """Which version the tables have."""
    return await version_of(connection, schema, PART, steps())


async def checked(store: PostgresStore) -> None:
    """Refuse to go on where somebody has brought the tables to a newer version."""

    async def look(connection: Connection) -> tuple[Version, Version]:
        tape = await version_of(connection, store.schema)
        return tape, await present(connection, store.schema)

    for version in await store.database.run("look at", look):
        check(version, store.schema, store.database.place)
