"""A Messages endpoint on loopback that plays a script and is as strict as the API.

An answer is text, a `(tool, arguments)` pair, a list of such pairs, a `Thought`, a status with an error
body, or a function of the request's body that returns one of these. The last answer is repeated.
"""

import json
from dataclasses import dataclass
from typing import Any

from .openai_server import OpenAIServer

KNOWN = {
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "thinking",
    "temperature", "top_p", "top_k", "stop_sequences", "metadata",
}  # fmt: skip
BLOCKS = {
    "user": {"text", "image", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


@dataclass
class Thought:
    """An answer after some thinking."""

    thinking: str
    answer: Any


class AnthropicServer(OpenAIServer):
    """The endpoint; `requests` has the bodies that it was sent."""

    @property
    def environment(self) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": self.url.removesuffix("/v1"), "ANTHROPIC_API_KEY": self.key}

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, bytes]:
        headers = {name.lower(): value for name, value in headers.items()}
        if path != "/v1/messages":
            return refused(404, "not_found_error", "Not Found")
        if headers.get("x-api-key") != self.key:
            return refused(401, "authentication_error", "invalid x-api-key")
        if headers.get("anthropic-version") != "2023-06-01":
            return refused(400, "invalid_request_error", "anthropic-version: header is required")
        if wrong := problem(body):
            return refused(400, "invalid_request_error", wrong)
        self.requests.append(body)
        chosen = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        chosen = chosen(body) if callable(chosen) else chosen
        if isinstance(chosen, tuple) and isinstance(chosen[0], int):
            return refused(*chosen)
        if isinstance(chosen, bytes):
            return 200, chosen
        return 200, events(chosen, body)


def refused(status: int, kind: str, message: str) -> tuple[int, bytes]:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return status, json.dumps(body).encode()


def problem(body: dict[str, Any]) -> str:
    """What the API would not accept of a request."""
    if unknown := body.keys() - KNOWN:
        return f"{sorted(unknown)[0]}: Extra inputs are not permitted"
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        return "max_tokens: Field required"
    if not body["messages"] or body["messages"][0]["role"] != "user":
        return "messages: first message must use the user role"
    thinking = body.get("thinking")
    if thinking and not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        return "max_tokens must be greater than thinking.budget_tokens"
    choice = body.get("tool_choice")
    if choice and not body.get("tools"):
        return "tool_choice may only be specified while providing tools"
    if choice and thinking and choice["type"] in ("any", "tool"):
        return "Thinking may not be enabled when tool_choice forces tool use"
    if thinking and body.get("temperature", 1) != 1:
        return "temperature may only be set to 1 when thinking is enabled"
    for tool in body.get("tools", ()):
        if tool.keys() - {"name", "description", "input_schema", "cache_control"}:
            return "tools: Extra inputs are not permitted"
        if tool["input_schema"].get("type") != "object":
            return "tools.0.input_schema.type: Field required"
    marked = json.dumps(body).count('"cache_control"')
    if marked > 4:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {marked}."
    return wrong_message(body["messages"])


def wrong_message(messages: list[dict[str, Any]]) -> str:
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        if message.keys() != {"role", "content"} or message["role"] not in BLOCKS:
            return f"messages.{number}: Unexpected role or field"
        content = message["content"]
        if not content:
            return f"messages.{number}: user messages must have non-empty content"
        for block in content:
            if block["type"] not in BLOCKS[message["role"]]:
                return f"messages.{number}: unexpected block {block['type']}"
            if block["type"] == "text" and not block["text"].strip():
                return "messages: text content blocks must be non-empty"
            if block["type"] == "thinking" and not block["signature"]:
                return f"messages.{number}: Invalid `signature` in `thinking` block"
            if block["type"] == "thinking" and "cache_control" in block:
                return f"messages.{number}: thinking blocks cannot have cache_control"
        answered = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
        if open_calls and sorted(answered) != sorted(open_calls):
            return f"messages.{number}: `tool_use` ids were found without `tool_result` blocks"
        if answered and not open_calls:
            return f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks"
        open_calls = [b["id"] for b in content if b["type"] == "tool_use"]
    return ""


def events(answer: Any, body: dict[str, Any]) -> bytes:
    """An answer as the events of a stream."""
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if isinstance(answer, Thought):
        deltas = [{"type": "thinking_delta", "thinking": answer.thinking}]
        deltas.append({"type": "signature_delta", "signature": "c2lnbmVk"})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
        answer = answer.answer
    calls = [answer] if isinstance(answer, tuple) else answer if isinstance(answer, list) else []
    if isinstance(answer, str):
        pieces = [answer[i : i + 8] for i in range(0, len(answer), 8)]
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for number, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        deltas = [{"type": "input_json_delta", "partial_json": text[:5]}]
        deltas.append({"type": "input_json_delta", "partial_json": text[5:]})
        blocks.append(
            ({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}, deltas)
        )
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 2}
    start = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1},
    }  # fmt: skip
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, (block, deltas) in enumerate(blocks):
        sent.append({"type": "content_block_start", "index": index, "content_block": block})
        sent += [{"type": "content_block_delta", "index": index, "delta": each} for each in deltas]
        sent.append({"type": "content_block_stop", "index": index})
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": reason, "usage": {"output_tokens": 5}})
    sent.append({"type": "message_stop"})
    lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in sent)
    return "".join(lines).encode()
