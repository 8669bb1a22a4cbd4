"""The turn pipeline."""

import asyncio
import json

import pytest
import typer
from typer.testing import CliRunner

from hookline.cli.onboard import Answers, set_up
from hookline.models.script import Turn
from hookline.serve import Gateway
from hookline.tape import SQLiteStore
from hookline.testing import RecordingChannel

from . import Stage, situation


@situation("resolve_session")
async def messages_of_a_thread_share_a_session(stage: Stage) -> None:
    result = await stage.turn(thread_id=7)
    assert result.session_id == "thread:7"
    assert (await stage.turn()).session_id == "s"


@situation("admit_message")
async def a_correction_reaches_the_running_turn(stage: Stage) -> None:
    model = stage.script(Turn("One moment. " * 5, chunk=1, delay=0.002), "The other one.")
    async with stage.running():
        running = asyncio.create_task(stage.say("take this one"))
        while not model.requests:
            await asyncio.sleep(0.001)
        assert (await stage.say("no, the other one")).outcome == "steered"
        assert (await running).model_output.endswith("The other one.")


@situation("load_state")
@situation("save_state")
async def the_name_is_kept_for_the_next_turn(stage: Stage) -> None:
    off = stage.app.hooks.register("load_state", lambda session_id: {"user": "Ann"})
    await stage.turn()
    assert json.loads((stage.folder / "s.json").read_text()) == {"user": "Ann"}
    off()
    await stage.turn()
    assert stage.model.requests[0].messages[-1]["content"] == "Ann writes: hello"


@situation("build_prompt")
async def the_model_reads_who_is_speaking(stage: Stage) -> None:
    await stage.turn()
    assert stage.model.requests[0].messages[-1]["content"] == "someone writes: hello"


@situation("run_model_stream")
async def the_plugin_answers_in_place_of_the_model(stage: Stage) -> None:
    channel = RecordingChannel()
    async with stage.running():
        result = await stage.app.process({"content": "hello there"}, channel)
    assert result.model_output.split() == channel.text.split() == ["hello", "there"]
    assert len(channel.kinds("text")) == 2


@situation("run_model")
async def one_text_is_the_answer(stage: Stage) -> None:
    assert (await stage.turn()).model_output == "We are closed until Monday."


@situation("render_outbound")
async def the_answer_and_a_copy_go_out(stage: Stage) -> None:
    result = await stage.turn("hi", "Dear Ann.", **{"from": "ann@example.org"})
    assert [out["to"] for out in result.outbounds] == ["ann@example.org", "archive@example.org"]


@situation("dispatch_outbound")
async def mail_is_taken_and_the_rest_left_to_others(stage: Stage) -> None:
    await stage.turn("hi", "Dear Ann.", **{"from": "ann@example.org"})
    assert [out["content"] for out in stage.plugin.outbox] == ["Dear Ann.", "Dear Ann."]


@situation("on_error")
async def what_cannot_be_sent_is_noted(stage: Stage) -> None:
    def refuse(message: object) -> bool:
        raise OSError("no route")

    stage.app.hooks.register("dispatch_outbound", refuse)
    with pytest.raises(OSError, match="no route"):
        await stage.turn(**{"from": "ann@example.org"})
    assert stage.logged()[0] == "not delivered to ann@example.org: no route"


@situation("system_prompt")
async def the_model_is_asked_for_the_users_language(stage: Stage) -> None:
    stage.app.hooks.register("load_state", lambda session_id: {"language": "Latin"})
    await stage.turn()
    assert "Answer in Latin." in stage.model.requests[0].system


@situation("provide_tape_store")
async def the_tape_is_kept_in_the_plugins_file(stage: Stage) -> None:
    await stage.turn()
    store = SQLiteStore(stage.folder / "tapes.db")
    assert [info.id for info in await store.sessions()] == ["s"]
    await store.close()
    assert not (stage.app.home / "tape.db").exists()


@situation("build_tape_context")
async def the_model_reads_the_last_messages_only(stage: Stage) -> None:
    model = stage.script("Yes.", repeat=True)
    async with stage.running():
        for number in range(25):
            await stage.say(f"message {number}")
    contents = [message["content"] for message in model.requests[-1].messages]
    assert contents[:1] + contents[-1:] == ["message 4", "message 24"]
    assert len(contents) == 41


@situation("provide_channels")
async def the_gateway_serves_the_channel(stage: Stage) -> None:
    stage.script("Dear Ann.")
    async with Gateway(stage.app, enabled=["mail"]).running() as gateway:
        mailbox = gateway.channels["mail"]
        await mailbox.receive({"content": "hi", "channel": "mail", "chat_id": "ann", "from": "ann"})
        while len(stage.plugin.outbox) < 2:
            await asyncio.sleep(0.001)
    assert [out["to"] for out in stage.plugin.outbox] == ["ann", "archive@example.org"]


@situation("register_cli_commands")
async def the_command_line_has_the_command(stage: Stage) -> None:
    cli: typer.Typer = stage.app.create_cli_app()
    done = CliRunner().invoke(cli, ["where"])
    assert done.output == f"{stage.folder}\n"


@situation("onboard_config")
async def onboard_writes_the_proposed_settings(stage: Stage) -> None:
    set_up(stage.app, Answers(model="local", yes=True, test=False))
    assert '[mail]\nhost = "localhost"\nport = 25' in (stage.app.home / "config.toml").read_text()
