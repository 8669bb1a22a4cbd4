"""Names that processes hold in PostgreSQL: there while they live, gone when they do not."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from hookline.tape import TapeUnavailable
from hookline.tape.postgres.presence import Presence, is_present
from hookline.tape.postgres.store import PostgresStore

from .. import postgres
from ..proxy import Proxy

HOLDING = """
import asyncio, sys
from hookline.tape.postgres.store import PostgresStore
from hookline.tape.postgres.presence import Presence

async def main():
    store = await PostgresStore.open(sys.argv[1], schema=sys.argv[2])
    await Presence.open(store, "worker")
    print("here", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
async def store(schema: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(postgres.url(), schema=schema, timeout=5.0)
    yield opened
    await opened.close()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with Proxy(postgres.socket_path()) as running:
        yield running


@pytest.fixture
async def far(proxy: Proxy, schema: str, store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """The same schema, through the network."""
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
    opened = await PostgresStore.open(url, schema=schema, timeout=5.0)
    yield opened
    await opened.close()


async def until(store: PostgresStore, name: str, *, there: bool) -> None:
    async with asyncio.timeout(30):
        while await is_present(store, name) is not there:
            await asyncio.sleep(0.01)


async def test_a_name_is_there_from_opening_to_closing(store: PostgresStore):
    assert not await is_present(store, "a")
    presence = await Presence.open(store, "a")
    assert presence.held
    assert await is_present(store, "a")
    assert not await is_present(store, "b")
    await presence.close()
    await presence.close()
    await until(store, "a", there=False)  # the server takes a moment to see the end
    assert not presence.held


async def test_every_name_is_found_whatever_its_number(store: PostgresStore):
    names = [f"name {number}" for number in range(20)]  # half of the numbers are below zero
    held = [await Presence.open(store, name) for name in names]
    assert all([await is_present(store, name) for name in names])
    await asyncio.gather(*(presence.close() for presence in held))


async def test_a_name_of_another_schema_is_another_name(store: PostgresStore):
    other = postgres.new_schema()
    elsewhere = await PostgresStore.open(postgres.url(), schema=other)
    presence = await Presence.open(elsewhere, "a")
    assert await is_present(elsewhere, "a")
    assert not await is_present(store, "a")
    await presence.close()
    await elsewhere.close()
    await asyncio.to_thread(postgres.drop, other)


async def test_a_name_is_there_while_one_of_two_holds_it(store: PostgresStore):
    first, second = [await Presence.open(store, "a") for _ in range(2)]
    await first.close()
    assert await is_present(store, "a")
    await second.close()
    await until(store, "a", there=False)


async def test_a_process_that_is_killed_is_gone(store: PostgresStore, schema: str):
    command = [sys.executable, "-c", HOLDING, postgres.url(), schema]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "here\n"
    assert await is_present(store, "worker")
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    process.stdout.close()
    await until(store, "worker", there=False)


async def test_a_name_is_taken_anew_after_the_connection_was_cut(
    store: PostgresStore, far: PostgresStore, proxy: Proxy
):
    presence = await Presence.open(far, "a")
    proxy.refusing = True
    proxy.cut()
    await until(store, "a", there=False)
    async with asyncio.timeout(30):
        while presence.held:
            await asyncio.sleep(0.01)
    proxy.refusing = False
    await until(store, "a", there=True)
    proxy.cut()
    async with asyncio.timeout(30):
        while presence.held:
            await asyncio.sleep(0)
    await until(store, "a", there=True)
    await presence.close()
    await until(store, "a", there=False)


async def test_a_connection_that_the_server_ended_is_replaced(store: PostgresStore, schema: str):
    presence = await Presence.open(store, "a")
    ended = await asyncio.to_thread(
        postgres.fetch,
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> "
        "pg_backend_pid()",
    )
    assert ended == [(True,)]
    await until(store, "a", there=True)
    await presence.close()


async def test_it_can_be_closed_while_the_database_is_away(far: PostgresStore, proxy: Proxy):
    presence = await Presence.open(far, "a")
    proxy.refusing = True
    proxy.cut()
    async with asyncio.timeout(30):
        while presence.held:
            await asyncio.sleep(0.01)
    await presence.close()
    with pytest.raises(TapeUnavailable, match="cannot be reached"):
        await Presence.open(far, "a")
