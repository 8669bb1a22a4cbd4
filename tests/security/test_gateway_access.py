"""No route of the gateway answers without a token in its place; each has the level it was given."""

import base64
import re

import pytest
import pytest_asyncio
import websockets
from pydantic import ValidationError
from starlette.routing import Match

from hookline.ext.triggers.webhook import WebhookSettings
from hookline.serve.server import create_app

from ..tables import each_row
from .gateways import ADA, OWNER, bearer, house

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "PREVIEW-OF-THE-OWNER"
HOOK = (
    '[triggers.in]\ntype = "webhook"\nsecret = "0123456789abcdef"\nmessage = "x"\npath = "/hooks/in"\n'
)

PUBLIC = [
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/"),
    ("GET", "/app.js"),
    ("GET", "/favicon.ico"),
    ("GET", "/index.html"),
    ("GET", "/inspect"),
    ("GET", "/inspect/"),
    ("GET", "/inspect/static/app.js"),
    ("POST", "/hooks/in"),
]
FOR_USERS = [
    ("GET", "/api/sessions"),
    ("GET", "/api/sessions/web:owner"),
    ("POST", "/api/sessions/web:owner/messages"),
    ("POST", "/api/sessions/web:owner/cancel"),
    ("GET", "/api/approvals"),
    ("POST", "/api/approvals/ask_1"),
    ("GET", "/api/commands"),
    ("GET", "/v1/models"),
    ("POST", "/v1/chat/completions"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
]
FOR_OPERATORS = [
    ("GET", "/inspect/api/about"),
    ("GET", "/inspect/api/sessions"),
    ("GET", "/inspect/api/session?id=web:owner"),
    ("GET", "/inspect/api/session/events?id=web:owner"),
    ("GET", "/inspect/api/session/turns?id=web:owner"),
    ("GET", "/inspect/api/session/tree?id=web:owner"),
    ("GET", "/inspect/api/session/turn?id=web:owner&number=1"),
    ("GET", "/inspect/api/session/summary?id=web:owner&number=1"),
    ("GET", "/inspect/api/session/entry?id=web:owner&entry=x"),
    ("GET", "/inspect/api/session/dispatch?id=web:owner&number=1&record=x"),
    ("GET", "/inspect/api/hooks"),
    ("GET", "/inspect/api/hooks/fired?name=input"),
    ("GET", "/inspect/api/plugins"),
    ("GET", "/inspect/api/decisions"),
    ("POST", "/inspect/api/replay"),
    ("POST", "/inspect/api/approvals/ask_1"),
    ("GET", "/inspect/api/tail"),
]
BODIES = {
    "/api/approvals/ask_1": {"answer": "approve"},
    "/inspect/api/approvals/ask_1": {"answer": "approve"},
    "/v1/chat/completions": {"model": "hookline", "messages": [{"role": "user", "content": "hi"}]},
    "/inspect/api/replay": {"session": "web:owner"},
}

BASIC = base64.b64encode(f"owner:{OWNER}".encode()).decode()
WITHOUT = {
    "no token": {},
    "a wrong token": bearer("wrong-token-of-some-length"),
    "an empty bearer": {"Authorization": "Bearer "},
    "a bearer without a token": {"Authorization": "Bearer"},
    "an empty header": {"Authorization": ""},
    "the token alone": {"Authorization": OWNER},
    "basic": {"Authorization": f"Basic {BASIC}"},
    "a beginning of the token": bearer(OWNER[:-1]),
    "more than the token": bearer(OWNER + "x"),
    "the token in capitals": bearer(OWNER.upper()),
    "the token twice": bearer(f"{OWNER} {OWNER}"),
    "the token in a cookie": {"Cookie": f"token={OWNER}; hookline.token={OWNER}"},
    "the token in another header": {"X-Api-Key": OWNER, "X-Hookline-Token": OWNER},
    "a name in a header": {"X-Forwarded-User": "owner", "X-Forwarded-For": "127.0.0.1"},
    "a tab instead of a space": {"Authorization": f"Bearer\t{OWNER}"},
    "the token as a protocol": {"Sec-WebSocket-Protocol": f"bearer, {OWNER}"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    async with house(tmp_path_factory.mktemp("access"), config=HOOK) as found:
        assert (await found.say(OWNER, "web:owner", SECRET)).status == 200
        yield found


def body_of(method, path):
    return BODIES.get(path, {"text": "hi"} if method == "POST" else None)


@each_row("way", WITHOUT)
@each_row(("method", "path"), [*FOR_USERS, *FOR_OPERATORS])
async def test_no_answer_without_the_right_token_in_its_place(served, method, path, way):
    answer = await served.ask(method, path, WITHOUT[way], body_of(method, path))
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert SECRET not in answer.text


@each_row("where", ["token", "access_token", "api_key", "authorization"])
@each_row(("method", "path"), [*FOR_USERS, *FOR_OPERATORS])
async def test_a_token_in_the_address_is_not_read(served, method, path, where):
    target = f"{path}{'&' if '?' in path else '?'}{where}={OWNER}"
    assert (await served.ask(method, target, {}, body_of(method, path))).status == 401


@each_row(("method", "path"), FOR_OPERATORS)
async def test_what_is_for_operators_is_refused_to_a_user(served, method, path):
    answer = await served.ask(method, path, bearer(ADA), body_of(method, path))
    assert (answer.status, "operator" in answer.text) == (403, True)
    assert SECRET not in answer.text


@each_row(("method", "path"), FOR_USERS)
async def test_a_user_gets_an_answer_that_has_nothing_of_the_owner(served, method, path):
    answer = await served.ask(method, path, bearer(ADA), body_of(method, path))
    assert answer.status in (200, 404)
    assert SECRET not in answer.text


@each_row(("method", "path"), PUBLIC)
async def test_what_is_public_has_no_details(served, method, path):
    answer = await served.ask(method, path, {}, {} if method == "POST" else None)
    assert answer.status in (200, 307, 401 if path == "/hooks/in" else 200)
    assert SECRET not in answer.text
    assert "www-authenticate" not in answer.headers


async def test_every_route_that_is_served_is_in_one_of_the_tables(served):
    """A route that is new must be put into one of the tables above."""
    routes = create_app(served.gateway).router.routes

    def serves(route, method, path):
        scope = {"type": "http", "method": method, "path": path.partition("?")[0], "headers": []}
        return route.matches(scope)[0] is Match.FULL

    known = [*PUBLIC, *FOR_USERS, *FOR_OPERATORS]
    files = re.compile(r"/[\w.-]+\.(js|css|svg|html)")
    missed = [
        route.path
        for route in routes
        if not files.fullmatch(route.path)
        and route.path != "/ws"
        and not any(serves(route, *each) for each in known)
    ]
    assert missed == []


# --- paths ------------------------------------------------------------------------------------------

TARGETS = ["api/sessions", "api/sessions/web:owner", "v1/models", "metrics", "inspect/api/sessions"]
SPELLINGS = [
    "//{}",
    "/./{}",
    "/../{}",
    "/{}/",
    "/{}//",
    "/{};x=1",
    "/{}.",
    "/{}%20",
    "/{}%00",
    "/{}%2f",
    "/{}\\",
    "/%2e/{}",
    "/%2e%2e/{}",
    "/hooks/in/../../{}",
    "/hooks/in/%2e%2e/%2e%2e/{}",
    "/hooks/in/{}",
    "/hooks/in%2f..%2f..%2f{}",
    "/hooks/in?/{}",
    "/hooks/in;/../{}",
    "/hooks/in/..;/../{}",
    "/health/../{}",
    "/health/%2e%2e/{}",
    "/health%2f..%2f{}",
    "/health;/../{}",
    "/ready/{}",
    "/app.js/../{}",
    "/app.js/{}",
    "/inspect/static/../../{}",
    "/inspect/static/%2e%2e/%2e%2e/{}",
    "/inspect/static/..%2f..%2f{}",
    "/inspect/{}",
    "/static/../{}",
    "/index.html/../{}",
    "http://127.0.0.1/{}",
    "http://evil.example/{}",
    "*",
    "/%61pi/../{}",
]


@each_row("spelling", SPELLINGS)
@each_row("target", TARGETS)
@each_row("method", ["GET", "HEAD", "OPTIONS", "POST"])
async def test_no_spelling_of_a_path_goes_around_the_token(served, method, target, spelling):
    answer = await served.ask(method, spelling.format(target))
    assert SECRET not in answer.text
    assert "web:owner" not in answer.text
    is_public = spelling == "/hooks/in?/{}"  # the query is not the path
    assert answer.status in (0, 400, 401, 403, 404, 405, 421, 307) or is_public


@each_row(
    "path",
    [
        "/",
        "/api",
        "/api/",
        "/api/sessions",
        "/API/x",
        "/v1",
        "/v1/chat",
        "/ws",
        "/inspect",
        "/inspect/api",
        "/health",
        "/ready",
        "/metrics",
        "//",
        "/a//b",
        "/a/..",
        "/../a",
        "/./a",
        "/a/{x}",
        "/{path:path}",
        "/a%2fb",
        "/a b",
        "/a?b",
        "/a#b",
        "/ä",
        "a",
        "",
        "/openapi.json",
        "/telegram/webhook",
    ],
)
async def test_a_webhook_cannot_lie_on_the_gateways_own_paths(path):
    with pytest.raises(ValidationError, match="path"):
        WebhookSettings(type="webhook", message="x", secret="0123456789abcdef", path=path)


# --- WebSockets --------------------------------------------------------------------------------------


@each_row(
    "options",
    [
        {},
        {"subprotocols": ["bearer", "wrong"]},
        {"subprotocols": ["bearer"]},
        {"subprotocols": [OWNER]},
        {"subprotocols": [OWNER, "bearer"]},
        {"subprotocols": ["bearer", OWNER, "x"]},
        {"subprotocols": ["Bearer", OWNER]},
        {"additional_headers": {"Authorization": OWNER}},
        {"additional_headers": {"Cookie": OWNER}},
        {"additional_headers": bearer("")},
        {"additional_headers": bearer("wrong-token-of-some-length")},
    ],
)
@each_row("session", ["web:owner", f"web:owner&token={OWNER}"])
async def test_no_websocket_opens_without_the_right_token(served, session, options):
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with served.ws(session, **options):
            pass
    assert refused.value.response.status_code == 401


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "file://"])
async def test_no_websocket_opens_for_a_page_of_another_site_even_with_the_token(served, origin):
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with served.ws("web:owner", OWNER, origin=origin):
            pass
    assert refused.value.response.status_code == 403


async def test_two_authorization_headers_are_refused(served):
    more = f"Authorization: Bearer {OWNER}\r\n"
    assert (await served.ask("GET", "/api/sessions", bearer("x" * 20), more=more)).status == 400


@each_row(
    "origin",
    ["http://[", "http://[::1", "//{}", "file://{}", "http://{}/", "http://{}#", "x", "", "ü://"],
)
async def test_an_origin_that_is_none_is_refused(served, origin):
    sent = {**bearer(OWNER), "Origin": origin.format(f"127.0.0.1:{served.port}")}
    assert (await served.ask("GET", "/api/sessions", sent)).status == 403


@each_row("name", ["Host", "Origin", "Authorization"])
async def test_a_header_that_decides_comes_once(served, name):
    own = f"127.0.0.1:{served.port}"
    same = {"Host": own, "Origin": f"http://{own}", "Authorization": f"Bearer {OWNER}"}
    for other in (same[name], "http://evil.example"):
        answer = await served.ask("GET", "/api/sessions", same, more=f"{name}: {other}\r\n")
        assert answer.status == 400


@each_row(
    "url", ["file:///etc/passwd", "FILE:/etc/passwd", "/etc/passwd", "ftp://host/x", "", "gopher:x"]
)
async def test_an_image_comes_from_the_web_or_in_the_request(served, url):
    parts = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"model": "hookline", "messages": [{"role": "user", "content": parts}]}
    answer = await served.ask("POST", "/v1/chat/completions", bearer(OWNER), body)
    assert answer.status == 422
