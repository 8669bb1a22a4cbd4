"""Compaction: what is summarised, what stays whole, and what does not fit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.agent.compaction import (
    CompactionResult,
    Preparation,
    apply,
    branch_request,
    check,
    context_tokens,
    estimate_messages,
    estimate_tokens,
    plan,
    summary_request,
)
from hookline.errors import BadCompaction
from hookline.tape import Entry, MemoryTapeStore, Tape, TapeContext

WORDS = "x" * 400  # a hundred tokens


class Script:
    """A session written by hand, entry by entry."""

    def __init__(self) -> None:
        self.steps: list[Any] = []

    def begin(self, text: str = WORDS) -> "Script":
        self.steps.append(("turn", {"status": "started", "turn_id": "t"}))
        return self.user(text)

    def end(self) -> "Script":
        self.steps.append(("turn", {"status": "completed", "turn_id": "t"}))
        return self

    def user(self, text: str = WORDS) -> "Script":
        self.steps.append(("message", {"message": {"role": "user", "content": text}}))
        return self

    def says(self, text: str = WORDS, usage: dict[str, int] | None = None) -> "Script":
        meta = {"usage": usage} if usage else {}
        self.steps.append(("message", {"message": {"role": "assistant", "content": text}}, meta))
        return self

    def calls(self, *ids: str) -> "Script":
        calls = [{"id": call, "name": "t", "arguments": {}} for call in ids]
        message = {"role": "assistant", "content": "", "tool_calls": calls}
        self.steps.append(("message", {"message": message}))
        self.steps += [("tool_call", call) for call in calls]
        return self

    def results(self, *ids: str, text: str = WORDS) -> "Script":
        self.steps += [
            ("tool_result", {"tool_call_id": call, "name": "t", "content": text}) for call in ids
        ]
        return self

    def turn(self) -> "Script":
        return self.begin().says().end()

    async def tape(self) -> Tape:
        tape = await Tape.open(MemoryTapeStore(), "s")
        await tape.append_many(self.steps)
        return tape


async def planned(script: Script, keep: int) -> tuple[Preparation | None, list[Entry]]:
    entries = await (await script.tape()).context_entries()
    return plan(entries, keep_tokens=keep), entries


def kept(preparation: Preparation, entries: list[Entry]) -> int:
    """The place of the first entry kept."""
    return [entry.id for entry in entries].index(preparation.first_kept_entry_id)


# --- Planning ---


async def test_recent_turns_that_fit_are_kept_whole():
    preparation, entries = await planned(Script().turn().turn().turn(), 450)
    assert preparation is not None
    assert kept(preparation, entries) == 4  # where the second turn begins
    assert list(preparation.entries) == entries[:4]
    assert (preparation.tokens_before, preparation.kept_tokens) == (600, 400)
    assert not preparation.splits_turn


async def test_what_fits_is_not_compacted():
    assert (await planned(Script().turn().turn(), 400))[0] is None
    assert plan([], keep_tokens=0) is None


async def test_nothing_is_kept_when_nothing_is_to_be_kept():
    preparation, entries = await planned(Script().turn().turn(), 0)
    assert preparation is not None
    assert preparation.first_kept_entry_id is None
    assert list(preparation.entries) == entries


async def test_a_turn_under_way_is_kept_even_then():
    preparation, entries = await planned(Script().turn().begin(), 0)
    assert preparation is not None
    assert kept(preparation, entries) == 4


async def test_a_turn_that_alone_is_too_large_is_cut_where_the_model_began_to_answer():
    script = Script().turn().begin().calls("a", "b").results("a", "b").calls("c").results("c")
    preparation, entries = await planned(script, 150)
    assert preparation is not None
    place = kept(preparation, entries)
    assert entries[place].payload["message"]["tool_calls"][0]["id"] == "c"
    assert preparation.splits_turn
    assert list(preparation.turn_prefix) == entries[4:place]


async def test_a_model_turn_that_alone_is_too_large_is_kept():
    script = Script().turn().begin().calls("a", "b").results("a", "b")
    preparation, entries = await planned(script, 10)
    assert preparation is not None
    assert kept(preparation, entries) == 6
    assert entries[6].payload["message"]["tool_calls"]


async def test_a_call_whose_result_is_on_the_way_is_kept():
    script = Script().turn().begin().says().calls("a", "b").results("a").user()
    preparation, entries = await planned(script, 100)
    assert preparation is not None
    assert entries[kept(preparation, entries)].payload["message"].get("tool_calls")


async def test_a_message_that_joined_a_turn_begins_none():
    script = Script().turn().begin("hi").says().user().says()
    preparation, entries = await planned(script, 350)
    assert preparation is not None
    assert entries[kept(preparation, entries)].kind == "turn"


async def test_messages_without_a_journal_are_turns_too():
    preparation, entries = await planned(Script().user().says().user().says(), 200)
    assert preparation is not None
    assert kept(preparation, entries) == 2


async def test_one_request_alone_cannot_be_compacted():
    assert (await planned(Script().begin(), 10))[0] is None


async def test_another_estimate_may_be_used():
    entries = await (await Script().turn().turn().tape()).context_entries()
    preparation = plan(entries, keep_tokens=4, estimate=lambda entry: 1)
    assert preparation is not None
    assert preparation.kept_tokens == 4


# --- Tokens ---


async def test_tokens_are_what_the_model_counted_and_an_estimate_of_the_rest():
    script = Script().begin().says(usage={"input_tokens": 1000, "output_tokens": 50}).user()
    entries = await (await script.tape()).context_entries()
    assert context_tokens(entries) == 1050 + 100


async def test_what_was_counted_before_an_anchor_does_not_count():
    tape = await Script().begin().says(usage={"input_tokens": 9000, "output_tokens": 50}).tape()
    await tape.anchor("a", summary="x" * 40, keep_from=tape.leaf.id)
    assert context_tokens(await tape.context_entries()) < 200


def test_tokens_are_a_quarter_of_the_characters_and_pictures_have_a_size_of_their_own():
    def entry(kind: str, payload: dict[str, Any], meta: dict[str, Any] | None = None) -> Entry:
        return Entry.new("s", None, kind, payload, meta)

    picture = {"role": "user", "content": [{"type": "image", "data": "x" * 1_000_000}]}
    assert estimate_tokens(entry("message", {"message": picture})) == 1200
    assert estimate_tokens(entry("tool_result", {"content": "x" * 9})) == 3
    assert estimate_tokens(entry("tool_result", {"content": "x"}, {"context": False})) == 0
    assert estimate_tokens(entry("note", {"text": "x" * 100})) == 0
    assert estimate_messages([{"role": "user", "content": "x" * 40}, picture]) == 1210


# --- What fits ---


async def test_a_compaction_leaves_the_summary_and_what_is_kept():
    tape = await Script().turn().turn().tape()
    preparation = plan(await tape.context_entries(), keep_tokens=250)
    assert preparation is not None
    done = CompactionResult(
        "So far.", preparation.first_kept_entry_id, preparation.tokens_before, {"files": ["a"]}
    )
    anchor = await apply(tape, done)
    assert anchor.meta == {"tokens_before": 400, "details": {"files": ["a"]}}
    contents = [m["content"] for m in TapeContext().messages(await tape.context_entries())]
    assert contents == ["Summary of the conversation so far:\nSo far.", WORDS, WORDS]
    assert len(await tape.branch()) == 9  # nothing is gone


async def test_a_second_compaction_carries_the_first_forward_and_the_state_of_a_handoff_stays():
    tape = await Script().turn().tape()
    await tape.handoff("to you", state={"ticket": 7}, summary="The first part.")
    await tape.append_many(Script().turn().turn().steps)
    preparation = plan(await tape.context_entries(), keep_tokens=250)
    assert preparation is not None
    assert preparation.previous_summary == "The first part."
    assert all(entry.kind != "anchor" for entry in preparation.entries)
    await apply(tape, CompactionResult("Both parts.", preparation.first_kept_entry_id))
    told = TapeContext().messages(await tape.context_entries())[0]["content"]
    assert "Both parts." in told
    assert '"ticket": 7' in told


@pytest.mark.parametrize("summary", ["", "  \n", None])
async def test_a_compaction_without_summary_is_refused(summary: Any):
    tape = await Script().turn().tape()
    with pytest.raises(BadCompaction, match=r"summary is empty.*nothing was changed"):
        await apply(tape, CompactionResult(summary, None))
    assert len(await tape.branch()) == 4


async def test_a_compaction_that_keeps_an_unknown_entry_is_refused():
    tape = await Script().turn().tape()
    with pytest.raises(BadCompaction, match="'nobody' is no entry of the context"):
        await apply(tape, CompactionResult("x", "nobody"))
    other = await Tape.open(tape.store, "other")
    foreign = await other.append("note", {})
    with pytest.raises(BadCompaction, match="no entry of the context"):
        await apply(tape, CompactionResult("x", foreign.id))
    assert len(await tape.branch()) == 4


async def test_a_compaction_that_keeps_an_anchor_is_refused():
    tape = await Script().turn().tape()
    anchor = await tape.anchor("a", summary="x")
    with pytest.raises(BadCompaction, match="is an anchor"):
        check(CompactionResult("x", anchor.id), await tape.context_entries())


async def test_a_compaction_that_parts_a_call_from_its_result_is_refused():
    tape = await Script().begin().calls("a", "b").results("b", "a").says().end().tape()
    entries = await tape.context_entries()
    for entry in (*entries[:3], *entries[7:]):
        check(CompactionResult("x", entry.id), entries)
    for entry in entries[3:7]:
        with pytest.raises(BadCompaction, match="parts a tool call from its result"):
            check(CompactionResult("x", entry.id), entries)


async def test_a_compaction_that_keeps_nothing_while_a_call_is_open_is_refused():
    tape = await Script().begin().calls("a").tape()
    with pytest.raises(BadCompaction, match="after the last entry parts a tool call"):
        await apply(tape, CompactionResult("x", None))


async def test_what_is_no_compaction_is_refused():
    with pytest.raises(BadCompaction, match="must be a CompactionResult, not dict"):
        check({"summary": "x"}, [])  # type: ignore[arg-type]


STEPS = st.lists(
    st.sampled_from(["begin", "end", "user", "says", "calls", "results", "late"]), max_size=25
)


@given(steps=STEPS, keep=st.integers(0, 1500))
async def test_whatever_happened_a_plan_fits_and_leaves_every_result_with_its_call(
    steps: list[str], keep: int
):
    script = Script()
    for number, step in enumerate(steps):
        if step == "calls":
            script.calls(f"a{number}", f"b{number}")
        elif step == "results":
            script.results(f"a{number - 1}", f"b{number - 1}")
        elif step == "late":
            script.results(*(f"b{earlier}" for earlier in range(number) if steps[earlier] == "calls"))
        else:
            getattr(script, step)()
    tape = await script.tape()
    before = TapeContext(unanswered="keep").messages(await tape.context_entries())
    preparation = plan(await tape.context_entries(), keep_tokens=keep)
    if preparation is None:
        return
    await apply(tape, CompactionResult("so far", preparation.first_kept_entry_id))
    after = TapeContext(unanswered="keep").messages(await tape.context_entries())[1:]
    assert after == before[len(before) - len(after) :]  # what is kept is whole, and the end of it
    if after:
        assert after[0]["role"] != "tool"


# --- Asking ---


async def test_the_request_has_the_conversation_the_instructions_and_the_last_summary():
    tape = await Script().turn().tape()
    await tape.anchor("a", summary="The last summary.")
    script = (
        Script().begin("Read it").calls("a").results("a", text="y" * 5000).says("Read.").end().turn()
    )
    await tape.append_many(script.steps)
    preparation = plan(await tape.context_entries(), keep_tokens=200)
    assert preparation is not None
    (message,) = summary_request(preparation, "mind the paths")
    text = message["content"]
    assert message["role"] == "user"
    assert "<summary>\nThe last summary.\n</summary>" in text
    assert "Also: mind the paths" in text
    assert "[user] Read it" in text
    assert "[assistant calls] t({})" in text
    assert "[3000 characters cut]" in text
    assert "summarised before" in text
    assert "still being worked on" not in text


async def test_the_request_says_when_a_turn_goes_on():
    script = Script().begin("The task").calls("a").results("a").calls("b").results("b")
    preparation, _ = await planned(script, 110)
    assert preparation is not None
    assert "still being worked on" in summary_request(preparation)[0]["content"]


async def test_the_request_for_a_branch_left_behind_has_only_that_branch():
    tape = await Script().user("shared").tape()
    shared = tape.leaf
    await tape.append_many(Script().says("a wrong way").steps)
    ancestor, left = await tape.left_behind(shared.id)
    assert ancestor == shared.id
    (message,) = branch_request(left, "be kind")
    assert "a wrong way" in message["content"]
    assert "shared" not in message["content"]
    assert "Also: be kind" in message["content"]
