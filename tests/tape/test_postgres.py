"""PostgreSQL: the tables' versions, whose they are, failures of the server, other processes."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import hookline
from hookline.errors import (
    ConfigError,
    DuplicateEntry,
    NotATape,
    TapeDenied,
    TapeLocked,
    TapeVersionMismatch,
)
from hookline.tape import (
    Entry,
    Tape,
    TapeConflict,
    TapeError,
    TapeFull,
    TapeReadOnly,
    TapeUnavailable,
)
from hookline.tape.postgres.roles import admit
from hookline.tape.postgres.schema import MIGRATIONS, migrate, version_of
from hookline.tape.postgres.status import status_of
from hookline.tape.postgres.store import PostgresStore

from .. import postgres
from ..postgres import url_for
from .conftest import chain, note

SOURCE = str(Path(hookline.__file__).parents[1])


async def opened(schema: str, **options) -> PostgresStore:
    return await PostgresStore.open(postgres.url(), schema=schema, **options)


async def filled(schema: str, count: int = 10) -> None:
    store = await opened(schema)
    await store.append(chain(count))
    await store.close()


@pytest.fixture
def later() -> Iterator[Callable[[str], None]]:
    """Make this program know one version more, while the test lasts."""
    known = len(MIGRATIONS)
    yield MIGRATIONS.append
    del MIGRATIONS[known:]


@pytest.fixture
def role() -> Iterator[str]:
    """A user of the database who owns nothing."""
    name = postgres.new_schema()
    postgres.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'correct horse'")
    yield name
    postgres.execute(f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


# --- The tables ---


async def test_what_was_written_is_there_after_reopening(schema: str):
    entries = chain(10)
    store = await opened(schema)
    await store.append(entries)
    await store.close()
    store = await opened(schema)
    assert await store.entries("s1") == entries
    assert len(await store.search("number")) == 10
    await store.close()


async def test_older_tables_are_refused_until_somebody_migrates(schema: str, later):
    await filled(schema)
    later("ALTER TABLE {schema}.entries ADD COLUMN extra text")
    with pytest.raises(TapeVersionMismatch, match=r"version 1.*needs 2.*hookline db migrate"):
        await opened(schema)
    store = await opened(schema, migrate=True)
    assert len(await store.entries("s1")) == 10
    await store.close()
    assert postgres.fetch(f"SELECT part, version FROM {schema}.versions") == [("tape", 2)]
    await (await opened(schema)).close()


async def test_a_migration_that_fails_leaves_everything_as_it_was(schema: str, later):
    await filled(schema)
    later("DROP TABLE {schema}.words; SELECT * FROM nowhere")
    with pytest.raises(TapeError, match="nowhere"):
        await opened(schema, migrate=True)
    del MIGRATIONS[-1]
    store = await opened(schema)
    assert len(await store.search("number")) == 10
    await store.close()


async def test_tables_of_a_newer_version_are_refused_untouched(schema: str):
    await filled(schema)
    postgres.execute(f"UPDATE {schema}.versions SET version = 99")
    for allowed in (False, True):
        with pytest.raises(TapeVersionMismatch, match=r"version 99.*up to 1.*update"):
            await opened(schema, migrate=allowed)
    assert postgres.fetch(f"SELECT version FROM {schema}.versions") == [(99,)]
    status = await status_of(postgres.url(), schema)
    assert (status.version.present, status.advice) == (99, "newer than this Hookline; update it")


async def test_a_program_that_goes_on_while_the_tables_change_is_told(schema: str):
    store = await opened(schema)
    await store.append(chain(1))
    postgres.execute(f"ALTER TABLE {schema}.entries RENAME COLUMN payload TO content")
    with pytest.raises(TapeVersionMismatch, match="hookline db status"):
        await store.entries("s1")
    await store.close()


async def test_many_who_open_a_new_schema_at_once_make_one_set_of_tables(schema: str):
    stores = await asyncio.gather(*(opened(schema, home="h") for _ in range(8)))
    await asyncio.gather(*(store.append([note("x", session=str(n))]) for n, store in enumerate(stores)))
    assert len(await stores[0].sessions()) == 8
    await asyncio.gather(*(store.close() for store in stores))


async def test_tables_of_another_program_are_refused_untouched(schema: str):
    postgres.execute(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.entries (theirs text)")
    with pytest.raises(NotATape, match="another program"):
        await opened(schema)
    assert postgres.fetch(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'") == [
        ("entries",)
    ]


async def test_another_part_has_versions_of_its_own_beside_the_tape(schema: str):
    store = await opened(schema)
    steps = ["CREATE TABLE {schema}.inbox (id text)", "ALTER TABLE {schema}.inbox ADD said text"]
    async with store.connection() as connection:
        assert (await migrate(connection, schema, "inbox", steps[:1])).present == 0
        assert (await migrate(connection, schema, "inbox", steps)).present == 1
        assert (await version_of(connection, schema, "inbox", steps)).present == 2
        assert (await version_of(connection, schema)).present == 1
        await connection.execute(f"INSERT INTO {schema}.inbox VALUES ('1', 'hello')")
    await store.close()


async def test_a_schema_belongs_to_the_home_that_opened_it_first(schema: str):
    await (await opened(schema, home="one", where="laptop:/home/me/.hookline")).close()
    await (await opened(schema, home="one", where="server:/srv")).close()
    with pytest.raises(NotATape, match=r'laptop:/home/me.*\[tape\] schema.*home = "one"'):
        await opened(schema, home="two")
    other = postgres.new_schema()
    await (await opened(other, home="two")).close()
    postgres.drop(other)


@pytest.mark.parametrize("name", ["", "Upper", "pg_mine", 'a"; DROP TABLE x; --', "ü", "x" * 64])
async def test_what_cannot_be_a_schema_is_refused(name: str):
    with pytest.raises(ConfigError, match="small letters"):
        await opened(name)


async def test_a_long_session_is_read_by_its_indexes(schema: str):
    store = await opened(schema)
    entries = chain(20_000)
    await store.append(entries)
    tape = await Tape.open(store, "s1")
    await tape.anchor("here")
    last = await tape.append("note", {"text": "after"})
    postgres.execute(f"ANALYZE {schema}.entries")
    path = {"id": last.id, "kinds": ["anchor"], "until": None}
    newest = {"session": "s1", "low": None, "high": None, "kinds": [], "limit": 3}
    anchors = {**newest, "kinds": ["anchor", "merge"], "limit": None}
    queries = store._queries
    async with store.connection() as connection:
        for statement, named in (
            (queries.branch, path),
            (queries.entries(of_kinds=False, newest_first=True), newest),
            (queries.entries(of_kinds=True, newest_first=False), anchors),
        ):
            await connection.execute("SET plan_cache_mode = force_generic_plan")
            found = await connection.execute(b"EXPLAIN ANALYZE " + statement, named, prepare=True)
            text = "\n".join(line for (line,) in await found.fetchall())
            assert "Seq Scan on entries" not in text
            assert "rows=20" not in text.replace("rows=20.", "")
    await store.close()


async def test_of_two_who_begin_the_same_session_one_is_told_of_the_other(schema: str):
    one, two = await opened(schema), await opened(schema)
    first, second = await Tape.open(one, "new"), await Tape.open(two, "new")
    await first.append("note", {"text": "mine"})
    with pytest.raises(TapeConflict):
        await second.append("note", {"text": "yours"})
    await second.refresh()
    await second.append("note", {"text": "after it"})
    assert [e.payload["text"] for e in await one.entries("new")] == ["mine", "after it"]
    await one.close()
    await two.close()


async def test_an_entry_that_is_there_already_begins_no_session(schema: str):
    store = await opened(schema)
    await store.append([entry := Entry.new("old", None, "note", {})])
    assert await store.leaf("new") is None
    with pytest.raises(DuplicateEntry):
        await store.append([replace(entry, session_id="new")])
    assert [info.id for info in await store.sessions()] == ["old"]
    await store.close()


# --- Failures of the server ---


async def test_a_wrong_password_is_told_without_showing_it(schema: str, role: str):
    folder = postgres.socket_path().parent
    rules = folder / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all {role} scram-sha-256\n{before}")
    postgres.execute("SELECT pg_reload_conf()")
    try:
        with pytest.raises(TapeDenied, match=rf"{role}@.*refused the password.*\[tape\] url") as told:
            await PostgresStore.open(url_for(role, "wr0ng-pa55"), schema=schema)
    finally:
        rules.write_text(before)
        postgres.execute("SELECT pg_reload_conf()")
    assert "wr0ng-pa55" not in str(told.value)
    assert "\n" not in str(told.value)


async def test_a_server_that_is_not_there_is_told(schema: str):
    with pytest.raises(TapeUnavailable, match=r"127.0.0.1:9/x cannot be reached.*server runs") as told:
        await PostgresStore.open("postgresql://me:s3cret@127.0.0.1:9/x", schema=schema)
    assert "s3cret" not in str(told.value)


async def test_a_database_that_is_not_there_is_told(schema: str):
    with pytest.raises(TapeUnavailable, match="no such database; make it with `createdb`"):
        await PostgresStore.open(url_for("postgres", database="nowhere"), schema=schema)


async def test_an_unknown_user_is_told(schema: str):
    with pytest.raises(TapeDenied, match="does not let this user in"):
        await PostgresStore.open(url_for("nobody"), schema=schema)


async def test_a_user_without_rights_is_told(schema: str, role: str):
    with pytest.raises(TapeDenied, match="grant"):
        await PostgresStore.open(url_for(role), schema=schema)
    await filled(schema)
    with pytest.raises(TapeDenied, match="grant"):
        await PostgresStore.open(url_for(role), schema=schema)


async def test_a_server_without_connections_left_is_told(schema: str, role: str):
    postgres.execute(f"ALTER ROLE {role} CONNECTION LIMIT 0")
    with pytest.raises(TapeUnavailable, match=r"no connection left; lower .* pool_size"):
        await PostgresStore.open(url_for(role), schema=schema)


async def test_a_read_only_server_can_be_read(schema: str, role: str):
    await filled(schema)
    owner = await opened(schema)
    async with owner.connection() as connection:
        await admit(connection, schema, role)
    await owner.close()
    postgres.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    store = await PostgresStore.open(url_for(role), schema=schema)
    assert len(await store.entries("s1")) == 10
    assert len(await store.search("number")) == 10  # though nobody searched where it can be indexed
    leaf = await store.leaf("s1")
    with pytest.raises(TapeReadOnly, match="read-only, as a replica is; name the primary"):
        await store.append([note("more", leaf)])
    postgres.execute(f"ALTER ROLE {role} SET default_transaction_read_only = off")
    await store.append([note("more", leaf)])  # on a new connection, without opening the store again
    await store.close()


async def test_a_full_disk_is_told_and_nothing_is_half_written(schema: str):
    store = await opened(schema)
    first = note("first")
    await store.append([first])
    postgres.execute(
        f"""CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.payload LIKE '%second%' THEN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
        END IF; RETURN NEW; END $$""",
        f"CREATE TRIGGER full_disk BEFORE INSERT ON {schema}.entries "
        f"FOR EACH ROW EXECUTE FUNCTION {schema}.full()",
    )
    more = [note("one", first)]
    more.append(note("second", more[0]))
    with pytest.raises(TapeFull, match="disk is full; make room"):
        await store.append(more)
    assert await store.entries("s1") == [first]
    postgres.execute(f"DROP TRIGGER full_disk ON {schema}.entries")
    await store.append(more)
    assert await store.entries("s1") == [first, *more]
    await store.close()


async def test_a_call_that_takes_too_long_is_ended(schema: str):
    store = await opened(schema, statement_timeout=1.0)
    await store.append([note("one")])
    with psycopg.connect(postgres.url()) as other:
        other.execute(f"LOCK TABLE {schema}.entries")
        with pytest.raises(TapeLocked, match="took too long"):
            await store.entries("s1")
    assert len(await store.entries("s1")) == 1
    await store.close()


async def test_a_pool_that_is_used_up_says_so(schema: str):
    store = await opened(schema, pool_size=1, timeout=0.2)
    async with store.connection():
        with pytest.raises(TapeUnavailable, match=r"no free connection.*pool_size"):
            await store.get("x")
    assert await store.get("x") is None
    await store.close()


async def test_the_plan_for_a_branch_is_kept_on_a_short_tape_too(schema: str):
    store = await opened(schema, pool_size=1)
    tape = await Tape.open(store, "s1")
    await tape.append_many([("note", {"text": f"number {n}"}) for n in range(1000)])
    await tape.handoff("here", state={})
    postgres.execute(f"ANALYZE {schema}.entries")
    for _ in range(15):
        assert len(await tape.context_entries()) == 1
    async with store.connection() as connection:
        kept = await connection.execute(
            "SELECT generic_plans FROM pg_prepared_statements WHERE statement LIKE '%RECURSIVE found%'"
        )
        (plans,) = await kept.fetchall()
    assert plans[0] > 0
    await store.close()


# --- Other processes ---

WRITER = """
    import asyncio, sys
    from hookline.tape import Entry, TapeConflict
    from hookline.tape import Tape
    from hookline.tape.postgres.store import PostgresStore

    async def main(url, schema, session, count):
        store = await PostgresStore.open(url, schema=schema)
        tape = await Tape.open(store, session)
        done = 0
        print("ready", flush=True)
        while done < int(count):
            try:
                entry = await tape.append("note", {"text": f"{sys.argv[5]} {done}"})
            except TapeConflict:
                await tape.refresh()
                continue
            print(entry.id, flush=True)
            done += 1
        await store.close()

    asyncio.run(main(*sys.argv[1:5]))
"""


def run(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


async def test_two_processes_append_to_one_session_without_losing_or_mixing(schema: str):
    await filled(schema, 1)
    writers = [run(postgres.url(), schema, "s1", 100, name) for name in "ab"]
    told = [set(writer.communicate(timeout=60)[0].split()[1:]) for writer in writers]
    store = await opened(schema)
    entries = await store.entries("s1")
    assert {entry.id for entry in entries[1:]} == told[0] | told[1]
    assert [len(ids) for ids in told] == [100, 100]
    assert await store.branch(entries[-1].id) == entries  # each follows the one before
    await store.close()


@pytest.mark.slow
async def test_a_writer_that_is_killed_leaves_a_valid_tape_with_all_that_it_was_told(schema: str):
    await filled(schema, 1)
    store = await opened(schema)
    told: list[str] = []
    for number in range(5):
        writer = run(postgres.url(), schema, "s1", 100_000, number)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        told += [writer.stdout.readline().strip() for _ in range(20 + 7 * number)]
        os.kill(writer.pid, signal.SIGKILL)
        told += writer.communicate()[0].split("\n")[:-1]
    entries = await store.entries("s1")
    kept = {entry.id for entry in entries}
    assert kept.issuperset(told)
    assert len(kept) <= len(told) + 1 + 5  # of each, one at most was on its way
    assert await store.branch(entries[-1].id) == entries
    await (await Tape.open(store, "s1")).append("note", {"text": "goes on"})
    await store.close()


async def test_tasks_that_append_to_one_session_at_once_lose_nothing(schema: str):
    store = await opened(schema)
    root = note("root")
    await store.append([root])
    await asyncio.gather(*(store.append([note(str(n), root)]) for n in range(60)))
    entries = await store.entries("s1")
    assert sorted(entry.payload["text"] for entry in entries) == sorted([*map(str, range(60)), "root"])
    assert len(await store.children(root.id)) == 60
    await store.close()
