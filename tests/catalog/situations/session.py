"""The life of a session."""

from contextlib import asynccontextmanager

import pytest

from hookline.agent.compactor import Compacting
from hookline.agent.run import Limits
from hookline.errors import Blocked
from hookline.testing import RecordingChannel

from . import Stage, situation


@situation("session_before_start")
async def a_locked_project_opens_no_session(stage: Stage) -> None:
    (stage.folder / "LOCKED").touch()
    with pytest.raises(Blocked, match="this project is locked"):
        await stage.turn()


@situation("session_start")
async def a_new_session_reads_what_is_left_to_do(stage: Stage) -> None:
    (stage.folder / "TODO.md").write_text("Water the plants.")
    await stage.turn()
    said = stage.model.requests[0].messages[-1]["content"]
    assert said == "Open tasks:\nWater the plants.\n\nhello"


@situation("session_before_switch")
async def the_person_is_asked_before_unsaved_work_is_left(stage: Stage) -> None:
    stage.plugin.dirty = True
    stage.channel = RecordingChannel("no", "yes")
    stage.script("Yes.", repeat=True)
    async with stage.running():
        await stage.say()
        with pytest.raises(Blocked, match="there is unsaved work"):
            await stage.app.sessions.new("s", session_id="next")
        await stage.app.sessions.new("s", session_id="next")
    assert [asked.text for asked in stage.channel.questions] == ["Leave without saving?"] * 2


@situation("session_before_fork")
async def a_project_that_is_released_is_not_forked(stage: Stage) -> None:
    stage.script("Yes.", repeat=True)
    async with stage.running():
        await stage.say()
        (stage.folder / "RELEASE").touch()
        with pytest.raises(Blocked, match="the project is being released"):
            await stage.app.sessions.fork("s")
        (stage.folder / "RELEASE").unlink()
        await stage.app.sessions.fork("s", into="t")


@situation("session_shutdown")
async def a_session_that_ends_badly_is_logged(stage: Stage) -> None:
    with pytest.raises(ZeroDivisionError):
        await stage.turn(then=ZeroDivisionError)
    assert stage.logged() == ["session s: error"]


@situation("session_before_compact")
async def the_users_words_are_the_summary(stage: Stage) -> None:
    async with compacted(stage) as model:
        asked = len(model.requests)
        await stage.app.sessions.compact("s")
        assert len(model.requests) == asked  # no model wrote the summary
        await stage.say("go on")
    assert "message 0\nmessage 1" in model.requests[-1].messages[0]["content"]


@situation("session_compact")
async def the_person_is_told_that_a_model_summarised(stage: Stage) -> None:
    async with compacted(stage):
        await stage.app.sessions.compact("s")
    assert stage.channel.notes == ["The conversation was summarised."]


@situation("session_before_tree")
@situation("session_tree")
async def the_branch_that_is_left_is_named_and_logged(stage: Stage) -> None:
    async with compacted(stage):
        first = (await stage.app.store().entries("s", kinds={"message"}))[0]
        await stage.app.sessions.navigate("s", first.id)
        labels = await (await stage.app.tape("s")).labels()
    assert labels["tried"] == first.id
    assert f"leaf {first.id} instead of" in stage.logged()[0]


@asynccontextmanager
async def compacted(stage: Stage):
    """A running app with a session that is long enough to be compacted."""
    model = stage.script("Yes.", repeat=True)
    stage.app.limits = Limits(compacting=Compacting(keep=1))
    async with stage.running():
        for number in range(4):
            await stage.say(f"message {number}")
        yield model
