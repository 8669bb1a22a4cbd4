"""PostgreSQL behind a bad network: nothing is lost, nothing is there twice, and it goes on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from hookline.errors import TapeUncertain
from hookline.tape import Tape, TapeConflict, TapeStore, TapeUnavailable
from hookline.tape.postgres.store import PostgresStore

from .. import postgres
from ..proxy import Proxy
from .conftest import chain, note


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with Proxy(postgres.socket_path()) as running:
        yield running


@pytest.fixture
async def store(proxy: Proxy, schema: str) -> AsyncIterator[TapeStore]:
    opened = await through(proxy, schema)
    yield opened
    proxy.refusing = False
    proxy.forward.set()
    proxy.backward.set()
    await opened.close()


async def through(proxy: Proxy, schema: str, **options) -> PostgresStore:
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
    return await PostgresStore.open(url, schema=schema, **{"timeout": 5.0, **options})


async def until_kept(schema: str, entry_id: str) -> None:
    """Wait until the server has it, seen past the proxy."""
    statement = f"SELECT 1 FROM {schema}.entries WHERE id = '{entry_id}'"
    while not await asyncio.to_thread(postgres.fetch, statement):
        await asyncio.sleep(0.01)


async def test_calls_go_on_after_the_connection_was_cut(store: TapeStore, proxy: Proxy):
    entries = chain(6)
    for entry in entries[:3]:
        await store.append([entry])
        proxy.cut()
    assert await store.entries("s1") == entries[:3]
    proxy.cut()
    assert await store.leaf("s1") == entries[2]
    for entry in entries[3:]:
        proxy.cut()
        await store.append([entry], expect={"s1": entry.parent_id})
    assert await store.branch(entries[-1].id) == entries


async def test_connections_that_the_server_ended_are_replaced(store: TapeStore):
    await asyncio.gather(*(store.append([note("x", session=str(n))]) for n in range(5)))
    await asyncio.to_thread(
        postgres.execute,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'hookline' AND pid <> pg_backend_pid()",
    )
    assert len(await store.sessions()) == 5


async def test_a_slow_network_only_takes_longer(store: TapeStore, proxy: Proxy):
    proxy.delay = 0.02
    entries = chain(3)
    for entry in entries:
        await store.append([entry])
    assert await store.branch(entries[-1].id) == entries


@pytest.mark.parametrize("known", [True, False], ids=["known-session", "new-session"])
async def test_an_append_whose_answer_was_lost_is_made_once(
    store: TapeStore, proxy: Proxy, schema: str, known: bool
):
    first, second, third = chain(3)
    if known:
        await store.append([first])
    entries = [second] if known else [first, second]
    if known:
        proxy.backward.clear()
        appending = asyncio.create_task(store.append(entries, expect={"s1": first.id}))
        await until_kept(schema, second.id)
        proxy.cut()
        proxy.backward.set()
    else:
        appending = asyncio.create_task(store.append(entries, expect={"s1": None}))
        while not appending.done() and not await asyncio.to_thread(
            postgres.fetch, f"SELECT 1 FROM {schema}.entries"
        ):
            await asyncio.sleep(0)
        proxy.cut()
    await appending
    assert await store.entries("s1") == [first, second]
    await store.append([third], expect={"s1": second.id})
    assert await store.branch(third.id) == [first, second, third]


async def test_an_append_that_never_arrived_is_made_after_all(
    store: TapeStore, proxy: Proxy, schema: str
):
    first, second = chain(2)
    await store.append([first])
    proxy.forward.clear()
    appending = asyncio.create_task(store.append([second], expect={"s1": first.id}))
    await asyncio.sleep(0.05)
    proxy.cut()
    proxy.forward.set()
    await appending
    assert await store.entries("s1") == [first, second]


async def test_a_conflict_is_still_a_conflict_after_the_answer_was_lost(
    store: TapeStore, proxy: Proxy, schema: str
):
    first, mine = chain(2)
    await store.append([first])
    proxy.forward.clear()
    appending = asyncio.create_task(store.append([mine], expect={"s1": first.id}))
    other = await PostgresStore.open(postgres.url(), schema=schema)
    theirs = note("theirs", first)
    await other.append([theirs])
    proxy.cut()
    proxy.forward.set()
    with pytest.raises(TapeConflict):
        await appending
    assert await other.entries("s1") == [first, theirs]
    await other.close()


async def test_another_entry_under_the_same_id_is_not_taken_for_ours(
    store: TapeStore, proxy: Proxy, schema: str
):
    first, mine = chain(2)
    await store.append([first])
    proxy.forward.clear()
    appending = asyncio.create_task(store.append([mine]))
    other = await PostgresStore.open(postgres.url(), schema=schema)
    await other.append([replace(mine, payload={"text": "not that"})])
    proxy.cut()
    proxy.forward.set()
    with pytest.raises(ValueError, match="on the tape already"):
        await appending
    await other.close()


async def test_a_database_that_stays_away_is_told_and_found_again(proxy: Proxy, schema: str):
    store = await through(proxy, schema, timeout=1.0)
    tape = await Tape.open(store, "s1")
    await tape.append("note", {"text": "one"})
    proxy.refusing = True
    proxy.cut()
    with pytest.raises(TapeUnavailable, match="cannot be reached"):
        await tape.append("note", {"text": "two"})
    with pytest.raises(TapeUnavailable, match="cannot be reached"):
        await store.sessions()
    proxy.refusing = False
    await tape.refresh()
    await tape.append("note", {"text": "three"})
    assert [e.payload["text"] for e in await store.entries("s1")] == ["one", "three"]
    await store.close()


async def test_a_black_hole_is_noticed_and_the_outcome_is_called_unknown(proxy: Proxy, schema: str):
    store = await through(proxy, schema, timeout=1.0, statement_timeout=0.5)
    tape = await Tape.open(store, "s1")
    await tape.append("note", {"text": "one"})
    proxy.backward.clear()
    with pytest.raises(TapeUncertain, match="refresh the tape"):
        await tape.append("note", {"text": "two"})
    proxy.cut()
    proxy.backward.set()
    await tape.refresh()
    await tape.append("note", {"text": "three"})
    said = [entry.payload["text"] for entry in await tape.branch()]
    assert said == ["one", "two", "three"]  # here it had arrived, once
    await store.close()


async def test_a_cancelled_append_that_is_on_its_way_is_waited_for(
    store: TapeStore, proxy: Proxy, schema: str
):
    first, second = chain(2)
    await store.append([first])
    proxy.backward.clear()
    written: list[str] = []

    async def turn() -> None:
        await store.append([second])
        written.append(second.id)
        await asyncio.sleep(60)

    task = asyncio.create_task(turn())
    await until_kept(schema, second.id)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    proxy.backward.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert written == [second.id]


async def test_an_append_cancelled_while_it_waits_for_a_connection_appends_nothing(
    proxy: Proxy, schema: str
):
    store = await through(proxy, schema, pool_size=1)
    async with store.connection():
        task = asyncio.create_task(store.append(chain(1)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await store.sessions() == []
    await store.close()
