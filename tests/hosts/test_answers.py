"""Payload, verdict, answer: what each host is told, for each of its events."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hookline.bridges.hosts.desk import HookDesk
from hookline.bridges.hosts.formats import HOSTS, format_of
from hookline.bridges.hosts.moment import GATES, HookOutput
from hookline.bridges.hosts.tools import HostToolNames
from tests.tables import each_row

GUARD = """
import os, time
from pathlib import Path

SEEN = Path(__file__).with_name("seen.log")


def note(event):
    with SEEN.open("a") as file:
        file.write(event.type + "\\n")


def call(event):
    note(event)
    command = str(event.input.get("command", event.input))
    if "sudo" in command:
        return event.deny("not as root")
    if "ask" in command:
        return event.ask("really?")
    if "crash" in command:
        raise ValueError("broken guard")
    if "rewrite" in command:
        return event.replace({**event.input, "command": "echo changed"})


def result(event):
    note(event)
    if "SECRET" in str(event.content):
        return event.deny("a secret")
    if "PHONE" in str(event.content):
        return event.replace(content=str(event.content).replace("PHONE", "[phone]"))


def prompt(event):
    note(event)
    if "forbidden" in event.text:
        return event.deny("not that")
    if "password" in event.text:
        return event.replace(event.text.replace("password", "****"))
    if "today" in event.text:
        return event.replace(event.text + " (Monday)")


def answer(event):
    note(event)
    if "SECRET" in event.content:
        return event.deny("a secret")
    if "PHONE" in event.content:
        return event.replace(content=event.content.replace("PHONE", "[phone]"))


def request(event):
    note(event)
    if any("forbidden" in message["content"] for message in event.messages):
        return event.deny("not that")


def stop(event):
    note(event)
    if "checked" not in event.response:
        return event.deny("check first")


def start(event):
    note(event)
    return event.add("be kind")


def compact(event):
    note(event)
    if event.custom_instructions == "forget":
        return event.deny("keep it")


hooks = [
    ("tool_call", call), ("tool_result", result), ("input", prompt), ("agent_stop", stop),
    ("model_result", answer), ("model_call", request), ("session_start", start),
    ("session_before_compact", compact), ("session_compact", note), ("notification", note),
    ("session_shutdown", note), ("subagent_start", note), ("subagent_end", note),
]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "profiles" / "default" / "hooks"
    folder.mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    (tmp_path / "work").mkdir()
    (folder / "guard.py").write_text(GUARD)
    return tmp_path / "home"


def seen(home: Path) -> list[str]:
    return (home / "profiles" / "default" / "hooks" / "seen.log").read_text().split()


def answers(home: Path, host: str, payloads: Iterable[dict[str, Any] | bytes]) -> list[HookOutput]:
    """The answers of one desk, and what a desk of its own says to each: nothing may be in memory."""

    async def together() -> list[HookOutput]:
        desk = HookDesk(home)
        try:
            return [await desk.answer(host, raw(payload), 20) for payload in payloads]
        finally:
            await desk.close()

    def raw(payload: dict[str, Any] | bytes) -> bytes:
        if isinstance(payload, bytes):
            return payload
        return json.dumps({"cwd": str(home.parent / "work"), **payload}).encode()

    return asyncio.run(together())


def claude(event: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", "transcript_path": "t", "hook_event_name": event, **fields}


def bash(event: str, command: str, number: str, **fields: Any) -> dict[str, Any]:
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": number}
    return claude(event, **call, **fields)


def out(stdout: str) -> dict[str, Any] | None:
    return {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False}


def special(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def rule(decision: str, reason: str) -> dict[str, Any]:
    return {"permissionDecision": decision, "permissionDecisionReason": reason}


NOTHING: dict[str, Any] = {}
CHANGED = {"command": "echo changed"}
STARTED = [
    (claude("SessionStart", source="startup"), special("SessionStart", additionalContext="be kind")),
    (
        claude("UserPromptSubmit", prompt="forbidden"),
        {"decision": "block", "reason": "not that"},
    ),
    (
        claude("UserPromptSubmit", prompt="what is today"),
        special("UserPromptSubmit", additionalContext="(Monday)"),
    ),
    (claude("UserPromptSubmit", prompt="hello"), NOTHING),
    (bash("PreToolUse", "ls", "t1"), NOTHING),
    (bash("PreToolUse", "sudo ls", "t2"), special("PreToolUse", **rule("deny", "not as root"))),
    (bash("PermissionRequest", "ls", "t1"), NOTHING),
    (
        bash("PermissionRequest", "sudo id", ""),
        special("PermissionRequest", decision={"behavior": "deny", "message": "not as root"}),
    ),
]
ENDED = [
    (claude("SubagentStart", agent_id="a1", agent_type="Explore"), NOTHING),
    (
        claude("SubagentStop", agent_id="a1", last_assistant_message="hm", stop_hook_active=False),
        {"decision": "block", "reason": "check first"},
    ),
    (claude("SubagentStop", agent_id="a1", last_assistant_message="checked"), NOTHING),
    (
        claude("Stop", last_assistant_message="done", stop_hook_active=False),
        {"decision": "block", "reason": "check first"},
    ),
    (claude("Stop", last_assistant_message="checked", stop_hook_active=True), NOTHING),
    (claude("PreCompact", trigger="auto", custom_instructions=""), NOTHING),
    (claude("PostCompact", trigger="auto"), NOTHING),
    (claude("SessionEnd", reason="exit"), NOTHING),
]
CLAUDE = [
    *STARTED,
    (
        bash("PreToolUse", "rewrite", "t3"),
        special("PreToolUse", updatedInput={"command": "echo changed"}),
    ),
    (bash("PreToolUse", "ask me", "t4"), special("PreToolUse", **rule("ask", "really?"))),
    (
        bash("PostToolUse", "ls", "t1", tool_response=out("a SECRET")),
        special("PostToolUse", updatedToolOutput=out("[withheld: a secret]")),
    ),
    (
        bash("PostToolUse", "ask me", "t4", tool_response=out("call PHONE")),
        special("PostToolUse", updatedToolOutput=out("call [phone]")),
    ),
    (bash("PostToolUse", "never seen", "t9", tool_response=out("fine")), NOTHING),
    (
        bash("PostToolUseFailure", "rewrite", "t3", error="a SECRET"),
        special("PostToolUseFailure", additionalContext="[withheld: a secret]"),
    ),
    (claude("Notification", message="look", notification_type="idle_prompt"), NOTHING),
    *ENDED,
]
CODEX = [
    *STARTED,
    (
        bash("PreToolUse", "rewrite", "t3"),
        special("PreToolUse", permissionDecision="allow", updatedInput=CHANGED),
    ),
    (
        bash("PostToolUse", "ls", "t1", tool_response="a SECRET"),
        {"decision": "block", "reason": "[withheld: a secret]"},
    ),
    (
        bash("PostToolUse", "rewrite", "t3", tool_response={"output": "PHONE"}),
        {"decision": "block", "reason": "[phone]"},
    ),
    (claude("PreCompact", trigger="auto", custom_instructions="forget"),
     {"continue": False, "stopReason": "keep it"}),
    *ENDED,
]  # fmt: skip


def gemini(event: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", "hook_event_name": event, "timestamp": "now", **fields}


def run_shell(event: str, command: str, **fields: Any) -> dict[str, Any]:
    return gemini(event, tool_name="run_shell_command", tool_input={"command": command}, **fields)


def model(event: str, said: str, answer: str = "", end: str | None = "STOP") -> dict[str, Any]:
    request = {"model": "g", "messages": [{"role": "user", "content": said}], "config": {}}
    content = {"content": {"role": "model", "parts": [answer]}, "finishReason": end}
    response = {"text": answer, "candidates": [content]}
    return gemini(event, llm_request=request, **({"llm_response": response} if answer else {}))


def response(text: str) -> dict[str, Any]:
    content = {"content": {"role": "model", "parts": [text]}, "finishReason": "STOP"}
    return {"text": text, "candidates": [content]}


def tool_said(text: str) -> dict[str, Any]:
    return {"llmContent": text, "returnDisplay": text}


GEMINI = [
    (gemini("SessionStart", source="startup"), special("SessionStart", additionalContext="be kind")),
    (gemini("BeforeAgent", prompt="forbidden"), {"decision": "deny", "reason": "not that"}),
    (gemini("BeforeAgent", prompt="today"), special("BeforeAgent", additionalContext="(Monday)")),
    (gemini("BeforeAgent", prompt="hello"), NOTHING),
    (model("BeforeModel", "forbidden"), {"decision": "deny", "reason": "not that"}),
    (model("BeforeModel", "hello"), NOTHING),
    (model("AfterModel", "hello", "fine"), NOTHING),
    (model("BeforeModel", "hello"), NOTHING),
    (
        model("AfterModel", "hello", "a PHONE"),
        special("AfterModel", llm_response=response("a [phone]")),
    ),
    (model("AfterModel", "hello", "a SE", None), NOTHING),
    (model("AfterModel", "hello", "CRET"), {"decision": "deny", "reason": "a secret"}),
    (run_shell("BeforeTool", "ls"), NOTHING),
    (run_shell("BeforeTool", "sudo ls"), {"decision": "deny", "reason": "not as root"}),
    (run_shell("BeforeTool", "rewrite"), special("BeforeTool", tool_input=CHANGED)),
    (
        run_shell("BeforeTool", "ask"),
        {"decision": "ask", "reason": "really?", "systemMessage": "really?"},
    ),
    (run_shell("AfterTool", "ls", tool_response=tool_said("fine")), NOTHING),
    (
        run_shell("AfterTool", "echo changed", tool_response=tool_said("a SECRET")),
        {"decision": "deny", "reason": "[withheld: a secret]"},
    ),
    (gemini("PreCompress", trigger="auto"), NOTHING),
    (gemini("Notification", notification_type="ToolPermission", message="look", details={}), NOTHING),
    (
        gemini("AfterAgent", prompt="hello", prompt_response="done", stop_hook_active=False),
        {"decision": "deny", "reason": "check first"},
    ),
    (gemini("AfterAgent", prompt="hello", prompt_response="checked", stop_hook_active=True), NOTHING),
    (gemini("SessionEnd", reason="exit"), NOTHING),
]


def scripted(event: str, **fields: Any) -> dict[str, Any]:
    return {"event": event, "session": "s1", **fields}


def run(event: str, command: str, number: str, **fields: Any) -> dict[str, Any]:
    return scripted(event, tool="bash", input={"command": command}, id=number, **fields)


SCRIPTED = [
    (scripted("session_start", text="startup"), {"context": "be kind"}),
    (scripted("prompt", text="forbidden"), {"deny": "not that"}),
    (scripted("prompt", text="my password"), {"text": "my ****"}),
    (run("tool_call", "ls", "t1"), NOTHING),
    (run("tool_call", "sudo ls", "t2"), {"deny": "not as root"}),
    (run("tool_call", "rewrite", "t3"), {"input": {"command": "echo changed"}}),
    (run("tool_result", "ls", "t1", result="a SECRET"), {"text": "[withheld: a secret]"}),
    (run("tool_result", "rewrite", "t3", result="fine"), NOTHING),
    (scripted("model_answer", text="a PHONE"), {"text": "a [phone]"}),
    (scripted("model_answer", text="a SECRET"), {"deny": "a secret"}),
    (scripted("stop", text="done"), {"deny": "check first"}),
    (scripted("stop", text="checked"), NOTHING),
    (scripted("compact", text="forget"), {"deny": "keep it"}),
    (scripted("compacted"), NOTHING),
    (scripted("notification", text="look"), NOTHING),
    (scripted("session_end"), NOTHING),
]
TABLES = {"claude-code": CLAUDE, "codex": CODEX, "gemini": GEMINI, "opencode": SCRIPTED, "pi": SCRIPTED}


@pytest.mark.parametrize("host", HOSTS)
def test_each_event_is_answered_in_the_words_of_the_host(host: str, home: Path):
    table = TABLES[host]
    told = answers(home, host, [payload for payload, _ in table])
    for (payload, wanted), output in zip(table, told, strict=True):
        if host == "opencode" and payload["event"] == "stop":
            wanted = NOTHING  # it has stopped already
        if host in ("opencode", "pi"):
            wanted = {"judged": payload["event"], **wanted}
        assert output.code == 0, (payload, output)
        assert json.loads(output.stdout or "{}") == wanted, (payload, output)
    carried = {payload.get("hook_event_name") or payload["event"] for payload, _ in table}
    known = set(format_of(host).events)
    left = {"permission", "subagent_start", "subagent_stop", "model_request"}
    assert known - carried <= (left if host in ("opencode", "pi") else set()), "events without a row"


def test_claude_code_is_kept_from_compacting_by_its_exit_code(home: Path):
    payload = claude("PreCompact", trigger="manual", custom_instructions="forget")
    [output] = answers(home, "claude-code", [payload])
    assert (output.code, output.stderr) == (2, "keep it\n")


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
def test_a_prompt_that_the_host_cannot_rewrite_is_blocked(host: str, home: Path):
    event = "BeforeAgent" if host == "gemini" else "UserPromptSubmit"
    [output] = answers(home, host, [claude(event, prompt="my password")])
    answer = json.loads(output.stdout)
    assert answer["decision"] in ("block", "deny")
    assert answer["reason"].endswith("Send this instead:\n\nmy ****")


BROKEN: list[bytes | dict[str, Any]] = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe{}",
    b'{"hook_event_name": "\xff"}',
    b'{"hook_event_name": "PreToolUse"}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    {"hook_event_name": "PreToolUse", "session_id": "s"},
    claude("PreToolUse", tool_name="Bash"),
    claude("PreToolUse", tool_name="Bash", tool_input=[]),
    claude("PreToolUse", tool_name="Bash", tool_input="ls"),
    claude("PreToolUse", tool_name="", tool_input={}),
    claude("PreToolUse", tool_name=7, tool_input={}),
    claude("PreToolUse", tool_name="Bash", tool_input={}, cwd="relative"),
    claude("PreToolUse", tool_name="Bash", tool_input={}, cwd="/\0"),
    claude("PreToolUse", tool_name="Bash", tool_input={}, cwd=7),
    claude("PreToolUse", tool_name="Bash", tool_input={}, session_id=None),
    claude("PreToolUse", tool_name="Read", tool_input={"file_path": "a", "offset": "x", "limit": 3}),
    claude("UserPromptSubmit", prompt=["hi"]),
    claude("PreToolUse ", tool_name="Bash", tool_input={}),
    claude("Unheard", tool_name="Bash", tool_input={}),
]


def test_a_broken_payload_is_denied_with_its_reason(home: Path):
    for payload, output in zip(BROKEN, answers(home, "claude-code", BROKEN), strict=True):
        assert output.code == 2, (str(payload)[:80], output)
        assert output.stderr.startswith("hookline: "), output
        assert len(output.stderr) < 600, output
        assert "Traceback" not in output.stderr
        assert output.stdout == ""


def test_large_and_strange_payloads_are_judged(home: Path):
    big = "x" * 10_000_000
    strange = "\ud800 \0 ../../.. \u202e" * 10
    payloads = [
        bash("PreToolUse", f"sudo {big}", "t1"),
        bash("PostToolUse", "ls", "t2", tool_response=out(big)),
        {**bash("PreToolUse", f"sudo {strange}", "t3"), "session_id": "../../../etc/passwd"},
        {**bash("PreToolUse", "sudo", strange), "session_id": "s" * 5000},
    ]
    told = answers(home, "claude-code", payloads)
    assert [output.code for output in told] == [0, 0, 0, 0] or told[0].code == 2
    assert all("deny" in output.stdout or output.code == 2 for output in (told[0], told[2], told[3]))
    assert told[1].stdout == "", "a long result stays as it is"
    assert not [path for path in home.parent.rglob("*") if "passwd" in path.name]


def test_the_failure_of_a_guard_denies(home: Path):
    [output] = answers(home, "claude-code", [bash("PreToolUse", "crash", "t1")])
    answer = json.loads(output.stdout)["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"


def test_a_hook_file_that_cannot_be_loaded_denies_every_gate(home: Path):
    (home / "profiles" / "default" / "hooks" / "broken.py").write_text("def")
    payloads = [payload for payload, _ in CLAUDE]
    form = format_of("claude-code")
    for payload, output in zip(payloads, answers(home, "claude-code", payloads), strict=True):
        kind = form.events[payload["hook_event_name"]]
        assert output.code == (2 if kind in GATES else 1), payload
        assert "broken.py" in output.stderr


def test_a_judgement_that_takes_too_long_denies(home: Path):
    (home / "profiles" / "default" / "hooks" / "slow.py").write_text(
        "import asyncio\n\nasync def slow(event):\n    await asyncio.sleep(60)\n\n"
        'hooks = [("tool_call", slow)]\n'
    )

    async def judged() -> HookOutput:
        desk = HookDesk(home)
        try:
            payload = {**bash("PreToolUse", "ls", "t1"), "cwd": str(home.parent)}
            await desk.answer("claude-code", json.dumps({**payload, **claude("Stop")}).encode(), 20)
            return await desk.answer("claude-code", json.dumps(payload).encode(), 1)
        finally:
            await desk.close()

    output = asyncio.run(judged())
    assert output.code == 2
    assert "no answer within 1 s" in output.stderr


def test_an_unknown_host_is_denied(home: Path):
    [output] = answers(home, "claude", [{}])
    assert output.code == 2
    assert "did you mean 'claude-code'" in output.stderr


CALLS = [
    ("claude-code", "Bash", {"command": "ls", "timeout": 2000},
     ("shell", {"command": "ls", "timeout": 2.0})),
    ("claude-code", "Read", {"file_path": "/w/a", "offset": 2, "limit": 3},
     ("read_file", {"path": "a", "start": 2, "end": 4})),
    ("claude-code", "mcp__x__y", {"timeout": 5}, ("mcp__x__y", {"timeout": 5})),
    ("codex", "apply_patch", {"command": "*** Begin"}, ("apply_patch", {"command": "*** Begin"})),
    ("gemini", "read_file", {"absolute_path": "/w/a"}, ("read_file", {"path": "a"})),
    ("gemini", "replace", {"file_path": "/w/a", "old_string": "x", "new_string": "y"},
     ("edit_file", {"path": "a", "edits": [{"old": "x", "new": "y"}]})),
    ("opencode", "edit", {"filePath": "/w/a", "oldString": "x", "newString": "y"},
     ("edit_file", {"path": "a", "edits": [{"old": "x", "new": "y"}]})),
    ("opencode", "read", {"filePath": "/elsewhere/a"}, ("read_file", {"path": "/elsewhere/a"})),
    ("pi", "edit", {"path": "/w/a", "edits": [{"oldText": "x", "newText": "y"}]},
     ("edit_file", {"path": "a", "edits": [{"old": "x", "new": "y"}]})),
    ("pi", "bash", {"command": "ls", "timeout": 2}, ("shell", {"command": "ls", "timeout": 2.0})),
]  # fmt: skip


@each_row("host, name, given, ours", CALLS)
def test_tools_of_hosts_have_our_names_and_get_their_own_back(
    host: str, name: str, given: dict[str, Any], ours: tuple[str, dict[str, Any]]
):
    names, work = HostToolNames(host), Path("/w")
    assert names.ours(name, given, work) == ours
    assert names.theirs(name, given, ours[1], work) == given, "what is not changed stays"
    changed = {key: "new" if key in ("command", "path") else value for key, value in ours[1].items()}
    text = json.dumps(names.theirs(name, given, changed, work))
    assert "new" in text or changed == ours[1]
    assert names.ours(name, names.theirs(name, given, changed, work), work) == (ours[0], changed)
