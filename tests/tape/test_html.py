"""Sessions as pages: complete, and harmless whatever is on them."""

import json
import re
from html.parser import HTMLParser

import pytest

from hookline.tape import Tape, TapeError, TapeStore
from hookline.tape.html import html_page

from .test_outline import said

HOSTILE = [
    "<script>alert(1)</script>",
    "</pre></article><img src=x onerror=alert(1)>",
    "<!-- --!> ]]> &lt;b&gt;",
    '"><a href="javascript:alert(1)">x</a>',
    "</title></style></script><iframe src=//example.com>",
    "half a pair \ud800 and \0 \x1b[2J",
]


class Page(HTMLParser):
    """The elements of a page, and its text by article."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.articles: dict[str, str] = {}
        self._in: str | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "article":
            self._in = dict(attrs)["id"].removeprefix("e-")
            self.articles[self._in] = ""

    def handle_endtag(self, tag):
        if tag == "article":
            self._in = None

    def handle_data(self, data):
        if self._in is not None:
            self.articles[self._in] += data


async def test_a_page_has_every_entry_of_every_branch_and_shows_the_current_one(
    store: TapeStore, tape: Tape
):
    question, answer = await tape.append_many([said("user", "A poem?"), said("assistant", "Roses")])
    await tape.switch(question.id)
    other = await tape.append(*said("assistant", "The sea"))
    page = Page(await html_page(store, "s1"))
    assert list(page.articles) == [entry.id for entry in await store.entries("s1")]
    hidden = {a["id"] for tag, a in page.tags if tag == "article" and "hidden" in a}
    assert hidden == {f"e-{answer.id}"}
    assert "The sea" in page.articles[other.id]
    links = [a["href"] for tag, a in page.tags if tag == "a"]
    assert f"#e-{answer.id}" in links


async def test_a_page_has_what_the_session_was_forked_from(store: TapeStore, tape: Tape):
    first = await tape.append(*said("user", "before"))
    child = await tape.fork("child")
    page = Page(await html_page(store, "child"))
    assert list(page.articles) == [first.id, child.leaf.id]


@pytest.mark.parametrize("text", HOSTILE)
async def test_whatever_is_on_the_tape_stays_text(store: TapeStore, tape: Tape, text: str):
    harmless = Page(await harmless_page(store))
    call = {"id": text, "name": text, "arguments": {text: text}}
    entry = await tape.append(*said("user", text))
    await tape.append(
        *said("assistant", [{"type": text, "text": text}, {"type": text}], tool_calls=[call])
    )
    await tape.append("tool_call", call)
    await tape.append("tool_result", {"tool_call_id": text, "name": text, "content": text})
    await tape.append("my.kind", {text: [text]})
    await tape.label(entry.id, text)
    await tape.anchor(text, summary=text, state={text: text})
    await tape.rename(text)
    raw = await html_page(store, "s1")
    raw.encode()
    page = Page(raw)
    allowed = {(tag, tuple(sorted(attributes))) for tag, attributes in harmless.tags}
    found = {(tag, tuple(sorted(attributes))) for tag, attributes in page.tags}
    assert found <= allowed
    for tag, attributes in page.tags:
        if tag == "a":
            assert attributes["href"].startswith("#e-")
        assert "src" not in attributes


async def harmless_page(store: TapeStore) -> str:
    """A page with one of everything."""
    tape = await Tape.open(store, "harmless")
    first = await tape.append(*said("user", "x"))
    call = {"id": "1", "name": "t", "arguments": {}}
    await tape.append(*said("assistant", [{"text": "x"}, {"type": "image"}], tool_calls=[call]))
    await tape.append("tool_call", call)
    await tape.label(first.id, "x")
    await tape.anchor("x", summary="x")
    return await html_page(store, "harmless")


async def test_nothing_leaves_a_page_and_only_its_own_script_runs(store: TapeStore):
    raw = await harmless_page(store)
    policy = next(a["content"] for t, a in Page(raw).tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert not re.search(r"https?://|//[a-z]|url\(|@import|fetch\(|XMLHttp", raw)


async def test_the_data_of_a_page_is_json_that_cannot_end_its_element(store: TapeStore, tape: Tape):
    await tape.append(*said("user", "x"))
    raw = await html_page(store, "s1")
    data = re.search(r'<script type="application/json" id="tape">(.*?)</script>', raw)
    assert json.loads(data[1])["leaf"] == tape.leaf.id


async def test_an_unknown_session_has_no_page(store: TapeStore):
    with pytest.raises(TapeError, match="no session 'nobody'"):
        await html_page(store, "nobody")
