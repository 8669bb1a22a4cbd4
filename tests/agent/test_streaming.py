"""What is held back of an answer while it streams is seen by nobody until it was judged."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.agent.run import Limits
from hookline.agent.segments import HeldBack, Streaming
from hookline.errors import Blocked, Unjudged
from hookline.events import ModelResultEventResult, OutputEventResult
from hookline.models import ModelFailed
from hookline.models.script import Call, Fault, Turn
from hookline.runtime.app import Hookline
from hookline.system.retry import RetryPolicy
from hookline.testing import RecordingChannel
from hookline.types import StreamEvent, ToolCall

SECRET = re.compile(r"sk-[0-9]{6}")


class Watch(RecordingChannel):
    """Everybody who might see a part of an answer."""

    def __init__(self, app: Hookline) -> None:
        super().__init__()
        self.app = app
        self.shown = self.events
        self.updates: list[str] = []
        self.fired: list[object] = []
        self.dispatches: list[object] = []
        self.tape: list[object] = []
        app.hooks.register("message_update", lambda e: self.updates.append(e.message["content"]))
        app.hooks.subscribe(lambda e: self.fired.append(repr(e)))
        app.hooks.trace(lambda d: self.dispatches.append(repr((d.arguments, d.value, d.calls))))

    async def say(self, content="hi"):
        async with self.app.running():
            try:
                return await self.app.process({"content": content}, self)
            finally:
                self.tape = await self.app.store().entries("default:default")

    def assert_unseen(self, text: str) -> None:
        for name in ("shown", "updates", "fired", "dispatches", "tape"):
            assert text not in str(getattr(self, name)), f"{name} has {text!r}"


@pytest.fixture
def by_segments(app):
    def choose(segment, overlap=0, **limits):
        app.limits = Limits(streaming=Streaming(segment, overlap), **limits)
        return Watch(app)

    return choose


def redact(event):
    return ModelResultEventResult(content=SECRET.sub("[key]", event.content))


def block_at(text):
    return lambda e: ModelResultEventResult(block=text in e.content, reason="not for you")


async def test_an_answer_is_judged_with_its_prefix_and_shown_segment_by_segment(
    app, scripted, by_segments
):
    watch = by_segments(4)
    scripted(Turn("one two three", chunk=4))
    judged = []

    def judge(event):
        judged.append((event.content, event.finish_reason, "".join(watch.updates)))

    app.hooks.register("model_result", judge, guard=True)
    assert (await watch.say()).model_output == "one two three"
    assert judged == [
        ("one ", None, ""),
        ("one two ", None, "one "),
        ("one two thre", None, "one two "),
        ("one two three", "stop", "one two thre"),
    ]
    assert watch.updates == ["one ", "two ", "thre", "e"]
    assert watch.text == "one two three"


async def test_a_segment_has_at_least_its_size(app, scripted, by_segments):
    watch = by_segments(5)
    scripted(Turn("abcdefghijkl", chunk=2))
    sizes = []
    app.hooks.register("model_result", lambda e: sizes.append(len(e.content)))
    await watch.say()
    assert sizes == [6, 12]


async def test_without_a_segment_the_whole_answer_is_judged_once(app, scripted, by_segments):
    watch = by_segments(0)
    scripted(Turn("one two three", chunk=4))
    judged = []
    app.hooks.register("model_result", lambda e: judged.append((e.content, "".join(watch.updates))))
    await watch.say()
    assert judged == [("one two three", "")]
    assert watch.updates == ["one ", "two ", "thre", "e"], "and goes on as it came"


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("segment", [0, 1, 4, 50])
async def test_a_secret_split_over_chunks_and_segments_is_redacted(
    app, scripted, by_segments, chunk, segment
):
    watch = by_segments(segment, overlap=9)
    scripted(Turn("the key is sk-123456, keep sk-654321 safe", chunk=chunk))
    app.hooks.register("model_result", redact, guard=True)
    result = await watch.say()
    assert result.model_output == "the key is [key], keep [key] safe"
    assert watch.text == "".join(watch.updates) == result.model_output
    for part in ("sk-", "123456", "654321"):
        watch.assert_unseen(part)


async def test_a_change_of_what_went_out_cuts_the_answer_off(app, scripted, by_segments):
    watch = by_segments(4)
    scripted(Turn("key: sk-123456 and the rest", chunk=4))
    app.hooks.register("model_result", redact, guard=True)
    with pytest.raises(Blocked, match="changed text that had gone out"):
        await watch.say()
    assert watch.text == "key: sk-1234"
    watch.assert_unseen("56 and")


async def test_a_change_of_a_segment_stays_when_the_next_is_judged(app, scripted, by_segments):
    watch = by_segments(4)
    scripted(Turn("wry good wry!", chunk=4))
    seen = []

    def soften(event):
        seen.append(event.content)
        return ModelResultEventResult(content=event.content.replace("wry", "b**"))

    app.hooks.register("model_result", soften, guard=True)
    assert (await watch.say()).model_output == "b** good b**!"
    assert seen == ["wry ", "b** good", "b** good wry", "b** good b**!"]
    watch.assert_unseen("wry")


async def test_a_block_cuts_mid_stream_and_stops_the_model(app, scripted, by_segments):
    watch = by_segments(4)
    scripted(Turn("fine SECRET and a tail", chunk=5, tool_calls=[Call("shell", {"command": "wipe"})]))
    app.hooks.register("model_result", block_at("SECRE"), guard=True)
    with pytest.raises(Blocked, match="not for you"):
        await watch.say()
    assert watch.text == "".join(watch.updates) == "fine "
    for part in ("SECRE", "tail", "wipe"):
        watch.assert_unseen(part)


@pytest.mark.parametrize("segment", [0, 5])
async def test_a_guard_that_raises_denies(app, scripted, by_segments, segment):
    watch = by_segments(segment)
    scripted(Turn("fine SECRET tail", chunk=5))

    def judge(event):
        if "SECRE" in event.content:
            raise RuntimeError("out of order")

    app.hooks.register("model_result", judge, guard=True)
    with pytest.raises(Blocked, match="out of order"):
        await watch.say()
    assert watch.text == ("fine " if segment else "")
    watch.assert_unseen("SECRE")
    watch.assert_unseen("tail")


async def test_what_a_first_handler_left_and_a_second_took_out_is_not_traced(
    app, scripted, by_segments
):
    watch = by_segments(0)
    scripted("sk-123456 and card visa-7")
    app.hooks.register("model_result", redact)
    app.hooks.register(
        "model_result", lambda e: ModelResultEventResult(content=e.content.replace("visa-7", "[card]"))
    )
    assert (await watch.say()).model_output == "[key] and card [card]"
    watch.assert_unseen("123456")
    watch.assert_unseen("visa-7")


async def test_blocked_tool_calls_are_not_traced(app, scripted, by_segments):
    watch = by_segments(0)
    scripted(Turn("I look", tool_calls=[Call("shell", {"command": "cat secret"})]))
    app.hooks.register("model_result", lambda e: ModelResultEventResult(block=True))
    with pytest.raises(Blocked):
        await watch.say()
    watch.assert_unseen("cat secret")
    watch.assert_unseen("I look")


async def test_a_stream_that_breaks_off_after_a_part_was_judged_is_denied_for_good(
    app, scripted, by_segments
):
    watch = by_segments(2, overlap=10, retry=RetryPolicy(attempts=2, first=0.001))
    scripted(Turn("hidden, all of it", chunk=6, cut_off=True), "never")
    app.hooks.register("model_result", lambda e: None, guard=True)
    with pytest.raises(Unjudged):
        await watch.say()
    assert watch.text == "hi"
    watch.assert_unseen("dden")


async def test_a_stream_that_ends_unjudged_is_denied(app, scripted, by_segments):
    watch = by_segments(5)
    scripted(Turn("told and untold", chunk=5, cut_off=True), "never")
    app.hooks.register("model_result", lambda e: None, guard=True)
    with pytest.raises(Unjudged, match="ended before all of it could be judged"):
        await watch.say()
    assert watch.text == "told and u"
    watch.assert_unseen("ntold")


@pytest.mark.parametrize("segment", [0, 100])
async def test_one_of_which_nothing_went_out_is_asked_for_again(app, scripted, by_segments, segment):
    watch = by_segments(segment, retry=RetryPolicy(attempts=2, first=0.001))
    scripted(Turn("half", chunk=2, cut_off=True), "whole")
    app.hooks.register("model_result", lambda e: None, guard=True)
    assert (await watch.say()).model_output == "whole"
    watch.assert_unseen("half")


async def test_what_was_held_back_is_dropped_when_the_model_fails(app, scripted, by_segments):
    watch = by_segments(4)
    scripted(Turn("one two three", chunk=4, error=Fault("gone", after=3)), "never")
    app.hooks.register("model_result", lambda e: None, guard=True)
    with pytest.raises(ModelFailed, match="gone"):
        await watch.say()
    assert watch.text == "one two "
    watch.assert_unseen("thre")


async def test_tool_calls_are_judged_with_the_whole_answer(app, scripted, by_segments):
    watch = by_segments(4)
    scripted(
        Turn("let me see it", chunk=4, tool_calls=[Call("todo_list", {}), Call("shell", {})]), "done"
    )
    seen = []

    def judge(event):
        seen.append([call.name for call in event.tool_calls])
        if event.tool_calls:
            return ModelResultEventResult(tool_calls=[ToolCall("c1", "todo_list", {})])
        return None

    app.hooks.register("model_result", judge, guard=True)
    await watch.say()
    assert seen[:4] == [[], [], [], ["todo_list", "shell"]]
    assert [e.data["name"] for e in watch.shown if e.kind == "tool_call"] == ["todo_list"]


class Nameless:
    """A model whose tool calls have no ids."""

    name = "nameless"
    context_window = None

    def __init__(self):
        self.asked = 0

    async def stream(self, request):
        self.asked += 1
        if self.asked == 1:
            yield StreamEvent("tool_call", {"id": "", "name": "echo", "arguments": "{}"})
        yield StreamEvent("final", {"finish_reason": "stop"})

    async def close(self):
        pass


async def test_the_id_that_was_judged_is_the_id_that_is_called(app, by_segments):
    watch = by_segments(0)
    app.models.add(Nameless())
    app.model = "nameless"
    judged, called = [], []
    app.hooks.register("model_result", lambda e: judged.extend(c.id for c in e.tool_calls))
    app.hooks.register("tool_execution_start", lambda e: called.append(e.tool_call.id))
    await watch.say()
    assert judged == called
    assert len(judged) == 1


async def test_by_segments_an_answer_is_shown_before_output_judges_the_whole(
    app, scripted, by_segments
):
    watch = by_segments(4)
    scripted(Turn("one two three", chunk=4))
    seen = []

    def judge(event):
        seen.append((event.content, watch.text))
        return OutputEventResult(block=True, reason="too late")

    app.hooks.register("output", judge)
    app.hooks.register("model_result", lambda e: None, guard=True)
    with pytest.raises(Blocked, match="too late"):
        await watch.say()
    assert seen == [("one two three", "one two three")]


async def test_where_nobody_judges_segments_output_holds_everything_back(app, scripted, by_segments):
    watch = by_segments(4)
    scripted(Turn("one two three", chunk=4))
    app.hooks.register("output", lambda e: OutputEventResult(block=True, reason="no"))
    with pytest.raises(Blocked):
        await watch.say()
    assert watch.text == ""


async def test_reasoning_goes_out_with_the_segment_after_it(app, scripted, by_segments):
    watch = by_segments(2)
    scripted(Turn("abcd", reasoning="hmm", chunk=2))
    app.hooks.register("model_result", block_at("abcd"), guard=True)
    with pytest.raises(Blocked):
        await watch.say()
    assert [(e.kind, e.data["delta"]) for e in watch.shown if e.kind != "error"] == [
        ("reasoning", "hm"),
        ("reasoning", "m"),
        ("text", "ab"),
    ]


class TestSettings:
    def test_they_come_from_the_users_file(self, tmp_path):
        (tmp_path / "config.toml").write_text("[streaming]\nsegment = 200\noverlap = 40\n")
        app = Hookline(home=tmp_path, workspace=tmp_path)
        assert app.limits.streaming == Streaming(200, 40)

    def test_a_project_has_no_say(self, tmp_path):
        (tmp_path / ".hookline").mkdir()
        (tmp_path / ".hookline/config.toml").write_text("[streaming]\nsegment = 1\n")
        app = Hookline(home=tmp_path / "home", workspace=tmp_path)
        assert app.limits.streaming == Streaming()
        assert [each.dotted.partition(".")[0] for each in app.config.inert] == ["streaming"]


def test_what_is_held_back_is_bounded():
    held, most = HeldBack(Streaming(segment=10, overlap=5)), 0
    for _ in range(1000):
        if held.is_full:
            held.release(held.content)
        held.add(StreamEvent("text", {"delta": "abc"}))
        most = max(most, len(held.content) - len(held.released))
    assert most < 10 + 5 + 3


@given(
    parts=st.lists(st.sampled_from(["sk-123456", "sk-", "12", "a", " ", "the key "]), max_size=30),
    cuts=st.lists(st.integers(1, 7), min_size=1, max_size=20),
    segment=st.integers(1, 20),
    overlap=st.integers(8, 20),
)
def test_a_redactor_gives_the_same_however_an_answer_is_cut(parts, cuts, segment, overlap):
    text, held = "".join(parts), HeldBack(Streaming(segment, overlap))
    for piece in pieces_of(text, cuts):
        if held.is_full:
            held.release(SECRET.sub("[key]", held.content))
            assert "sk-123456" not in held.released
        held.add(StreamEvent("text", {"delta": piece}))
    whole = SECRET.sub("[key]", held.content)
    assert held.released + held.tail(whole) == SECRET.sub("[key]", text)


def pieces_of(text, cuts):
    at = turn = 0
    while at < len(text):
        size = cuts[turn % len(cuts)]
        yield text[at : at + size]
        at, turn = at + size, turn + 1
