"""A user reaches their own sessions, whatever name, frame or field they send; an operator all."""

import asyncio
import json

import pytest
import pytest_asyncio

from ..tables import each_row
from .gateways import ADA, BOB, OWNER, TOKENS, bearer, frame, house

pytestmark = pytest.mark.asyncio(loop_scope="module")

DIARY = "SECRET-OF-ADA"
OWNERS = "SECRET-OF-THE-OWNER"
TELEGRAM = "SECRET-OF-A-CHAT"
SECRETS = (DIARY, OWNERS, TELEGRAM)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    async with house(tmp_path_factory.mktemp("sessions")) as found:
        assert (await found.say(ADA, "web:diary", DIARY)).status == 200
        assert (await found.say(OWNER, "web:owner", OWNERS)).status == 200
        said = {"content": TELEGRAM, "channel": "telegram", "chat_id": "1", "sender_id": "7"}
        await found.app.process(said)
        yield found


def entries(app, session):
    return app.store().entries(session)


NAMES = [
    "web:diary",
    "user:ada:web:diary",
    "ada:web:diary",
    "web:owner",
    "owner",
    "telegram:1",
    "terminal:chat",
    "user:ada",
    "user:ada:",
    "user::ada:web:diary",
    "user:bob:web:diary",
    "USER:ADA:WEB:DIARY",
    "user:ada:web:diary%23x",
    "user:ada:web:diary%20",
    "%20user:ada:web:diary",
    "user%3aada%3aweb%3adiary",
    ":user:ada:web:diary",
    "..",
    "%2e%2e%2fada:web:diary",
    "..%2f..%2fuser:ada:web:diary",
    "user:ada:web:diary%2f1",
    "%5cuser:ada:web:diary",
    "user:ada:web:diary%00",
    "*",
    "%25",
    "web:%",
    "_",
    "user:%61da:web:diary",
    "' or 1=1 --".replace(" ", "%20"),
    "%ff",
]
ACTIONS = ["read", "read much", "say", "stream", "cancel", "complete", "watch", "talk", "steer"]


async def act(served, token, action, name):
    """Everything that comes back of an action on a session, as text."""
    path, own = f"/api/sessions/{name}", bearer(token)
    match action:
        case "read":
            return (await served.ask("GET", path, own)).text
        case "read much":
            return (await served.ask("GET", f"{path}?limit=1000", own)).text
        case "say" | "steer":
            return (await served.say(token, name, "what was said before?")).text
        case "stream":
            return (await served.say(token, name, "hm", Accept="text/event-stream")).text
        case "cancel":
            return (await served.ask("POST", f"{path}/cancel", own)).text
        case "complete":
            body = {"model": "hookline", "user": name, "messages": [{"role": "user", "content": "hm"}]}
            headers = {**own, "X-Hookline-Session": name}
            said = await served.ask("POST", "/v1/chat/completions", headers, body)
            return said.text + (await served.ask("POST", "/v1/chat/completions", own, body)).text
        case "watch" | "talk":
            return await over_websocket(served, token, name, talks=action == "talk")
    raise AssertionError(action)


async def over_websocket(served, token, name, *, talks):
    heard = []
    try:
        async with served.ws(name, token) as socket:
            frames = [{"type": "ping"}]
            if talks:
                frames = [{"type": "message", "text": "hm"}, {"type": "cancel"}, *frames]
            for each in frames:
                await socket.send(json.dumps(each))
            async with asyncio.timeout(30):
                while '"pong"' not in (said := await socket.recv()):
                    heard.append(said)
    except Exception as error:  # it was not let in, or hung up on
        heard.append(str(error))
    return "\n".join(heard)


@each_row("action", ACTIONS)
@each_row("name", NAMES)
async def test_no_name_leads_a_user_to_the_session_of_another(served, name, action):
    sessions = ["user:ada:web:diary", "web:owner", "telegram:1"]
    before = [len(await entries(served.app, each)) for each in sessions]
    heard = await act(served, BOB, action, name)
    assert not any(secret in heard for secret in SECRETS)
    assert [len(await entries(served.app, each)) for each in sessions] == before
    for info in await served.app.sessions.list():
        assert info.id in sessions or info.id.startswith("user:bob:"), info.id


@pytest.mark.parametrize("user", ["ada", "bob"])
async def test_the_list_has_a_users_own_sessions_by_their_own_names(served, user):
    await served.say(TOKENS[user], f"web:of-{user}", "hi")
    answer = await served.ask("GET", "/api/sessions?limit=1000", bearer(TOKENS[user]))
    lines = {line["id"]: line["preview"] for line in answer.json()}
    assert lines[f"web:of-{user}"] == "hi"
    seen = {DIARY} if user == "ada" else set()
    assert {secret for secret in SECRETS if secret in answer.text} == seen


async def test_the_owner_sees_all_sessions_and_may_go_on_with_each(served):
    answer = await served.ask("GET", "/api/sessions?limit=1000", bearer(OWNER))
    names = {line["id"] for line in answer.json()}
    assert {"user:ada:web:diary", "web:owner", "telegram:1"} <= names
    page = await served.ask("GET", "/api/sessions/user:ada:web:diary", bearer(OWNER))
    assert DIARY in page.text


@pytest.mark.parametrize("stream", [False, True])
async def test_a_user_sees_their_session_under_their_own_name(served, stream):
    headers = {"Accept": "text/event-stream"} if stream else {}
    answer = await served.say(ADA, "web:mine", "hi", **headers)
    assert '"session_id":"web:mine"' in answer.text.replace(" ", "")
    assert "user:ada" not in answer.text
    async with served.ws("web:mine", ADA) as socket:
        assert (await frame(socket, "session"))["session_id"] == "web:mine"


@each_row("field", ["user", "user_id", "sender_id", "role", "claimed_user"])
@each_row("claimed", ["owner", "ada", "operator", "root", ""])
async def test_a_name_in_the_body_is_nobodys_name_in_policy_and_on_the_tape(served, field, claimed):
    seen = []

    def see(event):
        seen.append(event.user_id)

    off = served.app.hooks.register("message:receive", see)
    body = {"model": "hookline", "messages": [{"role": "user", "content": "hi"}], field: claimed}
    answer = await served.ask("POST", "/v1/chat/completions", bearer(BOB), body)
    refused = await served.ask(
        "POST", "/api/sessions/x/messages", bearer(BOB), {"text": "a", field: claimed}
    )
    off()
    assert (answer.status, seen, refused.status) == (200, ["bob"], 422)
    last = max(await served.app.sessions.list(), key=lambda info: info.updated)
    assert last.id.startswith("user:bob:openai:")
    (started,) = [
        e.payload["envelope"]
        for e in (await entries(served.app, last.id))[-10:]
        if e.kind == "turn" and e.payload["status"] == "started"
    ][-1:]
    assert (started["sender_id"], started["role"]) == ("bob", "user")


@pytest.mark.parametrize("key", ["k", "order-17", "", "ada"])
async def test_the_idempotency_key_of_one_user_is_not_that_of_another(served, key):
    name = f"web:once-{key or 'none'}"
    path, body = f"/api/sessions/{name}/messages", {"text": "hi"}
    first = await served.ask("POST", path, {**bearer(ADA), "Idempotency-Key": key}, body)
    other = await served.ask("POST", path, {**bearer(BOB), "Idempotency-Key": key}, body)
    again = await served.ask("POST", path, {**bearer(ADA), "Idempotency-Key": key}, body)
    assert (first.status, other.status, again.status) == (200, 200, 409 if key else 200)


async def test_different_claimed_users_never_share_a_conversation(served):
    for name in ("a/b", "a_b", "a\\b", "a b", "a\x07b", "a#b", "#a", "ä", "a" * 180, "a" * 179 + "/"):
        body = {"model": "hookline", "user": name, "messages": [{"role": "user", "content": name}]}
        assert (await served.ask("POST", "/v1/chat/completions", bearer(ADA), body)).status == 200
    found = [i.id for i in await served.app.sessions.list() if i.id.startswith("user:ada:openai:")]
    assert len({*found}) >= 10
