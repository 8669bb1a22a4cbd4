"""The same program in several frameworks, against a scripted endpoint. Needs only the standard library.

    python -m tests.bridges.side_by_side pydantic_ai     # run the program with this interpreter
    python -m tests.bridges.side_by_side --write         # write the pages that show them

The model asks for the weather in Paris and in Rome. It answers only if the first call was refused by
the guard, the second one ran, and it may give a typed answer: in the form of a schema, or by a tool.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "side_by_side"
COMPARED = ROOT / "docs" / "side-by-side.md"
PORTED = ROOT / "docs" / "from-pydantic-ai.md"
MARK = "<!-- generated -->"
MOVED = {"hookline": "ported_to_hookline", "pydantic_ai": "ported_from_pydantic_ai"}
"""The program of the page for those who come from pydantic-ai."""
LIBRARY = "Your loan of Dune ends on Friday.\nRenewed until Monday.\n"
NAMES = {
    "hookline": "Hookline",
    "pydantic_ai": "pydantic-ai",
    "strands": "Strands",
    "langchain": "LangChain",
    "openai_agents": "OpenAI Agents",
    "google_adk": "Google ADK",
}
CITIES = {"call_paris": "Paris", "call_rome": "Rome"}
REFUSED, MEASURED = "only Rome is allowed", "21 degrees in Rome"
ANSWER = {"city": "Rome", "degrees": 21}


class ScriptedEndpoint:
    """An endpoint with the Chat Completions and the Responses API."""

    def __init__(self, model: "Answer") -> None:
        outer = self
        self._model = model
        self.faults: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                is_chat = self.path.endswith("/chat/completions")
                try:
                    reply = outer.chat(body) if is_chat else outer.responses(body)
                    status, kind, payload = 200, *reply
                except AssertionError as fault:
                    outer.faults.append(str(fault))
                    status, kind = 400, "application/json"
                    payload = json.dumps({"error": {"message": str(fault)}}).encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.environment = {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{self._server.server_port}/v1",
            "OPENAI_API_KEY": "test",
        }

    def __enter__(self) -> "ScriptedEndpoint":
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- the Chat Completions API -----------------------------------------------------------------

    def chat(self, body: dict[str, Any]) -> tuple[str, bytes]:
        messages = body["messages"]
        results = {m["tool_call_id"]: str(m["content"]) for m in messages if m["role"] == "tool"}
        tools = {
            tool["function"]["name"]: tool["function"]["parameters"] for tool in body.get("tools", ())
        }
        calls, text = self._model(
            results, tools, body.get("response_format", {}).get("json_schema", {})
        )
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [
                {
                    "id": key,
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(given)},
                }
                for key, name, given in calls
            ]
        common = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
        reason = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            whole = {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
            return "application/json", json.dumps(whole).encode()
        for number, call in enumerate(message.get("tool_calls", ())):
            call["index"] = number
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": usage},
        ]
        sent = [{**common, "object": "chat.completion.chunk", **chunk} for chunk in chunks]
        lines = "".join(f"data: {json.dumps(each)}\n\n" for each in sent)
        return "text/event-stream", f"{lines}data: [DONE]\n\n".encode()

    # --- the Responses API ------------------------------------------------------------------------

    def responses(self, body: dict[str, Any]) -> tuple[str, bytes]:
        items = body["input"] if isinstance(body["input"], list) else []
        results = {
            item["call_id"]: str(item["output"])
            for item in items
            if item.get("type") == "function_call_output"
        }
        tools = {tool["name"]: tool["parameters"] for tool in body.get("tools", ())}
        calls, text = self._model(results, tools, body.get("text", {}).get("format", {}))
        output: list[dict[str, Any]] = [
            {
                "type": "function_call",
                "id": f"fc_{key}",
                "call_id": key,
                "name": name,
                "arguments": json.dumps(given),
                "status": "completed",
            }
            for key, name, given in calls
        ]
        if text:
            content = [{"type": "output_text", "text": text, "annotations": []}]
            message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
            output.append({**message, "content": content})
        details = {"cached_tokens": 0, "cache_write_tokens": 0}
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        whole = {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                **usage,
                "input_tokens_details": details,
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }
        assert not body.get("stream"), "no program streams this"
        return "application/json", json.dumps(whole).encode()


Said = tuple[list[tuple[str, str, Any]], str | None]
"""The calls of an answer, each with its id, and its text."""
Answer = Callable[[dict[str, str], dict[str, Any], dict[str, Any]], Said]
"""Answers like a model: to the results so far, with these tools, in the form that was asked for."""


def forecaster(results: dict[str, str], tools: dict[str, Any], form: dict[str, Any]) -> Said:
    """The model of the program that all frameworks have."""
    if not results:
        assert "weather" in tools, "the tool is missing"
        return [(key, "weather", {"city": city}) for key, city in CITIES.items()], None
    assert REFUSED in results["call_paris"], f"the guard did not refuse Paris: {results}"
    assert MEASURED in results["call_rome"], f"the tool did not run for Rome: {results}"
    return typed(ANSWER, "call_typed", results, tools, form)


def librarian() -> Answer:
    """The model of the program that is ported."""
    steps = iter(
        [
            ("due", {"title": "Dune"}),
            "Your loan of Dune ends on Friday",  # the program wants a full stop
            "Your loan of Dune ends on Friday.",
            ("renew", {"title": "Dune"}),
            "Renewed until Monday.",
        ]
    )
    number = 0

    def answer(results: dict[str, str], tools: dict[str, Any], form: dict[str, Any]) -> Said:
        nonlocal number
        number, step = number + 1, next(steps)
        if isinstance(step, tuple):
            return [(f"call_{number}", *step)], None
        assert ("Friday" if number < 4 else "Monday") in "".join(results.values()), results
        return typed({"text": step, "urgent": False}, f"typed_{number}", results, tools, form)

    return answer


def typed(
    value: dict[str, Any],
    key: str,
    results: dict[str, str],
    tools: dict[str, Any],
    form: dict[str, Any],
) -> Said:
    """A typed answer: by a tool if there is one for it, or in the form that was asked for."""
    fitting = [name for name, schema in tools.items() if {*value} <= {*schema.get("properties", {})}]
    if fitting and key not in results:
        return [(key, fitting[0], value)], None
    assert fitting or "schema" in form, f"no typed answer was asked for; the tools are {[*tools]}"
    fields = [*form.get("schema", {}).get("properties", value)]
    return [], json.dumps(value if {*value} <= {*fields} else {fields[0]: value})


def faults(program: Path, model: Answer, printed: str) -> str:
    """Run a program; return what is wrong with it, or nothing."""
    with ScriptedEndpoint(model) as endpoint:
        quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "true"}
        done = subprocess.run(
            [sys.executable, str(program)],
            env={**os.environ, **quiet, **endpoint.environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
    if done.stdout == printed and not endpoint.faults:
        return ""
    return f"{program.name} printed {done.stdout!r}; {endpoint.faults}\n{done.stderr[-3000:]}"


# --- the pages -------------------------------------------------------------------------------------


def code_lines(source: str) -> int:
    """The lines of a program, without blank ones."""
    return sum(bool(line.strip()) for line in source.splitlines())


def source(name: str) -> str:
    """The text of a program."""
    return (PROGRAMS / f"{name}.py").read_text()


def comparison() -> str:
    """The page with every program and its number of lines."""
    introduction = COMPARED.read_text().partition(MARK)[0]
    sources = {shown: source(f"with_{name}") for name, shown in NAMES.items()}
    rows = [f"| {shown} | {code_lines(text)} |" for shown, text in sources.items()]
    table = "\n".join(["| program | lines |", "|---|---|", *rows])
    # Only ours is run with the other examples of the documentation, so the rest are not `python`.
    blocks = [
        f"## {shown}\n\n```{'python' if shown == 'Hookline' else 'py'}\n{text}```"
        for shown, text in sources.items()
    ]
    return "\n\n".join([f"{introduction}{MARK}", table, *blocks]) + "\n"


def port() -> str:
    """The page that shows a program before and after it was ported."""
    page = PORTED.read_text()
    for fence, name in (("py", "ported_from_pydantic_ai"), ("python", "ported_to_hookline")):
        block = f"```{fence}\n{source(name)}```"
        lines = f"{code_lines(source(name))} lines"
        start = page.index(f"```{fence}\n")
        end = page.index("```", start + 3) + 3
        page = f"{page[:start]}{block}{page[end:]}"
        heading = f"### With {'Hookline' if fence == 'python' else 'pydantic-ai'}: "
        page = re.sub(rf"{heading}.*", f"{heading}{lines}", page)
    return page


def main(name: str) -> str:
    """Run the programs of a framework; return what is wrong, or nothing."""
    found = faults(PROGRAMS / f"with_{name}.py", forecaster, "Rome 21\n")
    if name in MOVED and not found:
        found = faults(PROGRAMS / f"{MOVED[name]}.py", librarian(), LIBRARY)
    if not found:
        print(f"{NAMES[name]}: {code_lines(source(f'with_{name}'))} lines")
    return found


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        COMPARED.write_text(comparison())
        PORTED.write_text(port())
    else:
        sys.exit(main(sys.argv[1]) or 0)
