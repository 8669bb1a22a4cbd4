"""What plugins bring: models, channels and commands; and shipped plugins that are switched off."""

import asyncio
from types import SimpleNamespace

import pytest

from hookline import hookimpl
from hookline.channel import Channel
from hookline.config import ConfigError
from hookline.errors import LoadFailed, PluginError, UnknownModel
from hookline.ext.mcp.plugin import McpPlugin
from hookline.models import ModelProvider, Models, ScriptedModel
from hookline.runtime.app import Hookline
from hookline.runtime.gateway_channel import ChannelSpec, GatewayChannel
from hookline.runtime.user_commands import SlashCommand
from hookline.serve import Gateway

from ..commandline import here


def says(text):
    return lambda name, settings: ScriptedModel([f"{text} {name}"], repeat=True)


class Brings:
    """A plugin that gives one registration hook what it is made with."""

    def __init__(self, **given):
        self.given = given

    @hookimpl
    def register_models(self):
        return self.given.get("models")

    @hookimpl
    def register_channels(self):
        return self.given.get("channels")

    @hookimpl
    def register_commands(self):
        return self.given.get("commands")


def fresh(tmp_path, settings="", **options):
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(settings)
    made = Hookline(home=home, workspace=tmp_path, **options)
    made.load_hooks(packages=False)
    made.user_home = tmp_path
    return made


class TestModels:
    async def test_a_provider_answers_by_its_name(self, tmp_path):
        app = fresh(tmp_path, model="mine:bird")
        app.hooks.add(Brings(models=[ModelProvider("mine", says("I am"), "mine")]))
        async with app.running():
            assert (await app.process({"content": "hi"})).model_output == "I am bird"
            await app.sessions.choose_model("s", "mine:fish")
            assert (await app.process({"content": "hi", "session_id": "s"})).model_output == "I am fish"

    async def test_a_mapping_will_do_and_is_listed(self, tmp_path):
        app = fresh(tmp_path)
        app.hooks.add(Brings(models=[{"name": "mine", "make": says("x"), "summary": "all mine"}]))
        assert [m.summary for m in app.models.available() if m.name == "mine"] == ["all mine"]

    async def test_the_settings_of_its_table_are_given_to_it(self, tmp_path):
        app = fresh(tmp_path, "[providers.mine]\nvoice = 'low'\n")
        seen = []
        make = lambda name, settings: seen.append(dict(settings)) or ScriptedModel(["x"])  # noqa: E731
        app.hooks.add(Brings(models=[ModelProvider("mine", make)]))
        app.models.get("mine:x")
        assert seen == [{"voice": "low"}]

    @pytest.mark.parametrize("given", [Models(), None], ids=["given models", "the app's own"])
    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ([ModelProvider("openai", says("x"))], "there is a provider of models 'openai' already"),
            ([{"name": "mine"}], "needs name and make"),
            ([ModelProvider("my own:x", says("x"))], "a name without colons and spaces"),
            ([ModelProvider("mine", "nothing")], "a function that makes models"),
            (["mine"], "register_models gives ModelProvider, not 'mine'"),
            ("mine", "which takes list"),
        ],
        ids=["taken", "incomplete", "a colon", "no function", "a name", "no list"],
    )
    async def test_a_plugin_with_a_wrong_provider_stops_the_start(self, tmp_path, given, wrong, told):
        app = fresh(tmp_path, models=given)
        app.hooks.add(Brings(models=wrong), name="wrong")
        with pytest.raises(LoadFailed, match=told):
            async with app.running():
                pass
        assert not app.hooks.pm.has_plugin("wrong")
        with pytest.raises(UnknownModel):
            app.models.get("mine:x")

    async def test_of_two_plugins_with_one_name_the_later_is_left_out_whole(self, tmp_path):
        app = fresh(tmp_path, on_load_error="continue")
        app.hooks.add(Brings(models=[ModelProvider("mine", says("first"))]), name="first")
        other = [ModelProvider("other", says("x")), ModelProvider("mine", says("second"))]
        app.hooks.add(Brings(models=other), name="second")
        async with app.running():
            assert [f.plugin for f in app.failures] == ["second"]
            assert isinstance(app.failures[0].error, PluginError)
        assert "other" not in app.models.providers

    async def test_a_plugin_that_is_taken_out_takes_its_providers_along(self, tmp_path):
        app = fresh(tmp_path)
        app.hooks.add(Brings(models=[ModelProvider("mine", says("x"))]), name="mine")
        app.models.get("mine:x")
        app.plugins.take_out("mine")
        with pytest.raises(UnknownModel):
            app.models.get("mine:x")


class Pigeon(GatewayChannel):
    name = "pigeon"

    def __init__(self, gateway):
        self.gateway, self.sent = gateway, asyncio.Queue()

    async def send(self, outbound):
        await self.sent.put(outbound["content"])
        return True


PIGEON = ChannelSpec("pigeon", Pigeon)


class TestChannels:
    async def test_a_channel_gets_the_services_of_the_gateway(self, tmp_path):
        app = fresh(tmp_path)
        app.models.add(ScriptedModel(["Coo."]))
        app.model = "scripted"
        app.hooks.add(Brings(channels=[PIGEON]))
        gateway = Gateway(app, enabled=["pigeon"])
        async with gateway.running():
            channel = gateway.channels["pigeon"]
            message = {"content": "hi", "channel": "pigeon", "chat_id": "roof", "message_id": "1"}
            assert await channel.gateway.handle(message)
            assert await asyncio.wait_for(channel.sent.get(), 10) == "Coo."
            assert not await channel.gateway.handle(message)
            assert await channel.gateway.approvals.of("roof") == []
            assert not await channel.gateway.cancel("roof")

    @pytest.mark.parametrize(
        ("settings", "default", "enabled"),
        [
            ("", False, False),
            ("", True, True),
            ("[channels.pigeon]\n", False, True),
            ("[channels.pigeon]\nenabled = false\n", False, False),
            ('[gateway]\nchannels = ["web"]\n', True, False),
            ('[gateway]\nchannels = ["pigeon"]\n', False, True),
        ],
    )
    def test_the_settings_or_its_plugin_enable_a_channel(self, tmp_path, settings, default, enabled):
        app = fresh(tmp_path, settings)
        app.hooks.add(Brings(channels=[ChannelSpec("pigeon", Pigeon, default)]))
        assert ("pigeon" in Gateway(app).channels) == enabled

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            (ChannelSpec("web", Pigeon), "brought by plugin 'gateway' and by 'wrong'"),
            ({"name": "pigeon"}, "needs name and make"),
            (ChannelSpec("", Pigeon), "needs a name"),
            (Pigeon, "register_channels gives ChannelSpec"),
        ],
    )
    def test_a_plugin_with_a_wrong_channel_is_left_out(self, tmp_path, wrong, told):
        app = fresh(tmp_path)
        app.hooks.add(Brings(channels=[wrong]), name="wrong")
        assert "web" in Gateway(app).channels
        assert told in str(app.failures[0])

    def test_a_table_for_a_channel_that_does_not_exist_is_an_error(self, tmp_path):
        with pytest.raises(ConfigError, match="unknown channel 'pigeon'"):
            Gateway(fresh(tmp_path, "[channels.pigeon]\n"))


class Recorder(Channel):
    pass


class TestCommands:
    async def test_a_command_is_told_its_session_channel_and_sender(self, tmp_path):
        app = fresh(tmp_path)
        told = []
        where = SlashCommand("where", "Where.", lambda ctx, text: told.append((ctx, text)), False)
        app.hooks.add(Brings(channels=[PIGEON], commands=[where]))
        gateway = Gateway(app, enabled=["pigeon"])
        async with gateway.running():
            channel = gateway.channels["pigeon"]
            message = {"content": "/where now", "channel": "pigeon", "chat_id": "roof"}
            await channel.gateway.handle({**message, "sender_id": "ada", "session_id": "s"})
            await asyncio.wait_for(channel.sent.get(), 10)
        [(ctx, text)] = told
        assert (ctx.session_id, ctx.app, text) == ("s", app, "now")
        assert ctx.identity.user == "ada"
        assert ctx.channel is not None
        await ctx.channel.send({"content": "here", "channel": "pigeon", "chat_id": "roof"})
        assert channel.sent.get_nowait() == "here"

    async def test_a_command_of_the_chat_is_told_them_too(self, tmp_path):
        from hookline.cli.chat.commands import ChatCommands

        app = fresh(tmp_path)
        told = []
        app.hooks.add(Brings(commands=[SlashCommand("where", "Where.", lambda c, _: told.append(c))]))
        chat = Recorder()
        chat.app, chat.session_id, chat.view, chat.call_tool = app, "s", SimpleNamespace(), None
        await ChatCommands(chat).run("where", "")
        [ctx] = told
        assert (ctx.session_id, ctx.channel) == ("s", chat)


class TestSwitchedOff:
    async def test_a_shipped_plugin_can_be_disabled_by_name(self, tmp_path):
        app = fresh(
            tmp_path, '[plugins]\ndisabled = ["mcp", "tools", "telegram"]\n[channels.telegram]\n'
        )
        assert McpPlugin not in app.extensions
        assert {s.name for s in app.plugins.states() if s.state == "disabled"} == {
            "mcp", "tools", "telegram"
        }  # fmt: skip
        assert app.tools.names() == []
        assert "telegram" not in Gateway(app).channels
        async with app.running():
            assert not app.failures

    def test_the_command_line_shows_and_switches_them(self, tmp_path, monkeypatch, capsys):
        hookline = here(tmp_path / "home", tmp_path, monkeypatch, capsys)
        assert "is disabled" in hookline("plugins", "disable", "voice").stdout
        assert "state       disabled" in hookline("plugins", "show", "voice").stdout
        done = hookline("voice", "say", "hi", tmp_path / "x.wav")
        assert done.returncode == 2
        assert "this command needs the plugin 'voice': disabled" in done.stderr
        assert "is enabled" in hookline("plugins", "enable", "voice").stdout

    def test_without_the_plugin_of_the_command_line_it_is_empty(self, tmp_path):
        app = Hookline(home=tmp_path, without=["cli", "proxy"])
        app.load_hooks(packages=False)
        assert app.create_cli_app().registered_commands == []

    def test_settings_of_a_disabled_plugin_are_unknown(self, tmp_path):
        app = fresh(tmp_path, '[plugins]\ndisabled = ["mcp"]\n[mcp]\n')
        assert any("unknown section 'mcp'" in problem for problem in app.config.problems())
        assert app.config.unread() == ["mcp"]
