from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel


class Forecast(BaseModel):
    city: str
    degrees: int


@tool
def weather(city: str) -> str:
    """Measure the temperature in a city."""
    return f"21 degrees in {city}"


def only_rome(event: BeforeToolCallEvent):
    call = event.tool_use
    if call["name"] == "weather" and call["input"]["city"] != "Rome":
        event.cancel_tool = "only Rome is allowed"


agent = Agent(
    OpenAIModel(model_id="gpt-5"),
    system_prompt="Be brief.",
    tools=[weather],
    hooks=[only_rome],
    structured_output_model=Forecast,
    callback_handler=None,
)
forecast = agent("How warm is it in Paris and in Rome?").structured_output
print(forecast.city, forecast.degrees)
