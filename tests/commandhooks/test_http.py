"""HTTP hooks: the same JSON posted to a real server, and whatever a server may do wrong."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from hookline.events import ToolCallEvent
from hookline.ext.command_hooks.addresses import refusal


@asynccontextmanager
async def serving(answer):
    """A server on this machine; gives its address and what it was sent."""
    sent = []

    async def handle(request):
        sent.append((dict(request.headers), await request.json()))
        made = answer(request)
        return await made if asyncio.iscoroutine(made) else made

    server = web.Application()
    server.router.add_post("/hook", handle)
    runner = web.AppRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}/hook", sent
    finally:
        await runner.cleanup()


def ask(places, url: str, **more) -> None:
    hook = {"type": "http", "url": url, **more}
    places.write({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]})


async def judged(app):
    async with app.running():
        event = ToolCallEvent("c1", "shell", {"command": "ls"})
        return await app.hooks.call(event, app.context("s"))


async def test_the_payload_is_posted_and_the_answer_decides(app, places):
    specific = {"permissionDecision": "deny", "permissionDecisionReason": "says the server"}
    async with serving(lambda r: web.json_response({"hookSpecificOutput": specific})) as (url, sent):
        ask(places, url)
        assert (await judged(app)).reason == "says the server"
    ((headers, given),) = sent
    assert headers["Content-Type"] == "application/json"
    assert (given["tool_name"], given["tool_input"]) == ("Bash", {"command": "ls"})


async def test_an_empty_answer_is_no_objection(app, places):
    async with serving(lambda r: web.Response()) as (url, _):
        ask(places, url, on_failure="deny")
        assert (await judged(app)).allowed


async def test_headers_are_filled_in_from_the_environment(app, places, monkeypatch):
    monkeypatch.setenv("HOOK_TOKEN", "s3cret")
    async with serving(lambda r: web.Response()) as (url, sent):
        ask(places, url, headers={"Authorization": "Bearer ${HOOK_TOKEN}"})
        await judged(app)
    assert sent[0][0]["Authorization"] == "Bearer s3cret"


async def test_variables_that_are_not_listed_stay_here(app, places, monkeypatch):
    monkeypatch.setenv("HOOK_TOKEN", "s3cret")
    monkeypatch.setenv("OTHER", "private")
    headers = {"X-Both": "$HOOK_TOKEN/${OTHER}"}
    async with serving(lambda r: web.Response()) as (url, sent):
        ask(places, url, headers=headers, allowedEnvVars=["HOOK_TOKEN"])
        await judged(app)
    assert sent[0][0]["X-Both"] == "s3cret/"


async def test_a_variable_that_is_missing_is_a_failure_that_names_it(app, places, said):
    async with serving(lambda r: web.Response()) as (url, sent):
        ask(places, url, headers={"X": "${NO_SUCH_VARIABLE}"})
        assert (await judged(app)).allowed
    assert sent == []
    assert "${NO_SUCH_VARIABLE}, which is not set" in said[0]


def redirect(request):
    raise web.HTTPFound("http://127.0.0.1:9/elsewhere")


async def never(request):
    await asyncio.sleep(60)


WRONG = {
    "a server error": (lambda r: web.Response(status=500), "status 500"),
    "another place": (redirect, "status 302"),
    "no end": (never, "did not answer within 0.5 s"),
    "too much": (lambda r: web.Response(body=b"x" * 1_500_000), "more than 1,000,000 bytes"),
    "no JSON": (lambda r: web.Response(text="{oops"), "not JSON"),
}


@pytest.mark.parametrize(("answer", "told"), WRONG.values(), ids=WRONG.keys())
async def test_a_server_that_fails_blocks_nothing_unless_it_guards(app, places, said, answer, told):
    async with serving(answer) as (url, _):
        ask(places, url, timeout=0.5 if "within" in told else 30)
        assert (await judged(app)).allowed
        assert told in said[0]


@pytest.mark.parametrize(("answer", "told"), WRONG.values(), ids=WRONG.keys())
async def test_a_guard_that_fails_denies(app, places, answer, told):
    async with serving(answer) as (url, _):
        ask(places, url, timeout=0.5 if "within" in told else 30, on_failure="deny")
        verdict = await judged(app)
    assert verdict.denied
    assert told in verdict.reason


async def test_a_server_that_is_not_there_is_told(app, places, said):
    async with serving(lambda r: web.Response()) as (url, _):
        pass
    ask(places, url)
    assert (await judged(app)).allowed
    assert "cannot be reached" in said[0]


@pytest.mark.parametrize(
    ("url", "fine"),
    [
        ("https://example.com/hook", True),
        ("http://localhost:8080/", True),
        ("http://[::1]/", True),
        ("http://127.8.8.8/", True),
        ("http://example.com/", False),
        ("http://127.0.0.1.example.com/", False),
        ("http://10.0.0.1/", False),
        ("ftp://localhost/", False),
        ("https://ada:secret@example.com/", False),
        ("http://localhost:port/", False),
        ("", False),
    ],
)
def test_addresses_are_encrypted_or_on_this_machine(url, fine):
    assert (refusal(url) is None) is fine


async def test_the_answer_may_be_json_for_every_event(app, places, scripted):
    specific = {"hookEventName": "UserPromptSubmit", "additionalContext": "from afar"}
    async with serving(lambda r: web.json_response({"hookSpecificOutput": specific})) as (url, sent):
        places.write({"UserPromptSubmit": [{"hooks": [{"type": "http", "url": url}]}]})
        scripted("done")
        async with app.running():
            result = await app.process({"content": "hi"})
    assert result.prompt == "from afar\n\nhi"
    assert json.dumps(sent[0][1]["prompt"]) == '"hi"'
