"""Subagents: under everything that guards their parent, within limits, and gone when it is gone."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from hookline import Hookline
from hookline.agent.run import Limits
from hookline.errors import AgentError, LimitReached, UnknownTool
from hookline.events import ContextEventResult, ToolCallEventResult, ToolResultEventResult
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.runtime.subagent_task import Role, Task
from hookline.tools import tool
from hookline.tools.registry import Registry

HERE = "default:default"
USAGE = {"input_tokens": 2, "output_tokens": 1}


@pytest.fixture
def ping(app):
    """A tool that counts its runs."""
    runs = []

    @tool(side_effects="none", registry=Registry())
    def ping(word: str = "pong") -> str:
        runs.append(word)
        return word

    app.tools.add(ping)
    return runs


@pytest.fixture
def delegating(app, scripted, ping):
    """A parent that delegates one task; the subagent calls `ping` and says what came back."""

    def script(**options):
        return scripted(
            Turn(
                tool_calls=[Call("delegate", {"tasks": ["ping it"], **options})],
                usage=USAGE,
                match="start",
            ),
            Turn("the parent is done", usage=USAGE, match="start"),
            Turn(tool_calls=[Call("ping")], usage=USAGE, match="ping it"),
            Turn("the subagent is done", usage=USAGE, match="ping it"),
        )

    return script


async def start(app):
    async with app.running():
        return await app.process({"content": "start"})


def results(model):
    """What tools gave, as the models saw it."""
    return [m["content"] for r in model.requests for m in r.messages if m["role"] == "tool"]


class TestDelegating:
    async def test_a_subagent_does_its_task_and_the_parent_goes_on_with_the_result(
        self, app, delegating, ping
    ):
        model = delegating()
        seen = []
        for name in ("subagent_start", "subagent_end"):
            app.hooks.register(name, lambda e, ctx: seen.append((e, ctx.session_id)))
        result = await start(app)
        assert (result.model_output, ping) == ("the parent is done", ["pong"])
        (begun, where), (ended, _) = seen
        assert (begun.task, where, ended.status, ended.result) == (
            "ping it", HERE, "completed", "the subagent is done",
        )  # fmt: skip
        assert begun.task_id == ended.task_id
        own = [[m["content"] for m in r.messages] for r in model.requests if "/" in r.session_id]
        assert own[0] == ["ping it"]  # its context is its own

    async def test_the_parents_usage_has_the_subagents_in_it(self, app, delegating):
        delegating()
        assert (await start(app)).usage == {"input_tokens": 8, "output_tokens": 4}

    async def test_one_that_inherits_knows_the_conversation(self, app, scripted):
        model = scripted(
            Turn("noted", match="my name is Ada"),
            Turn(tool_calls=[Call("delegate", {"tasks": ["who am I"], "knows": "conversation"})],
                 match="start"),
            Turn("done", match="start"),
            Turn("you are Ada", match="who am I"),
        )  # fmt: skip
        async with app.running():
            await app.process({"content": "my name is Ada"})
            await app.process({"content": "start"})
        inner = next(r for r in model.requests if "/" in r.session_id)
        assert [m["content"] for m in inner.messages] == [
            "my name is Ada", "noted", "start", "who am I",
        ]  # fmt: skip

    async def test_a_named_one_remembers_its_earlier_tasks(self, app, scripted):
        scripted("one", "two")
        app.subagents.define(Role(name="scout", context="named", instructions="You scout."))
        async with app.running():
            await app.subagents.run("first", parent=HERE, role="scout")
            again = await app.subagents.run("second", parent=HERE, role="scout")
            tape = await app.tape(again.session_id)
            entries = await tape.branch()
        said = [e.payload["message"]["content"] for e in entries if e.kind == "message"]
        assert said == ["first", "one", "second", "two"]
        assert "You scout." in entries[0].payload["system"]

    async def test_several_work_at_once_and_answer_in_order(self, app, scripted):
        meeting = asyncio.Barrier(3)

        @tool(side_effects="none", registry=Registry())
        async def meet() -> str:
            await meeting.wait()
            return "met"

        app.tools.add(meet)
        scripted(Turn(tool_calls=[Call("meet")]), "done")
        async with app.running():
            tasks = [Task(f"task {n}") for n in range(3)]
            found = await app.subagents.run_all(tasks, parent=HERE)
        assert [r.status for r in found] == ["completed"] * 3
        assert [r.task_id for r in found] == [task.id for task in tasks]

    async def test_one_that_fails_is_told_to_the_parent_and_the_turn_goes_on(self, app, scripted):
        from hookline.models.script import Fault

        scripted(
            Turn(tool_calls=[Call("delegate", {"tasks": ["break"]})], match="start"),
            Turn("it failed", match="start"),
            Turn(error=Fault("out of order"), match="break"),
        )
        seen = []
        app.hooks.register("subagent_end", lambda e: seen.append(e.status))
        assert (await start(app)).model_output == "it failed"
        assert seen == ["failed"]


class TestEveryGateHoldsInside:
    """Each hook, in turn: registered for everybody, and for the parent's session alone."""

    @pytest.fixture(params=["everybody", "the parent's scope"])
    def register(self, app, request):
        return (app.hooks if request.param == "everybody" else app.hooks.scope(HERE)).register

    async def test_tool_call(self, app, delegating, ping, register):
        model = delegating()
        seen = []

        def block(event, ctx):
            seen.append((ctx.session_id, ctx.parent_session_id, ctx.depth))
            return ToolCallEventResult(block=True, reason="blocked here") if ctx.depth else None

        register("tool_call", block)
        await start(app)
        assert ping == []
        assert "blocked here" in results(model)[0]
        inside = next(s for s in seen if s[2])
        assert inside[1:] == (HERE, 1)
        assert inside[0].startswith(f"{HERE}/")

    async def test_authorize_action(self, app, delegating, ping):
        delegating()
        app.hooks.register("authorize_action", lambda action: action["tool"] != "ping")
        await start(app)
        assert ping == []

    async def test_before_tool_call(self, app, delegating, ping, register):
        delegating()
        register("before_tool_call", lambda call: {"word": "changed"} if call.name == "ping" else None)
        await start(app)
        assert ping == ["changed"]

    async def test_tool_result(self, app, delegating, register):
        model = delegating()
        register("tool_result", lambda e: ToolResultEventResult(content="changed by a handler"))
        await start(app)
        assert "changed by a handler" in results(model)

    async def test_tool_result_persist(self, app, delegating, register):
        delegating()
        register("tool_result_persist", lambda result: "redacted")
        async with app.running():
            await app.process({"content": "start"})
            sessions = await app.store().sessions()
            inner = next(info.id for info in sessions if "/" in info.id)
            kept = await app.store().entries(inner, kinds=["tool_result"])
        assert [entry.payload["content"] for entry in kept] == ["redacted"]

    async def test_context(self, app, delegating, register):
        model = delegating()

        def add(event, ctx):
            extra = {"role": "user", "content": f"depth {ctx.depth}"}
            return ContextEventResult([extra, *event.messages])

        register("context", add)
        await start(app)
        inner = next(r for r in model.requests if "/" in r.session_id)
        assert inner.messages[0]["content"] == "depth 1"

    async def test_around_tool_call(self, app, delegating, ping):
        model = delegating()

        async def around(call, call_next):
            return "changed around" if call.name == "ping" else await call_next()

        app.hooks.register("around_tool_call", around)
        await start(app)
        assert (ping, "changed around" in results(model)) == ([], True)

    async def test_around_model_call(self, app, delegating):
        delegating()
        seen = []

        async def around(request, call_next):
            seen.append(request.session_id)
            return await call_next(request)

        app.hooks.register("around_model_call", around)
        await start(app)
        assert [("/" in session) for session in seen] == [False, True, True, False]


class TestLimits:
    async def test_only_the_tools_that_it_was_given_can_be_reached(self, app, delegating, ping):
        model = delegating(tools=["read_file"])
        await start(app)
        assert ping == []
        inner = next(r for r in model.requests if "/" in r.session_id)
        assert [t["name"] for t in inner.tools] == ["read_file"]
        assert any("not among the tools" in text for text in results(model))

    async def test_a_task_never_has_more_tools_than_its_role_or_its_parent(self, app, scripted):
        model = scripted("done")
        app.subagents.define(Role(name="reader", tools=("read_file", "list_files")))
        async with app.running():
            await app.subagents.run("x", parent=HERE, role="reader", tools=["read_file", "shell"])
        assert [t["name"] for t in model.requests[0].tools] == ["read_file"]

    async def test_too_deep_is_refused_and_the_deepest_has_nothing_to_delegate_with(
        self, app, scripted
    ):
        app.limits = Limits(depth=2)
        again = Turn(tool_calls=[Call("delegate", {"tasks": ["go deeper"]})])
        model = scripted(again, "up")
        assert (await start(app)).model_output == "up"
        deepest = max(model.requests, key=lambda r: r.session_id.count("/"))
        assert deepest.session_id.count("/") == 2
        assert "delegate" not in [t["name"] for t in deepest.tools]

    async def test_a_named_one_that_would_wait_for_itself_is_refused(self, app, scripted):
        app.subagents.define(Role(name="scout", context="named"))
        call = Call("delegate", {"tasks": ["look"], "role": "scout"})
        model = scripted(Turn(tool_calls=[call]), "ok")
        assert (await start(app)).model_output == "ok"
        assert any("in this line already" in text for text in results(model))

    async def test_a_budget_ends_the_run_that_spent_it(self, app, delegating):
        delegating()
        app.limits = Limits(tokens=5)
        with pytest.raises(LimitReached, match="it may use 5"):
            await start(app)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"text": "  "}, AgentError, "is empty"),
            ({"role": "scuot"}, AgentError, "no role 'scuot'.*did you mean 'scout'"),
            ({"context": "named"}, AgentError, "needs a role"),
            ({"tools": ["read_flie"]}, UnknownTool, "read_file"),
        ],
    )
    async def test_bad_tasks_are_refused_before_anything_starts(
        self, app, scripted, options, error, message
    ):
        scripted("never")
        app.subagents.define(Role(name="scout"))
        seen = []
        app.hooks.register("subagent_start", lambda e: seen.append(e))
        text = options.pop("text", "x")
        async with app.running():
            with pytest.raises(error, match=message):
                await app.subagents.run(text, parent=HERE, **options)
            assert (seen, await app.store().sessions()) == ([], [])

    async def test_roles_come_from_the_configuration(self, app, scripted):
        app.home.mkdir(parents=True, exist_ok=True)
        (app.home / "config.toml").write_text(
            '[agents.reader]\ntools = ["read_file"]\ninstructions = "You read."\n'
        )
        model = scripted("done")
        async with app.running():
            await app.subagents.run("x", parent=HERE, role="reader")
        assert "You read." in model.requests[0].system


class TestMany:
    async def test_a_hundred_in_parallel_all_answer(self, app, scripted):
        scripted("done")
        async with app.running():
            found = await app.subagents.run_all([Task(f"t{n}") for n in range(100)], parent=HERE)
            assert [r.text for r in found] == ["done"] * 100
            assert app.sessions.runs == {}
        assert app.hooks.nested == {}

    async def test_cancelling_the_parent_ends_them_all(self, app, scripted):
        working, ended = [], []

        @tool(side_effects="none", registry=Registry())
        async def work() -> str:
            working.append(1)
            await asyncio.Event().wait()
            return "never"

        app.tools.add(work)
        app.hooks.register("subagent_end", lambda e: ended.append(e.status))
        tasks = [f"t{n}" for n in range(100)]
        scripted(
            Turn(tool_calls=[Call("delegate", {"tasks": tasks})], match="start"),
            Turn(tool_calls=[Call("work")]),
        )
        async with app.running():
            turn = asyncio.create_task(app.process({"content": "start"}))
            while len(working) < 100:
                await asyncio.sleep(0.01)
            async with asyncio.timeout(30):  # a tenth of a second is usual; a busy machine takes longer
                await app.cancel(HERE)
                assert (await turn).outcome == "cancelled"
            assert ended == ["cancelled"] * 100
            assert (app.sessions.runs, app.hooks.nested) == ({}, {})


class TestAfterACrash:
    @pytest.mark.parametrize("moment", ["turn_start", "subagent_end"])
    async def test_the_parents_call_made_again_goes_on_from_where_its_subagent_was(
        self, app, delegating, ping, tmp_path, moment
    ):
        """What is on the disk at that moment is all that the second process finds."""
        delegating()
        (tmp_path / "after").mkdir()

        def crash(event, ctx):
            inside = ctx.depth and event.turn_index == 1 if moment == "turn_start" else True
            if inside:
                with (
                    closing(sqlite3.connect(app.home / "tape.db")) as now,
                    closing(sqlite3.connect(tmp_path / "after" / "tape.db")) as left,
                ):
                    now.backup(left)

        app.hooks.register(moment, crash)
        await start(app)
        again = Hookline(home=tmp_path / "after", workspace=app.workspace)
        again.load_hooks(packages=False)
        left = ScriptedModel(
            [Turn("the parent is done", match="start"), Turn("the subagent is done", match="ping it")]
        )
        again.models.add(left)
        again.model = left.name
        runs = []

        @tool(name="ping", side_effects="write", registry=Registry())
        def counted() -> str:
            runs.append(1)
            return "again"

        again.tools.add(counted)
        async with again.running():
            result = await again.resume(HERE)
        assert result.model_output == "the parent is done"
        assert runs == []
        assert len(left.requests) == (2 if moment == "turn_start" else 1)
