"""The events of a whole turn, in the order that the catalogue gives."""

import asyncio

import pytest

from hookline import hookimpl
from hookline.agent import Blocked
from hookline.agent.run import Limits
from hookline.events import (
    BeforeAgentStartEventResult,
    ContextEventResult,
    ModelCallEventResult,
    ModelResultEventResult,
    ToolCall,
    ToolCallEventResult,
    ToolResultEventResult,
)
from hookline.models.script import Call, Turn
from hookline.testing import RecordingChannel
from hookline.tools import tool
from hookline.tools.registry import Registry


@pytest.fixture
def echo(app):
    """A tool that reports progress and says what it was given."""

    @tool(name="echo", side_effects="none", registry=Registry())
    async def echo(text: str):
        yield "working"
        yield f"said {text}"

    app.tools.add(echo)
    return echo


async def say(app, content="hi"):
    async with app.running():
        return await app.process({"content": content})


CALL = Turn("Let me see.", tool_calls=[Call("echo", {"text": "x"}, "call_1")])


async def test_a_turn_with_a_tool_call_fires_everything_in_order(app, scripted, fired, echo):
    scripted(CALL, "Done.")
    await say(app)
    assert fired[fired.index("on_turn_start") : fired.index("on_turn_end") + 1] == [
        "on_turn_start", "system_prompt", "bootstrap_files", "before_agent_start", "agent_start",
        "message_start", "message_end",
        "turn_start", "context", "model_call", "around_model_call", "message_start", "message_update",
        "model_result", "message_end",
        "tool_execution_start", "before_tool_call", "tool_call", "authorize_action",
        "tool_execution_update", "tool_execution_update", "around_tool_call",
        "after_tool_call", "tool_result", "tool_execution_end", "tool_result_persist",
        "message_start", "message_end", "turn_end",
        "turn_start", "context", "model_call", "around_model_call", "message_start", "message_update",
        "model_result", "message_end", "turn_end",
        "agent_stop", "agent_end", "on_turn_end",
    ]  # fmt: skip


async def test_the_agents_events_carry_what_they_say(app, scripted, echo):
    scripted(CALL, "Done.")
    seen = {}

    def keep(event):
        seen.setdefault(event.type, []).append(event)

    app.hooks.subscribe(keep)
    await say(app)
    assert [e.turn_index for e in seen["turn_start"]] == [0, 1]
    assert [r.content for r in seen["turn_end"][0].tool_results] == ["said x"]
    assert seen["tool_execution_end"][0].tool_result.name == "echo"
    assert [e.partial_tool_result.content for e in seen["tool_execution_update"]] == [
        "working",
        "said x",
    ]
    assert [m["role"] for m in seen["agent_end"][0].messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [e.message["role"] for e in seen["message_end"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert "".join(e.message["content"] for e in seen["message_update"]) == "Let me see.Done."
    result = seen["tool_result"][0]
    assert (result.tool_call_id, result.input, result.ran, result.is_error) == (
        "call_1", {"text": "x"}, True, False,
    )  # fmt: skip


class TestRewriting:
    async def test_the_system_prompt_is_joined_extended_and_replaced(self, app, scripted):
        model = scripted("ok", "ok")
        app.hooks.register("system_prompt", lambda: "Be kind.")
        app.hooks.register("bootstrap_files", lambda: ["From a file.", "And another."])
        async with app.running():
            await app.process({"content": "a"})
            app.hooks.register(
                "before_agent_start", lambda e: BeforeAgentStartEventResult(system_prompt="Only this.")
            )
            await app.process({"content": "b"})
        first, second = (request.system for request in model.requests)
        assert first.endswith("Be kind.\n\nFrom a file.\n\nAnd another.")
        assert second == "Only this."

    async def test_context_changes_one_model_call_and_not_the_record(self, app, scripted):
        model = scripted("one", "two")
        app.hooks.register(
            "context",
            lambda e: ContextEventResult(messages=[{"role": "user", "content": "other"}]),
            once=True,
        )
        async with app.running():
            await app.process({"content": "a"})
            await app.process({"content": "b"})
        assert [m["content"] for m in model.requests[0].messages] == ["other"]
        assert [m["content"] for m in model.requests[1].messages] == ["a", "one", "b"]

    async def test_around_a_model_call_it_can_be_changed_repeated_or_answered(self, app, scripted):
        model = scripted("first", "second")

        async def twice(request, call_next):
            async for _ in await call_next(request):
                pass
            request.options["again"] = True
            return await call_next(request)

        app.hooks.register("around_model_call", twice)
        assert (await say(app)).model_output == "second"
        assert len(model.requests) == 2

    async def test_the_model_call_may_be_blocked(self, app, scripted):
        model = scripted("ok")
        app.hooks.register("model_call", lambda e: ModelCallEventResult(block=True, reason="no budget"))
        with pytest.raises(Blocked, match=r"the model call was blocked by .*: no budget"):
            await say(app)
        assert model.requests == []

    async def test_a_blocked_result_is_neither_sent_nor_kept_and_its_tools_do_not_run(
        self, app, scripted, echo, fired
    ):
        scripted(CALL)
        app.hooks.register("model_result", lambda e: ModelResultEventResult(block=True, reason="no"))
        channel = RecordingChannel()
        async with app.running():
            with pytest.raises(Blocked, match="the model's answer was blocked"):
                await app.process({"content": "x"}, channel)
            entries = await app.store().entries("default:default")
        assert channel.events == []
        assert "Let me see" not in str(entries)
        assert "tool_execution_start" not in fired
        assert "message_update" not in fired

    async def test_a_result_may_be_rewritten_before_anybody_sees_it(self, app, scripted, echo):
        scripted(CALL, "the key is 123")

        def redact(event):
            if event.tool_calls:
                return ModelResultEventResult(tool_calls=[ToolCall("call_1", "echo", {"text": "y"})])
            return ModelResultEventResult(content=event.content.replace("123", "***"))

        app.hooks.register("model_result", redact)
        results = []
        app.hooks.register("tool_result", lambda e: results.append(e.content))
        assert (await say(app)).model_output == "the key is ***"
        assert results == ["said y"]


class TestTools:
    async def test_a_blocked_call_is_told_to_the_model_and_does_not_run(
        self, app, scripted, echo, fired
    ):
        model = scripted(CALL, "I may not.")
        app.hooks.register("tool_call", lambda e: ToolCallEventResult(block=True, reason="not today"))
        assert (await say(app)).model_output == "I may not."
        told = model.requests[1].messages[-1]
        assert (told["role"], told["content"]) == ("tool", "not today")
        assert "around_tool_call" not in fired
        assert "after_tool_call" not in fired
        assert fired.count("tool_result") == fired.count("tool_execution_end") == 1

    async def test_arguments_can_be_rewritten_twice_and_the_record_has_both(self, app, scripted, echo):
        scripted(CALL, "ok")
        app.hooks.register("before_tool_call", lambda arguments: {"text": arguments["text"] + "1"})
        app.hooks.register(
            "tool_call", lambda e: ToolCallEventResult(input={"text": e.input["text"] + "2"})
        )
        seen = []
        app.hooks.register("authorize_action", lambda action: seen.append(action["arguments"]))
        async with app.running():
            await app.process({"content": "x"})
            [call] = await app.store().entries("default:default", kinds=["tool_call"])
        assert seen == [{"text": "x12"}]
        assert call.payload["arguments"] == {"text": "x12"}
        assert call.payload["requested"] == '{"text": "x"}'
        assert call.meta["rulings"][0]["changed"] == ["input"]

    async def test_what_was_authorised_is_what_runs_whatever_handlers_do_to_their_copies(
        self, app, scripted, echo
    ):
        scripted(CALL, "ok")

        def meddle(action):
            action["arguments"]["text"] = "meddled"
            return True

        app.hooks.register("authorize_action", meddle)
        results = []
        app.hooks.register("tool_result", lambda e: results.append(e.content))
        await say(app)
        assert results == ["said x"]

    async def test_a_failing_authoriser_denies(self, app, scripted, echo):
        model = scripted(CALL, "ok")
        app.hooks.register("authorize_action", lambda action: 1 / 0)
        await say(app)
        assert model.requests[1].messages[-1]["content"] == "echo was not authorised"

    @pytest.mark.parametrize(
        ("answer", "told"),
        [
            ("approve", "said x"),
            ("reject", "echo was rejected: sure?"),
            (None, "echo needs approval and nobody answered: sure?"),
        ],
    )
    async def test_what_asks_waits_for_an_approval(self, app, scripted, echo, answer, told):
        model = scripted(CALL, "ok")
        app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True, reason="sure?"))
        app.hooks.register("resolve_approval", lambda request: answer)
        await say(app)
        assert model.requests[1].messages[-1]["content"] == told

    @pytest.mark.parametrize(
        ("call", "told"),
        [
            (Call("echo", "{not json"), "the arguments are not valid JSON"),
            (Call("echo", "[1]"), "the arguments must be a JSON object, not list"),
            (Call("ehco", {"text": "x"}), "unknown tool 'ehco'; did you mean 'echo'"),
            (Call("echo", {"txt": "x"}), "wrong arguments for the tool 'echo'"),
        ],
    )
    async def test_a_call_that_makes_no_sense_is_an_error_result(
        self, app, scripted, echo, call, told, fired
    ):
        model = scripted(Turn(tool_calls=[call]), "ok")
        assert (await say(app)).model_output == "ok"
        assert model.requests[1].messages[-1]["content"].startswith(told)
        assert fired.count("tool_execution_start") == fired.count("tool_execution_end") == 1
        assert "around_tool_call" not in fired

    async def test_a_tool_that_raises_or_returns_rubbish_is_an_error_result(self, app, scripted, fired):
        @tool(registry=Registry(), side_effects="none")
        def broken() -> str:
            raise ValueError("it broke")

        @tool(registry=Registry(), side_effects="none")
        def rubbish() -> object:
            return object()

        app.tools.add(broken)
        app.tools.add(rubbish)
        model = scripted(Turn(tool_calls=[Call("broken")]), Turn(tool_calls=[Call("rubbish")]), "ok")
        await say(app)
        told = [m["content"] for m in model.requests[2].messages if m["role"] == "tool"]
        assert told[0] == "ValueError: it broke"
        assert "neither text nor JSON" in told[1]
        assert fired.index("tool_execution_failure") < fired.index("tool_execution_end")

    async def test_a_tool_that_hangs_is_cut_off(self, app, scripted):
        @tool(registry=Registry(), side_effects="none")
        async def hang() -> str:
            await asyncio.Event().wait()
            return ""

        app.tools.add(hang)
        app.limits = Limits(tool_seconds=0.02)
        model = scripted(Turn(tool_calls=[Call("hang")]), "ok")
        await say(app)
        assert "hang did not finish within 0.02 s" in model.requests[1].messages[-1]["content"]

    async def test_several_calls_are_gated_in_order_and_run_together(self, app, scripted, fired):
        meeting = asyncio.Barrier(3)

        @tool(registry=Registry(), side_effects="none")
        async def meet(name: str) -> str:
            await asyncio.wait_for(meeting.wait(), 30)
            return name

        app.tools.add(meet)
        model = scripted(Turn(tool_calls=[Call("meet", {"name": n}) for n in "abc"]), "ok")
        gated = []
        app.hooks.register("tool_call", lambda e: gated.append(e.input["name"]))
        await say(app)
        assert gated == ["a", "b", "c"]
        assert [m["content"] for m in model.requests[1].messages if m["role"] == "tool"] == [
            "a",
            "b",
            "c",
        ]

    async def test_when_every_result_says_terminate_no_further_call_is_made(self, app, scripted, echo):
        model = scripted(CALL, "never")
        app.hooks.register("tool_result", lambda e: ToolResultEventResult(terminate=True))
        assert (await say(app)).model_output == "Let me see."
        assert len(model.requests) == 1

    async def test_the_tape_keeps_what_persist_leaves_and_this_turn_sees_the_live_text(
        self, app, scripted, echo
    ):
        model = scripted(CALL, "ok", "later")
        app.hooks.register("tool_result_persist", lambda result: "[kept short]")
        async with app.running():
            await app.process({"content": "x"})
            await app.process({"content": "y"})
        live, later = (
            [m["content"] for m in model.requests[n].messages if m["role"] == "tool"] for n in (1, 2)
        )
        assert (live, later) == (["said x"], ["[kept short]"])

    async def test_calling_on_twice_is_authorised_and_recorded_twice(self, app, scripted, echo):
        scripted(CALL, "ok")
        judged = []
        app.hooks.register("authorize_action", lambda action: judged.append(action["tool"]))

        async def retry(call, call_next):
            await call_next()
            return await call_next()

        app.hooks.register("around_tool_call", retry)
        async with app.running():
            await app.process({"content": "x"})
            calls = await app.store().entries("default:default", kinds=["tool_call"])
        assert len(judged) == len(calls) == 2

    async def test_what_persist_or_progress_cannot_show_does_not_fail_the_turn(self, app, scripted):
        @tool(registry=Registry(), side_effects="none")
        async def odd():
            yield object()
            yield "good"

        app.tools.add(odd)
        seen = []
        app.hooks.register(
            "tool_execution_update", lambda e: seen.append(e.partial_tool_result.content)
        )
        app.hooks.register("tool_result_persist", lambda: object())
        model = scripted(Turn(tool_calls=[Call("odd"), Call("odd")]), "ok")
        assert (await say(app)).model_output == "ok"
        assert [m["content"] for m in model.requests[1].messages if m["role"] == "tool"] == [
            "good",
            "good",
        ]
        assert "neither text nor JSON" in seen[0]

    async def test_a_withheld_result_shows_only_why(self, app, scripted, echo):
        model = scripted(CALL, "ok")
        app.hooks.register("tool_result", lambda e: ToolResultEventResult(block=True, reason="private"))
        await say(app)
        assert model.requests[1].messages[-1]["content"] == "[withheld: private]"


class TestLoops:
    async def test_the_same_call_with_the_same_result_is_warned_of_from_the_third_time(
        self, app, scripted, echo
    ):
        again = Turn(tool_calls=[Call("echo", {"text": "x"})])
        scripted(again, again, again, again, "enough")
        warned = []
        app.hooks.register(
            "on_loop_warning",
            lambda tool_name, pattern, count: warned.append((tool_name, pattern, count)),
        )
        await say(app)
        assert warned == [("echo", 'echo {"text": "x"}', 3), ("echo", 'echo {"text": "x"}', 4)]

    async def test_calls_that_bring_something_new_are_not_warned_of(self, app, scripted):
        count = iter(range(10))

        @tool(registry=Registry(), side_effects="read")
        def poll() -> str:
            return f"{next(count)} %"

        app.tools.add(poll)
        again = Turn(tool_calls=[Call("poll")])
        scripted(again, again, again, again, "enough")
        warned = []
        app.hooks.register("on_loop_warning", lambda count: warned.append(count))
        await say(app)
        assert warned == []


class TestCancelling:
    async def test_leaving_the_stream_cancels_the_run_and_its_tools(self, app, scripted):
        stopped = asyncio.Event()

        @tool(registry=Registry(), side_effects="none")
        async def forever() -> str:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return ""

        app.tools.add(forever)
        scripted(Turn(tool_calls=[Call("forever")]), "after")
        async with app.running():
            turn = asyncio.create_task(app.process({"content": "x"}))
            while not (await app.store().entries("default:default", kinds=["tool_call"])):
                await asyncio.sleep(0.005)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            await asyncio.wait_for(stopped.wait(), 30)
            last = (await app.store().entries("default:default"))[-1]
            assert last.payload["status"] == "cancelled"
            assert (await app.process({"content": "y"})).model_output == "after"


class TestEveryStageCanBeReplaced:
    """One by one, from outside, by a plugin that is newer than the builtin."""

    async def check(self, app, scripted, **methods):
        scripted("builtin answer", "builtin answer")
        marked = {name: hookimpl(function) for name, function in methods.items()}
        app.hooks.add(type("Other", (), marked)())
        async with app.running():
            return await app.process({"content": "hi"})

    async def test_resolve_session(self, app, scripted):
        result = await self.check(app, scripted, resolve_session=lambda self, message: "mine")
        assert result.session_id == "mine"

    async def test_load_state(self, app, scripted):
        seen = []
        await self.check(
            app, scripted,
            load_state=lambda self: {"workspace": "elsewhere"},
            save_state=lambda self, state: seen.append(state["workspace"]),
        )  # fmt: skip
        assert seen == ["elsewhere"]

    async def test_build_prompt(self, app, scripted):
        result = await self.check(app, scripted, build_prompt=lambda self: "another prompt")
        assert result.prompt == "another prompt"

    async def test_run_model(self, app, scripted):
        result = await self.check(app, scripted, run_model=lambda self: "mine")
        assert result.model_output == "mine"

    async def test_render_outbound(self, app, scripted):
        result = await self.check(
            app,
            scripted,
            render_outbound=lambda self, model_output: [{"content": "a"}, {"content": "b"}],
        )
        assert [o["content"] for o in result.outbounds] == ["a", "b"]

    async def test_dispatch_outbound(self, app, scripted):
        sent = []
        await self.check(
            app,
            scripted,
            dispatch_outbound=lambda self, message: sent.append(message["content"]) or True,
        )
        assert sent == ["builtin answer"]

    async def test_build_tape_context(self, app, scripted):
        class Forgetful:
            def messages(self, entries):
                return []

        model = scripted("one", "two")
        app.hooks.register("build_tape_context", Forgetful)
        async with app.running():
            await app.process({"content": "a"})
            await app.process({"content": "b"})
        assert [m["content"] for m in model.requests[1].messages] == ["b"]

    async def test_provide_tape_store(self, app, scripted):
        from hookline.tape import MemoryTapeStore

        store = MemoryTapeStore()
        await self.check(app, scripted, provide_tape_store=lambda self: store)
        assert len(await store.entries("default:default")) == 4
        assert not (app.home / "tape.db").exists()

    async def test_system_prompt(self, app, scripted):
        model = scripted("ok")
        app.hooks.remove("builtin")
        app.hooks.add(type("Own", (), {"system_prompt": hookimpl(lambda self: "Mine.")})())
        from hookline.runtime.builtin import BuiltinPlugin

        app.hooks.add(BuiltinPlugin(app), name="builtin")
        async with app.running():
            await app.process({"content": "x"})
        assert model.requests[0].system.startswith("Mine.")

    async def test_register_tools(self, app, scripted):
        from hookline.specs import ToolSpec

        app.hooks.register(
            "register_tools", lambda: [ToolSpec(name="listed", description="only listed")]
        )
        model = scripted(Turn(tool_calls=[Call("listed")]), "ok")
        await say(app)
        assert "has nothing to call" in model.requests[1].messages[-1]["content"]
