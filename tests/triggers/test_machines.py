"""Triggers on machines that share tapes in PostgreSQL: an event has one turn among all of them."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookline.ext.triggers import TriggerEvent
from hookline.ext.triggers.ledger import LOOK_EVERY, PostgresLedger
from hookline.ext.triggers.webhook import sign
from hookline.tape import TapeUnavailable

from .. import forks, postgres
from ..proxy import Proxy
from .machines import Machine, write_settings
from .test_cron import racing

HOUR = 3600.0
NOON = datetime(2026, 6, 15, 12, 0, tzinfo=UTC).timestamp()

HOURLY = """
[triggers.hourly]
type = "cron"
schedule = "0 * * * *"
message = "It is {time}."
"""
QUEUE = """
[triggers.orders]
type = "queue"
message = "Order {id} came."
session = "order:{id}"
channel = "telegram"
poll = 0.5
retry.first = 600
"""
CRASHING = """
[triggers.orders]
type = "queue"
message = "Order {order.id} came."
session = "orders:{order.customer}"
channel = "telegram"
chat = "{order.customer}"
poll = 600
"""
SECRET = "a secret of some length"
WEBHOOK = f'[triggers.hook]\ntype = "webhook"\nsecret = "{SECRET}"\nmessage = "{{text}}"\n'


@pytest.fixture
async def machine(tmp_path, schema):
    """Starts another machine."""
    async with AsyncExitStack() as stack:
        numbers = iter(range(100))

        async def start(text, now=NOON, *answers, url=None) -> Machine:
            home = tmp_path / f"machine-{next(numbers)}"
            write_settings(home, schema, text, url)
            made = Machine(home, now, *answers)
            await stack.enter_async_context(made.running())
            return made

        yield start


@pytest.fixture
async def proxy():
    async with Proxy(postgres.socket_path()) as running:
        yield running
        running.refusing = False
        running.backward.set()


def through(proxy: Proxy) -> str:
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"


async def until(condition) -> None:
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.01)


async def until_gone(machine: Machine, owner: str) -> None:
    async def gone() -> bool:
        return not await machine.triggers.ledger.is_present(owner)

    await until(gone)


async def until_settled(machine: Machine, event_id: str, state: str = "done") -> None:
    async def settled() -> bool:
        record = await machine.triggers.ledger.find("orders", event_id)
        return record is not None and record.state == state

    await until(settled)


# --- cron ---------------------------------------------------------------------------------------


async def test_machines_whose_clocks_differ_fire_each_moment_once(machine):
    off = [0.0, 300.0, -300.0]
    machines = [await machine(HOURLY, NOON - 1800 + seconds) for seconds in off]
    for each in machines:
        await each.clock.asleep(2)  # the schedule, and the look for those who are gone
    for _ in range(3 * 12):  # five minutes at a time
        await asyncio.gather(*(each.clock.advance(HOUR / 12) for each in machines))
        for each in machines:
            await each.triggers.drained()
    fired = [r.messages[-1]["content"] for each in machines for r in each.model.requests]
    wanted = [f"It is 2026-06-15T{hour}:00:00+00:00." for hour in range(12, 15)]
    assert sorted(fired) == wanted
    assert await machines[0].heard("trigger:hourly", "user") == wanted
    assert await machines[0].ends("trigger:hourly") == ["completed"] * 3
    assert [len(each.model.requests) for each in machines] == [0, 3, 0]  # the clock that is ahead


def test_processes_with_homes_of_their_own_fire_each_moment_once(tmp_path, schema):
    processes = []
    for number in range(3):
        home = tmp_path / f"machine-{number}"
        write_settings(home, schema, HOURLY)
        processes.append(racing(home))
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    fired = [line for p in processes for line in p.communicate()[0].splitlines()]
    assert [p.returncode for p in processes] == [0, 0, 0]
    assert sorted(fired) == sorted(set(fired))
    assert len(fired) == 20


# --- queues and webhooks --------------------------------------------------------------------------


async def test_machines_share_a_queue_and_each_event_has_one_turn(machine):
    machines = [await machine(QUEUE + "concurrency = 3\n") for _ in range(3)]
    for number in range(20):
        assert (await machines[0].triggers.enqueue("orders", {"id": number}, str(number)))[1]
    assert not (await machines[1].triggers.enqueue("orders", {"id": 0}, "0"))[1]

    async def all_done() -> bool:
        for each in machines:
            await each.clock.advance(0.5)
        return await machines[0].triggers.ledger.counts("orders") == {"done": 20}

    await until(all_done)
    asked = [r.messages[-1]["content"] for each in machines for r in each.model.requests]
    assert sorted(asked) == sorted(f"Order {number} came." for number in range(20))


async def test_a_retry_waits_for_the_servers_clock_whatever_that_of_a_machine_says(machine):
    first = await machine(QUEUE)
    event = TriggerEvent("orders", {"id": 1}, "one")
    await first.triggers.ledger.claim(event, "somebody")
    await first.triggers.ledger.settle(event, "somebody", "failed", "broken", after=600)
    ahead = await machine(QUEUE, NOON + 24 * HOUR)
    await ahead.clock.asleep(2)
    await ahead.clock.advance(HOUR)
    assert await ahead.triggers.ledger.waiting("orders") is None
    assert (await ahead.triggers.ledger.find("orders", "one")).state == "failed"


async def test_a_webhook_that_two_machines_get_makes_one_turn(machine):
    machines = [await machine(WEBHOOK) for _ in range(2)]
    body = b'{"text": "Hello."}'
    headers = {name.lower(): value for name, value in sign(SECRET, int(NOON), body, "id-1").items()}
    hooks = [each.triggers.configured["hook"] for each in machines]
    answers = await asyncio.gather(*(hook.receive(headers, body) for hook in hooks for _ in range(3)))
    for each in machines:
        await each.triggers.drained()
    assert sorted(status for status, _ in answers) == [202, 409, 409, 409, 409, 409]
    assert await machines[0].heard("trigger:hook", "user") == ["Hello."]
    assert sum(len(each.model.requests) for each in machines) == 1


# --- owners who are gone --------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["claimed", "model"])
async def test_an_event_of_a_process_that_was_killed_has_its_turn_on_another_machine(
    machine, tmp_path, schema, point
):
    other = await machine(CRASHING, NOON, "Thank you.")
    await other.clock.asleep(2)
    home = tmp_path / "dying"
    write_settings(home, schema, CRASHING)
    program = str(Path(__file__).with_name("crashing.py"))
    process = await asyncio.create_subprocess_exec(sys.executable, program, str(home), point)
    assert await process.wait() == -9
    (owner,) = await other.triggers.ledger.owners()
    await until_gone(other, owner)
    await other.clock.advance(LOOK_EVERY)  # it is not there
    assert await other.triggers.ledger.owners() == [owner]
    await other.clock.advance(LOOK_EVERY)  # it is still not there
    await until_settled(other, "one")
    assert await other.heard("orders:ada", "user") == ["Order 17 came."]
    assert await other.heard("orders:ada", "assistant") == ["Thank you."]
    assert await other.ends("orders:ada") == ["completed"]
    assert other.sent == ["Thank you."]


async def test_of_many_machines_one_takes_over(machine, tmp_path, schema):
    machines = [await machine(QUEUE) for _ in range(4)]
    for number in range(5):
        event = TriggerEvent("orders", {"id": number}, str(number))
        assert (await machines[0].triggers.ledger.claim(event, "gone"))[0]
    for _ in range(2):
        await asyncio.gather(*(each.triggers.recovery.look() for each in machines))
    for each in machines:
        await each.triggers.drained()
    assert await machines[0].triggers.ledger.counts("orders") == {"done": 5}
    assert sum(len(each.model.requests) for each in machines) == 5


async def test_a_turn_that_was_parked_goes_on_on_another_machine(machine, tmp_path, schema):
    other = await machine(QUEUE, NOON, "Thank you.")
    write_settings(tmp_path / "leaving", schema, QUEUE)
    leaving = Machine(tmp_path / "leaving", NOON)
    asking = hang(leaving)
    async with leaving.running():
        await leaving.triggers.emit(TriggerEvent("orders", {"id": 1}, "one"))
        await asking.wait()
    await until_gone(other, leaving.triggers.turns.owner)
    for _ in range(2):
        await other.triggers.recovery.look()
    await other.triggers.drained()
    assert await other.heard("order:1", "assistant") == ["Thank you."]
    assert await other.ends("order:1") == ["completed"]


async def test_a_machine_whose_connection_breaks_for_a_moment_keeps_its_events(machine, proxy):
    away, other = await machine(QUEUE, url=through(proxy)), await machine(QUEUE)
    asking = hang(away)
    await away.triggers.emit(TriggerEvent("orders", {"id": 1}, "one"))
    await asking.wait()
    owner = away.triggers.turns.owner
    proxy.refusing = True
    proxy.cut()
    await until_gone(other, owner)
    await other.triggers.recovery.look()
    proxy.refusing = False

    async def back() -> bool:
        return await other.triggers.ledger.is_present(owner)

    await until(back)
    for _ in range(2):
        await other.triggers.recovery.look()
    record = await other.triggers.ledger.find("orders", "one")
    assert (record.state, record.owner) == ("started", owner)
    await away.clock.asleep(2)
    await away.clock.advance(LOOK_EVERY)
    asking.go_on.set()
    await until_settled(other, "one")
    assert await other.ends("order:1") == ["completed"]
    assert other.model.requests == []


async def test_a_machine_that_was_away_for_long_gives_up_what_another_has_done(machine, proxy):
    away = await machine(QUEUE, NOON, "Too late.", url=through(proxy))
    other = await machine(QUEUE, NOON, "Thank you.")
    asking = hang(away)
    receipt = await away.triggers.emit(TriggerEvent("orders", {"id": 1}, "one"))
    await asking.wait()
    proxy.refusing = True
    proxy.cut()
    await until_gone(other, away.triggers.turns.owner)
    for _ in range(2):
        await other.triggers.recovery.look()
    await until_settled(other, "one")
    proxy.refusing = False
    await away.clock.asleep(2)
    await away.clock.advance(LOOK_EVERY)
    async with asyncio.timeout(30):
        settled = await receipt.settled()
    assert (settled.state, settled.result.outcome) == ("started", "cancelled")
    assert away.model.requests == []
    assert await other.heard("order:1", "assistant") == ["Thank you."]
    assert await other.ends("order:1") == ["completed"]
    assert (away.sent, other.sent) == ([], ["Thank you."])


async def test_an_event_that_was_taken_when_the_database_went_away_has_its_turn_after_all(
    machine, proxy, schema
):
    here = await machine(QUEUE, url=through(proxy))
    await here.clock.asleep(2)
    proxy.backward.clear()
    taking = asyncio.create_task(here.triggers.emit(TriggerEvent("orders", {"id": 1}, "one")))
    statement = f"SELECT 1 FROM {schema}.trigger_events"
    while not await asyncio.to_thread(postgres.fetch, statement):
        proxy.backward.set()  # one answer after the other, but not the one that it was kept
        await asyncio.sleep(0)
        proxy.backward.clear()
    proxy.refusing = True
    proxy.cut()
    with pytest.raises(TapeUnavailable, match="cannot be reached"):
        await taking
    proxy.backward.set()
    proxy.refusing = False
    await here.clock.advance(LOOK_EVERY)
    await until_settled(here, "one")
    assert await here.ends("order:1") == ["completed"]
    assert len(here.model.requests) == 1


def hang(machine: Machine) -> asyncio.Event:
    """Let the model's next call wait for `go_on`; the event says that it is asked."""
    asking, go_on = asyncio.Event(), asyncio.Event()

    async def wait(event) -> None:
        asking.set()
        await go_on.wait()

    machine.app.hooks.register("model_call", wait)
    asking.go_on = go_on
    return asking


# --- where the ledger is --------------------------------------------------------------------------


async def test_tapes_that_are_redacted_have_the_same_ledger(machine):
    plain = await machine(QUEUE)
    redacted = await machine(QUEUE + "[redaction]\nenabled = true\n")
    assert type(redacted.app.store()) is not type(plain.app.store())
    assert isinstance(redacted.triggers.ledger, PostgresLedger)
    await plain.triggers.ledger.enqueue(TriggerEvent("others", id="one"))
    assert await redacted.triggers.ledger.counts("others") == {"queued": 1}
    assert not (redacted.app.home / "triggers.db").exists()


def test_the_commands_of_all_machines_see_one_ledger(tmp_path, schema):
    script = tmp_path / "script.toml"
    script.write_text('[[turns]]\ntext = "All done."\n')
    for name in ("a", "b"):
        write_settings(tmp_path / name, schema, QUEUE)
        file = tmp_path / name / "config.toml"
        file.write_text(f'model = "scripted:{script}"\n' + file.read_text())

    def hookline(name, *arguments):
        environment = {**os.environ, "HOOKLINE_HOME": str(tmp_path / name)}
        done = forks.run(forks.MAIN, "triggers", *arguments, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    payload = json.dumps({"id": 1})
    assert hookline("a", "enqueue", "orders", payload, "--id", "one") == "one\n"
    assert "known already" in hookline("b", "enqueue", "orders", payload, "--id", "one")
    assert hookline("b", "fire", "orders", payload) == "All done.\n"
    assert hookline("a", "list").split() == ["orders", "queue", "1", "done,", "1", "queued"]
    assert hookline("b", "dead", "orders") == "the trigger 'orders' has no dead letters\n"
