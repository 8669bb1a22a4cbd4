"""The scripted model plays what is written, session by session."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from hookline.models import (
    Call,
    ContextOverflow,
    Fault,
    Model,
    ModelFailed,
    ModelRequest,
    ModelUnavailable,
    ScriptedModel,
    ScriptError,
    Turn,
)

from .ask import events, one, text_of, user


def asked(session: str = "s", said: str = "hi") -> ModelRequest:
    return ModelRequest(session_id=session, messages=user(said))


async def test_a_turn_comes_in_chunks_and_ends_with_final():
    model = ScriptedModel([Turn("Hello", reasoning="hm", chunk=2, usage={"output_tokens": 3})])
    found = await events(model, asked())
    assert [(event.kind, event.data) for event in found] == [
        ("reasoning", {"delta": "hm"}),
        ("text", {"delta": "He"}),
        ("text", {"delta": "ll"}),
        ("text", {"delta": "o"}),
        ("usage", {"output_tokens": 3}),
        ("final", {"finish_reason": "stop"}),
    ]
    assert isinstance(model, Model)


async def test_tool_calls_carry_their_arguments_as_written():
    calls = [Call("shell", {"command": "ls"}), {"name": "shell", "arguments": "{oops", "id": "mine"}]
    model = ScriptedModel([Turn(tool_calls=calls)], repeat=True)
    first, broken, final = await events(model, asked())
    assert json.loads(first.data["arguments"]) == {"command": "ls"}
    assert broken.data == {"id": "mine", "name": "shell", "arguments": "{oops"}
    assert final.data == {"finish_reason": "tool_calls"}
    again = (await events(model, asked()))[0]
    assert again.data["id"] != first.data["id"]


async def test_a_changed_event_changes_no_other():
    model = ScriptedModel(["one"], repeat=True)
    (await events(model, asked()))[0].data["delta"] = "changed"
    assert text_of(await events(model, asked())) == "one"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("overloaded", transient=True), ModelFailed),
        ({"message": "too long", "kind": "overflow"}, ContextOverflow),
        ({"message": "gone", "kind": "unavailable"}, ModelUnavailable),
        ("broken", ModelFailed),
    ],
)
async def test_an_error_is_raised_and_its_turn_is_played(fault, kind):
    model = ScriptedModel([Turn("never", error=fault), "after"])
    with pytest.raises(kind) as raised:
        await events(model, asked())
    assert getattr(raised.value, "transient", False) is (kind is ModelFailed and fault != "broken")
    assert text_of(await events(model, asked())) == "after"


async def test_an_error_can_come_after_some_chunks():
    model = ScriptedModel([Turn("abcdef", chunk=2, error=Fault("cut", after=2))])
    stream = model.stream(asked())
    assert [(await anext(stream)).data["delta"] for _ in range(2)] == ["ab", "cd"]
    with pytest.raises(ModelFailed, match="cut"):
        await anext(stream)


async def test_a_cut_off_turn_has_no_final():
    found = await events(ScriptedModel([Turn("half", cut_off=True)]), asked())
    assert [event.kind for event in found] == ["text"]


async def test_waits_and_delays_take_their_time():
    model = ScriptedModel([Turn("abc", chunk=1, wait=0.03, delay=0.01)])
    start = time.perf_counter()
    await events(model, asked())
    assert time.perf_counter() - start >= 0.058


async def test_match_answers_what_was_said_and_the_rest_go_in_order():
    model = ScriptedModel(["first", Turn("sunny", match="(?i)weather"), "second"])
    said = ["hi", "The Weather?", "hi"]
    assert [text_of(await events(model, asked(said=each))) for each in said] == [
        "first",
        "sunny",
        "second",
    ]
    with pytest.raises(ModelFailed, match="none of the rest matches"):
        await events(model, asked(said="weather"))


async def test_matching_turns_follow_each_other_within_a_tool_loop():
    look = Turn(match="list", tool_calls=[Call("shell")])
    model = ScriptedModel([look, Turn("there", match="list")], repeat=True)
    kinds = [(await events(model, asked(said="list it")))[0].kind for _ in range(4)]
    assert kinds == ["tool_call", "text", "tool_call", "text"]


async def test_match_reads_the_text_of_parts():
    model = ScriptedModel([Turn("found", match="needle")])
    parts = [{"type": "text", "text": "a needle"}, {"type": "image", "data": "…"}]
    request = ModelRequest(messages=[{"role": "user", "content": parts}])
    assert text_of(await events(model, request)) == "found"


async def test_a_script_that_runs_out_says_so():
    model = ScriptedModel(["only"])
    await events(model, asked("a"))
    with pytest.raises(
        ModelFailed, match=r"no turn left for session 'a': it played 1 of 1 turn;.*repeat"
    ):
        await events(model, asked("a"))
    assert text_of(await events(model, asked("b"))) == "only"


async def test_requests_are_kept_as_they_were_asked():
    model = ScriptedModel(["x"], repeat=True)
    request = asked()
    await events(model, request)
    request.messages.append({"role": "assistant", "content": "x"})
    assert [len(kept.messages) for kept in model.requests] == [1]
    quiet = ScriptedModel(["x"], record=False)
    await events(quiet, request)
    assert quiet.requests == []


async def test_2000_sessions_at_once_do_not_see_each_other():
    turns = [Turn(f"turn {n}", chunk=3, delay=0.0001) for n in range(3)]
    model = ScriptedModel(turns)

    async def session(name: str) -> list[str]:
        return [text_of(await events(model, asked(name))) for _ in range(3)]

    said = await asyncio.gather(*(session(f"s{n}") for n in range(2000)))
    assert said == [["turn 0", "turn 1", "turn 2"]] * 2000
    assert len(model.requests) == 6000


SCRIPT = """
repeat = true
context_window = 1000

[[turns]]
text = "Let me look."
chunk = 4
tool_calls = [{ name = "shell", arguments = { command = "ls" } }, { name = "shell", arguments = "{" }]
usage = { input_tokens = 5, output_tokens = 2 }

[[turns]]
match = "weather"
error = { message = "overloaded", transient = true, after = 1 }
"""


async def test_a_toml_file_is_a_script(tmp_path: Path):
    path = tmp_path / "turns.toml"
    path.write_text(SCRIPT)
    model = ScriptedModel.from_file(path)
    found = await events(model, asked())
    assert text_of(found) == "Let me look."
    assert one(found, "usage") == {"input_tokens": 5, "output_tokens": 2}
    assert [event.data["arguments"] for event in found if event.kind == "tool_call"] == [
        '{"command": "ls"}',
        "{",
    ]
    assert (model.repeat, model.context_window, model.name) == (True, 1000, f"scripted:{path}")


async def test_a_python_file_is_a_script(tmp_path: Path):
    path = tmp_path / "turns.py"
    path.write_text(
        "from hookline.models import Turn\n"
        "turns = [Turn(f'number {n}') for n in range(2)] + ['last', {'text': 'really'}]\n"
    )
    model = ScriptedModel.from_file(path)
    assert [text_of(await events(model, asked())) for _ in range(4)] == [
        "number 0",
        "number 1",
        "last",
        "really",
    ]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("turns = \n", "not valid TOML.*line 1"),
        ("repeat = true", "no turns"),
        ("turns = 3", "'turns' must be a list"),
        ("[[turn]]\ntext = 'x'", "unknown field 'turn'; did you mean 'turns'"),
        ("repeat = 3\n[[turns]]\ntext = 'x'", "field 'repeat': expected true or false, got 3"),
        ("context_window = -1\n[[turns]]\ntext = 'x'", "field 'context_window'.*got -1"),
        ("[[turns]]\ntext = 'x'\n[[turns]]\ntxt = 'y'", "turn 2, field 'txt': unknown field; did you"),
        ("[[turns]]\ntext = 3", "turn 1, field 'text': expected text, got 3"),
        ("[[turns]]\ndelay = 'soon'", "turn 1, field 'delay': expected a number.*'soon'"),
        ("[[turns]]\ndelay = nan", "turn 1, field 'delay': expected a number.*nan"),
        ("[[turns]]\nchunk = 1.5", "turn 1, field 'chunk': expected a whole number.*1.5"),
        ("[[turns]]\nmatch = '('", "turn 1, field 'match': not a regular expression"),
        ("[[turns]]\ntool_calls = 'shell'", "turn 1, field 'tool_calls': expected a list"),
        ("[[turns]]\ntool_calls = [{ arguments = {} }]", r"field 'tool_calls\[0\].name': missing"),
        ("[[turns]]\ntool_calls = ['shell']", r"field 'tool_calls\[0\]': expected a table"),
        (
            "[[turns]]\ntool_calls = [{ name = 's', arguments = 3 }]",
            "arguments': expected a table or text",
        ),
        (
            "[[turns]]\ntool_calls = [{ name = 's', arguments = { d = 2020-01-01 } }]",
            "arguments': not JSON",
        ),
        ("[[turns]]\nerror = { transient = true }", "turn 1, field 'error.message': missing"),
        (
            "[[turns]]\nerror = { message = 'x', kind = 'odd' }",
            "field 'error.kind': expected one of failed",
        ),
        ("[[turns]]\nusage = { input_tokens = 'x' }", "field 'usage.input_tokens': expected a whole"),
    ],
)
def test_a_broken_script_names_the_file_the_turn_and_the_field(tmp_path: Path, source, problem):
    path = tmp_path / "turns.toml"
    path.write_text(source)
    with pytest.raises(ScriptError, match=f"(?s)turns.toml.*{problem}"):
        ScriptedModel.from_file(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path):
    for name in ("no.toml", "no.py"):
        with pytest.raises(ScriptError, match=f"no script file .*{name}"):
            ScriptedModel.from_file(tmp_path / name)
    with pytest.raises(ScriptError, match="cannot read"):
        ScriptedModel.from_file(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScriptError, match="not a text file"):
        ScriptedModel.from_file(tmp_path / "binary.toml")
    (tmp_path / "raises.py").write_text("1 / 0")
    with pytest.raises(ScriptError, match=r"raises.py: the script raised ZeroDivisionError"):
        ScriptedModel.from_file(tmp_path / "raises.py")


def test_turns_given_as_objects_are_checked_too():
    with pytest.raises(ScriptError, match="turn 2, field 'wait'"):
        ScriptedModel(["fine", {"wait": -1}])
    with pytest.raises(ScriptError, match="field 'wait'"):
        Turn(wait=-1)
    with pytest.raises(ScriptError, match="turn 1: expected a table of fields, got 7"):
        ScriptedModel([7])  # type: ignore[list-item]
