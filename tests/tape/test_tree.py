"""The tree of a session: built from its outline and drawn."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.tape import MemoryTapeStore, OutlineEntry, Tape
from hookline.tape.tree import Tree

from .test_outline import said


def head(text: str) -> str:
    return json.dumps({"message": {"role": "user", "content": text}}, separators=(",", ":"))


def outline(*parents: int | None, kind: str = "message") -> list[OutlineEntry]:
    """Entries 0, 1, 2, … with these parents, each a user's message with its number."""
    return [
        OutlineEntry(
            str(number),
            "s",
            None if parent is None else str(parent),
            kind,
            float(number),
            head(str(number)),
        )
        for number, parent in enumerate(parents)
    ]


def numbers(run) -> list[int]:
    return [int(entry.id) for entry in run.entries]


def test_entries_without_a_branch_are_one_run():
    tree = Tree.of(outline(None, 0, 1, 2))
    assert [numbers(run) for run in tree.roots] == [[0, 1, 2, 3]]
    assert tree.leaf is tree.roots[0]


def test_a_branch_point_ends_a_run():
    tree = Tree.of(outline(None, 0, 1, 1, 3))
    (root,) = tree.roots
    assert numbers(root) == [0, 1]
    assert [numbers(child) for child in root.children] == [[2], [3, 4]]
    assert [numbers(run) for run in tree.trunk()] == [[0, 1], [3, 4]]


def test_going_on_at_the_end_of_a_branch_that_was_left_makes_no_branch():
    tree = Tree.of(outline(None, 0, 0, 1, 2, 3))
    (root,) = tree.roots
    assert [numbers(child) for child in root.children] == [[1, 3, 5], [2, 4]]
    assert numbers(tree.leaf) == [1, 3, 5]


def test_beginning_again_makes_another_root():
    tree = Tree.of(outline(None, 0, None, 2))
    assert [numbers(run) for run in tree.roots] == [[0, 1], [2, 3]]
    assert tree.draw() == "├─ 0\n│  1\n└─ 2\n   3  ← here"


def test_an_empty_session_has_no_tree():
    assert Tree.of([]).draw() == ""
    assert Tree.of([]).trunk() == []


def test_branches_are_drawn_under_the_entry_they_follow():
    drawn = Tree.of(outline(None, 0, 1, 1, 3, 3)).draw()
    assert drawn == "0\n1\n├─ 2\n└─ 3\n   ├─ 4\n   └─ 5  ← here"


def test_plain_characters_are_enough():
    drawn = Tree.of(outline(None, 0, 1, 0)).draw(ascii_only=True)
    assert drawn == "0\n|- 1\n|  2\n`- 3  <- here"
    entry = outline(None)[0]._replace(head=head("naïve 世界"))
    assert Tree.of([entry]).draw(ascii_only=True).isascii()


async def test_questions_labels_and_summaries_have_lines_and_the_rest_has_none():
    tape = await Tape.open(MemoryTapeStore(), "s")
    await tape.append("turn", {"status": "started"})
    question = await tape.append(*said("user", "A poem?"))
    answer = await tape.append(*said("assistant", "Roses"))
    await tape.append("tool_result", {"tool_call_id": "x", "name": "sh", "content": "hidden"})
    await tape.label(answer.id, "red")
    await tape.label(answer.id, "nice")
    await tape.append(*said("user", "shorter"))
    await tape.switch(question.id, summary="too short")
    await tape.append(*said("user", "about the sea"))
    tree = Tree.of(await tape.outline())
    assert tree.draw() == (
        "A poem?\n"
        "├─ (assistant) Roses [red] [nice]\n"
        "│  shorter\n"
        "└─ (switch) too short\n"
        "   about the sea  ← here"
    )
    assert [line.entry_id for line in tree.lines()][:2] == [question.id, answer.id]


async def test_the_last_label_of_a_name_counts():
    tape = await Tape.open(MemoryTapeStore(), "s")
    first, second = await tape.append_many([said("user", "1"), said("user", "2")])
    await tape.label(first.id, "here")
    await tape.label(first.id, "gone")
    await tape.label(second.id, "here")
    await tape.label(None, "gone")
    assert Tree.of(await tape.outline()).labels == {second.id: ["here"]}


async def test_the_leaf_is_marked_where_a_switch_has_just_led():
    tape = await Tape.open(MemoryTapeStore(), "s")
    first, _ = await tape.append_many([said("user", "1"), said("user", "2")])
    await tape.switch(first.id)
    assert Tree.of(await tape.outline()).draw() == "1\n├─ 2\n└─ (switch)  ← here"


def test_of_a_long_run_the_ends_are_drawn():
    tree = Tree.of(outline(None, *range(999)))
    lines = tree.draw(limit=21).splitlines()
    assert len(lines) == 21
    assert lines[9:12] == ["9", "… 980 more", "990"]
    assert lines[-1] == "999  ← here"


def test_of_a_tree_deep_in_branches_those_near_the_leaf_are_drawn():
    parents: list[int | None] = [None]
    for number in range(0, 2000, 2):
        parents += [number, number]  # each second child goes on
    tree = Tree.of(outline(*parents))
    lines = tree.lines(depth=5)
    assert lines[0].text.endswith("earlier, 995 branch points")
    assert lines[-1].is_leaf
    assert len(lines) == 1 + 1 + 2 * 5


def test_a_wide_tree_is_cut_around_the_leaf():
    lines = Tree.of(outline(None, *[0] * 1000)).lines(limit=10)
    assert len(lines) == 10
    assert [line.is_leaf for line in lines].count(True) == 1
    assert lines[0].text == "… 992 lines above"


def test_lines_are_no_wider_than_asked():
    entry = outline(None)[0]._replace(head=head("x" * 200))
    (line,) = Tree.of([entry]).lines(width=30)
    assert len(line.text) == 30
    assert line.text.endswith("…  ← here")


@st.composite
def random_outlines(draw: st.DrawFn) -> list[OutlineEntry]:
    size = draw(st.integers(1, 40))
    parents = [draw(st.none() | st.integers(0, n - 1)) if n else None for n in range(size)]
    return outline(*parents)


@pytest.mark.parametrize("limit", [3, 10, 1000])
@given(entries=random_outlines())
def test_every_entry_is_in_one_run_under_its_parent(limit: int, entries: list[OutlineEntry]):
    tree = Tree.of(entries)
    seen: list[str] = []
    waiting = list(tree.roots)
    while waiting:
        run = waiting.pop()
        before = run.parent.entries[-1].id if run.parent else None
        for entry in run.entries:
            assert entry.parent_id == before
            before = entry.id
            seen.append(entry.id)
        assert len(run.children) != 1
        waiting += run.children
    assert sorted(seen) == sorted(entry.id for entry in entries)
    assert tree.leaf is not None
    assert tree.leaf.entries[-1] is entries[-1]
    lines = tree.lines(limit=limit, depth=50)
    assert len(lines) <= limit
    assert sum(line.is_leaf for line in lines) == 1
    if limit == 1000:
        assert {line.entry_id for line in lines} == set(seen)
