"""Programs with `Agent` that a type checker must accept, in strict mode. Checked, never imported."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, assert_type

from hookline import Agent, HooklineError, Hooks, StreamEvent
from hookline.agent.run import Limits
from hookline.events import (
    AgentEndEvent,
    HookContext,
    InputEvent,
    InputEventResult,
    MessageReceiveEvent,
    OutputEvent,
    ToolCallEvent,
    ToolCallEventResult,
    ToolResultEvent,
)
from hookline.runtime.run_record import RunResult
from hookline.tape.memory import MemoryTapeStore
from hookline.types import ImagePart, TextPart


@dataclass
class Invoice:
    total: float


class Place(TypedDict):
    city: str


def weather(city: str) -> str:
    return city


agent = Agent("openai:gpt-5", instructions="Be brief.", tools=[weather])
assert_type(agent, Agent[str])
assert_type(agent.run_sync("hi").output, str)
assert_type(agent.run_sync("hi").cost, float | None)

typed = Agent("openai:gpt-5", output=Invoice, name="clerk")
assert_type(typed, Agent[Invoice])
assert_type(typed.run_sync("hi").output.total, float)
assert_type(Agent("openai:gpt-5", output=list[Invoice]).run_sync("hi").output, list[Invoice])
assert_type(Agent("openai:gpt-5", output=Place).run_sync("hi").output, Place)
assert_type(Agent("openai:gpt-5", output=Literal["yes", "no"]), Agent[Any])

whole = Agent(
    "local",
    tools=[weather, typed, typed.as_tool()],
    hooks=[lambda event: None],
    plugins=[object()],
    policy={"default": "ask"},
    tape=MemoryTapeStore(),
    limits=Limits(steps=3),
)


@agent.on.tool_call(when="shell", guard=True)
def no_sudo(event: ToolCallEvent) -> ToolCallEventResult | None:
    if "sudo" in event.input["command"]:
        return event.deny("not as root")
    return event.ask("sure?") if event.tool_name == "rm" else None


@agent.on.tool_call
async def rewrite(event: ToolCallEvent, ctx: HookContext) -> ToolCallEventResult:
    ctx.notify("rewritten")
    return event.replace(input={**event.input, "dry_run": True})


@agent.on.input(timeout=5)
def noon(event: InputEvent) -> InputEventResult:
    return event.handled("noon") if event.text == "time?" else event.replace(event.text.strip())


@agent.on.agent_end
def ended(event: AgentEndEvent) -> None:
    print(len(event.messages))


@agent.on.system_prompt
def date(prompt: str) -> str:
    return "Today is Monday."


@agent.on.authorize_action(order=1)
async def authorize(action: dict[str, Any]) -> bool | None:
    return action["tool"] != "shell"


hooks = Hooks()
hooks.on.output(lambda event: event.replace(event.content.upper()))
hooks.on.tool_result(lambda event: event.deny() if event.is_error else None)
hooks.on(ToolResultEvent)(lambda event: event.replace(content="hidden"))
hooks.on(OutputEvent)(lambda event: event.deny("no"))
hooks.on.message_receive(lambda event: event.deny("closed"))
assert_type(MessageReceiveEvent().text, str)
no_sudo.off()
ended.off()


async def main() -> None:
    result = await agent.run([TextPart("what is this?"), ImagePart(b"")], session="garden")
    assert_type(result, RunResult[str])
    print(result.text, result.messages, result.usage, result.session, result.why())
    print([(call.name, call.arguments, call.is_error) for call in result.tool_calls])
    print([(decision.by, decision.reason) for decision in result.decisions])
    async with typed.stream("hi") as stream:
        async for event in stream:
            assert_type(event, StreamEvent)
        assert_type((await stream.result()).output, Invoice)
    try:
        await agent.close()
    except HooklineError as error:
        print(error)
