from dataclasses import dataclass

from hookline import Agent
from hookline.events import ToolCallEvent


@dataclass
class Forecast:
    city: str
    degrees: int


def weather(city: str) -> str:
    """Measure the temperature in a city."""
    return f"21 degrees in {city}"


agent = Agent("openai:gpt-5", instructions="Be brief.", tools=[weather], output=Forecast)


@agent.on.tool_call(when="weather")
def only_rome(event: ToolCallEvent):
    if event.input["city"] != "Rome":
        return event.deny("only Rome is allowed")


forecast = agent.run_sync("How warm is it in Paris and in Rome?").output
print(forecast.city, forecast.degrees)
