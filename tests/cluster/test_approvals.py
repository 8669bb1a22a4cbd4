"""Approvals in a cluster: asked where the sender is, answered anywhere, and the call runs once."""

import asyncio

import pytest

from hookline.models.script import Call, Turn

from .conftest import QUICK, Chest, letter

CALL = Turn(tool_calls=[Call("shell", {"command": "echo once >> ran.txt"})])


class Asked(Chest):
    """A channel that shows questions, and answers them when it is told to."""

    def __init__(self):
        super().__init__()
        self.questions, self.answer, self.gone = [], asyncio.Queue(), asyncio.Event()

    async def ask(self, inbound, question):
        self.request = question.request
        name = self.request["tool"] if question.is_approval else question.text
        self.questions.append((inbound.get("message_id"), name))
        await self._tell()
        try:
            return await self.answer.get()
        except asyncio.CancelledError:
            self.gone.set()
            raise

    async def is_asked(self):
        await self.until(lambda: self.questions)


@pytest.fixture
def asking(cluster):
    """Makes apps that must ask."""
    return lambda *replies: cluster.app(*replies, policy={"default": "ask"})


def ran(cluster):
    path = cluster.folder / "work" / "ran.txt"
    return path.read_text().split() if path.exists() else []


async def test_the_gateway_with_the_sender_asks_and_its_answer_lets_the_worker_go_on(cluster, asking):
    box, other = (
        await cluster.gateway(app=asking(), box=Asked()),
        await cluster.gateway(app=asking(), box=Asked()),
    )
    await cluster.worker(app=asking(CALL, "done"))
    await box.handle(letter())
    await box.is_asked()
    assert box.questions == [("ada-1", "shell")]
    assert ran(cluster) == []
    box.answer.put_nowait("approve")
    (result,) = await box.answers("ada-1")
    assert (result.model_output, ran(cluster), other.questions) == ("done", ["once"], [])


async def test_a_rejected_call_does_not_run_and_the_turn_goes_on(cluster, asking):
    box = await cluster.gateway(app=asking(), box=Asked())
    await cluster.worker(app=asking(CALL, "then not"))
    await box.handle(letter())
    await box.is_asked()
    box.answer.put_nowait("reject")
    (result,) = await box.answers("ada-1")
    assert (result.model_output, ran(cluster)) == ("then not", [])


async def test_an_answer_given_elsewhere_counts_and_the_question_is_taken_back(cluster, asking):
    box, other = (
        await cluster.gateway(app=asking(), box=Asked()),
        await cluster.gateway(app=asking(), box=Asked()),
    )
    await cluster.worker(app=asking(CALL, "done"))
    await box.handle(letter())
    await box.is_asked()
    assert [each.id for each in await other.gateway.approvals.of("mail:ada")] == [box.request["id"]]
    assert await other.gateway.approvals.answer(box.request["id"], "approve", by="ada")
    (result,) = await box.answers("ada-1")
    async with asyncio.timeout(10):
        await box.gone.wait()
    assert (result.model_output, ran(cluster), len(box.questions)) == ("done", ["once"], 1)


async def test_a_third_app_answers_and_what_it_grants_for_the_session_holds_in_every_worker(
    cluster, asking
):
    box, third = await cluster.gateway(app=asking(), box=Asked()), asking()
    first = await cluster.worker(app=asking(CALL, "done", CALL, "never"))
    await box.handle(letter())
    await box.is_asked()
    async with third.running():
        await asyncio.to_thread(third.approvals.answer, box.request["id"], "session", by="eve")
    await box.answers("ada-1")
    await first.drain()
    await cluster.worker(app=asking(CALL, "done again"))
    await box.handle(letter(number=2))
    (result,) = await box.answers("ada-2")
    assert (result.model_output, ran(cluster), len(box.questions)) == ("done again", ["once"] * 2, 1)


async def test_a_question_is_open_for_the_worker_that_goes_on_and_shown_once(cluster, asking):
    box = await cluster.gateway(app=asking(), box=Asked())
    quick = QUICK.model_copy(update={"drain": 0.0})
    first = await cluster.worker(app=asking(CALL, "never"), settings=quick)
    await box.handle(letter())
    await box.is_asked()
    await first.drain()
    await cluster.worker(app=asking("done"))
    await box.until(lambda: len(box.questions) == 2)
    box.answer.put_nowait("approve")
    (result,) = await box.answers("ada-1")
    assert (result.model_output, ran(cluster)) == ("done", ["once"])


async def test_a_question_of_a_hook_is_asked_where_the_sender_is(cluster):
    box = await cluster.gateway(box=Asked())
    app, answers = cluster.app("done"), []

    async def talk(event, ctx):
        answers.append(await ctx.ask("Proceed?", ["yes", "no"], default="no"))

    app.hooks.register("agent_end", talk)
    await cluster.worker(app=app)
    await box.handle(letter())
    await box.is_asked()
    assert box.questions == [("ada-1", "Proceed?")]
    box.answer.put_nowait("yes")
    await box.answers("ada-1")
    assert answers == ["yes"]


async def test_a_turn_that_nobody_sent_asks_the_people_of_its_session(cluster):
    box = await cluster.gateway(box=Asked())
    app, answers = cluster.app("done"), []

    async def talk(event, ctx):
        answers.append(await ctx.ask("Proceed?", ["yes", "no"], default="no"))

    app.hooks.register("agent_end", talk)
    await cluster.worker(app=app)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(app.process({"content": "a file changed", "session_id": "mail:ada"}))
        await box.is_asked()
        box.answer.put_nowait("yes")
    assert answers == ["yes"]
