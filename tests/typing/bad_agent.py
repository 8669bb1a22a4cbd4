"""Mistakes with `Agent` that a type checker must report, with the rule that reports each."""

from dataclasses import dataclass

from hookline import Agent, Hooks
from hookline.events import (
    AgentEndEvent,
    AgentStopEvent,
    ContextEvent,
    InputEvent,
    InputEventResult,
    ModelCallEvent,
    OutputEvent,
    ToolCallEvent,
    ToolCallEventResult,
    ToolResultEvent,
    ToolResultEventResult,
)


@dataclass
class Invoice:
    total: float


hooks = Hooks()
agent = Agent("openai:gpt-5")
typed = Agent("openai:gpt-5", output=Invoice)

Agent()  # error: reportCallIssue
Agent(5)  # error: reportArgumentType
Agent("local", instruction="Be brief.")  # error: reportCallIssue
Agent("local", tools=3)  # error: reportArgumentType
Agent("local", limits={"steps": 3})  # error: reportArgumentType
Agent("local", policy=3)  # error: reportArgumentType
Agent("local", policy="alow")  # error: reportArgumentType

agent.run_sync(3)  # error: reportArgumentType
agent.run_sync("hi", sesion="garden")  # error: reportCallIssue
print(agent.run_sync("hi").txt)  # error: reportAttributeAccessIssue
print(agent.run_sync("hi").output.total)  # error: reportAttributeAccessIssue
print(typed.run_sync("hi").output.totl)  # error: reportAttributeAccessIssue
print(agent.run("hi").text)  # error: reportAttributeAccessIssue
agent.strem("hi")  # error: reportAttributeAccessIssue


@agent.on.tool_cal  # error: reportAttributeAccessIssue
def no_such_event(event: ToolCallEvent) -> None: ...


@agent.on.tool_call  # error: reportArgumentType
def another_event(event: AgentEndEvent) -> None: ...


@agent.on.tool_call  # error: reportArgumentType
def result_of_another(event: ToolCallEvent) -> ToolResultEventResult:
    return ToolResultEventResult()


@agent.on.tool_call(when="shell")  # error: reportArgumentType
def another_event_with_options(event: InputEvent) -> None: ...


@agent.on.tool_call(when="shell")  # error: reportArgumentType
async def a_string(event: ToolCallEvent) -> str:
    return "no"


@agent.on.tool_call(wen="shell")  # error: reportCallIssue
def unknown_option(event: ToolCallEvent) -> None: ...


@hooks.on.agent_end  # error: reportArgumentType
def nothing_to_deny(event: AgentEndEvent) -> ToolCallEventResult:
    return ToolCallEventResult(block=True)


@hooks.on.authorize_action  # error: reportArgumentType
def not_a_decision(action: dict[str, str]) -> str:
    return "yes"


@hooks.on.system_prompt  # error: reportArgumentType
async def not_awaited(prompt: str) -> str:
    return "hi"


@hooks.on.input
def wrong_helper(event: InputEvent) -> InputEventResult:
    return event.ask("sure?")  # error: reportAttributeAccessIssue


@hooks.on.tool_result  # error: reportArgumentType
def helper_of_another(event: ToolResultEvent) -> ToolCallEventResult:
    return event.deny()  # error: reportReturnType


ToolCallEvent().replace(arguments={})  # error: reportCallIssue
ToolCallEvent().deny(reason=3)  # error: reportArgumentType
ToolCallEvent().handled("done")  # error: reportAttributeAccessIssue
OutputEvent().replace(content=3)  # error: reportArgumentType
ContextEvent().deny("no")  # error: reportAttributeAccessIssue
ModelCallEvent().ask("sure?")  # error: reportAttributeAccessIssue
AgentStopEvent().replace("x")  # error: reportAttributeAccessIssue
hooks.on.tool_call(lambda event: event.tool_nmae)  # error: reportAttributeAccessIssue
