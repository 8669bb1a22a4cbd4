"""What a handler's result means, and what becomes of it in a dispatch."""

from typing import Any

import pytest

from hookline import Hooks
from hookline.events import (
    AgentStopEventResult,
    AudioPart,
    BeforeAgentStartEventResult,
    CompactionResult,
    ContextEvent,
    ContextEventResult,
    InputEvent,
    InputEventResult,
    MessageReceiveEvent,
    MessageReceiveResult,
    ModelCallEventResult,
    ModelResultEventResult,
    NetworkRequestResult,
    OutputEventResult,
    SessionBeforeCompactEvent,
    SessionBeforeCompactResult,
    SessionBeforeForkResult,
    SessionBeforeStartResult,
    SessionBeforeSwitchResult,
    SessionBeforeTreeResult,
    TextPart,
    ToolCallEventResult,
    ToolResultEvent,
    ToolResultEventResult,
    UserBashResult,
)
from hookline.hooks import Decision
from hookline.hookspecs import CATALOG

from ..tables import each_row

ALLOW, ASK, DENIED = Decision.ALLOW, Decision.ASK, Decision.DENY
PARTS: list[Any] = [TextPart("one"), AudioPart(b"..."), TextPart("two")]
COMPACTION = CompactionResult("short")

VERDICTS = [
    (SessionBeforeStartResult(), ALLOW, None, {}),
    (SessionBeforeStartResult(block=True, reason="no"), DENIED, "no", {}),
    (SessionBeforeSwitchResult(), ALLOW, None, {}),
    (SessionBeforeSwitchResult(cancel=True), DENIED, None, {}),
    (SessionBeforeForkResult(cancel=True), DENIED, None, {}),
    (SessionBeforeCompactResult(cancel=True), DENIED, None, {}),
    (SessionBeforeCompactResult(compaction=COMPACTION), ALLOW, None, {"compaction": COMPACTION}),
    (SessionBeforeTreeResult(cancel=True), DENIED, None, {}),
    (
        SessionBeforeTreeResult(summary="s", custom_instructions="c", label=""),
        ALLOW, None, {"summary": "s", "custom_instructions": "c", "label": ""},
    ),
    (InputEventResult(), ALLOW, None, {}),
    (InputEventResult("transform", text="t"), ALLOW, None, {"text": "t"}),
    (InputEventResult("transform", text=""), ALLOW, None, {"text": ""}),
    (InputEventResult("handled"), DENIED, None, {"action": "handled"}),
    (InputEventResult("block", reason="no"), DENIED, "no", {"action": "block"}),
    (BeforeAgentStartEventResult("sp"), ALLOW, None, {"system_prompt": "sp"}),
    (BeforeAgentStartEventResult(), ALLOW, None, {}),
    (ContextEventResult([]), ALLOW, None, {"messages": []}),
    (AgentStopEventResult(block=True, reason="go on"), DENIED, "go on", {}),
    (OutputEventResult(content="c"), ALLOW, None, {"content": "c"}),
    (OutputEventResult(True, "no"), DENIED, "no", {}),
    (ModelCallEventResult(messages=[]), ALLOW, None, {"messages": []}),
    (ModelCallEventResult(True, "no"), DENIED, "no", {}),
    (ModelResultEventResult(content="c"), ALLOW, None, {"content": "c"}),
    (ModelResultEventResult(tool_calls=[]), ALLOW, None, {"tool_calls": []}),
    (ModelResultEventResult(True, "no"), DENIED, "no", {}),
    (ToolCallEventResult(), ALLOW, None, {}),
    (ToolCallEventResult(True, "no"), DENIED, "no", {}),
    (ToolCallEventResult(ask=True, reason="sure?"), ASK, "sure?", {}),
    (ToolCallEventResult(block=True, ask=True, reason="no"), DENIED, "no", {}),
    (ToolCallEventResult(input={"a": 1}), ALLOW, None, {"input": {"a": 1}}),
    (ToolCallEventResult(input={}, ask=True), ASK, None, {"input": {}}),
    (ToolResultEventResult("c"), ALLOW, None, {"content": "c"}),
    (ToolResultEventResult(is_error=False), ALLOW, None, {"is_error": False}),
    (ToolResultEventResult(terminate=True), ALLOW, None, {"terminate": True}),
    (ToolResultEventResult(block=True, reason="no"), DENIED, "no", {}),
    (UserBashResult(True, "no"), DENIED, "no", {}),
    (UserBashResult(command="ls"), ALLOW, None, {"command": "ls"}),
    (UserBashResult(output="x"), ALLOW, None, {"output": "x"}),
    (NetworkRequestResult(), ALLOW, None, {}),
    (NetworkRequestResult(True, "no"), DENIED, "no", {}),
    (NetworkRequestResult(ask=True, reason="sure?"), ASK, "sure?", {}),
    (MessageReceiveResult(), ALLOW, None, {}),
    (MessageReceiveResult("transform", PARTS), ALLOW, None, {"parts": PARTS, "text": "one\ntwo"}),
    (MessageReceiveResult("transform", []), ALLOW, None, {"parts": [], "text": ""}),
    (MessageReceiveResult("reject"), DENIED, None, {}),
    (MessageReceiveResult("reject", reason="no"), DENIED, "no", {}),
]  # fmt: skip


@each_row(("result", "decision", "reason", "changes"), VERDICTS, ids=lambda v: str(v)[:40])
def test_a_result_says_what_it_means(result: Any, decision: Decision, reason: Any, changes: Any):
    ruling = result.verdict()
    assert (ruling.decision, ruling.reason, ruling.changes) == (decision, reason, changes)


def test_the_results_of_every_gate_and_patch_are_judged_above():
    judged = {type(result) for result, *_ in VERDICTS}
    assert judged == {spec.result for spec in CATALOG.values() if spec.reducer.folds}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (InputEventResult("stop"), "InputEventResult: unknown action 'stop'; use one of 'continue', "),  # type: ignore[arg-type]
        (InputEventResult("transform"), "InputEventResult: action 'transform' needs text="),
        (MessageReceiveResult("block"), "MessageReceiveResult: unknown action 'block'"),  # type: ignore[arg-type]
        (MessageReceiveResult("transform"), "MessageReceiveResult: action 'transform' needs parts="),
    ],
)
def test_a_wrong_action_is_refused(result: Any, message: str):
    with pytest.raises(ValueError, match=message):
        result.verdict()


async def test_what_was_done_with_an_input_can_be_told_from_the_verdict():
    hooks = Hooks()
    off = hooks.register(InputEvent, lambda event: InputEventResult("handled"))
    verdict = await hooks.call(InputEvent("ping"))
    assert verdict.denied
    assert verdict.supplied == {"action": "handled"}
    off()
    hooks.register(InputEvent, lambda event: InputEventResult("transform", text=event.text.upper()))
    verdict = await hooks.call(InputEvent("ping"))
    assert verdict.allowed
    assert (verdict.event.text, verdict.supplied) == ("PING", {})


async def test_new_parts_of_a_message_bring_their_text():
    hooks = Hooks()
    hooks.register(MessageReceiveEvent, lambda event: MessageReceiveResult("transform", PARTS))
    seen: list[str] = []
    hooks.register(MessageReceiveEvent, lambda event: seen.append(event.text))
    verdict = await hooks.call(MessageReceiveEvent(text="", parts=[AudioPart(b"...")]))
    assert verdict.event.parts == PARTS
    assert seen == ["one\ntwo"]


async def test_a_supplied_compaction_is_handed_to_the_caller():
    hooks = Hooks()
    hooks.register(
        SessionBeforeCompactEvent, lambda event: SessionBeforeCompactResult(compaction=COMPACTION)
    )
    verdict = await hooks.call(SessionBeforeCompactEvent())
    assert verdict.allowed
    assert verdict.supplied == {"compaction": COMPACTION}


async def test_patches_of_a_tool_result_accumulate():
    hooks = Hooks()
    hooks.register(ToolResultEvent, lambda event: ToolResultEventResult(content=event.content + "b"))
    hooks.register(ToolResultEvent, lambda event: ToolResultEventResult(content=event.content + "c"))
    hooks.register(ToolResultEvent, lambda event: ToolResultEventResult(is_error=True, terminate=True))
    verdict = await hooks.call(ToolResultEvent(content="a"))
    assert (verdict.event.content, verdict.event.is_error) == ("abc", True)
    assert verdict.supplied == {"terminate": True}


async def test_a_failed_guard_of_the_context_leaves_the_model_a_note_alone():
    hooks = Hooks()
    hooks.register(ContextEvent, lambda event: event.nothing, guard=True)
    verdict = await hooks.call(ContextEvent([{"role": "user", "content": "my secret"}]))
    (message,) = verdict.event.messages
    assert message["role"] == "user"
    assert message["content"].startswith("[withheld: ")
