from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.usage import UsageLimits


@dataclass
class Library:
    loans: dict[str, str]


class Reply(BaseModel):
    text: str
    urgent: bool


agent = Agent(
    "openai:gpt-5",
    instructions="You are the help desk of a library.",
    deps_type=Library,
    output_type=Reply,
)


@agent.tool
def due(ctx: RunContext[Library], title: str) -> str:
    """Tell when a loan ends."""
    return ctx.deps.loans.get(title, "not on loan")


@agent.tool
def renew(ctx: RunContext[Library], title: str) -> str:
    """Renew a loan."""
    ctx.deps.loans[title] = "Monday"
    return "Monday"


@agent.output_validator
def is_sentence(ctx: RunContext[Library], reply: Reply) -> Reply:
    if not reply.text.endswith("."):
        raise ModelRetry("answer in whole sentences")
    return reply


library = Library({"Dune": "Friday"})
limits = UsageLimits(request_limit=5)
first = agent.run_sync("When is Dune due?", deps=library, usage_limits=limits)
print(first.output.text)
second = agent.run_sync(
    "Renew it, please.", deps=library, usage_limits=limits, message_history=first.all_messages()
)
print(second.output.text)
