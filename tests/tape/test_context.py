"""How entries become messages."""

from typing import Any

from hookline.tape import Entry, TapeContext
from hookline.tape.context import INTERRUPTED


def said(role: str, content: str = "", *calls: str, **meta: Any) -> Entry:
    message: dict[str, Any] = {"role": role, "content": content}
    if calls:
        message["tool_calls"] = [{"id": call, "name": "shell", "arguments": {}} for call in calls]
    return Entry.new("s", None, "message", {"message": message}, meta)


def result(call: str, content: str = "ok", *, is_error: bool = False) -> Entry:
    payload = {"tool_call_id": call, "name": "shell", "content": content, "is_error": is_error}
    return Entry.new("s", None, "tool_result", payload)


def other(kind: str, **payload: Any) -> Entry:
    return Entry.new("s", None, kind, payload)


def shape(messages: list[dict[str, Any]]) -> list[str]:
    return [
        message.get("tool_call_id") or message["content"] or message["role"] for message in messages
    ]


def test_messages_come_in_order_and_other_kinds_say_nothing():
    entries = [
        said("user", "hi"),
        other("note", text="x"),
        other("tool_call", id="a"),
        said("assistant", "yes"),
    ]
    assert TapeContext().messages(entries) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes"},
    ]


def test_results_follow_their_calls_in_the_order_of_the_calls():
    entries = [said("assistant", "", "a", "b"), result("b"), said("user", "hurry"), result("a")]
    messages = TapeContext().messages(entries)
    assert shape(messages) == ["assistant", "a", "b", "hurry"]
    assert messages[1] == {"role": "tool", "tool_call_id": "a", "name": "shell", "content": "ok"}


def test_an_error_is_marked_as_one():
    messages = TapeContext().messages([said("assistant", "", "a"), result("a", "boom", is_error=True)])
    assert (messages[1]["content"], messages[1]["is_error"]) == ("boom", True)


def test_a_result_without_its_call_is_left_out():
    assert shape(TapeContext().messages([result("a"), said("user", "hi")])) == ["hi"]


def test_a_call_without_result_is_answered_as_interrupted():
    messages = TapeContext().messages([said("assistant", "", "a", "b"), result("b")])
    assert shape(messages) == ["assistant", "a", "b"]
    assert (messages[1]["content"], messages[1]["is_error"]) == (INTERRUPTED, True)


def test_calls_without_result_can_be_dropped_or_kept():
    entries = [said("assistant", "", "x"), said("assistant", "hm", "a", "b"), result("b")]
    dropped = TapeContext(unanswered="drop").messages(entries)
    assert shape(dropped) == ["hm", "b"]
    assert [call["id"] for call in dropped[0]["tool_calls"]] == ["b"]
    assert shape(TapeContext(unanswered="keep").messages(entries)) == ["assistant", "hm", "b"]


def test_a_call_id_used_twice_is_answered_by_what_followed_each():
    entries = [
        said("assistant", "1", "a"),
        result("a", "one"),
        said("assistant", "2", "a"),
        result("a", "two"),
    ]
    assert [m["content"] for m in TapeContext().messages(entries)] == ["1", "one", "2", "two"]


def test_a_call_that_cannot_be_answered_is_left_out():
    entry = said("assistant", "hm", "a")
    entry.payload["message"]["tool_calls"] += [{"name": "no id"}, "not a call", {"id": []}]
    (message, _) = TapeContext().messages([entry, result("a"), other("tool_result", tool_call_id=[])])
    assert [call["id"] for call in message["tool_calls"]] == ["a"]


def test_an_anchor_gives_its_summary_and_state():
    anchor = other("anchor", name="x", summary="We met.", state={"step": 3})
    messages = TapeContext().messages([anchor, said("user", "go on")])
    assert messages[0]["role"] == "user"
    assert "We met." in messages[0]["content"]
    assert '"step": 3' in messages[0]["content"]
    assert shape(TapeContext().messages([other("anchor", name="x", summary=None, state={})])) == []


def test_a_switch_gives_the_summary_of_the_branch_left():
    switches = [
        other("switch", entry_id="x", summary=None),
        other("switch", entry_id="x", summary="It failed."),
    ]
    (message,) = TapeContext().messages(switches)
    assert "It failed." in message["content"]


def test_an_entry_kept_out_of_the_context_says_nothing():
    assert shape(
        TapeContext().messages([said("user", "secret", context=False), said("user", "hi")])
    ) == ["hi"]


def test_the_last_messages_never_begin_with_a_result():
    entries = [
        other("anchor", name="x", summary="Before.", state={}),
        said("user", "1"),
        said("assistant", "2", "a"),
        result("a"),
        said("assistant", "3"),
    ]
    assert shape(TapeContext(last=3).messages(entries))[1:] == ["2", "a", "3"]
    assert shape(TapeContext(last=2).messages(entries))[1:] == ["3"]
    assert len(TapeContext(last=0).messages(entries)) == 1
    assert len(TapeContext(last=99).messages(entries)) == 5


def test_messages_can_be_chosen_by_kind():
    entries = [
        other("anchor", summary="Before."),
        said("assistant", "", "x"),
        said("assistant", "2", "a"),
        result("a"),
    ]
    messages = TapeContext(kinds=frozenset({"message"})).messages(entries)
    assert messages == [{"role": "assistant", "content": "2"}]


def test_the_entries_are_left_as_they_were():
    entry = said("assistant", "", "a")
    messages = TapeContext(unanswered="drop").messages([entry])
    messages += TapeContext().messages([entry])
    messages[0]["content"] = "changed"
    assert entry == said_again(entry)


def said_again(entry: Entry) -> Entry:
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "name": "shell", "arguments": {}}],
    }
    return Entry(entry.id, "s", None, "message", {"message": message}, {}, entry.time)
