"""Hostile arguments and answers: what JSON cannot carry, what is too much, what hides something."""

import json
import math
import time
from collections import OrderedDict, UserDict
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType

import pytest

from hookline.agent.run import Limits
from hookline.errors import BadArgumentValue
from hookline.models.script import Call, Turn
from hookline.tools import tool
from hookline.tools.arguments import USUAL, ArgumentLimits, parse, read
from hookline.tools.registry import Registry
from hookline.tools.runner import Requested, ToolCaller

from ..tables import each_row

DEEPEST = USUAL.depth


def nested(depth: int, kind: str = "list") -> str:
    """JSON text of an object that holds a value `depth` levels deep, itself counted."""
    opening, closing = ("[", "]") if kind == "list" else ('{"a":', "}")
    return '{"a":' + opening * (depth - 1) + "0" + closing * (depth - 1) + "}"


# --- text -----------------------------------------------------------------------------------------

REFUSED_TEXT = {
    "not JSON": "{",
    "a list": "[]",
    "a string": '"x"',
    "a number": "1",
    "null": "null",
    "two objects": "{}{}",
    "NaN": '{"a": NaN}',
    "infinity": '{"a": Infinity}',
    "minus infinity": '{"a": -Infinity}',
    "a float that overflows": '{"a": 1e400}',
    "a negative float that overflows": '{"a": -1e400}',
    "NaN in a list": '{"a": [[NaN]]}',
    "an integer of 65 bits": '{"a": 18446744073709551616}',
    "an integer just too large": '{"a": 9223372036854775808}',
    "an integer just too small": '{"a": -9223372036854775809}',
    "an integer of 4,000 digits": '{"a": ' + "9" * 4_000 + "}",
    "an integer of 100,000 digits": '{"a": ' + "9" * 100_000 + "}",
    "a name twice": '{"command": "ls", "command": "rm -rf /"}',
    "a name twice, escaped once": r'{"command": "ls", "\u0063ommand": "rm"}',
    "a name twice inside": '{"a": {"b": 1, "b": 2}}',
    "a name twice in a list": '{"a": [{"b": 1, "b": 1}]}',
    "an empty name twice": '{"": 1, "": 2}',
    "half of a surrogate pair": r'{"a": "\ud800"}',
    "the other half": r'{"a": "\udc00"}',
    "half of a pair in a name": r'{"\ud800": 1}',
    "both halves the wrong way round": r'{"a": "\udc00\ud800"}',
    "a comment": '{"a": 1 /* no */}',
    "single quotes": "{'a': 1}",
    "a trailing comma": '{"a": 1,}',
    "a raw line end in a string": '{"a": "x\ny"}',
    "a raw NUL in a string": '{"a": "x\0y"}',
    "a byte order mark": '\ufeff{"a": 1}',
    "hexadecimal": '{"a": 0x10}',
    "a leading zero": '{"a": 01}',
    "65 levels of lists": nested(DEEPEST + 1),
    "65 levels of objects": nested(DEEPEST + 1, "dict"),
    "10,000 levels of lists": nested(10_000),
    "10,000 levels of objects": nested(10_000, "dict"),
    "100,000 levels that never end": '{"a":' + "[" * 100_000,
    "more than a million characters": '{"a": "' + "x" * 1_000_000 + '"}',
    "a million brackets": "[" * 1_000_000,
    "200,000 names, the last one twice": "{"
    + ",".join(f'"{n}":0' for n in range(99_000))
    + ',"98999":1}',
}


@each_row("text", REFUSED_TEXT.values(), ids=REFUSED_TEXT)
def test_text_that_is_no_json_object_within_limits_is_refused_at_once(text):
    started = time.process_time()
    arguments, fault = parse(text)
    assert arguments == {}
    assert fault is not None
    assert len(fault) < 400
    assert time.process_time() - started < 5


TAKEN_TEXT = {
    "": {},
    "{}": {},
    '{"a": 1}': {"a": 1},
    '{"a": 9223372036854775807}': {"a": 2**63 - 1},
    '{"a": -9223372036854775808}': {"a": -(2**63)},
    '{"a": 1e308}': {"a": 1e308},
    r'{"a": "\ud83d\ude00"}': {"a": "😀"},
    r'{"a": "\u0000"}': {"a": "\0"},
    '{"a": {"b": [true, false, null, 0.5]}}': {"a": {"b": [True, False, None, 0.5]}},
    nested(DEEPEST): json.loads(nested(DEEPEST)),
}


@each_row("text", TAKEN_TEXT, ids=range(len(TAKEN_TEXT)))
def test_json_within_limits_is_taken_as_it_is(text):
    assert parse(text) == (TAKEN_TEXT[text], None)


@each_row(("depth", "allowed"), [(1, 1), (2, 2), (5, 5), (64, 64), (150, 150)])
@each_row("kind", ["list", "dict"])
def test_the_depth_that_is_allowed_is_the_last_one_that_is_taken(depth, allowed, kind):
    limits = ArgumentLimits(depth=allowed)
    assert parse(nested(depth, kind), limits)[1] is None
    assert "deeper" in parse(nested(depth + 1, kind), limits)[1]


@pytest.mark.parametrize("size", [10, 100, 10_000])
def test_the_size_is_a_limit_for_text_and_for_values(size):
    limits = ArgumentLimits(size=size)
    assert "larger" in parse('{"a": "' + "x" * size + '"}', limits)[1]
    for given in ({"a": "x" * size}, {"x" * size: 1}, {"a": [0] * size}, {"a": [[]] * size}):
        assert "larger" in parse(given, limits)[1]


# --- values ---------------------------------------------------------------------------------------


class Endless(UserDict):
    def __iter__(self):
        number = 0
        while True:
            yield str(number)
            number += 1

    def __getitem__(self, name):
        return 0


class Loud(dict):
    """Shows something else through each method than it holds."""

    def __getitem__(self, name):
        return "lie"

    def get(self, name, default=None):
        return "lie"

    def items(self):
        return [("command", "lie")]

    def keys(self):
        return ["lie"]

    def values(self):
        return ["lie"]

    def __iter__(self):
        return iter(["lie"])

    def __len__(self):
        return 0

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = None

    def __deepcopy__(self, memo):
        return {"command": "lie"}

    def __copy__(self):
        return {"command": "lie"}

    def __reduce__(self):
        return dict, ({"command": "lie"},)


class LoudList(list):
    def __iter__(self):
        return iter(["lie"])

    def __getitem__(self, index):
        return "lie"

    def __len__(self):
        return 0

    def __deepcopy__(self, memo):
        return ["lie"]


class LoudTuple(tuple):
    __slots__ = ()

    def __iter__(self):
        return iter(["lie"])


class LoudText(str):
    __slots__ = ()

    def __str__(self):
        return "lie"

    def __repr__(self):
        return "lie"

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("lie")

    def __format__(self, spec):
        return "lie"

    def encode(self, *_):
        return b"lie"


class LoudNumber(int):
    def __int__(self):
        return 666

    def __index__(self):
        return 666

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


class LoudFraction(float):
    def __float__(self):
        return 666.0

    def __sub__(self, other):
        return 0.0


class Flag(IntEnum):
    ON = 1


class Word(StrEnum):
    LS = "ls"


SUBCLASSES = {
    "a dict that lies": (Loud(command="ls"), {"command": "ls"}),
    "a dict inside that lies": ({"a": Loud(b="ls")}, {"a": {"b": "ls"}}),
    "a list that lies": ({"a": LoudList([1, 2])}, {"a": [1, 2]}),
    "a tuple that lies": ({"a": LoudTuple([1, 2])}, {"a": [1, 2]}),
    "a string that lies": ({"a": LoudText("ls")}, {"a": "ls"}),
    "a name that lies": ({LoudText("a"): 1}, {"a": 1}),
    "a number that lies": ({"a": LoudNumber(2)}, {"a": 2}),
    "a fraction that lies": ({"a": LoudFraction(0.5)}, {"a": 0.5}),
    "an enumeration of numbers": ({"a": Flag.ON}, {"a": 1}),
    "an enumeration of texts": ({"a": Word.LS}, {"a": "ls"}),
    "an ordered dict": (OrderedDict(a=1), {"a": 1}),
    "a read-only view": (MappingProxyType({"a": MappingProxyType({"b": 1})}), {"a": {"b": 1}}),
    "a user's dict": (UserDict({"a": UserDict({"b": 1})}), {"a": {"b": 1}}),
}


def is_plain(value) -> bool:
    if type(value) is dict:
        return all(type(name) is str and is_plain(each) for name, each in value.items())
    if type(value) is list:
        return all(map(is_plain, value))
    return value is None or type(value) in (str, int, float, bool)


@each_row("case", SUBCLASSES.values(), ids=SUBCLASSES)
def test_a_subclass_is_read_as_what_it_holds_and_becomes_plain(case):
    given, holds = case
    got = read(given)
    assert is_plain(got)
    assert json.dumps(got) == json.dumps(holds)


def _cycle():
    found: dict = {}
    found["again"] = found
    return found


def _list_cycle():
    found: list = []
    found.append(found)
    return {"a": found}


REFUSED_VALUES = {
    "bytes": {"a": b"x"},
    "a set": {"a": {1}},
    "a frozen set": {"a": frozenset()},
    "a date": {"a": date(2026, 1, 31)},
    "a decimal": {"a": Decimal(1)},
    "a complex number": {"a": 1j},
    "an object": {"a": object()},
    "a class": {"a": dict},
    "a function": {"a": print},
    "a generator": {"a": (n for n in [1])},
    "an iterator": {"a": iter([1])},
    "a range": {"a": range(3)},
    "a view of a dict": {"a": {}.keys()},
    "a memory view": {"a": memoryview(b"x")},
    "an exception": {"a": ValueError("x")},
    "a number as a name": {1: "a"},
    "None as a name": {None: "a"},
    "bytes as a name": {b"a": 1},
    "a tuple as a name": {("a",): 1},
    "NaN": {"a": math.nan},
    "infinity": {"a": math.inf},
    "minus infinity": {"a": [-math.inf]},
    "an infinity that says it is finite": {"a": LoudFraction(math.inf)},
    "too large an integer": {"a": 2**63},
    "too small an integer": {"a": -(2**63) - 1},
    "half of a surrogate pair": {"a": "\ud800"},
    "half of a pair in a name": {"\udfff": 1},
    "one that contains itself": _cycle(),
    "a list that contains itself": _list_cycle(),
    "a mapping without end": Endless(),
    "a mapping without end inside": {"a": Endless()},
    "too many items": {"a": [0] * 1_000_001},
    "a list instead": [],
    "None instead": None,
    "a number instead": 7,
    "bytes instead": b"{}",
    "a list of pairs instead": [("a", 1)],
}


@each_row("given", REFUSED_VALUES.values(), ids=REFUSED_VALUES)
def test_a_value_that_json_does_not_have_is_refused(given):
    with pytest.raises(BadArgumentValue, match="arguments"):
        read(given)


def test_what_was_read_shares_nothing_with_what_was_given():
    inner = [1]
    given = {"a": {"b": inner}}
    got = read(given)
    inner.append(2)
    given["a"]["b"] = "changed"
    given["c"] = 1
    assert got == {"a": {"b": [1]}}


# --- through the runner -----------------------------------------------------------------------------


class Nowhere:
    async def tool_call(self, call, requested, rulings) -> None:
        pass

    async def tool_result(self, result, **about) -> None:
        pass


@pytest.fixture
def echoed(app):
    """A tool that keeps everything it is given."""
    seen = []

    @tool(side_effects="none", registry=Registry())
    def take(value: object = None) -> str:
        seen.append(value)
        return "taken"

    app.tools.add(take)
    return seen


@pytest.mark.parametrize("name", REFUSED_TEXT)
async def test_the_runner_refuses_such_a_call_and_says_why(app, echoed, name):
    text = REFUSED_TEXT[name].replace('"a"', '"value"', 1)
    caller = ToolCaller(app.context("s"), Nowhere(), app.workspace)
    outcome = await app.runner.run(Requested("c", "take", text), caller)
    assert outcome.is_error
    assert not outcome.ran
    assert echoed == []


@pytest.mark.parametrize("length", [257, 10_000, 1_000_000])
async def test_a_tool_name_without_end_is_not_looked_up(app, length):
    caller = ToolCaller(app.context("s"), Nowhere(), app.workspace)
    outcome = await app.runner.run(Requested("c", "x" * length, "{}"), caller)
    assert outcome.is_error
    assert len(str(outcome.content)) < 200
    assert len(outcome.call.name) <= 256


# --- through a model's answer -------------------------------------------------------------------------


def calls(number: int, **more) -> Turn:
    return Turn(tool_calls=[Call("take", {"value": n}, id=f"c{n}", **more) for n in range(number)])


@pytest.mark.parametrize("number", [129, 1_000, 20_000])
async def test_an_answer_with_too_many_calls_runs_none_and_the_model_learns_why(
    app, scripted, echoed, number
):
    model = scripted(calls(number), "fewer then")
    async with app.running():
        result = await app.process({"content": "go"})
    assert result.model_output == "fewer then"
    assert echoed == []
    told = model.requests[1].messages[-1]
    assert told["role"] == "user"
    assert "more than 128 tool calls" in told["content"]
    assert all(not message.get("tool_calls") for message in model.requests[1].messages)


async def test_as_many_calls_as_are_allowed_run(app, scripted, echoed):
    scripted(calls(128), "done")
    async with app.running():
        await app.process({"content": "go"})
    assert sorted(echoed) == list(range(128))


@pytest.mark.parametrize("gate", ["model_result", "observer", "around_model_call", "none"])
async def test_the_limit_is_the_configured_one_whatever_looks_at_answers(app, scripted, echoed, gate):
    app.limits = Limits(tool_calls=200)
    if gate == "model_result":
        app.hooks.register("model_result", lambda event, ctx: None)
    elif gate == "observer":
        app.hooks.trace(lambda dispatch: None)
    elif gate == "around_model_call":

        async def around(request, call_next):
            return await call_next(request)

        app.hooks.register("around_model_call", around)
    scripted(calls(201), calls(200), "done")
    async with app.running():
        await app.process({"content": "go"})
    assert len(echoed) == 200


async def test_a_model_that_never_stops_asking_for_too_much_meets_the_step_limit(app, scripted, echoed):
    app.limits = Limits(steps=3, tool_calls=2)
    scripted(*[calls(3) for _ in range(5)])
    async with app.running():
        with pytest.raises(Exception, match="3 model turns"):
            await app.process({"content": "go"})
    assert echoed == []


BAD_IDS = {
    "the same id twice": ["c", "c"],
    "the same id often": ["c"] * 8,
    "an id without end": ["x" * 5_000, "y"],
    "an empty id": ["", ""],
    "an id with a slash": ["../other", "a/@reviewer"],
    "an id with a line end": ["a\nb", "c\r"],
    "an id with an escape sequence": ["\x1b[2J", "\x9b2J"],
    "an id that looks like a user's command": ["command_1", "shell_2"],
    "an id with a space": ["a b", " "],
    "an id that is not ASCII": ["ä", "\u202e"],
}


@pytest.mark.parametrize("ids", BAD_IDS.values(), ids=BAD_IDS)
async def test_ids_that_could_be_mistaken_are_replaced_and_each_call_has_its_own(
    app, scripted, echoed, ids
):
    model = scripted(
        Turn(tool_calls=[Call("take", {"value": n}, id=i) for n, i in enumerate(ids)]), "ok"
    )
    async with app.running():
        await app.process({"content": "go"})
    assert sorted(echoed) == list(range(len(ids)))
    sent = model.requests[1].messages
    asked = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert asked == answered
    assert len(set(asked)) == len(ids)
    for each in asked:
        assert each.isascii() and each.isprintable() and len(each) <= 256  # noqa: PT018
        assert not set(each) & set("/ ")
        assert not each.startswith(("command_", "shell_"))


async def test_one_call_with_arguments_without_end_ends_the_answer_not_the_turn(app, scripted, echoed):
    turn = Turn(tool_calls=[Call("take", {"value": 1}), Call("take", {"value": "x" * 3_000_000})])
    scripted(turn, "smaller then")
    async with app.running():
        result = await app.process({"content": "go"})
    assert result.model_output == "smaller then"
    assert echoed == []


@pytest.mark.parametrize("depth", [65, 1_000, 10_000])
@pytest.mark.parametrize("judged", [False, True], ids=["plain", "judged"])
async def test_deep_arguments_of_a_model_are_a_result_it_can_read(app, scripted, echoed, depth, judged):
    if judged:
        app.hooks.register("model_result", lambda event, ctx: None)
    text = '{"value":' + "[" * depth + "]" * depth + "}"
    model = scripted(Turn(tool_calls=[Call("take", text, id="deep")]), "I see")
    async with app.running():
        result = await app.process({"content": "go"})
    assert result.model_output == "I see"
    assert echoed == []
    assert "deeper than 64" in model.requests[1].messages[-1]["content"]


@pytest.mark.parametrize(
    "setting",
    ["tool_calls=0", "tool_calls=-1", "argument_depth=0", "argument_depth=1000", "argument_size=0"],
)
def test_a_limit_that_makes_no_sense_is_an_error_of_the_settings(setting):
    from pydantic import ValidationError

    from hookline.config.schema import LimitsSettings

    name, value = setting.split("=")
    with pytest.raises(ValidationError, match=name):
        LimitsSettings.model_validate({name: int(value)})


def test_limits_come_from_the_settings(tmp_path):
    from hookline import Hookline

    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text(
        "[limits]\ntool_calls = 7\nargument_size = 70\nargument_depth = 9\n"
    )
    limits = Hookline(home=tmp_path / "home", workspace=tmp_path).limits
    assert (limits.tool_calls, limits.argument_size, limits.argument_depth) == (7, 70, 9)
