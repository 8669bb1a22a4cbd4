"""The turn that `turn.py` measures, and how other agent frameworks make it.

Each peer gets a model of its own kind that answers from memory at once, and the same async tool. Its
stream is read to the end, as a user interface would read it. Whatever a peer sends elsewhere is
turned off, and nothing is kept on disk.
"""

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from server import Server

QUESTION = "What is 190019 plus 230023?"
TOOL = "add"
CALL_ID = "call_1"
ARGUMENTS = json.dumps({"a": 190019, "b": 230023})
RESULT = "420042"
ANSWER = "190019 plus 230023 makes 420042, says the tool."
CHUNK = 5  # characters in a piece
CHUNKS = tuple(ANSWER[at : at + CHUNK] for at in range(0, len(ANSWER), CHUNK))

SILENCE = {
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "NO_PROXY": "127.0.0.1",
    "OPENAI_AGENTS_DISABLE_TRACING": "true",
    "OTEL_SDK_DISABLED": "true",
}
"""The settings that keep peers from reporting on what they do, from fetching a list of prices, and from
asking a proxy for loopback; read when they are imported."""

Turn = Callable[[], Awaitable[tuple[str, int]]]
"""Make one turn in a new conversation; give the answer, and in how many pieces it was streamed."""


@dataclass
class Seen:
    """What happened in the turn that is verified; while turns are timed, nothing is noted."""

    noting: bool = False
    model_calls: int = 0
    tool_calls: int = 0
    results_shown: int = 0

    def model(self, messages: object) -> None:
        if self.noting:
            self.model_calls += 1
            self.results_shown += RESULT in repr(messages)

    def tool(self) -> None:
        if self.noting:
            self.tool_calls += 1


seen = Seen()


async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    seen.tool()
    return a + b


@dataclass(frozen=True)
class Contender:
    """One row: who makes the turn, and over what the model is reached."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[Turn]]
    distribution: str = ""  # the PyPI name; empty for what is written here
    transport: str = "in process"
    note: str = ""
    server: "Server | None" = None  # where the model is, when it is not in this process
    concurrency: int = 1  # turns at once


@asynccontextmanager
async def bare_loop() -> AsyncGenerator[Turn]:
    """What a turn cannot do without: two streams, one tool call, the messages."""

    async def model(messages: list[dict[str, Any]]) -> AsyncIterator[tuple[str, str]]:
        seen.model(messages)
        if messages[-1]["role"] == "user":
            yield "call", ARGUMENTS
        else:
            for chunk in CHUNKS:
                yield "text", chunk

    async def turn() -> tuple[str, int]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
        while True:
            text: list[str] = []
            call = ""
            async for kind, data in model(messages):
                if kind == "text":
                    text.append(data)
                else:
                    call = data
            messages.append({"role": "assistant", "content": "".join(text), "call": call})
            if not call:
                return messages[-1]["content"], len(text)
            result = await add(**json.loads(call))
            messages.append({"role": "tool", "content": str(result)})

    yield turn


@asynccontextmanager
async def strands() -> AsyncGenerator[Turn]:
    from strands import Agent, tool
    from strands.models import Model

    class Scripted(Model):
        def update_config(self, **model_config: Any) -> None:
            pass

        def get_config(self) -> dict[str, Any]:
            return {}

        def structured_output(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            seen.model(messages)
            yield {"messageStart": {"role": "assistant"}}
            if len(messages) == 1:
                named = {"toolUse": {"name": TOOL, "toolUseId": CALL_ID}}
                yield {"contentBlockStart": {"start": named}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": ARGUMENTS}}}}
                yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "tool_use"}}
                return
            yield {"contentBlockStart": {"start": {}}}
            for chunk in CHUNKS:
                yield {"contentBlockDelta": {"delta": {"text": chunk}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    agent = Agent(model=Scripted(), tools=[tool(add)], callback_handler=None)

    async def turn() -> tuple[str, int]:
        agent.messages.clear()
        answer, pieces = "", 0
        async for event in agent.stream_async(QUESTION):
            if "data" in event:
                pieces += 1
            elif "result" in event:
                answer = event["result"].message["content"][0]["text"]
        return answer, pieces

    yield turn


@asynccontextmanager
async def openai_agents() -> AsyncGenerator[Turn]:
    from agents import Agent, Model, RunConfig, Runner, function_tool
    from openai.types import responses

    def response(item: Any) -> responses.Response:
        return responses.Response(
            id="response_1",
            created_at=0,
            model="scripted",
            object="response",
            output=[item],
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=False,
        )

    def completed(item: Any, number: int) -> list[Any]:
        return [
            responses.ResponseOutputItemDoneEvent(
                type="response.output_item.done", item=item, output_index=0, sequence_number=number
            ),
            responses.ResponseCompletedEvent(
                type="response.completed", response=response(item), sequence_number=number + 1
            ),
        ]

    call = responses.ResponseFunctionToolCall(
        type="function_call", call_id=CALL_ID, name=TOOL, arguments=ARGUMENTS
    )
    said = responses.ResponseOutputText(type="output_text", text=ANSWER, annotations=[])
    message = responses.ResponseOutputMessage(
        id="message_1", type="message", role="assistant", status="completed", content=[said]
    )
    deltas = [
        responses.ResponseTextDeltaEvent(
            type="response.output_text.delta",
            content_index=0,
            delta=chunk,
            item_id="message_1",
            logprobs=[],
            output_index=0,
            sequence_number=number,
        )
        for number, chunk in enumerate(CHUNKS)
    ]
    calling, answering = completed(call, 0), [*deltas, *completed(message, len(deltas))]

    class Scripted(Model):
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        async def stream_response(
            self,
            system_instructions: Any,
            input: Any,  # noqa: A002
            *args: Any,
            **kwargs: Any,
        ) -> AsyncIterator[Any]:
            seen.model(input)
            for event in calling if isinstance(input, str) or len(input) == 1 else answering:
                yield event

    agent = Agent(name="agent", model=Scripted(), tools=[function_tool(add)])
    config = RunConfig(tracing_disabled=True)

    async def turn() -> tuple[str, int]:
        result = Runner.run_streamed(agent, QUESTION, run_config=config)
        pieces = 0
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                pieces += 1
        return result.final_output, pieces

    yield turn


@asynccontextmanager
async def langchain() -> AsyncGenerator[Turn]:
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessageChunk
    from langchain_core.outputs import ChatGenerationChunk

    called = [{"name": TOOL, "args": ARGUMENTS, "id": CALL_ID, "index": 0}]

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        async def _astream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            seen.model(messages)
            if len(messages) == 1:
                said = AIMessageChunk(content="", tool_call_chunks=called)
                yield ChatGenerationChunk(message=said)
                return
            for chunk in CHUNKS:
                yield ChatGenerationChunk(message=AIMessageChunk(content=chunk))

    agent: Any = create_agent(Scripted(), tools=[add])

    async def turn() -> tuple[str, int]:
        asked = {"messages": [{"role": "user", "content": QUESTION}]}
        text: list[str] = []
        async for chunk, _ in agent.astream(asked, stream_mode="messages"):
            if isinstance(chunk, AIMessageChunk) and chunk.content:
                text.append(chunk.content)
        return "".join(text), len(text)

    yield turn


@asynccontextmanager
async def pydantic_ai() -> AsyncGenerator[Turn]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel
    from pydantic_ai.run import AgentRunResultEvent

    async def scripted(messages: Any, info: Any) -> AsyncIterator[Any]:
        seen.model(messages)
        if len(messages) == 1:
            yield {0: DeltaToolCall(TOOL, ARGUMENTS, tool_call_id=CALL_ID)}
            return
        for chunk in CHUNKS:
            yield chunk

    agent: Any = Agent(FunctionModel(stream_function=scripted), tools=[add])

    async def turn() -> tuple[str, int]:
        answer, pieces = "", 0
        async with agent.run_stream_events(QUESTION) as events:
            async for event in events:
                if isinstance(event, PartDeltaEvent) or (
                    isinstance(event, PartStartEvent) and isinstance(event.part, TextPart)
                ):
                    pieces += 1
                elif isinstance(event, AgentRunResultEvent):
                    answer = event.result.output
        return answer, pieces

    yield turn


def peers() -> list[Contender]:
    os.environ.update(SILENCE)
    return [
        Contender("strands", strands, "strands-agents"),
        Contender("openai-agents", openai_agents, "openai-agents"),
        Contender("langchain", langchain, "langchain"),
        Contender("pydantic-ai", pydantic_ai, "pydantic-ai-slim"),
    ]
