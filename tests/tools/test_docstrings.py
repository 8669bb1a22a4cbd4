import pytest

from hookline.tools.docstrings import parse_docstring

GOOGLE = """Find things.

Slowly, but surely.

Args:
    query (str): What to look for:
        words.
    limit: How many.

Returns:
    What was found.

Raises:
    ValueError: never
"""
NUMPY = """Find things.

Slowly, but surely.

Parameters
----------
query : str
    What to look for:
    words.
limit : int, optional
    How many.

Returns
-------
list
    What was found.
"""
SPHINX = """Find things.

Slowly, but surely.

:param str query: What to look for:
    words.
:param limit: How many.
:returns: What was found.
"""
PLAIN = """Find things.

Slowly, but surely.

query: What to look for:
    words.
limit: How many.
"""


@pytest.mark.parametrize(
    "doc", [GOOGLE, NUMPY, SPHINX, PLAIN], ids=["google", "numpy", "sphinx", "plain"]
)
def test_every_usual_form_gives_the_same(doc):
    description, texts = parse_docstring(doc, ["query", "limit"])
    assert description == "Find things.\n\nSlowly, but surely."
    assert texts == {"query": "What to look for: words.", "limit": "How many."}


def test_no_docstring_is_no_description():
    assert parse_docstring(None, ["a"]) == ("", {})


def test_words_with_a_colon_that_are_no_parameter_stay():
    description, texts = parse_docstring("Do.\n\nNote: slow\nwarning: a: b", ["a"])
    assert description == "Do.\n\nNote: slow\nwarning: a: b"
    assert texts == {}


def test_examples_stay_in_the_description():
    description, _ = parse_docstring("Do.\n\nExample:\n    do(1)\n\nReturns:\n    x", [])
    assert description == "Do.\n\nExample:\n    do(1)"


def test_text_after_a_section_is_description_again():
    description, texts = parse_docstring("Do.\n\nArgs:\n    a: one\n\nMore of it.", ["a"])
    assert description == "Do.\n\nMore of it."
    assert texts == {"a": "one"}


def test_what_is_said_of_an_unknown_parameter_is_nobodys():
    _, texts = parse_docstring(
        "Do.\n\nArgs:\n    a: one\n    ghost: two\n        lines\n    b: three", ["a", "b"]
    )
    assert texts == {"a": "one", "b": "three"}


def test_a_parameter_named_like_a_section():
    _, texts = parse_docstring("Do.\n\nnotes: what to note\nexamples: some", ["notes", "examples"])
    assert texts == {"notes": "what to note", "examples": "some"}
