"""A Responses endpoint on loopback that plays a script and is as strict as the API.

Answers are those of `openai_server`. Reasoning must come back as it was sent.
"""

import json
from functools import cache
from typing import Any

from .openai_server import OpenAIServer, Thought, loose, refused
from .wire_types import mismatch


@cache
def event_type() -> Any:
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    return TypeAdapter(ResponseStreamEvent)


class ResponsesServer(OpenAIServer):
    """The endpoint; `requests` has the bodies that it was sent."""

    def __init__(self, answers: Any, key: str = "test-key") -> None:
        super().__init__(answers, key)
        self.issued: dict[str, Any] = {}

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
        if path == "/v1/models":
            return 200, json.dumps({"data": [{"id": name} for name in self.models]}).encode()
        if path != "/v1/responses":
            return refused(404, f"no such path: {path}")
        if headers.get("Authorization") != f"Bearer {self.key}":
            return refused(401, "Incorrect API key provided.", code="invalid_api_key")
        if wrong := self.problem(body):
            return refused(400, wrong)
        self.requests.append(body)
        return self.chosen(body, self.events)

    def problem(self, body: dict[str, Any]) -> str:
        """What the API would not accept of a request."""
        from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

        if wrong := mismatch(body, ResponseCreateParamsStreaming):
            return wrong
        if body.get("store") is not False:
            return "this organization does not store responses"
        if "gpt-4" in body["model"] and (body.get("include") or body.get("reasoning")):
            return "Encrypted content is not supported with this model."
        if "tool_choice" in body and not body.get("tools"):
            return "tool_choice is only allowed when tools are specified"
        form = body.get("text", {}).get("format")
        if form and form.get("strict") and (wrong := loose(form["schema"])):
            return f"Invalid schema for response_format {form['name']!r}: {wrong}"
        called: set[str] = set()
        items = body["input"]
        for number, item in enumerate(items):
            kind = item.get("type")
            if kind == "reasoning":
                if self.issued.get(item["id"]) != item:
                    return f"The encrypted content of item {item['id']} could not be verified."
                if number + 1 == len(items) or items[number + 1].get("role") == "user":
                    return f"Item {item['id']} was provided without its required following item."
            elif kind == "function_call":
                called.add(item["call_id"])
            elif kind == "function_call_output":
                if item["call_id"] not in called:
                    return f"No tool call found for function call output {item['call_id']}."
                called.remove(item["call_id"])
        return f"No tool output found for function call {min(called)}." if called else ""

    def events(self, answer: Any, body: dict[str, Any]) -> bytes:
        """An answer as the events of a stream, each in the form that the API publishes."""
        stream = Stream(body["model"])
        while isinstance(answer, Thought):
            item = stream.think(answer.thinking, f"rs_{len(self.issued)}")
            self.issued[item["id"]] = item
            if answer.text:
                stream.say(answer.text, "commentary")
            answer = answer.answer
        calls = [answer] if isinstance(answer, tuple) else answer if isinstance(answer, list) else []
        if isinstance(answer, str):
            stream.say(answer)
        for number, (name, arguments) in enumerate(calls):
            stream.call(name, json.dumps(arguments), number)
        return stream.end()


class Stream:
    """The events of a response."""

    def __init__(self, model: str) -> None:
        self.sent: list[dict[str, Any]] = []
        self.output: list[dict[str, Any]] = []
        self.response = {
            "id": "resp_1", "object": "response", "created_at": 1, "model": model, "output": [],
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress",
        }  # fmt: skip
        self.add("response.created", response=self.response)

    def add(self, kind: str, **fields: Any) -> None:
        self.sent.append({"type": kind, "sequence_number": len(self.sent), **fields})

    def think(self, text: str, place: str) -> dict[str, Any]:
        at = {"item_id": place, "output_index": len(self.output), "summary_index": 0}
        empty = {"type": "reasoning", "id": place, "summary": []}
        self.add("response.output_item.added", output_index=len(self.output), item=empty)
        part = {"type": "summary_text", "text": ""}
        self.add("response.reasoning_summary_part.added", **at, part=part)
        self.add("response.reasoning_summary_text.delta", **at, delta=text)
        item = {
            "type": "reasoning", "id": place, "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": f"gAAAA{place}",
        }  # fmt: skip
        self.done(item)
        return item

    def say(self, text: str, phase: str | None = None) -> None:
        at = {"item_id": "msg_1", "output_index": len(self.output), "content_index": 0}
        message = {"type": "message", "id": "msg_1", "role": "assistant"}
        empty = {**message, "status": "in_progress", "content": []}
        self.add("response.output_item.added", output_index=len(self.output), item=empty)
        part = {"type": "output_text", "text": "", "annotations": []}
        self.add("response.content_part.added", **at, part=part)
        for start in range(0, len(text), 8):
            piece = text[start : start + 8]
            self.add("response.output_text.delta", **at, delta=piece, logprobs=[])
        content = [{"type": "output_text", "text": text, "annotations": []}]
        self.add("response.output_text.done", **at, text=text, logprobs=[])
        more = {"phase": phase} if phase else {}
        self.done({**message, "status": "completed", "content": content, **more})

    def call(self, name: str, arguments: str, number: int) -> None:
        at = {"item_id": f"fc_{number}", "output_index": len(self.output)}
        call = {"type": "function_call", "id": f"fc_{number}", "name": name}
        call["call_id"] = f"call_{number}"
        added = {**call, "arguments": "", "status": "in_progress"}
        self.add("response.output_item.added", output_index=len(self.output), item=added)
        for piece in (arguments[:5], arguments[5:]):
            self.add("response.function_call_arguments.delta", **at, delta=piece)
        self.done({**call, "arguments": arguments, "status": "completed"})

    def done(self, item: dict[str, Any]) -> None:
        self.add("response.output_item.done", output_index=len(self.output), item=item)
        self.output.append(item)

    def end(self, kind: str = "completed", **fields: Any) -> bytes:
        usage = {
            "input_tokens": 9, "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 14,
        }  # fmt: skip
        last = {**self.response, "status": kind, "output": self.output, "usage": usage, **fields}
        self.add(f"response.{kind}", response=last)
        return written(self.sent)


def written(sent: list[dict[str, Any]]) -> bytes:
    for each in sent:
        event_type().validate_python(each)
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in sent).encode()
