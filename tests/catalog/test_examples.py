"""Every hook has an example, and every example works."""

import inspect
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import typer

from hookline import AsyncStreamEvents, Hooks, StreamEvent
from hookline.catalog import CATALOG
from hookline.catalog.examples import EXAMPLES, PLUGINS, example_source, implementations
from hookline.events import AudioPart, HookContext, ToolCall, ToolResultContent
from hookline.models import ModelRequest


async def receive(message: Any) -> None: ...


async def answer(request: Any) -> AsyncStreamEvents:
    async def words() -> AsyncIterator[StreamEvent]:
        yield StreamEvent("text", {"delta": "hello"})

    return AsyncStreamEvents(words())


async def run_tool() -> str:
    return "42"


INBOUND = {"content": "no, the other one", "thread_id": "7", "from": "ann@example.org"}
CALL = ToolCall("c1", "fs_read", {"path": "notes.md"}, "main", "thread:7")
TURN = {"message": INBOUND, "session_id": "thread:7", "state": {"user": "Ann", "language": "Latin"}}

ARGUMENTS: dict[str, dict[str, Any]] = {
    "resolve_session": {"message": INBOUND},
    "admit_message": {"session_id": "thread:7", "message": INBOUND, "turn": object()},
    "load_state": {"message": INBOUND, "session_id": "thread:7"},
    "build_prompt": TURN,
    "run_model_stream": {"prompt": "hello there", "session_id": "thread:7", "state": {}},
    "run_model": {"prompt": "hello there", "session_id": "thread:7", "state": {}},
    "save_state": {**TURN, "model_output": "hello"},
    "render_outbound": {**TURN, "model_output": "hello"},
    "dispatch_outbound": {"message": {"channel": "mail", "to": "ann@example.org", "content": "hello"}},
    "on_error": {
        "stage": "dispatch", "error": OSError("refused"), "message": INBOUND, "agent_id": "main"},
    "system_prompt": {"prompt": "hello", "state": {"language": "Latin"}},
    "provide_tape_store": {},
    "build_tape_context": {},
    "provide_channels": {"message_handler": receive},
    "register_cli_commands": {"app": typer.Typer()},
    "onboard_config": {"current_config": {"home": "."}},
    "hookline_startup": {"pm": Hooks().pm},
    "hookline_shutdown": {"pm": Hooks().pm},
    "register_tools": {},
    "register_skills": {},
    "register_stores": {},
    "register_packs": {},
    "register_commands": {},
    "resolve_approval": {"request": {"tool": "fs_read", "side_effects": "read"}},
    "authorize_action": {"action": {"kind": "tool.call", "namespace": "secrets", "arguments": {}}},
    "before_tool_call": {
        "call": CALL, "tool_name": "fs_read", "arguments": {"path": "notes.md"}, "agent_id": "main",
        "session_id": "thread:7"},
    "after_tool_call": {
        "call": CALL, "tool_name": "fs_read", "arguments": {"path": "notes.md"},
        "result": "x" * 30_000, "is_error": False, "agent_id": "main", "session_id": "thread:7"},
    "tool_result_persist": {
        "tool_name": "screenshot", "result": b"...", "agent_id": "main", "session_id": "thread:7"},
    "around_tool_call": {"call": CALL, "call_next": run_tool},
    "around_model_call": {
        "request": ModelRequest("large", [{"role": "user", "content": "hello"}]), "call_next": answer},
    "bootstrap_files": {"agent_id": "main"},
    "on_turn_start": {"agent_id": "main", "messages": [{"role": "user", "content": "hello"}]},
    "on_turn_end": {"agent_id": "main", "response": "hello"},
    "on_loop_warning": {
        "tool_name": "fs_read", "pattern": "notes.md", "count": 5, "agent_id": "main",
        "session_id": "thread:7"},
    "trigger_init": {"deps": {"emit": receive}},
    "trigger_start": {"deps": {"emit": receive}},
    "trigger_stop": {"deps": {"emit": receive}},
    "trigger_routes": {},
}  # fmt: skip

MESSAGE = {"role": "assistant", "content": "my card is 4111 1111 1111 1111"}
RESULT = ToolResultContent("c1", "shell", "line one\nline two", is_error=True)
ENTRIES = [{"id": str(n), "title": f"entry {n}"} for n in range(12)]
FAILURE = ValueError("broken")

PAYLOADS: dict[str, dict[str, Any]] = {
    "session_before_start": {"session_id": "thread:7", "agent_id": "main"},
    "session_start": {"reason": "new"},
    "session_before_switch": {"target_session_file": "other.db"},
    "session_before_fork": {"entry_id": "3"},
    "session_before_compact": {"branch_entries": ENTRIES},
    "session_compact": {"compaction_entry": ENTRIES[0]},
    "session_before_tree": {"preparation": {}},
    "session_tree": {"new_leaf_id": "4", "old_leaf_id": "9"},
    "session_shutdown": {"reason": "error"},
    "input": {"text": "ping", "source": "terminal"},
    "before_agent_start": {"prompt": "hello", "system_prompt": "You are kind."},
    "context": {"messages": [MESSAGE]},
    "agent_start": {},
    "agent_end": {"messages": [MESSAGE]},
    "agent_error": {"error": FAILURE},
    "agent_stop": {"messages": [MESSAGE], "response": "TODO: the rest"},
    "output": {"content": MESSAGE["content"]},
    "save_point": {},
    "settled": {},
    "turn_start": {"turn_index": 20, "timestamp": 1.0},
    "turn_end": {"turn_index": 20, "message": MESSAGE, "tool_results": [RESULT]},
    "message_start": {"message": {"role": "assistant", "content": ""}},
    "message_update": {"message": MESSAGE},
    "message_end": {"message": MESSAGE},
    "tool_execution_start": {"tool_call": CALL},
    "tool_execution_update": {"partial_tool_result": RESULT},
    "tool_execution_end": {"tool_result": RESULT},
    "tool_execution_failure": {"tool_name": "shell", "tool_call_id": "c1", "error": FAILURE},
    "tool_call": {"tool_call_id": "c1", "tool_name": "shell", "input": {"command": "rm notes.md"}},
    "tool_result": {"tool_call_id": "c1", "tool_name": "shell", "content": "sk-abcdefgh12"},
    "model_call": {"request_id": "r1", "model": "m-large", "messages": [MESSAGE]},
    "model_result": {
        "request_id": "r1", "model": "m-large", "content": "and so", "finish_reason": "length",
        "usage": {"total_tokens": 12}},
    "model_select": {"model": "m-large", "source": "command"},
    "thinking_level_select": {"level": "high", "previous_level": "low"},
    "subagent_start": {"task_id": "t1", "label": "reader", "task": "read everything"},
    "subagent_end": {"task_id": "t1", "label": "reader", "status": "failed"},
    "gateway:startup": {"channel_ids": ["telegram"]},
    "gateway:stop": {"channel_ids": ["telegram"]},
    "channel:connect": {"channel_id": "telegram"},
    "channel:disconnect": {"channel_id": "telegram"},
    "message:receive": {"channel_id": "telegram", "chat_id": "7", "parts": [AudioPart(b"...")]},
    "message:send": {"channel_id": "telegram", "response_text": "hello", "is_voice": True},
    "message:cancel": {"channel_id": "telegram", "chat_id": "7"},
    "gateway:error": {"channel_id": "telegram", "error": FAILURE},
    "notification": {"kind": "approval", "text": "May I?"},
    "user_bash": {"command": "ls", "cwd": "."},
    "resources_discover": {"cwd": "."},
    "network_request": {"host": "packages.example", "port": 443, "scheme": "https", "kind": "shell"},
    "retry_start": {"attempt": 1, "max_retries": 3},
    "retry_end": {"attempt": 1, "error": FAILURE},
}  # fmt: skip


@pytest.fixture
def example_hooks(tmp_path):
    """Every example plugin, registered."""
    hooks = Hooks()
    for plugin in PLUGINS:
        takes_home = "home" in inspect.signature(plugin).parameters
        hooks.add(plugin(tmp_path) if takes_home else plugin())
    return hooks


def test_every_hook_has_one_example():
    assert list(EXAMPLES) == list(CATALOG)
    shown = [name for plugin in PLUGINS for name, _ in implementations(plugin)]
    assert len(shown) == len(set(shown)) == len(CATALOG)


@pytest.mark.parametrize("name", CATALOG)
def test_an_example_is_short_and_stands_at_the_margin(name: str):
    source = example_source(name)
    assert source.startswith("@hookimpl")
    assert len(source.splitlines()) <= 12


async def test_every_example_runs_once_without_a_failure(example_hooks, caplog):
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    ctx = HookContext("thread:7", "main", notify=said.append)
    values: dict[str, Any] = {}
    did: dict[str, list[str]] = {}
    example_hooks.trace(lambda dispatch: did.update({dispatch.hook: [c.did for c in dispatch.calls]}))
    for name, spec in CATALOG.items():
        if spec.event:
            values[name] = await example_hooks.call(spec.event(**PAYLOADS[name]), ctx)
        else:
            assert set(ARGUMENTS[name]) == set(spec.params), name
            values[name] = await example_hooks.call(name, **ARGUMENTS[name])
    list(values["provide_tape_store"])  # runs on to where it closes the store

    assert list(did) == list(CATALOG)
    assert {name: calls for name, calls in did.items() if len(calls) != 1} == {}
    assert not {"raised", "timed out", "skipped"} & {calls[0] for calls in did.values()}
    assert [r.getMessage() for r in caplog.records if r.name == "hookline.hooks"] == []
    assert values["build_prompt"] == "Ann writes: no, the other one"
    assert values["authorize_action"] is False
    assert values["before_tool_call"]["path"].endswith("/notes.md")
    assert values["tool_call"].asked
    assert values["tool_result"].event.content == "[key]"
    assert values["output"].denied
    assert values["message:receive"].event.text == "(3 bytes)"
    assert values["session_before_compact"].supplied["compaction"].summary == "entry 0\nentry 1"
    assert "pong" in said
