"""What the page reads, over HTTP."""

import asyncio

import pytest

from hookline.events import ToolCallEvent, ToolCallEventResult
from hookline.models import Call, Turn
from hookline.observe.inspector.summary import CallLine, sentence_of
from hookline.observe.inspector.tail import SESSIONS
from tests.tables import each_row

from .conftest import TOKEN

READ = Turn(text="I look.", tool_calls=[Call("read_file", {"path": "notes.txt"}, id="read-1")])
SHELL = Turn(tool_calls=[Call("shell", {"command": "rm -rf /"}, id="shell-1")])


def no_shell(event: ToolCallEvent):
    if event.tool_name == "shell":
        return ToolCallEventResult(block=True, reason="no <b>shell</b> today")
    if event.tool_name == "read_file":
        return ToolCallEventResult(input={"path": "other.txt"})
    return None


@pytest.fixture
def worked(app, scripted):
    """An app that has read a file in its first turn, and was denied a command in its second."""
    (app.workspace / "other.txt").write_text("milk")
    app.hooks.register("tool_call", no_shell)
    scripted(READ, "It says milk.", SHELL, "I may not.")

    async def work():
        await app.process({"content": "What do I need?", "session_id": "s"})
        await app.process({"content": "Tidy up.", "session_id": "s"})

    return work


async def test_sessions_are_listed_with_what_was_said_first(inspected, worked):
    async with inspected() as page:
        await worked()
        (session,) = await page.get("sessions")
        assert (session["id"], session["preview"], session["busy"]) == ("s", "What do I need?", False)
        about = await page.get("session", id="s")
        assert (about["turns"], about["entries"]) == (2, session["entries"])


async def test_events_come_by_range(inspected, worked):
    async with inspected() as page:
        await worked()
        whole = await page.get("session/events", id="s")
        kinds = [row["kind"] for row in whole["rows"]]
        assert kinds[:6] == ["turn", "message", "message", "tool_call", "tool_result", "message"]
        part = await page.get("session/events", id="s", start=3, count=2)
        assert part["rows"] == whole["rows"][3:5]
        assert part["total"] == len(kinds)
        assert (await page.get("session/events", id="s", start=1000))["rows"] == []


async def test_a_turn_is_told_as_bars_in_each_other(inspected, worked):
    async with inspected() as page:
        await worked()
        turn = await page.get("session/turn", id="s", number=1)
        bars = [(bar["kind"], bar["name"], bar["depth"], bar["state"]) for bar in turn["bars"]]
        assert [bar for bar in bars if bar[0] not in ("hook", "handler")] == [
            ("turn", "turn", 0, "ok"),
            ("note", "user", 1, ""),
            ("step", "model turn 0", 1, "ok"),
            ("model", "model", 2, "ok"),
            ("tool", "read_file", 2, "ok"),
            ("step", "model turn 1", 1, "ok"),
            ("model", "model", 2, "ok"),
            ("note", "state", 1, ""),
        ]
        assert all(bar["start"] >= 0 and bar["duration"] >= 0 for bar in turn["bars"])
        assert max(b["start"] + b["duration"] for b in turn["bars"]) <= turn["duration"] + 0.5
        second = await page.get("session/turn", id="s", number=2)
        denied = [bar for bar in second["bars"] if bar["kind"] == "tool"]
        assert [(bar["name"], bar["state"]) for bar in denied] == [("shell", "denied")]


async def test_bars_come_by_range_and_by_what_is_to_be_seen(app, inspected, worked):
    async with inspected() as page:
        await worked()
        whole = await page.get("session/turn", id="s", number=1)
        assert whole["total"] == len(whole["bars"])
        part = await page.get("session/turn", id="s", number=1, start=2, count=3)
        assert (part["bars"], part["total"]) == (whole["bars"][2:5], whole["total"])
        for shown, left_out in {"none": {"hook", "handler"}, "hooks": {"handler"}}.items():
            some = await page.get("session/turn", id="s", number=1, shown=shown)
            assert some["bars"] == [bar for bar in whole["bars"] if bar["kind"] not in left_out]
        (tool,) = [bar for bar in whole["bars"] if bar["kind"] == "tool"]
        for entry in (tool["entry_id"], tool["facts"]["result_id"]):
            found = await page.get("session/turn", id="s", number=1, entry=entry)
            assert found["bars"][found["open"]] == tool


async def test_a_glance_at_a_long_turn_has_its_first_bars_and_its_end(app, inspected):
    async with inspected() as page:
        rows = [("turn", {"status": "started", "turn_id": "t"})]
        for number in range(1000):
            call = {"id": f"c{number}", "name": "say", "arguments": {}}
            result = {"tool_call_id": call["id"], "name": "say", "content": "x"}
            rows += [("tool_call", call), ("tool_result", result)]
        ends = {"done": [("turn", {"status": "completed", "turn_id": "t"})], "cut": []}
        for session, end in ends.items():
            await (await app.tape(session)).append_many([*rows, *end])
            whole = await page.get("session/turn", id=session, number=1, count=50)
            glance = await page.get("session/turn", id=session, number=1, count=50, glance="true")
            assert (glance["bars"][1:], glance["traced"]) == (whole["bars"][1:], None)
            assert (whole["total"], glance["total"] < 1001) == (1001, True)
        done = await page.get("session/turn", id="done", number=1, glance="true")
        assert (done["bars"][0]["state"], done["status"]) == ("ok", "completed")
        assert (done["whole"] > 0, done["duration"]) == (True, None), "it is known with the trace"


async def test_the_trace_is_left_unread_where_nobody_asks_for_it(inspected, worked):
    async with inspected() as page:
        await worked()
        turn = await page.get("session/turn", id="s", number=1, hooks="false")
        assert turn["traced"] is None
        (tool,) = [bar for bar in turn["bars"] if bar["kind"] == "tool"]
        entry = await page.get("session/entry", id="s", entry=tool["entry_id"], hooks="false")
        assert "dispatches" not in entry
        assert entry["call"]["result"].endswith("milk")


async def test_calls_that_share_an_id_are_not_mixed_up(app, inspected):
    async with inspected() as page:
        tape = await app.tape("same")
        rows = [("turn", {"status": "started", "turn_id": "t"})]
        for word in ("one", "two"):
            call = {"id": "call_0", "name": "say", "arguments": {"word": word}}
            rows += [
                ("message", {"message": {"role": "assistant", "content": "", "tool_calls": [call]}}),
                ("tool_call", {**call, "requested": call["arguments"]}),
                ("tool_result", {"tool_call_id": "call_0", "name": "say", "content": f"said {word}"}),
            ]
        await tape.append_many(rows)
        shown = (await page.get("session/events", id="same"))["rows"]
        for row in shown:
            if row["kind"] in ("tool_call", "tool_result"):
                entry = await page.get("session/entry", id="same", entry=row["id"])
                word = "one" if row["place"] < 4 else "two"
                assert entry["call"]["arguments"] == {"word": word}
                assert entry["call"]["result"] == f"said {word}"


async def test_a_turn_is_summed_up_in_a_sentence_with_its_calls(inspected, worked):
    async with inspected() as page:
        await worked()
        first, second = [await page.get("session/summary", id="s", number=n) for n in (1, 2)]
    (read,), (shell,) = first["calls"], second["calls"]
    assert (read["tool"], read["asked"], read["outcome"]) == ("read_file", "other.txt", "rewritten")
    assert first["sentence"] == f"1 tool call: 1 was rewritten by {read['by']}."
    assert (shell["asked"], shell["outcome"]) == ("rm -rf /", "denied")
    assert shell["reason"] == "no <b>shell</b> today"
    assert shell["by"].endswith("no_shell")


@each_row("outcomes, sentence", [
    ([], "No tool was called."),
    (["ran"], "1 tool call: 1 ran."),
    (["denied by git", "ran", "ran"], "3 tool calls: 2 ran, 1 was denied by git."),
    (["rewritten by a", "rewritten by a"], "2 tool calls: 2 were rewritten by a."),
    (["failed", "cut off", "running"], "3 tool calls: 1 failed, 1 was cut off, 1 was still running."),
])  # fmt: skip
def test_a_sentence_counts_the_calls_by_outcome(outcomes, sentence):
    calls = []
    for words in outcomes:
        outcome, _, by = words.partition(" by ")
        calls.append(CallLine("t", "", outcome=outcome, by=by))
    assert sentence_of(calls) == sentence


async def test_a_rewritten_call_is_explained_with_a_diff(inspected, worked):
    async with inspected() as page:
        await worked()
        turn = await page.get("session/turn", id="s", number=1)
        (tool,) = [bar for bar in turn["bars"] if bar["kind"] == "tool"]
        entry = await page.get("session/entry", id="s", entry=tool["entry_id"])
        assert '-  "path": "notes.txt"' in entry["call"]["diff"]
        assert '+  "path": "other.txt"' in entry["call"]["diff"]
        assert entry["call"]["result"].endswith("milk")
        assert entry["decision"] == "rewrote"
        assert entry["turn"] == 1


async def test_a_denied_call_says_who_denied_it_why_and_where_that_is_written(inspected, worked):
    async with inspected() as page:
        await worked()
        turn = await page.get("session/turn", id="s", number=2)
        (tool,) = [bar for bar in turn["bars"] if bar["kind"] == "tool"]
        entry = await page.get("session/entry", id="s", entry=tool["entry_id"])
        (ruling,) = [each for each in entry["rulings"] if each["decision"] == "deny"]
        assert ruling["by"].endswith("no_shell")
        assert ruling["reason"] == "no <b>shell</b> today"
        assert ruling["place"] == f"{__file__}:{no_shell.__code__.co_firstlineno}"
        assert entry["call"]["ran"] is False
        assert entry["call"]["requested"] == '{"command": "rm -rf /"}'


async def test_entries_that_nobody_would_write_today_are_shown_all_the_same(app, inspected):
    async with inspected() as page:
        tape = await app.tape("old")
        await tape.append_many(
            [
                ("turn", {"status": "started"}),
                ("message", {"message": "a text"}),
                ("message", {"message": {"role": "assistant", "content": [{"type": "odd"}, 3]}}),
                ("tool_call", {}, {"rulings": ["?", {"by": "somebody"}]}),
                ("tool_result", {"content": None}),
                ("never heard of", {"text": "half \ud83d"}, {"usage": 3}),
                ("turn", {}),
            ]
        )
        (turn,) = (await page.get("session/turns", id="old"))["rows"]
        assert (await page.get("session/turn", id="old", number=1))["number"] == turn["number"]
        for row in (await page.get("session/events", id="old"))["rows"]:
            shown = await page.get("session/entry", id="old", entry=row["id"])
            assert shown["kind"] == row["kind"]
        await page.get("session/tree", id="old")
        await page.get("decisions", session="old")


async def test_decisions_are_found_by_what_was_decided(inspected, worked):
    async with inspected() as page:
        await worked()
        found = await page.get("decisions")
        made = [(each["tool"], each["decision"]) for each in found["decisions"]]
        assert made == [("shell", "deny"), ("read_file", "rewrote")]
        assert (found["pending"], found["audit"]) == ([], None)
        denied = await page.get("decisions", decision="deny", session="s")
        assert [each["tool"] for each in denied["decisions"]] == ["shell"]
        assert (await page.get("decisions", session="other"))["decisions"] == []


async def test_the_tree_has_every_branch(app, inspected, worked):
    async with inspected() as page:
        await worked()
        tape = await app.tape("s")
        said = [entry for entry in await tape.branch() if entry.kind == "message"]
        await tape.switch(said[0].id)
        await tape.append("message", {"message": {"role": "user", "content": "Or else?"}})
        await tape.label(tape.leaf.id, "another way")
        tree = await page.get("session/tree", id="s")
        lines = [(line["depth"], line["preview"], line["on_branch"]) for line in tree["lines"]]
        assert (0, "What do I need?", True) in lines
        assert (1, "I look.", False) in lines
        assert (1, "Or else?", True) in lines
        (labelled,) = [line for line in tree["lines"] if line["labels"]]
        assert labelled["labels"] == ["another way"]


async def test_the_catalogue_says_who_is_attached_in_run_order(app, inspected):
    app.hooks.register("tool_call", no_shell, tryfirst=True)
    async with inspected() as page:
        hooks = {hook["name"]: hook for hook in await page.get("hooks")}
        assert set(hooks) == set(app.hooks.catalog)
        order = [impl.name for impl in app.hooks["tool_call"].run_order()]
        assert [each["name"] for each in hooks["tool_call"]["attached"]] == order
        (own,) = [e for e in hooks["tool_call"]["attached"] if e["name"].endswith("no_shell")]
        assert own["place"].startswith(__file__)
        assert own["marks"] == ["first"]


async def test_a_hook_says_whether_it_fired_who_ran_and_where(tmp_path, app, inspected, worked):
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text('[trace]\nlevel = "full"\n')
    app.config.reload()
    async with app.running():
        await worked()
        async with inspected() as page:
            found = await page.get("hooks/fired", name="tool_call")
            assert (found["unseen"], found["calls"]) == ("", 2)
            (own,) = [each for each in found["handlers"] if each["by"].endswith("no_shell")]
            assert own["did"] == {"rewrote": 1, "denied": 1}
            last, first = found["latest"]
            assert (last["session"], last["turn"], last["decision"]) == ("s", 2, "deny")
            record = await page.get("session/dispatch", id="s", number=2, record=last["record"])
            assert (record["name"], first["turn"]) == ("tool_call", 1)
            never = await page.get("hooks/fired", name="session_before_fork")
            assert (never["calls"], never["handlers"], never["latest"]) == (0, [], [])
            assert await page.status("hooks/fired", name="tool_cal") == (
                404,
                "there is no hook 'tool_cal'",
            )


async def test_plugins_are_told_with_what_is_wrong(app, inspected):
    app.plugins.failed("broken", "loading", ValueError("<i>no</i>"))
    app.plugins.warn("mind the gap")
    async with inspected() as page:
        found = await page.get("plugins")
        states = {plugin["name"]: plugin["state"] for plugin in found["plugins"]}
        assert (states["builtin"], states["broken"]) == ("loaded", "failed")
        assert "<i>no</i>" in found["failures"][0]["text"]
        assert found["warnings"] == ["mind the gap"]


async def test_the_tail_tells_dispatches_and_entries_as_they_come(app, inspected, worked):
    async with inspected() as page, page.tail(session="s") as frames:
        working = asyncio.create_task(worked())
        seen = {}
        async for frame in frames:
            seen.setdefault((frame["type"], frame.get("hook") or frame["kind"]), frame)
            if {("dispatch", "tool_call"), ("entry", "tool_result")} <= set(seen):
                break
        await working
        call = seen["dispatch", "tool_call"]
        assert (call["decision"], call["session"]) == ("rewrote", "s")
        (own,) = [each for each in call["calls"] if each["by"].endswith("no_shell")]
        assert (own["did"], own["fields"]) == ("rewrote", ["input"])


async def test_the_tail_is_filtered_by_hook_plugin_and_decision(app, inspected, worked):
    async with inspected() as page:
        async with page.tail(hook="tool_call", plugin="no_shell", decision="deny") as frames:
            working = asyncio.create_task(worked())
            frame = await anext(frames)
            await working
        assert (frame["hook"], frame["decision"]) == ("tool_call", "deny")
        assert frame["reason"] == "no <b>shell</b> today"


async def test_the_tail_tells_of_an_old_session_only_what_is_new(app, inspected):
    async with inspected() as page:
        old = await app.tape("old")
        await old.append_many([("note", {"text": f"old {number}"}) for number in range(200)])
        for number in range(SESSIONS + 5):  # so many that it is not among those that are followed
            await (await app.tape(f"s{number}")).append("note", {"text": "hello"})
        async with page.tail(dispatches="false") as frames:
            await old.append_many([("note", {"text": f"new {number}"}) for number in range(60)])
            seen = [(await anext(frames))["preview"] for _ in range(60)]
            assert seen == [f"new {number}" for number in range(60)]
            await old.append("note", {"text": "and another"})
            assert (await anext(frames))["preview"] == "and another"
            await (await app.tape("fresh")).append_many(
                [("note", {"text": "a"}), ("note", {"text": "b"})]
            )
            assert [(await anext(frames))["preview"] for _ in range(2)] == ["a", "b"]


async def test_nothing_is_on_the_hooks_while_nobody_looks(app, inspected):
    async with inspected() as page:
        before = app.hooks.observers
        async with page.tail(dispatches="false"):
            assert app.hooks.observers == before
        async with page.tail():
            assert len(app.hooks.observers) == len(before) + 1
        while app.hooks.observers != before:  # the server notices that the reader is gone
            await asyncio.sleep(0.01)


async def test_an_open_tail_does_not_keep_the_server_from_ending(inspected):
    async with inspected() as page, page.tail() as frames:
        page.leaving.set()
        assert [frame async for frame in frames] == []


@pytest.mark.parametrize(
    ("path", "query", "status", "said"),
    [
        ("session", {"id": "gone"}, 404, "there is no session 'gone'"),
        ("session/turn", {"id": "s", "number": 9}, 404, "session 's' has 2 turns"),
        ("session/entry", {"id": "s", "entry": "x"}, 404, "session 's' has no entry 'x'"),
        ("session/dispatch", {"id": "s", "number": 1, "record": "x"}, 404, "no such dispatch"),
    ],
)
async def test_what_is_not_there_is_named(inspected, worked, path, query, status, said):
    async with inspected() as page:
        await worked()
        found, detail = await page.status(path, **query)
        assert found == status
        assert said in detail


async def test_a_token_guards_what_is_read_and_not_the_page_itself(inspected):
    async with inspected(headers={}) as page:
        assert (await page.status("sessions"))[0] == 401
        for path in ("", "/static/app.js", "/static/style.css", "/../favicon.ico"):
            async with page.http.get(page.url + path) as response:
                assert response.status == 200
                assert "default-src 'self'" in response.headers["content-security-policy"]
        page.http.headers["authorization"] = f"Bearer {TOKEN}"
        assert await page.get("sessions") == []


async def test_pages_of_other_sites_start_no_replay(inspected):
    async with inspected() as page:
        address = f"{page.url}/api/replay"
        headers = {"origin": "http://evil.example"}
        async with page.http.post(address, json={"session": "s"}, headers=headers) as response:
            assert response.status == 403
        text = {"content-type": "text/plain"}  # what a form can send without being asked
        async with page.http.post(address, data='{"session": "s"}', headers=text) as response:
            assert response.status == 422
        async with page.http.post(address, json={"session": "s"}) as response:
            assert response.status == 404


@pytest.mark.parametrize(
    "path", ["static/..%2froutes.py", "static/%2e%2e/routes.py", "static/nothing.js"]
)
async def test_no_other_file_is_served(inspected, path):
    async with inspected() as page, page.http.get(f"{page.url}/{path}") as response:
        assert response.status == 404


async def test_that_a_hook_did_not_fire_is_said_only_where_it_would_be_known(app, inspected, worked):
    async def unseen(level, *names):
        app.home.mkdir(exist_ok=True)
        (app.home / "config.toml").write_text(f'[trace]\nlevel = "{level}"\n')
        app.config.reload()
        async with app.running(), inspected() as page:
            return [(await page.get("hooks/fired", name=name))["unseen"] for name in names]

    app.hooks.register("agent_end", lambda: None)
    app.hooks.register("output", lambda: None)
    off, silent, gate, nobody = await unseen("off", "agent_end") + await unseen(
        "decisions", "agent_end", "output", "session_before_fork"
    )
    assert off.startswith("Not known: no trace is kept")
    assert silent.startswith("Not known: at level “decisions”")
    assert gate.startswith("No handler decided, changed or failed.")
    assert nobody.startswith("Not known: calls of a hook are recorded while something is attached")
    assert await unseen("full", "agent_end") == ["No."]


def question(content="milk\n"):
    return {
        "id": "", "kind": "approval", "tool": "write_file", "session_id": "s", "call_id": "c1",
        "question": "run write_file?", "arguments": {"path": "notes.txt", "content": content},
    }  # fmt: skip


async def test_an_answer_is_bound_to_the_call_that_was_shown(app, inspected):
    async with inspected() as page:
        name = app.approvals.ask(question())
        (waiting,) = (await page.get("decisions"))["pending"]
        address = f"{page.url}/api/approvals/{name}"
        for wrong, status in [
            ({"answer": "approve"}, 422),
            ({"answer": "approve", "hash": "0" * 64}, 403),
            ({"answer": "perhaps", "hash": waiting["hash"]}, 422),
        ]:
            async with page.http.post(address, json=wrong) as response:
                assert response.status == status, await response.text()
        headers = {"origin": "http://evil.example"}
        right = {"answer": "approve", "hash": waiting["hash"]}
        async with page.http.post(address, json=right, headers=headers) as response:
            assert response.status == 403
        assert app.approvals.pending()


async def test_a_call_that_is_too_long_to_be_shown_whole_can_only_be_rejected(app, inspected):
    async with inspected() as page:
        app.approvals.ask(question("x" * 30_000))
        (waiting,) = (await page.get("decisions"))["pending"]
        assert not waiting["whole"]
        assert [choice["answer"] for choice in waiting["choices"]] == ["reject"]
