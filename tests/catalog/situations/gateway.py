"""The gateway, what surrounds a turn, and triggers."""

import asyncio
import sys

import httpx
import pytest

from hookline.events import AudioPart, ToolCallEventResult
from hookline.models.script import Call, Fault, Turn
from hookline.runtime import user_tools as person
from hookline.sandbox.sandbox import probe
from hookline.serve import Gateway, GatewaySettings
from hookline.serve.server import create_app
from hookline.testing import RecordingChannel

from . import Stage, situation


@situation("message:receive")
@situation("message:send")
async def speech_is_transcribed_and_answered_with_speech(stage: Stage) -> None:
    stage.app.home.mkdir(mode=0o700)
    (stage.app.home / "config.toml").write_text("[stt]\nenabled = false\n[tts]\nenabled = false\n")
    async with stage.gateway("Hello.") as post:
        await post.write("", parts=[AudioPart(b"abc")])
    assert stage.app.models.get(stage.app.model).requests[0].messages[-1]["content"] == "(3 bytes)"
    assert [part.data for part in post.parts] == [b"Hello."]


@situation("gateway:startup")
@situation("gateway:stop")
@situation("channel:connect")
@situation("channel:disconnect")
async def the_watch_knows_what_is_served(stage: Stage) -> None:
    async with stage.gateway() as post:
        assert stage.plugin.up == {post.name}
        assert stage.logged() == [f"serving {post.name}"]
    assert stage.plugin.up == set()
    assert stage.logged()[1:] == ["0 errors, 0 cancelled turns"]


@situation("message:cancel")
async def a_stopped_turn_is_confirmed(stage: Stage) -> None:
    async with stage.gateway(Turn("slowly " * 200, chunk=1, delay=0.01)) as post:
        await post.post("take your time")
        while not stage.app.sessions.runs:
            await asyncio.sleep(0.001)
        await post.post("/cancel")
        async with asyncio.timeout(10):
            while "Stopped." not in post.notes:  # the end of the turn may be sent before
                await asyncio.sleep(0.001)
        assert stage.plugin.cancelled == 1


@situation("gateway:error")
async def the_tenth_error_raises_an_alarm(stage: Stage) -> None:
    async with stage.gateway(*[Turn(error=Fault("broken"))] * 10) as post:
        for _ in range(10):
            await post.write("hi")
    assert stage.plugin.errors == {post.name: 10}
    assert "keeps failing" in stage.logged()[1]


@situation("resources_discover")
async def a_skill_beside_the_project_is_found(stage: Stage) -> None:
    skill = stage.folder.parent / "shared-skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: review\ndescription: Review code.\n---\nRead it.\n")
    await stage.turn()
    assert "- review: Review code." in stage.model.requests[0].system


@situation("notification")
async def a_bell_rings_when_an_approval_is_waited_for(stage: Stage) -> None:
    stage.app.hooks.register("tool_call", lambda event: ToolCallEventResult(ask=True), when="shell")
    stage.channel = RecordingChannel("no")
    rung: list[object] = []
    stage.monkeypatch.setattr("builtins.print", lambda *words, **_: rung.append(words[0]))
    await stage.turn("go", Turn(tool_calls=[Call("shell", {"command": "true"})]), "No.")
    assert rung == ["\a"]


@situation("user_bash")
async def the_plugin_answers_one_command_itself(stage: Stage) -> None:
    stage.script("Yes.")
    async with stage.running():
        await person.run_shell(stage.app, "s", "echo hi")
        outcome = await person.run_shell(stage.app, "s", "history")
    assert outcome.content == "echo hi"


@situation("network_request")
async def an_unknown_host_is_asked_about(stage: Stage) -> None:
    if probe()[0] == "none":
        pytest.skip("no sandbox works here")
    asked: list[str] = []

    def reject(request: dict[str, str]) -> str:
        asked.append(request["question"])
        return "reject"

    stage.app.hooks.register("resolve_approval", reject)
    request = "GET http://192.0.2.1/ HTTP/1.1\\r\\n\\r\\n"
    code = f"import socket as s; c = s.create_connection(('127.0.0.1', 3128)); c.sendall(b'{request}')"
    async with stage.running():
        with stage.app.sandbox.launch(
            [sys.executable, "-c", f"{code}; c.recv(99)"],
            cwd=stage.folder, env={}, network=["192.0.2.1"],
        ) as launch:  # fmt: skip
            child = await asyncio.create_subprocess_exec(
                *launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds
            )
            launch.begin()
            await child.wait()
    assert "may" in asked[0]
    assert "192.0.2.1" in asked[0]


@situation("trigger_init")
@situation("trigger_start")
@situation("trigger_stop")
async def the_clock_starts_and_stops_with_the_gateway(stage: Stage) -> None:
    stage.script("The report.", repeat=True)
    async with Gateway(stage.app, settings=GatewaySettings(channels=[])).running():
        assert stage.plugin.emit is not None
        assert not stage.plugin.task.done()
    assert stage.plugin.task.cancelled()


@situation("trigger_routes")
async def the_webhook_makes_a_turn(stage: Stage) -> None:
    model = stage.script("The report.", repeat=True)
    served = create_app(Gateway(stage.app, settings=GatewaySettings(token="t" * 20)))
    async with served.router.lifespan_context(served):
        transport = httpx.ASGITransport(app=served)
        bearer = {"authorization": f"Bearer {'t' * 20}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.post("/report", headers=bearer)).status_code == 202
        while not model.requests:
            await asyncio.sleep(0.001)
    assert model.requests[0].messages[-1]["content"] == "Write the hourly report."
