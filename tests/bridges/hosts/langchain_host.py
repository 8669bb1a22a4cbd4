"""LangChain agents, for the conformance suite."""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

from hookline.bridges.langchain import hookline
from hookline.bridges.testing import Host, HostRun


def run(asked: HostRun) -> str:
    """Run an agent."""
    model = ChatOpenAI(model="gpt-5", base_url=asked.url, api_key="test", max_retries=0)
    guard: Any = hookline(asked.hooks, **asked.options)
    tools: list[Any] = list(asked.tools)
    if asked.provider_tool:
        tools.append({"type": "web_search"})
    agent = create_agent(model, tools, middleware=[guard])
    if asked.subagent:
        agent = create_agent(model, [helper(agent)], middleware=[guard])
    state: Any = {"messages": [{"role": "user", "content": asked.prompt}]}
    if asked.stream:
        return "\n".join(shown(agent, state))
    if asked.cancel is not None:
        return asyncio.run(asked.limited(agent.ainvoke(state)))
    return agent.invoke(state)["messages"][-1].text


def helper(agent: Any) -> Any:
    """An agent as a tool."""

    def helper(task: str) -> str:
        """Do a task."""
        state = {"messages": [{"role": "user", "content": task}]}
        return agent.invoke(state)["messages"][-1].text

    return helper


def shown(agent: Any, state: Any) -> list[str]:
    """Every text that a stream shows, in tokens and in updates of the state."""
    texts: list[str] = []
    for mode, data in agent.stream(state, stream_mode=["messages", "updates", "values"]):
        if mode == "messages":
            texts.append(data[0].text)
        states = data.values() if mode == "updates" else [data] if mode == "values" else []
        for each in states:
            messages = (each or {}).get("messages", ())
            texts += [message.text for message in messages if isinstance(message, AIMessage)]
    return texts


HOST = Host("LangChain", run, ["langchain", "langgraph"], ("helper", {"task": "Remove it."}))
