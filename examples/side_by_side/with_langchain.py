from collections.abc import Callable
from dataclasses import dataclass

from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallRequest, wrap_tool_call
from langchain.messages import ToolMessage


@dataclass
class Forecast:
    city: str
    degrees: int


def weather(city: str) -> str:
    """Measure the temperature in a city."""
    return f"21 degrees in {city}"


@wrap_tool_call
def only_rome(request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage]):
    call = request.tool_call
    if call["name"] == "weather" and call["args"]["city"] != "Rome":
        return ToolMessage("only Rome is allowed", tool_call_id=call["id"], status="error")
    return handler(request)


agent = create_agent(
    "openai:gpt-5",
    tools=[weather],
    system_prompt="Be brief.",
    middleware=[only_rome],
    response_format=Forecast,
)
messages = [{"role": "user", "content": "How warm is it in Paris and in Rome?"}]
forecast = agent.invoke({"messages": messages})["structured_response"]
print(forecast.city, forecast.degrees)
