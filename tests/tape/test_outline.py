"""Outlines: what a tree is drawn from, without the payloads."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.tape import Tape, TapeStore, UnknownEntry
from hookline.tape.outline import HEAD, OutlineEntry, one_line, opened, preview_of

from .conftest import chain, note


def said(role: str, content: object, **more: object) -> tuple[str, dict[str, object]]:
    return "message", {"message": {"role": role, "content": content, **more}}


async def test_an_outline_has_every_entry_in_order_with_its_kind_parent_and_time(tape: Tape):
    made = await tape.append_many(
        [said("user", "Hello"), ("note", {"text": "x"}), said("assistant", "Hi")]
    )
    outline = await tape.outline()
    assert [entry[:5] for entry in outline] == [
        (e.id, e.session_id, e.parent_id, e.kind, e.time) for e in made
    ]
    assert [entry.role for entry in outline] == ["user", "", "assistant"]
    assert [entry.preview for entry in outline] == ["Hello", "x", "Hi"]


async def test_the_outline_of_an_unknown_session_is_empty(store: TapeStore):
    assert await store.outline("nobody") == []


async def test_an_outline_has_the_other_branches_too(tape: Tape):
    first, second = await tape.append_many([said("user", "a"), said("user", "b")])
    switch = await tape.switch(first.id)
    assert [entry.id for entry in await tape.outline()] == [first.id, second.id, switch.id]
    assert (await tape.outline())[-1].target == first.id


async def test_a_forks_outline_starts_with_the_path_it_was_forked_from(tape: Tape):
    a, b, _ = await tape.append_many([("note", {"text": text}) for text in "abc"])
    await tape.switch(b.id)
    child = await tape.fork("child")
    await child.switch(a.id)
    grandchild = await child.fork("grandchild")
    outline = await grandchild.outline()
    assert outline[0].id == a.id
    assert [(e.session_id, e.kind) for e in outline] == [
        ("s1", "note"),
        ("child", "switch"),
        ("grandchild", "fork"),
    ]
    assert [e.kind for e in await child.outline()] == ["note", "note", "switch", "fork", "switch"]


async def test_an_outline_does_not_carry_long_payloads(tape: Tape):
    await tape.append(*said("user", "word " * 100_000))
    (entry,) = await tape.outline()
    assert len(entry.head) == HEAD
    assert entry.role == "user"
    assert entry.preview.startswith("word word")
    assert entry.preview.endswith("…")


PREVIEWS = {
    "content in parts": (
        *said("user", [{"type": "image"}, {"type": "text", "text": "a cat"}]),
        "a cat",
    ),
    "calls alone": (
        *said("assistant", "", tool_calls=[{"name": "fs.read"}, {"name": "sh"}]),
        "fs.read, sh",
    ),
    "a tool's call": ("tool_call", {"id": "1", "name": "sh", "arguments": {}}, "sh"),
    "a tool's result": ("tool_result", {"tool_call_id": "1", "name": "sh", "content": "ok"}, "sh: ok"),
    "a summary": ("anchor", {"name": "compaction", "summary": "so far"}, "so far"),
    "a label": ("label", {"entry_id": "x", "name": "good"}, "good"),
    "lines": (*said("user", "a\n\n  b\tc"), "a b c"),
    "what a terminal would obey": (*said("user", "\x1b[31mred\u202e"), "[31mred"),
    "nothing known": ("my.kind", {"n": 1}, ""),
    "a message that is none": ("message", {"message": 3}, ""),
}


@pytest.mark.parametrize("name", PREVIEWS)
async def test_a_preview_says_in_one_line_what_an_entry_is(tape: Tape, name: str):
    kind, payload, expected = PREVIEWS[name]
    await tape.append(kind, payload)
    (entry,) = await tape.outline()
    assert entry.preview == expected == preview_of(kind, payload)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    payload=st.dictionaries(st.text(max_size=4), JSON, max_size=4),
    ascii_only=st.booleans(),
    data=st.data(),
)
def test_a_payload_cut_anywhere_is_read_as_far_as_it_goes(payload: dict, ascii_only: bool, data):
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=ascii_only)
    head = text[: data.draw(st.integers(0, len(text)))]
    found = opened(head)
    assert list(found) == list(payload)[: len(found)]
    assert all(found[key] == payload[key] for key in list(found)[:-1])  # only the last may be cut
    assert isinstance(OutlineEntry("i", "s", None, "message", 0.0, head).preview, str)


@given(text=st.text(max_size=400), width=st.integers(2, 90))
def test_a_line_is_one_line_of_at_most_its_width(text: str, width: int):
    line = one_line(text, width)
    assert len(line) <= width
    assert line.isprintable()


# --- Ancestors ---


async def test_the_common_ancestor_is_where_two_branches_part(store: TapeStore, tape: Tape):
    a, b, c = await tape.append_many([("note", {"text": text}) for text in "abc"])
    switch = await tape.switch(b.id)
    child = await tape.fork("child", entry_id=a.id)
    assert await store.common_ancestor(c.id, switch.id) == b.id
    assert await store.common_ancestor(c.id, b.id) == b.id
    assert await store.common_ancestor(b.id, c.id) == b.id
    assert await store.common_ancestor(c.id, c.id) == c.id
    assert await store.common_ancestor(child.leaf.id, switch.id) == a.id


async def test_branches_of_different_roots_have_no_common_ancestor(store: TapeStore, tape: Tape):
    first = await tape.append("note", {})
    again = await tape.switch(None)
    other = note("elsewhere", session="other")
    await store.append([other])
    assert await store.common_ancestor(first.id, again.id) is None
    assert await store.common_ancestor(first.id, other.id) is None


async def test_an_unknown_entry_has_no_ancestors(store: TapeStore, tape: Tape):
    first = await tape.append("note", {})
    with pytest.raises(UnknownEntry, match="nobody"):
        await store.common_ancestor(first.id, "nobody")
    with pytest.raises(UnknownEntry, match="nobody"):
        await store.common_ancestor("nobody", first.id)


# --- The listing ---


async def test_a_listing_tells_name_last_time_length_and_first_question(store: TapeStore, tape: Tape):
    await tape.append_many(
        [("turn", {"status": "started"}), said("user", "What is\nup?"), said("assistant", "Hm")]
    )
    await tape.rename("first")
    last = await tape.rename("  second ")
    (info,) = await store.sessions()
    assert (info.name, info.preview, info.entries, info.updated) == (
        "second",
        "What is up?",
        5,
        last.time,
    )
    assert await tape.name() == "second"


async def test_a_session_without_name_or_question_is_listed_without(store: TapeStore, tape: Tape):
    await store.append(chain(40))
    (info,) = await store.sessions()
    assert (info.name, info.preview) == (None, "")
    assert await (await Tape.open(store, "s1")).name() is None


async def test_a_fork_has_no_name_of_its_own_and_a_merge_does_not_rename(store: TapeStore, tape: Tape):
    await tape.append("note", {})
    await tape.rename("parent")
    child = await tape.fork("child")
    assert await child.name() is None
    await child.append("note", {"text": "x"})
    await child.rename("child's")
    await tape.merge(child)
    assert await tape.name() == "parent"
    assert {info.id: info.name for info in await store.sessions()} == {
        "s1": "parent",
        "child": "child's",
    }
