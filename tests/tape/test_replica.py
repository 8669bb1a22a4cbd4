"""A primary and a hot standby, real ones: what a replica refuses, and going on after a failover."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from hookline.tape import Entry, Tape, TapeError, TapeReadOnly, TapeUnavailable
from hookline.tape.postgres.store import PostgresStore

from .. import forks, postgres
from ..commandline import environment, here
from .conftest import chain, note, texts
from .servers import Pair, pair

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running() -> Iterator[Pair]:
    with pair() as servers:
        yield servers


@pytest.fixture
def servers(running: Pair) -> Pair:
    """Both servers; the replica shows what was appended when the append returns."""
    running.wait_for_replica(always=True)
    return running


@pytest.fixture
def schema() -> str:
    return postgres.new_schema()


@asynccontextmanager
async def opened(url: str, schema: str, **options) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(url, schema=schema, **options)
    try:
        yield store
    finally:
        await store.close()


# --- The store ---


async def test_a_replica_can_be_read_and_searched_and_refuses_an_append(servers: Pair, schema: str):
    entries = chain(5)
    async with opened(servers.primary.url, schema) as first:
        await first.append(entries[:3])
        assert len(await first.search("number")) == 3
        await first.append(entries[3:])  # which nobody indexed
        async with opened(servers.replica.url, schema) as second:
            tape = await Tape.open(second, "s1")
            assert await tape.branch() == entries
            assert [hit.entry for hit in await second.search("number")] == entries[::-1]
            with pytest.raises(TapeReadOnly, match="as a replica is; name the primary in"):
                await tape.append("note", {"text": "more"})
            assert await second.entries("s1") == entries
            more = await first.leaf("s1")
            await first.append([note("more", more)])
            assert texts(await second.entries("s1"))[-1] == "more"


async def test_a_replica_of_a_database_without_tables_is_refused(servers: Pair, schema: str):
    with pytest.raises(TapeReadOnly, match="name the primary"):
        await PostgresStore.open(servers.replica.url, schema=schema)


async def test_of_several_hosts_the_one_that_can_be_written_is_found(servers: Pair, schema: str):
    async with opened(servers.url, schema) as store:
        await store.append(chain(2))
        assert len(await store.entries("s1")) == 2


async def test_without_a_host_that_can_be_written_that_is_told(servers: Pair, schema: str):
    asked = f"{servers.replica.url}&target_session_attrs=read-write"
    with pytest.raises(TapeUnavailable, match=r"no server that can be written; check .* primary runs"):
        await PostgresStore.open(asked, schema=schema)


# --- The command line ---


@pytest.fixture
def hookline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], schema: str
) -> Callable[..., SimpleNamespace]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(f'[tape]\nschema = "{schema}"\nhome = "team"\n')
    (tmp_path / "turns.toml").write_text('[[turns]]\ntext = "The garden is fine."\n')
    run = here(home, tmp_path, monkeypatch, capsys)
    return lambda server, *arguments: run(*arguments, HOOKLINE_TAPE__URL=server.url)


ASK = ("run", "--session", "terminal:local", "--model", "scripted:turns.toml")


def test_the_command_line_reads_a_replica_and_refuses_a_turn_there(servers: Pair, hookline):
    assert hookline(servers.primary, *ASK, "How is the garden?").returncode == 0
    status = hookline(servers.replica, "db", "status")
    assert (status.returncode, ", read-only\n" in status.stdout) == (0, True)
    assert "read-only" not in hookline(servers.primary, "db", "status").stdout
    assert "How is the garden?" in hookline(servers.replica, "tape", "list").stdout
    assert "garden is fine" in hookline(servers.replica, "tape", "show", "terminal:local").stdout
    assert "garden is fine" in hookline(servers.replica, "tape", "search", "fine").stdout
    whole = hookline(servers.replica, "tape", "export", "-")
    assert json.loads(whole.stdout.splitlines()[0])["sessions"] == {"terminal:local": 4}
    refused = hookline(servers.replica, *ASK, "And now?")
    assert (refused.returncode, refused.stdout) == (2, "")
    continuing, refusal = refused.stderr.splitlines()
    assert continuing.startswith("hookline: continuing session terminal:local: 2 messages")
    assert "is read-only, as a replica is; name the primary in [tape] url" in refusal
    examined = hookline(servers.replica, "doctor")
    assert (examined.returncode, "name the primary in [tape] url" in examined.stdout) == (1, True)
    assert hookline(servers.primary, "tape", "export", "-").stdout == whole.stdout


def test_a_gateway_and_a_worker_do_not_start_on_a_replica(
    servers: Pair, hookline, tmp_path: Path, schema: str
):
    assert hookline(servers.primary, "db", "migrate").returncode == 0  # with the tables of a cluster
    for command in (["worker"], ["gateway", "--port", "0"]):
        env = environment(tmp_path / "home", HOOKLINE_TAPE__URL=servers.replica.url)
        done = forks.run(forks.MAIN, *command, cwd=tmp_path, env=env)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "is read-only, as a replica is; name the primary" in done.stderr
    assert servers.primary.execute(f"SELECT count(*) FROM {schema}.procrastinate_workers") == [(0,)]


# --- Failover ---


async def test_appends_go_on_after_a_failover_and_none_is_lost_or_made_twice(
    servers: Pair, schema: str
):
    kept: dict[str, list[Entry]] = {f"s{n}": [] for n in range(4)}
    enough = asyncio.Event()

    async def write(store: PostgresStore, session_id: str) -> None:
        tape = await Tape.open(store, session_id)
        while not enough.is_set():
            number = len(kept[session_id])
            kept[session_id].append(await tape.append("note", {"text": f"{session_id} {number}"}))

    async def until(more: int) -> None:
        wanted = {session_id: len(entries) + more for session_id, entries in kept.items()}
        while any(len(kept[session_id]) < count for session_id, count in wanted.items()):
            await asyncio.sleep(0.01)

    async with opened(servers.url, schema, timeout=60.0) as store, asyncio.timeout(120):
        async with asyncio.TaskGroup() as writers:
            for session_id in kept:
                writers.create_task(write(store, session_id))
            await until(20)
            await asyncio.to_thread(servers.fail_over)
            await until(20)
            enough.set()
        assert {name: await store.entries(name) for name in kept} == kept
    await asyncio.to_thread(servers.rejoin)


async def test_a_replica_that_was_behind_makes_no_tape_with_a_hole(servers: Pair, schema: str):
    entries = chain(4)
    async with opened(servers.url, schema, timeout=60.0) as store, asyncio.timeout(120):
        await store.append(entries[:2])
        servers.wait_for_replica(always=False)
        servers.replica.execute("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        while servers.primary.execute("SELECT 1 FROM pg_stat_replication"):
            await asyncio.sleep(0.01)
        await store.append([entries[2]])  # which only the primary has, when it is lost
        await asyncio.to_thread(servers.fail_over)
        assert await store.entries("s1") == entries[:2]
        with pytest.raises(TapeError, match=rf"its leaf is '{entries[1].id}'.*refresh the tape"):
            await store.append([entries[3]], expect={"s1": entries[2].id})
        tape = await Tape.open(store, "s1")
        last = await tape.append("note", {"text": "after"})
        assert await tape.branch() == [*entries[:2], last]
    await asyncio.to_thread(servers.rejoin)


async def test_a_replica_that_is_promoted_can_be_written_without_opening_it_again(
    servers: Pair, schema: str
):
    entries = chain(3)
    async with opened(servers.primary.url, schema) as first:
        await first.append(entries[:2])
    async with opened(servers.replica.url, schema) as store:
        with pytest.raises(TapeReadOnly):
            await store.append(entries[2:])
        await asyncio.to_thread(servers.fail_over, "fast")
        await store.append(entries[2:])
        assert await store.entries("s1") == entries
    await asyncio.to_thread(servers.rejoin)
