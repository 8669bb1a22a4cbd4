"""A Messages endpoint on loopback that plays a script and is as strict as the API.

Answers are those of `openai_server`. Requests and answers are checked against the types of Anthropic's
own package, and by rules that these do not express.
"""

import json
from functools import cache
from typing import Any

from .openai_server import OpenAIServer, Thought
from .wire_types import mismatch


@cache
def event_type() -> Any:
    from anthropic.types import RawMessageStreamEvent
    from pydantic import TypeAdapter

    return TypeAdapter(RawMessageStreamEvent)


BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}
BUDGETED = ("claude-3", "claude-opus-4-1", "claude-sonnet-4-5")


class AnthropicServer(OpenAIServer):
    """The endpoint; `requests` has the bodies that it was sent."""

    @property
    def environment(self) -> dict[str, str]:
        return {"ANTHROPIC_BASE_URL": self.url.removesuffix("/v1"), "ANTHROPIC_API_KEY": self.key}

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
        headers = {name.lower(): value for name, value in headers.items()}
        if path.startswith("/v1/models") and headers.get("x-api-key") == self.key:
            return 200, json.dumps({"data": [{"id": name} for name in self.models]}).encode()
        if path != "/v1/messages":
            return refused(404, "not_found_error", "Not Found")
        if headers.get("x-api-key") != self.key:
            return refused(401, "authentication_error", "invalid x-api-key")
        if headers.get("anthropic-version") != "2023-06-01":
            return refused(400, "invalid_request_error", "anthropic-version: header is required")
        if wrong := problem(body):
            return refused(400, "invalid_request_error", wrong)
        self.requests.append(body)
        return self.chosen(body, events)


def refused(status: int, kind: str, message: str) -> tuple[int, bytes]:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return status, json.dumps(body).encode()


def problem(body: dict[str, Any]) -> str:
    """What the API would not accept of a request."""
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    if wrong := mismatch(body, MessageCreateParamsStreaming):
        return wrong.removeprefix(".")
    if body["max_tokens"] < 1:
        return "max_tokens: Input should be greater than or equal to 1"
    if not body["messages"] or body["messages"][0]["role"] != "user":
        return "messages: first message must use the user role"
    thinking = body.get("thinking")
    if thinking and (thinking["type"] == "enabled") != body["model"].startswith(BUDGETED):
        return f'"thinking.type.{thinking["type"]}" is not supported for this model.'
    if thinking and not 1024 <= thinking.get("budget_tokens", 1024) < body["max_tokens"]:
        return "max_tokens must be greater than thinking.budget_tokens"
    form = (body.get("output_config") or {}).get("format")
    if form and (wrong := unenforceable(form["schema"])):
        return f"output_config.format.schema: {wrong}"
    choice = body.get("tool_choice")
    if choice and not body.get("tools"):
        return "tool_choice may only be specified while providing tools"
    if choice and thinking and choice["type"] in ("any", "tool"):
        return "Thinking may not be enabled when tool_choice forces tool use"
    if thinking and body.get("temperature", 1) != 1:
        return "temperature may only be set to 1 when thinking is enabled"
    for tool in body.get("tools", ()):
        if tool["input_schema"].get("type") != "object":
            return "tools.0.input_schema.type: Field required"
    marked = json.dumps(body).count('"cache_control"')
    if marked > 4:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {marked}."
    return wrong_message(body["messages"])


def unenforceable(schema: Any) -> str:
    """What the API does not enforce of a schema for answers."""
    if isinstance(schema, list):
        return next((wrong for each in schema if (wrong := unenforceable(each))), "")
    if not isinstance(schema, dict):
        return ""
    limits = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems"}
    if found := limits & schema.keys():
        return f"For {schema.get('type')!r} type, property {min(found)!r} is not supported"
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return "'additionalProperties' must be explicitly set to false"
    inner = {**schema, **schema.get("properties", {}), **schema.get("$defs", {})}
    return next((wrong for each in inner.values() if (wrong := unenforceable(each))), "")


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
        answered = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
        if open_calls and sorted(answered) != sorted(open_calls):
            return f"messages.{number}: `tool_use` ids were found without `tool_result` blocks"
        if answered and not open_calls:
            return f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks"
        open_calls = [b["id"] for b in content if b["type"] == "tool_use"]
    return ""


def events(answer: Any, body: dict[str, Any]) -> bytes:
    """An answer as the events of a stream, each in the form that the API publishes."""
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    while isinstance(answer, Thought):
        if answer.redacted:
            blocks.append(({"type": "redacted_thinking", "data": answer.redacted}, []))
        deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": answer.thinking}]
        deltas.append({"type": "signature_delta", "signature": f"signed:{answer.thinking}"})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
        if answer.text:
            blocks.append(text_block(answer.text))
        answer = answer.answer
    calls = [answer] if isinstance(answer, tuple) else answer if isinstance(answer, list) else []
    if isinstance(answer, str):
        blocks.append(text_block(answer))
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
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, (block, deltas) in enumerate(blocks):
        sent.append({"type": "content_block_start", "index": index, "content_block": block})
        sent += [{"type": "content_block_delta", "index": index, "delta": each} for each in deltas]
        sent.append({"type": "content_block_stop", "index": index})
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": reason, "usage": {"output_tokens": 5}})
    sent.append({"type": "message_stop"})
    for each in sent:
        event_type().validate_python(each)
    sent.insert(1, {"type": "ping"})
    lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in sent)
    return "".join(lines).encode()


def text_block(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    pieces = [text[i : i + 8] for i in range(0, len(text), 8)]
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
