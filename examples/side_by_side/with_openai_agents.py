import json
from dataclasses import dataclass

from agents import (
    Agent,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    function_tool,
    tool_input_guardrail,
)


@dataclass
class Forecast:
    city: str
    degrees: int


@tool_input_guardrail
def only_rome(data: ToolInputGuardrailData):
    if json.loads(data.context.tool_arguments)["city"] != "Rome":
        return ToolGuardrailFunctionOutput.reject_content("only Rome is allowed")
    return ToolGuardrailFunctionOutput.allow()


@function_tool(tool_input_guardrails=[only_rome])
def weather(city: str) -> str:
    """Measure the temperature in a city."""
    return f"21 degrees in {city}"


agent = Agent(
    name="forecaster",
    model="gpt-5",
    instructions="Be brief.",
    tools=[weather],
    output_type=Forecast,
)
result = Runner.run_sync(agent, "How warm is it in Paris and in Rome?")
forecast = result.final_output
print(forecast.city, forecast.degrees)
