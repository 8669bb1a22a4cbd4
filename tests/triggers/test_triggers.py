"""Triggers in the app: the same pipeline and gates, nothing lost, nothing twice."""

import asyncio
import json
from pathlib import Path

import pytest

from hookline import hookimpl
from hookline.config import ConfigError
from hookline.events import InputEventResult, MessageReceiveResult
from hookline.ext.triggers import TriggerError, TriggerEvent, Triggers, TriggersStopping
from hookline.ext.triggers.ledger import SQLiteLedger
from hookline.models.script import Fault, Turn

from .. import forks, postgres
from .conftest import said

QUEUE = """
[triggers.orders]
type = "queue"
message = "Order {order.id} came."
session = "orders:{order.customer}"
channel = "telegram"
chat = "{order.customer}"
poll = 0.01
retry.first = 0.01
"""

ORDER = {"order": {"id": 17, "customer": "ada"}}


@pytest.fixture
def orders_at_home(settings):
    settings(QUEUE)


@pytest.fixture(params=["home", "postgres"])
def orders(request, settings):
    """What is recorded is in the home, or beside tapes in PostgreSQL."""
    tape = ""
    if request.param == "postgres":
        tape = f'[tape]\nurl = "{postgres.url()}"\nschema = "{request.getfixturevalue("schema")}"\n'
    settings(tape + QUEUE)


@pytest.mark.usefixtures("orders")
async def test_an_event_names_session_message_and_the_channel_for_the_answer(
    app, scripted, sent, serving
):
    model = scripted("Thank you.")
    sources = []
    app.hooks.register("input", lambda event: sources.append(event.source))
    async with serving() as triggers:
        await (await triggers.emit(TriggerEvent("orders", ORDER))).settled()
        sessions = [info.id for info in await app.store().sessions()]
    assert said(model) == ["Order 17 came."]
    assert sources == ["trigger:orders"]
    assert sessions == ["orders:ada"]
    assert sent == [("telegram", "ada", "Thank you.")]


@pytest.mark.usefixtures("orders")
async def test_an_answer_that_a_plugin_renders_goes_there_too(app, scripted, sent, serving):
    scripted("Thank you.")
    app.hooks.register(
        "render_outbound",
        lambda message, model_output: [
            {
                "content": model_output.upper(),
                "channel": message["channel"],
                "chat_id": message["chat_id"],
            }
        ],
    )
    async with serving() as triggers:
        await (await triggers.emit(TriggerEvent("orders", ORDER))).settled()
    assert sent == [("telegram", "ada", "THANK YOU.")]


@pytest.mark.usefixtures("orders")
async def test_an_answer_for_a_channel_that_is_not_there_is_told(app, scripted, serving, caplog):
    scripted("Thank you.")
    async with serving() as triggers:
        settled = await (await triggers.emit(TriggerEvent("orders", ORDER))).settled()
    assert settled.state == "done"
    assert "trigger.answer_not_sent trigger=orders channel=telegram" in caplog.text


@pytest.mark.usefixtures("orders")
async def test_the_channels_gates_judge_an_event(app, scripted, serving):
    model = scripted("never")
    heard = []

    def reject(event):
        heard.append((event.channel_id, event.text))
        return MessageReceiveResult(action="reject", reason="not today")

    app.hooks.register("message:receive", reject)
    async with serving() as triggers:
        settled = await (await triggers.emit(TriggerEvent("orders", ORDER))).settled()
    assert heard == [("trigger:orders", "Order 17 came.")]
    assert (settled.state, settled.result.outcome, settled.result.stopped) == (
        "done", "rejected", "not today",
    )  # fmt: skip
    assert model.requests == []


@pytest.mark.usefixtures("orders")
async def test_an_event_that_comes_often_makes_one_turn(scripted, serving):
    model = scripted("ok", repeat=True)
    async with serving() as triggers:
        event = TriggerEvent("orders", ORDER, id="same")
        receipts = await asyncio.gather(*(triggers.emit(event) for _ in range(20)))
        await triggers.drained()
        late = await triggers.emit(event)
    assert [receipt.taken for receipt in receipts].count(True) == 1
    assert (late.taken, late.state) == (False, "done")
    assert said(model) == ["Order 17 came."]


@pytest.mark.usefixtures("orders")
async def test_a_turn_that_fails_is_tried_again_and_then_is_a_dead_letter(scripted, serving, errors):
    failing = [Turn(error=Fault("broken")) for _ in range(3)]
    model = scripted(*failing, "Thank you.")
    async with serving() as triggers:
        await triggers.enqueue("orders", ORDER, "bad")
        await dead_letters(triggers, 1)
        (letter,) = await triggers.ledger.dead("orders")
        await triggers.enqueue("orders", {"order": {"id": 18, "customer": "ada"}}, "good")
        await settled_as(triggers, "good", "done")
    assert (letter.event.id, letter.tries) == ("bad", 3)
    assert "broken" in letter.note
    assert len(model.requests) == 4
    assert {stage for stage, _ in errors} == {"run_model"}


@pytest.mark.usefixtures("orders")
async def test_a_dead_letter_may_be_tried_again(scripted, serving):
    scripted(*[Turn(error=Fault("broken")) for _ in range(3)], "Thank you.")
    async with serving() as triggers:
        await triggers.enqueue("orders", ORDER, "bad")
        await dead_letters(triggers, 1)
        await triggers.revive("orders", "bad")
        with pytest.raises(TriggerError, match="no dead letter 'other'"):
            await triggers.revive("orders", "other")
        await settled_as(triggers, "bad", "done")


@pytest.mark.usefixtures("orders")
async def test_an_event_that_no_message_can_be_made_of_does_not_block_the_queue(
    scripted, serving, errors
):
    model = scripted("Thank you.")
    async with serving() as triggers:
        await triggers.enqueue("orders", {"order": {"customer": "ada"}}, "poison")
        await triggers.enqueue("orders", ORDER, "good")
        await settled_as(triggers, "good", "done")
        (letter,) = await triggers.ledger.dead("orders")
    assert (letter.event.id, letter.note) == (
        "poison", "the payload has no field 'order.id', which the template needs",
    )  # fmt: skip
    assert said(model) == ["Order 17 came."]
    assert [stage for stage, _ in errors] == ["trigger"]


async def test_a_queue_keeps_its_order_and_takes_some_at_a_time(settings, scripted, serving):
    settings(
        '[triggers.jobs]\ntype = "queue"\nmessage = "{n}"\nsession = "job:{n}"\n'
        "concurrency = 4\npoll = 0.01\n"
    )
    model = scripted("ok", repeat=True)
    async with serving() as triggers:
        for n in range(20):
            await triggers.enqueue("jobs", {"n": n}, f"job-{n}")
        for n in range(20):
            await settled_as(triggers, f"job-{n}", "done", "jobs")
    assert sorted(map(int, said(model))) == list(range(20))


class Shaky:
    """A plugin's own trigger, which fails in one of its hooks."""

    def __init__(self, failing):
        self.failing = failing
        self.called = []

    def _call(self, hook):
        self.called.append(hook)
        if hook == self.failing:
            raise ValueError(f"{hook} broke")

    @hookimpl
    def trigger_init(self, deps):
        self.emit = deps["emit"]
        self._call("trigger_init")

    @hookimpl
    def trigger_routes(self):
        self._call("trigger_routes")
        return []

    @hookimpl
    async def trigger_start(self, deps):
        self._call("trigger_start")
        await self.emit(TriggerEvent("shaky", message="Shaky says hello."))

    @hookimpl
    def trigger_stop(self, deps):
        self._call("trigger_stop")


@pytest.mark.parametrize("hook", ["trigger_init", "trigger_routes", "trigger_start", "trigger_stop"])
@pytest.mark.usefixtures("orders")
async def test_a_trigger_that_fails_in_any_hook_never_stops_another(
    app, scripted, serving, errors, hook
):
    scripted("ok", repeat=True)
    shaky = Shaky(hook)
    app.hooks.add(shaky, name="shaky")
    async with serving() as triggers:
        await triggers.enqueue("orders", ORDER, "one")
        await settled_as(triggers, "one", "done")
    assert [(stage, str(error)) for stage, error in errors] == [("trigger", f"{hook} broke")]
    after = [] if hook == "trigger_init" else ["trigger_routes", "trigger_start", "trigger_stop"]
    assert shaky.called == ["trigger_init", *after]


async def test_a_plugins_trigger_needs_no_section(app, scripted, serving):
    model = scripted("ok")
    app.hooks.add(Shaky(None), name="shaky")
    async with serving() as triggers:
        await triggers.drained()
        sessions = [info.id for info in await app.store().sessions()]
    assert said(model) == ["Shaky says hello."]
    assert sessions == ["trigger:shaky"]


@pytest.mark.usefixtures("orders_at_home")
async def test_after_the_end_nothing_is_accepted_and_nothing_is_left_behind(app, scripted, serving):
    scripted("ok")
    async with serving() as triggers:
        assert "trigger:orders" in app.hooks.report()["trigger_init"]
    with pytest.raises(TriggersStopping):
        await triggers.emit(TriggerEvent("orders", ORDER))
    assert "trigger:orders" not in str(app.hooks.report())
    assert app.hooks.report()["dispatch_outbound"] == ["builtin"]
    assert [*(app.home / "triggers").iterdir()] == []


@pytest.mark.parametrize("point", ["claimed", "model"])
@pytest.mark.usefixtures("orders_at_home")
def test_an_event_of_a_process_that_died_has_its_turn_at_the_next_start(tmp_path, point):
    home = tmp_path / "home"
    assert run_crashing(home, point).returncode == -9
    done = run_crashing(home, "")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["state"] == "done"
    assert told["user"] == ["Order 17 came."]
    assert told["assistant"] == ["Thank you."]
    assert told["sent"] == ["Thank you."]


def run_crashing(home, point):
    program = Path(__file__).with_name("crashing.py")
    return forks.run(program.read_text(), home, point)


@pytest.mark.usefixtures("orders_at_home")
async def test_an_event_that_ends_every_process_does_not_do_so_for_ever(app, scripted, serving):
    model = scripted("never")
    ledger = SQLiteLedger(app.home)
    _, record = await ledger.claim(TriggerEvent("orders", ORDER, id="deadly"), "process-0")
    for number in range(1, 8):
        record = await ledger.take_over(record, f"process-{number}")
    async with serving() as triggers:
        (letter,) = await triggers.ledger.dead("orders")
    await ledger.close()
    assert (letter.event.id, letter.note) == ("deadly", "6 processes ended in the middle of it")
    assert model.requests == []


@pytest.mark.usefixtures("orders_at_home")
async def test_a_turn_that_takes_too_long_to_end_goes_on_at_the_next_start(
    app, scripted, sent, serving
):
    model = scripted("Thank you.")
    asking, never = asyncio.Event(), asyncio.Event()

    async def hang(event):
        asking.set()
        await never.wait()

    off = app.hooks.register("model_call", hang)
    triggers = Triggers(app)
    async with app.running():
        await triggers.start()
        await triggers.emit(TriggerEvent("orders", ORDER, id="long"))
        await asking.wait()
        await triggers.stop(drain=0.01)
        off()
    assert sent == []
    async with serving() as triggers:
        await triggers.drained()
        record = await triggers.ledger.find("orders", "long")
        heard = [
            e.payload["message"]["content"]
            for e in await app.store().entries("orders:ada", kinds={"message"})
        ]
    assert record.state == "done"
    assert heard == ["Order 17 came.", "Thank you."]
    assert sent == [("telegram", "ada", "Thank you.")]
    assert len(model.requests) == 1


@pytest.mark.usefixtures("orders")
async def test_another_process_does_not_take_over_what_a_living_one_has(app, scripted, serving):
    scripted("ok")
    began, go_on = asyncio.Event(), asyncio.Event()

    async def hold(event):
        began.set()
        await go_on.wait()

    app.hooks.register("agent_start", hold)
    async with serving() as triggers:
        receipt = await triggers.emit(TriggerEvent("orders", ORDER, id="held"))
        await began.wait()
        second = Triggers(app)
        for _ in range(2):
            await second.recovery.look()
        record = await second.ledger.find("orders", "held")
        assert (record.state, record.owner) == ("started", triggers.turns.owner)
        await second.close()
        go_on.set()
        assert (await receipt.settled()).state == "done"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[triggers.a]\n", "[triggers.a] has no type: there are cron, webhook, queue, watch"),
        ('[triggers.a]\ntype = "corn"\n', "the unknown type 'corn'; did you mean 'cron'?"),
        (
            '[triggers.a]\ntype = "queue"\nmessage = "{a b}"\n',
            "triggers.a.message: '{a b}' is no field",
        ),
        ('[triggers.a]\ntype = "queue"\nretry.attempts = 0\n', "triggers.a.retry: "),
        (
            '[triggers.a]\ntype = "queue"\nbroker = "redis://x"\n',
            "triggers.a.broker: must be an address",
        ),
        ('triggers = "no"\n', "must be a table, such as [triggers]"),
    ],
)
def test_a_wrong_section_is_refused_by_name(app, settings, text, says):
    def read():
        settings(text)
        Triggers(app)

    with pytest.raises(ConfigError) as refused:
        read()
    assert says in str(refused.value)


async def test_a_disabled_trigger_does_not_start(app, settings, serving):
    settings(QUEUE + "enabled = false\n")
    async with serving() as triggers:
        assert triggers.configured == {}


def test_a_project_starts_no_turns(app):
    folder = app.workspace / ".hookline"
    folder.mkdir()
    (folder / "config.toml").write_text('[triggers.a]\ntype = "cron"\nschedule = "* * * * *"\n')
    assert Triggers(app).configured == {}
    assert {each.dotted.partition(".")[0] for each in app.config.inert} == {"triggers"}


async def test_an_event_handled_by_a_plugin_makes_no_model_call(app, settings, scripted, serving):
    settings(QUEUE)
    model = scripted("never")
    app.hooks.register("input", lambda event: InputEventResult(action="handled"))
    async with serving() as triggers:
        settled = await (await triggers.emit(TriggerEvent("orders", ORDER))).settled()
    assert (settled.state, settled.result.outcome, model.requests) == ("done", "handled", [])


async def settled_as(triggers, event_id, state, name="orders"):
    async with asyncio.timeout(30):
        while (record := await triggers.ledger.find(name, event_id)) is None or record.state != state:
            await asyncio.sleep(0.01)


async def dead_letters(triggers, count, name="orders"):
    async with asyncio.timeout(30):
        while len(await triggers.ledger.dead(name)) < count:
            await asyncio.sleep(0.01)
