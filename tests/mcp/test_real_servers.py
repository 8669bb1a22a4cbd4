"""Servers that others wrote: from PyPI over stdio, and over HTTP with the official package."""

import asyncio
import subprocess

import pytest

from hookline.events import ToolExecutionUpdateEvent
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.types import ImagePart, TextPart

from .conftest import alive, brought, call, python

pytestmark = pytest.mark.slow

TIME = python("-m", "mcp_server_time", "--local-timezone=UTC")
GIT = python("-m", "mcp_server_git")


async def test_a_model_calls_a_tool_of_the_time_server(servers):
    servers.write(time=TIME)
    app = servers.app()
    wanted = {"source_timezone": "Asia/Tokyo", "time": "09:00", "target_timezone": "UTC"}
    model = ScriptedModel([Turn(tool_calls=[Call("time.convert_time", wanted)]), "Midnight."])
    app.models.add(model)
    app.model = model.name
    async with app.running():
        result = await app.process({"content": "nine in Tokyo?"})
    assert result.model_output == "Midnight."
    offered = {tool["name"]: tool for tool in model.requests[0].tools}
    assert offered["time.convert_time"]["description"] == "Convert time between timezones"
    assert offered["time.convert_time"]["parameters"]["required"] == [*wanted]
    [answer] = [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]
    assert "T00:00:00+00:00" in answer


async def test_a_result_with_text_and_structured_data_reaches_the_model_once(servers, service):
    port, _ = service()
    web = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer s3cret"}}
    async with servers.running(web=web) as app:
        names = ("towns", "weather", "data")
        said = {name: (await call(app, f"web.{name}")).content for name in names}
    assert said == {"towns": "Ulm\nBern", "weather": "Sunny in Ulm.", "data": '{"town": "Ulm"}'}


async def test_two_servers_side_by_side_and_nothing_left_of_them(servers):
    repository = servers.workspace
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "-b", "main"], cwd=repository, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "First."], cwd=repository, check=True)
    async with servers.running(time=TIME, git=GIT) as app:
        connections = app.hooks.pm.get_plugin("mcp").connections
        pids = [connection.program.pid for connection in connections.values()]
        effects = {name: app.tools.get(name).spec.side_effects.value for name in brought(app)}
        log = await call(app, "git.git_log", repo_path=str(repository))
        now = await call(app, "time.get_current_time", timezone="UTC")
        wrong = await call(app, "time.get_current_time", timezone="Nowhere/Town")
        missing = await call(app, "time.get_current_time")
    assert (wrong.is_error, wrong.ran) == (True, True)
    assert "Invalid timezone" in wrong.content
    assert (missing.is_error, missing.ran) == (True, False)
    assert "timezone: missing; it takes string" in missing.content
    assert effects["git.git_status"] == effects["time.get_current_time"] == "read"
    assert effects["git.git_commit"] in ("write", "external")
    assert "First." in log.content
    assert '"timezone": "UTC"' in now.content
    assert len(pids) == 2
    assert not any(map(alive, pids))
    assert brought(app) == []


async def test_a_service_over_http_with_a_password_from_the_environment(servers, service, monkeypatch):
    port, _ = service()
    monkeypatch.setenv("SERVICE_TOKEN", "s3cret")
    updates = []
    web = {
        "url": f"http://127.0.0.1:{port}/mcp",
        "headers": {"Authorization": "Bearer ${SERVICE_TOKEN}"},
        "prefix": "web",
    }
    app_servers = {"service": web}
    async with servers.running(**app_servers) as app:
        app.hooks.register(
            ToolExecutionUpdateEvent, lambda event: updates.append(event.partial_tool_result.content)
        )
        total = await call(app, "web.add", a=2, b=3)
        picture = await call(app, "web.paint")
        slow = await call(app, "web.slow")
        effects = [app.tools.get(f"web.{name}").spec.side_effects for name in ("add", "paint")]
    assert total.content == "5"
    assert picture.content == [TextPart("a dot"), ImagePart(b"\x89PNG dot", "image/png")]
    assert slow.content == "slow"
    assert updates == ["1 of 2: half"]
    assert effects == ["read", "external"]


async def test_a_service_that_learns_a_tool_brings_it_while_it_runs(servers, service):
    port, _ = service()
    web = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer s3cret"}}
    async with servers.running(web=web) as app:
        before = len(app.tools.schemas())
        await call(app, "web.learn")
        async with asyncio.timeout(20):
            while "web.forget" not in app.tools:
                await asyncio.sleep(0.01)
        assert len(app.tools.schemas()) == before + 1
        assert (await call(app, "web.forget")).content == "forgotten"


async def test_a_service_that_goes_and_comes_back_is_connected_again(servers, service):
    port, process = service()
    web = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer s3cret"}}
    async with servers.running(web=web) as app:
        process.kill()
        process.wait()
        gone = await call(app, "web.add", a=1, b=1)
        assert gone.is_error
        assert "'web'" in gone.content
        service(port)
        async with asyncio.timeout(30):
            while (again := await call(app, "web.add", a=1, b=1)).is_error:
                await asyncio.sleep(0.05)
        assert again.content == "2"
        assert app.failures == []


async def test_a_service_that_wants_another_password_is_reported(servers, service):
    port, _ = service()
    allowed = servers.hostile(tools={"allow": ["fine"]})
    async with servers.running(web={"url": f"http://127.0.0.1:{port}/mcp"}, other=allowed) as app:
        [failure] = app.failures
        names = brought(app)
    assert failure.plugin == "mcp.web"
    assert "the MCP server 'web' refused the connection" in str(failure)
    assert names == ["other.fine"]
