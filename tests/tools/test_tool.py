"""`@tool`: declaration, schema, and the arguments it takes and refuses."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from hookline.hooks.errors import DeclarationError
from hookline.specs import ReplayPolicy, SideEffects, ToolSpec
from hookline.tools import REGISTRY, Registry, Tool, ToolArgumentError, ToolContext, ToolError, tool

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypes

unregistered = partial(tool, registry=None)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Box(BaseModel):
    corner: Point
    label: str = "box"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date


def faults(tool: Tool, arguments: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(ToolArgumentError) as caught:
        tool.validate(arguments)
    return caught.value.faults


class TestDeclaring:
    def test_a_bare_decorator_takes_everything_from_the_function(self):
        try:

            @tool
            def greet_everyone(name: str) -> str:
                """Greet."""
                return f"hello {name}"

            assert isinstance(greet_everyone, Tool)
            assert REGISTRY.get("greet_everyone") is greet_everyone
            assert greet_everyone.description == "Greet."
            assert greet_everyone.spec.output_schema == {"type": "string"}
        finally:
            REGISTRY.remove("greet_everyone")

    def test_options_reach_the_spec(self):
        registry = Registry()

        @tool(
            name="find",
            namespace="acme",
            version="2.1.0",
            description="Look it up.",
            side_effects="read",
            permissions=("net",),
            idempotency_key="q",
            cost_estimate="0.01",
            examples=[{"q": "x"}],
            tags={"search"},
            deprecated="use acme.search",
            timeout=3,
            replay_policy="fail-loud",
            registry=registry,
        )
        def whatever(q: str) -> str:
            return q

        spec = whatever.spec
        assert whatever.name == "acme.find"
        assert registry.get("acme.find") is whatever
        assert "acme.find" not in REGISTRY
        assert (spec.version, spec.description) == ("2.1.0", "Look it up.")
        assert spec.side_effects is SideEffects.read
        assert spec.replay_policy is ReplayPolicy.fail_loud
        assert spec.cost_estimate == Decimal("0.01")
        assert (spec.permissions, spec.tags, spec.examples) == (["net"], ["search"], [{"q": "x"}])
        assert spec.deprecated == "use acme.search"
        assert whatever.timeout == 3

    def test_importing_a_module_registers_its_tools(self, tmp_path, monkeypatch):
        (tmp_path / "brings_a_tool.py").write_text(
            "from __future__ import annotations\n"
            "from hookline.tools import tool\n"
            "@tool(namespace='brought')\n"
            "def ping() -> str:\n"
            "    'Answer.'\n"
            "    return 'pong'\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        assert "brought.ping" not in REGISTRY
        import importlib

        module = importlib.import_module("brings_a_tool")
        try:
            assert REGISTRY.get("brought.ping") is module.ping
            importlib.reload(module)  # the same lines, read again
            assert REGISTRY.get("brought.ping") is module.ping
        finally:
            REGISTRY.remove("brought.ping")

    def test_calling_a_tool_as_a_function_says_that_tools_run_through_the_runner(self):
        @unregistered()
        def danger() -> str:
            raise AssertionError("never reached")

        with pytest.raises(TypeError, match=r"'danger' cannot be called directly.*runner"):
            danger()
        assert not hasattr(danger, "unguarded")
        assert not hasattr(danger, "__wrapped__")

    def test_importing_the_package_loads_neither_asyncio_nor_jsonschema(self):
        code = (
            "import sys, hookline.tools\n"
            "print([m for m in ('asyncio', 'jsonschema', 'subprocess') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestRefusedDeclarations:
    @pytest.mark.parametrize("variadic", [lambda *a: None, lambda **k: None])
    def test_parameters_without_names(self, variadic):
        with pytest.raises(DeclarationError, match="told every parameter by name"):
            unregistered(name="v")(variadic)

    def test_a_method_without_its_object(self):
        with pytest.raises(DeclarationError, match="bound method"):

            class Desk:
                @unregistered()
                def work(self, on: str) -> str:
                    return on

    def test_a_parameter_that_json_cannot_fill(self):
        def connect(socket: asyncio.AbstractEventLoop) -> None: ...

        with pytest.raises(DeclarationError, match=r"'connect' has a parameter that no JSON value"):
            tool(connect)
        assert "connect" not in REGISTRY

    def test_an_annotation_that_exists_for_the_type_checker_only(self):
        def pay(amount: "OnlyForTypes") -> None: ...

        with pytest.raises(DeclarationError, match=r"'OnlyForTypes'.*not under TYPE_CHECKING"):
            tool(pay)

    @pytest.mark.parametrize(
        ("options", "what"),
        [
            ({"side_effects": "lots"}, "side_effects"),
            ({"name": "has spaces"}, "name"),
            ({"timeout": 0}, "timeout"),
            ({"colour": "red"}, "colour"),
        ],
    )
    def test_an_option_that_means_nothing(self, options, what):
        with pytest.raises(DeclarationError, match=what):
            unregistered(**{"name": "x", **options})(lambda: None)

    def test_what_is_not_a_function_or_is_a_tool_already(self):
        with pytest.raises(DeclarationError, match="needs a function, not 3"):
            tool(3)  # pyright: ignore
        made = unregistered(name="once")(lambda: None)
        with pytest.raises(DeclarationError, match="'once' is a tool already"):
            tool(made)


class TestSchema:
    def test_types_defaults_and_descriptions(self):
        @unregistered()
        def book(
            guest: str,
            nights: Annotated[int, Field(ge=1, le=30, description="how long")] = 1,
            room: Literal["single", "double"] = "single",
            colour: Optional[Colour] = None,  # noqa: UP045
            note: Annotated[str, "anything else"] = "",
            context: ToolContext | None = None,
        ) -> str:
            """Book a room.

            Args:
                guest: Who comes,
                    with family name.
                nights: ignored, the annotation says more
            """
            return guest

        schema = book.parameters
        assert book.description == "Book a room."
        assert schema["required"] == ["guest"]
        assert schema["additionalProperties"] is False
        assert list(schema["properties"]) == ["guest", "nights", "room", "colour", "note"]
        assert schema["properties"]["guest"] == {
            "type": "string",
            "description": "Who comes, with family name.",
        }
        assert schema["properties"]["nights"] == {
            "type": "integer", "minimum": 1, "maximum": 30, "default": 1, "description": "how long",
        }  # fmt: skip
        assert schema["properties"]["room"]["enum"] == ["single", "double"]
        assert schema["properties"]["note"]["description"] == "anything else"

    def test_parameters_named_like_a_models_attributes(self):
        @unregistered()
        def odd(schema: int, json: str, copy: bool, model_config: int, _private: int = 0) -> None: ...

        values = {"schema": 1, "json": "j", "copy": True, "model_config": 2, "_private": 3}
        assert odd.validate(values) == values

    def test_classes_of_the_surrounding_function_are_found(self):
        class Local(BaseModel):
            n: int

        @unregistered()
        def take(value: "Local") -> None: ...

        assert take.validate({"value": {"n": 1}}) == {"value": Local(n=1)}

    def test_a_default_that_is_not_json_stays_out_of_the_schema(self):
        marker = object()

        @unregistered()
        def take(value: Any = marker) -> None: ...

        assert take.parameters["properties"] == {"value": {}}
        assert take.validate({})["value"] is marker

    def test_a_mutable_default_is_not_shared_between_calls(self):
        @unregistered()
        def take(values: list[int] = []) -> None: ...  # noqa: B006

        take.validate({})["values"].append(1)
        assert take.validate({}) == {"values": []}

    def test_a_tool_without_parameters(self):
        made = unregistered(name="now")(lambda: "12:00")
        assert made.parameters["properties"] == {}
        assert made.validate({}) == {}


class TestValues:
    def test_json_becomes_what_the_annotations_say(self):
        @unregistered()
        def take(
            path: Path, day: date, price: Decimal, colour: Colour, box: Box, point: Point,
            pair: tuple[int, str], tags: set[str], by_number: dict[int, str],
        ) -> None: ...  # fmt: skip

        values = take.validate(
            {
                "path": "a/b",
                "day": "2024-02-29",
                "price": "1.10",
                "colour": "blue",
                "box": {"corner": {"x": 1}},
                "point": {"x": 1, "y": 2},
                "pair": [1, "a"],
                "tags": ["x", "x"],
                "by_number": {"1": "one"},
            }
        )
        assert values == {
            "path": Path("a/b"),
            "day": date(2024, 2, 29),
            "price": Decimal("1.10"),
            "colour": Colour.BLUE,
            "box": Box(corner=Point(1)),
            "point": Point(1, 2),
            "pair": (1, "a"),
            "tags": {"x"},
            "by_number": {1: "one"},
        }

    def test_a_strict_model_is_filled_as_from_json(self):
        @unregistered()
        def take(value: Strict) -> None: ...

        assert take.validate({"value": {"day": "2024-01-01"}})["value"].day == date(2024, 1, 1)

    @given(
        st.fixed_dictionaries(
            {
                "text": st.text(),
                "number": st.integers(-(2**53), 2**53),
                "share": st.floats(allow_nan=False, allow_infinity=False),
                "flags": st.lists(st.booleans(), max_size=3),
                "table": st.dictionaries(
                    st.text(max_size=3), st.none() | st.integers(0, 9), max_size=3
                ),
            }
        )
    )
    def test_plain_values_come_out_as_they_went_in_and_fit_the_schema(self, arguments):
        assert ROUND.validate(arguments) == arguments
        assert RAW.validate(arguments) == arguments

    @given(st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=5))
    def test_what_the_types_refuse_the_schema_refuses_too(self, value):
        arguments = {"text": value, "number": 0, "share": 0.5, "flags": [], "table": {}}
        if isinstance(value, str):
            assert ROUND.validate(arguments) == RAW.validate(arguments) == arguments
            return
        for refusing in (ROUND, RAW):
            assert faults(refusing, arguments)[0].startswith("text: got ")


@unregistered(name="round")
def ROUND(
    text: str, number: int, share: float, flags: list[bool], table: dict[str, int | None]
) -> None: ...


RAW = Tool.from_spec(ToolSpec(name="raw", input_schema=ROUND.parameters), lambda **_: None)


class TestWrongArguments:
    @pytest.fixture
    def book(self) -> Tool:
        @unregistered()
        def book(
            guest: str, nights: int = 1, when: int | date = 0, box: Box | None = None,
            code: Annotated[str, Field(min_length=2, pattern="^[a-z]+$")] = "ab",
        ) -> None:  # fmt: skip
            """Book.

            guest: who comes
            """

        return book

    def test_one_line_for_each_field_with_what_it_got_and_what_it_takes(self, book):
        lines = faults(book, {"guest": 7, "nights": "many", "gest": 1})
        assert lines == (
            "guest: got 7, takes a valid string",
            "nights: got 'many', takes a valid integer, unable to parse string as an integer",
            "gest: unknown argument; did you mean 'guest'?",
        )

    def test_the_message_names_the_tool(self, book):
        with pytest.raises(ToolArgumentError, match="wrong arguments for the tool 'book':\n  guest: "):
            book.validate({})

    def test_a_missing_field_says_what_it_takes(self, book):
        assert faults(book, {}) == ("guest: missing; it takes string (who comes)",)

    def test_an_unknown_argument_far_from_any_name_lists_the_names(self, book):
        assert faults(book, {"guest": "a", "zzz": 1}) == (
            "zzz: unknown argument; it takes guest, nights, when, box, code",
        )

    def test_a_union_is_one_line_with_every_branch(self, book):
        (line,) = faults(book, {"guest": "a", "when": "whenever"})
        assert line.startswith("when: got 'whenever', takes a valid integer")
        assert " or a valid date" in line

    def test_a_nested_field_is_named_by_its_way(self, book):
        assert faults(book, {"guest": "a", "box": {"corner": {"x": "left"}}}) == (
            "box.corner.x: got 'left', takes a valid integer, unable to parse string as an integer",
        )
        assert faults(book, {"guest": "a", "box": {"label": "b"}}) == (
            "box.corner: missing; it takes a value",
        )

    def test_a_constraint_is_told_in_words(self, book):
        assert faults(book, {"guest": "a", "code": "a"}) == (
            "code: got 'a', takes a string with at least 2 characters",
        )
        assert faults(book, {"guest": "a", "code": "AB"}) == (
            "code: got 'AB', takes a string that matches pattern '^[a-z]+$'",
        )

    def test_a_huge_value_is_cut_in_the_message(self, book):
        (line,) = faults(book, {"guest": "a", "nights": "x" * 1_000_000})
        assert len(line) < 300
        assert "1,000,002 characters" in line

    def test_very_many_faults_are_counted(self):
        @unregistered()
        def add(numbers: list[int]) -> None: ...

        with pytest.raises(ToolArgumentError, match="… and 980 more") as caught:
            add.validate({"numbers": ["x"] * 1000})
        assert len(caught.value.faults) == 1000
        assert str(caught.value).count("\n") == 21

    def test_values_that_are_not_json_at_all(self, book):
        loop: list[Any] = []
        loop.append(loop)
        assert faults(book, {"guest": loop})[0].startswith("guest: got [[...]], takes")
        assert faults(book, {"guest": object()})[0].startswith("guest: got <object")


class TestFromSpec:
    SPEC = ToolSpec(
        name="search",
        namespace="acme",
        input_schema={
            "type": "object",
            "properties": {
                "q": {"type": "string", "description": "what"},
                "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "order": {"enum": ["up", "down"]},
                "where": {"type": "array", "items": {"type": "string", "maxLength": 3}},
            },
            "required": ["q"],
            "additionalProperties": False,
        },
    )

    async def test_arguments_reach_the_function_by_name(self, call):
        def search(q: str, context: ToolContext, **more: Any) -> list[Any]:
            return [q, more, context.call_id]

        made = Tool.from_spec(self.SPEC, search)
        assert await call(made, q="x", n=None) == ["x", {"n": None}, "c1"]

    async def test_a_positional_context_leaves_every_name_to_the_schema(self, call):
        async def forward(context: ToolContext, /, **arguments: Any) -> Any:
            return context.call_id, arguments

        made = Tool.from_spec(ToolSpec(name="any"), forward)
        assert await call(made, context="mine") == ("c1", {"context": "mine"})

    def test_wrong_arguments_are_one_line_for_each_field(self):
        made = Tool.from_spec(self.SPEC, print)
        assert faults(made, {"n": "x", "order": "left", "where": ["abcd"], "w": 1}) == (
            "q: missing; it takes string (what)",
            "w: unknown argument; it takes q, n, order, where",
            "n: got 'x', takes integer or null",
            "order: got 'left', takes one of 'up', 'down'",
            "where[0]: got 'abcd', takes maxLength 3",
        )

    def test_a_schema_that_is_not_one_is_an_error_of_the_tool(self):
        made = Tool.from_spec(ToolSpec(name="x", input_schema={"properties": {"q": {"type": "strin"}}}))
        (line,) = faults(made, {"q": "x"})
        assert "the tool's own schema is not valid" in line

    def test_a_schema_is_never_fetched_from_elsewhere(self):
        schema = {"properties": {"q": {"$ref": "http://127.0.0.1:9/schema.json"}}}
        made = Tool.from_spec(ToolSpec(name="x", input_schema=schema))
        (line,) = faults(made, {"q": "x"})
        assert "refers to what it does not contain" in line

    async def test_a_bare_spec_is_listed_and_calling_it_is_a_clear_error(self, call):
        registry = Registry([self.SPEC])
        assert registry.schemas()[0]["name"] == "acme.search"
        with pytest.raises(ToolError, match=r"'acme\.search' has nothing to call"):
            await call(registry.get("acme.search"), q="x")
