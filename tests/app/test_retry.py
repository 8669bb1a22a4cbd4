"""A model that fails in passing is asked again; what was shown is never taken back."""

import pytest

from hookline.agent.retry import delay
from hookline.agent.run import Limits
from hookline.models import ContextOverflow, ModelFailed
from hookline.models.script import Fault, Turn
from hookline.system.retry import RetryPolicy
from hookline.testing import RecordingChannel


@pytest.fixture
def quick(app):
    app.limits = Limits(retry=RetryPolicy(attempts=3, first=0.001))
    return app


async def say(app, content="hi", channel=None):
    async with app.running():
        return await app.process({"content": content}, channel)


def passing(message="overloaded", **options):
    return Turn(error=Fault(message, transient=True, **options))


async def test_a_passing_failure_is_tried_again(quick, scripted, fired):
    scripted(passing(), passing(), "at last")
    told = []
    quick.hooks.subscribe(
        lambda e: told.append((e.type, e.attempt)) if e.type.startswith("retry") else None
    )
    assert (await say(quick)).model_output == "at last"
    assert told == [("retry_start", 1), ("retry_end", 1), ("retry_start", 2), ("retry_end", 2)]
    assert fired.count("model_call") == 3, "a retry passes the gate too"
    assert "agent_error" not in fired


async def test_after_the_last_retry_the_failure_is_reported(quick, scripted):
    scripted(passing("one"), passing("two"), passing("three"), "never")
    with pytest.raises(ModelFailed, match="three"):
        await say(quick)


async def test_a_lasting_failure_is_not_tried_again(quick, scripted, fired):
    scripted(Turn(error=Fault("wrong key")), "never")
    with pytest.raises(ModelFailed, match="wrong key"):
        await say(quick)
    assert "retry_start" not in fired


async def test_a_stream_cut_off_before_anything_was_shown_is_tried_again(quick, scripted):
    scripted(Turn("", cut_off=True), "whole")
    assert (await say(quick)).model_output == "whole"


async def test_a_stream_that_breaks_in_the_middle_is_reported(quick, scripted, fired):
    scripted(Turn("half an answer", chunk=4, error=Fault("gone", transient=True, after=2)), "never")
    channel = RecordingChannel()
    with pytest.raises(ModelFailed, match="gone"):
        await say(quick, channel=channel)
    assert channel.kinds() == ["text", "text"]
    assert "retry_start" not in fired


def test_a_server_that_says_how_long_to_wait_is_believed():
    error = ModelFailed("busy", transient=True)
    error.retry_after = 7.5
    assert delay(error, 1, RetryPolicy()) == 7.5
    error.retry_after = 1e6
    assert delay(error, 1, RetryPolicy(max=30)) == 30


def test_waiting_doubles_with_jitter():
    for attempt, longest in ((1, 1.0), (2, 2.0), (3, 4.0)):
        waits = {delay(ModelFailed("x"), attempt, RetryPolicy(first=1.0)) for _ in range(50)}
        assert len(waits) > 10
        assert all(longest / 2 <= wait <= longest for wait in waits)


async def test_what_does_not_fit_is_asked_once_more_with_a_summary_of_the_earlier_turns(
    quick, scripted
):
    model = scripted("first", Turn(error=Fault("too long", kind="overflow")), "They met.", "second")
    async with quick.running():
        await quick.process({"content": "a"})
        result = await quick.process({"content": "b"})
        entries = await quick.store().entries(result.session_id)
    assert result.model_output == "second"
    assert [m["content"] for m in model.requests[1].messages] == ["a", "first", "b"]
    last = [m["content"] for m in model.requests[3].messages]
    assert "They met." in last[0]
    assert "first" not in last
    assert last[-1] == "b"
    assert [e.kind for e in entries if e.kind == "anchor"] == ["anchor"]


async def test_what_does_not_fit_is_left_out_where_no_summary_can_be_had(quick, scripted):
    overflow = Turn(error=Fault("too long", kind="overflow"))
    model = scripted("first", overflow, overflow, "second")
    async with quick.running():
        await quick.process({"content": "a"})
        result = await quick.process({"content": "b"})
    assert result.model_output == "second"
    last = [m["content"] for m in model.requests[3].messages]
    assert "left out" in last[0]
    assert last[-1] == "b"


async def test_what_never_fits_is_reported(quick, scripted):
    scripted(Turn(error=Fault("too long", kind="overflow")), "never")
    with pytest.raises(ContextOverflow):
        await say(quick)
