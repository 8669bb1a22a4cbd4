"""Approvals: bound to a call, kept over restarts, shared with subagents, over when their time is."""

import asyncio
import json
import stat
import sys
from threading import Barrier, Thread
from types import SimpleNamespace

import pytest

from hookline.errors import ApprovalError
from hookline.hooks import Decision
from hookline.models import Call, ScriptedModel, Turn
from hookline.policy import Policy
from hookline.policy.answers import ApprovalAnswer
from hookline.policy.approval_flow import Approving
from hookline.policy.approvals import UNUSED, Approvals, call_hash
from hookline.policy.hash_chain import records
from hookline.policy.postgres_approvals import PostgresApprovals
from hookline.runtime.app import Hookline
from hookline.tape.settings import TapeSettings

from .. import commandline, forks, postgres
from ..cli.test_chat import Terminal
from ..tables import each_row

SCRIPT = """
from hookline.models.script import Call, Turn

put = Call("write_file", {"path": "notes.txt", "content": "one\\n2\\nthree\\n"})
edit = Call("edit_file", {"path": "notes.txt", "edits": [{"old": "two", "new": "zwei"}]})
turns = [
    Turn("Writing.", match="put", tool_calls=[put]),
    Turn("Put it there.", match="put"),
    Turn("Editing.", match="edit", tool_calls=[edit]),
    Turn("Edited it.", match="edit"),
]
repeat = True
"""


def request(**changes):
    asked = {
        "tool": "put",
        "arguments": {"path": "a"},
        "session_id": "s",
        "lineage": ["s"],
        "call_id": "c1",
        "workspace": "/w",
        "question": "run put?",
    }
    return {**asked, **changes}


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request, tmp_path):
    """Opens the same approvals again, as another process would."""
    made = []
    schema = postgres.new_schema()

    def open_(**options):
        where = tmp_path / "home" / "approvals.db"
        if request.param == "postgres":
            where = PostgresApprovals(TapeSettings(url=postgres.url(), schema=schema), where.parent)
        made.append(Approvals(where, **options))
        return made[-1]

    yield open_
    for each in made:
        each.close()
    if request.param == "postgres":
        postgres.drop(schema)


@pytest.fixture
def approvals(opened, clock):
    return opened(clock=clock)


def granted(approvals, answer, **changes):
    return approvals.answer(approvals.ask(request(**changes)), answer, by="ada")


# --- what people say ------------------------------------------------------------------------------


@each_row(
    ("said", "meant"),
    [
        ("y", ApprovalAnswer(True)),
        (" YES ", ApprovalAnswer(True)),
        ("approve", ApprovalAnswer(True)),
        ("session", ApprovalAnswer(True, "session")),
        ("always", ApprovalAnswer(True, "session")),
        ("10", ApprovalAnswer(True, "until", 600)),
        ("10m", ApprovalAnswer(True, "until", 600)),
        ("2 hours", ApprovalAnswer(True, "until", 7200)),
        ("30 s", ApprovalAnswer(True, "until", 30)),
        ("", ApprovalAnswer(False)),
        ("n", ApprovalAnswer(False)),
        ("reject", ApprovalAnswer(False)),
        ("0", ApprovalAnswer(False, reason="0")),
        ("no, use git mv", ApprovalAnswer(False, reason="use git mv")),
        ("N: not there", ApprovalAnswer(False, reason="not there")),
        ("use the other folder", ApprovalAnswer(False, reason="use the other folder")),
        ("yes please", ApprovalAnswer(False, reason="yes please")),
        ("not now", ApprovalAnswer(False, reason="not now")),
    ],
)
def test_what_is_no_yes_is_a_no_with_its_reason(said, meant):
    assert ApprovalAnswer.read(said) == meant


# --- the store ------------------------------------------------------------------------------------


def test_a_yes_is_for_this_call_once(approvals):
    assert approvals.allowed(request()) is None
    granted(approvals, "yes")
    assert approvals.allowed(request(call_id="c2")) is None
    assert approvals.allowed(request()).scope == "once"
    assert approvals.allowed(request()) is None  # used up


@pytest.mark.parametrize(
    "other",
    [
        {"arguments": {"path": "b"}},
        {"arguments": {"path": "a", "content": ""}},
        {"tool": "sh"},
        {"workspace": "/elsewhere"},
        {"session_id": "t", "lineage": ["t"]},
        {"session_id": "s/guess", "lineage": ["s/guess"]},  # named like a subagent, and none
        {"hash": "forged", "arguments": {"path": "b"}},
    ],
)
def test_an_approval_is_bound_to_the_call_the_workspace_and_the_session(approvals, other):
    granted(approvals, "session")
    assert approvals.allowed(request(**other)) is None
    assert approvals.allowed(request(call_id="c9")) is not None


def test_the_session_counts_for_its_subagents_and_they_ask_for_it(approvals):
    granted(approvals, "session")
    deep = {"session_id": "s/a/b", "lineage": ["s/a/b", "s/a", "s"]}
    assert approvals.allowed(request(**deep)).session_id == "s"
    granted(approvals, "session", arguments={"path": "deep"}, **deep)
    assert approvals.allowed(request(arguments={"path": "deep"})) is not None


def test_one_for_a_time_is_gone_when_the_time_is(approvals, clock):
    granted(approvals, "10 minutes")
    clock.now += 599
    assert approvals.allowed(request(call_id="c2")) is not None
    clock.now += 1
    assert approvals.allowed(request(call_id="c2")) is None
    assert approvals.list() == []
    assert [grant.state(clock.now) for grant in approvals.list(everything=True)] == ["expired"]


def test_a_yes_that_nobody_came_for_is_gone_after_a_while(approvals, clock):
    granted(approvals, "yes")
    clock.now += UNUSED
    assert approvals.allowed(request()) is None


def test_a_question_that_is_over_cannot_be_answered(approvals, clock):
    question = approvals.ask(request())
    assert [one.id for one in approvals.pending()] == [question]
    assert [one.id for one in approvals.pending("s")] == [question]
    assert approvals.pending("t") == []
    clock.now += 600
    assert approvals.pending() == []
    with pytest.raises(ApprovalError, match="is over: it was denied"):
        approvals.answer(question, "yes")
    assert approvals.allowed(request()) is None


def test_the_first_answer_counts(approvals):
    question = approvals.ask(request())
    approvals.answer(question, "no", by="ada")
    with pytest.raises(ApprovalError, match="was answered already"):
        approvals.answer(question, "yes", by="bob")
    with pytest.raises(ApprovalError, match="no question 'nope'"):
        approvals.answer("nope", "yes")


def test_a_call_that_is_asked_about_again_keeps_its_question(approvals):
    assert approvals.ask(request()) == approvals.ask(request())
    assert approvals.ask(request(call_id="c2")) != approvals.ask(request())


def test_a_grant_is_revoked_once(approvals):
    grant = granted(approvals, "session")
    approvals.revoke(grant.id)
    assert approvals.allowed(request()) is None
    with pytest.raises(ApprovalError, match="no approval"):
        approvals.revoke(grant.id)


def at_once(*actions):
    """What each gives or raises, all begun at the same time."""
    barrier, results = Barrier(len(actions)), {}

    def run(number, action):
        barrier.wait()
        try:
            results[number] = action()
        except ApprovalError as error:
            results[number] = str(error)

    threads = [Thread(target=run, args=each) for each in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in range(len(actions))]


def test_of_two_who_answer_at_once_one_is_heard(opened):
    one, other = opened(), opened()
    for number in range(10):
        question = one.ask(request(call_id=f"c{number}"))
        results = at_once(
            lambda: one.answer(question, "yes", by="ada"),  # noqa: B023
            lambda: other.answer(question, "session", by="bob"),  # noqa: B023
        )
        [late] = [each for each in results if isinstance(each, str)]
        assert late == f"the question {question!r} was answered already"
        [grant] = [each for each in results if not isinstance(each, str)]
        assert one.answered(question)[1] == other.answered(question)[1] == grant.by
    assert len(one.list()) == 10


def test_a_yes_for_one_call_is_used_once_by_however_many(opened):
    each = [opened() for _ in range(4)]
    for number in range(10):
        asked = request(call_id=f"c{number}")
        grant = granted(each[number % 4], "yes", call_id=f"c{number}")
        results = at_once(*(lambda one=one: one.allowed(asked) for one in each))  # noqa: B023
        assert [one.id for one in results if one] == [grant.id]


def test_those_who_ask_about_one_call_at_once_have_one_question(opened):
    each = [opened() for _ in range(4)]
    [asked] = set(at_once(*(lambda one=one: one.ask(request()) for one in each)))
    assert [question.id for question in each[0].pending()] == [asked]


def test_what_cannot_be_recorded_is_no_answer_and_no_revocation(opened):
    def full(what, grant):
        raise OSError("the disk is full")

    one, other = opened(), opened(told=full)
    question = one.ask(request())
    grant = granted(one, "session", call_id="c2")
    for action in (lambda: other.answer(question, "yes"), lambda: other.revoke(grant.id)):
        with pytest.raises(ApprovalError, match="the disk is full"):
            action()
    assert [pending.id for pending in one.pending()] == [question]
    assert other.list() == [grant]


def test_any_letters_may_be_in_a_call(opened):
    arguments = {"path": "\ud800 \0 ü"}
    grant = granted(opened(), "session", arguments=arguments)
    assert opened().allowed(request(arguments=arguments)) == grant
    assert grant.call == 'put {"path": "\\ud800 \\u0000 ü"}'


@pytest.mark.parametrize("name", ["a\ud800", "a\0b"])
def test_a_name_that_cannot_be_kept_is_not_known(opened, name):
    approvals = opened()
    approvals.ask(request())
    with pytest.raises(ApprovalError, match=r"cannot|no question"):
        approvals.answer(name, "yes")


def test_the_file_is_its_owners(tmp_path):
    approvals = Approvals(tmp_path / "home" / "approvals.db")
    assert approvals.allowed(request()) is None
    assert approvals.list() == approvals.pending() == []
    assert not approvals.storage.path.exists()
    granted(approvals, "yes")
    assert stat.S_IMODE(approvals.storage.path.stat().st_mode) == 0o600


async def test_waiting_ends_with_the_question(opened, clock):
    approvals = opened(clock=clock)
    question = approvals.ask(request())
    waiting = asyncio.create_task(approvals.wait(question))
    await asyncio.sleep(0)
    approvals.close_question(question)
    assert await waiting is None
    assert await approvals.wait("nope") is None


async def test_waiting_hears_what_another_process_answers(tmp_path):
    approvals = Approvals(tmp_path / "approvals.db")
    question = approvals.ask(request())
    waiting = asyncio.create_task(approvals.wait(question))
    code = (
        "import sys; from pathlib import Path; from hookline.policy.approvals import Approvals; "
        "Approvals(Path(sys.argv[1])).answer(sys.argv[2], 'session', by='bob')"
    )
    arguments = [sys.executable, "-c", code, str(approvals.storage.path), question]
    await (await asyncio.create_subprocess_exec(*arguments)).wait()
    assert await waiting == ApprovalAnswer(True, "session")


# --- through the runner ---------------------------------------------------------------------------


async def test_the_request_says_everything_that_a_door_needs(app, call, counted):
    asked = []
    app.hooks.register("resolve_approval", lambda request: asked.append(request) or "approve")
    await call("put", Policy(), path="a")
    [one] = asked
    assert one["hash"] == call_hash("put", {"path": "a"})
    assert one["id"].startswith("ask_")
    assert one["lineage"] == ["s"]
    assert one["diff"] is None
    assert {"question", "tool", "arguments", "session_id", "call_id", "user", "channel"} <= set(one)


async def test_session_is_asked_once_and_the_grant_is_among_the_rulings(app, call, counted):
    asked = []

    def answer(request):
        asked.append(request)
        app.approvals.answer(request["id"], "session", by="ada")
        return "approve"

    app.hooks.register("resolve_approval", answer)
    _, first = await call("put", Policy(), path="a")
    _, second = await call("put", Policy(), path="a")
    outcome, _ = await call("put", Policy(), path="b")
    assert outcome.ran
    assert counted.runs == ["a", "a", "b"]
    assert len(asked) == 2
    assert "for the session by ada" in first[-1].reason
    assert second[-1].by.startswith("approval ap_")
    assert second[-1].decision is Decision.ALLOW


async def test_a_no_tells_the_model_why(app, call, counted):
    def answer(request):
        app.approvals.answer(request["id"], "no, use the other folder", by="ada")
        return "reject"

    app.hooks.register("resolve_approval", answer)
    outcome, rulings = await call("put", Policy(), path="a")
    assert (
        outcome.content == "put was rejected: run put? (the person says: use the other folder) (by ada)"
    )
    assert rulings[-1].decision is Decision.DENY
    assert counted.runs == []


async def test_a_door_that_says_yes_where_no_was_written_down_is_not_heard(app, call, counted):
    def answer(request):
        app.approvals.answer(request["id"], "no")
        return "approve"

    app.hooks.register("resolve_approval", answer)
    await call("put", Policy(), path="a")
    assert counted.runs == []


async def test_what_the_door_does_to_the_request_changes_nothing(app, call, counted):
    def answer(request):
        request["arguments"]["path"] = "elsewhere"
        request["tool"] = "sh"
        return "approve"

    app.hooks.register("resolve_approval", answer)
    await call("put", Policy(), path="a")
    assert counted.runs == ["a"]
    assert app.approvals.list(everything=True)[0].call == 'put {"path": "a"}'


async def test_a_question_that_nobody_answers_is_denied(app, call, counted):
    app.given_policy = Policy(seconds=0.05)

    async def never(request):
        await asyncio.Event().wait()

    app.hooks.register("resolve_approval", never)
    outcome, _ = await call("put", Policy(), path="a")
    assert "needs approval and nobody answered" in outcome.content
    assert counted.runs == []
    assert app.approvals.pending() == []


async def test_an_answer_from_elsewhere_ends_the_waiting(app, call, counted):
    async def never(request):
        await asyncio.to_thread(app.approvals.answer, request["id"], "session", by="page")
        await asyncio.Event().wait()

    app.hooks.register("resolve_approval", never)
    outcome, rulings = await call("put", Policy(), path="a")
    assert outcome.ran
    assert "by page" in rulings[-1].reason


@pytest.mark.parametrize("said", ["session", "no"])
async def test_a_door_that_is_slower_than_another_process_goes_by_what_that_wrote(opened, said):
    approvals, elsewhere = opened(), opened()

    class Slow:
        """Looks whether there is an answer, and then another process writes one."""

        def __getattr__(self, name):
            return getattr(approvals, name)

        def answered(self, question):
            found = approvals.answered(question)
            if found is None:
                elsewhere.answer(question, said, by="ada")
            return found

    async def approve(request):
        return "approve"

    ruling = await Approving(Slow())(request(), approve)
    assert ruling.decision is (Decision.ALLOW if said == "session" else Decision.DENY)
    assert [grant.by for grant in approvals.list()] == (["ada"] if said == "session" else [])


async def test_a_call_that_is_cancelled_leaves_no_question(app, call, counted):
    waits = asyncio.Event()

    async def never(request):
        waits.set()
        await asyncio.Event().wait()

    app.hooks.register("resolve_approval", never)
    running = asyncio.create_task(call("put", Policy(), path="a"))
    await waits.wait()
    assert len(app.approvals.pending()) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert app.approvals.pending() == []
    assert counted.runs == []


@pytest.mark.parametrize("broken", ["unwritable", "nonsense"])
async def test_what_cannot_be_kept_is_denied(app, call, counted, broken):
    app.home.mkdir(exist_ok=True)
    if broken == "nonsense":
        app.approvals.storage.path.write_bytes(b"this is no database" * 100)
    else:
        app.approvals.storage.path.mkdir()
    app.hooks.register("resolve_approval", lambda request: "approve")
    outcome, rulings = await call("put", Policy(), path="a")
    assert "needs approval, which cannot be given" in outcome.content
    assert rulings[-1].decision is Decision.DENY
    assert counted.runs == []


async def test_grants_are_on_the_audit_log_and_unrecorded_ones_are_none(app, call, counted):
    app.home.mkdir(exist_ok=True)
    (app.home / "config.toml").write_text("[audit]\nenabled = true\n")
    app.config.reload()

    def answer(request):
        app.approvals.answer(request["id"], "session", by="ada")
        return "approve"

    app.hooks.register("resolve_approval", answer)
    await call("put", Policy(), path="a")
    kinds = [(r["kind"], r["outcome"]) for r in records(app.safeguards.audit_path)]
    assert kinds == [("grant", "allowed"), ("decision", "allowed")]
    app.approvals.revoke(app.approvals.list()[0].id)
    assert [r["kind"] for r in records(app.safeguards.audit_path)][-1] == "revoke"
    app.safeguards.audit_path.write_text("cut")
    app.safeguards.auditor.log._known = None
    outcome, _ = await call("put", Policy(), path="b")
    assert not outcome.ran
    assert app.approvals.list() == []


async def test_the_session_is_one_for_subagents_at_depth_two(app, counted, scripted):
    app.given_policy = Policy()
    asked = []

    def answer(request):
        asked.append(request)
        app.approvals.answer(request["id"], "session", by="ada")
        return "approve"

    app.hooks.register("resolve_approval", answer)
    depths = []
    app.hooks.register("tool_execution_start", lambda event, ctx: depths.append(ctx.depth))
    put = Call("put", {"path": "a"})
    scripted(
        Turn(tool_calls=[Call("delegate", {"tasks": ["middle"]})], match="go"),
        Turn("Done.", match="go"),
        Turn(tool_calls=[Call("delegate", {"tasks": ["inner"]})], match="middle"),
        Turn("Done.", match="middle"),
        Turn(tool_calls=[put], match="inner|again"),
        Turn("Done.", match="inner|again"),
        repeat=True,
    )
    async with app.running():
        await app.process({"content": "go", "session_id": "s"})
        await app.process({"content": "again", "session_id": "s"})
    assert counted.runs == ["a", "a"]
    assert depths == [0, 1, 2, 0]
    assert [(one["depth"], one["lineage"][-1]) for one in asked] == [(2, "s")]


# --- restarts -------------------------------------------------------------------------------------

RUN = """
import asyncio, os, signal, sys
from pathlib import Path
from hookline.runtime.app import Hookline
from hookline.models import Call, ScriptedModel, Turn
from hookline.policy import Policy

home, mode = Path(sys.argv[1]), sys.argv[2]
app = Hookline(home=home, workspace=home, policy=Policy())
app.load_hooks(packages=False)
put = Call("write_file", {"path": "made.txt", "content": "x"}, id="call_7")
app.models.add(ScriptedModel([Turn(tool_calls=[put]), "Done."] if mode != "resume" else ["Done."]))
app.model = "scripted"


def answer(request):
    if mode == "die":
        app.approvals.answer(request["id"], sys.argv[3], by="ada")
        os.kill(os.getpid(), signal.SIGKILL)
    print("asked", flush=True)
    return None


app.hooks.register("resolve_approval", answer)


async def main():
    async with app.running():
        if mode == "resume":
            await app.resume("s")
        else:
            await app.process({"content": "go", "session_id": "s"})


asyncio.run(main())
"""


def run(home, *arguments):
    return forks.run(RUN, home, *arguments)


@pytest.mark.parametrize("answer", ["once", "session", "10 minutes"])
def test_an_approval_survives_a_process_that_is_killed(tmp_path, answer):
    died = run(tmp_path, "die", answer)
    assert died.returncode == -9, died.stderr
    assert not (tmp_path / "made.txt").exists()
    resumed = run(tmp_path, "resume")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == ""
    assert (tmp_path / "made.txt").read_text() == "x"
    (tmp_path / "made.txt").unlink()
    again = run(tmp_path, "again")
    assert (tmp_path / "made.txt").exists() is (answer != "once")
    assert again.stdout == ("asked\n" if answer == "once" else "")


def test_a_no_survives_neither_more_nor_less_than_the_call(tmp_path):
    assert run(tmp_path, "die", "no").returncode == -9
    assert run(tmp_path, "resume").stdout == "asked\n"
    assert not (tmp_path / "made.txt").exists()


# --- in a chat ------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    workspace, home = tmp_path / "work", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    (workspace / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    return SimpleNamespace(
        workspace=workspace, home=home, model=f"scripted:{tmp_path / 'script.py'}", app=""
    )


@pytest.fixture
def terminal(place):
    opened = []

    def open_():
        opened.append(Terminal(place))
        opened[-1].see_prompt()
        return opened[-1]

    yield open_
    for each in opened:
        each.child.close(force=True)


@pytest.fixture
def hookline(place, monkeypatch, capsys):
    return commandline.here(place.home, place.workspace, monkeypatch, capsys)


def test_the_person_sees_the_call_and_the_diff_before_anything_is_written(terminal, place, hookline):
    chat = terminal()
    chat.type("put\r")
    chat.see(r'run write_file\?\n  write_file \{"path": "notes.txt", "content": "one')
    chat.see(r"(?m)^\s+-two$")
    chat.see(r"(?m)^\s+\+2$")
    chat.see(r"allow it\?")
    assert (place.workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"
    pending = json.loads(hookline("policy", "approvals", "--json").stdout)["pending"]
    assert [one["request"]["tool"] for one in pending] == ["write_file"]
    chat.type("y\r")
    chat.see("Put it there.")
    assert (place.workspace / "notes.txt").read_text() == "one\n2\nthree\n"


def test_a_no_with_a_reason_reaches_the_model(terminal, place):
    chat = terminal()
    chat.type("edit\r")
    chat.see(r"(?m)^\s+\+zwei$")
    chat.see(r"allow it\?")
    chat.type("no, in English\r")
    chat.see(r"was rejected: run edit_file\? \(the person says: in English")
    chat.see_prompt()
    assert (place.workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"


def test_minutes_hold_over_a_restart_until_they_are_revoked(terminal, place, hookline):
    chat = terminal()
    chat.type("put\r")
    chat.see(r"allow it\?")
    chat.type("10\r")
    chat.see("Put it there.")
    chat.see_prompt()
    chat.type("\x04")
    assert chat.end() == 0
    [grant] = json.loads(hookline("policy", "approvals", "--json").stdout)["granted"]
    assert (grant["scope"], grant["session_id"].partition("-")[0]) == ("until", "terminal:work")
    again = terminal()
    again.type("put\r")
    again.see("Put it there.")
    again.see_prompt()
    assert "allow it?" not in again.text
    done = hookline("policy", "approvals", "--revoke", grant["id"])
    assert done.stdout.startswith("revoked: write_file")
    again.type("put\r")
    again.see(r"allow it\?")
    wrong = hookline("policy", "approvals", "--revoke", grant["id"])
    assert wrong.returncode == 2
    assert "no approval" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_question_in_a_chat_is_answered_from_another_terminal(terminal, place, hookline):
    chat = terminal()
    chat.type("put\r")
    chat.see(r"allow it\?")
    told = json.loads(hookline("policy", "approvals", "--json").stdout)
    [question] = told["pending"]
    done = hookline("policy", "approvals", "--answer", question["id"], "yes")
    assert done.returncode == 0, done.stderr
    chat.see("Put it there.")
    assert (place.workspace / "notes.txt").read_text() == "one\n2\nthree\n"


def test_a_headless_run_is_denied_and_told_how_to_allow(place, hookline):
    done = hookline("run", "put", "--model", place.model)
    assert "no one is here to approve it: write_file" in done.stderr
    assert "`hookline run --yes` approves" in done.stderr
    assert (place.workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert hookline("policy", "approvals").stdout.startswith("nothing waits")


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["file", "environment", "command line", "project"])
async def test_one_setting_closes_every_gate(tmp_path, monkeypatch, how):
    home, project = tmp_path / "home", tmp_path / "work" / ".hookline"
    home.mkdir()
    project.mkdir(parents=True)
    overrides = {}
    if how == "environment":
        monkeypatch.setenv("HOOKLINE_HOOKS__ON_GATE_ERROR", "deny")
    elif how == "command line":
        overrides = {"hooks": {"on_gate_error": "deny"}}
    else:
        place = home if how == "file" else project
        (place / "config.toml").write_text('[hooks]\non_gate_error = "deny"\n')
    app = Hookline(home=home, workspace=project.parent, overrides=overrides)
    app.load_hooks(packages=False)
    app.models.add(ScriptedModel(["Hello."]))
    app.model = "scripted"

    def broken(event):
        raise RuntimeError("broken")

    app.hooks.register("input", broken)
    async with app.running():
        result = await app.process({"content": "hello"})
    assert result.outcome == "blocked"


def test_a_project_cannot_open_what_the_user_closed(tmp_path):
    home, project = tmp_path / "home", tmp_path / "work" / ".hookline"
    home.mkdir()
    project.mkdir(parents=True)
    (home / "config.toml").write_text(
        '[hooks]\non_gate_error = "deny"\n[policy.approvals]\nseconds = 5\n'
    )
    (project / "config.toml").write_text(
        '[hooks]\non_gate_error = "allow"\n[policy.approvals]\nseconds = 50\n'
    )
    app = Hookline(home=home, workspace=project.parent)
    assert app.config.on_gate_error() == "deny"
    assert app.approvals.seconds == 5


def test_the_environment_and_the_command_line_set_the_default(tmp_path, monkeypatch):
    monkeypatch.setenv("HOOKLINE_POLICY__DEFAULT", "deny")
    assert Hookline(home=tmp_path, workspace=tmp_path).policy.default == "deny"
    said = {"policy": {"default": "ask"}}
    assert Hookline(home=tmp_path, workspace=tmp_path, overrides=said).policy.default == "ask"


def test_wrong_settings_are_named(place, hookline):
    (place.home / "config.toml").write_text(
        '[hooks]\non_gate_eror = "deny"\n[redaction]\ndetectors = ["keyz"]\n[audit]\npayload = true\n'
    )
    told = hookline("config", "show").stderr
    assert "hooks.on_gate_eror: unknown key 'on_gate_eror'; did you mean 'on_gate_error'" in told
    assert "redaction.detectors" in told
    assert "audit.payload: unknown key 'payload'; did you mean 'payloads'" in told


def test_the_hash_knows_no_order_of_arguments_and_nothing_else_is_the_same():
    one = call_hash("t", {"b": 1, "a": ["\ud800", {"x": None}]})
    assert one == call_hash("t", {"a": ["\ud800", {"x": None}], "b": 1})
    assert one != call_hash("t", {"a": ["\ud800", {"x": 0}], "b": 1})


PEOPLE = [
    {"user": "bo"}, {"user": ""}, {}, {"user": "Ada"}, {"user": "ada", "channel": "web"},
    {"participants": [{"user": "ada", "channel": "telegram"}, {"user": "bo", "channel": "telegram"}]},
    {"participants": [{"user": "bo", "channel": "telegram"}]},
]  # fmt: skip


@pytest.mark.parametrize("other", PEOPLE, ids=str)
@pytest.mark.parametrize("scope", ["session", "until"])
def test_a_grant_for_a_session_counts_for_the_person_whose_call_it_was(opened, scope, other):
    approvals = opened()
    ada = {"user": "ada", "channel": "telegram"}
    asked = approvals.ask(request(**ada))
    approvals.answer(asked, ApprovalAnswer(True, scope, 600 if scope == "until" else None), by="ada")
    assert approvals.allowed(request(**ada, call_id="c2")) is not None
    asking = {"user": "", "channel": "telegram", **other}
    assert approvals.allowed(request(**asking, call_id="c3")) is None
