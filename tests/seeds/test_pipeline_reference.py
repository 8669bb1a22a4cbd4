"""The reference of pluggy's pipeline hooks: their kinds, signatures, fallbacks and order."""

from contextlib import asynccontextmanager, contextmanager

import pytest
import typer
from typer.testing import CliRunner

from hookline import AsyncStreamEvents, StreamEvent, content_of, hookimpl
from hookline.hookspecs import CATALOG
from hookline.models import ModelFailed
from hookline.models.script import Call, Fault, Turn
from hookline.serve import Gateway
from hookline.tape import MemoryTapeStore, TapeContext
from hookline.tape.synchronous import METHODS
from hookline.testing import RecordingChannel

from .. import commandline
from ..catalog.situations import Post
from . import add, say

SIGNATURES = {
    "resolve_session": "message",
    "load_state": "message session_id",
    "build_prompt": "message session_id state",
    "run_model": "prompt session_id state",
    "run_model_stream": "prompt session_id state",
    "save_state": "session_id state message model_output",
    "render_outbound": "message session_id state model_output",
    "dispatch_outbound": "message",
    "register_cli_commands": "app",
    "onboard_config": "current_config",
    "on_error": "stage error message",
    "system_prompt": "prompt state",
    "provide_tape_store": "",
    "provide_channels": "message_handler",
    "build_tape_context": "",
}
FIRST = "resolve_session build_prompt run_model run_model_stream provide_tape_store build_tape_context"
BROADCAST = "save_state dispatch_outbound"
SYNC = (
    "register_cli_commands onboard_config provide_channels provide_tape_store build_tape_context "
    "system_prompt"
)
SAMPLES = {
    "message": {"content": "hello"}, "session_id": "s", "state": {}, "prompt": "hello",
    "model_output": "ok", "app": typer.Typer(), "current_config": {}, "stage": "turn",
    "error": ValueError(), "message_handler": None, "agent_id": "main",
}  # fmt: skip


def arguments(hook: str) -> dict:
    """Arguments for every parameter of a hook."""
    return {name: SAMPLES[name] for name in CATALOG[hook].params}


@pytest.fixture
def plain(app):
    """The app without the implementations of its builtin plugin."""
    app.hooks.remove("builtin")
    return app


def stream(*texts: str) -> AsyncStreamEvents:
    async def iterator():
        for text in texts:
            yield StreamEvent("text", {"delta": text})

    return AsyncStreamEvents(iterator())


class TestTheTable:
    @pytest.mark.parametrize("hook", SIGNATURES)
    def test_the_hook_takes_the_documented_arguments(self, app, hook):
        names = SIGNATURES[hook].split()
        scope: dict = {}
        exec(f"def take({', '.join(names)}): return None", scope)
        add(app, **{hook: scope["take"]})  # the registration checks its parameters
        assert set(names) <= {*CATALOG[hook].params}

    @pytest.mark.parametrize("hook", FIRST.split())
    def test_the_first_value_in_priority_order_wins_and_the_rest_do_not_run(self, plain, hook):
        ran = []
        value = {"run_model_stream": stream("newer")}.get(hook, "newer")
        add(plain, **{hook: lambda: ran.append("older") or value})
        add(plain, **{hook: lambda: ran.append("newer") or value})
        add(plain, **{hook: lambda: ran.append("newest")})
        assert plain.hooks.call_first_sync(hook, **arguments(hook)) is value
        assert ran == ["newest", "newer"]

    @pytest.mark.parametrize("hook", BROADCAST.split())
    async def test_every_implementation_runs_and_all_values_are_collected(self, plain, hook):
        older, newer = {"dispatch_outbound": (False, True)}.get(hook, (None, None))
        ran = []
        add(plain, **{hook: lambda: ran.append("older") or older})
        add(plain, **{hook: lambda: None})
        add(plain, **{hook: lambda: ran.append("newer") or newer})
        assert await plain.hooks.call_many(hook, **arguments(hook)) == [newer, None, older]
        assert ran == ["newer", "older"]

    @pytest.mark.parametrize("hook", SYNC.split())
    def test_an_awaitable_of_a_bootstrap_hook_is_skipped_with_a_warning(self, plain, hook, caplog):
        async def later():
            return "later"

        add(plain, "tardy", **{hook: later})
        call = plain.hooks.call_first_sync if hook in FIRST else plain.hooks.call_many_sync
        answer = call(hook, **arguments(hook))
        assert not answer or set(answer) == {None}  # None is of plugins that ship with Hookline
        assert f"hook.async_not_supported hook={hook} adapter=tardy" in caplog.text


class TestResolveSession:
    async def test_without_a_value_it_is_the_channel_and_the_chat(self, app, scripted):
        scripted("ok")
        add(app, resolve_session=lambda message: None)
        assert (await say(app, channel="web", chat_id="7")).session_id == "web:7"

    async def test_the_value_is_the_session(self, app, scripted):
        scripted("ok")
        add(app, resolve_session=lambda message: f"of {message['content']}")
        assert (await say(app, "me")).session_id == "of me"


class TestLoadState:
    async def test_keys_of_higher_priority_overwrite(self, app, scripted):
        seen = []
        add(app, load_state=lambda message, session_id: {"who": "older", "a": 1})
        add(app, load_state=lambda session_id: {"who": "newer", "b": session_id})
        add(app, build_prompt=lambda state: seen.append(dict(state)))
        scripted("ok")
        await say(app, session_id="s")
        assert {key: seen[0][key] for key in ("who", "a", "b")} == {"who": "newer", "a": 1, "b": "s"}


class TestBuildPrompt:
    @pytest.mark.parametrize("answer", ["", [], None])
    async def test_a_falsy_value_falls_back_to_the_content(self, app, scripted, answer):
        add(app, build_prompt=lambda: answer)
        model = scripted("ok")
        await say(app, "the content")
        assert model.requests[0].messages[-1]["content"] == "the content"

    async def test_a_falsy_value_keeps_lower_ones_from_running(self, app, scripted):
        add(app, build_prompt=lambda: pytest.fail("ran"))
        add(app, build_prompt=lambda: "")
        scripted("ok")
        assert (await say(app)).prompt == "hello"

    async def test_content_parts_reach_the_model(self, app, scripted):
        add(app, build_prompt=lambda: [{"type": "text", "text": "a part"}])
        model = scripted("ok")
        await say(app)
        assert model.requests[0].messages[-1]["content"] == [{"type": "text", "text": "a part"}]


class TestTheModelStage:
    async def test_a_text_of_run_model_becomes_a_stream_of_one_chunk(self, app):
        add(app, run_model=lambda prompt, session_id, state: "one two three")
        channel = RecordingChannel()
        result = await say(app, via=channel)
        texts = [event.data["delta"] for event in channel.events if event.kind == "text"]
        assert (result.model_output, texts) == ("one two three", ["one two three"])

    async def test_run_model_answers_where_no_stream_is_implemented(self, plain):
        add(plain, run_model=lambda prompt: f"re: {prompt}")
        assert (await say(plain)).model_output == "re: hello"

    async def test_a_users_stream_wins_over_the_builtin_one(self, app):
        add(app, run_model_stream=lambda prompt, session_id, state: stream("mine ", prompt))
        assert (await say(app)).model_output == "mine hello"

    async def test_an_async_implementation_is_awaited(self, app):
        async def run_model_stream(prompt):
            return stream("later")

        add(app, run_model_stream=run_model_stream)
        assert (await say(app)).model_output == "later"


class TestSaveState:
    async def test_it_gets_the_output_after_success(self, app, scripted):
        saved = []
        add(
            app,
            load_state=lambda: {"a": 1},
            save_state=lambda session_id, state, message, model_output: saved.append(
                (session_id, state["a"], content_of(message), model_output)
            ),
        )
        scripted("ok")
        await say(app, session_id="s")
        assert saved == [("s", 1, "hello", "ok")]

    @pytest.mark.parametrize("stage", ["the model", "a stream", "run_model"])
    async def test_it_runs_after_a_failure_of_the_model_stage(self, app, scripted, stage):
        saved = []

        async def broken():
            yield StreamEvent("text", {"delta": "half "})
            raise RuntimeError("broken")

        def fail():
            raise RuntimeError("broken")

        add(app, save_state=lambda model_output: saved.append(model_output))
        if stage == "the model":
            scripted(Turn(error=Fault("broken")))
        elif stage == "a stream":
            add(app, run_model_stream=lambda: AsyncStreamEvents(broken()))
        else:
            add(app, run_model=fail)
        with pytest.raises((ModelFailed, RuntimeError), match="broken"):
            await say(app)
        assert len(saved) == 1

    @pytest.mark.parametrize("stage", ["resolve_session", "load_state", "build_prompt"])
    async def test_a_failure_before_the_model_stage_skips_it(self, app, scripted, stage):
        def fail():
            raise RuntimeError("broken")

        add(app, save_state=lambda: pytest.fail("ran"), **{stage: fail})
        scripted("ok")
        with pytest.raises(RuntimeError, match="broken"):
            await say(app)


class TestOutbound:
    async def test_all_batches_are_concatenated_in_priority_order(self, plain, scripted):
        add(plain, run_model=lambda: "ok")
        add(plain, render_outbound=lambda model_output: [{"content": f"1 {model_output}"}])
        add(plain, render_outbound=lambda: [{"content": "2"}, {"content": "3"}])
        add(plain, render_outbound=lambda: None)
        add(plain, render_outbound=lambda: {"content": "one envelope is a batch"})
        outbounds = (await say(plain)).outbounds
        assert [out["content"] for out in outbounds] == ["one envelope is a batch", "2", "3", "1 ok"]

    @pytest.mark.parametrize("batch", [None, []])
    async def test_no_batch_means_an_echo_to_the_sender(self, plain, batch):
        add(plain, run_model=lambda: "ok", render_outbound=lambda: batch)
        [outbound] = (await say(plain, channel="web", chat_id="7")).outbounds
        assert (outbound["content"], outbound["channel"], outbound["chat_id"]) == ("ok", "web", "7")

    async def test_each_outbound_goes_to_every_implementation(self, app, scripted):
        sent = []
        add(app, render_outbound=lambda: [{"content": "1"}, {"content": "2"}])
        app.hooks.remove("builtin")
        add(app, run_model=lambda: "ok")
        add(app, dispatch_outbound=lambda message: sent.append(("older", message["content"])) or True)
        add(app, dispatch_outbound=lambda message: sent.append(("newer", message["content"])) or False)
        await say(app)
        assert sent == [("newer", "1"), ("older", "1"), ("newer", "2"), ("older", "2")]


class TestTheCommandLine:
    def test_a_plugin_adds_a_command(self, app):
        def register_cli_commands(app: typer.Typer) -> None:
            @app.command("greet")
            def greet() -> None:
                typer.echo("hi there")

        add(app, register_cli_commands=register_cli_commands)
        result = CliRunner().invoke(app.create_cli_app(), ["greet"])
        assert result.output == "hi there\n"

    def test_an_async_implementation_is_skipped_with_a_warning_and_the_rest_of_it_stays(
        self, app, caplog
    ):
        async def register_cli_commands(app):
            app.command("never")(lambda: None)

        hooks = {"register_cli_commands": register_cli_commands, "system_prompt": lambda: "still here"}
        add(app, "tardy", **hooks)
        result = CliRunner().invoke(app.create_cli_app(), ["never"])
        assert result.exit_code != 0
        assert "hook.async_not_supported hook=register_cli_commands adapter=tardy" in caplog.text
        assert "still here" in app.get_system_prompt("", {})


class TestOnboardConfig:
    def test_fragments_are_merged_deeply_and_each_sees_what_stands(self, app):
        seen = []

        def newer(current_config):
            seen.append(current_config.get("acme"))
            return {"acme": {"b": 2, "c": 3}}

        add(app, onboard_config=lambda: {"acme": {"a": 1, "b": 1}})
        add(app, onboard_config=newer)
        add(app, onboard_config=lambda: None)
        config = app.collect_onboard_config({"mine": True})
        assert (config["mine"], config["acme"]) == (True, {"a": 1, "b": 2, "c": 3})
        assert seen == [{"a": 1, "b": 1}]

    @pytest.mark.parametrize("fragment", ["text", ["a"], 1, True])
    def test_something_that_is_no_dict_raises_a_type_error(self, app, fragment):
        add(app, onboard_config=lambda: fragment)
        with pytest.raises(TypeError):
            app.collect_onboard_config({})


class TestOnError:
    @pytest.mark.parametrize(
        ("hook", "stage"),
        [
            ("resolve_session", "turn"),
            ("load_state", "turn"),
            ("build_prompt", "turn"),
            ("run_model_stream", "run_model"),
            ("save_state", "turn"),
            ("render_outbound", "turn"),
            ("dispatch_outbound", "dispatch"),
        ],
    )
    async def test_it_gets_the_stage_the_error_and_the_message_and_the_error_propagates(
        self, app, scripted, hook, stage
    ):
        def fail():
            raise RuntimeError("broken")

        seen = []
        add(app, **{hook: fail})
        add(
            app,
            on_error=lambda stage, error, message: seen.append(
                (stage, str(error), content_of(message))
            ),
        )
        scripted("ok")
        with pytest.raises(RuntimeError, match="broken"):
            await say(app)
        said = "ok" if hook == "dispatch_outbound" else "hello"
        assert seen == [(stage, "broken", said)]

    async def test_an_observer_that_fails_is_logged_and_masks_nothing(self, app, scripted, caplog):
        def broken(stage):
            raise ZeroDivisionError("the observer")

        def fail():
            raise RuntimeError("the original")

        seen = []
        add(app, on_error=lambda: seen.append("older"))
        add(app, "broken", on_error=broken)
        add(app, on_error=lambda: seen.append("newer"))
        add(app, load_state=fail)
        with pytest.raises(RuntimeError, match="the original"):
            await say(app)
        assert sorted(seen) == ["newer", "older"]
        assert "hook.on_error_failed stage=turn adapter=broken" in caplog.text

    def test_it_fires_at_bootstrap_without_a_message(self, app):
        seen = []

        def fail(app):
            raise RuntimeError("broken")

        add(app, on_error=lambda stage, error, message: seen.append((stage, str(error), message)))
        add(app, register_cli_commands=fail)
        app.create_cli_app()
        assert seen == [("bootstrap", "broken", None)]


class TestSystemPrompt:
    async def test_fragments_are_joined_lowest_priority_first_without_empty_ones(self, app, scripted):
        add(app, system_prompt=lambda prompt, state: f"OLDER {prompt} {state['a']}")
        add(app, system_prompt=lambda: "")
        add(app, system_prompt=lambda: None)
        add(app, system_prompt=lambda: "NEWER", load_state=lambda: {"a": 1})
        model = scripted("ok")
        await say(app)
        assert "OLDER hello 1\n\nNEWER" in model.requests[0].system


class TestTheTapeStore:
    async def test_it_is_resolved_once_for_a_running_scope_with_many_turns(self, app, scripted):
        made = []
        add(app, provide_tape_store=lambda: made.append(MemoryTapeStore()) or made[-1])
        scripted("ok", repeat=True)
        async with app.running():
            assert app.get_tape_store() is not None
            for _ in range(3):
                await app.process({"content": "hello", "session_id": "s"})
        assert len(made) == 1
        assert len([e for e in await made[0].entries("s") if e.kind == "message"]) == 6

    async def test_a_store_may_have_synchronous_methods(self, app, scripted):
        class Plain:
            """A store that forwards to one in memory, without awaiting."""

            def __init__(self):
                self.kept = MemoryTapeStore()

        def forward(name):
            def call(self, *args, **kwargs):
                coroutine = getattr(self.kept, name)(*args, **kwargs)
                try:
                    coroutine.send(None)
                except StopIteration as ended:
                    return ended.value
                raise AssertionError("it waits for something")

            return call

        for name in METHODS:
            setattr(Plain, name, forward(name))
        store = Plain()
        add(app, provide_tape_store=lambda: store)
        scripted("ok")
        await say(app, session_id="s")
        assert [e for e in await store.kept.entries("s") if e.kind == "message"]

    async def test_there_is_none_outside_the_scope(self, app, scripted):
        assert app.get_tape_store() is None
        async with app.running():
            assert app.get_tape_store() is not None
        assert app.get_tape_store() is None

    @pytest.mark.parametrize("kind", ["generator", "async generator", "manager", "async manager"])
    async def test_an_iterator_is_open_while_the_scope_is(self, app, scripted, kind):
        log = []
        store = MemoryTapeStore()

        def generator():
            log.append("open")
            yield store
            log.append("closed")

        async def async_generator():
            log.append("open")
            yield store
            log.append("closed")

        provide = {
            "generator": generator,
            "async generator": async_generator,
            "manager": contextmanager(generator),
            "async manager": asynccontextmanager(async_generator),
        }[kind]
        add(app, provide_tape_store=provide)
        scripted("ok")
        async with app.running():
            await app.process({"content": "hello", "session_id": "s"})
            assert log == ["open"]
            assert await store.entries("s")
        assert log == ["open", "closed"]

    async def test_it_is_closed_after_a_failed_scope(self, app):
        log = []

        def provide_tape_store():
            try:
                yield MemoryTapeStore()
            finally:
                log.append("closed")

        add(app, provide_tape_store=provide_tape_store)
        with pytest.raises(ZeroDivisionError):
            async with app.running():
                raise ZeroDivisionError
        assert log == ["closed"]

    async def test_the_gateway_keeps_the_scope_open_for_all_messages(self, app, scripted):
        made = []
        post = Post()
        add(app, provide_tape_store=lambda: made.append(1) or MemoryTapeStore())
        add(app, provide_channels=lambda message_handler: [post])
        scripted("ok", repeat=True)
        async with Gateway(app, enabled=[post.name]).running():
            await post.write("one")
            await post.write("two")
        assert (made, post.sent) == ([1], ["ok", "ok"])

    def test_run_opens_the_scope_around_its_turn(self, tmp_path, monkeypatch, capsys):
        home = tmp_path / "home"
        hooks = home / "profiles" / "default" / "hooks"
        hooks.mkdir(parents=True)
        home.chmod(0o700)
        (hooks / "store.py").write_text(
            "from hookline.tape import MemoryTapeStore\n"
            "def provide():\n    print('open')\n    yield MemoryTapeStore()\n    print('closed')\n"
            "hooks = [('provide_tape_store', provide)]\n"
        )
        (tmp_path / "turns.toml").write_text('[[turns]]\ntext = "ok"\n')
        hookline = commandline.here(home, tmp_path, monkeypatch, capsys)
        done = hookline("run", "hello", "--model", f"scripted:{tmp_path}/turns.toml")
        assert done.returncode == 0
        printed = (done.stdout + done.stderr).split()
        order = ["open", "ok", "closed"]
        assert [word for word in printed if word in order] == order


class TestChannels:
    def test_of_two_with_one_name_the_first_in_priority_order_stays(self, app):
        class Mail:
            name = "mail"

        older, newer, handlers = Mail(), Mail(), []
        add(app, provide_channels=lambda message_handler: handlers.append(message_handler) or [older])
        add(app, provide_channels=lambda message_handler: [newer])
        channels = app.get_channels(len)
        assert [each for each in channels if each.name == "mail"] == [newer]
        assert handlers == [len]


class TestTheTapeContext:
    async def test_it_decides_what_the_model_reads(self, app, scripted):
        class Shouting(TapeContext):
            def messages(self, *args, **kwargs):
                found = super().messages(*args, **kwargs)
                return [{**message, "content": message["content"].upper()} for message in found]

        add(app, build_tape_context=lambda: Shouting())
        model = scripted("ok", repeat=True)
        async with app.running():
            await app.process({"content": "first", "session_id": "s"})
            await app.process({"content": "second", "session_id": "s"})
        assert model.requests[1].messages[0]["content"] == "FIRST"


class TestOrder:
    def test_the_newest_registration_runs_first_and_the_builtin_plugin_last(self, app):
        add(app, "older", build_prompt=lambda: None)
        add(app, "newer", build_prompt=lambda: None)
        assert app.hooks.report()["build_prompt"] == ["newer", "older", "builtin"]

    async def test_arguments_that_a_signature_leaves_out_are_not_passed(self, app, scripted):
        seen = []
        add(app, save_state=lambda model_output: seen.append(model_output))
        add(app, save_state=lambda: seen.append("none"))
        add(app, save_state=lambda message, session_id: seen.append(session_id))
        scripted("ok")
        await say(app, session_id="s")
        assert seen == ["s", "none", "ok"]

    async def test_an_async_call_takes_both_kinds_of_implementations(self, app, scripted):
        add(app, load_state=lambda: {"a": "now"})

        async def load_state():
            return {"b": "later"}

        add(app, load_state=load_state)
        seen = []
        add(app, build_prompt=lambda state: seen.append((state["a"], state["b"])))
        scripted("ok")
        await say(app)
        assert seen == [("now", "later")]

    async def test_an_error_of_a_hook_propagates_and_fails_the_turn(self, app, scripted):
        class Broken:
            @hookimpl
            def build_prompt(self):
                raise RuntimeError("broken")

        app.hooks.add(Broken())
        scripted("ok")
        with pytest.raises(RuntimeError, match="broken"):
            await say(app)


async def test_the_order_of_a_turn(app, scripted, fired):
    scripted(Turn(tool_calls=[Call("list_files")]), "ok")
    add(app, **{hook: lambda: None for hook in ("load_state", "save_state", "render_outbound")})
    await say(app)
    order = [
        "resolve_session", "load_state", "build_prompt", "run_model_stream", "save_state",
        "render_outbound", "dispatch_outbound",
    ]  # fmt: skip
    assert [name for name in fired if name in order] == order
