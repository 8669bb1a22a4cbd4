"""Where tokens come from, and that none which protects nothing is ever taken."""

import asyncio
import json
import os
import stat
import tomllib

import pytest
from pydantic import ValidationError
from websockets.exceptions import ConnectionClosed

from hookline.errors import ConfigError
from hookline.serve import GatewaySettings
from hookline.serve.settings import settings_of
from hookline.serve.token import make_token, own_token, read_token, token_file
from hookline.serve.users import User, Users

from ..commandline import here
from ..tables import each_row
from .gateways import ADA, BOB, OWNER, bearer, frame, house

BAD = {
    "empty": "",
    "a space": " ",
    "blanks": " \t\n ",
    "short": "short",
    "fifteen": "x" * 15,
    "spaces around": f" {'x' * 20} ",
    "a newline": "x" * 20 + "\n",
    "no ASCII": "ä" * 20,
    "a control character": "x" * 20 + "\x07",
    "too long": "x" * 513,
    "no-break spaces": "\u00a0" * 20,
}


@each_row("host", ["127.0.0.1", "0.0.0.0", "::"])
@each_row("where", ["token", "user", "user's table"])
@each_row("token", BAD.values(), ids=BAD)
def test_a_token_that_protects_nothing_is_refused_wherever_it_is_set(token, where, host):
    given = {"token": {"token": token}, "user": {"users": {"ada": token}}}.get(
        where, {"users": {"ada": {"token": token}}}
    )
    with pytest.raises(ValidationError, match="token") as refused:
        GatewaySettings.model_validate({"host": host, **given})
    assert not token.strip() or len(token) < 16 or token not in str(refused.value)


@pytest.mark.parametrize("value", ["", " ", "short"])
@pytest.mark.parametrize("config", ["", '[gateway]\nhost = "0.0.0.0"\n'])
def test_an_empty_variable_is_an_error_that_names_the_setting(app, monkeypatch, value, config):
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text(config)
    monkeypatch.setenv("HOOKLINE_GATEWAY__TOKEN", value)
    app.config.reload()
    with pytest.raises(ConfigError, match=r"gateway\.token: the token"):
        settings_of(app.config)


@pytest.mark.parametrize("value", ["", "  "])
def test_a_reference_to_an_empty_variable_is_an_error_too(app, monkeypatch, value):
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text('[gateway]\nusers = { ada = "${ADA_TOKEN}" }\n')
    monkeypatch.setenv("ADA_TOKEN", value)
    app.config.reload()
    with pytest.raises(ConfigError, match=r"gateway\.users\.ada"):
        settings_of(app.config)


@pytest.mark.parametrize(
    "users",
    [{"ada": OWNER}, {"ada": "x" * 20, "bob": "x" * 20}, {"ada": {"token": OWNER, "role": "operator"}}],
)
def test_two_users_cannot_have_one_token(users):
    with pytest.raises(ValidationError, match="same token"):
        GatewaySettings.model_validate({"token": OWNER, "users": users})


@pytest.mark.parametrize("cors", ["*", "null", "https://*.example"])
def test_an_origin_that_is_any_origin_is_refused(cors):
    with pytest.raises(ValidationError, match="name each origin"):
        GatewaySettings(cors=[cors])


def test_a_token_is_generated_once_and_only_its_owner_can_read_it(tmp_path):
    home = tmp_path / "new" / "home"
    token, is_new = own_token(home)
    assert (len(token), is_new) == (43, True)
    assert stat.S_IMODE(token_file(home).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert own_token(home) == (token, False)
    assert make_token(home) != token
    assert [path.name for path in home.iterdir()] == ["gateway.token"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666])
def test_a_token_that_others_could_read_is_not_used(tmp_path, mode):
    make_token(tmp_path)
    token_file(tmp_path).chmod(mode)
    with pytest.raises(ConfigError, match="--rotate-token"):
        read_token(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n", b"short\n", b"\xff" * 40, b"   \n"])
def test_a_token_file_that_holds_no_token_opens_nothing(tmp_path, content):
    token_file(tmp_path).write_bytes(content)
    token_file(tmp_path).chmod(0o600)
    with pytest.raises(ConfigError):
        own_token(tmp_path)


def test_a_link_in_place_of_the_token_file_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("x" * 30)
    token_file(tmp_path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="not a file of yours"):
        own_token(tmp_path)
    make_token(tmp_path)
    assert (tmp_path / "elsewhere").read_text() == "x" * 30


async def test_without_a_token_in_the_settings_the_generated_one_is_needed(tmp_path):
    async with house(tmp_path, token=None, users={}) as served:
        token = read_token(tmp_path / "home")
        assert (await served.ask("GET", "/api/sessions")).status == 401
        assert (await served.ask("GET", "/api/sessions", bearer(token))).status == 200
        new = make_token(tmp_path / "home")
        assert (await served.ask("GET", "/api/sessions", bearer(new))).status == 401
        await served.gateway.reload()
        assert (await served.ask("GET", "/api/sessions", bearer(new))).status == 200
        assert (await served.ask("GET", "/api/sessions", bearer(token))).status == 401


LEFT = """
[gateway]
token = "the-token-of-the-owner"
[gateway.users.ada]
token = "the-token-of-ada-lovelace"
"""
BOBS = """
[gateway.users.bob]
token = "the-token-of-bob-the-builder"
role = "operator"
"""
REVOKED = {
    "the user is gone": "",
    "the token is another": BOBS.replace("bob-the-builder", "bob-the-second"),
    "the role is another": BOBS.replace("operator", "user"),
}


@pytest.mark.parametrize("change", REVOKED)
async def test_a_revoked_token_keeps_no_connection_open(tmp_path, change):
    settings = tomllib.loads(LEFT + BOBS)["gateway"]
    async with house(tmp_path, config=LEFT + BOBS, **settings) as served:
        async with served.ws("web:x", BOB) as socket, served.ws("web:y", ADA) as other:
            await frame(socket, "session")
            tail = asyncio.create_task(served.ask("GET", "/inspect/api/tail", bearer(BOB)))
            async with asyncio.timeout(30):
                while len(served.gateway.admissions) < 3:
                    await asyncio.sleep(0.001)
            (tmp_path / "home" / "config.toml").write_text(LEFT + REVOKED[change])
            await served.gateway.reload()
            with pytest.raises(ConnectionClosed) as closed:
                await frame(socket, "end")
            assert closed.value.rcvd.code == 4401
            async with asyncio.timeout(30):
                await tail
            await other.send('{"type": "message", "text": "hi"}')
            assert (await frame(other, "end"))["text"] == "answered"
        assert (await served.ask("GET", "/inspect/api/about", bearer(BOB))).status in (401, 403)


async def test_the_token_of_the_command_line_outlasts_a_reload(tmp_path):
    async with house(tmp_path, token=OWNER, users={}) as served, served.ws("web:x", OWNER) as socket:
        await served.gateway.reload()
        await socket.send('{"type": "message", "text": "hi"}')
        assert (await frame(socket, "end"))["text"] == "answered"


def test_the_command_prints_the_link_again_and_makes_a_new_token(tmp_path, monkeypatch, capsys):
    run = here(tmp_path / "home", tmp_path, monkeypatch, capsys)
    first, again = (run("gateway", "--print-token") for _ in range(2))
    assert first.stdout == again.stdout
    assert first.stdout.startswith("http://127.0.0.1:8765/#token=")
    other = run("gateway", "--rotate-token")
    assert other.stdout.startswith("http://127.0.0.1:8765/#token=")
    assert other.stdout != first.stdout


async def test_over_the_unix_socket_its_owner_needs_no_token(tmp_path):
    import asyncio

    path = tmp_path / "gateway.sock"
    async with house(tmp_path, socket=str(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET /api/sessions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert not path.exists()
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2]) == []
    assert os.getuid() == tmp_path.stat().st_uid


# --- users --------------------------------------------------------------------------------------


@each_row("name", ["ada:web", "", "a" * 65, "a b", "a/b", "owner", "ä", "a\n", ":"])
def test_a_user_cannot_have_a_name_that_reaches_into_another_namespace(name):
    with pytest.raises(ValidationError):
        GatewaySettings(users={name: {"token": "t" * 20}})


def test_namespaces_do_not_overlap():
    ada, adam = User("ada"), User("adam")
    assert not ada.reaches(adam.session("x"))
    assert not adam.reaches(ada.session("m:x"))
    assert ada.reaches(ada.session("user:adam:x"))


def test_the_same_time_is_taken_for_each_token():
    users = Users([(User("a"), "a" * 20), (User("b"), "b" * 20)])
    assert users.find("b" * 20) == User("b")
    assert users.find("b" * 19 + "\ud800") is None
