"""Approvals that several machines share: beside the tape in PostgreSQL; denied when that is away."""

import asyncio
import json
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from hookline.errors import ApprovalError
from hookline.hooks import Decision
from hookline.policy import Policy
from hookline.policy.answers import ApprovalAnswer
from hookline.policy.approvals import Approvals
from hookline.policy.postgres_approvals import PostgresApprovals
from hookline.runtime.app import Hookline
from hookline.tape.postgres.store import PostgresStore
from hookline.tape.settings import TapeSettings

from .. import postgres
from ..cli.test_chat import Terminal, environment
from ..proxy import through
from .test_approvals import SCRIPT, at_once, request


@pytest.fixture
def schema():
    name = postgres.new_schema()
    yield name
    postgres.drop(name)


@pytest.fixture
def shared(schema, tmp_path):
    """Opens the approvals in the database."""
    made = []

    def open_(url=None, home="team", told=None):
        settings = TapeSettings(url=url or postgres.url(), schema=schema, home=home)
        made.append(Approvals(PostgresApprovals(settings, tmp_path), told=told))
        return made[-1]

    yield open_
    for each in made:
        each.close()


def configure(home, schema, url=None, **more):
    home.mkdir(parents=True, exist_ok=True)
    said = {"url": url or postgres.url(), "schema": schema, "home": "team", **more}
    lines = [f"{name} = {json.dumps(value)}" for name, value in said.items()]
    (home / "config.toml").write_text("\n".join(["[tape]", *lines, ""]))


# --- the tables -----------------------------------------------------------------------------------


def test_tables_of_a_newer_version_are_refused_and_left_alone(shared, schema):
    shared().ask(request())
    postgres.execute(f"UPDATE {schema}.versions SET version = 9 WHERE part = 'approvals'")
    with pytest.raises(ApprovalError, match="has version 9, and this Hookline knows versions up to 1"):
        shared().allowed(request())


async def test_the_tape_and_the_approvals_share_a_schema_whoever_comes_first(shared, schema):
    await asyncio.to_thread(shared().ask, request())
    store = await PostgresStore.open(postgres.url(), schema=schema, home="team")
    assert await store.sessions() == []
    await store.close()
    assert len(shared().pending()) == 1


def test_another_home_sees_and_answers_nothing(shared):
    question = shared().ask(request())
    stranger = shared(home="others")
    for action in (stranger.pending, lambda: stranger.answer(question, "yes")):
        with pytest.raises(ApprovalError, match="keeps the tapes of another home"):
            action()
    assert len(shared().pending()) == 1


async def test_another_home_makes_no_tables(shared, schema):
    await (await PostgresStore.open(postgres.url(), schema=schema, home="team")).close()
    with pytest.raises(ApprovalError, match="keeps the tapes of another home"):
        shared(home="others").ask(request())
    assert postgres.fetch(f"SELECT part FROM {schema}.versions") == [("tape",)]


def test_processes_that_begin_at_once_make_the_tables_once(shared):
    assert at_once(*(shared().pending for _ in range(4))) == [[], [], [], []]


def test_a_machine_with_a_wrong_clock_sees_what_waits_and_ends_nothing_early(shared, monkeypatch):
    question = shared().ask(request())
    for wrong in (3600, -3600):
        off = time.time() + wrong  # no other clock can be had here
        monkeypatch.setattr("hookline.policy.postgres_approvals.time", lambda off=off: off)
        assert [one.id for one in shared().pending()] == [question]
    grant = shared().answer(question, "10 minutes")
    monkeypatch.undo()
    assert abs(grant.until - time.time() - 600) < 60


async def test_each_look_of_who_waits_is_one_statement(shared, schema, tmp_path):
    class Counted(PostgresApprovals):
        said = []

        def read(self, statement, values=()):
            self.said.append(statement)
            return super().read(statement, values)

    settings = TapeSettings(url=postgres.url(), schema=schema, home="team")
    waiting = Approvals(Counted(settings, tmp_path))
    question = shared().ask(request())
    shared().answer(question, "session")
    assert await waiting.wait(question) == ApprovalAnswer(True, "session")
    assert len(Counted.said) == 1
    waiting.close()


async def test_the_connection_ends_with_the_app(app, schema):
    configure(app.home, schema)
    app.config.reload()
    open_now = f"SELECT FROM pg_stat_activity WHERE state = 'idle' AND query LIKE '%{schema}%approval%'"
    async with app.running():
        assert app.approvals.pending() == []
        assert len(postgres.fetch(open_now)) == 1
    while postgres.fetch(open_now):  # the server takes a moment to notice
        await asyncio.sleep(0.01)
    assert app.approvals.list() == []
    app.approvals.close()


# --- a database that goes away --------------------------------------------------------------------


async def test_a_lost_connection_is_replaced(shared, proxy):
    approvals = shared(through(proxy))
    question = await asyncio.to_thread(approvals.ask, request())
    proxy.cut()
    assert len(await asyncio.to_thread(approvals.pending)) == 1
    proxy.cut()
    await asyncio.to_thread(approvals.answer, question, "yes")
    proxy.cut()
    assert await asyncio.to_thread(approvals.allowed, request()) is not None
    assert await asyncio.to_thread(approvals.allowed, request()) is None


async def test_a_change_that_is_cut_off_is_not_made(shared, proxy):
    loop = asyncio.get_running_loop()

    def cut(what, grant):
        asyncio.run_coroutine_threadsafe(cut_now(), loop).result()

    async def cut_now():
        proxy.cut()

    approvals = shared(through(proxy), told=cut)
    question = await asyncio.to_thread(approvals.ask, request())
    with pytest.raises(ApprovalError, match="cannot use the approvals"):
        await asyncio.to_thread(approvals.answer, question, "session")
    assert await asyncio.to_thread(approvals.list) == []
    assert len(await asyncio.to_thread(approvals.pending)) == 1


@pytest.fixture
def away(app, proxy, schema):
    """An app whose approvals are behind the proxy; takes the database away."""
    configure(app.home, schema, through(proxy), timeout=1.0, statement_timeout=1.0)
    app.config.reload()

    def leave():
        proxy.refusing = True
        proxy.cut()

    yield leave
    app.approvals.close()


@pytest.mark.parametrize("when", ["before", "while it waits"])
async def test_a_database_that_is_away_denies_and_says_where(app, call, counted, proxy, away, when):
    async def answer(request):
        away()
        await asyncio.Event().wait()

    app.hooks.register("resolve_approval", answer)
    if when == "before":
        away()
    outcome, rulings = await call("put", Policy(), path="a")
    assert "needs approval, which cannot be given" in outcome.content
    assert f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres cannot be reached" in outcome.content
    assert "hunter2" not in outcome.content
    assert rulings[-1].decision is Decision.DENY
    assert counted.runs == []


async def test_what_was_granted_counts_only_while_the_database_says_so(app, call, counted, proxy, away):
    def answer(request):
        app.approvals.answer(request["id"], "session", by="ada")
        return "approve"

    app.hooks.register("resolve_approval", lambda request: asyncio.to_thread(answer, request))
    await call("put", Policy(), path="a")
    away()
    outcome, _ = await call("put", Policy(), path="a")
    assert "needs approval, which cannot be given" in outcome.content
    proxy.refusing = False
    await call("put", Policy(), path="a")
    assert counted.runs == ["a", "a"]


async def test_a_database_that_says_nothing_denies(app, call, counted, proxy, away):
    app.hooks.register("resolve_approval", lambda request: "approve")
    await call("put", Policy(), path="a")
    proxy.backward.clear()
    outcome, _ = await call("put", Policy(), path="b")
    assert "needs approval, which cannot be given" in outcome.content
    assert counted.runs == ["a"]


async def test_a_call_that_is_cancelled_while_the_database_is_away_is_cancelled(
    app, call, counted, away
):
    asked = asyncio.Event()

    async def never(request):
        asked.set()
        await asyncio.Event().wait()

    app.hooks.register("resolve_approval", never)
    running = asyncio.create_task(call("put", Policy(), path="a"))
    await asked.wait()
    away()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert counted.runs == []


# --- several machines -----------------------------------------------------------------------------


@pytest.fixture
def machines(tmp_path, schema):
    """Homes of several machines, which have the same project."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "script.py").write_text(SCRIPT)

    def machine(name):
        configure(tmp_path / name, schema)
        model = f"scripted:{tmp_path / 'script.py'}"
        return SimpleNamespace(workspace=workspace, home=tmp_path / name, model=model, app="")

    return [machine("one"), machine("other")]


def started(machine, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "hookline", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, text=True, env=environment(machine), cwd=machine.workspace,
    )  # fmt: skip


def hookline(machine, *arguments):
    process = started(machine, *arguments)
    out, told = process.communicate()
    assert "Traceback" not in told
    return SimpleNamespace(returncode=process.returncode, stdout=out, stderr=told)


def test_a_question_of_one_machine_is_answered_on_another_and_the_grant_holds_on_both(machines):
    one, other = machines
    notes = one.workspace / "notes.txt"
    chat = Terminal(one)
    try:
        chat.see_prompt()
        chat.type("put\r")
        chat.see(r"allow it\?")
        [question] = json.loads(hookline(other, "policy", "approvals", "--json").stdout)["pending"]
        done = hookline(other, "policy", "approvals", "--answer", question["id"], "session")
        assert (done.returncode, done.stderr) == (0, "")
        chat.see("Put it there.")
        chat.see_prompt()
        chat.type("\x04")
        assert chat.end() == 0
    finally:
        chat.child.close(force=True)
    assert notes.read_text() == "one\n2\nthree\n"
    notes.unlink()
    said = ("run", "put", "--session", question["request"]["session_id"], "--model", other.model)
    ran = hookline(other, *said)
    assert ran.returncode == 0, ran.stderr
    assert notes.read_text() == "one\n2\nthree\n"
    [grant] = json.loads(hookline(one, "policy", "approvals", "--json").stdout)["granted"]
    assert hookline(one, "policy", "approvals", "--revoke", grant["id"]).returncode == 0
    notes.unlink()
    assert "no one is here to approve it" in hookline(other, *said).stderr
    assert not notes.exists()
    assert not any((machine.home / "approvals.db").exists() for machine in machines)


def test_of_two_processes_that_answer_at_once_one_is_heard(machines, shared):
    question = shared().ask(request())
    said = ("policy", "approvals", "--answer", question, "session")
    both = [started(machine, *said) for machine in machines]
    told = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2]
    assert "was answered already" in "".join(told)
    assert len(shared().list()) == 1


def test_a_command_without_its_database_says_so_in_one_line(machines, schema):
    url = "postgresql://ada:hunter2@127.0.0.1:1/hookline"
    configure(machines[0].home, schema, url, timeout=0.1)
    done = hookline(machines[0], "policy", "approvals")
    assert done.returncode != 0
    assert "postgresql://ada@127.0.0.1:1/hookline cannot be reached" in done.stderr
    assert "hunter2" not in done.stderr


def test_the_app_opens_no_database_before_it_is_asked(tmp_path, schema):
    configure(tmp_path / "home", schema, "postgresql://ada@127.0.0.1:1/hookline")
    app = Hookline(home=tmp_path / "home", workspace=tmp_path)
    assert isinstance(app.approvals.storage, PostgresApprovals)
    code = (
        "import sys, hookline.runtime.safeguards, hookline.policy.approval_flow; "
        "print('psycopg' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
