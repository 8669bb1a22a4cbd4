"""The tables of a cluster, beside the tape's: procrastinate's, the inbox, and the way back."""

from __future__ import annotations

from functools import cache
from typing import Final

from procrastinate.schema import SchemaManager
from psycopg.errors import UndefinedTable

from hookline.tape.postgres.connection import Connection
from hookline.tape.postgres.schema import (
    MIGRATIONS,
    TAPE,
    Version,
    check,
    check_writable,
    migrate,
    version_of,
)
from hookline.tape.postgres.store import PostgresStore, private
from hookline.tape.postgres.tables import within

PART: Final = "cluster"

# Taking a job looks for its lock among all waiting jobs. With a long backlog that needs an index that
# procrastinate does not have. The planner gets a hint: before it has statistics of a queue that grew
# quickly, it assumes a short one and would read all of it.
_ENGINE: Final = """
    SET LOCAL search_path TO {{schema}};
    {engine}
    CREATE INDEX hookline_jobs_locks ON procrastinate_jobs (lock, id) WHERE status IN ('todo', 'doing');
    ALTER FUNCTION procrastinate_fetch_job_v2 SET enable_seqscan = off SET enable_bitmapscan = off
        SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
        SET enable_sort = off;
"""

# `id` is the channel's id of a message, `number` the order of acceptance. `ticket` lets a gateway that
# lost the database's reply recognise its own row. `deaths` counts workers that died while processing
# it.
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

# One statement stores a message and creates its job. It also chooses whom to notify: the worker that
# owns the session, or one of the live workers in turn, so that not all of them wake up. Finished jobs
# are deleted, so there is no history. `orders` are requests to a running turn until its worker reads
# them.
_ONE_IS_TOLD: Final = """
    ALTER TABLE {schema}.procrastinate_jobs
        DISABLE TRIGGER procrastinate_jobs_notify_queue_job_inserted_v1,
        DISABLE TRIGGER procrastinate_trigger_status_events_insert_v1,
        DISABLE TRIGGER procrastinate_trigger_status_events_update_v1,
        DISABLE TRIGGER procrastinate_trigger_scheduled_events_v1;
    CREATE TABLE {schema}.orders (
        session_id text COLLATE "C" PRIMARY KEY,
        made double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp())
    );
    CREATE FUNCTION {schema}.hookline_accept(
        _key text, _ticket text, _session text, _gateway text, _alone boolean, _envelope text,
        _queue text, _task text, _channel text, _silence double precision
    ) RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        _job bigint;
        _worker bigint;
        _workers bigint[];
    BEGIN
        INSERT INTO inbox (id, ticket, session_id, gateway, alone, envelope)
        VALUES (_key, _ticket, _session, _gateway, _alone, _envelope) ON CONFLICT (id) DO NOTHING;
        IF NOT FOUND THEN
            RETURN (SELECT ticket = _ticket FROM inbox WHERE id = _key);
        END IF;
        -- Nobody takes the job before the message is there: to take one, it must be locked.
        SELECT id INTO _job FROM procrastinate_jobs
        WHERE lock = _session AND status = 'todo' AND queue_name = _queue
        ORDER BY id LIMIT 1 FOR SHARE;
        IF NOT FOUND THEN
            _job := (procrastinate_defer_jobs_v1(ARRAY[
                ROW(_queue, _task, 0, _session, NULL, '{{}}', NULL)::procrastinate_job_to_defer_v1
            ]))[1];
        END IF;
        SELECT worker_id INTO _worker FROM procrastinate_jobs
        WHERE lock = _session AND status = 'doing' AND worker_id IS NOT NULL;
        IF FOUND THEN
            PERFORM pg_notify(_channel || _worker, json_build_object('arrived', _session)::text);
            RETURN true;
        END IF;
        SELECT array_agg(id ORDER BY id) INTO _workers FROM procrastinate_workers
        WHERE last_heartbeat > now() - _silence * interval '1 second';
        _worker := _workers[1 + _job % cardinality(_workers)];
        IF _worker IS NOT NULL THEN
            PERFORM pg_notify(_channel || _worker, '{{"jobs": []}}');
        END IF;
        RETURN true;
    END;
    $$;
"""


@cache
def _engine() -> str:
    """Procrastinate's own tables. Braces in them are not placeholders."""
    text = SchemaManager.get_schema().replace("{", "{{").replace("}", "}}")
    return _ENGINE.format(engine=text)


def steps() -> list[str]:
    """Migrations from each version of these tables to the next. Never change a released one."""
    return [_engine() + _INBOX, _ONE_IS_TOLD]


async def prepare(store: PostgresStore, *, allowed: bool = False) -> Version:
    """Create missing tables and reject those of another version.

    With `allowed`, older ones are migrated. A replica is rejected, because everything after this
    writes.
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
    """Return the version of the tables."""
    return await version_of(connection, schema, PART, steps())


async def checked(store: PostgresStore) -> None:
    """Raise if another process has migrated the tables to a newer version."""
    statement = within("SELECT part, version FROM {schema}.versions", store.schema)

    async def look(connection: Connection) -> dict[str, int]:
        try:
            return dict(await (await connection.execute(statement)).fetchall())
        except UndefinedTable:
            return {}

    found = await store.database.run("look at", look)
    for part, known in ((TAPE, MIGRATIONS), (PART, steps())):
        version = Version(found.get(part, 0), len(known))
        check(version, store.schema, store.database.place)
