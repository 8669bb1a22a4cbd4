"""Hookline's hooks in agents of the Claude Agent SDK.

    from hookline.bridges.claude_agent_sdk import hookline

    async for message in hookline([no_sudo]).query(prompt="Tidy up.", options=options): ...
    async with hookline([no_sudo]).client(options) as client: ...     # a conversation

Carried are the prompt (`input`), tool calls and their results, `agent_stop`, subagents, compaction and
the answer (`output`). Partial messages are left out if handlers judge the answer. The SDK runs Claude
Code as a process of its own, which calls the model: hooks around model calls are out of reach. Tools of
an MCP server in this process have the names that the program gave them; other tools have those of
Claude Code (`Bash`, `mcp__github__search`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    TextBlock,
)

from hookline.errors import BridgeError

from .bridge import Bridge
from .reports import HostCall, ToolAnswer
from .run import BridgeRun, judges

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

NO_MODEL = "Claude Code calls the model in a process of its own"
UNREACHABLE: Final[Mapping[str, str]] = {
    "context": NO_MODEL, "around_model_call": NO_MODEL, "model_call": NO_MODEL,
    "model_result": NO_MODEL,
}  # fmt: skip
CARRIED: Final = ("subagent_start", "subagent_end", "session_before_compact")
WAIT = 24 * 3600.0
"""Seconds that Claude Code waits for a gate, which may ask a person."""

TESTED: Final = {"claude-agent-sdk": ("0.2.180", "0.3")}
"""The versions of the host that the suite was run with."""


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineClaude:
    """Runs Claude Code with Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineClaude(
        Bridge(
            hooks,
            host="claude-agent-sdk",
            tested=TESTED,
            unreachable=UNREACHABLE,
            carried=CARRIED,
            **options,
        )
    )


class HooklineClaude:
    """Makes queries and clients of the SDK that are inside the gates."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    def client(self, options: ClaudeAgentOptions | None = None) -> HooklineClient:
        """A client for a conversation; see `claude_agent_sdk.ClaudeSDKClient`."""
        return HooklineClient(self.bridge, options or ClaudeAgentOptions())

    async def query(
        self, *, prompt: str, options: ClaudeAgentOptions | None = None
    ) -> AsyncIterator[Any]:
        """Ask once; see `claude_agent_sdk.query`."""
        async with self.client(options) as client:
            await client.query(prompt)
            async for message in client.receive_response():
                yield message


class HooklineClient(ClaudeSDKClient):
    """A client of the SDK that reports to a bridge, and does what the bridge says."""

    def __init__(self, bridge: Bridge, options: ClaudeAgentOptions) -> None:
        self.bridge = bridge
        self._run: BridgeRun | None = None
        self._calls: dict[str, HostCall] = {}
        servers = options.mcp_servers if isinstance(options.mcp_servers, dict) else {}
        kinds = {name: server.get("type") for name, server in servers.items()}
        self._own = tuple(f"mcp__{name}__" for name, kind in kinds.items() if kind == "sdk")
        self._may_use = options.can_use_tool
        changed = {"hooks": self._hooks(options)}
        if self._may_use is not None:
            changed["can_use_tool"] = self._permit
        super().__init__(replace(options, **changed))

    def _hooks(self, options: ClaudeAgentOptions) -> dict[Any, list[HookMatcher]]:
        """Our hooks, before those that the options have. A gate that fails blocks."""
        ours: dict[Any, Any] = {
            "UserPromptSubmit": self._prompted,
            "PreToolUse": self._admit, "PostToolUse": self._finish, "PostToolUseFailure": self._failed,
            "Stop": self._stop, "PreCompact": self._compact,
            "SubagentStart": self._subagent, "SubagentStop": self._subagent,
        }  # fmt: skip
        merged = dict(options.hooks or {})
        for name, hook in ours.items():
            matcher = HookMatcher(hooks=[hook], timeout=WAIT, on_failure="block")
            merged[name] = [matcher, *merged.get(name, ())]
        return merged

    async def query(self, prompt: Any, session_id: str = "default") -> None:
        """Send a prompt. Raises `Blocked` if a handler blocks it."""
        if not isinstance(prompt, str):
            raise BridgeError("prompts must be text: messages in a stream cannot be judged")
        self._run = await self.bridge.start(prompt)
        await super().query(self._run.prompt, session_id)

    async def disconnect(self) -> None:
        """Leave Claude Code; a run that gave no answer is cancelled."""
        run, self._run = self._run, None
        if run is not None:
            await run.fail(asyncio.CancelledError())
        await super().disconnect()

    async def receive_messages(self) -> AsyncIterator[Any]:
        """The messages; a text that may be the answer is held back until `output` has judged it."""
        held: list[AssistantMessage] = []
        async for message in super().receive_messages():
            if isinstance(message, ResultMessage):
                for each in await self._judged(message, held):
                    yield each
                held.clear()
                continue
            if isinstance(message, StreamEvent) and judges(self.bridge.hooks):
                continue
            if isinstance(message, AssistantMessage) and is_text(message):
                held.append(message)
                continue
            for each in held:
                yield each
            held.clear()
            yield message

    async def _judged(self, result: ResultMessage, held: list[AssistantMessage]) -> list[Any]:
        """The result and the texts before it, as handlers of `output` left them."""
        run, self._run = self._run, None
        if run is None or result.is_error:
            if run is not None:
                await run.fail(RuntimeError(result.result or result.subtype))
            return [*held, result]
        said = result.result or ""
        text = await run.end(said)
        if text == said:
            return [*held, result]
        last = [replace(message, content=[TextBlock(text)]) for message in held[-1:]]
        return [*last, replace(result, result=text, structured_output=None)]

    async def _current(self) -> BridgeRun:
        """The run; a turn that Claude Code starts by itself gets one without a prompt."""
        if self._run is None:
            self._run = await self.bridge.start("")
        return self._run

    def _name(self, name: str) -> str:
        own = next((prefix for prefix in self._own if name.startswith(prefix)), "")
        return name.removeprefix(own)

    async def _prompted(self, given: Any, _: Any, __: Any) -> Any:
        """Block a prompt that did not come through `query`; add to the system prompt."""
        if self._run is not None and given["prompt"] == self._run.prompt:
            if not self._run.system:
                return {}
            added = {"hookEventName": "UserPromptSubmit", "additionalContext": self._run.system}
            return {"hookSpecificOutput": added}
        return {"decision": "block", "reason": "this prompt has not passed the gates"}

    async def _admit(self, given: Any, call_id: Any, _: Any) -> Any:
        """Pass a tool call through its gates."""
        run = await self._current()
        call = await run.admit(self._name(given["tool_name"]), given["tool_input"], call_id)
        self._calls[call.id] = call
        if call.refusal is not None:
            await run.finish(self._calls.pop(call.id))
            return pre_tool(permissionDecision="deny", permissionDecisionReason=call.refusal)
        if call.arguments != given["tool_input"]:
            return pre_tool(updatedInput=call.arguments)
        return {}

    async def _permit(self, name: str, given: dict[str, Any], context: Any) -> Any:
        """Ask the options' `can_use_tool`; arguments that it changes pass through the gates again."""
        assert self._may_use is not None
        answer = await self._may_use(name, given, context)
        changed = getattr(answer, "updated_input", None)
        if changed is None or changed == given:
            return answer
        call = await (await self._current()).admit(self._name(name), changed, context.tool_use_id)
        if call.refusal is not None:
            return PermissionResultDeny(message=call.refusal)
        self._calls[call.id] = call
        return replace(answer, updated_input=call.arguments)

    async def _finish(self, given: Any, call_id: Any, _: Any) -> Any:
        """Pass the result of a tool call through its gates."""
        run, response = await self._current(), given["tool_response"]
        shown = text_of(response)
        value = await run.finish(self._calls.pop(call_id), shown)
        if not isinstance(value, ToolAnswer) or str(value) == shown:
            return {}
        changed = with_text(response, str(value))
        if changed is None:  # Claude Code would keep the result that it was to replace
            return {"continue_": False, "stopReason": str(value)}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": changed}}

    async def _failed(self, given: Any, call_id: Any, _: Any) -> Any:
        """Show the error of a tool to the hooks; Claude Code cannot change it, and is stopped."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return {}
        error = RuntimeError(given["error"])
        value = await (await self._current()).finish(call, error=error)
        if given["error"] not in value:
            await self.interrupt()
        return {}

    async def _stop(self, given: Any, _: Any, __: Any) -> Any:
        """Let `agent_stop` judge the answer."""
        run = await self._current()
        refused = await run.refuses_to_stop(given.get("last_assistant_message") or "")
        return {} if refused is None else {"decision": "block", "reason": refused}

    async def _compact(self, given: Any, _: Any, __: Any) -> Any:
        """Ask whether the conversation may be summarised."""
        run = await self._current()
        refused = await run.refuses_to_compact(given.get("custom_instructions"))
        return {} if refused is None else {"decision": "block", "reason": refused}

    async def _subagent(self, given: Any, _: Any, __: Any) -> Any:
        """Report a subagent."""
        run, label = await self._current(), given.get("agent_type", "")
        if given["hook_event_name"] == "SubagentStart":
            await run.subagent_starts(given["agent_id"], label)
        else:
            result = given.get("last_assistant_message")
            await run.subagent_ends(given["agent_id"], label, "completed", result)
        return {}


def pre_tool(**decided: Any) -> dict[str, Any]:
    """The answer to `PreToolUse`."""
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decided}}


def is_text(message: AssistantMessage) -> bool:
    """Whether a message of the main agent may be its answer."""
    return message.parent_tool_use_id is None and all(isinstance(b, TextBlock) for b in message.content)


def text_of(response: Any) -> str:
    """A tool's result as handlers read it: its text, or JSON if it has other parts."""
    if isinstance(response, str):
        return response
    if isinstance(response, list) and all(b.get("type") == "text" for b in response):
        return "\n".join(block["text"] for block in response)
    if isinstance(response, dict) and "stdout" in response and not response.get("stderr"):
        return str(response["stdout"])
    return json.dumps(response)


def with_text(response: Any, text: str) -> Any:
    """A result in the shape of the tool's own with another text; None if that cannot be made."""
    if isinstance(response, str):
        return text
    if isinstance(response, list) and response:
        return [{"type": "text", "text": text}]
    if isinstance(response, dict) and "stdout" in response:
        return {**response, "stdout": text, "stderr": ""}
    try:
        changed = json.loads(text)
    except ValueError:
        return None
    return changed if isinstance(changed, dict) and changed.keys() == response.keys() else None
