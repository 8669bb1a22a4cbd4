"""LangChain agents, for the conformance suite."""

from typing import Any

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from hookline.bridges.langchain import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    model = ChatOpenAI(model="gpt-5", base_url=asked.url, api_key="test", max_retries=0)
    guard: Any = hookline(asked.hooks, **asked.options)
    agent = create_agent(model, list(asked.tools), middleware=[guard])
    result = agent.invoke({"messages": [{"role": "user", "content": asked.prompt}]})
    return result["messages"][-1].text


HOST = Host("LangChain", run, ["langchain", "langgraph"])
