from dataclasses import dataclass

from pydantic_ai import Agent, RunContext, SkipToolExecution
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition


@dataclass
class Forecast:
    city: str
    degrees: int


hooks = Hooks()
agent = Agent("openai:gpt-5", instructions="Be brief.", output_type=Forecast, capabilities=[hooks])


@agent.tool_plain
def weather(city: str) -> str:
    """Measure the temperature in a city."""
    return f"21 degrees in {city}"


@hooks.on.before_tool_execute(tools=["weather"])
async def only_rome(
    ctx: RunContext, *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, str]
):
    if args["city"] != "Rome":
        raise SkipToolExecution("only Rome is allowed")
    return args


forecast = agent.run_sync("How warm is it in Paris and in Rome?").output
print(forecast.city, forecast.degrees)
