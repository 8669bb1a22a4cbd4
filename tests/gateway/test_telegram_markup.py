"""Markdown for Telegram: whatever a model writes can be sent, and all of it arrives."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.ext.telegram.markup import as_html, length, pieces, seen

from ..tables import each_row
from .botapi import _Checked

MARKS = "** _ ` ``` ~~ | --- <b> &amp; < & 😀 ![p](q) [x](javascript:y)".split(" ")
LINES = ["```py\n", "\n", "\n\n", "> ", "- ", "1. ", "# ", "word ", '[a](http://b.c/?d="e")']
MARKDOWN = st.lists(st.sampled_from([*MARKS, *LINES]), max_size=60).map("".join)


@given(MARKDOWN)
@settings(max_examples=300, deadline=None)
def test_any_markdown_becomes_html_that_telegram_takes(text):
    html = as_html(text)
    checked = _Checked(html)
    assert not checked.wrong, (text, html)
    assert checked.text == seen(html)


@each_row("mark", ["[", "![", "*a ", "_*", "- a\n", "|a|\n", "<a", "&", "[a]("])
def test_a_message_that_is_mostly_markup_is_sent_as_it_is(mark):
    text = (mark * 4096)[:4090]
    assert seen(as_html(text)) == text.strip("\n")


def test_markup_in_a_code_block_does_not_count():
    code = "x[i] *= _y[j] | z\n" * 150
    assert as_html(f"**Look**\n```py\n{code}```").startswith("<b>Look</b>\n\n<pre>")


@given(MARKDOWN, st.integers(60, 100))
@settings(max_examples=300, deadline=None)
def test_any_text_is_cut_into_pieces_that_fit_and_every_word_is_in_one(text, limit):
    found = pieces(text, limit)
    assert all(0 < length(piece) <= limit for piece in found)
    # A code block that is cut goes on with its opening line, language and all.
    lines = [line for piece in found for line in piece.splitlines()]
    said = "\n".join(line for line in lines if not line.lstrip().startswith(("```", "~~~")))
    for word in ("word", "😀", "javascript"):
        assert said.count(word) <= text.count(word)
    assert sum(piece.count("😀") for piece in found) == text.count("😀")


@given(MARKDOWN, MARKDOWN)
@settings(max_examples=200, deadline=None)
def test_full_pieces_stay_as_they_are_while_a_text_grows(text, more):
    full = pieces(text, 80)[:-1]
    assert pieces(text + more, 80)[: len(full)] == full


@each_row(
    ("markdown", "html"),
    [
        ("a < b & c", "a &lt; b &amp; c"),
        ("# Title\ntext", "<b>Title</b>\n\ntext"),
        ("**bold** _it_ ~~no~~ `x<y`", "<b>bold</b> <i>it</i> <s>no</s> <code>x&lt;y</code>"),
        ("- a\n- b\n  1. c", "• a\n• b\n  1. c"),
        ("```py\nx = 1\n```", '<pre><code class="language-py">x = 1</code></pre>'),
        ("[a](https://b.c) [d](ftp://e)", '<a href="https://b.c">a</a> d'),
        ("> a\n> > b", "<blockquote>a\n\nb</blockquote>"),
        ("**open", "**open"),
    ],
)
def test_markdown_is_written_as_telegram_shows_it(markdown, html):
    assert as_html(markdown) == html


def test_a_text_is_cut_between_paragraphs_and_a_code_block_goes_on_as_one():
    text = "first\n\nsecond\n\n```py\n" + "".join(f"line {n}\n" for n in range(10)) + "```\nend"
    found = pieces(text, 40)
    assert found[0] == "first\n\nsecond"
    assert all(piece.startswith("```py\n") and piece.endswith("\n```") for piece in found[1:-1])
    lines = [line for piece in found for line in piece.splitlines() if line.startswith("line")]
    assert lines == [f"line {n}" for n in range(10)]
