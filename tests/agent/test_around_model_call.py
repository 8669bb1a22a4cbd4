"""`around_model_call` changes the model, answers in its place, and never gets around a guard."""

from copy import deepcopy
from dataclasses import replace

import pytest

from hookline.agent.run import Limits
from hookline.agent.segments import WHOLE, Streaming
from hookline.errors import Blocked
from hookline.events import ModelResultEventResult
from hookline.hooks import CallError
from hookline.models import ModelFailed, ModelUnavailable, ScriptedModel
from hookline.models.script import Call, Fault, Turn
from hookline.observe.reference.examples.tool import Patience as Example
from hookline.system.retry import RetryPolicy
from hookline.testing import RecordingChannel
from hookline.types import StreamEvent

FINAL = StreamEvent("final", {"finish_reason": "stop"})


def text(delta):
    return StreamEvent("text", {"delta": delta})


async def stream_of(*events):
    for event in events:
        yield event


@pytest.fixture
def small(app):
    """A second model that is configured."""
    model = ScriptedModel(["the small one answers"], name="small")
    app.models.add(model, "small")
    return model


@pytest.fixture
def judged(app):
    """What `model_result` was asked about; a guard that blocks whatever says SECRET."""
    seen = []

    def guard(event):
        seen.append(event.content)
        if "SECRET" in f"{event.content}{event.tool_calls}":
            return ModelResultEventResult(block=True, reason="secret")
        return None

    app.hooks.register("model_result", guard, guard=True)
    return seen


async def say(app, content="hi", channel=None):
    async with app.running():
        return await app.process({"content": content}, channel)


class TestAnotherModel:
    @pytest.mark.parametrize("how", ["replaced", "changed in place"])
    async def test_the_model_that_the_request_names_answers(self, app, scripted, small, how):
        first = scripted("the first one answers")
        asked = []
        app.hooks.register("model_call", lambda event: asked.append(event.model))

        async def around(request, call_next):
            if how == "replaced":
                return await call_next(replace(request, model="small"))
            request.model = "small"
            return await call_next(request)

        app.hooks.register("around_model_call", around)
        channel = RecordingChannel()
        assert (await say(app, channel=channel)).model_output == "the small one answers"
        assert channel.text == "the small one answers"
        assert (len(first.requests), len(small.requests), asked) == (0, 1, ["small"])

    async def test_the_example_of_the_reference_asks_the_model_that_it_names(self, app, scripted):
        first, local = scripted("the first one answers"), ScriptedModel(["local answers"], name="local")
        app.models.add(local, "local")
        app.hooks.add(Example())
        async with app.running():
            assert (await app.process({"content": "hi"})).model_output == "local answers"
            long = await app.process({"content": "why? " * 40})
        assert long.model_output == "the first one answers"
        assert (len(first.requests), len(local.requests)) == (1, 1)

    async def test_a_fallback_answers_where_the_first_model_fails(self, app, scripted, small, judged):
        scripted(Turn(error=Fault("down", transient=True)))

        async def fall_back(request, call_next):
            async def events():
                try:
                    async for event in await call_next(request):
                        yield event
                except ModelFailed:
                    async for event in await call_next(replace(request, model="small")):
                        yield event

            return events()

        app.hooks.register("around_model_call", fall_back)
        assert (await say(app)).model_output == "the small one answers"
        assert judged == ["the small one answers"]

    async def test_a_retry_asks_the_other_model_again(self, app, scripted):
        app.limits = Limits(retry=RetryPolicy(attempts=3, first=0.001))
        first = scripted("the first one answers")
        failing = ScriptedModel([Turn(error=Fault("down", transient=True)), "at last"], name="small")
        app.models.add(failing, "small")
        app.hooks.register("around_model_call", ask_small)
        assert (await say(app)).model_output == "at last"
        assert (len(first.requests), len(failing.requests)) == (0, 2)

    async def test_a_subagent_can_be_given_another_model(self, app, scripted, small):
        scripted(Turn(tool_calls=[Call("delegate", {"tasks": ["ping it"]})]), "done")

        async def around(request, call_next):
            return await (ask_small if "/" in request.session_id else pass_on)(request, call_next)

        app.hooks.register("around_model_call", around)
        result = await say(app)
        assert (result.model_output, len(small.requests)) == ("done", 1)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("smal", "asks for model 'smal': unknown model 'smal'; did you mean 'small'"),
            ("nowhere:x", "asks for model 'nowhere:x': unknown model"),
        ],
    )
    async def test_a_model_that_is_not_configured_is_a_clear_error(
        self, app, scripted, small, name, message
    ):
        first = scripted("the first one answers")

        async def around(request, call_next):
            return await call_next(replace(request, model=name))

        app.hooks.register("around_model_call", around)
        with pytest.raises(ModelUnavailable, match=f"a handler of around_model_call {message}"):
            await say(app)
        assert first.requests == []

    async def test_what_is_not_a_request_is_refused_with_the_way_to_change_one(self, app, scripted):
        scripted("never")

        async def around(request, call_next):
            return await call_next({"model": "small"})

        app.hooks.register("around_model_call", around)
        with pytest.raises(CallError, match=r"takes a ModelRequest, not dict; .*dataclasses\.replace"):
            await say(app)


async def ask_small(request, call_next):
    return await call_next(replace(request, model="small"))


async def pass_on(request, call_next):
    return await call_next(request)


async def in_its_place(request, call_next):
    return stream_of(text("my "), text("SECRET"), FINAL)


async def tool_in_its_place(request, call_next):
    call = {"id": "c1", "name": "shell", "arguments": '{"command": "echo SECRET"}'}
    return stream_of(StreamEvent("tool_call", call), FINAL)


async def appended(request, call_next):
    async def events(stream):
        async for event in stream:
            if event.kind == "final":
                yield text(" SECRET")
            yield event

    return events(await call_next(request))


async def mutated(request, call_next):
    async def events(stream):
        async for event in stream:
            if event.kind == "text":
                event.data["delta"] = "SECRET"
            yield event

    return events(await call_next(request))


async def left_out(request, call_next):
    """The text becomes a secret where one piece of it is missing."""

    async def events(stream):
        async for event in stream:
            if event.data.get("delta") != "-":
                yield event

    return events(await call_next(request))


async def after_another(request, call_next):
    async for _ in await call_next(request):
        pass
    return await in_its_place(request, call_next)


AROUND_THE_GUARD = [in_its_place, tool_in_its_place, appended, mutated, left_out, after_another]


class TestGuards:
    @pytest.mark.parametrize("segment", [0, 2], ids=["whole", "by segments"])
    @pytest.mark.parametrize("around", AROUND_THE_GUARD)
    async def test_nothing_that_a_handler_makes_of_an_answer_gets_past_a_guard(
        self, app, scripted, judged, around, segment
    ):
        app.limits = Limits(streaming=Streaming(segment, 8) if segment else WHOLE)
        scripted(Turn(pieces=["SEC", "-", "RET", " fine"]), "again")
        app.hooks.register("around_model_call", around)
        channel = RecordingChannel()
        with pytest.raises(Blocked, match="the model's answer was blocked"):
            await say(app, channel=channel)
        assert "SECRET" not in "".join(str(event.data) for event in channel.events)
        async with app.running():
            assert "SECRET" not in str(await app.store().entries("default:default"))

    async def test_an_answer_that_a_handler_began_to_read_goes_on_where_it_stopped(
        self, app, scripted, judged
    ):
        async def read_one(request, call_next):
            stream = await call_next(request)
            await anext(stream)
            return stream

        scripted(Turn(pieces=["one", " two", " three"]))
        app.hooks.register("around_model_call", read_one)
        assert (await say(app)).model_output == " two three"

    async def test_a_guard_rewrites_an_answer_given_in_place_of_the_model(self, app, scripted):
        model = scripted("never asked")
        app.hooks.register("around_model_call", in_its_place)
        app.hooks.register(
            "model_result", lambda e: ModelResultEventResult(content=e.content.replace("SECRET", "…"))
        )
        channel = RecordingChannel()
        assert (await say(app, channel=channel)).model_output == "my …"
        assert "SECRET" not in str(channel.events)
        assert model.requests == []

    @pytest.mark.parametrize("segment", [0, 4])
    async def test_an_answer_that_is_passed_on_is_judged_once(self, app, scripted, judged, segment):
        app.limits = Limits(streaming=Streaming(segment, 0) if segment else WHOLE)
        scripted(Turn("one two three", chunk=2))
        asked = await judgements(app, judged, pass_on)

        async def copied(request, call_next):
            async def events(stream):
                async for event in stream:
                    yield deepcopy(event)

            return events(await call_next(request))

        scripted(Turn("one two three", chunk=2))
        assert await judgements(app, judged, copied) == asked
        assert asked[-1] == "one two three"

    @pytest.mark.parametrize(
        ("around", "content"), [(in_its_place, "my SECRET"), (appended, "model"), (pass_on, "model")]
    )
    async def test_every_answer_is_observed_once(self, app, scripted, around, content):
        scripted("model")
        seen = []
        app.hooks.subscribe(lambda e: seen.append(e.content) if e.type == "model_result" else None)
        app.hooks.register("around_model_call", around)
        await say(app)
        assert seen == [content]


async def judgements(app, judged, around):
    judged.clear()
    off = app.hooks.register("around_model_call", around)
    assert (await say(app)).model_output == "one two three"
    off()
    return list(judged)
