"""Recorded calls before the gates of today: what changes; and never otherwise than the runner."""

import asyncio
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import Hookline
from hookline.events import ToolCallEventResult
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.observe.replay import BacktestReport, ReplayApp, Setup, WhatIf, backtest, replay
from hookline.observe.replay.parallel import backtest_parallel, shares
from hookline.observe.replay.traffic import StoredTraffic, opens
from hookline.policy import Policy
from hookline.runtime.user_tools import run_shell
from hookline.tape.postgres.reader import PostgresReader
from hookline.tape.sqlite.reader import SessionSize, TapeReader
from hookline.types import Identity

from .. import postgres
from .conftest import HERE, Tools, calling

pytestmark = pytest.mark.slow


@pytest.fixture
def judged(app, replaying):
    """Backtest what was recorded, with today's handlers."""

    async def run(hooks=(), *, packs=(), plugins=(), **options) -> BacktestReport:
        make = replaying.make(hooks, packs=packs, plugins=plugins)
        with TapeReader(app.home / "tape.db") as reader:
            return await backtest(make, reader, **options)

    return run


def deny(word):
    no = ToolCallEventResult(block=True, reason="not that word")
    return lambda e: no if e.input.get("word") == word else None


async def test_with_nothing_changed_no_decision_changes_and_no_tool_runs(record, judged, tools):
    await record("go", turns=[calling("one", "two"), calling("three"), "done"])
    report = await judged()
    assert (report.calls, report.sessions, report.changes) == (3, 1, {})
    assert tools.runs == []


async def test_a_new_rule_is_counted_and_shown(record, judged, tools):
    await record("go", turns=[calling("one", "two"), calling("two"), "done"])
    report = await judged([("tool_call", deny("two"))])
    assert report.kinds == {"allow → deny": 2}
    example = report.examples[0]
    assert (example.tool, example.session_id) == ("act", HERE)
    assert example.before["decision"] == "allow"
    assert example.after["reason"] == "not that word"
    assert (report.fails("new-deny"), report.fails("new-allow"), report.fails("any")) == (
        True, False, True,
    )  # fmt: skip
    assert tools.runs == []


async def test_a_call_that_was_denied_and_would_run_now_is_a_new_allow(app, record, judged, tools):
    app.hooks.register("tool_call", deny("one"))
    await record("go", turns=[calling("one", "two"), "done"])
    report = await judged()
    assert report.calls == 2
    assert report.kinds == {"deny → allow": 1}
    assert json.loads(report.examples[0].requested) == {"word": "one"}
    assert report.fails("new-allow")
    assert tools.runs == []


async def test_a_rewrite_is_a_change_of_its_own(record, judged):
    await record("go", turns=[calling("one"), "done"])
    report = await judged([("before_tool_call", lambda arguments: {"word": arguments["word"] * 2})])
    assert report.kinds == {"rewritten": 1}
    assert report.examples[0].after["arguments"] == {"word": "oneone"}
    assert report.fails("any")
    assert not report.fails("new-deny")


async def test_a_question_is_neither_allowed_nor_denied(app, record, judged):
    ask = ToolCallEventResult(ask=True, reason="really?")
    await record("go", turns=[calling("one"), "done"])
    report = await judged([("tool_call", lambda e: ask)])
    assert report.kinds == {"allow → ask": 1}
    assert report.examples[0].after["reason"] == "really?"


async def test_a_question_that_was_asked_then_is_no_change_whatever_was_answered(app, record, judged):
    ask = ToolCallEventResult(ask=True, reason="really?")
    answers = iter(["approve", "reject"])
    app.hooks.register("tool_call", lambda e: ask)
    app.hooks.register("resolve_approval", lambda request: next(answers))
    await record("go", turns=[calling("one", "two"), "done"])
    assert (await judged([("tool_call", lambda e: ask)])).changes == {}
    assert (await judged()).kinds == {"ask → allow": 2}


async def test_a_pack_is_tried_out(app, record, judged, tmp_path):
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "pack.toml").write_text('id = "mine"\nversion = "1.0.0"\n')
    rule = 'forbid (principal, action, resource) when { context.arguments.word == "two" };'
    (folder / "rules.cedar").write_text(f'@id("two")\n@reason("no twos")\n{rule}\n')
    await record("go", turns=[calling("one", "two"), "done"])
    report = await judged(packs=[folder])
    assert report.kinds == {"allow → deny": 1}
    assert report.examples[0].after["by"] == ["mine/two"]


async def test_a_budget_is_judged_by_what_was_spent_at_the_time(app, record, judged, tmp_path):
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "pack.toml").write_text('id = "mine"\nversion = "1.0.0"\n')
    rule = "forbid (principal, action, resource) when { context.spent.calls >= 2 };"
    (folder / "rules.cedar").write_text(f'@id("two")\n@reason("two are enough")\n{rule}\n')
    await record("go", turns=[calling("one"), calling("two"), calling("three"), "done"])
    report = await judged(packs=[folder])
    assert report.kinds == {"allow → deny": 1}
    assert json.loads(report.examples[0].requested) == {"word": "three"}


async def test_a_hook_that_answers_at_random_is_told_apart(record, judged):
    await record("go", turns=[calling("one"), "done"])
    no = ToolCallEventResult(block=True)
    turns = iter([no, None] * 10)
    report = await judged([("tool_call", lambda e: next(turns))])
    assert (report.random, report.changes) == (1, {})
    words = await judged([("before_tool_call", lambda arguments: {"word": str(random.random())})])
    assert (words.random, words.changes) == (1, {})


async def test_only_what_was_recorded_since_a_time_counts(app, record, judged):
    kept = await record("go", "again", turns=[calling("one"), "done", calling("two"), "done"])
    second = [e for e in kept if e.kind == "tool_call"][1]
    assert (await judged(since=second.time)).calls == 1
    assert (await judged(since=second.time + 1000)).calls == 0


async def test_what_replays_wrote_is_no_traffic(app, record, replaying, judged):
    await record("go", turns=[calling("one"), "done"])
    assert (await replaying(keep=True)).branch
    assert (await judged()).calls == 1


async def test_examples_are_bounded_and_counts_are_not(record, judged):
    await record("go", turns=[calling(*(str(n) for n in range(20))), "done"])
    no = ToolCallEventResult(block=True)
    report = await judged([("tool_call", lambda e: no)])
    assert sum(report.changes.values()) == 20
    assert len(report.examples) == 5


async def test_a_store_that_is_no_file_is_read_as_well(app, record, replaying):
    app.hooks.register("tool_call", deny("one"))
    await record("go", turns=[calling("one", "two"), "done"])
    async with app.running():
        source = await StoredTraffic.read(app.store(), 0.0, None)
    report = await backtest(replaying.make(), source)
    assert (report.calls, report.kinds) == (2, {"deny → allow": 1})


async def test_ids_that_a_model_uses_again_are_not_mixed_up(app, record, judged):
    def one(word):
        return Turn(tool_calls=[Call("act", {"word": word}, id="call_0")])

    app.hooks.register("tool_call", lambda e: ToolCallEventResult(block=True))
    await record("go", "again", turns=[one("one"), "done", one("two"), "done"])
    report = await judged()
    asked = [json.loads(change.requested)["word"] for change in report.examples]
    assert asked == ["one", "two"]


# --- never otherwise than the runner ---

WORDS = st.sampled_from(["one", "two", "three", ""])
ARGUMENTS = st.one_of(
    st.builds(lambda word: {"word": word}, WORDS),
    st.just({}),
    st.just({"word": 1}),
    st.just({"other": "x"}),
)
HOOKS = st.lists(
    st.tuples(
        st.sampled_from(["deny", "ask", "rewrite", "before", "authorize", "nothing", "fail"]), WORDS
    ),
    max_size=4,
)


def handler(kind, word):
    """A handler as it is drawn: what it does where the word is this one."""
    results = {
        "deny": ToolCallEventResult(block=True, reason="no"),
        "ask": ToolCallEventResult(ask=True, reason="really?"),
        "rewrite": ToolCallEventResult(input={"word": "one"}),
    }
    if kind in results:
        return "tool_call", lambda e: results[kind] if e.input.get("word") == word else None
    if kind == "before":
        return (
            "before_tool_call",
            lambda arguments: {"word": "two"} if arguments.get("word") == word else None,
        )
    if kind == "authorize":
        return (
            "authorize_action",
            lambda action: False if action["arguments"].get("word") == word else None,
        )
    if kind == "fail":
        return "tool_call", lambda e: 1 / 0, {"guard": True}
    return "tool_call", lambda e: None


@settings(max_examples=12)
@given(calls=st.lists(ARGUMENTS, min_size=1, max_size=6), before=HOOKS, after=HOOKS)
async def test_the_decision_is_the_one_that_the_runner_makes(tmp_path_factory, calls, before, after):
    """Record under some hooks; what a backtest under others says is what a run under those does."""

    async def recorded(folder, hooks):
        app = Hookline(
            home=folder / "home", workspace=folder, policy=Policy(default="allow"), project=False
        )
        app.load_hooks(packages=False)
        app.user_home = folder
        attach(app, hooks)
        app.hooks.register("resolve_approval", lambda request: "approve")
        turn = Turn(tool_calls=[Call("act", given) for given in calls])
        app.models.add(ScriptedModel([turn, "done"]))
        app.model = "scripted"
        async with app.running():
            await app.process({"content": "go"})
        return app

    def attach(app, hooks):
        for one in Tools().all:
            app.tools.add(one)
        for kind, word in hooks:
            name, function, *options = handler(kind, word)
            app.hooks.register(name, function, **(options[0] if options else {}))

    then = await recorded(tmp_path_factory.mktemp("then"), before)
    now = await recorded(tmp_path_factory.mktemp("now"), after)

    def make():
        made = Setup.like(then)()
        attach(made, after)
        return made

    with TapeReader(then.home / "tape.db") as reader:
        said = await backtest(make, reader)
    with TapeReader(now.home / "tape.db") as reader:
        same = await backtest(make, reader)
    assert said.calls == same.calls == len(calls)
    assert same.changes == {}
    assert sum(said.changes.values()) == differing(then, now)


def differing(then: Hookline, now: Hookline) -> int:
    """On how many calls two recorded runs do not agree."""
    from hookline.observe.replay.backtest import WORDS
    from hookline.observe.replay.traffic import RecordedCall, traffic

    def decisions(app):
        with TapeReader(app.home / "tape.db") as reader:
            rows = [row for row in traffic(reader, HERE) if isinstance(row, RecordedCall)]
        return {row.id: (WORDS[row.decided], row.arguments) for row in rows}

    first, second = decisions(then), decisions(now)
    assert first.keys() == second.keys()
    return sum(
        first[i][0] != second[i][0]
        or (None not in (first[i][1], second[i][1]) and first[i][1] != second[i][1])
        for i in first
    )


# --- over several processes, and told ---


def test_sessions_are_shared_out_evenly_and_stay_whole():
    sizes = [SessionSize(str(n), n, 0.0) for n in (5, 1, 4, 2, 3)]
    parts = shares(sizes, 2)
    assert sorted(name for part in parts for name in part) == ["1", "2", "3", "4", "5"]
    assert [sum(map(int, part)) for part in parts] in ([8, 7], [7, 8])
    assert shares(sizes[:1], 4) == [["5"]]


RULE = """
from hookline.events import ToolCallEvent, ToolCallEventResult

def judge(event):
    if "secret" in str(event.input.get("path", "")):
        return ToolCallEventResult(block=True, reason="<script>alert(1)</script>")

hooks = [(ToolCallEvent, judge)]
"""


@pytest.fixture
def rule(tmp_path):
    path = tmp_path / "rule.py"
    path.write_text(RULE)
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def kept(request, app):
    """An app whose tape is in a file, or in a database."""
    if request.param == "sqlite":
        yield app
        return
    import tomlkit

    schema = postgres.new_schema()
    app.home.mkdir(exist_ok=True)
    settings = {"tape": {"url": postgres.url(), "schema": schema}}
    (app.home / "config.toml").write_text(tomlkit.dumps(settings))
    app.config.reload()
    yield app
    postgres.drop(schema)


@pytest.fixture
def six(kept, scripted):
    """Six sessions in each of which a secret is read, one of them refused; how they are opened."""

    async def record():
        (kept.workspace / "secret.txt").write_text("hush")
        read = Turn(tool_calls=[Call("read_file", {"path": "secret.txt"})])
        scripted(read, "done", repeat=True)
        no = ToolCallEventResult(block=True, reason="not in this one")
        refuse = kept.hooks.register("tool_call", lambda e, ctx: no if ctx.session_id == "s0" else None)
        async with kept.running():
            for number in range(6):
                await kept.process({"content": "go"}, session_id=f"s{number}")
            opened, stored = opens(kept.store()), await StoredTraffic.read(kept.store(), 0.0, None)
        refuse()
        return opened, stored

    return record


async def test_several_processes_find_what_one_finds(kept, six, rule):
    opened, _ = await six()
    kept.given_policy = None
    setup = Setup(Setup.like(kept, plugins=[rule]).options, packages=False)
    with opened() as source:
        sessions = source.sessions()
    heard = []

    def run(jobs):
        return backtest_parallel(setup, opened, sessions, jobs=jobs, tell=heard.append)

    alone, together = await asyncio.to_thread(run, 1), await asyncio.to_thread(run, 2)
    assert alone.calls == together.calls == 6
    assert alone.kinds == together.kinds == {"allow → deny": 5}
    assert sum(heard) == 12


async def test_rows_are_the_same_from_wherever_they_are_read(six):
    opened, stored = await six()
    with opened() as source:
        found = {size.id: size for size in source.sessions()}
        assert sorted(found) == [f"s{number}" for number in range(6)]
        assert source.sessions(since=found["s5"].updated + 1) == []
        for name in [*found, "unknown", "nul \0"]:
            for usage in (False, True):
                rows = list(source.calls(name, usage=usage))
                assert rows == list(stored.calls(name, usage=usage))
            wanted = [(entry, said) for entry, said in stored.asked(name) if "tool_calls" in said]
            assert list(source.asked(name)) == wanted


def test_a_database_that_is_gone_is_told_without_its_password():
    from hookline.tape import TapeUnavailable

    with pytest.raises(TapeUnavailable) as raised:
        PostgresReader("postgresql://ada:hush@127.0.0.1:1/x", "hookline")
    assert "cannot read the tape: postgresql://ada@127.0.0.1:1/x" in str(raised.value)
    assert "hush" not in str(raised.value)


async def test_a_page_holds_hostile_text_as_text(app, record, judged):
    await record("go", turns=[calling("</pre><img src=x onerror=alert(1)>"), "done"])
    no = ToolCallEventResult(block=True, reason="<script>alert(1)</script>")
    document = (await judged([("tool_call", lambda e: no)])).document()
    page = document.page()
    assert "default-src" not in document.fragment()  # a notebook has a policy of its own
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert "prefers-color-scheme: dark" in page


async def test_a_report_is_data(record, judged):
    await record("go", turns=[calling("one"), "done"])
    report = await judged([("tool_call", deny("one"))])
    data = json.loads(json.dumps(report.data()))
    assert data["kinds"] == {"allow → deny": 1}
    assert data["changes"][0]["tool"] == "act"
    assert data["cost"]["p95_us"] >= data["cost"]["p50_us"] > 0


async def test_a_damaged_entry_is_named(app, record, judged):
    import sqlite3
    from contextlib import closing

    from hookline.tape import TapeError

    await record("go", turns=[calling("one"), "done"])
    with closing(sqlite3.connect(app.home / "tape.db")) as db, db:
        db.execute("UPDATE entries SET payload = '{' WHERE kind = 'tool_call'")
    with pytest.raises(TapeError, match="is not JSON"):
        await judged()


# --- what a person ran in the chat ------------------------------------------------------------------

ADA = Identity("ada", "terminal", "local")


def for_ada_alone(event, ctx):
    """A rule that looks at the command and at who asks."""
    if "push" in str(event.input) or ctx.identity.user != "ada":
        return ToolCallEventResult(block=True, reason="not that")
    return None


@pytest.mark.parametrize("default", ["auto", "allow", "ask"])
@pytest.mark.parametrize("sandbox", [{"enabled": False}, {"required": True}, {"auto_approve": True}])
async def test_commands_that_a_person_ran_in_the_chat_are_judged_as_they_were(
    tmp_path, default, sandbox
):
    settings = {"policy": {"default": default}, "sandbox": sandbox}
    (tmp_path / "work").mkdir()
    app = Hookline(home=tmp_path / "home", workspace=tmp_path / "work", overrides=settings)
    app.load_hooks(packages=False)
    shell = [Call("shell", given, f"c{n}") for n, given in enumerate(
        [{"command": "echo one"}, {"command": "git push"}, {"command": "echo", "outside_sandbox": True}]
    )]  # fmt: skip
    app.models.add(ScriptedModel([Turn(tool_calls=shell), "done"]))
    app.model = "scripted"
    app.hooks.register("tool_call", for_ada_alone)
    app.hooks.register("resolve_approval", lambda request: "approve")

    def make():
        fresh = ReplayApp.like(app)
        fresh.load_hooks(packages=False)
        fresh.hooks.register("tool_call", for_ada_alone)
        return fresh

    async with app.running():
        for command in ("echo two", "git push"):  # the second one is denied
            await run_shell(app, "terminal:local", command, identity=ADA)
        message = {"content": "go", "channel": "terminal", "chat_id": "local", "sender_id": "ada"}
        await app.process(message)
        await run_shell(app, "terminal:local", "echo three", identity=ADA)
        replayed = await replay(app.store(), "terminal:local", make, WhatIf())
    with TapeReader(app.home / "tape.db") as reader:
        report = await backtest(make, reader)
    assert (report.calls, report.changes) == (6, {})
    assert (replayed.same, replayed.notes) == (True, [])
