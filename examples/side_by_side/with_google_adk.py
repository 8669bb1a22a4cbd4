import asyncio

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import BaseTool, ToolContext
from pydantic import BaseModel


class Forecast(BaseModel):
    city: str
    degrees: int


def weather(city: str) -> str:
    """Measure the temperature in a city."""
    return f"21 degrees in {city}"


def only_rome(tool: BaseTool, args: dict[str, str], tool_context: ToolContext):
    if tool.name == "weather" and args["city"] != "Rome":
        return {"error": "only Rome is allowed"}
    return None


agent = LlmAgent(
    name="forecaster",
    model=LiteLlm(model="openai/gpt-5"),
    instruction="Be brief.",
    tools=[weather],
    before_tool_callback=only_rome,
    output_schema=Forecast,
)


async def main() -> Forecast:
    runner = InMemoryRunner(agent=agent)
    events = await runner.run_debug("How warm is it in Paris and in Rome?", quiet=True)
    return Forecast.model_validate_json(events[-1].content.parts[0].text)


forecast = asyncio.run(main())
print(forecast.city, forecast.degrees)
