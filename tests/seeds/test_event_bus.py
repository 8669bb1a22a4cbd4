"""The typed event bus: events with their payloads and moments, what results change, registration."""

import asyncio
import dataclasses
import inspect
import io
import json
import wave
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

import hookline.events
from hookline.agent.compactor import Compacting
from hookline.agent.run import Limits
from hookline.errors import Blocked
from hookline.events import (
    AgentEndEvent,
    AudioPart,
    BeforeAgentStartEventResult,
    CompactionResult,
    ContextEventResult,
    HookEvent,
    InputEventResult,
    MessageReceiveResult,
    MessageSendResult,
    SessionBeforeCompactResult,
    SessionBeforeForkResult,
    SessionBeforeSwitchResult,
    SessionBeforeTreeResult,
    TextPart,
    ToolCallEvent,
    ToolCallEventResult,
    ToolResultEventResult,
)
from hookline.ext.voice import Voice, VoiceProvider
from hookline.hookspecs import Hooks
from hookline.models import ModelFailed, ScriptedModel
from hookline.models.script import Call, Fault, Turn
from hookline.plugins.project import project_items
from hookline.policy import Policy
from hookline.runtime import user_tools
from hookline.runtime.app import Hookline
from hookline.serve import Gateway
from hookline.system.retry import RetryPolicy
from hookline.testing import RecordingChannel
from hookline.tools import tool
from hookline.tools.registry import Registry

from ..catalog.situations import Post
from ..tables import each_row
from . import KEPT, SCENE, say

PAYLOADS = {
    "session_start": "reason previous_session_file",
    "session_before_switch": "reason target_session_file",
    "session_before_fork": "entry_id position",
    "session_before_compact": "preparation branch_entries custom_instructions",
    "session_compact": "compaction_entry from_extension",
    "session_shutdown": "reason target_session_file",
    "session_before_tree": "preparation",
    "session_tree": "new_leaf_id old_leaf_id summary_entry",
    "input": "text source",
    "before_agent_start": "prompt system_prompt",
    "context": "messages",
    "agent_start": "",
    "agent_end": "messages",
    "agent_error": "error",
    "save_point": "",
    "settled": "",
    "turn_start": "turn_index timestamp",
    "turn_end": "turn_index message tool_results",
    "message_start": "message",
    "message_update": "message",
    "message_end": "message",
    "tool_execution_start": "tool_call",
    "tool_execution_update": "partial_tool_result",
    "tool_execution_end": "tool_result",
    "tool_execution_failure": "tool_name tool_call_id input error",
    "tool_call": "tool_call_id tool_name input",
    "tool_result": "tool_call_id tool_name input content is_error",
    "model_select": "model previous_model source",
    "thinking_level_select": "level previous_level",
    "subagent_start": "task_id label task",
    "subagent_end": "task_id label status result",
    "gateway:startup": "channel_ids",
    "gateway:stop": "channel_ids",
    "channel:connect": "channel_id",
    "channel:disconnect": "channel_id",
    "message:receive": "channel_id chat_id user_id text parts",
    "message:send": "channel_id chat_id input_text response_text is_voice",
    "message:cancel": "channel_id chat_id",
    "gateway:error": "channel_id error",
    "user_bash": "command exclude_from_context cwd",
    "resources_discover": "cwd reason",
    "retry_start": "attempt max_retries",
    "retry_end": "attempt success error",
}
EVENTS = {event.__dataclass_fields__["type"].default: event for event in get_args(HookEvent)}


@tool(side_effects="none", registry=Registry())
def broken() -> str:
    raise ValueError("it broke")


@dataclass
class Record:
    """Everything that a hook file of the profile was told while an app lived."""

    app: Hookline
    seen: list[Any]

    def of(self, *names: str, in_: str = "") -> list[Any]:
        """The events of these names, in order, or those of one scene."""
        scenes = [e for e in self.seen if not in_ or e.scene == in_]
        return [e for e in scenes if not names or e.type in names]

    def order(self, *names: str, in_: str) -> list[str]:
        return [event.type for event in self.of(*names, in_=in_)]


HOOK_FILE = """
from types import SimpleNamespace
from tests.seeds import KEPT, SCENE

failed = set()

async def fail(event):
    if event.type not in failed:  # once for each: a traceback in the log takes a while
        failed.add(event.type)
        raise RuntimeError("broken")

async def keep(event):
    fields = {name: getattr(event, name) for name in event.__dataclass_fields__}
    KEPT.append(SimpleNamespace(scene=SCENE[0], event=event, **fields))

hooks = [(name, handler) for name in %r for handler in (fail, keep)]
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory) -> Record:
    """An app lives through everything that the events tell of; each event also has a broken handler."""
    folder = tmp_path_factory.mktemp("seeds")
    return asyncio.run(live(folder))


async def live(folder: Path) -> Record:
    home = folder / "home"
    hooks = home / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    home.chmod(0o700)
    (hooks / "keep.py").write_text(HOOK_FILE % list(EVENTS))
    (folder / "workspace").mkdir()
    app = Hookline(home=home, workspace=folder / "workspace", policy=Policy(default="allow"))
    app.load_hooks(packages=False)
    app.hooks.pm.get_plugin("skills").home = folder
    app.hooks.pm.get_plugin("command-hooks").home = folder
    app.tools.add(broken)

    def script(scene: str, *turns: Any, **options: Any) -> None:
        app.models.add(ScriptedModel(turns, name=scene.replace(" ", "-"), **options))
        app.model = scene.replace(" ", "-")
        SCENE[0] = scene

    KEPT.clear()
    async with app.running():
        message = {"session_id": "s", "channel": "cli"}
        calls = [Call("shell", {"command": "echo hi"}, id="c1"), Call("broken", id="c2")]
        script("tools", Turn("Let me see.", tool_calls=calls), "All done.")
        await app.process({"content": "hello", **message})
        script("retry", Turn(error=Fault("busy", transient=True)), "ok")
        app.limits = Limits(retry=RetryPolicy(attempts=4, first=0.001), compacting=Compacting(keep=1))
        await app.process({"content": "again", **message})
        script("failure", Turn(error=Fault("broken")))
        with pytest.raises(ModelFailed):
            await app.process({"content": "fail", **message})
        script("queue", "one", "two")
        both = [app.process({"content": text, **message}) for text in ("first", "second")]
        await asyncio.gather(*both)
        script("choices", "a summary", repeat=True)
        await app.sessions.choose_model("s", "tools")
        await app.sessions.choose_model("s", "choices")
        await app.sessions.choose_thinking("s", "low")
        await user_tools.run_shell(app, "s", "true")
        script("compact", "a summary", repeat=True)
        await app.sessions.choose_model("s", "compact")
        await app.sessions.compact("s", "keep the names")
        script("tree", "a summary", repeat=True)
        entries = [e for e in await app.store().entries("s") if e.kind == "message"]
        await app.sessions.navigate("s", entries[2].id, summarise=True)
        script("subagents", "found it", repeat=True)
        await app.sessions.choose_model("s", "subagents")
        await app.subagents.run("look for it", parent="s")
        script("a failing subagent", Turn(error=Fault("broken")), repeat=True)
        await app.sessions.choose_model("s", "a-failing-subagent")
        await app.subagents.run("break", parent="s")
        script("a cancelled subagent", Turn("slowly " * 100, chunk=7, delay=0.05), repeat=True)
        await app.sessions.choose_model("s", "a-cancelled-subagent")
        running = asyncio.create_task(app.subagents.run("take your time", parent="s"))
        while not any(e.type == "model_call" and e.scene == "a cancelled subagent" for e in KEPT):
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        script("journeys", "ok", repeat=True)
        fork = await app.sessions.fork("s", into="t")
        await app.sessions.new(fork, session_id="u")
        await app.sessions.switch("s", leaving="u")
        script("reload", "ok", repeat=True)
        await app.hook_files.reload()
        script("end")
    post = Post()
    app.hooks.register("provide_channels", lambda message_handler: [post])
    slow = Turn("slowly " * 200, chunk=7, delay=0.05)
    app.model = "gateway"
    app.models.add(ScriptedModel(["Hello.", Turn(error=Fault("broken")), slow], name="gateway"))
    SCENE[0] = "gateway"
    async with Gateway(app, enabled=[post.name]).running():
        await post.write("hi", parts=[TextPart("hi")])
        await post.write("break")
        await post.post("take your time")
        while [e.type for e in KEPT if e.scene == "gateway"].count("model_call") < 3:
            await asyncio.sleep(0.001)
        await post.post("/cancel")
        async with asyncio.timeout(10):
            while not any(e.type == "message:cancel" for e in KEPT):
                await asyncio.sleep(0.001)
    return Record(app, [*KEPT])


class TestTheModel:
    @each_row("name", PAYLOADS)
    def test_an_event_is_a_dataclass_with_its_literal_type_and_the_documented_payload(self, name):
        fields = {field.name: field for field in dataclasses.fields(EVENTS[name])}
        assert (fields["type"].default, fields["type"].init) == (name, False)
        assert set(PAYLOADS[name].split()) <= {*fields}
        assert EVENTS[name]().type == name  # every payload has a default

    def test_results_are_dataclasses_of_their_own(self):
        assert dataclasses.asdict(ToolCallEventResult()) | {"block": False, "reason": None} == (
            dataclasses.asdict(ToolCallEventResult())
        )

    def test_the_union_has_every_event(self):
        events = [
            value for name, value in vars(hookline.events).items()
            if inspect.isclass(value) and name.endswith("Event") and name != "Event"
        ]  # fmt: skip
        assert {*events} == {*get_args(HookEvent)}


@each_row("name", PAYLOADS)
def test_the_event_reaches_a_hook_file_although_another_handler_fails(record, name):
    assert record.of(name)


class TestSessions:
    def test_a_session_starts_with_its_reason(self, record):
        found = [(e.scene, e.reason, e.previous_session_file) for e in record.of("session_start")]
        assert found[0] == ("tools", "startup", None)
        journey = [(reason, previous) for scene, reason, previous in found if scene == "journeys"]
        assert journey == [("fork", "s"), ("new", "t"), ("resume", "u")]
        assert ("reload", "reload", None) in [(s, r, None) for s, r, _ in found]

    def test_a_switch_is_announced_before_it_happens(self, record):
        found = record.of("session_before_switch", in_="journeys")
        assert [(e.reason, e.target_session_file) for e in found] == [("new", "u"), ("resume", "s")]
        order = record.order(
            "session_before_switch", "session_shutdown", "session_start", in_="journeys"
        )
        assert order[-3:] == ["session_before_switch", "session_shutdown", "session_start"]

    def test_a_fork_names_its_entry_and_position(self, record):
        [event] = record.of("session_before_fork")
        assert event.entry_id
        assert event.position in ("at", "before")

    def test_a_compaction_is_prepared_and_then_on_the_tape(self, record):
        [before] = record.of("session_before_compact")
        [after] = record.of("session_compact")
        assert before.preparation is not None
        assert before.branch_entries
        assert before.custom_instructions == "keep the names"
        assert after.compaction_entry.id
        assert after.from_extension is False

    def test_navigation_names_both_leaves_and_the_summary(self, record):
        [event] = record.of("session_tree", in_="tree")
        assert event.new_leaf_id != event.old_leaf_id
        assert event.summary_entry is not None
        assert record.of("session_before_tree", in_="tree")[0].preparation is not None

    def test_a_session_shuts_down_with_its_reason(self, record):
        found = [
            (e.reason, e.target_session_file) for e in record.of("session_shutdown", in_="journeys")
        ]
        assert found == [("fork", "t"), ("new", "u"), ("resume", "s")]
        assert {e.reason for e in record.of("session_shutdown", in_="end")} == {"completed"}


class TestTheAgent:
    def test_input_is_the_raw_text_and_its_source(self, record):
        assert [(e.text, e.source) for e in record.of("input", in_="tools")] == [("hello", "cli")]

    def test_before_agent_start_has_the_prompt_and_the_system_prompt(self, record):
        [event] = record.of("before_agent_start", in_="tools")
        assert event.prompt == "hello"
        assert event.system_prompt

    def test_the_order_of_a_run(self, record):
        names = (
            "input", "before_agent_start", "agent_start", "context", "turn_start", "turn_end",
            "agent_end", "save_point", "settled",
        )  # fmt: skip
        order = record.order(*names, in_="tools")
        assert order[:3] == ["input", "before_agent_start", "agent_start"]
        assert order[-3:] == ["agent_end", "save_point", "settled"]
        assert order.count("turn_start") == order.count("turn_end") == 2

    def test_agent_end_has_the_messages(self, record):
        [event] = record.of("agent_end", in_="tools")
        assert [m["role"] for m in event.messages] == ["user", "assistant", "tool", "tool", "assistant"]

    def test_a_turn_that_fails_ends_with_its_error(self, record):
        [event] = record.of("agent_error", in_="failure")
        assert "broken" in str(event.error)
        assert record.of("agent_end", in_="failure") == []

    def test_settled_comes_once_when_no_follow_up_is_left(self, record):
        order = record.order("save_point", "settled", in_="queue")
        assert order == ["save_point", "save_point", "settled"]


class TestTurnsAndMessages:
    def test_each_model_call_is_a_turn_with_its_index(self, record):
        starts, ends = record.of("turn_start", in_="tools"), record.of("turn_end", in_="tools")
        assert [e.turn_index for e in starts] == [e.turn_index for e in ends] == [0, 1]
        assert all(e.timestamp > 1e9 for e in starts)

    def test_the_end_of_a_turn_has_its_message_and_tool_results(self, record):
        first, second = record.of("turn_end", in_="tools")
        assert first.message["content"] == "Let me see."
        assert [r.name for r in first.tool_results] == ["shell", "broken"]
        assert (second.message["content"], second.tool_results) == ("All done.", [])

    def test_any_message_begins_and_ends(self, record):
        for name in ("message_start", "message_end"):
            roles = [e.message["role"] for e in record.of(name, in_="tools")]
            assert roles == ["user", "assistant", "tool", "tool", "assistant"]

    def test_updates_are_the_pieces_of_the_answer(self, record):
        pieces = [e.message["content"] for e in record.of("message_update", in_="tools")]
        assert "".join(pieces) == "Let me see.All done."


class TestToolExecution:
    def test_the_order_of_a_call(self, record):
        shell = [
            e.type for e in record.of(in_="tools")
            if e.type.startswith("tool_") and "c1" in repr(e.event)
        ]  # fmt: skip
        assert [name for name in shell if name != "tool_execution_update"] == [
            "tool_execution_start", "tool_call", "tool_result", "tool_execution_end",
        ]  # fmt: skip
        assert shell.index("tool_execution_update") == 2

    def test_the_call_is_named_with_its_input(self, record):
        found = record.of("tool_call", in_="tools")
        assert [(e.tool_call_id, e.tool_name) for e in found] == [("c1", "shell"), ("c2", "broken")]
        assert found[0].input["command"] == "echo hi"
        assert record.of("tool_execution_start", in_="tools")[0].tool_call.name == "shell"

    def test_the_result_has_its_content_and_whether_it_is_an_error(self, record):
        found = {e.tool_name: e for e in record.of("tool_result", in_="tools")}
        assert ("hi" in found["shell"].content, found["shell"].is_error) == (True, False)
        assert found["broken"].is_error
        assert {e.tool_result.name for e in record.of("tool_execution_end", in_="tools")} == {*found}

    def test_a_tool_that_raises_is_a_failure(self, record):
        [event] = record.of("tool_execution_failure")
        assert (event.tool_name, event.tool_call_id, event.input) == ("broken", "c2", {})
        assert isinstance(event.error, ValueError)

    def test_progress_has_the_partial_result(self, record):
        assert "hi" in record.of("tool_execution_update")[0].partial_tool_result.content


class TestModels:
    def test_a_change_names_both_models_and_its_source(self, record):
        found = record.of("model_select", in_="choices")
        assert [(e.model, e.previous_model) for e in found] == [
            ("tools", "choices"),
            ("choices", "tools"),
        ]
        assert {e.source for e in found} == {"user"}

    def test_a_change_of_the_thinking_level_names_both(self, record):
        [event] = record.of("thinking_level_select")
        assert event.level == "low"
        assert event.previous_level != "low"


class TestSubagents:
    @pytest.mark.parametrize(
        ("scene", "status"),
        [
            ("subagents", "completed"),
            ("a failing subagent", "failed"),
            ("a cancelled subagent", "cancelled"),
        ],
    )
    def test_it_ends_with_its_status(self, record, scene, status):
        [start] = record.of("subagent_start", in_=scene)
        [end] = record.of("subagent_end", in_=scene)
        assert (start.task_id, start.label) == (end.task_id, end.label)
        assert start.task
        assert end.status == status
        assert scene != "subagents" or "found it" in str(end.result)


class TestTheGateway:
    def test_it_starts_after_its_channels_and_stops_before_them(self, record):
        names = ("channel:connect", "gateway:startup", "gateway:stop", "channel:disconnect")
        found = record.of(*names)
        assert [e.type for e in found] == list(names)
        assert [getattr(e, "channel_ids", None) or e.channel_id for e in found] == [
            "telegram-test", ["telegram-test"], ["telegram-test"], "telegram-test",
        ]  # fmt: skip

    def test_a_message_arrives_with_its_origin(self, record):
        event = record.of("message:receive", in_="gateway")[0]
        assert (event.channel_id, event.chat_id, event.user_id) == ("telegram-test", "ada", "ada")
        assert (event.text, [part.text for part in event.parts]) == ("hi", ["hi"])

    def test_an_answer_leaves_with_what_was_asked(self, record):
        event = record.of("message:send", in_="gateway")[0]
        assert (event.channel_id, event.chat_id) == ("telegram-test", "ada")
        assert (event.input_text, event.response_text, event.is_voice) == ("hi", "Hello.", False)

    def test_a_cancelled_turn_and_a_failed_one_are_reported(self, record):
        [cancelled] = record.of("message:cancel")
        assert (cancelled.channel_id, cancelled.chat_id) == ("telegram-test", "ada")
        [failed] = record.of("gateway:error")
        assert failed.channel_id == "telegram-test"
        assert "broken" in str(failed.error)


class TestTheRest:
    def test_a_persons_command(self, record):
        [event] = record.of("user_bash")
        assert (event.command, event.exclude_from_context) == ("true", False)
        assert event.cwd == str(record.app.workspace)

    def test_a_reload_looks_for_resources(self, record):
        found = record.of("resources_discover", in_="reload")
        assert [(e.cwd, e.reason) for e in found] == [(str(record.app.workspace), "reload")]

    def test_retries(self, record):
        assert record.order("retry_start", "retry_end", in_="retry") == ["retry_start", "retry_end"]
        [start], [end] = record.of("retry_start"), record.of("retry_end")
        assert start.attempt == end.attempt == 1
        assert start.max_retries > 0
        assert (end.success, end.error) == (True, None)


async def test_every_attempt_of_a_retry_has_its_start_and_end(app, scripted):
    seen = []
    app.hooks.register("retry_start", lambda e: seen.append((e.attempt, e.max_retries)))
    app.hooks.register("retry_end", lambda e: seen.append((e.attempt, e.success, bool(e.error))))
    app.limits = Limits(retry=RetryPolicy(attempts=3, first=0.001))
    scripted(*[Turn(error=Fault("busy", transient=True))] * 4)
    with pytest.raises(ModelFailed):
        await say(app)
    assert seen == [(1, 2), (1, False, True), (2, 2), (2, False, True)]


async def test_the_session_is_durable_at_a_save_point(app, scripted):
    seen = []

    async def look(event):
        entries = await app.store().entries("s")
        seen.append([e.payload for e in entries if e.kind == "message"][-1])
        assert app.sessions.queue("s").phase == "idle"

    app.hooks.register("save_point", look)
    scripted("the answer")
    await say(app, session_id="s")
    assert "the answer" in json.dumps(seen)


@pytest.mark.parametrize("name", ["save_point", "settled"])
async def test_an_idle_agent_takes_another_message_from_the_handler(app, scripted, name):
    async def follow_up(event):
        off()
        await app.process({"content": "one more thing", "session_id": "s"})

    off = app.hooks.register(name, follow_up)
    model = scripted("ok", repeat=True)
    await asyncio.wait_for(say(app, session_id="s"), 10)
    asked = [request.messages[-1]["content"] for request in model.requests]
    assert asked == ["hello", "one more thing"]


class TestRegistration:
    def test_register_returns_what_removes_the_handler(self):
        hooks = Hooks()
        unsubscribe = hooks.register("tool_call", lambda event: None)
        assert hooks.handler_count("tool_call") == 1
        unsubscribe()
        assert hooks.handler_count("tool_call") == 0

    async def test_the_decorator_registers(self):
        hooks = Hooks()
        seen = []

        @hooks.on("agent_end")
        async def on_end(event: AgentEndEvent) -> None:
            seen.append(event.messages)

        await hooks.emit(AgentEndEvent([{"role": "user"}]))
        on_end.off()
        await hooks.emit(AgentEndEvent([]))
        assert seen == [[{"role": "user"}]]

    async def test_a_subscriber_gets_every_event_after_its_handlers_and_its_value_is_dropped(self):
        hooks, seen = Hooks(), []
        unsub = hooks.subscribe(lambda event: seen.append(event.type) or "dropped")
        hooks.register("tool_call", lambda event: seen.append("handler"))
        assert await hooks.emit(ToolCallEvent()) == [None]
        assert await hooks.emit(AgentEndEvent()) == []
        unsub()
        await hooks.emit(AgentEndEvent())
        assert seen == ["handler", "tool_call", "agent_end"]

    async def test_emit_returns_the_results_in_registration_order(self):
        hooks = Hooks()
        results = [ToolCallEventResult(), None, ToolCallEventResult(reason="x")]
        for result in results:
            hooks.register("tool_call", lambda event, result=result: result)
        assert await hooks.emit(ToolCallEvent()) == results

    async def test_errors_are_logged_with_their_traceback_and_suppressed(self, caplog):
        hooks = Hooks()
        hooks.register("tool_call", lambda event: 1 / 0)
        hooks.register("tool_call", lambda event: ToolCallEventResult())
        hooks.subscribe(lambda event: 1 / 0)
        results = await hooks.emit(ToolCallEvent())
        assert [r for r in results if r is not None] == [ToolCallEventResult()]
        assert caplog.text.count("ZeroDivisionError") >= 2
        assert "Traceback" in caplog.text

    def test_introspection_and_clearing(self):
        hooks = Hooks()
        for name in ("tool_call", "tool_call", "agent_end"):
            hooks.register(name, lambda event: None)
        assert hooks.handler_count("tool_call") == 2
        assert sorted(hooks.registered_events()) == ["agent_end", "tool_call"]
        hooks.clear("tool_call")
        assert hooks.registered_events() == ["agent_end"]
        hooks.clear()
        assert hooks.registered_events() == []


class TestMutation:
    async def test_a_blocked_tool_call_is_a_tool_error_to_the_model(self, app, scripted):
        app.hooks.register("tool_call", lambda e: ToolCallEventResult(block=True, reason="no todo"))
        model = scripted(Turn(tool_calls=[Call("todo")]), "done")
        await say(app)
        told = model.requests[1].messages[-1]
        assert (told["role"], told["content"], told["is_error"]) == ("tool", "no todo", True)

    async def test_patches_of_a_tool_result_accumulate(self, app, scripted):
        seen = []

        def first(event):
            return ToolResultEventResult(content="patched")

        def second(event):
            seen.append(event.content)
            return ToolResultEventResult(is_error=True)

        def third(event):
            seen.append((event.content, event.is_error))

        for handler in (first, second, third):
            app.hooks.register("tool_result", handler)
        model = scripted(Turn(tool_calls=[Call("todo")]), "done")
        await say(app)
        told = model.requests[1].messages[-1]
        assert (told["content"], told["is_error"]) == ("patched", True)
        assert seen == ["patched", ("patched", True)]

    async def test_a_result_can_terminate_the_run(self, app, scripted):
        app.hooks.register("tool_result", lambda e: ToolResultEventResult(terminate=True))
        model = scripted(Turn("Looking.", tool_calls=[Call("todo")]), "never asked")
        await say(app)
        assert len(model.requests) == 1

    async def test_handlers_of_context_chain_and_the_tape_keeps_its_own(self, app, scripted):
        app.hooks.register(
            "context",
            lambda e: ContextEventResult(messages=[*e.messages, {"role": "user", "content": "a"}]),
        )
        app.hooks.register(
            "context",
            lambda e: ContextEventResult(messages=[*e.messages, {"role": "user", "content": "b"}]),
        )
        model = scripted("ok")
        ended = []
        app.hooks.register("agent_end", lambda e: ended.extend(e.messages))
        await say(app)
        assert [m["content"] for m in model.requests[0].messages] == ["hello", "a", "b"]
        assert [m["content"] for m in ended] == ["hello", "ok"]

    async def test_the_last_system_prompt_wins(self, app, scripted):
        for text in ("first", "second", None):
            app.hooks.register(
                "before_agent_start",
                lambda e, text=text: BeforeAgentStartEventResult(system_prompt=text),
            )
        app.hooks.register("before_agent_start", lambda e: None)
        model = scripted("ok")
        await say(app)
        assert model.requests[0].system == "second"

    @pytest.fixture
    async def talked(self, app, scripted):
        """An app in a session with four turns."""
        app.limits = Limits(compacting=Compacting(keep=1))
        model = scripted("ok", repeat=True)
        async with app.running():
            for number in range(4):
                await app.process({"content": f"message {number}", "session_id": "s"})
            yield SimpleNamespace(app=app, model=model)

    async def test_a_compaction_can_be_cancelled(self, talked):
        app = talked.app
        app.hooks.register("session_before_compact", lambda e: SessionBeforeCompactResult(cancel=True))
        asked = len(talked.model.requests)
        try:
            assert await app.sessions.compact("s") is None
        except Blocked:
            pass
        assert len(talked.model.requests) == asked
        assert not [e for e in await app.store().entries("s") if e.kind == "compaction"]

    async def test_a_compaction_can_be_supplied_without_a_model(self, talked):
        app, seen = talked.app, []

        def supply(event):
            return SessionBeforeCompactResult(compaction=CompactionResult("supplied"))

        app.hooks.register("session_before_compact", supply)
        app.hooks.register("session_compact", lambda e: seen.append(e.from_extension))
        asked = len(talked.model.requests)
        await app.sessions.compact("s")
        assert len(talked.model.requests) == asked
        await app.process({"content": "go on", "session_id": "s"})
        assert "supplied" in json.dumps(talked.model.requests[-1].messages)
        assert seen == [True]

    async def test_a_switch_and_a_fork_can_be_vetoed(self, talked):
        app = talked.app
        app.hooks.register("session_before_switch", lambda e: SessionBeforeSwitchResult(cancel=True))
        app.hooks.register("session_before_fork", lambda e: SessionBeforeForkResult(cancel=True))
        shut = []
        app.hooks.register("session_shutdown", lambda e: shut.append(e))
        await app.process({"content": "hello", "session_id": "other"})
        with pytest.raises(Blocked):
            await app.sessions.new("s", session_id="t")
        with pytest.raises(Blocked):
            await app.sessions.switch("other", leaving="s")
        with pytest.raises(Blocked):
            await app.sessions.fork("s", into="t")
        assert shut == []
        assert not await app.store().entries("t")

    async def test_navigation_can_be_cancelled(self, talked):
        app = talked.app
        entries = await app.store().entries("s")
        app.hooks.register("session_before_tree", lambda e: SessionBeforeTreeResult(cancel=True))
        leaf = (await app.tape("s")).leaf
        with pytest.raises(Blocked):
            await app.sessions.navigate("s", entries[1].id)
        assert (await app.tape("s")).leaf == leaf

    async def test_navigation_takes_a_summary_instructions_and_a_label(self, talked):
        app = talked.app
        first = next(e for e in await app.store().entries("s") if e.kind == "message")
        seen = []
        app.hooks.register("session_tree", lambda e: seen.append(e.summary_entry))
        off = app.hooks.register(
            "session_before_tree",
            lambda e: SessionBeforeTreeResult(summary="my summary", label="before lunch"),
        )
        asked = len(talked.model.requests)
        await app.sessions.navigate("s", first.id, summarise=True)
        assert len(talked.model.requests) == asked
        assert "my summary" in json.dumps(seen[0].payload)
        assert "before lunch" in json.dumps([e.payload for e in await app.store().entries("s")])
        off()
        app.hooks.register(
            "session_before_tree", lambda e: SessionBeforeTreeResult(custom_instructions="mind the cat")
        )
        for number in range(2):
            await app.process({"content": f"another {number}", "session_id": "s"})
        await app.sessions.navigate("s", first.id, summarise=True)
        request = talked.model.requests[-1]
        assert "mind the cat" in f"{request.system} {json.dumps(request.messages)}"

    async def test_a_message_passes_is_transformed_or_is_dropped(self, app, scripted):
        model = scripted("ok", repeat=True)
        async with app.running():
            offs = [app.hooks.register("message:receive", lambda e: MessageReceiveResult("continue"))]
            await app.process({"content": "as it is"})
            assert model.requests[-1].messages[-1]["content"] == "as it is"
            for text in ("first", "second"):
                parts = [TextPart(text)]
                offs.append(
                    app.hooks.register(
                        "message:receive",
                        lambda e, parts=parts: MessageReceiveResult(
                            action="transform", parts=[*e.parts, *parts]
                        ),
                    )
                )
            await app.process({"content": "given", "session_id": "t"})
            said = model.requests[-1].messages[-1]["content"]
            assert [said.find(word) for word in ("given", "first", "second")] == sorted(
                said.find(word) for word in ("given", "first", "second")
            )
            assert "first" in said
            app.hooks.register("message:receive", lambda e: MessageReceiveResult("reject", reason="no"))
            app.hooks.register("message:receive", lambda e: MessageReceiveResult("continue"))
            asked = len(model.requests)
            result = await app.process({"content": "bad"})
            assert (result.outcome, result.stopped, len(model.requests)) == ("rejected", "no", asked)

    async def test_parts_are_sent_before_the_end(self, app, scripted):
        app.hooks.register("message:send", lambda e: MessageSendResult(parts=[TextPart("PS")]))
        app.hooks.register("message:send", lambda e: MessageSendResult(parts=[AudioPart(b"a")]))
        order = []

        class Noting(RecordingChannel):
            async def send(self, message):
                order.append([type(p).__name__ for p in message.get("parts", ())] or "answer")
                return await super().send(message)

            def stream(self, event):
                if event.kind == "end":
                    order.append("end")

        scripted("ok")
        await say(app, via=Noting())
        assert order == ["answer", ["TextPart", "AudioPart"], "end"]

    @pytest.mark.parametrize("spoken", [True, False])
    async def test_is_voice_tells_whether_the_person_spoke_even_after_a_transcript(
        self, app, scripted, spoken
    ):
        def transcribe(event):
            return MessageReceiveResult("transform", parts=[TextPart("a transcript")])

        seen = []
        app.hooks.register("message:receive", transcribe)
        app.hooks.register("message:send", lambda e: seen.append(e.is_voice))
        scripted("ok")
        await say(app, "", parts=[AudioPart(b"abc") if spoken else TextPart("typed")])
        assert seen == [spoken]

    async def test_input_passes_is_replaced_or_is_handled(self, app, scripted):
        model = scripted("ok", repeat=True)
        async with app.running():
            off = app.hooks.register("input", lambda e: InputEventResult("continue"))
            await app.process({"content": "as it is"})
            assert model.requests[-1].messages[-1]["content"] == "as it is"
            off()
            app.hooks.register("input", lambda e: InputEventResult("transform", text=e.text.upper()))
            await app.process({"content": "louder"})
            assert model.requests[-1].messages[-1]["content"] == "LOUDER"
            app.hooks.register("input", lambda e: InputEventResult("handled"))
            asked = len(model.requests)
            assert (await app.process({"content": "mine"})).outcome == "handled"
            assert len(model.requests) == asked


class TestHookFiles:
    TEXT = (
        "async def on_agent_end(event):\n"
        '    print(f"Done: {len(event.messages)} messages")\n\n'
        "async def on_tool_execution_end(event):\n"
        "    print(f\"Tool '{event.tool_result.name}' finished\")\n\n"
        "hooks = [\n    ('agent_end', on_agent_end),\n"
        "    ('tool_execution_end', on_tool_execution_end),\n]\n"
    )

    @pytest.mark.parametrize("place", ["profile", "project"])
    async def test_the_example_runs_in_each_folder(self, app, scripted, capsys, place):
        folder = {
            "profile": app.home / "profiles" / "default" / "hooks",
            "project": app.workspace / ".hookline" / "hooks",
        }[place]
        folder.mkdir(parents=True)
        app.home.mkdir(exist_ok=True)
        app.home.chmod(0o700)
        (folder / "logging.py").write_text(self.TEXT)
        if place == "project":
            app.trust.grant(project_items(app.workspace))
        scripted(Turn(tool_calls=[Call("todo")]), "done")
        await say(app)
        assert capsys.readouterr().out.splitlines() == ["Tool 'todo' finished", "Done: 4 messages"]

    async def test_the_folder_is_that_of_the_active_profile(self, tmp_path):
        for name in ("default", "work"):
            folder = tmp_path / "home" / "profiles" / name / "hooks"
            folder.mkdir(parents=True)
            keep = f"lambda e: KEPT.append('{name}')"
            text = f"from tests.seeds import KEPT\nhooks = [('agent_end', {keep})]\n"
            (folder / "keep.py").write_text(text)
        (tmp_path / "home").chmod(0o700)
        app = Hookline(home=tmp_path / "home", workspace=tmp_path, profile="work", project=False)
        app.load_hooks(packages=False)
        app.models.add(ScriptedModel(["ok"]))
        app.model = "scripted"
        KEPT.clear()
        await say(app)
        assert KEPT == ["work"]

    async def test_handlers_are_registered_before_a_session_starts(self, app, scripted):
        folder = app.home / "profiles" / "default" / "hooks"
        folder.mkdir(parents=True)
        app.home.chmod(0o700)
        (folder / "early.py").write_text(
            "from tests.seeds import KEPT\nhooks = [('session_start', lambda e: KEPT.append(e))]\n"
        )
        scripted("ok")
        KEPT.clear()
        await say(app)
        assert [event.reason for event in KEPT] == ["startup"]


class TestVoice:
    class Parrot:
        """An engine that hears the language and says the settings."""

        async def hear(self, recording):
            return f"heard in {recording.language}"

        async def say(self, utterance):
            said = f"{utterance.text} {utterance.voice} {utterance.speed} {utterance.language}"
            return AudioPart(said.encode(), "audio/x-parrot")

        async def close(self):
            """Nothing is open."""

    @staticmethod
    def recording() -> AudioPart:
        file = io.BytesIO()
        with wave.open(file, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(16000)
            sound.writeframes(b"\0\0" * 16000)
        return AudioPart(file.getvalue(), "audio/wav")

    async def turn(self, tmp_path, spoken, stt, tts):
        """What the model reads, and the parts that are sent."""
        engine = {"model": "x", "provider": "parrot"}
        sections = {"stt": {**engine, **stt}, "tts": {**engine, **tts}}
        app = Hookline(home=tmp_path / "home", workspace=tmp_path, overrides=sections, project=False)
        app.load_hooks(packages=False)
        Voice.of(app).register(
            VoiceProvider("parrot", lambda *_: self.Parrot(), lambda *_: self.Parrot())
        )
        model = ScriptedModel(["ok"])
        app.models.add(model)
        app.model = model.name
        channel = RecordingChannel()
        parts = [self.recording()] if spoken else [TextPart("typed")]
        await say(app, "" if spoken else "typed", via=channel, parts=parts)
        sent = [part for message in channel.sent for part in message.get("parts", ())]
        return model.requests[0].messages[-1]["content"], sent

    @pytest.mark.parametrize("enabled", [{}, {"enabled": True}])
    async def test_speech_is_transcribed_with_the_settings(self, tmp_path, enabled):
        said, _ = await self.turn(tmp_path, True, {"language": "fr", **enabled}, {})
        assert said == "heard in fr"

    async def test_a_typed_message_passes(self, tmp_path):
        said, _ = await self.turn(tmp_path, False, {}, {})
        assert said == "typed"

    async def test_disabled_recognition_passes_the_recording_on(self, tmp_path):
        said, _ = await self.turn(tmp_path, True, {"enabled": False}, {"enabled": False})
        assert "heard" not in str(said)

    @pytest.mark.parametrize(
        ("spoken", "enabled", "sent"),
        [
            (True, {}, 1), (False, {}, 0), (True, {"enabled": True}, 1), (False, {"enabled": True}, 1),
            (True, {"enabled": False}, 0), (False, {"enabled": False}, 0),
        ],
    )  # fmt: skip
    async def test_an_answer_is_spoken_as_enabled_says(self, tmp_path, spoken, enabled, sent):
        _, parts = await self.turn(tmp_path, spoken, {}, enabled)
        assert len(parts) == sent

    async def test_speech_has_the_voice_speed_and_language_of_the_settings(self, tmp_path):
        settings = {"voice": "nova", "speed": 1.5, "language": "fr"}
        _, [part] = await self.turn(tmp_path, True, {}, settings)
        assert all(word in part.data.decode() for word in ("ok", "nova", "1.5", "fr"))
