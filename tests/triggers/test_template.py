"""Message templates: fields of a payload, and nothing else."""

import pytest

from hookline.ext.triggers import Template, TemplateError

from ..tables import each_row

PAYLOAD = {"order": {"id": 17, "items": ["ink", {"name": "paper"}]}, "who": "Ä {x}", "a-b": None}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("nothing", "nothing"),
        ("{who}", "Ä {x}"),
        ("order {order.id}: {order.items.0}, {order.items.1.name}", "order 17: ink, paper"),
        ("{order.items.1}", '{"name": "paper"}'),
        ("{a-b} {{{order.id}}}", "null {17}"),
    ],
)
def test_fields_are_filled(text, filled):
    assert Template(text).fill(PAYLOAD) == filled


def test_a_dot_is_the_whole_payload():
    assert Template("got {.}").fill({"a": "ä"}) == 'got {"a": "ä"}'
    assert Template("{.}").fill("text") == "text"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("{order.total}", "order.total"),
        ("{order.items.2}", "order.items.2"),
        ("{order.id.__class__}", "order.id.__class__"),
        ("{who.upper}", "who.upper"),
        ("{order.items.append}", "order.items.append"),
    ],
)
def test_a_field_that_is_not_there_is_named(text, missing):
    with pytest.raises(TemplateError, match=f"no field '{missing}'"):
        Template(text).fill(PAYLOAD)


@each_row("text", ["{", "a } b", "{a b}", "{}", "{a!r}", "{a:>10}", "{a[0]}", "{a..b}"])
def test_what_is_no_template_is_refused_when_it_is_read(text):
    with pytest.raises(TemplateError):
        Template(text)
