"""The agent's run, its messages, model calls and subagents."""

from datetime import UTC, datetime

import pytest

from hookline.agent.run import Limits
from hookline.errors import Blocked
from hookline.models import ModelFailed
from hookline.models.script import Call, Fault, Turn
from hookline.system.retry import RetryPolicy

from . import Stage, situation

CARD = "4111 1111 1111 1111"


@situation("input")
async def a_ping_is_answered_without_the_model(stage: Stage) -> None:
    stage.model = stage.script("Hello.")
    async with stage.running():
        assert (await stage.say("ping")).outcome == "handled"
        assert stage.channel.notes == ["pong"]
        await stage.say("btw, hello")
    assert stage.model.requests[0].messages[-1]["content"] == "by the way, hello"


@situation("before_agent_start")
async def the_model_knows_what_day_it_is(stage: Stage) -> None:
    await stage.turn()
    assert stage.model.requests[0].system.endswith(f"Today is {datetime.now(UTC).date()}.")


@situation("context")
async def the_model_reads_no_card_number(stage: Stage) -> None:
    await stage.turn(f"my card is {CARD}")
    assert stage.model.requests[0].messages[-1]["content"] == "my card is [card]"


@situation("agent_stop")
async def unfinished_work_is_finished(stage: Stage) -> None:
    result = await stage.turn("write it", "TODO: the rest", "All of it.")
    assert result.model_output.endswith("All of it.")
    assert "Finish what is marked TODO." in stage.model.requests[1].messages[-1]["content"]


@situation("output")
async def no_card_number_gets_out(stage: Stage) -> None:
    with pytest.raises(Blocked, match="the answer contained a card number"):
        await stage.turn("which card?", f"Yours is {CARD}.")


@situation("agent_start")
@situation("agent_end")
@situation("settled")
async def the_diary_knows_who_is_at_work(stage: Stage) -> None:
    seen: list[tuple[set[str], bool]] = []
    stage.app.hooks.register(
        "model_call", lambda event: seen.append((set(stage.plugin.running), stage.plugin.at_rest))
    )
    await stage.turn()
    assert seen == [({"main"}, False)]
    assert (stage.plugin.running, stage.plugin.at_rest) == (set(), True)
    assert stage.logged()[0] == "main is done after 2 messages"


@situation("agent_error")
async def the_person_is_told_what_went_wrong(stage: Stage) -> None:
    with pytest.raises(ModelFailed):
        await stage.turn("hi", Turn(error=Fault("out of order")))
    assert stage.channel.notes == ["That did not work: out of order"]


@situation("save_point")
async def the_end_of_the_turn_is_a_point_for_a_backup(stage: Stage) -> None:
    await stage.turn()
    assert "session s can be backed up" in stage.logged()


@situation("turn_start")
async def a_long_turn_says_that_it_is_still_running(stage: Stage) -> None:
    calls = [Turn(tool_calls=[Call("list_files", {"path": f"{n}"})]) for n in range(20)]
    stage.app.limits = Limits(steps=30)
    await stage.turn("look everywhere", *calls, "Done.")
    assert stage.channel.notes == ["Still at it, after twenty model calls."]


@situation("message_start")
@situation("message_update")
async def the_conversation_is_shown_as_it_goes(stage: Stage) -> None:
    await stage.turn("hello", Turn("One two three.", chunk=4))
    assert stage.plugin.lines == ["user: hello", "assistant: One two three."]


@situation("message_end")
async def every_whole_message_is_logged(stage: Stage) -> None:
    await stage.turn("hello", "Hi.")
    assert stage.logged() == ["user said 5 characters", "assistant said 3 characters"]


@situation("turn_end")
async def the_tools_that_failed_are_named(stage: Stage) -> None:
    await stage.turn("read it", Turn(tool_calls=[Call("read_file", {"path": "none"})]), "Gone.")
    assert "model turn 0: read_file failed" in stage.logged()


@situation("model_call")
async def a_request_beyond_the_budget_is_refused(stage: Stage) -> None:
    stage.plugin.tokens = 100
    stage.script(Turn("Yes.", usage={"input_tokens": 90, "output_tokens": 20}), "More.")
    async with stage.running():
        await stage.say()
        with pytest.raises(Blocked, match="100 tokens are spent"):
            await stage.say()


@situation("model_result")
async def an_answer_that_was_cut_off_is_marked(stage: Stage) -> None:
    cut_off = Turn("And so", finish_reason="length", usage={"output_tokens": 2})
    result = await stage.turn("tell me", cut_off)
    assert result.model_output == "And so […]"
    assert stage.plugin.spent == {"s": 2}


@situation("model_select")
async def the_person_is_warned_of_the_price(stage: Stage) -> None:
    stage.script("Yes.", name="small-1")
    stage.script("Yes.", name="x-large-1")
    stage.app.model = "small-1"
    async with stage.running():
        await stage.app.sessions.choose_model("s", "x-large-1")
    assert stage.channel.notes == ["x-large-1 costs more than small-1."]


@situation("thinking_level_select")
async def the_level_is_logged(stage: Stage) -> None:
    async with stage.running():
        await stage.app.sessions.choose_thinking("s", "high")
    assert stage.logged() == ["thinking high, was None"]


@situation("subagent_start")
async def a_task_is_on_the_list_while_it_runs(stage: Stage) -> None:
    seen: list[dict[str, str]] = []
    stage.app.hooks.register("model_call", lambda event: seen.append(dict(stage.plugin.tasks)))
    stage.script("Read.", repeat=True)
    async with stage.running():
        await stage.app.subagents.run("read everything", parent="s")
    assert [*seen[0].values()] == ["read everything"]
    assert stage.plugin.tasks == {}
    assert stage.logged()[0].endswith(": read everything")


@situation("subagent_end")
async def the_person_is_told_which_task_failed(stage: Stage) -> None:
    delegate = Turn(tool_calls=[Call("delegate", {"tasks": ["read everything"]})], match="do it")
    broken = Turn(error=Fault("broken"), match="read everything")
    await stage.turn("do it", delegate, Turn("It failed.", match="do it"), broken)
    assert len(stage.channel.notes) == 1
    assert stage.channel.notes[0].endswith("could not finish: read everything")


@situation("retry_start")
async def the_wait_is_explained(stage: Stage) -> None:
    stage.app.limits = Limits(retry=RetryPolicy(attempts=4, first=0.001))
    await stage.turn("hi", Turn(error=Fault("busy", transient=True)), "Yes.")
    assert stage.channel.notes[0].startswith("Trying again (1 of ")


@situation("retry_end")
async def an_attempt_that_did_not_help_is_logged(stage: Stage) -> None:
    busy = Turn(error=Fault("busy", transient=True))
    stage.app.limits = Limits(retry=RetryPolicy(attempts=4, first=0.001))
    await stage.turn("hi", busy, busy, "Yes.")
    assert stage.logged() == ["attempt 1 failed too: busy"]
