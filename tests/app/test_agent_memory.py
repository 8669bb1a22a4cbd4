"""An agent that is not used takes little memory, so that a program can have thousands."""

import gc
import tracemalloc

from hookline import Agent
from hookline.events import ToolCallEvent

MOST = 20_000


def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return f"{city}: sun for {days} days"


def guarded_agent() -> Agent[str]:
    agent = Agent("openai:gpt-x", instructions="Be brief.", tools=[weather])

    @agent.on.tool_call(when="weather")
    def no_rome(event: ToolCallEvent):
        return event.deny("not there") if event.input["city"] == "Rome" else None

    return agent


def test_an_idle_agent_with_a_tool_and_a_handler_takes_less_than_20_kb():
    warm = guarded_agent()
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        agents = [guarded_agent() for _ in range(50)]
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(agents) < MOST
    assert warm.hooks is not agents[0].hooks


def test_a_function_that_is_gone_is_not_mistaken_for_a_new_one():
    names = set()
    for number in range(20):  # each may get the address of the one before

        def shout(text: str) -> str:
            return text.upper()

        shout.__name__ = f"shout_{number}"
        names.add(Agent("openai:gpt-x", tools=[shout])._tools[0].name)
        del shout
        gc.collect()
    assert len(names) == 20
