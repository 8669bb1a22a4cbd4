"""Typed answers: every kind of type, natively, by a tool call and by a grammar; wrong ones go back."""

import json
import socket
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any, Literal, TypedDict, Union

import pytest
from pydantic import BaseModel, Field

from hookline import Agent
from hookline.agent.output import OutputForm
from hookline.agent.run import Limits
from hookline.errors import AgentUsage, OutputInvalid
from hookline.events import OutputEvent, OutputEventResult
from hookline.hooks.errors import HooklineError
from hookline.models import Call, ScriptedModel, Turn
from hookline.models.output import ANSWER

from .. import openai_server
from ..openai_server import OpenAIServer


@dataclass
class Invoice:
    number: str
    total: float
    paid: bool = False


@dataclass
class Line:
    text: str
    notes: list[str] = field(default_factory=list)


class Order(BaseModel):
    """What was ordered."""

    lines: list[Line]
    kind: Literal["new", "repeat"] = "new"
    quantity: Annotated[int, Field(ge=1, description="how many")] = 1
    parent: "Order | None" = None


class Place(TypedDict):
    city: str
    country: str | None


class Colour(Enum):
    red = "red"
    blue = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

KINDS: list[tuple[Any, Any, Any]] = [
    (Invoice, {"number": "7", "total": 5, "paid": True}, Invoice("7", 5.0, True)),
    (Order, {"lines": [{"text": "a", "notes": []}], "kind": "new", "quantity": 2, "parent": None},
     Order(lines=[Line("a")], quantity=2)),
    (Place, {"city": "Rome", "country": None}, {"city": "Rome", "country": None}),
    (Literal["yes", "no"], {"response": "yes"}, "yes"),
    (Invoice | Place,
     {"response": {"city": "Rome", "country": None}}, {"city": "Rome", "country": None}),
    (Union[int, str], {"response": 5}, 5),  # noqa: UP007
    (list[Invoice], {"response": [{"number": "1", "total": 1.5, "paid": False}]}, [Invoice("1", 1.5)]),
    (list[Literal["a", "b"]], {"response": ["a", "b"]}, ["a", "b"]),
    (Colour, {"response": "red"}, Colour.red),
    (bool, {"response": True}, True),
    (float, {"response": 2.5}, 2.5),
    (Pet, {"response": {"kind": "dog", "tricks": ["sit"]}}, Dog(kind="dog", tricks=["sit"])),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (tuple[int, str], {"response": [1, "a"]}, (1, "a")),
]  # fmt: skip
IDS = [str(getattr(kind, "__name__", kind)) for kind, _, _ in KINDS]


class Toolish(ScriptedModel):
    """A model that cannot be held to a schema, and can call tools."""

    def __init__(self, *turns: Turn) -> None:
        super().__init__(turns)
        self.native_output = False


def typed_by_tool(*answers: Any) -> Toolish:
    return Toolish(*(Turn(tool_calls=[Call(ANSWER, answer)]) for answer in answers))


@pytest.mark.parametrize(("kind", "written", "value"), KINDS, ids=IDS)
async def test_an_answer_is_read_as_its_type(kind, written, value):
    model = ScriptedModel([Turn(json.dumps(written))])
    result = await Agent(model, output=kind).run("hi")
    assert result.output == value
    assert result.text == json.dumps(written)
    assert model.requests[0].output is not None
    assert model.requests[0].tools == []


@pytest.mark.parametrize(("kind", "written", "value"), KINDS, ids=IDS)
async def test_a_model_without_native_support_answers_by_a_tool_call(kind, written, value):
    model = typed_by_tool(written)
    result = await Agent(model, output=kind).run("hi")
    assert result.output == value
    assert result.tool_calls == []
    assert [m["role"] for m in result.messages] == ["user", "assistant"]
    [request] = model.requests
    assert request.tool_choice == {"name": ANSWER}
    assert request.output is None
    assert request.tools[0]["parameters"]["type"] == "object"


@pytest.mark.parametrize(("kind", "written", "value"), KINDS, ids=IDS)
def test_the_provider_is_sent_a_schema_that_it_accepts(kind, written, value, monkeypatch):
    with OpenAIServer([json.dumps(written)]) as server:
        for name, text in server.environment.items():
            monkeypatch.setenv(name, text)
        assert Agent("openai:gpt-5", output=kind).run_sync("hi").output == value
    [request] = server.requests  # a schema that strict mode refuses is a 400
    form = request["response_format"]["json_schema"]
    assert form.get("strict", False) is (kind not in (dict[str, int], tuple[int, str]))
    assert "tools" not in request


def test_the_server_of_these_tests_refuses_what_strict_mode_refuses():
    loose = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": loose, "strict": True}}
    body = {"model": "m", "stream": True, "messages": [], "response_format": form}
    assert "additionalProperties" in openai_server.problem(body)


async def test_a_wrong_answer_goes_back_to_the_model_with_what_is_wrong():
    turns = [
        Turn("no JSON"),
        Turn('{"number": "7", "total": "much"}'),
        Turn('{"number": 7, "total": 1}'),
    ]
    model = ScriptedModel([*turns, Turn('{"number": "7", "total": 1}')])
    with pytest.raises(OutputInvalid, match="3 answers that are no Invoice: number: Input should be"):
        await Agent(model, output=Invoice).run("hi")
    told = [m["content"] for m in model.requests[-1].messages if m["role"] == "user"][1:]
    assert len(told) == 2
    assert "expected" in told[0].lower() or "JSON" in told[0]
    assert "total: Input should be a valid number" in told[1]


@pytest.mark.parametrize("native", [True, False])
async def test_an_answer_that_is_right_after_a_retry_is_the_output(native):
    wrong, right = {"number": "7"}, {"number": "7", "total": 1}
    model = (
        ScriptedModel([Turn(json.dumps(wrong)), Turn(json.dumps(right))])
        if native
        else typed_by_tool(wrong, right)
    )
    result = await Agent(model, output=Invoice).run("hi")
    assert result.output == Invoice("7", 1.0)
    assert [m["role"] for m in result.messages] == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("retries", [0, 1, 4])
async def test_retries_are_bounded(retries):
    model = ScriptedModel([Turn("no")], repeat=True)
    agent = Agent(model, output=bool, limits=Limits(output_retries=retries))
    with pytest.raises(OutputInvalid):
        await agent.run("hi")
    assert len(model.requests) == retries + 1


async def test_tools_come_before_the_typed_answer():
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"sunny in {city}"

    called = Turn(tool_calls=[Call("weather", {"city": "Rome"})])
    both = Turn(tool_calls=[Call("weather", {"city": "Rome"}), Call(ANSWER, {"response": False})])
    model = Toolish(called, both, Turn("thinking", tool_calls=[Call(ANSWER, {"response": True})]))
    result = await Agent(model, tools=[weather], output=bool).run("is it sunny?")
    assert result.output is True  # the answer beside a tool call did not know its result
    assert [call.name for call in result.tool_calls] == ["weather", "weather"]
    assert [r.tool_choice for r in model.requests] == ["required"] * 3
    assert [t["name"] for t in model.requests[0].tools] == ["weather", ANSWER]


async def test_a_tool_of_the_same_name_is_told_apart():
    def final_answer() -> str:
        """Not the answer."""
        return "x"

    model = Toolish(Turn(tool_calls=[Call(f"{ANSWER}_", {"response": 1})]))
    assert (await Agent(model, tools=[final_answer], output=int).run("hi")).output == 1


@pytest.mark.parametrize(
    "text", ['```json\n{"number": "7", "total": 1}\n```', ' {"number":"7","total":1}\n']
)
async def test_an_answer_in_a_fence_counts(text):
    assert (await Agent(Toolish(Turn(text)), output=Invoice).run("hi")).output == Invoice("7", 1.0)


async def test_a_gate_sees_the_answer_and_what_it_replaces_is_read_again():
    agent = Agent(ScriptedModel([Turn('{"response": 1}')], repeat=True), output=int)
    answers = ['{"response": 2}', "withheld"]

    @agent.on.output
    def other(event: OutputEvent) -> OutputEventResult:
        return event.replace(answers.pop(0))

    assert (await agent.run("hi")).output == 2
    with pytest.raises(OutputInvalid):
        await agent.run("hi")


async def test_partial_objects_come_while_the_answer_streams():
    written = json.dumps({"number": "7", "total": 12.5, "paid": True})
    agent = Agent(ScriptedModel([Turn(written, chunk=7)]), output=Invoice)
    async with agent.stream("hi") as stream:
        seen = [part async for part in stream.partials()]
        result = await stream.result()
    assert seen[0] == {} or "number" in seen[0]
    assert [set(a) <= set(b) for a, b in pairwise(seen)] == [True] * (len(seen) - 1)
    assert len(seen) > 3
    assert seen[-1] == {"number": "7", "total": 12.5, "paid": True}
    assert result.output == Invoice("7", 12.5, True)


async def test_partial_lists_come_without_their_wrapping():
    agent = Agent(ScriptedModel([Turn('{"response": [1, 2, 3]}', chunk=3)]), output=list[int])
    async with agent.stream("hi") as stream:
        seen = [part async for part in stream.partials()]
    assert [1, 2] in seen
    assert seen[-1] == [1, 2, 3]


class Opaque:
    pass


@pytest.mark.parametrize("kind", [socket.socket, Opaque, lambda: 1, "Invoice", dict[Opaque, int]])
def test_a_type_without_a_schema_is_refused_at_once(kind):
    with pytest.raises(AgentUsage, match=r"output=.* has no JSON schema: .*use a dataclass"):
        Agent("local", output=kind)


def test_the_model_is_not_asked_for_a_form_by_default():
    model = ScriptedModel([Turn("hello")])
    Agent(model).run_sync("hi")
    assert model.requests[0].output is None


@pytest.mark.parametrize("kind", [Invoice, bool])
async def test_every_error_of_a_typed_answer_is_one_of_ours(kind):
    for text in ("", "null", "[]", '{"response": null}', "{" * 5000, '{"number": 1e999}'):
        with pytest.raises(HooklineError):
            OutputForm(kind).read(text)
