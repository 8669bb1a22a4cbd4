"""A process serves any number of sessions and holds the state of a few."""

import asyncio
import gc
import tracemalloc
from pathlib import Path

import pytest

from hookline.hooks import hookimpl
from hookline.models.script import Call, Turn
from hookline.observe.trace.plugin import Tracing
from hookline.policy import METERED, Meter, Policy
from hookline.runtime import sessions
from hookline.system.recent import Recent
from hookline.tools import tool
from hookline.tools.registry import Registry

FEW, MANY = 30, 300
MOST = 8
PREFIX = "default:idle-"


@pytest.fixture
def bounds(monkeypatch):
    """Small bounds for everything that remembers a bounded number of sessions."""
    monkeypatch.setattr(sessions, "MOST_OPEN", MOST)
    monkeypatch.setattr(Recent.__init__, "__defaults__", (MOST,))
    monkeypatch.setattr("hookline.tape.sqlite.append._MOST_LEAVES", MOST)
    monkeypatch.setattr("hookline.observe.trace.store.SESSIONS", MOST)


async def say(app, *numbers):
    for number in numbers:
        await app.process({"content": "x", "chat_id": f"idle-{number}"})


async def settled(app):
    await Tracing.of(app).store()  # which writes what is still in memory
    gc.collect()


def held_sessions():
    """The ids of sessions to which any container in the process refers."""
    found = set()
    for each in gc.get_objects():
        if isinstance(each, dict):
            members = [*each, *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            members = each
        else:
            continue
        found.update(m for m in members if isinstance(m, str) and m.startswith(PREFIX))
    return found


async def test_many_idle_sessions_leave_no_more_than_a_few(bounds, app, scripted):
    @tool(side_effects="write", registry=Registry())
    def note(text: str) -> str:
        return text

    async def entries(session_id, after):
        return await app.store().entries(session_id, kinds=METERED, after=after)

    budget = {"packs": ["budgets"], "budgets": {"tokens": 100_000}}
    app.given_policy = Policy.load(budget, spending=Meter(entries).spent)
    app.tools.add(note)
    calls = [Call("note", {"text": "x"}), Call("todo", {"action": "add", "items": ["milk"]})]
    scripted(Turn(tool_calls=calls), "done", repeat=True, record=False)
    async with app.running():
        tracemalloc.start()
        try:
            await say(app, *range(FEW))
            await settled(app)
            before, _ = tracemalloc.get_traced_memory()
            tasks, files = asyncio.all_tasks(), {*Path("/proc/self/fd").iterdir()}
            await say(app, *range(FEW, MANY))
            await settled(app)
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(held_sessions()) <= 2 * MOST
        assert (after - before) / (MANY - FEW) < 250, "bytes of each session stay"
        assert asyncio.all_tasks() == tasks
        assert {*Path("/proc/self/fd").iterdir()} <= files  # garbage of other tests may be closed


async def test_an_idle_session_is_closed_and_its_next_message_opens_it_again(bounds, app, scripted):
    seen = []

    class Watch:
        @hookimpl
        def session_start(self, event, ctx):
            seen.append(("start", ctx.session_id))

        @hookimpl
        def session_shutdown(self, event, ctx):
            seen.append(("shutdown", ctx.session_id))

    app.hooks.add(Watch(), name="watch")
    scripted("done", repeat=True)
    async with app.running():
        await say(app, *range(MOST))
        await say(app, 0)  # used again, so that 1 is idle longest
        assert seen == [("start", f"{PREFIX}{n}") for n in range(MOST)]
        await say(app, MOST)
        assert seen[MOST:] == [("start", f"{PREFIX}{MOST}"), ("shutdown", f"{PREFIX}1")]
        await say(app, 1)
        assert seen[-2:] == [("start", f"{PREFIX}1"), ("shutdown", f"{PREFIX}2")]


async def test_a_busy_session_stays_open(bounds, app, scripted):
    closed, release = [], asyncio.Event()

    @tool(side_effects="none", registry=Registry())
    async def wait() -> str:
        await release.wait()
        return "over"

    app.tools.add(wait)
    app.hooks.register("session_shutdown", lambda event, ctx: closed.append(ctx.session_id))
    scripted(Turn(tool_calls=[Call("wait")], match="wait"), "done")
    async with app.running():
        busy = asyncio.ensure_future(app.process({"content": "wait", "chat_id": "idle-busy"}))
        while not app.sessions.run(f"{PREFIX}busy"):
            await asyncio.sleep(0)
        await say(app, *range(2 * MOST))
        assert f"{PREFIX}busy" not in closed
        assert len(closed) == MOST + 1
        release.set()
        assert (await busy).model_output == "done"


async def test_what_was_chosen_and_remembered_is_there_after_a_session_was_closed(
    bounds, app, scripted
):
    other = scripted("other", name="scripted:other", repeat=True)
    adds = Turn(tool_calls=[Call("todo", {"action": "add", "items": ["buy milk"]})])
    scripted(adds, "done", repeat=True)
    first = f"{PREFIX}first"
    async with app.running():
        await say(app, "first")
        await app.sessions.choose_model(first, other.name)
        await say(app, *range(2 * MOST))
        assert first not in held_sessions()
        assert await app.sessions.find_model(first) == other.name
        result = await app.process({"content": "who?", "chat_id": "idle-first"})
        assert result.model_output == "other"
        await app.sessions.choose_model(first, "scripted")
        await say(app, *range(2 * MOST), "first")
        results = await app.store().entries(first, kinds=["tool_result"])
        assert results[-1].payload["content"].count("buy milk") == 2
