"""What every ledger does, in the home and in PostgreSQL: of many who want an event, one gets it."""

import asyncio
from itertools import count

import pytest

from hookline.errors import TapeVersionMismatch
from hookline.ext.triggers import TriggerError, TriggerEvent
from hookline.ext.triggers.ledger import PostgresLedger, SQLiteLedger
from hookline.tape.postgres.store import PostgresStore
from hookline.testing import VirtualClock

from .. import postgres
from ..proxy import Proxy

EVENT = TriggerEvent("orders", {"n": 1}, "one", 5.0, "Hello.")


@pytest.fixture
def clock():
    return VirtualClock(1000.0)


@pytest.fixture(params=["sqlite", "postgres"])
async def another(request, tmp_path, clock):
    """Makes a ledger of a process of its own; all of them are one ledger."""
    made, stores = [], []

    async def make():
        if request.param == "sqlite":
            made.append(SQLiteLedger(tmp_path, clock))
        else:
            schema = request.getfixturevalue("schema")
            stores.append(await PostgresStore.open(postgres.url(), schema=schema, timeout=5.0))
            made.append(PostgresLedger(stores[-1]))
        return made[-1]

    yield make
    for each in (*made, *stores):
        await each.close()


@pytest.fixture
async def ledger(another):
    return await another()


async def test_an_event_is_taken_once(ledger):
    taken, record = await ledger.claim(EVENT, "a")
    assert (taken, record.event, record.state, record.owner, record.tries) == (
        True, EVENT, "started", "a", 1,
    )  # fmt: skip
    for owner in ("a", "b"):
        for again in (True, False):
            taken, record = await ledger.claim(EVENT, owner, again=again)
            assert (taken, record.state, record.owner) == (False, "started", "a")
    assert await ledger.find("orders", "one") == record
    assert await ledger.find("others", "one") is None


async def test_of_many_who_want_an_event_at_once_one_gets_it(another):
    ledgers = [await another() for _ in range(3)]
    for number in range(5):
        event = TriggerEvent("orders", id=str(number))
        got = await asyncio.gather(*(each.claim(event, "x") for each in ledgers for _ in range(5)))
        assert [taken for taken, _ in got].count(True) == 1


async def test_of_many_who_want_a_waiting_event_at_once_one_gets_it(another):
    ledgers = [await another() for _ in range(3)]
    for number in range(10):
        assert await ledgers[0].enqueue(TriggerEvent("orders", number, id=str(number)))
    took = []

    async def work(ledger, owner):
        while (event := await ledger.waiting("orders")) is not None:
            if (await ledger.claim(event, owner, again=True))[0]:
                took.append(event.payload)
                assert await ledger.settle(event, owner, "done")

    numbers = count()
    await asyncio.gather(*(work(each, str(next(numbers))) for each in ledgers for _ in range(3)))
    assert sorted(took) == list(range(10))
    assert await ledgers[0].counts("orders") == {"done": 10}


async def test_events_wait_in_their_order_and_once(ledger):
    first, second = (TriggerEvent("orders", n, id=str(n)) for n in range(2))
    assert await ledger.enqueue(first)
    assert await ledger.enqueue(second)
    assert not await ledger.enqueue(first)
    assert await ledger.waiting("orders") == first
    assert await ledger.waiting("others") is None
    assert await ledger.claim(first, "a") == (False, await ledger.find("orders", "0"))
    taken, record = await ledger.claim(first, "a", again=True)
    assert (taken, record.tries) == (True, 1)
    assert await ledger.waiting("orders") == second


async def test_an_event_that_failed_waits_until_it_is_due(ledger, clock):
    await ledger.claim(EVENT, "a")
    assert await ledger.settle(EVENT, "a", "failed", "broken", after=3600)
    assert await ledger.waiting("orders") is None
    taken, record = await ledger.claim(EVENT, "b", again=True)
    assert (taken, record.owner, record.tries, record.note) == (True, "b", 2, "broken")
    assert await ledger.settle(EVENT, "b", "failed", "broken", after=0)
    assert await ledger.waiting("orders") == EVENT


async def test_only_its_owner_settles_an_event(ledger):
    await ledger.claim(EVENT, "a")
    assert not await ledger.settle(EVENT, "b", "failed")
    assert (await ledger.find("orders", "one")).state == "started"
    assert await ledger.settle(EVENT, "a", "done", "fine")
    assert not await ledger.settle(EVENT, "a", "failed")  # it is over
    record = await ledger.find("orders", "one")
    assert (record.state, record.note) == ("done", "fine")


async def test_an_event_of_somebody_who_is_gone_is_taken_over_once(another):
    ledgers = [await another() for _ in range(3)]
    _, record = await ledgers[0].claim(EVENT, "gone")
    assert await ledgers[1].owners() == ["gone"]
    assert await ledgers[1].unfinished("gone") == [record]
    got = await asyncio.gather(*(each.take_over(record, str(n)) for n, each in enumerate(ledgers)))
    (taken,) = [each for each in got if each is not None]
    assert (taken.state, taken.tries) == ("started", 2)
    assert await ledgers[0].find("orders", "one") == taken
    assert not await ledgers[0].settle(EVENT, "gone", "done")
    assert await ledgers[0].settle(EVENT, taken.owner, "done")
    assert await ledgers[0].owners() == []
    assert await ledgers[0].take_over(taken, "late") is None


async def test_an_owner_is_present_from_joining_to_leaving(another):
    here, there = await another(), await another()
    assert not await there.is_present("a")
    await here.join("a")
    await here.join("a")
    assert await here.is_present("a")
    assert await there.is_present("a")
    assert not await there.is_present("b")
    await here.leave()
    await here.leave()
    async with asyncio.timeout(30):
        while await there.is_present("a"):  # the server takes a moment to see the end
            await asyncio.sleep(0.01)


async def test_a_dead_letter_waits_again_as_if_never_tried(ledger):
    await ledger.bury(EVENT, "no field")
    (letter,) = await ledger.dead("orders")
    assert (letter.event, letter.state, letter.tries, letter.note) == (EVENT, "dead", 0, "no field")
    assert not await ledger.revive("orders", "other")
    assert await ledger.revive("orders", "one")
    assert not await ledger.revive("orders", "one")
    assert await ledger.waiting("orders") == EVENT


async def test_what_somebody_has_or_had_is_not_buried(ledger):
    await ledger.claim(EVENT, "a")
    await ledger.bury(EVENT, "no field")
    assert (await ledger.find("orders", "one")).state == "started"
    await ledger.settle(EVENT, "a", "done")
    await ledger.bury(EVENT, "no field")
    assert (await ledger.find("orders", "one")).state == "done"


async def test_the_oldest_that_are_over_are_forgotten(ledger):
    for number in range(6):
        event = TriggerEvent("orders", id=str(number))
        await ledger.claim(event, "a")
        if number != 1:
            await ledger.settle(event, "a", "done")
    await ledger.forget("orders", keep=2)
    left = [n for n in range(6) if await ledger.find("orders", str(n)) is not None]
    assert left == [1, 4, 5]


async def test_a_mark_goes_forward_and_back_only_when_told(ledger):
    assert await ledger.mark("hourly", 100.0) == 100.0
    assert await ledger.mark("hourly", 200.0) == 100.0
    await ledger.move_mark("hourly", 50.0)
    assert await ledger.mark("hourly", 0.0) == 100.0
    await ledger.move_mark("hourly", 150.0)
    assert await ledger.mark("hourly", 0.0) == 150.0
    await ledger.move_mark("hourly", 50.0, back=True)
    assert await ledger.mark("hourly", 0.0) == 50.0


async def test_a_moment_behind_the_mark_is_not_taken_and_leaves_nothing(ledger):
    later, earlier = (TriggerEvent("hourly", id=name) for name in ("13:00", "12:00"))
    assert (await ledger.claim(later, "a", mark=13.0))[0]
    assert not (await ledger.claim(earlier, "b", mark=12.0))[0]
    assert not (await ledger.claim(earlier, "b", mark=13.0))[0]
    assert await ledger.find("hourly", "12:00") is None
    assert await ledger.mark("hourly", 0.0) == 13.0
    # A clock that was wrong is set back: what was taken already is not taken again.
    await ledger.move_mark("hourly", 12.0, back=True)
    assert not (await ledger.claim(later, "b", mark=13.0))[0]


async def test_texts_that_a_database_may_not_like_are_kept(ledger):
    event = TriggerEvent("orders", {"a\0b": "\ud800"}, "o'r%s\"", 5.0, "nul \0 here", "web:\0")
    taken, record = await ledger.claim(event, "a")
    assert (taken, record.event) == (True, event)
    assert await ledger.settle(event, "a", "dead", "it said %s and {this}")
    assert (await ledger.find("orders", event.id)).note == "it said %s and {this}"


# --- PostgreSQL alone ---------------------------------------------------------------------------


@pytest.fixture
async def proxy():
    async with Proxy(postgres.socket_path()) as running:
        yield running


@pytest.fixture
async def far(proxy, schema):
    """A ledger behind a network."""
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
    store = await PostgresStore.open(url, schema=schema, timeout=5.0)
    yield PostgresLedger(store)
    await store.close()


CALLS = {
    "claim": (
        "state = 'started'",
        lambda ledger: ledger.claim(EVENT, "a", mark=7.0),
        lambda answer: answer[0],
    ),
    "claim-again": (
        "state = 'started'",
        lambda ledger: ledger.claim(EVENT, "a", again=True),
        lambda answer: answer[0] and answer[1].tries == 1,
    ),
    "enqueue": ("state = 'queued'", lambda ledger: ledger.enqueue(EVENT), lambda answer: answer),
    "settle": (
        "state = 'done'",
        lambda ledger: ledger.settle(EVENT, "a", "done"),
        lambda answer: answer,
    ),
    "revive": (
        "state = 'queued'",
        lambda ledger: ledger.revive("orders", "one"),
        lambda answer: answer,
    ),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_whose_answer_was_lost_knows_what_it_did(far, proxy, schema, call):
    reached, made, is_right = CALLS[call]
    await far.counts("orders")
    if call == "claim-again":
        await far.enqueue(EVENT)
    elif call == "settle":
        await far.claim(EVENT, "a")
    elif call == "revive":
        await far.bury(EVENT, "")
    proxy.backward.clear()
    calling = asyncio.create_task(made(far))
    statement = f"SELECT 1 FROM {schema}.trigger_events WHERE {reached}"
    async with asyncio.timeout(3):
        while not await asyncio.to_thread(postgres.fetch, statement) and not calling.done():
            proxy.backward.set()  # one answer of a transaction after the other, but not the last
            await asyncio.sleep(0)
            proxy.backward.clear()
    proxy.cut()
    proxy.backward.set()
    assert is_right(await calling)
    assert not (await far.claim(EVENT, "b"))[0]


async def test_an_id_that_cannot_be_kept_is_refused(schema):
    store = await PostgresStore.open(postgres.url(), schema=schema)
    ledger = PostgresLedger(store)
    with pytest.raises(TriggerError, match="cannot be kept in PostgreSQL; give it an id"):
        await ledger.claim(TriggerEvent("orders", id="a\0b"), "a")
    assert await ledger.find("orders", "a\0b") is None
    assert not await ledger.revive("orders", "a\0b")
    await store.close()


async def test_tables_of_a_newer_version_are_left_alone(schema):
    store = await PostgresStore.open(postgres.url(), schema=schema)
    await PostgresLedger(store).counts("orders")
    await asyncio.to_thread(
        postgres.execute, f"UPDATE {schema}.versions SET version = 99 WHERE part = 'triggers'"
    )
    with pytest.raises(TapeVersionMismatch, match="has version 99"):
        await PostgresLedger(store).counts("orders")
    await store.close()
