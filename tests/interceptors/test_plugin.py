"""Interceptors that the settings name judge what an app does, and what they say is done."""

import json
import os
import subprocess
import sys

import pytest

from hookline.agent.run import Limits
from hookline.agent.segments import Streaming
from hookline.errors import Blocked, LoadFailed
from hookline.events import ToolCallEventResult
from hookline.models.script import Call, Turn
from hookline.runtime.subagent_task import Task
from hookline.testing import RecordingChannel
from hookline.tools import tool

from .. import forks
from .policies import Rule

CALL = Turn(tool_calls=[Call("echo", {"text": "x"}, "c1")])


@pytest.fixture(autouse=True)
def seen():
    Rule.seen.clear()
    return Rule.seen


@pytest.fixture
def echo(app):
    runs = []

    @tool(registry=app.tools, side_effects="none")
    def echo(text: str) -> str:
        """Say it again."""
        runs.append(text)
        return f"said {text}"

    return runs


@pytest.fixture
def judged_by(app):
    def configure(*names, **settings):
        named = [f"tests.interceptors.policies:{name}" for name in names]
        lines = [f"interceptors = {json.dumps(named)}"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        app.home.mkdir(exist_ok=True)
        (app.home / "config.toml").write_text("[agent_hooks]\n" + "\n".join(lines) + "\n")
        app.config.reload()

    return configure


async def say(app, content="hi", **options):
    async with app.running():
        return await app.process({"content": content}, **options)


def points(seen):
    return [context["interception_point"] for context in seen]


def plugin_of(app):
    return app.hooks.pm.get_plugin("agent_hooks")


async def test_without_the_section_there_is_nothing_of_it(app, scripted):
    scripted("hello")
    assert (await say(app)).model_output == "hello"
    assert plugin_of(app) is None


async def test_a_section_without_interceptors_denies_everything(app, scripted, judged_by):
    scripted("never")
    judged_by()
    with pytest.raises(Blocked, match="host_error:no_interceptor"):
        await say(app)


async def test_an_interceptor_sees_every_point_in_order(app, scripted, judged_by, echo, seen):
    scripted(CALL, "done")
    judged_by("allow")
    assert (await say(app)).model_output == "done"
    assert points(seen) == [
        "agent_startup", "input", "pre_model_call", "post_model_call", "pre_tool_call",
        "post_tool_call", "pre_model_call", "post_model_call", "output", "agent_shutdown",
    ]  # fmt: skip
    assert [context["sequence"] for context in seen] == list(range(10))
    assert {context["session"]["id"] for context in seen} == {"default:default"}
    assert echo == ["x"]


async def test_a_deny_of_a_call_is_told_to_the_model_and_on_the_tape(app, scripted, judged_by, echo):
    model = scripted(CALL, "I may not.")
    judged_by("no_echo")
    async with app.running():
        await app.process({"content": "go"})
        entries = await app.store().entries("default:default")
    assert echo == []
    assert model.requests[1].messages[-1]["content"] == "no echo today"
    (result,) = [e for e in entries if e.kind == "tool_result"]
    assert result.meta["rulings"][0]["by"].startswith("agent_hooks")


async def test_what_interceptors_judge_is_what_other_handlers_left(
    app, scripted, judged_by, echo, seen
):
    scripted(CALL, "done")
    judged_by("allow")
    async with app.running():
        app.hooks.register("tool_call", lambda e: ToolCallEventResult(input={"text": "later"}))
        await app.process({"content": "go"})
    (judged,) = [c for c in seen if c["interception_point"] == "pre_tool_call"]
    assert judged["target"] == {"text": "later"}
    assert echo == ["later"]


async def test_a_transform_of_arguments_is_what_runs(app, scripted, judged_by, echo):
    scripted(CALL, "done")
    judged_by("louder")
    await say(app)
    assert echo == ["LOUD"]


async def test_a_tool_that_is_run_once_more_is_judged_once_more(app, scripted, judged_by, echo, seen):
    scripted(CALL, "done")
    judged_by("allow")

    async def twice(call, call_next):
        await call_next()
        return await call_next()

    async with app.running():
        app.hooks.register("around_tool_call", twice)
        await app.process({"content": "go"})
    assert points(seen).count("pre_tool_call") == 2
    assert echo == ["x", "x"]


async def test_a_second_run_that_is_denied_does_not_happen(app, scripted, judged_by, echo):
    scripted(CALL, "done")
    judged_by("once")

    async def twice(call, call_next):
        await call_next()
        return await call_next()

    async with app.running():
        app.hooks.register("around_tool_call", twice)
        await app.process({"content": "go"})
    assert echo == ["x"]


async def test_a_call_that_policy_refuses_later_has_its_end_all_the_same(
    app, scripted, judged_by, echo, seen
):
    scripted(CALL, "done")
    judged_by("allow")
    async with app.running():
        app.hooks.register("authorize_action", lambda action: False)
        await app.process({"content": "go"})
    assert echo == []
    (end,) = [c for c in seen if c["interception_point"] == "post_tool_call"]
    assert end["tool_result"]["is_error"] is True


async def test_a_tools_value_is_shown_as_it_was_returned(app, scripted, judged_by, seen):
    @tool(registry=app.tools, side_effects="none")
    def account() -> dict:
        """Look it up."""
        return {"number": 42, "owner": "ada"}

    model = scripted(Turn(tool_calls=[Call("account", {}, "c1")]), "done")
    judged_by("hide_number")
    await say(app)
    (end,) = [c for c in seen if c["interception_point"] == "post_tool_call"]
    assert end["tool_result"]["value"] == {"number": 42, "owner": "ada"}
    told = json.loads(model.requests[1].messages[-1]["content"])
    assert told == {"number": "***", "owner": "ada"}


async def test_a_text_that_looks_like_json_stays_a_text(app, scripted, judged_by, seen):
    @tool(registry=app.tools, side_effects="none")
    def raw() -> str:
        """Give it."""
        return '{"a": 1}'

    scripted(Turn(tool_calls=[Call("raw", {}, "c1")]), "done")
    judged_by("allow")
    await say(app)
    (end,) = [c for c in seen if c["interception_point"] == "post_tool_call"]
    assert end["tool_result"]["value"] == '{"a": 1}'


async def test_labels_are_kept_on_the_tape(app, scripted, judged_by, echo):
    scripted(CALL, "done")
    judged_by("label")
    async with app.running():
        await app.process({"content": "go"})
        (entry,) = await app.store().entries("default:default", kinds={"labels"})
    assert entry.payload["labels"] == ["pii"]
    assert entry.payload["point"] == "post_tool_call"


async def test_input_and_messages_can_be_transformed(app, scripted, judged_by):
    model = scripted("done")
    judged_by("polite")
    await say(app, "now!")
    assert model.requests[0].messages[-1]["content"] == "please"


async def test_messages_that_a_transform_left_out_are_not_sent(app, scripted, judged_by):
    model = scripted("done")
    judged_by("hold_messages")
    await say(app, "secret")
    assert model.requests[0].messages == [{"role": "user", "content": "only this"}]


@pytest.mark.parametrize("name", ["wordless", "other_ending"])
async def test_a_transform_that_cannot_be_done_denies(app, scripted, judged_by, name):
    scripted("never")
    judged_by(name)
    try:
        result = await say(app)
    except Blocked as blocked:
        assert "cannot be transformed" in str(blocked)  # noqa: PT017
    else:
        assert result.outcome == "blocked"
        assert "must be a text" in result.stopped


async def test_a_redactor_redacts_while_an_answer_streams(app, scripted, judged_by):
    scripted(Turn("the key sk-1 is yours", chunk=2))
    judged_by("redact")
    app.limits = Limits(streaming=Streaming(segment=4, overlap=4))
    channel = RecordingChannel()
    result = await say(app, channel=channel)
    assert result.model_output == "the key [key] is yours"
    assert channel.text == result.model_output
    assert len(channel.kinds("text")) > 2


async def test_only_recording_changes_nothing(app, scripted, judged_by, echo):
    scripted(CALL, "done")
    judged_by("no_echo", mode="evaluate_only")
    assert (await say(app)).model_output == "done"
    assert echo == ["x"]
    denied = [r for r in plugin_of(app).records if r.verdict.decision.value == "deny"]
    assert [r.verdict.reason for r in denied] == ["no echo today"]
    assert denied[0].verdicts[0].name == "i0-tests-interceptors-policies-no_echo"


@pytest.mark.parametrize(
    ("said", "reason"), [(["secret"], "error"), (["secret", "hi"], "completed"), (["hi"], "completed")]
)
async def test_a_session_whose_last_turn_was_denied_ends_in_error(
    app, scripted, judged_by, seen, said, reason
):
    scripted("done")
    judged_by("no_secrets")
    async with app.running():
        for content in said:
            await app.process({"content": content})
    assert seen[-1]["summary"]["reason"] == reason


class TestApproval:
    @pytest.mark.parametrize(("answer", "runs"), [("approve", ["x"]), ("reject", []), (None, [])])
    async def test_a_deny_that_may_be_lifted_is_put_to_whoever_answers(
        self, app, scripted, judged_by, echo, answer, runs
    ):
        scripted(CALL, "done")
        judged_by("ask")
        asked = []

        def resolve(request):
            asked.append(request)
            return answer

        async with app.running():
            app.hooks.register("resolve_approval", resolve)
            await app.process({"content": "go", "channel": "terminal"})
        assert echo == runs
        (request,) = asked
        assert (request["tool"], request["arguments"]) == ("echo", {"text": "x"})
        assert request["question"] == "really?"
        assert request["channel"] == "terminal"

    async def test_nobody_answers_and_it_stays_denied(self, app, scripted, judged_by, echo):
        scripted(CALL, "done")
        judged_by("ask")
        await say(app)
        assert echo == []


async def test_a_subagent_is_judged_as_part_of_the_persons_session(
    app, scripted, judged_by, echo, seen
):
    scripted(CALL, "done", repeat=True)
    judged_by("allow")
    async with app.running():
        await app.sessions.open("s")
        await app.subagents.run_all([Task("do it", label="helper")], parent="s")
    assert echo == ["x"]
    calls = [c for c in seen if c["interception_point"] == "pre_tool_call"]
    assert [(c["session"]["id"], c["agent"]["id"]) for c in calls] == [("s", "helper")]


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("tests.interceptors.policies:missing", "cannot be imported"),
            ("no_such_module:x", "cannot be imported"),
            ("tests.interceptors.policies", "write module:function"),
            ("tests.interceptors.policies:number", "is no function"),
            ("tests.interceptors.policies:broken", "no key for the policy server"),
            ("tests.interceptors.policies:nothing", "not an interceptor"),
        ],
    )
    async def test_what_cannot_be_used_keeps_the_app_from_running(self, app, name, told):
        app.home.mkdir()
        (app.home / "config.toml").write_text(f'[agent_hooks]\ninterceptors = ["{name}"]\n')
        app.config.reload()
        with pytest.raises(LoadFailed, match=told):
            await say(app)

    async def test_a_knob_that_the_profile_does_not_have_is_refused(self, app, judged_by):
        judged_by("allow", profile="sequential/run_all", on_approval="stop")
        with pytest.raises(LoadFailed, match="on_approval"):
            await say(app)

    async def test_an_unknown_key_is_named(self, app, judged_by):
        judged_by("allow", profil="parallel/strictest")
        with pytest.raises(LoadFailed, match=r"agent_hooks\.profil.*did you mean 'profile'"):
            await say(app)

    def test_a_project_cannot_choose_interceptors(self, app):
        folder = app.workspace / ".hookline"
        folder.mkdir()
        (folder / "config.toml").write_text('[agent_hooks]\nmode = "evaluate_only"\n')
        app.config.reload()
        assert app.config.section("agent_hooks") == {}

    async def test_a_declaration_says_everything(self, app, scripted, echo):
        scripted(CALL, "done")
        app.home.mkdir()
        factory = "tests.interceptors.policies:no_echo"
        binding = {"factory": factory, "options": {"reason": "declared"}}
        everywhere = {"factory": "tests.interceptors.policies:allow"}
        document = {
            "declaration": "agent-hooks-declaration/1.0",
            "bindings": [
                {"id": "calls", "kind": "hookline.factory", "config": binding, "at": ["pre_tool_call"]},
                {"id": "rest", "kind": "hookline.factory", "config": everywhere},
            ],
        }
        (app.home / "hooks.json").write_text(json.dumps(document))
        (app.home / "config.toml").write_text('[agent_hooks]\ndeclaration = "hooks.json"\n')
        app.config.reload()
        await say(app)
        assert echo == []
        reasons = {r.verdict.reason for r in plugin_of(app).records}
        assert "declared" in reasons

    async def test_a_declaration_of_buffered_output_does_not_go_with_segments(self, app):
        app.home.mkdir()
        capabilities = ["host_declaration", "model_calls", "tool_calls"]
        surface = {"buffered_output": True, "capabilities": capabilities}
        document = {
            "declaration": "agent-hooks-declaration/1.0", "surface": surface, "bindings": []
        }  # fmt: skip
        (app.home / "hooks.json").write_text(json.dumps(document))
        (app.home / "config.toml").write_text(
            '[agent_hooks]\ndeclaration = "hooks.json"\n[streaming]\nsegment = 100\n'
        )
        app.config.reload()
        with pytest.raises(LoadFailed, match="declares buffered output"):
            await say(app)

    async def test_a_declaration_stands_alone(self, app, judged_by):
        judged_by("allow", declaration="hooks.json")
        with pytest.raises(LoadFailed, match="a declaration says everything"):
            await say(app)


async def test_calls_that_run_together_are_judged_one_by_one(app, scripted, judged_by, echo, seen):
    calls = [Call("echo", {"text": str(number)}, f"c{number}") for number in range(5)]
    scripted(Turn(tool_calls=calls), "done")
    judged_by("allow")
    await say(app)
    sequences = [context["sequence"] for context in seen]
    assert sorted(set(sequences)) == list(range(len(seen)))
    for point in ("pre_tool_call", "post_tool_call"):
        own = [c["tool_call"]["id"] for c in seen if c["interception_point"] == point]
        assert sorted(own) == ["c0", "c1", "c2", "c3", "c4"]


async def test_calls_with_one_id_are_judged_each(app, scripted, judged_by, echo, seen):
    calls = [Call("echo", {"text": text}, "same") for text in ("a", "b")]
    model = scripted(Turn(tool_calls=calls), "done")
    judged_by("allow", "no_a")
    await say(app)
    assert echo == ["b"]
    values = [c["target"] for c in seen if c["interception_point"] == "post_tool_call"]
    assert "said b" in values
    assert "no a" in str(model.requests[1].messages)


async def test_a_turn_that_is_resumed_is_judged_where_it_goes_on(app, scripted, judged_by, echo, seen):
    scripted(CALL, "done")
    judged_by("no_echo")
    async with app.running():
        tape = await app.tape("s")
        started = {"status": "started", "turn_id": "t", "envelope": None, "system": ""}
        raw = {"id": "c1", "name": "echo", "arguments": '{"text": "x"}'}
        asked = {"role": "assistant", "content": "", "tool_calls": [raw]}
        said = {"role": "user", "content": "go"}
        await tape.append_many(
            [("turn", started), ("message", {"message": said}), ("message", {"message": asked})]
        )
        await app.resume("s")
    assert echo == []
    assert "pre_tool_call" in points(seen)


def run_hookline(home, *arguments):
    env = {**os.environ, "HOOKLINE_HOME": str(home), "NO_COLOR": "1"}
    return forks.run(forks.MAIN, *arguments, cwd=home, env=env)


def test_the_command_line_says_in_a_line_why_it_does_not_run(tmp_path):
    (tmp_path / "config.toml").write_text('[agent_hooks]\ninterceptors = ["nowhere:policy"]\n')
    (tmp_path / "script.toml").write_text('[[turns]]\ntext = "never"\n')
    done = run_hookline(tmp_path, "run", "hi", "--model", f"scripted:{tmp_path}/script.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "nowhere:policy cannot be imported" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_of_the_sdk_is_imported_without_the_section(tmp_path):
    (tmp_path / "script.toml").write_text('[[turns]]\ntext = "hello"\n')
    code = (
        "import sys; from hookline.cli import main\n"
        f"sys.argv[1:] = ['run', 'hi', '--model', 'scripted:{tmp_path}/script.toml']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('agent_hooks' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "HOOKLINE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == ["hello", "False"]
