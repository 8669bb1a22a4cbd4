from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hookline.tools import ToolError, cut, cut_content, model_content
from hookline.types import ImagePart, TextPart

from ..tables import each_row


@dataclass
class Point:
    x: int
    y: int


class Box(BaseModel):
    corner: Point
    label: str = "ü"


@each_row(
    ("value", "content"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        (None, ""),
        ({"a": [1, True, None]}, '{"a":[1,true,null]}'),
        ([], "[]"),
        (3, "3"),
        (False, "false"),
        (Point(1, 2), '{"x":1,"y":2}'),
        (Box(corner=Point(1, 2)), '{"corner":{"x":1,"y":2},"label":"ü"}'),
        ([Path("a"), date(2024, 1, 2), Decimal("1.50")], '["a","2024-01-02","1.50"]'),
        (float("nan"), '"NaN"'),
        (b"bytes that are text", "bytes that are text"),
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
    ],
)
def test_what_a_model_sees_of_a_value(value, content):
    assert model_content(value) == content


def test_binary_data_is_replaced_by_its_size():
    assert model_content(bytes(range(256)) * 100) == "[binary output, 25,600 bytes, not shown]"
    assert model_content("\x00\x01\x02\ufffd" * 3000) == "[binary output, 12,000 characters, not shown]"


def test_a_stray_character_does_not_hide_a_text():
    name = b"caf\xe9".decode("utf-8", errors="surrogateescape")
    assert model_content(f"a long listing with {name}") == "a long listing with caf\ufffd"
    assert model_content([f"a long listing with {name}"]) == '["a long listing with caf\ufffd"]'
    assert model_content("zero\0separated, but text all the same") == (
        "zero\ufffdseparated, but text all the same"
    )


def test_parts_are_kept_and_text_among_them_becomes_a_part():
    picture = ImagePart(b"\x89PNG")
    assert model_content(picture) == [picture]
    assert model_content([TextPart("a"), picture]) == [TextPart("a"), picture]
    assert model_content(("a", picture)) == [TextPart("a"), picture]


def test_parts_do_not_mix_with_data():
    with pytest.raises(ToolError, match="a list of ImagePart, int"):
        model_content([ImagePart(), 3])


@pytest.mark.parametrize(
    ("value", "name"),
    [(object(), "object"), (print, "builtin_function_or_method"), ({"deep": [object()]}, "dict")],
)
def test_what_is_neither_text_nor_json_is_an_error_that_names_the_type(value, name):
    with pytest.raises(ToolError, match=f"the tool returned {name}, which is neither text nor JSON"):
        model_content(value)


def test_a_value_that_contains_itself_is_an_error_too():
    loop: list = []
    loop.append(loop)
    with pytest.raises(ToolError, match="list"):
        model_content(loop)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffd")))
def test_every_readable_text_stays_as_it_is(text):
    assert model_content(text) == text


@given(st.binary())
def test_no_bytes_are_too_odd_to_be_kept(data):
    content = model_content(data)
    assert isinstance(content, str)
    assert "\0" not in content
    content.encode()


class TestCutting:
    def test_a_short_text_is_left_alone(self):
        assert cut("abc", 3) == "abc"

    def test_the_middle_is_left_out_and_counted(self):
        text = "a" * 6000 + "m" * 6000 + "z" * 6000
        short = cut(text, 1000)
        head, note, tail = short.split("\n")
        assert len(short) <= 1000
        assert (set(head), set(tail)) == ({"a"}, {"z"})
        left_out = len(text) - len(head) - len(tail)
        assert note == f"… {left_out:,} characters left out …"

    @given(st.text(min_size=200), st.integers(60, 199))
    def test_it_never_grows_past_its_limit(self, text, limit):
        assert len(cut(text, limit)) <= limit

    def test_a_limit_too_small_for_anything_still_tells(self):
        assert cut("a" * 100, 0) == "\n… 100 characters left out …\n"

    def test_text_parts_are_cut_and_pictures_are_not(self):
        picture = ImagePart(b"x" * 1000)
        content = cut_content([TextPart("t" * 1000), picture], 100)
        assert isinstance(content, list)
        assert content[1] is picture
        assert "left out" in content[0].text
        assert cut_content("t" * 1000, 100) == cut("t" * 1000, 100)
