"""A queue in a real NATS server: at least once, one turn, whatever the broker does."""

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import nats
import pytest

from hookline.ext.triggers import TriggerError, Triggers
from hookline.ext.triggers.jetstream import KEY
from hookline.models.script import Fault, Turn

from .conftest import said
from .test_triggers import dead_letters, settled_as

SERVER = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which(
    "nats-server"
)


class Broker:
    """A NATS server that can be killed and started again in its place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = None

    @property
    def address(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        where = ["-a", "127.0.0.1", "-p", str(self.port)]
        command = [SERVER, *where, "-js", "-sd", str(self.folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                except OSError:
                    await asyncio.sleep(0.02)

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


@pytest.fixture
async def broker(tmp_path):
    made = Broker(tmp_path / "nats")
    await made.start()
    yield made
    made.kill()


@pytest.fixture
def orders(settings, broker):
    settings(
        f"""
        [triggers.orders]
        type = "queue"
        broker = "{broker.address}"
        message = "Order {{id}} came."
        retry.first = 0.01
        """
    )


async def publish(broker, data, key=None):
    client = await nats.connect(broker.address)
    await client.jetstream().publish("hookline.orders", data, headers={KEY: key} if key else None)
    await client.close()


@pytest.mark.usefixtures("orders")
async def test_events_of_any_publisher_make_turns(scripted, serving, broker):
    model = scripted("ok", repeat=True)
    async with serving() as triggers:
        assert await triggers.enqueue("orders", {"id": 1}, "one") == ("one", True)
        await settled_as(triggers, "one", "done")
        await publish(broker, b'{"id": 2}')
        await settled_as(triggers, "hookline-orders:2", "done")
    assert said(model) == ["Order 1 came.", "Order 2 came."]


@pytest.mark.usefixtures("orders")
async def test_what_came_before_the_start_waits(scripted, app, serving):
    scripted("ok", repeat=True)
    first = Triggers(app)
    async with app.running():
        for number in range(5):
            await first.enqueue("orders", {"id": number}, f"order-{number}")
        await first.close()
    async with serving() as triggers:
        for number in range(5):
            await settled_as(triggers, f"order-{number}", "done")


@pytest.mark.usefixtures("orders")
async def test_an_event_that_is_published_or_delivered_again_makes_one_turn(scripted, serving, broker):
    model = scripted("ok", repeat=True)
    async with serving() as triggers:
        assert (await triggers.enqueue("orders", {"id": 1}, "one"))[1]
        assert not (await triggers.enqueue("orders", {"id": 1}, "one"))[1]
        await settled_as(triggers, "one", "done")
    client = await nats.connect(broker.address)
    # The broker forgets how far the consumer had come, and delivers everything again.
    await client.jetstream().delete_consumer("hookline-orders", "hookline-orders")
    await client.close()
    async with serving() as triggers:
        await triggers.enqueue("orders", {"id": 2}, "two")
        await settled_as(triggers, "two", "done")
    assert said(model) == ["Order 1 came.", "Order 2 came."]


@pytest.mark.usefixtures("orders")
async def test_a_broker_that_goes_away_and_comes_back_loses_nothing(scripted, serving, broker, errors):
    model = scripted("ok", repeat=True)
    async with serving() as triggers:
        await triggers.enqueue("orders", {"id": 1}, "one")
        await settled_as(triggers, "one", "done")
        broker.kill()
        async with asyncio.timeout(30):
            while not errors:
                await asyncio.sleep(0.01)
        with pytest.raises(TriggerError, match="cannot reach the broker"):
            await triggers.enqueue("orders", {"id": 2}, "two")
        await broker.start()
        await triggers.enqueue("orders", {"id": 2}, "two")
        await settled_as(triggers, "two", "done")
    assert said(model) == ["Order 1 came.", "Order 2 came."]
    assert {stage for stage, _ in errors} == {"trigger"}


@pytest.mark.usefixtures("orders")
async def test_a_broker_that_is_not_there_yet_is_waited_for(scripted, serving, broker, errors):
    scripted("ok")
    broker.kill()
    async with serving() as triggers:
        async with asyncio.timeout(30):
            while not errors:
                await asyncio.sleep(0.01)
        await broker.start()
        await triggers.enqueue("orders", {"id": 1}, "one")
        await settled_as(triggers, "one", "done")


@pytest.mark.usefixtures("orders")
async def test_a_poison_message_becomes_a_dead_letter_and_the_next_has_its_turn(
    scripted, serving, broker, errors
):
    failing = [Turn(error=Fault("broken")) for _ in range(3)]
    model = scripted(*failing, "ok")
    async with serving() as triggers:
        await triggers.enqueue("orders", {"no": "id"}, "empty")
        await publish(broker, b"not json", "text")
        await triggers.enqueue("orders", {"id": 1}, "fails")
        await dead_letters(triggers, 3)
        await triggers.enqueue("orders", {"id": 2}, "good")
        await settled_as(triggers, "good", "done")
        dead = {r.event.id: (r.tries, r.note) for r in await triggers.ledger.dead("orders")}
    assert dead["text"] == (0, "it is not JSON")
    assert dead["empty"][1] == "the payload has no field 'id', which the template needs"
    assert dead["fails"] == (3, "ModelFailed: broken")
    assert len(model.requests) == 4


@pytest.mark.usefixtures("orders")
async def test_two_processes_share_the_events(tmp_path, app, broker):
    program = Path(__file__).with_name("sharing.py")
    command = [sys.executable, str(program), str(app.home)]
    triggers = Triggers(app)
    async with app.running():
        for number in range(20):
            await triggers.enqueue("orders", {"id": number}, f"order-{number}")
        processes = [
            await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE) for _ in range(2)
        ]
        outputs = [(await p.communicate())[0].decode() for p in processes]
        counts = await triggers.ledger.counts("orders")
        await triggers.close()
    turns = [line for output in outputs for line in json.loads(output)]
    assert counts == {"done": 20}
    assert sorted(turns) == sorted(f"Order {number} came." for number in range(20))
