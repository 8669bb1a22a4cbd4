"""A recorded session, once more: the same where nothing changed, and told where something did."""

import random

import pytest

from hookline.events import (
    BeforeAgentStartEventResult,
    InputEventResult,
    ToolCallEventResult,
    ToolResultEventResult,
)
from hookline.models.script import Call, Turn
from hookline.observe.replay import ReplayError, UnknownRecording
from hookline.observe.trace.plugin import Tracing

from .conftest import HERE, calling

CONVERSATION = [calling("one"), "first", calling("two", "three"), "second"]


def fields(comparison):
    return [(d.field, d.call) for d in comparison.differences]


def deny(word):
    def judge(event):
        if event.input.get("word") == word:
            return ToolCallEventResult(block=True, reason="not that word")
        return None

    return judge


async def test_with_nothing_changed_a_replay_is_the_same_and_no_tool_runs(record, replaying, tools):
    await record("go", "again", turns=CONVERSATION)
    comparison = await replaying()
    assert comparison.same, comparison.data()
    assert [pair.replayed.answer for pair in comparison.pairs] == ["first", "second"]
    assert [c.content for p in comparison.pairs for c in p.replayed.calls.values()] == [
        "acted one", "acted two", "acted three",
    ]  # fmt: skip
    assert tools.runs == []


async def test_a_plain_replay_writes_nothing_on_the_tape(app, record, replaying):
    before = await record("go", turns=[calling("one"), "first"])
    await replaying()
    async with app.running():
        assert [info.id for info in await app.store().sessions()] == [HERE]
        assert await app.store().entries(HERE) == before


async def test_a_new_rule_shows_as_a_changed_decision_with_who_and_why(record, replaying, tools):
    await record("go", "again", turns=CONVERSATION)
    comparison = await replaying([("tool_call", deny("two"))])
    decision = next(d for d in comparison.differences if d.field == "decision")
    assert decision.tool == "act"
    assert decision.before["decision"] == "allowed"
    assert decision.after["decision"] == "denied"
    assert decision.after["by"]
    assert decision.after["reason"] == "not that word"
    assert {d.field for d in comparison.differences} == {"decision", "result"}
    assert {d.item for d in comparison.differences} == {1}
    assert any("recorded answers were used anyway" in note for note in comparison.notes)
    assert tools.runs == []


async def test_a_rule_that_is_gone_shows_too_and_the_tool_still_does_not_run(
    app, record, replaying, tools
):
    app.hooks.register("tool_call", deny("one"))
    await record("go", turns=[calling("one"), "first"])
    comparison = await replaying()
    decision = next(d for d in comparison.differences if d.field == "decision")
    assert (decision.before["decision"], decision.after["decision"]) == ("denied", "allowed")
    result = next(d for d in comparison.differences if d.field == "result")
    assert "no result" in result.after["content"]
    assert any("not loaded now" in note for note in comparison.notes)
    assert tools.runs == []


async def test_rewritten_arguments_results_prompts_and_system_prompts_are_told(record, replaying):
    await record("go", turns=[calling("one"), "first"])
    comparison = await replaying(
        [
            ("input", lambda e: InputEventResult(action="transform", text=e.text + "!")),
            ("before_agent_start", lambda e: BeforeAgentStartEventResult(system_prompt="Be kind.")),
            ("before_tool_call", lambda arguments: {**arguments, "word": "other"}),
            ("tool_result", lambda e: ToolResultEventResult(content=f"<{e.content}>")),
        ]
    )
    found = {d.field: (d.before, d.after) for d in comparison.differences}
    assert found["message"] == ("go", "go!")
    assert found["system"][1] == "Be kind."
    assert found["arguments"] == ({"word": "one"}, {"word": "other"})
    assert found["result"][1]["content"] == "<acted one>"
    assert set(found) == {"message", "system", "arguments", "result"}


async def test_a_message_that_is_blocked_now_is_a_changed_outcome(record, replaying):
    await record("go", "stop that", turns=["one", "two"])
    block = InputEventResult(action="block", reason="no")
    comparison = await replaying([("input", lambda e: block if "stop" in e.text else None)])
    outcome = next(d for d in comparison.differences if d.field == "outcome")
    assert (outcome.item, outcome.before, outcome.after) == (1, "completed", "blocked: no")


async def test_a_tools_error_is_an_error_again(record, replaying, tools):
    await record("go", turns=[Turn(tool_calls=[Call("broken", {})]), "oh"])
    comparison = await replaying()
    assert comparison.same, comparison.data()
    (call,) = comparison.pairs[0].replayed.calls.values()
    assert call.is_error
    assert tools.runs == []


async def test_a_turn_that_failed_fails_again_in_the_same_words(app, record, replaying):
    with pytest.raises(Exception, match="no turn left"):
        await record("go", turns=[calling("one")])
    comparison = await replaying()
    assert comparison.same, comparison.data()
    assert "no turn left" in comparison.pairs[0].replayed.error


# --- replay policies ---


async def test_a_tool_that_must_be_stubbed_gives_a_stub_or_what_is_supplied(record, replaying, tools):
    await record("go", turns=[Turn(tool_calls=[Call("stubbed", {}, id="c1")]), "done"])
    plain = await replaying()
    (stub,) = [d for d in plain.differences if d.field == "result"]
    assert "stands in" in stub.after["content"]
    supplied = await replaying(results={"c1": "the real thing"})
    assert fields(supplied) == []
    assert tools.runs == []


async def test_a_tool_that_must_not_be_replayed_stops_the_replay_and_says_so(record, replaying, tools):
    await record("go", "again", turns=[Turn(tool_calls=[Call("loud", {}, id="c1")]), "done", "more"])
    comparison = await replaying()
    assert "must not be replayed" in comparison.stopped
    assert "--result c1=TEXT" in comparison.stopped
    assert len(comparison.pairs) == 1
    supplied = await replaying(results={"c1": "the real thing"})
    assert supplied.stopped is None
    assert fields(supplied) == []
    assert tools.runs == []


# --- what-if ---


async def test_a_what_if_is_a_fork_with_its_mark_and_the_original_stays(
    app, record, replaying, entries
):
    before = await record("go", "again", turns=CONVERSATION)
    comparison = await replaying(results={before[2].payload["message"]["tool_calls"][0]["id"]: "else"})
    assert comparison.branch.startswith(f"{HERE}/replay-")
    assert await entries() == before
    written = await entries(comparison.branch)
    assert written[0].kind == "fork"
    assert written[0].meta["replay"]["of"] == HERE
    kept = [e.payload["content"] for e in written if e.kind == "tool_result"]
    assert kept == ["else", "acted two", "acted three"]
    async with app.running():
        assert [info.id for info in await app.sessions.list()] == [HERE]
        branch = await app.store().branch(written[-1].id)
        assert [e.id for e in branch] == [e.id for e in written]


async def test_from_a_turn_on_everything_before_stays_as_it_was(record, replaying, entries):
    before = await record("go", "again", turns=CONVERSATION)
    turns = [e for e in before if e.kind == "turn" and e.payload["status"] == "started"]
    comparison = await replaying(entry=turns[1].id)
    assert [pair.index for pair in comparison.pairs] == [1]
    assert comparison.same
    written = await entries(comparison.branch)
    assert written[0].parent_id == turns[1].parent_id


async def test_from_a_call_on_the_calls_of_that_answer_are_made_anew(record, replaying, entries):
    before = await record("go", "again", turns=CONVERSATION)
    calls = [e for e in before if e.kind == "tool_call"]
    results = {calls[2].payload["id"]: "else"}
    comparison = await replaying(entry=calls[2].id, results=results)
    assert fields(comparison) == [("result", calls[2].payload["id"])]
    written = await entries(comparison.branch)
    assert [e.payload["name"] for e in written if e.kind == "tool_call"] == ["act", "act"]
    assert [e.kind for e in written if e.kind == "turn"] == ["turn"]


async def test_another_message_is_put_to_the_recorded_model_or_to_a_real_one(
    app, record, replaying, tmp_path
):
    await record("go", turns=[calling("one"), "first"])
    recorded = await replaying(message="go elsewhere")
    assert fields(recorded) == [("message", "")]
    assert any("used anyway" in note for note in recorded.notes)
    script = tmp_path / "turns.toml"
    script.write_text('[[turns]]\ntext = "I would rather not."\n')
    real = await replaying(message="go elsewhere", model=f"scripted:{script}")
    assert real.pairs[0].replayed.answer == "I would rather not."
    assert any("was not played twice" in note for note in real.notes)


async def test_where_the_record_has_no_answer_it_says_so(record, replaying):
    from hookline.events import AgentStopEventResult

    await record("go", turns=["first"])
    again = AgentStopEventResult(block=True, reason="go on")
    comparison = await replaying([("agent_stop", lambda e: again)])
    assert "diverged here; the recorded model has no answer" in comparison.diverged


async def test_another_version_of_a_hook_file_takes_the_place_of_the_loaded_one(
    app, record, replaying, tmp_path
):
    folder = app.home / "profiles" / "default" / "hooks"
    folder.mkdir(parents=True)
    text = (
        "from hookline.events import ToolCallEvent, ToolCallEventResult\n"
        "def judge(event):\n"
        "    if event.input.get('word') == {word!r}:\n"
        "        return ToolCallEventResult(block=True, reason='a rule')\n"
        "hooks = [(ToolCallEvent, judge)]\n"
    )
    (folder / "rule.py").write_text(text.format(word="one"))
    await record("go", turns=[calling("one", "two"), "first"])
    new = tmp_path / "new" / "rule.py"
    new.parent.mkdir()
    new.write_text(text.format(word="two"))
    comparison = await replaying(plugins=[new])
    changed = [d.after["decision"] for d in comparison.differences if d.field == "decision"]
    assert changed == ["allowed", "denied"]
    assert any("stands in for" in note for note in comparison.notes)


async def test_a_plugin_class_can_be_tried_out(record, replaying, tmp_path):
    await record("go", turns=[calling("one"), "first"])
    new = tmp_path / "guard.py"
    new.write_text(
        "from hookline import hookimpl\n"
        "class Guard:\n"
        "    def __init__(self, app): self.app = app\n"
        "    @hookimpl\n"
        "    def authorize_action(self, action): return False\n"
    )
    comparison = await replaying(plugins=[new])
    (decision,) = [d for d in comparison.differences if d.field == "decision"]
    assert decision.after["by"] == ["authorize_action"]


# --- what is random, old, gone or wrong ---


async def test_a_hook_that_answers_at_random_is_told_apart_from_a_difference(record, replaying):
    await record("go", turns=[calling("one"), "first"])
    said = iter(range(1000))

    def differently(event):
        return ToolResultEventResult(content=f"{next(said)} {random.random()}")

    comparison = await replaying([("tool_result", differently)])
    assert [d.field for d in comparison.random] == ["result"]
    assert comparison.differences == []
    assert not comparison.same


async def test_approvals_are_given_as_they_were_and_not_for_other_arguments(app, record, replaying):
    def ask(event):
        return ToolCallEventResult(ask=True, reason="really?")

    app.hooks.register("tool_call", ask)
    app.hooks.register("resolve_approval", lambda request: "approve")
    await record("go", turns=[calling("one"), "first"])
    same = await replaying([("tool_call", ask)])
    assert same.same, same.data()
    (call,) = same.pairs[0].replayed.calls.values()
    assert call.decided == "approved"
    other = await replaying(
        [("before_tool_call", lambda arguments: {"word": "other"}), ("tool_call", ask)]
    )
    decision = next(d for d in other.differences if d.field == "decision")
    assert decision.after["decision"] == "rejected"
    assert "other arguments" in decision.after["reason"]


async def test_a_question_that_nobody_answered_then_is_not_approved_now(record, replaying):
    await record("go", turns=[calling("one"), "first"])
    ask = ToolCallEventResult(ask=True, reason="really?")
    comparison = await replaying([("tool_call", lambda e: ask)])
    decision = next(d for d in comparison.differences if d.field == "decision")
    assert decision.after["decision"] == "rejected"
    assert not (comparison.pairs[0].replayed.calls[decision.call]).ran


async def test_a_tool_that_is_gone_is_stood_in_for(record, replaying):
    await record("go", turns=[calling("one"), "first"])
    comparison = await replaying(with_tools=False)
    assert fields(comparison) == []
    assert "tools that are not there now: act" in comparison.notes


async def test_a_session_of_an_older_version_is_replayed_as_far_as_it_goes(app, replaying, tools):
    from hookline.tape import Tape

    async with app.running():
        tape = await Tape.open(app.store(), HERE)
        asked = {"id": "c1", "name": "act", "arguments": '{"word": "one"}'}
        said = {"role": "assistant", "content": "", "tool_calls": [asked]}
        await tape.append("turn", {"status": "started", "turn_id": "t"})
        await tape.append("message", {"message": {"role": "user", "content": "go"}})
        await tape.append("message", {"message": said})
        await tape.append("tool_call", {"id": "c1", "name": "act", "arguments": {"word": "one"}})
        await tape.append("tool_result", {"tool_call_id": "c1", "name": "act", "content": "acted"})
        await tape.append("message", {"message": {"role": "assistant", "content": "done"}})
        await tape.append("turn", {"status": "completed", "turn_id": "t"})
    comparison = await replaying()
    assert fields(comparison) == []
    assert comparison.pairs[0].replayed.answer == "done"
    assert any("older version, without envelope, system, requested, ran" in n for n in comparison.notes)


async def test_unknown_names_are_refused_with_the_nearest(record, replaying):
    kept = await record("go", turns=["first"])
    with pytest.raises(UnknownRecording, match="did you mean 'default:default'"):
        await replaying(session="default:defualt")
    wrong = kept[0].id[:-1] + "_"
    with pytest.raises(UnknownRecording, match=kept[0].id):
        await replaying(entry=wrong)
    with pytest.raises(UnknownRecording, match="no call 'c9'"):
        await replaying(results={"c9": "x"})


async def test_which_message_is_meant_must_be_said_where_there_are_several(record, replaying):
    await record("go", "again", turns=["first", "second"])
    with pytest.raises(ReplayError, match="say which with --from"):
        await replaying(message="else")


async def test_a_message_that_joined_a_turn_joins_it_again(app, record, replaying, scripted):
    import asyncio

    scripted(calling("one"), "first")
    joined = []

    async def steer(call, call_next):
        joined.append(asyncio.ensure_future(app.sessions.runs[HERE].steering.join("hurry", None)))
        return await call_next()

    app.hooks.register("around_tool_call", steer)
    async with app.running():
        await app.process({"content": "go"})
    assert await joined[0]
    comparison = await replaying()
    assert comparison.same, comparison.data()
    said = [e.payload["message"]["content"] for e in comparison.pairs[0].replayed.entries
            if e.kind == "message"]  # fmt: skip
    assert said == ["go", "", "hurry", "first"]


async def test_nothing_is_sent_asked_or_audited_by_a_replay(app, record, replaying):
    (app.home / "config.toml").parent.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text("[audit]\nenabled = true\n")
    app.config.reload()
    await record("go", turns=[calling("one"), "first"])
    lines = app.safeguards.audit_path.read_text()
    sent = []
    comparison = await replaying([("dispatch_outbound", lambda message: sent.append(message))])
    assert comparison.same
    assert sent == []
    assert app.safeguards.audit_path.read_text() == lines


async def test_what_a_person_ran_beside_the_turns_is_judged_as_a_persons_again(app, record, replaying):
    from hookline.runtime.user_tools import call_tool

    await record("go", turns=["first"])
    async with app.running():
        await call_tool(app, HERE, "act", {"word": "mine"})
    assert (await replaying()).same
    seen = []

    def judge(action):
        seen.append((action["source"], action["arguments"]))
        return False

    comparison = await replaying([("authorize_action", judge)])
    assert ("command", {"word": "mine"}) in seen
    assert [d.tool for d in comparison.differences if d.field == "decision"] == ["act"]


async def test_ids_that_a_model_uses_again_do_not_mix_up_results(record, replaying):
    def one(word):
        return Turn(tool_calls=[Call("act", {"word": word}, id="call_0")])

    await record("go", "again", turns=[one("one"), "first", one("two"), "second"])
    assert (await replaying()).same


async def test_a_replay_leaves_no_trace(app, record, replaying):
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text('[trace]\nlevel = "full"\n')
    app.config.reload()
    await record("go", turns=[calling("one"), "first"])
    app.passive = True

    async def records():
        async with app.running():
            fired = await (await Tracing.of(app).store()).fired()
            return sum(times for times, _ in fired.values())

    before = await records()
    assert before
    assert (await replaying()).same
    assert await records() == before


async def test_a_fork_is_replayed_with_what_it_was_forked_from(app, record, replaying, scripted):
    await record("go", "again", turns=["first", "second"])
    scripted("third")
    async with app.running():
        child = await app.sessions.fork(HERE, into="child")
        await app.process({"content": "more"}, session_id=child)
        inherited = await app.store().entries(HERE, kinds=["turn"])
    seen = []

    def look(event):
        seen.append([message["content"] for message in event.messages])

    own = await replaying([("context", look)], session="child")
    assert own.same, own.data()
    assert seen[0] == ["go", "first", "again", "second", "more"]
    seen.clear()
    begun = [e for e in inherited if e.payload["status"] == "started"]
    earlier = await replaying([("context", look)], session="child", entry=begun[1].id)
    assert earlier.same, earlier.differences
    assert seen[:2] == [["go", "first", "again"], ["go", "first", "again", "second", "more"]]
    async with app.running():
        tape = await app.tape(earlier.branch)
        said = app.build_tape_context().messages(await tape.context_entries())
    assert [m["content"] for m in said] == ["go", "first", "again", "second", "more", "third"]
