"""Every event of the format, through whole turns: real scripts, what they get, what they say."""

import json
from pathlib import Path

import pytest

from hookline.events import NotificationEvent
from hookline.models import Call, Turn


def calling(*calls: tuple[str, dict], **more) -> Turn:
    return Turn(tool_calls=[Call(name, arguments) for name, arguments in calls], **more)


async def turn(app, text: str = "hi", **more):
    async with app.running():
        return await app.process({"content": text, **more})


class TestPreToolUse:
    async def test_a_hook_gets_the_call_under_the_names_of_the_format(self, app, scripted, places):
        places.on("PreToolUse", places.recording(), matcher="Bash")
        scripted(calling(("shell", {"command": "echo one", "timeout": 2})), "done")
        await turn(app)
        (given,) = places.noted()
        assert given["hook_event_name"] == "PreToolUse"
        assert given["tool_name"] == "Bash"
        assert given["tool_input"] == {"command": "echo one", "timeout": 2000}
        assert given["session_id"] == "default:default"
        assert given["cwd"] == str(app.workspace)
        assert given["tool_use_id"]
        assert given["permission_mode"] == "default"
        lines = [json.loads(x) for x in Path(given["transcript_path"]).read_text().splitlines()]
        assert [line["type"] for line in lines][:2] == ["user", "assistant"]

    async def test_exit_code_2_blocks_with_standard_error_as_the_reason(
        self, app, scripted, places, results
    ):
        places.on("PreToolUse", "echo not this >&2; exit 2", matcher="Bash")
        scripted(calling(("shell", {"command": "touch made"})), "done")
        await turn(app)
        assert results[0].is_error
        assert results[0].content == "not this"
        assert not (app.workspace / "made").exists()

    async def test_deny_by_json_blocks_with_its_reason(self, app, scripted, places, results):
        specific = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "too dangerous",
        }
        places.answering("PreToolUse", {"hookSpecificOutput": specific})
        scripted(calling(("shell", {"command": "touch made"})), "done")
        await turn(app)
        assert results[0].content == "too dangerous"
        assert not (app.workspace / "made").exists()

    @pytest.mark.parametrize(
        "answer",
        [{"hookSpecificOutput": {"permissionDecision": "deny"}}, {"decision": "block"}],
    )
    async def test_a_deny_without_a_reason_names_the_hook(self, app, scripted, places, results, answer):
        places.answering("PreToolUse", answer)
        scripted(calling(("shell", {"command": "touch made"})), "done")
        await turn(app)
        assert "settings.json:" in results[0].content
        assert "denied this without a reason" in results[0].content

    async def test_the_older_decision_block_blocks_too(self, app, scripted, places, results):
        places.answering("PreToolUse", {"decision": "block", "reason": "old style"})
        scripted(calling(("shell", {"command": "touch made"})), "done")
        await turn(app)
        assert results[0].content == "old style"

    async def test_ask_goes_to_whoever_approves(self, app, scripted, places, results):
        asked = []

        def answer(request):
            asked.append(request["question"])
            return "approve"

        app.hooks.register("resolve_approval", answer)
        specific = {"permissionDecision": "ask", "permissionDecisionReason": "really?"}
        places.answering("PreToolUse", {"hookSpecificOutput": specific})
        scripted(calling(("shell", {"command": "echo ran"})), "done")
        await turn(app)
        assert asked == ["really?"]
        assert "ran" in results[0].content

    async def test_allow_answers_the_question_that_the_policy_would_ask(
        self, app, scripted, places, results
    ):
        app.policy.default = "ask"
        places.answering("PreToolUse", {"hookSpecificOutput": {"permissionDecision": "allow"}})
        scripted(calling(("shell", {"command": "echo ran"})), "done")
        await turn(app)
        assert "ran" in results[0].content

    async def test_allow_overrides_nobody_who_refuses(self, app, scripted, places, results):
        app.hooks.register("authorize_action", lambda action: False)
        places.answering("PreToolUse", {"hookSpecificOutput": {"permissionDecision": "allow"}})
        scripted(calling(("shell", {"command": "touch made"})), "done")
        await turn(app)
        assert results[0].is_error
        assert not (app.workspace / "made").exists()

    async def test_updated_input_is_what_runs(self, app, scripted, places, results):
        updated = {"command": "echo changed", "timeout": 3000}
        specific = {"permissionDecision": "allow", "updatedInput": updated}
        places.answering("PreToolUse", {"hookSpecificOutput": specific}, matcher="Bash")
        scripted(calling(("shell", {"command": "echo given"})), "done")
        await turn(app)
        assert "changed" in results[0].content
        assert "given" not in results[0].content

    async def test_what_a_hook_adds_is_with_the_result(self, app, scripted, places, results):
        specific = {"hookEventName": "PreToolUse", "additionalContext": "mind the gap"}
        places.answering("PreToolUse", {"hookSpecificOutput": specific})
        scripted(calling(("shell", {"command": "echo ran"})), "done")
        await turn(app)
        assert "ran" in results[0].content
        assert results[0].content.endswith("[hook] mind the gap")

    async def test_continue_false_stops_the_agent(self, app, scripted, places, results):
        places.answering("PreToolUse", {"continue": False, "stopReason": "enough for today"})
        model = scripted(
            calling(("shell", {"command": "touch a"}), ("shell", {"command": "touch b"})), "more"
        )
        result = await turn(app)
        assert result.model_output == "enough for today"
        assert not list(app.workspace.glob("?"))
        assert len(model.requests) == 1
        assert len(places.noted()) == 1

    async def test_the_strictest_of_several_hooks_wins(self, app, scripted, places, results):
        allow = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})
        places.on("PreToolUse", f"echo '{allow}'", "echo no >&2; exit 2", "exit 0")
        scripted(calling(("shell", {"command": "touch made"})), "done")
        await turn(app)
        assert results[0].content == "no"
        assert not (app.workspace / "made").exists()

    async def test_hooks_for_other_tools_do_not_run(self, app, scripted, places):
        places.on("PreToolUse", places.recording(), matcher="Write|Edit")
        scripted(calling(("shell", {"command": "true"})), "done")
        await turn(app)
        assert places.noted() == []

    async def test_a_tool_of_an_mcp_server_has_the_name_that_hooks_know(self, app, scripted, places):
        from hookline.specs import ToolSpec
        from hookline.tools.tool import Tool

        async def recall(context, /, **arguments):
            return "remembered"

        spec = ToolSpec(
            name="recall", namespace="memory", tags=["mcp"], input_schema={"type": "object"}
        )
        tool = Tool(spec, recall)
        app.tools.add(tool)
        places.on("PreToolUse", places.recording(), matcher="mcp__memory__.*")
        scripted(calling((tool.name, {})), "done")
        await turn(app)
        assert [n["tool_name"] for n in places.noted()] == ["mcp__memory__recall"]

    async def test_an_edit_of_several_places_does_not_get_past_a_hook_on_edit(
        self, app, scripted, places, results
    ):
        (app.workspace / "a.txt").write_text("one two")
        places.on("PreToolUse", places.recording(rest="sys.exit(2)"), matcher="Edit")
        edits = [{"old": "one", "new": "1"}, {"old": "two", "new": "2"}]
        scripted(calling(("edit_file", {"path": "a.txt", "edits": edits})), "done")
        await turn(app)
        (given,) = places.noted()
        assert given["tool_name"] == "MultiEdit"
        assert given["tool_input"]["file_path"] == str(app.workspace / "a.txt")
        assert (app.workspace / "a.txt").read_text() == "one two"

    async def test_identical_commands_run_once(self, app, scripted, places):
        command = {"type": "command", "command": places.recording()}
        groups = [{"matcher": "Bash", "hooks": [command, command]}, {"hooks": [command]}]
        places.write({"PreToolUse": groups})
        scripted(calling(("shell", {"command": "true"})), "done")
        await turn(app)
        assert len(places.noted()) == 1

    async def test_hooks_run_at_the_same_time(self, app, scripted, places, results):
        pipe = places.folder / "pipe"
        wait = f"mkfifo {pipe} 2>/dev/null; read line < {pipe}; exit 0"
        tell = f"until [ -p {pipe} ]; do :; done; echo go > {pipe}; exit 0"
        places.on("PreToolUse", wait, tell, timeout=20, on_failure="deny")
        scripted(calling(("shell", {"command": "echo ran"})), "done")
        await turn(app)
        assert "ran" in results[0].content  # one after the other, the first would never end

    async def test_the_project_is_in_the_environment(self, app, scripted, places):
        seen = places.folder / "seen"
        places.on("PreToolUse", f'echo "$CLAUDE_PROJECT_DIR" "$PWD" > {seen}')
        scripted(calling(("shell", {"command": "true"})), "done")
        await turn(app)
        assert seen.read_text().split() == [str(app.workspace)] * 2

    async def test_a_condition_narrows_a_hook(self, app, scripted, places):
        hook = {"type": "command", "command": places.recording(), "if": "Bash(git *)"}
        places.write({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]})
        calls = [{"command": c} for c in ("echo git", "true && git --version", "X=1 git help")]
        scripted(calling(*(("shell", call) for call in calls)), "done")
        await turn(app)
        assert [n["tool_input"]["command"] for n in places.noted()] == [
            "true && git --version",
            "X=1 git help",
        ]


class TestPostToolUse:
    async def test_a_hook_gets_the_response(self, app, scripted, places):
        places.on("PostToolUse", places.recording(), matcher="Write")
        scripted(calling(("write_file", {"path": "a.txt", "content": "hi"})), "done")
        await turn(app)
        (given,) = places.noted()
        assert given["tool_input"] == {"file_path": str(app.workspace / "a.txt"), "content": "hi"}
        assert given["tool_response"]["filePath"] == str(app.workspace / "a.txt")
        assert given["tool_response"]["success"] is True

    async def test_exit_code_2_is_told_to_the_model_beside_the_result(
        self, app, scripted, places, results
    ):
        places.on("PostToolUse", "echo please lint >&2; exit 2")
        scripted(calling(("shell", {"command": "echo ran"})), "done")
        await turn(app)
        assert "ran" in results[0].content
        assert results[0].content.endswith("[hook] please lint")

    async def test_another_output_takes_the_place_of_the_tools(self, app, scripted, places, results):
        specific = {"hookEventName": "PostToolUse", "updatedToolOutput": "[gone]"}
        places.answering("PostToolUse", {"hookSpecificOutput": specific})
        scripted(calling(("shell", {"command": "echo secret"})), "done")
        await turn(app)
        assert results[0].content == "[gone]"

    async def test_continue_false_ends_the_turn_after_this_tool(self, app, scripted, places):
        places.answering("PostToolUse", {"continue": False, "stopReason": "seen enough"})
        model = scripted(calling(("shell", {"command": "echo ran"})), "more")
        await turn(app)
        assert len(model.requests) == 1

    async def test_a_denied_call_has_no_post_tool_use(self, app, scripted, places):
        places.on("PostToolUse", places.recording())
        app.hooks.register("authorize_action", lambda action: False)
        scripted(calling(("shell", {"command": "true"})), "done")
        await turn(app)
        assert places.noted() == []

    async def test_a_tool_that_fails_is_a_failure(self, app, scripted, places):
        places.on("PostToolUseFailure", places.recording())
        scripted(calling(("read_file", {"path": "missing.txt"})), "done")
        await turn(app)
        (given,) = places.noted()
        assert given["tool_name"] == "Read"
        assert "does not exist" in given["error"]


class TestUserPromptSubmit:
    async def test_plain_output_is_context(self, app, scripted, places):
        places.on("UserPromptSubmit", places.recording(rest="print('it is Monday')"))
        scripted("done")
        result = await turn(app, "what day is it?")
        assert result.prompt == "it is Monday\n\nwhat day is it?"
        assert places.noted()[0]["prompt"] == "what day is it?"

    async def test_additional_context_is_context_and_is_used_once(self, app, scripted, places):
        specific = {"hookEventName": "UserPromptSubmit", "additionalContext": "use tabs"}
        places.answering("UserPromptSubmit", {"hookSpecificOutput": specific})
        scripted("done", "done")
        async with app.running():
            first = await app.process({"content": "one"})
            second = await app.process({"content": "two"})
        assert (first.prompt, second.prompt) == ("use tabs\n\none", "use tabs\n\ntwo")

    async def test_a_block_ends_the_turn_with_its_reason(self, app, scripted, places):
        places.answering("UserPromptSubmit", {"decision": "block", "reason": "no secrets here"})
        model = scripted("done")
        result = await turn(app)
        assert (result.outcome, result.stopped) == ("blocked", "no secrets here")
        assert model.requests == []

    async def test_exit_code_2_blocks(self, app, scripted, places):
        places.on("UserPromptSubmit", "echo no >&2; exit 2")
        scripted("done")
        assert (await turn(app)).stopped == "no"


class TestSessions:
    async def test_the_start_of_a_session_adds_to_the_first_prompt(self, app, scripted, places):
        places.on("SessionStart", places.recording(rest="print('branch main')"), matcher="startup")
        scripted("a", "b")
        async with app.running():
            first = await app.process({"content": "one"})
            second = await app.process({"content": "two"})
        assert (first.prompt, second.prompt) == ("branch main\n\none", "two")
        assert [n["source"] for n in places.noted()] == ["startup"]

    async def test_a_session_with_a_past_is_resumed(self, app, scripted, places):
        places.on("SessionStart", places.recording())
        scripted("a", "b")
        await turn(app)
        await turn(app)
        assert [n["source"] for n in places.noted()] == ["startup", "resume"]

    async def test_a_new_session_is_a_cleared_one(self, app, scripted, places):
        places.write(
            {
                event: [{"hooks": [{"type": "command", "command": places.recording()}]}]
                for event in ("SessionStart", "SessionEnd")
            }
        )
        scripted("a")
        async with app.running():
            await app.process({"content": "hi"})
            await app.sessions.new("default:default")
        noted = [(n["hook_event_name"], n.get("source") or n["reason"]) for n in places.noted()]
        assert noted == [
            ("SessionStart", "startup"),
            ("SessionEnd", "clear"),
            ("SessionStart", "clear"),
            ("SessionEnd", "other"),
        ]

    async def test_compaction_can_be_kept_back_and_is_told_afterwards(self, app, scripted, places):
        record = {"type": "command", "command": places.recording()}
        block = {"type": "command", "command": places.recording("b.py", "sys.exit(2)")}
        places.write(
            {
                "PreCompact": [{"hooks": [record]}, {"matcher": "auto", "hooks": [block]}],
                "SessionStart": [{"matcher": "compact", "hooks": [record]}],
            }
        )
        scripted(*["word " * 2000] * 12, "a summary")
        from hookline.agent.compactor import Compacting
        from hookline.agent.run import Limits

        app.limits = Limits(compacting=Compacting(keep=100))
        async with app.running():
            for _ in range(3):
                await app.process({"content": "more " * 500})
            entry = await app.sessions.compact("default:default", "keep the names")
        assert entry is not None
        before, after = places.noted()
        assert (before["trigger"], before["custom_instructions"]) == ("manual", "keep the names")
        assert after["source"] == "compact"


class TestStopping:
    async def test_a_stop_hook_sends_the_agent_back_and_knows_that_it_did(self, app, scripted, places):
        given = f"json.loads(open({str(places.log)!r}).readlines()[-1])"
        block = json.dumps({"decision": "block", "reason": "run the tests"})
        again = places.recording(rest=f"{given}['stop_hook_active'] or print({block!r})")
        places.on("Stop", again)
        scripted("done", "really done")
        result = await turn(app)
        assert result.model_output == "really done"
        first, second = places.noted()
        assert (first["stop_hook_active"], second["stop_hook_active"]) == (False, True)
        assert first["last_assistant_message"] == "done"

    async def test_a_subagents_end_is_its_own_event(self, app, scripted, places):
        record = {"type": "command", "command": places.recording()}
        events = ("Stop", "SubagentStop", "PreToolUse")
        places.write({event: [{"hooks": [record]}] for event in events})
        scripted(
            calling(("delegate", {"tasks": ["count the files"]}), match="hi"),
            Turn("done", match="hi"),
            calling(("list_files", {}), match="count"),
            Turn("there are none", match="count"),
        )
        await turn(app)
        noted = places.noted()
        assert [n["hook_event_name"] for n in noted] == [
            "PreToolUse", "PreToolUse", "SubagentStop", "Stop",
        ]  # fmt: skip
        task, inner, ended, _ = noted
        assert task["tool_name"] == "Task"
        assert task["tool_input"]["prompt"] == "count the files"
        assert {n["session_id"] for n in noted} == {"default:default"}
        assert inner["agent_id"] == ended["agent_id"] != ""
        assert ended["last_assistant_message"] == "there are none"
        assert "there are none" in Path(ended["agent_transcript_path"]).read_text()

    async def test_what_denies_the_agent_denies_its_subagents(self, app, scripted, places, results):
        places.on("PreToolUse", "echo nobody >&2; exit 2", matcher="Bash")
        scripted(
            calling(("delegate", {"tasks": ["touch it"]}), match="hi"),
            Turn("done", match="hi"),
            calling(("shell", {"command": "touch made"}), match="touch"),
            Turn("could not", match="touch"),
        )
        await turn(app)
        assert not (app.workspace / "made").exists()
        assert results[0].content == "nobody"


class TestNotification:
    async def test_a_hook_is_told_and_waited_for_at_the_end(self, app, scripted, places):
        places.on("Notification", places.recording(), matcher="approval")
        async with app.running():
            for kind, text in (("approval", "may it run?"), ("question", "which one?")):
                await app.hooks.call(NotificationEvent(kind, text), app.context("s"))
        (given,) = places.noted()
        assert (given["message"], given["notification_type"]) == ("may it run?", "approval")


class TestMessages:
    async def test_a_system_message_is_for_the_person(self, app, scripted, places, said):
        places.answering("UserPromptSubmit", {"systemMessage": "budget: 3 left"})
        scripted("done")
        result = await turn(app)
        assert said == ["budget: 3 left"]
        assert result.prompt == "hi"

    async def test_a_hook_in_the_background_holds_nothing_up_and_is_waited_for(
        self, app, scripted, places, results
    ):
        go = places.folder / "go"
        slow = f"until [ -e {go} ]; do sleep 0.01; done; echo x >> {places.folder}/ran; exit 2"
        places.on("PreToolUse", slow, **{"async": True})
        scripted(calling(("shell", {"command": f"touch {go}"})), "done")
        await turn(app)
        assert not results[0].is_error
        assert (places.folder / "ran").read_text() == "x\n"
