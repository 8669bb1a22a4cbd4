"""Rules about users and channels hold on every path that a message can take to a tool."""

import asyncio
import json
import sys

import pytest

from hookline import Hookline
from hookline.agent.journal import cut_off_turn
from hookline.events import InputEventResult, ToolCallEventResult, ToolResultEventResult
from hookline.hooks import Decision, Ruling
from hookline.hookspecs import Admission
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.observe.trace.plugin import Tracing
from hookline.runtime.user_tools import call_tool, run_shell
from hookline.tools import ToolError, tool
from hookline.tools.registry import Registry
from hookline.tools.tool import Tool
from hookline.types import NOBODY, Identity

pytestmark = pytest.mark.slow

GUEST = {"channel": "telegram", "chat_id": "7", "sender_id": "guest"}
ADMIN = {"channel": "telegram", "chat_id": "7", "sender_id": "admin"}
HERE = "telegram:7"


class Gate:
    """A policy that denies one user; it keeps the identity of every action."""

    def __init__(self, app) -> None:
        self.app = app
        self.actions: list = []
        self.ran: list = []

        @tool(side_effects="external", registry=Registry())
        def act(word: str = "x") -> str:
            self.ran.append(word)
            return "acted"

        app.tools.add(act)

        async def judge(action):
            self.actions.append(action)
            if action["user"] == "guest" and action["tool"] == "act":
                return [Ruling(Decision.DENY, "guests may not", by="gate")]
            return [Ruling(by="gate")]

        app.runner.judge = judge

    def users(self, name="act"):
        return [action["user"] for action in self.actions if action["tool"] == name]

    def places(self):
        return {(a["user"], a["channel"], a["chat"]) for a in self.actions}


@pytest.fixture
def gate(app):
    return Gate(app)


def delegating(levels: int, **options) -> list:
    """A script: each agent delegates to the next, the last one calls `act`."""
    turns = []
    for level in range(levels):
        task = f"level {level + 1}."
        given = {"tasks": [task], **options}
        turns.append(Turn(tool_calls=[Call("delegate", given)], match=f"level {level}\\."))
        turns.append(Turn("done", match=f"level {level}\\."))
    turns.append(Turn(tool_calls=[Call("act")], match=f"level {levels}\\."))
    turns.append(Turn("done", match=f"level {levels}\\."))
    return turns


# --- subagents ------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["guest", "admin"])
@pytest.mark.parametrize("knows", [None, "task", "conversation"])
@pytest.mark.parametrize("levels", [0, 1, 2, 3])
async def test_a_subagent_of_any_depth_acts_for_the_user_of_the_turn(
    app, scripted, gate, levels, knows, user
):
    scripted(*delegating(levels, **({"knows": knows} if knows else {})))
    async with app.running():
        await app.process({**GUEST, "sender_id": user, "content": "level 0."})
    assert gate.ran == ([] if user == "guest" else ["x"])
    assert gate.users() == [user]
    assert gate.places() == {(user, "telegram", "7")}


async def test_a_named_subagent_acts_for_the_user_of_this_turn_not_of_an_earlier_one(
    app, scripted, gate
):
    from hookline.runtime.subagent_task import Role

    app.subagents.define(Role(name="helper", context="named"))
    task = Call("delegate", {"tasks": ["help"], "role": "helper"})
    scripted(
        Turn(tool_calls=[task], match="start"), Turn("done", match="start"),
        Turn(tool_calls=[task], match="again"), Turn("done", match="again"),
        Turn(tool_calls=[Call("act")], match="help"), Turn("done", match="help"),
        Turn(tool_calls=[Call("act")], match="help"), Turn("done", match="help"),
    )  # fmt: skip
    async with app.running():
        await app.process({**ADMIN, "content": "start"})
        await app.process({**GUEST, "content": "again"})
    assert gate.users() == ["admin", "guest"]
    assert gate.ran == ["x"]


@pytest.mark.parametrize("how", ["tool", "task of a tool", "after the turn", "handler", "given"])
async def test_a_subagent_that_code_starts_acts_for_the_user_behind_that_code(app, scripted, gate, how):
    later: list = []

    async def start(**more):
        return await app.subagents.run("level 1.", parent=HERE, **more)

    @tool(side_effects="none", registry=Registry())
    async def begin() -> str:
        if how == "tool":
            return (await start()).text
        later.append(asyncio.create_task(start()))
        if how == "task of a tool":
            await later[0]
        return "begun"

    app.tools.add(begin)
    if how == "handler":

        async def handler(event, ctx):
            if ctx.depth == 0 and event.tool_name == "begin":
                later.append((await start()).text)

        app.hooks.register("tool_result", handler)
    scripted(
        Turn(tool_calls=[Call("begin")], match="level 0"), Turn("done", match="level 0"),
        Turn(tool_calls=[Call("act")], match="level 1"), Turn("done", match="level 1"),
        Turn(tool_calls=[Call("act")], match="level 1"), Turn("done", match="level 1"),
    )  # fmt: skip
    async with app.running():
        if how == "given":
            await start(identity=Identity.of(GUEST))
        else:
            await app.process({**GUEST, "content": "level 0."})
            for task in later:
                if isinstance(task, asyncio.Task):
                    await task
    assert set(gate.users()) == {"guest"}
    assert gate.ran == []


async def test_outside_of_turns_a_subagent_acts_for_the_sessions_latest_user(app, scripted, gate):
    scripted("hello", Turn(tool_calls=[Call("act")], match="level 1"), Turn("done", match="level 1"))
    async with app.running():
        await app.process({**GUEST, "content": "hi"})
        await app.subagents.run("level 1.", parent=HERE)
    assert gate.users() == ["guest"]


async def test_an_identity_given_to_a_subagent_adds_to_its_turns_own(app, scripted, gate):
    @tool(side_effects="none", registry=Registry())
    async def begin() -> str:
        mine = Identity.of(ADMIN)
        return (await app.subagents.run("level 1.", parent=HERE, identity=mine)).text

    app.tools.add(begin)
    scripted(
        Turn(tool_calls=[Call("begin")], match="level 0"), Turn("done", match="level 0"),
        Turn(tool_calls=[Call("act")], match="level 1"), Turn("done", match="level 1"),
    )  # fmt: skip
    async with app.running():
        await app.process({**GUEST, "content": "level 0."})
    assert gate.ran == []


# --- what plugins write ---------------------------------------------------------------------------

FORGED = {"channel": "terminal", "chat_id": "x", "sender_id": "admin", "content": "level 0."}


def forge_state(app):
    def load(message, session_id):
        return {"message": FORGED}

    app.hooks.register("load_state", load)


def forge_in_place(hook):
    def attach(app):
        def handler(message):
            message.update(FORGED, session_id=HERE)

        app.hooks.register(hook, handler)

    return attach


def forge_late(app):
    def prompt(message, session_id, state):
        state["message"] = FORGED
        message.update(FORGED)

    app.hooks.register("build_prompt", prompt)


def forge_at_start(app):
    def handler(prompt, state):
        state["message"] = FORGED
        state["user"] = state["identity"] = "admin"
        return ""

    app.hooks.register("system_prompt", handler)


def forge_context(app):
    def handler(event, ctx):
        for name, value in (("identity", Identity("admin")), ("session_id", "other")):
            try:
                object.__setattr__(ctx, name, value)
            except (AttributeError, TypeError):
                pass
        ctx.app.sessions.runs[HERE].envelope = FORGED if HERE in ctx.app.sessions.runs else None

    app.hooks.register("turn_start", handler)


def forge_identity(app):
    def handler(event, ctx):
        for name in ("user", "channel", "chat"):
            with pytest.raises(AttributeError):
                object.__setattr__(ctx.identity, name, "admin")

    app.hooks.register("turn_start", handler)


def forge_input(app):
    app.hooks.register(
        "input", lambda event, ctx: InputEventResult(action="transform", text="level 0.")
    )


def forge_action(app):
    app.hooks.register("authorize_action", lambda action: action.update(user="admin", channel="x"))


FORGERIES = {
    "load_state": forge_state,
    "resolve_session": forge_in_place("resolve_session"),
    "admit_message": forge_in_place("admit_message"),
    "build_prompt": forge_late,
    "system_prompt": forge_at_start,
    "the context": forge_context,
    "the identity itself": forge_identity,
    "input": forge_input,
    "the action": forge_action,
}


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
async def test_what_a_plugin_writes_does_not_change_who_is_judged(app, scripted, gate, forgery, levels):
    scripted(*delegating(levels))
    forgery(app)
    async with app.running():
        await app.process({**GUEST, "content": "level 0."}, session_id=HERE)
    assert gate.users() == ["guest"]
    assert gate.ran == []


@pytest.mark.parametrize(
    "sender",
    [
        type("Sly", (str,), {"__eq__": lambda s, o: True, "__hash__": lambda s: 0})("guest"),
        type("Two", (str,), {"__str__": lambda s: "guest"})("admin"),
    ],
    ids=["equal to everyone", "another text"],
)
def test_an_identity_holds_plain_text(sender):
    identity = Identity.of({"sender_id": sender, "channel": sender})
    assert type(identity.user) is str
    assert type(identity.channel) is str
    assert (identity.user == "nobody") is False


class Object:
    channel, chat_id, sender_id, content = "telegram", "7", "guest", "level 0."


@pytest.mark.parametrize(
    ("message", "user"),
    [
        ({"content": "", "sender_id": "a"}, "a"),
        ({"content": "", "user_id": "a"}, "a"),
        ({"content": "", "sender_id": 5}, "5"),
        ({"content": ""}, ""),
        ({"content": "", "sender_id": None}, ""),
        (Object(), "guest"),
        (None, ""),
    ],
)
def test_the_user_is_the_sender_of_the_message(message, user):
    assert Identity.of(message).user == user


@pytest.mark.parametrize(
    "identity",
    [
        NOBODY,
        Identity("a", "b", "c"),
        Identity("a").joined_by(Identity("b")),
        Identity("a").joined_by(Identity("b")).joined_by(Identity("c", "d")),
    ],
    ids=str,
)
def test_an_identity_comes_back_from_the_tape_as_it_was(identity):
    assert Identity.restored(json.loads(json.dumps(identity.plain()))) == identity


@pytest.mark.parametrize("junk", [None, 1, "x", [], {"user": None}, {"others": None}, {"others": []}])
def test_what_is_no_identity_is_nobody(junk):
    assert Identity.restored(junk) == NOBODY


# --- steering -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "runs"),
    [("admin", "guest", 0), ("guest", "admin", 0), ("admin", "admin", 1), ("admin", "other", 1)],
)
@pytest.mark.parametrize("levels", [0, 1])
async def test_a_steered_turn_is_judged_for_everyone_and_the_strictest_counts(
    app, scripted, gate, first, second, runs, levels
):
    steered: list = []

    @tool(side_effects="none", registry=Registry())
    async def wait() -> str:
        message = {**GUEST, "sender_id": second, "content": f"level {levels and 0}. too"}
        steered.append(asyncio.create_task(app.process(message)))
        while not app.sessions.runs[HERE].steering:
            await asyncio.sleep(0)
        return "waited"

    app.tools.add(wait)
    app.hooks.register("admit_message", lambda message: Admission("steer"))
    last = [Turn(tool_calls=[Call("act")]), Turn("done")]
    if levels:
        last = [
            Turn(tool_calls=[Call("delegate", {"tasks": ["below"]})]), Turn("done"),
            Turn(tool_calls=[Call("act")], match="below"), Turn("done", match="below"),
        ]  # fmt: skip
    scripted(Turn(tool_calls=[Call("wait")]), *last)
    async with app.running():
        await app.process({**GUEST, "sender_id": first, "content": "go"})
        await asyncio.gather(*steered)
    assert len(gate.ran) == runs
    if runs:
        assert set(gate.users()) == {first, second}
    else:
        assert "guest" in gate.users()


async def test_the_audit_names_everyone_who_steered(app, scripted, gate):
    recorded = []

    async def record(action, rulings, outcome):
        recorded.append(action)

    app.runner.record = record
    steered: list = []

    @tool(side_effects="none", registry=Registry())
    async def wait() -> str:
        message = {**ADMIN, "sender_id": "other", "content": "too"}
        steered.append(asyncio.create_task(app.process(message)))
        while not app.sessions.runs[HERE].steering:
            await asyncio.sleep(0)
        return "waited"

    app.tools.add(wait)
    app.hooks.register("admit_message", lambda message: Admission("steer"))
    scripted(Turn(tool_calls=[Call("wait")]), Turn(tool_calls=[Call("act")]), "done")
    async with app.running():
        await app.process({**ADMIN, "content": "go"})
        await asyncio.gather(*steered)
    assert recorded[0]["user"] == "admin"
    assert "participants" not in recorded[0]
    assert recorded[1]["user"] == "other"
    assert [one["user"] for one in recorded[1]["participants"]] == ["other", "admin"]


async def test_queued_messages_are_each_judged_for_their_own_sender(app, scripted, gate):
    scripted(*[Turn(tool_calls=[Call("act")]), "ok"] * 3)
    async with app.running():
        await asyncio.gather(
            *(
                app.process({**GUEST, "sender_id": user, "content": "go"})
                for user in ("admin", "guest", "other")
            )
        )
    assert gate.users() == ["admin", "guest", "other"]
    assert len(gate.ran) == 2


# --- the tape: resumed and replayed turns ---------------------------------------------------------


async def interrupted(app, scripted, gate, user, levels=0, steered_by=None):
    """A turn that is parked before `act` is judged."""
    at = asyncio.Event()

    @tool(side_effects="none", registry=Registry())
    async def stop() -> str:
        if not at.is_set():  # a resumed turn runs it again
            at.set()
            await asyncio.sleep(60)
        return ""

    app.tools.add(stop)
    scripted(Turn(tool_calls=[Call("stop")]))
    running = asyncio.create_task(app.process({**GUEST, "sender_id": user, "content": "go"}))
    await at.wait()
    if steered_by:
        run = app.sessions.runs[HERE]
        origin = {"steered": True, "identity": Identity(steered_by, "telegram", "7").plain()}
        await run.tape.append("message", {"message": {"role": "user", "content": "x"}}, meta=origin)
    await app.park(HERE)
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize(
    ("user", "joined", "runs"),
    [("guest", None, 0), ("admin", None, 1), ("admin", "guest", 0), ("guest", "admin", 0)],
)
async def test_a_resumed_turn_acts_for_those_whom_the_tape_names(
    app, scripted, gate, user, joined, runs
):
    async with app.running():
        await interrupted(app, scripted, gate, user, steered_by=joined)
        cut = await cut_off_turn(await app.tape(HERE))
        assert {one.user for one in cut.identity.everyone} == {user, joined} - {None}
        scripted(Turn(tool_calls=[Call("act")]), "done")
        app.hooks.register("load_state", lambda message, session_id: {"message": FORGED})
        await app.resume(HERE)
    assert len(gate.ran) == runs
    assert user in gate.users() or joined in gate.users()


async def test_the_tape_names_the_user_of_each_turn_and_call_of_a_user(app, scripted, gate):
    scripted(*delegating(1))
    async with app.running():
        await app.process({**ADMIN, "content": "level 0."})
        await call_tool(app, HERE, "act", {}, identity=Identity.of(GUEST))
        sessions = [info.id for info in await app.store().sessions()]
        entries = [e for name in sessions for e in await app.store().entries(name)]
    turns = [e.payload["identity"]["user"] for e in entries if e.payload.get("status") == "started"]
    assert turns == ["admin", "admin"]
    own = [e.meta["identity"]["user"] for e in entries if "identity" in e.meta]
    assert own == ["guest"]


async def test_a_backtest_judges_each_call_for_the_user_it_was_made_for(app, scripted, gate, tmp_path):
    from hookline.observe.replay.traffic import RecordedCall, StoredTraffic, Turned, traffic

    scripted(*delegating(1))
    async with app.running():
        await app.process({**ADMIN, "content": "level 0."})
        await call_tool(app, HERE, "act", {}, identity=Identity("other", "telegram"))
        source = await StoredTraffic.read(app.store(), 0.0, None)
    found = {}
    for session in source.sessions():
        turn = NOBODY
        for row in traffic(source, session.id):
            if isinstance(row, Turned) and row.began:
                turn = row.identity
            elif isinstance(row, RecordedCall):
                found[row.name, row.source] = (row.identity or turn).user
    assert found == {
        ("delegate", "model"): "admin", ("act", "model"): "admin", ("act", "command"): "other",
    }  # fmt: skip


# --- users' own calls, triggers, hooks ------------------------------------------------------------


@pytest.mark.parametrize("user", ["guest", "admin"])
async def test_a_users_own_call_is_judged_for_that_user(app, gate, user):
    async with app.running():
        await call_tool(app, HERE, "act", {}, identity=Identity(user, "telegram", "7"))
    assert gate.users() == [user]
    assert gate.places() == {(user, "telegram", "7")}
    assert len(gate.ran) == (user == "admin")


async def test_a_users_shell_command_is_judged_for_that_user(app, gate):
    async with app.running():
        await run_shell(app, HERE, "true", identity=Identity("ada", "terminal", "chat"))
    assert gate.places() == {("ada", "terminal", "chat")}


async def test_a_user_who_delegates_by_command_is_the_subagents_user(app, scripted, gate):
    scripted(Turn(tool_calls=[Call("act")], match="help"), Turn("done", match="help"))
    async with app.running():
        await call_tool(app, HERE, "delegate", {"tasks": ["help"]}, identity=Identity.of(GUEST))
    assert gate.users() == ["guest"]
    assert gate.ran == []


@pytest.mark.parametrize("forged", [False, True], ids=["as sent", "forged on the way"])
async def test_a_slash_command_on_a_channel_is_judged_for_its_sender(app, gate, forged):
    if forged:
        forge_in_place("admit_message")(app)

    async def command(session_id, message):
        await call_tool(app, session_id, "act", {}, identity=Identity.of(message))
        return "done"

    async with app.running():
        message = {**GUEST, "content": "/act", "session_id": HERE}
        await app.process(message, command=command)
    assert set(gate.users()) <= {"guest"}
    assert gate.ran == []


async def test_a_trigger_has_an_identity_of_its_own(app):
    from hookline.ext.triggers.triggers import Triggers
    from hookline.hookspecs import TriggerEvent

    triggers = Triggers(app)
    envelope = triggers.envelope_of(TriggerEvent("nightly", message="go"))
    assert Identity.of(envelope)[:2] == ("trigger:nightly", "trigger:nightly")


HOOKS = [
    "message:receive", "input", "session_start", "before_agent_start", "agent_start", "turn_start",
    "message_start", "model_call", "model_result", "tool_execution_start", "tool_call", "tool_result",
    "tool_execution_end", "turn_end", "agent_stop", "agent_end", "output", "save_point", "settled",
]  # fmt: skip


@pytest.mark.parametrize("hook", HOOKS)
async def test_every_hook_of_a_turn_can_see_whose_turn_it_is(app, scripted, gate, hook):
    seen = []
    app.hooks.register(hook, lambda event, ctx: seen.append(ctx.identity))
    scripted(Turn(tool_calls=[Call("act")]), "done")
    async with app.running():
        await app.process({**ADMIN, "content": "go"})
    assert seen
    assert set(seen) == {Identity("admin", "telegram", "7")}


@pytest.mark.parametrize("levels", [0, 1])
async def test_a_command_hook_is_told_the_user(app, scripted, gate, levels, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "seen.json"
    hook = {"type": "command", "command": f"cat > {file}"}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(
        json.dumps({"hooks": {"PreToolUse": [{"matcher": "act", "hooks": [hook]}]}})
    )
    scripted(*delegating(levels))
    async with app.running():
        await app.process({**ADMIN, "content": "level 0."})
    told = json.loads(file.read_text())
    assert (told["user"], told["channel"]) == ("admin", "telegram")


async def test_an_approval_request_names_the_user_below_a_subagent(app, scripted, gate):
    asked = []

    async def judge(action):
        return [Ruling(Decision.ASK if action["tool"] == "act" else Decision.ALLOW, by="gate")]

    def resolve(request):
        asked.append((request["user"], request["channel"], request["chat"]))
        return "approve"

    app.runner.judge = judge
    app.hooks.register("resolve_approval", resolve)
    scripted(*delegating(2))
    async with app.running():
        await app.process({**GUEST, "content": "level 0."})
    assert asked == [("guest", "telegram", "7")]


async def test_the_audit_log_names_the_user_below_a_subagent(tmp_path):
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    (home / "config.toml").write_text('[audit]\nenabled = true\n[policy]\ndefault = "allow"\n')
    app = Hookline(home=home, workspace=workspace)
    app.load_hooks(packages=False)
    model = ScriptedModel(delegating(2))
    app.models.add(model)
    app.model = model.name
    gate = Gate(app)
    async with app.running():
        await app.process({**GUEST, "content": "level 0."})
    lines = [json.loads(line) for line in (home / "audit/audit.jsonl").read_text().splitlines()]
    decided = [line for line in lines if line.get("kind") == "decision"]
    assert [line["tool"] for line in decided] == ["delegate", "delegate", "act"]
    assert {(line["user"], line["channel"], line["chat"]) for line in decided} == {
        ("guest", "telegram", "7")
    }
    assert gate.ran == []


# --- gates of a turn that several users steer -----------------------------------------------------


async def steered_turn(app, scripted, first="admin", second="other"):
    """A turn of one user that another joins before `act` is called."""
    steered: list = []

    @tool(side_effects="none", registry=Registry())
    async def wait() -> str:
        message = {**GUEST, "sender_id": second, "content": "too"}
        steered.append(asyncio.create_task(app.process(message)))
        while not app.sessions.runs[HERE].steering:
            await asyncio.sleep(0)
        return "waited"

    app.tools.add(wait)
    app.hooks.register("admit_message", lambda message: Admission("steer"))
    scripted(Turn(tool_calls=[Call("wait")]), Turn(tool_calls=[Call("act")]), "done")
    async with app.running():
        await app.process({**GUEST, "sender_id": first, "content": "go"})
        await asyncio.gather(*steered)


@pytest.mark.parametrize(("first", "second"), [("admin", "mallory"), ("mallory", "admin")])
async def test_a_handler_that_blocks_one_user_blocks_every_turn_which_that_user_steers(
    app, scripted, gate, first, second
):
    def block(event, ctx):
        if event.tool_name == "act" and ctx.identity.user == "mallory":
            return ToolCallEventResult(block=True, reason="not for mallory")
        return None

    app.hooks.register("tool_call", block)
    await steered_turn(app, scripted, first, second)
    assert gate.ran == []


async def test_a_handler_sees_each_participant_with_everyone_else(app, scripted, gate):
    seen = []

    def look(event, ctx):
        if event.tool_name == "act":
            seen.append((ctx.identity.user, [other.user for other in ctx.identity.others]))

    app.hooks.register("tool_call", look)
    app.hooks.register("tool_result", look)
    await steered_turn(app, scripted)
    assert seen == [("other", ["admin"]), ("admin", ["other"])] * 2
    assert gate.ran == ["x"]


async def test_arguments_that_one_participants_gate_rewrites_are_judged_for_the_others(
    app, scripted, gate
):
    def rewrite(event, ctx):
        if event.tool_name == "act" and ctx.identity.user == "admin":
            return ToolCallEventResult(input={"word": "rewritten"})
        return None

    def block(event, ctx):
        if ctx.identity.user == "other" and event.input.get("word") == "rewritten":
            return ToolCallEventResult(block=True, reason="not that")
        return None

    app.hooks.register("tool_call", rewrite)
    app.hooks.register("tool_call", block)
    await steered_turn(app, scripted)
    assert gate.ran == []


async def test_arguments_that_differ_for_each_participant_do_not_run(app, scripted, gate):
    def rewrite(event, ctx):
        if event.tool_name == "act":
            return ToolCallEventResult(input={"word": f"{event.input.get('word')}{ctx.identity.user}"})
        return None

    app.hooks.register("tool_call", rewrite)
    await steered_turn(app, scripted)
    assert gate.ran == []


async def test_one_question_is_asked_for_everyone(app, scripted, gate):
    asked = []

    def ask(event, ctx):
        if event.tool_name != "act":
            return None
        return ToolCallEventResult(ask=True, reason=f"for {ctx.identity.user}?")

    def resolve(request):
        asked.append(request["question"])
        return "approve"

    app.hooks.register("tool_call", ask)
    app.hooks.register("resolve_approval", resolve)
    await steered_turn(app, scripted)
    assert asked == ["for other?; for admin?"]
    assert gate.ran == ["x"]


@pytest.mark.parametrize(("first", "second"), [("admin", "mallory"), ("mallory", "admin")])
async def test_a_result_that_one_participant_may_not_see_is_withheld(
    app, scripted, gate, first, second
):
    results = []

    def withhold(event, ctx):
        if event.tool_name == "act" and ctx.identity.user == "mallory":
            return ToolResultEventResult(block=True, reason="secret")
        return None

    app.hooks.register("tool_result", withhold)
    app.hooks.register(
        "tool_execution_end", lambda event, ctx: results.append(event.tool_result.content)
    )
    await steered_turn(app, scripted, first, second)
    assert results[-1] == "[withheld: secret]"


@pytest.mark.parametrize("blocked", ["admin", "other", "neither"])
async def test_a_command_hook_judges_for_each_participant(
    app, scripted, gate, tmp_path, monkeypatch, blocked
):
    monkeypatch.setenv("HOME", str(tmp_path))
    hook = {"type": "command", "command": f"""grep -q '"user": "{blocked}"' && exit 2; exit 0"""}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(
        json.dumps({"hooks": {"PreToolUse": [{"matcher": "act", "hooks": [hook]}]}})
    )
    await steered_turn(app, scripted)
    assert gate.ran == (["x"] if blocked == "neither" else [])


# --- previews -------------------------------------------------------------------------------------


async def preview_of(app, scripted, preview):
    """The diff that is shown for a call of a tool with this preview."""
    shown = []

    @tool(side_effects="external", registry=Registry())
    def change(word: str = "x") -> str:
        return "changed"

    change.preview(preview)
    app.tools.add(change)

    async def judge(action):
        return [Ruling(Decision.ASK, by="gate")]

    app.runner.judge = judge
    app.hooks.register("resolve_approval", lambda request: shown.append(request["diff"]) or "reject")
    scripted(Turn(tool_calls=[Call("change")]), "done")
    async with app.running():
        await app.process({**GUEST, "content": "go"})
    return shown


async def test_a_preview_that_hangs_does_not_keep_the_question_back(app, scripted, monkeypatch):
    import threading

    monkeypatch.setattr(sys.modules[Tool.__module__], "PREVIEW_SECONDS", 0.05)
    never = threading.Event()
    shown = await preview_of(app, scripted, lambda values, context: never.wait(60) and "")
    never.set()
    assert shown == ["[the preview did not finish within 0.05 s]"]


@pytest.mark.parametrize(
    "error", [SystemExit(0), RuntimeError("no"), RecursionError(), MemoryError()], ids=repr
)
async def test_a_preview_that_fails_ends_nothing(app, scripted, error):
    def fail(values, context):
        raise error

    (shown,) = await preview_of(app, scripted, fail)
    assert shown.startswith("[there is no preview")


async def test_a_call_whose_preview_says_that_it_would_fail_is_not_asked_about(app, scripted):
    def fail(values, context):
        raise ToolError("the shelf is full")

    assert await preview_of(app, scripted, fail) == []


async def test_a_preview_gets_nothing_to_write_to(app, scripted):
    seen = []

    def look(values, context):
        context.state["planted"] = True
        values["word"] = "planted"
        seen.append(context)
        return "diff"

    assert await preview_of(app, scripted, look) == ["diff"]
    (context,) = seen
    assert (context.app, context.tape) == (None, None)


# --- who it was, told afterwards ------------------------------------------------------------------


async def test_why_names_the_user_of_a_call_and_of_a_turn(app, scripted, gate):
    from hookline.observe.trace import explain

    scripted(Turn(tool_calls=[Call("act")]), "done")
    async with app.running():
        await app.process({**ADMIN, "content": "go"})
        await call_tool(app, HERE, "act", {}, identity=Identity("other", "terminal"))
        entries = await app.store().entries(HERE, kinds=["tool_call"])
        traces = await Tracing.of(app).store()
        found = [
            (await explain(app.store(), traces, HERE, target)).identity
            for target in [None, *(entry.payload["id"] for entry in entries)]
        ]
    assert [(who["user"], who["channel"]) for who in found] == [
        ("admin", "telegram"), ("admin", "telegram"), ("other", "terminal"),
    ]  # fmt: skip


def test_policy_explain_judges_for_the_user_that_is_named(tmp_path, monkeypatch, capsys):
    from ..commandline import here

    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    (home / "rules.cedar").write_text(
        '@id("guests") forbid (principal in User::"guest", action, resource);\n'
    )
    (home / "config.toml").write_text(
        '[policy]\ndefault = "allow"\n[policy.floor]\ncedar = "rules.cedar"\n'
    )
    run = here(home, workspace, monkeypatch, capsys)
    for user, decision in (("guest", "deny"), ("ada", "allow")):
        ended = run(
            "policy", "explain", "shell", '{"command": "ls"}', "--user", user, "--channel", "web",
            "--json",
        )  # fmt: skip
        found = json.loads(ended.stdout)
        assert found["decision"] == decision, ended.stderr
        assert (found["identity"]["user"], found["identity"]["channel"]) == (user, "web")
    ended = run("policy", "explain", "--session", "s", "--call", "c", "--user", "guest")
    assert ended.returncode == 2
    assert "leave them out" in ended.stderr


@pytest.mark.parametrize("call_id", ["command_1", "shell_2", "call_3"])
async def test_a_model_cannot_pass_its_calls_off_as_a_users(app, scripted, gate, call_id):
    from hookline.observe.replay.traffic import RecordedCall, StoredTraffic, traffic

    scripted(Turn(tool_calls=[Call("act", id=call_id)]), "done")
    async with app.running():
        await app.process({**ADMIN, "content": "go"})
        await call_tool(app, HERE, "act", {}, identity=Identity("other", "terminal"))
        source = await StoredTraffic.read(app.store(), 0.0, None)
    found = [row.source for row in traffic(source, HERE) if isinstance(row, RecordedCall)]
    assert found == ["model", "command"]
