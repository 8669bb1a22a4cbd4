"""A message chooses configured models alone: no name in it runs a file or opens an address."""

import json

import pytest
import pytest_asyncio

from hookline.hooks import hookimpl
from hookline.runtime.user_commands import SlashCommand
from hookline.types import field_of

from ..gateway.mailbox import Letters
from ..tables import each_row
from .gateways import ADA, OWNER, bearer, frame, house

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = """
[gateway]
models = ["openai:gpt-listed"]
[agents.reviewer]
model = "openai:gpt-reviewer"
description = "Reads."
"""
EVIL = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\nturns = ['owned']\n"
NAMES = [
    "scripted:{folder}/evil.py",
    "scripted:evil.py",
    "scripted:./evil.py",
    "SCRIPTED:{folder}/evil.py",
    "scripted:{folder}/../{name}/evil.py",
    "scripted",
    "scripted:",
    " scripted:{folder}/evil.py ",
    "local:{folder}/evil.py",
    "local:/etc/passwd",
    "local:../../evil.gguf",
    "local",
    "{folder}/evil.py",
    "openai:gpt-5",
    "openai:",
    "openai:gpt-listed:x",
    "openai:GPT-LISTED",
    "openai-compatible:http://evil.example/v1",
    "openai-compatible:http://169.254.169.254/",
    "http://evil.example/v1",
    "anthropic:claude",
    "any:ollama/x",
    "any:openai/x",
    "ollama:http://127.0.0.1:11434/x",
    "reviewer",
    "agents.reviewer",
    "file:///etc/passwd",
    "${{HOME}}",
    "$(touch ran)",
    "`touch ran`",
    "; touch ran",
    "default",
    "*",
    "../evil",
    "hookline",
]


class Mail(Letters):
    """A channel of a plugin, which gives nobody a role."""

    name = "mail"

    def __init__(self):
        self.ended = []

    async def start(self, handle):
        self.handle = handle

    async def end(self, inbound, result):
        self.ended.append((field_of(inbound, "message_id"), result.model_output))


class Post:
    def __init__(self):
        self.mail = Mail()

    @hookimpl
    def provide_channels(self, message_handler):
        return [self.mail]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "evil.py").write_text(EVIL)
    async with house(folder, config=CONFIG, plugins=[Post()]) as found:
        found.folder = folder
        yield found


async def model_of(served, session):
    return served.app.sessions.model_of(session)


@each_row("who", ["owner", "user"])
@each_row("way", ["http", "websocket", "completions"])
@each_row("name", NAMES)
async def test_no_other_model_can_be_chosen(served, name, way, who):
    wanted = name.format(folder=served.folder, name=served.folder.name)
    token, session = (OWNER, "web:m") if who == "owner" else (ADA, "user:ada:web:m")
    text = f"/model {wanted}"
    if way == "http":
        said = (await served.say(token, "web:m", text)).json()["text"]
    elif way == "websocket":
        async with served.ws("web:m", token) as socket:
            await socket.send(json.dumps({"type": "message", "text": text}))
            said = (await frame(socket, "end"))["text"]
    else:
        body = {"model": "hookline", "messages": [{"role": "user", "content": text}]}
        headers = {**bearer(token), "X-Hookline-Session": "web:m"}
        answer = await served.ask("POST", "/v1/chat/completions", headers, body)
        said = answer.json()["choices"][0]["message"]["content"]
        asked = {**body, "model": wanted}
        refused = await served.ask("POST", "/v1/chat/completions", headers, asked)
        assert refused.status == (200 if wanted in ("hookline", "scripted") else 404)
    if wanted.strip() == "scripted":  # the default of this gateway, by its own name
        return
    assert "only configured models" in said if who == "owner" else "only an operator" in said
    assert await model_of(served, session) == "scripted"
    assert not (served.folder / "ran").exists()


@pytest.mark.parametrize("name", ["scripted:{folder}/evil.py", "openai:gpt-listed", "scripted"])
async def test_a_channel_that_gives_no_role_has_users_alone(served, name):
    mail = served.gateway.channels["mail"]
    text = f"/model {name.format(folder=served.folder)}"
    number = f"m{len(mail.ended)}"
    await mail.handle(
        {"content": text, "channel": "mail", "chat_id": "1", "sender_id": "1", "message_id": number}
    )
    while not mail.ended or mail.ended[-1][0] != number:
        await __import__("asyncio").sleep(0.01)
    assert "only an operator" in mail.ended[-1][1]


@pytest.mark.parametrize("name", ["openai:gpt-listed", "openai:gpt-reviewer", "scripted"])
async def test_an_operator_chooses_a_configured_model(served, name, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    said = (await served.say(OWNER, "web:chosen", f"/model {name}")).json()["text"]
    assert said == f"the model of this session is {name} now"
    listed = (await served.say(OWNER, "web:chosen", "/model")).json()["text"]
    assert [line.strip() for line in listed.splitlines()[1:]] == [
        "scripted", "openai:gpt-reviewer", "openai:gpt-listed",
    ]  # fmt: skip


async def test_a_user_is_not_offered_what_is_for_operators(served):
    names = {each["name"] for each in (await served.ask("GET", "/api/commands", bearer(ADA))).json()}
    assert "model" not in names
    assert {"help", "new", "cancel", "compact", "think"} <= names
    assert "/model" not in (await served.say(ADA, "web:h", "/help")).json()["text"]


@each_row("name", NAMES)
async def test_a_model_that_a_tape_names_is_used_only_if_it_is_configured(served, name):
    """As on an imported tape, in a fork, or where it was configured once."""
    app, folder = served.app, served.app.workspace
    wanted = name.format(folder=folder, name=folder.name)
    session = f"user:ada:web:tape{NAMES.index(name)}"
    tape = await app.tape(session)
    await tape.append("model", {"model": wanted})
    said = await served.say(ADA, session.removeprefix("user:ada:"))
    assert (said.status, said.json()["text"]) == (200, "answered")
    assert app.sessions.model_of(session) == app.model
    page = await served.ask("GET", f"/api/sessions/{session.removeprefix('user:ada:')}", bearer(ADA))
    assert page.json()["model"] == app.model
    assert not (folder / "ran").exists()


class Closed:
    """A plugin whose commands are for operators, as they are where nothing is said."""

    @hookimpl
    def register_commands(self):
        def plain(app, arguments):
            """A function."""
            return "owned"

        class Made:
            name, help = "made", "An object."
            handler = staticmethod(plain)

        mapping = {"name": "mapping", "help": "A mapping.", "handler": plain}
        return [SlashCommand("record", "A record.", plain), mapping, Made(), plain]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def closed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed")
    async with house(folder, policy="allow", plugins=[Closed()]) as found:
        yield found


TOOLS = ["shell", "read_file", "write_file", "edit_file", "tape_read", "fetch_url", "shell_kill"]


@each_row("name", ["record", "mapping", "made", "plain", *TOOLS])
@each_row("arguments", ["", ' {"command": "touch ran"}', " command=true", "\ttrue"])
@each_row("way", ["http", "openai", "websocket"])
async def test_a_user_calls_no_tool_and_no_plugins_command(closed, name, arguments, way):
    text = f"/{name}{arguments}"
    if way == "websocket":
        async with closed.ws("web:x", ADA) as socket:
            await socket.send(json.dumps({"type": "message", "text": text}))
            said = (await frame(socket, "end"))["text"]
    elif way == "http":
        said = (await closed.say(ADA, "web:x", text)).json()["text"]
    else:
        body = {"model": "hookline", "messages": [{"role": "user", "content": text}]}
        answer = await closed.ask("POST", "/v1/chat/completions", bearer(ADA), body)
        said = answer.json()["choices"][0]["message"]["content"]
    assert said == f"only an operator may give /{name}; see role in [gateway.users]"


async def test_a_user_is_offered_no_tools_and_an_operator_is(closed):
    for token, is_offered in ((ADA, False), (OWNER, True)):
        listed = (await closed.ask("GET", "/api/commands", bearer(token))).json()
        names = {each["name"] for each in listed}
        assert ({"shell", "record", "plain"} <= names) is is_offered
        assert {"help", "new", "cancel", "compact", "think"} <= names
    assert (await closed.say(OWNER, "web:x", "/record")).json()["text"] == "owned"
