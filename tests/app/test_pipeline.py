"""One message in, one answer out: the stages, their fallbacks, and what an error does."""

import asyncio
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace

import pytest
import typer

from hookline import AsyncStreamEvents, StreamEvent, hookimpl
from hookline.agent import Blocked, CutOff, LimitReached
from hookline.agent.run import Limits
from hookline.channel import Channel
from hookline.errors import BadInput, NotRunning, PluginError
from hookline.events import (
    InputEventResult,
    OutputEventResult,
    SessionBeforeStartResult,
    SessionStartResult,
    TextPart,
)
from hookline.models import ModelFailed
from hookline.models.script import Call, Fault, Turn
from hookline.plugins.registrations import name_of
from hookline.tape import MemoryTapeStore
from hookline.tape.synchronous import METHODS
from hookline.testing import RecordingChannel
from hookline.tools import tool
from hookline.tools.registry import Registry
from hookline.types import field_of


async def say(app, content="hi", **fields):
    async with app.running():
        return await app.process({"content": content, **fields})


async def test_an_answer_comes_back_and_goes_out(app, scripted):
    scripted("Hello there.")
    app.channel = RecordingChannel()
    result = await say(app, channel="terminal", chat_id="7")
    sent = app.channel.sent
    assert (result.session_id, result.prompt, result.model_output) == (
        "terminal:7",
        "hi",
        "Hello there.",
    )
    assert sent == result.outbounds
    assert sent[0]["content"] == "Hello there."
    assert (sent[0]["channel"], sent[0]["chat_id"]) == ("terminal", "7")


async def test_the_stages_fire_in_their_order(app, scripted, fired):
    scripted("Hello.")
    await say(app)
    wanted = [
        "provide_tape_store", "hookline_startup", "resolve_session", "load_state",
        "session_before_start", "session_start", "input", "build_prompt", "run_model_stream",
        "output", "save_state", "render_outbound", "dispatch_outbound", "session_shutdown",
        "hookline_shutdown",
    ]  # fmt: skip
    assert [name for name in fired if name in wanted] == wanted


class TestFallbacks:
    async def test_no_session_named_means_channel_and_chat(self, app, scripted):
        scripted("one", "two")
        app.hooks.remove("builtin")
        app.hooks.add(Answers("ok"))
        async with app.running():
            assert (await app.process({"content": "x"})).session_id == "default:default"
            named = await app.process({"content": "x", "channel": "c", "chat_id": 3})
            assert named.session_id == "c:3"

    async def test_a_falsy_prompt_falls_back_to_the_content_and_keeps_lower_ones_from_running(
        self, app
    ):
        ran = []

        class Lower:
            @hookimpl
            def build_prompt(self):
                ran.append("lower")
                return "lower"

        class Empty:
            @hookimpl
            def build_prompt(self):
                return ""

        app.hooks.add(Answers("ok"))
        app.hooks.add(Lower())
        app.hooks.add(Empty())
        assert (await say(app, "the content")).prompt == "the content"
        assert ran == []

    async def test_nothing_rendered_means_an_echo_to_where_it_came_from(self, app):
        app.hooks.remove("builtin")
        app.hooks.add(Answers("ok"))
        result = await say(app, channel="c", chat_id="9")
        assert result.outbounds == [
            {"content": "ok", "session_id": "c:9", "channel": "c", "chat_id": "9"}
        ]

    async def test_nobody_to_answer_is_a_clear_error(self, app):
        app.hooks.remove("builtin")
        with pytest.raises(NotRunning, match="no plugin answers run_model_stream or run_model"):
            await say(app)

    async def test_state_is_merged_and_the_newer_plugin_wins(self, app):
        seen = []

        class One:
            @hookimpl
            def load_state(self):
                return {"a": "one", "b": "one"}

        class Two:
            @hookimpl
            def load_state(self):
                return {"a": "two"}

            @hookimpl
            def build_prompt(self, state):
                seen.append((state["a"], state["b"], state["session_id"]))

        app.hooks.add(Answers("ok"))
        app.hooks.add(One())
        app.hooks.add(Two())
        await say(app)
        assert seen == [("two", "one", "default:default")]


class Answers:
    """Answers as text."""

    def __init__(self, text):
        self.text = text

    @hookimpl
    def run_model(self, prompt):
        return self.text


class Streams:
    """Answers as a stream."""

    def __init__(self, *chunks):
        self.chunks = chunks

    @hookimpl
    async def run_model_stream(self, prompt, session_id, state):
        async def iterator():
            for chunk in self.chunks:
                yield StreamEvent("text", {"delta": chunk})

        return AsyncStreamEvents(iterator())


class TestTheModelStage:
    async def test_a_text_becomes_a_stream_of_one_chunk(self, app):
        app.hooks.add(Answers("whole"))
        channel = RecordingChannel()
        async with app.running():
            result = await app.process({"content": "x"}, channel)
        assert result.model_output == "whole"
        assert channel.text == "whole"
        assert channel.kinds() == ["text", "final", "end"]

    async def test_the_newest_of_either_kind_decides(self, app):
        app.hooks.add(Answers("text"), name="old")
        app.hooks.add(Streams("str", "eam"), name="new")
        assert (await say(app)).model_output == "stream"
        app.hooks.add(Answers("newest text"), name="newest")
        assert (await say(app)).model_output == "newest text"

    async def test_one_that_abstains_leaves_it_to_the_next_whichever_its_kind(self, app, scripted):
        scripted("builtin")
        order = []

        class Abstains:
            def __init__(self, name):
                self.name = name

            @hookimpl
            def run_model(self):
                order.append(self.name)

        class AbstainsStream:
            @hookimpl
            async def run_model_stream(self):
                order.append("stream")

        app.hooks.add(Abstains("first"), name="a")
        app.hooks.add(AbstainsStream(), name="b")
        app.hooks.add(Abstains("last"), name="c")
        assert (await say(app)).model_output == "builtin"
        assert order == ["last", "stream", "first"]

    async def test_a_plugin_with_both_is_refused(self, app):
        class Both(Answers, Streams):
            pass

        with pytest.raises(ValueError, match="implements both"):
            app.hooks.add(Both("x"))

    async def test_a_tap_sees_the_parents_stream_and_its_state_goes_on(self, app, scripted):
        scripted(Turn("Hello there.", chunk=5))
        chunks = []

        class StreamTap:
            def __init__(self, framework):
                self.framework = framework

            @hookimpl
            async def run_model_stream(self, prompt, session_id, state):
                parent_hook = self.framework._plugin_manager.subset_hook_caller(
                    "run_model_stream", remove_plugins=[self]
                )
                parent = await parent_hook(prompt=prompt, session_id=session_id, state=state)

                async def iterator():
                    async for event in parent:
                        if event.kind == "text":
                            chunks.append(event.data["delta"])
                        yield event

                return AsyncStreamEvents(iterator(), state=parent._state)

        app.hooks.add(StreamTap(app))
        result = await say(app)
        assert result.model_output == "Hello there."
        assert "".join(chunks) == "Hello there."
        assert len(chunks) > 1

    async def test_a_tap_that_rewrites_the_text_rewrites_the_answer(self, app, scripted):
        scripted(Turn("Let me look.", tool_calls=[Call("list_files")]), "hello")

        class Louder:
            @hookimpl(wrapper=True)
            def run_model_stream(self):
                parent = yield

                async def iterator():
                    async for event in parent:
                        if event.kind == "text":
                            event = StreamEvent("text", {"delta": event.data["delta"].upper()})
                        yield event

                return AsyncStreamEvents(iterator(), state=parent.state)

        app.hooks.add(Louder())
        assert (await say(app)).model_output == "HELLO"

    async def test_a_channel_that_raises_ends_the_run(self, app, scripted):
        scripted(Turn("hello there all", chunk=2, delay=0.01))

        class Broken(Channel):
            def stream(self, event):
                raise OSError("the pipe is closed")

        async with app.running():
            with pytest.raises(OSError, match="the pipe is closed"):
                await app.process({"content": "x"}, Broken())
            assert [t for t in asyncio.all_tasks() if t.get_name().startswith("agent ")] == []
            last = (await app.store().entries("default:default"))[-1]
        assert (last.kind, last.payload["status"]) == ("turn", "failed")

    async def test_a_stream_is_shown_as_it_comes(self, app, scripted):
        scripted(Turn("one two three", chunk=4, usage={"input_tokens": 5, "output_tokens": 3}))
        channel = RecordingChannel()
        async with app.running():
            result = await app.process({"content": "x"}, channel)
        assert channel.kinds("usage", "final", "end") == ["usage", "final", "end"]
        assert channel.text == "one two three"
        assert channel.events[-1].data["result"] is result
        assert result.usage == {"input_tokens": 5, "output_tokens": 3}


def divide(by: int) -> int:
    """Divide one by a number."""
    return 1 // by


class TestErrors:
    @pytest.fixture
    def errors(self, app):
        seen = []
        app.hooks.register(
            "on_error", lambda stage, error, message: seen.append((stage, type(error).__name__))
        )
        return seen

    async def test_a_model_that_fails_is_told_saved_and_raised(self, app, scripted, errors, fired):
        scripted(Turn(error=Fault("broken")))
        saved = []
        app.hooks.register("save_state", lambda model_output: saved.append(model_output))
        with pytest.raises(ModelFailed, match="broken"):
            await say(app)
        assert errors == [("run_model", "ModelFailed")]
        assert saved == [""]
        assert fired.index("agent_error") < fired.index("on_error")
        assert "render_outbound" not in fired

    async def test_an_earlier_stage_that_fails_is_told_and_saves_nothing(self, app, errors):
        saved = []
        app.hooks.register("save_state", lambda: saved.append(1))
        app.hooks.register("build_prompt", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError) as caught:
            await say(app)
        assert "on hook 'build_prompt'" in caught.value.__notes__[0]
        assert (errors, saved) == ([("turn", "ZeroDivisionError")], [])

    async def test_a_failing_observer_never_hides_the_error(self, app, scripted, caplog):
        scripted(Turn(error=Fault("broken")))
        app.hooks.register("on_error", lambda: 1 / 0)
        with pytest.raises(ModelFailed):
            await say(app)
        assert "hook.on_error_failed stage=run_model adapter=" in caplog.text

    async def test_a_tool_that_raises_is_told_and_the_turn_goes_on(self, app, scripted):
        scripted(Turn(tool_calls=[Call("divide", {"by": 0}), Call("divide", {"by": 1})]), "done")
        app.tools.add(tool(registry=Registry(), side_effects="none")(divide))
        told = []
        app.hooks.register(
            "on_error",
            lambda stage, error, message, agent_id: told.append(
                (stage, type(error).__name__, message["content"], agent_id)
            ),
        )
        assert (await say(app, "x")).model_output == "done"
        assert told == [("tool", "ZeroDivisionError", "x", "main")]

    @pytest.mark.parametrize("door", ["delegate", "app.subagents"])
    async def test_a_subagent_that_fails_is_told_with_its_name(self, app, scripted, door):
        told = []
        app.hooks.register(
            "on_error",
            lambda stage, error, agent_id: told.append((stage, type(error).__name__, agent_id)),
        )
        delegate = Call("delegate", {"tasks": ["count"]})
        scripted(
            Turn(tool_calls=[delegate], match="start"),
            Turn("done", match="start"),
            Turn(error=Fault("broken"), match="count"),
        )
        async with app.running():
            if door == "delegate":
                assert (await app.process({"content": "start"})).model_output == "done"
            else:
                await app.subagents.run("count", parent="default:default", label="counter")
        stage, error, agent = told[0]
        assert (stage, error, agent != "main") == ("run_model", "ModelFailed", True)
        assert told[1:] == ([("tool", "ToolError", "main")] if door == "delegate" else [])

    async def test_after_tool_call_tells_a_failure_from_a_result_with_the_same_text(
        self, app, scripted
    ):
        def speak(fails: bool) -> str:
            """Say the same, well or badly."""
            if fails:
                raise RuntimeError("no")
            return "RuntimeError: no"

        seen = []
        app.tools.add(tool(registry=Registry(), side_effects="none")(speak))
        app.hooks.register("after_tool_call", lambda result, is_error: seen.append((result, is_error)))
        scripted(Turn(tool_calls=[Call("speak", {"fails": f}) for f in (True, False)]), "done")
        await say(app)
        assert sorted(is_error for _, is_error in seen) == [False, True]
        assert len({result for result, _ in seen}) == 1

    async def test_delivery_that_fails_has_its_own_stage(self, app, scripted, errors):
        scripted("ok")
        app.hooks.register("dispatch_outbound", lambda message: 1 / 0)
        async with app.running():
            with pytest.raises(ZeroDivisionError):
                await app.process({"content": "x"})
            last = (await app.store().entries("default:default"))[-1]
        assert errors == [("dispatch", "ZeroDivisionError")]
        assert last.payload["status"] == "failed"

    @pytest.mark.parametrize(
        "envelope", [None, "text", 3, ["x"], {"text": "no content"}, {"content": 5}]
    )
    async def test_an_envelope_that_cannot_be_read_is_refused_at_the_door(self, app, envelope):
        async with app.running():
            with pytest.raises(BadInput, match="a message"):
                await app.process(envelope)

    async def test_an_object_with_fields_will_do(self, app, scripted):
        scripted("ok")

        class Mail:
            content = "hi"
            channel = "mail"

        async with app.running():
            assert (await app.process(Mail())).session_id == "mail:default"

    async def test_too_many_steps_are_an_error(self, app, scripted):
        scripted(Turn(tool_calls=[Call("list_files")]), repeat=True)
        app.limits = Limits(steps=3)
        with pytest.raises(LimitReached, match="after 3 model turns"):
            await say(app)

    async def test_a_stream_that_is_cut_off_is_never_a_complete_answer(self, app, scripted):
        scripted(Turn("half an ans", cut_off=True))
        with pytest.raises(CutOff, match="cut off before its end"):
            await say(app)


class TestGates:
    async def test_input_may_be_handled_blocked_or_rewritten(self, app, scripted):
        model = scripted("ok", "ok")
        answers = {
            "/help": InputEventResult(action="handled"),
            "bad": InputEventResult(action="block", reason="not here"),
            "hi": InputEventResult(action="transform", text="hello"),
        }
        app.hooks.register("input", lambda event: answers.get(event.text))
        saved = []
        app.hooks.register("save_state", lambda model_output: saved.append(model_output))
        async with app.running():
            assert (await app.process({"content": "/help"})).stopped == "handled"
            assert (await app.process({"content": "bad"})).stopped == "not here"
            assert saved == ["", ""]
            assert (await app.process({"content": "hi"})).prompt == "hello"
        assert [r.messages[-1]["content"] for r in model.requests] == ["hello"]

    async def test_output_is_judged_before_any_of_it_is_shown(self, app, scripted):
        scripted("the key is xyzzy", "the key is xyzzy")
        channel = RecordingChannel()
        shown = channel.events
        app.hooks.register(
            "output", lambda e: OutputEventResult(content=e.content.replace("xyzzy", "***"))
        )
        async with app.running():
            result = await app.process({"content": "x"}, channel)
            assert result.model_output == "the key is ***"
            assert channel.kinds() == ["text", "final", "end"]
            assert "xyzzy" not in str(shown)
            app.hooks.register("output", lambda e: OutputEventResult(block=True, reason="secret"))
            shown.clear()
            with pytest.raises(Blocked, match=r"the answer was blocked by .*: secret"):
                await app.process({"content": "x"}, channel)
            assert "xyzzy" not in str(shown)

    async def test_a_session_can_be_refused(self, app, scripted, fired):
        scripted("ok")
        app.hooks.register(
            "session_before_start", lambda e: SessionBeforeStartResult(block=True, reason="closed")
        )
        with pytest.raises(Blocked, match=r"the session was blocked by .*: closed"):
            await say(app)
        assert "session_start" not in fired
        assert fired.count("session_shutdown") == 1

    async def test_session_start_may_add_to_the_first_prompt(self, app, scripted):
        scripted("ok", "ok")
        app.hooks.register(
            "session_start", lambda e: SessionStartResult(additional_context="It is Monday.")
        )
        async with app.running():
            assert (await app.process({"content": "a"})).prompt == "It is Monday.\n\na"
            assert (await app.process({"content": "b"})).prompt == "b"

    async def test_what_session_start_adds_waits_for_the_first_prompt(self, app, scripted):
        scripted("ok")
        app.hooks.register(
            "session_start", lambda e: SessionStartResult(additional_context="It is Monday.")
        )
        app.hooks.register("build_prompt", lambda: [TextPart("hi")])
        app.hooks.register(
            "input", lambda e: InputEventResult(action="handled") if e.text == "/help" else None
        )
        async with app.running():
            assert (await app.process({"content": "/help"})).stopped == "handled"
            prompt = (await app.process({"content": "a"})).prompt
        assert prompt == [TextPart("It is Monday."), TextPart("hi")]

    @pytest.mark.parametrize("frozen", [True, False])
    async def test_any_envelope_can_be_rewritten(self, app, scripted, frozen):
        @dataclass(slots=True, frozen=frozen)
        class Mail:
            content: str
            channel: str = "mail"

        model = scripted("ok", "ok")
        app.hooks.register("input", lambda e: InputEventResult(action="transform", text="rewritten"))
        mail = Mail("original")
        async with app.running():
            await app.process(mail)
            await app.process(MappingProxyType({"content": "original"}))
            [turn, *_] = await app.store().entries("mail:default")
        assert [r.messages[-1]["content"] for r in model.requests] == ["rewritten", "rewritten"]
        assert mail.content == "original"
        assert turn.payload["envelope"]["channel"] == "mail"


class TestTheRunningScope:
    async def test_the_tape_is_open_inside_it_only(self, app):
        assert app.get_tape_store() is None
        async with app.running():
            assert app.get_tape_store() is not None
        assert app.get_tape_store() is None
        with pytest.raises(NotRunning, match="only inside"):
            app.store()

    @pytest.mark.parametrize("kind", ["value", "generator", "async generator", "manager"])
    async def test_a_store_may_come_in_any_shape(self, app, kind):
        from contextlib import contextmanager

        from hookline.tape import MemoryTapeStore

        store, closed = MemoryTapeStore(), []

        def generator():
            yield store
            closed.append(1)

        async def async_generator():
            yield store
            closed.append(1)

        shapes = {
            "value": lambda: store,
            "generator": generator,
            "async generator": async_generator,
            "manager": contextmanager(generator),
        }
        app.hooks.register("provide_tape_store", shapes[kind])
        async with app.running():
            assert app.get_tape_store() is store
        assert closed == ([] if kind == "value" else [1])

    async def test_a_store_with_synchronous_methods_keeps_the_tape(self, app, scripted):
        class Plain:
            """A store whose methods are plain functions."""

            def __init__(self):
                self.kept = MemoryTapeStore()

        def plain(name):
            def method(self, *args, **kwargs):
                coroutine = getattr(self.kept, name)(*args, **kwargs)
                with pytest.raises(StopIteration) as ended:  # a store in memory waits for nothing
                    coroutine.send(None)
                return ended.value.value

            return method

        for name in METHODS:
            setattr(Plain, name, plain(name))
        store = Plain()
        app.hooks.register("provide_tape_store", lambda: store)
        model = scripted("one", "two")
        async with app.running():
            await app.process({"content": "hi", "session_id": "s"})
            await app.process({"content": "again", "session_id": "s"})
        assert [m["content"] for m in model.requests[1].messages] == ["hi", "one", "again"]
        assert [e.kind for e in await store.kept.entries("s")].count("message") == 4

    @pytest.mark.parametrize("given", [object(), {}, "tape.db", 5])
    async def test_what_is_no_store_is_refused_when_the_scope_opens(self, app, given):
        app.hooks.register("provide_tape_store", lambda: given)
        kind = type(given).__name__
        with pytest.raises(PluginError, match=rf"gave a {kind}, which is no store: it has no append"):
            async with app.running():
                raise AssertionError("never reached")

    @pytest.mark.parametrize(
        "rendered",
        [
            [{"content": "a"}],
            ({"content": "a"},),
            {"content": "a"},
            SimpleNamespace(content="a"),
            MappingProxyType({"content": "a"}),
        ],
        ids=["list", "tuple", "single", "object", "mapping"],
    )
    async def test_outbounds_may_be_a_list_a_tuple_or_a_single_message(self, app, scripted, rendered):
        scripted("answer")
        app.channel = RecordingChannel()
        app.hooks.register("render_outbound", lambda: {"content": "b"})
        app.hooks.register("render_outbound", lambda: rendered)
        result = await say(app)
        assert app.channel.sent == result.outbounds
        assert [field_of(message, "content") for message in result.outbounds] == ["a", "b"]

    @pytest.mark.parametrize("rendered", ["text", 5, ["text"], [None], {1, 2}])
    async def test_an_outbound_that_is_no_message_is_refused(self, app, scripted, rendered):
        scripted("answer")
        app.hooks.register("render_outbound", lambda: rendered)
        with pytest.raises(BadInput, match=r"render_outbound gave .*, which is no message"):
            await say(app)

    @pytest.mark.parametrize(
        "message",
        [
            {"parts": [TextPart("hello")]},
            {"content": "", "parts": [TextPart("hello")]},
            {"content": None, "parts": (TextPart("hello"),)},
            {"parts": [{"type": "text", "text": "hello"}]},
            SimpleNamespace(parts=[TextPart("hello")]),
            MappingProxyType({"parts": [TextPart("hello")]}),
        ],
    )
    async def test_text_parts_without_content_reach_the_agent_and_every_hook(
        self, app, scripted, message
    ):
        model = scripted("ok")
        heard = []
        app.hooks.register("input", lambda event: heard.append(event.text))
        app.hooks.register(
            "resolve_session", lambda message: heard.append(field_of(message, "content"))
        )
        async with app.running():
            await app.process(message)
        assert heard == ["hello", "hello"]
        assert model.requests[0].messages[-1]["content"] == "hello"

    async def test_a_plugin_that_fails_at_startup_is_left_out_and_told(self, app):
        class Broken:
            @hookimpl
            def hookline_startup(self, pm):
                raise OSError("no such server")

            @hookimpl
            def build_prompt(self):
                return "never"

        app.hooks.add(Broken())
        app.absences.on_load_error = "continue"
        async with app.running():
            assert not app.hooks.pm.has_plugin("Broken")
        told = str(app.failures[0])
        assert told.startswith("Broken: hookline_startup failed: OSError: no such server (")
        assert "test_pipeline.py:" in told

    async def test_a_model_that_was_added_outlives_the_scope(self, app, scripted):
        scripted("one", "two")
        assert (await say(app)).model_output == "one"
        assert (await say(app)).model_output == "two"

    async def test_a_plugins_command_beats_the_builtin_one_of_its_name(self, app):
        def doctor():
            """Mine."""

        app.hooks.register("register_cli_commands", lambda app: app.command()(doctor))
        cli = app.create_cli_app()
        assert [c.callback for c in cli.registered_commands if name_of(c) == "doctor"] == [doctor]

    async def test_a_plugins_group_beats_the_builtin_command_of_its_name(self, app):
        def add(app):
            group = typer.Typer()
            group.command()(lambda: None)
            app.add_typer(group, name="doctor")

        app.hooks.register("register_cli_commands", add)
        cli = app.create_cli_app()
        assert "doctor" not in map(name_of, cli.registered_commands)
        assert "doctor" in [group.name for group in cli.registered_groups]

    async def test_turns_of_one_session_never_overlap(self, app, scripted):
        scripted(Turn("ok", wait=0.01), repeat=True)
        inside, overlaps = set(), []

        class Watch:
            @hookimpl
            def load_state(self, session_id):
                if session_id in inside:
                    overlaps.append(session_id)
                inside.add(session_id)

            @hookimpl
            def save_state(self, session_id):
                inside.discard(session_id)

        app.hooks.add(Watch())
        async with app.running():
            await asyncio.gather(*(app.process({"content": "x", "chat_id": n % 2}) for n in range(6)))
        assert overlaps == []
