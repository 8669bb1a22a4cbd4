"""An agent written by hand, for the conformance suite: everything that a host has to report."""

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from hookline.bridges import Bridge, BridgeRun, HostAnswer, HostRequest
from hookline.bridges.testing import Host, HostRun


async def agent(bridge: Bridge, url: str, prompt: str, tools: dict[str, Callable[..., Any]]) -> str:
    """Run the agent: ask the model and run its tools until it answers."""
    run = await bridge.start(prompt)
    try:
        messages: list[dict[str, Any]] = [{"role": "user", "content": run.prompt}]
        while True:
            answer = await run.call_model(HostRequest(list(messages), "gpt-5"), asking(url))
            messages.append(
                {"role": "assistant", "content": answer.text, "tool_calls": answer.tool_calls}
            )
            messages += [await result(run, call, tools) for call in answer.tool_calls]
            if answer.tool_calls:
                continue
            refused = await run.refuses_to_stop(answer.text)
            if refused is None:
                return await run.end(answer.text)
            messages.append({"role": "user", "content": refused})
    except BaseException as error:
        await run.fail(error)
        raise


async def result(
    run: BridgeRun, call: dict[str, Any], tools: dict[str, Callable[..., Any]]
) -> dict[str, Any]:
    """Run a tool and return its result as a message."""

    async def invoke(arguments: dict[str, Any]) -> Any:
        value = tools[call["name"]](**arguments)
        return await value if inspect.isawaitable(value) else value

    value = await run.call(call["name"], call["arguments"], invoke, call["id"])
    return {"role": "tool", "tool_call_id": call["id"], "content": str(value)}


def asking(url: str) -> Callable[[HostRequest], Any]:
    """What sends a request to the model."""

    async def ask(request: HostRequest) -> HostAnswer:
        return await asyncio.to_thread(post, url, request)

    return ask


def post(url: str, request: HostRequest) -> HostAnswer:
    """Send a request over HTTP."""
    messages = [wire(message) for message in request.messages]
    if request.system:
        messages.insert(0, {"role": "system", "content": request.system})
    body = {"model": request.model, "messages": messages}
    sent = Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urlopen(sent, timeout=10) as response:
            choice = json.load(response)["choices"][0]
    except HTTPError as error:
        error.close()
        raise RuntimeError(f"the model answered {error.code}") from None
    calls = [
        {"id": c["id"], "name": c["function"]["name"], "arguments": c["function"]["arguments"]}
        for c in choice["message"].get("tool_calls") or ()
    ]
    return HostAnswer(choice["message"]["content"] or "", calls, {}, choice["finish_reason"])


def wire(message: dict[str, Any]) -> dict[str, Any]:
    """A message as the endpoint reads it."""
    if not message.get("tool_calls"):
        return {name: value for name, value in message.items() if name != "tool_calls"}
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def run(asked: HostRun) -> str:
    """Run the agent for a scenario; it shows no text before the end, whether it streams or not."""
    bridge = Bridge(asked.hooks, host="plain", **asked.options)
    if asked.provider_tool:
        bridge.out_of_reach("web_search", "on the servers of the model's provider")
    return asyncio.run(asked.limited(start(bridge, asked)))


async def start(bridge: Bridge, asked: HostRun) -> str:
    """Run the agent, and close the bridge."""

    async def helper(task: str) -> str:
        return await agent(bridge, asked.url, task, tools)

    tools = {tool.__name__: tool for tool in asked.tools}
    given = {"helper": helper} if asked.subagent else tools
    try:
        return await agent(bridge, asked.url, asked.prompt, given)
    finally:
        await bridge.close()


HOST = Host("a loop by hand", run, delegation=("helper", {"task": "Remove it."}))
