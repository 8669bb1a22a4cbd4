"""A Gemini endpoint on loopback that plays a script and is as strict as the API.

Answers are those of `openai_server`. A signature must come back on the part that it was sent with.
"""

import json
from base64 import b64encode
from functools import cache
from typing import Any
from urllib.parse import unquote

from .openai_server import OpenAIServer, Thought

UNSIGNED = "skip_thought_signature_validator"


@cache  # the package takes a second to import
def fields() -> dict[str, Any]:
    """The fields of a request and their types."""
    from google.genai import types
    from pydantic import TypeAdapter

    kinds: dict[str, Any] = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
        "safetySettings": list[types.SafetySetting],
        "cachedContent": str,
    }
    return {name: TypeAdapter(kind) for name, kind in kinds.items()}


class GoogleServer(OpenAIServer):
    """The endpoint; `requests` has the bodies that it was sent."""

    def __init__(self, answers: Any, key: str = "test-key") -> None:
        super().__init__(answers, key)
        self.models = ["models/gemini-3-pro", "models/gemini-3-flash"]
        self.issued: dict[str, Any] = {UNSIGNED: None}

    @property
    def environment(self) -> dict[str, str]:
        return {"GOOGLE_GEMINI_BASE_URL": self.url.removesuffix("/v1"), "GEMINI_API_KEY": self.key}

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
        if headers.get("X-Goog-Api-Key") != self.key:
            return refused(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
        if path.startswith("/v1beta/models?"):
            return 200, json.dumps({"models": [{"name": name} for name in self.models]}).encode()
        model, _, method = unquote(path.removeprefix("/v1beta/models/")).partition(":")
        if method != "streamGenerateContent?alt=sse":
            return refused(404, "NOT_FOUND", "Not Found")
        if wrong := self.problem(body, model):
            return refused(400, "INVALID_ARGUMENT", wrong)
        self.requests.append(body)
        return self.chosen(body, self.events)

    def problem(self, body: dict[str, Any], model: str) -> str:
        """What the API would not accept of a request."""
        from pydantic import ValidationError

        known = fields()
        if unknown := body.keys() - known.keys():
            return f'Invalid JSON payload received. Unknown name "{min(unknown)}"'
        try:
            for name, value in body.items():
                known[name].validate_python(value)
        except ValidationError as error:
            return f"Invalid JSON payload received. {error}"
        config = body.get("generationConfig", {})
        older = model.startswith("gemini-2")
        if older and body.get("tools") and "responseMimeType" in config:
            return "Function calling with a response mime type: 'application/json' is unsupported"
        thinking = config.get("thinkingConfig", {})
        if {"thinkingLevel", "thinkingBudget"} <= thinking.keys():
            return "You can only set only one of thinking budget and thinking level."
        if older and "thinkingLevel" in thinking:
            return "Thinking level is not supported for this model."
        if "pro" in model and thinking.get("thinkingBudget") == 0:
            return "Budget 0 is invalid. This model only works in thinking mode."
        for tool in body.get("tools", ()):
            for each in tool["functionDeclarations"]:
                if each.get("parametersJsonSchema", {"type": "object"}).get("type") != "object":
                    return "parameters_json_schema must describe an object"
        return self.wrong_content(body["contents"], older)

    def wrong_content(self, contents: list[dict[str, Any]], older: bool) -> str:
        open_calls: list[tuple[str, str]] = []
        for number, content in enumerate(contents):
            parts = content["parts"]
            if not parts or content["role"] != ("model" if number % 2 else "user"):
                return "Please ensure that multiturn requests alternate between user and model."
            calls = [part for part in parts if "functionCall" in part]
            if calls and not older and "thoughtSignature" not in calls[0]:
                return "Function call is missing a thought_signature in functionCall parts."
            for part in parts:
                wire = {name: value for name, value in part.items() if name != "thoughtSignature"}
                sent = self.issued.get(part.get("thoughtSignature", UNSIGNED), {})
                if len(wire.keys() - {"thought"}) != 1:
                    return "A part must have exactly one field of data."
                if sent not in (wire, None):
                    return "Thought signature is not valid."
            answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
            answered = [(each.get("id", ""), each["name"]) for each in answers]
            if sorted(answered) != sorted(open_calls):
                return (
                    "Please ensure that the number of function response parts is equal to the number "
                    "of function call parts of the function call turn."
                )
            open_calls = [(p["functionCall"].get("id", ""), p["functionCall"]["name"]) for p in calls]
        return ""

    def signed(self, part: dict[str, Any], label: str) -> dict[str, Any]:
        signature = b64encode(f"signed {label} {len(self.issued)}".encode()).decode()
        self.issued[signature] = part
        return {**part, "thoughtSignature": signature}

    def events(self, answer: Any, body: dict[str, Any]) -> bytes:
        """An answer as the chunks of a stream, each in the form that the API publishes."""
        parts: list[dict[str, Any]] = []
        while isinstance(answer, Thought):
            parts.append({"text": answer.thinking, "thought": True})
            if answer.text:
                parts.append(self.signed({"text": answer.text}, "text"))
            answer = answer.answer
        calls = [answer] if isinstance(answer, tuple) else answer if isinstance(answer, list) else []
        if isinstance(answer, str):
            parts += [{"text": answer[i : i + 8]} for i in range(0, len(answer), 8)]
            parts.append(self.signed({"text": ""}, "end"))
        for number, (name, arguments) in enumerate(calls):
            call = {"functionCall": {"id": f"fc-{number}", "name": name, "args": arguments}}
            parts.append(call if number else self.signed(call, "call"))
        return chunks(parts, "STOP")


def chunks(parts: list[dict[str, Any]], reason: str, **more: Any) -> bytes:
    sent: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in parts
    ]
    counts = {
        "promptTokenCount": 9, "cachedContentTokenCount": 2, "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2, "totalTokenCount": 14,
    }  # fmt: skip
    content = {"role": "model", "parts": [{"text": ""}]}
    last = {"content": content, "finishReason": reason, "index": 0, **more}
    sent.append({"candidates": [last], "usageMetadata": counts})
    return written(sent)


def written(sent: list[dict[str, Any]]) -> bytes:
    from google.genai import types

    for each in sent:
        types.GenerateContentResponse.model_validate(each)
    return "".join(f"data: {json.dumps(each)}\r\n\r\n" for each in sent).encode()


def refused(status: int, kind: str, message: str, **more: Any) -> tuple[int, bytes]:
    error = {"code": status, "message": message, "status": kind, **more}
    return status, json.dumps({"error": error}).encode()
