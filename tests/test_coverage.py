"""Every declared hook is seen firing through the production path, or stands in one list until it is.

`NOT_YET` names, for each hook that nothing fires yet, the capability that will fire it. A hook leaves
the list when a scenario of this file sees it; the list is empty when the gateway is done.
"""

import asyncio
import json
import os
import sys

import pytest
import websockets

from hookline.agent.compactor import Compacting
from hookline.agent.run import Limits
from hookline.cli.onboard import Answers, set_up
from hookline.cli.plugins import brought
from hookline.events import NetworkRequestResult, ToolCallEventResult
from hookline.hookspecs import CATALOG
from hookline.models import ModelFailed
from hookline.models.script import Call, Fault, Turn
from hookline.runtime import user_tools as person
from hookline.runtime.app import Hookline
from hookline.runtime.user_commands import plugin_commands
from hookline.sandbox.sandbox import probe
from hookline.system.retry import RetryPolicy
from hookline.tools import tool
from hookline.tools.registry import Registry

NOT_YET: dict[str, str] = {}
if probe()[0] == "none":
    NOT_YET["network_request"] = "a sandbox of the operating system"


class Scenarios:
    """What the app does in production, with a trace on: which hooks fire."""

    def __init__(self, app: Hookline) -> None:
        self.app = app
        self.seen: set[str] = set()
        app.hooks.trace(lambda dispatch: self.seen.add(dispatch.hook))

    async def a_turn_with_tools(self, scripted) -> None:
        """A tool streams its progress, another breaks, a third wants approval."""
        scripted(
            Turn("Let me see.", tool_calls=[Call("shell", {"command": "echo hi"}), Call("broken")]),
            "Done.",
        )
        self.app.tools.add(broken)
        self.app.hooks.register("tool_call", lambda e: ToolCallEventResult(ask=True), when="shell")
        off = self.app.hooks.register("resolve_approval", lambda request: "approve")
        async with self.app.running():
            await self.app.process({"content": "hello"})
        off()

    async def a_turn_that_is_tried_again(self, scripted) -> None:
        """The model is overloaded for a moment."""
        scripted(Turn(error=Fault("busy", transient=True)), "ok", name="busy")
        self.app.limits = Limits(retry=RetryPolicy(attempts=4, first=0.001))
        async with self.app.running():
            await self.app.process({"content": "hello"})

    async def a_turn_that_goes_in_circles(self, scripted) -> None:
        """The same call brings the same result, three times."""
        again = Turn(tool_calls=[Call("list_files")])
        scripted(again, again, again, "enough", name="circles")
        async with self.app.running():
            await self.app.process({"content": "hello"})

    async def a_turn_that_fails(self, scripted) -> None:
        """The model breaks."""
        scripted(Turn(error=Fault("broken")), name="breaks")
        async with self.app.running():
            with pytest.raises(ModelFailed):
                await self.app.process({"content": "hello"})

    async def a_turn_answered_as_text(self) -> None:
        """A plugin answers without a stream."""
        off = self.app.hooks.register("run_model", lambda: "text")
        async with self.app.running():
            await self.app.process({"content": "hello"})
        off()

    async def a_session_that_goes_places(self, scripted) -> None:
        """It is compacted, navigated, forked and left; its model changes; a task is delegated."""
        scripted("one", "two", "a summary", name="places", repeat=True)
        app, here = self.app, "places"
        app.limits = Limits(compacting=Compacting(keep=1))
        async with app.running():
            message = {"content": "hello", "session_id": here}
            await app.process(message)
            await app.process(message)
            await app.sessions.choose_model(here, "places")
            await app.sessions.choose_thinking(here, "low")
            await person.run_shell(app, here, "true")
            await app.sessions.compact(here)
            first = (await app.store().entries(here))[0]
            await app.sessions.navigate(here, first.id)
            await app.subagents.run("a task", parent=here)
            fork = await app.sessions.fork(here)
            await app.sessions.new(fork)

    async def a_child_that_reaches_a_host(self) -> None:
        """A confined child opens a connection, and a plugin refuses it."""
        refuse = lambda event: NetworkRequestResult(block=True)  # noqa: E731
        off = self.app.hooks.register("network_request", refuse)
        request = "GET http://1.1.1.1/ HTTP/1.1\\r\\n\\r\\n"
        code = (
            f"import socket as s; c = s.create_connection(('127.0.0.1', 3128)); c.sendall(b'{request}')"
        )
        line = [sys.executable, "-c", f"{code}; print(c.recv(99))"]
        async with self.app.running():
            with self.app.sandbox.launch(
                line, cwd=self.app.workspace, env=dict(os.environ), network=["1.1.1.1"]
            ) as launch:
                child = await asyncio.create_subprocess_exec(
                    *launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds
                )
                launch.begin()
                await child.wait()
        off()

    async def a_gateway(self, scripted) -> None:
        """Over a WebSocket a call is approved, a turn is cancelled, and another one fails."""
        from hookline.serve import Gateway, GatewaySettings
        from hookline.serve.server import serve

        call = Turn(tool_calls=[Call("shell", {"command": "true"})])
        slow = Turn("slowly " * 100, chunk=1, delay=0.01)
        scripted(call, "Done.", slow, Turn(error=Fault("broken")), name="served")
        gateway = Gateway(self.app, settings=GatewaySettings(port=0, token="t" * 20))
        started = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(gateway, started=started.set_result))
        await asyncio.wait([serving, started], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving  # why it did not start
        address = f"ws{(await started).removeprefix('http')}ws"
        async with websockets.connect(address, proxy=None, subprotocols=["bearer", "t" * 20]) as socket:

            async def say(until: str, **frame: str) -> dict[str, str]:
                await socket.send(json.dumps(frame))
                while (heard := json.loads(await socket.recv()))["type"] != until:
                    pass
                return heard

            asked = await say("approval", type="message", text="go")
            seen = {"id": asked["id"], "hash": asked["hash"]}
            await say("end", type="answer", answer="approve", **seen)
            await say("text", type="message", text="take your time")
            await say("end", type="cancel")
            await say("error", type="message", text="break")
        gateway.leave()
        await serving

    async def a_gateway_with_a_trigger(self, scripted) -> None:
        """An event waits in a queue when the gateway starts."""
        from hookline.ext.triggers import Triggers
        from hookline.serve import Gateway, GatewaySettings

        scripted("Done.", name="triggered")
        self.app.home.mkdir(exist_ok=True)
        (self.app.home / "config.toml").write_text('[triggers.jobs]\ntype = "queue"\n')
        self.app.config.reload()
        queue = Triggers(self.app)
        async with self.app.running():
            await queue.enqueue("jobs", "some work", "one")
        async with Gateway(self.app, settings=GatewaySettings(channels=[])).running():
            while (await queue.ledger.find("jobs", "one")).state != "done":
                await asyncio.sleep(0.01)
        await queue.close()

    def the_chat(self) -> None:
        """It gathers the commands that plugins provide."""
        plugin_commands(self.app)

    def the_first_setup(self) -> None:
        """It writes what plugins contribute."""
        set_up(self.app, Answers(model="local", yes=True, test=False))

    def the_list_of_plugins(self) -> None:
        """It asks for everything that they bring."""
        brought(self.app)

    def the_command_line(self) -> None:
        """It is built."""
        self.app.create_cli_app()


@tool(side_effects="none", registry=Registry())
def broken() -> str:
    raise ValueError("it broke")


async def test_every_hook_is_seen_firing_or_listed_with_what_will_fire_it(app, scripted):
    scenarios = Scenarios(app)
    await scenarios.a_turn_with_tools(scripted)
    await scenarios.a_turn_that_is_tried_again(scripted)
    await scenarios.a_turn_that_goes_in_circles(scripted)
    await scenarios.a_turn_that_fails(scripted)
    await scenarios.a_turn_answered_as_text()
    await scenarios.a_session_that_goes_places(scripted)
    await scenarios.a_child_that_reaches_a_host()
    await scenarios.a_gateway(scripted)
    await scenarios.a_gateway_with_a_trigger(scripted)
    scenarios.the_chat()
    scenarios.the_first_setup()
    scenarios.the_list_of_plugins()
    scenarios.the_command_line()
    assert set(CATALOG) == scenarios.seen | set(NOT_YET)
    assert not scenarios.seen & set(NOT_YET), "these fire now: take them off the list"
