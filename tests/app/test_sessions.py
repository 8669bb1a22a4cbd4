"""Sessions: opened, left, forked, navigated, compacted; each gate, veto and override."""

import asyncio

import pytest

from hookline.agent.compactor import Compacting
from hookline.agent.run import Limits
from hookline.errors import BadSetting, Blocked, SessionBusy, UnknownSession
from hookline.events import (
    CompactionResult,
    SessionBeforeCompactResult,
    SessionBeforeForkResult,
    SessionBeforeSwitchResult,
    SessionBeforeTreeResult,
)
from hookline.hooks import HooklineError
from hookline.models import UnknownModel
from hookline.models.script import Turn
from hookline.tape import UnknownEntry

HERE = "default:default"


async def say(app, text="hello", **fields):
    return await app.process({"content": text, **fields})


def record(app, *names):
    seen = []
    for name in names:
        app.hooks.register(name, lambda e, ctx, _n=name: seen.append((_n, ctx.session_id, e)))
    return seen


async def kept(app, session_id):
    return [(e.id, e.payload, e.meta) for e in await app.store().entries(session_id)]


async def messages_of(app, session_id):
    tape = await app.tape(session_id)
    found = app.build_tape_context().messages(await tape.context_entries())
    return [m["content"] for m in found]


class TestGoingElsewhere:
    async def test_a_new_session_leaves_the_old_one_and_says_why(self, app, scripted):
        scripted("one", "two")
        seen = record(app, "session_start", "session_shutdown", "session_before_switch")
        async with app.running():
            await say(app)
            fresh = await app.sessions.new(HERE)
            await say(app, session_id=fresh)
            assert [(name, where, e.reason) for name, where, e in seen] == [
                ("session_start", HERE, "startup"),
                ("session_before_switch", HERE, "new"),
                ("session_shutdown", HERE, "new"),
                ("session_start", fresh, "new"),
            ]
            assert seen[3][2].previous_session_file == HERE
            assert seen[1][2].target_session_file == seen[2][2].target_session_file == fresh
            assert await messages_of(app, fresh) == ["hello", "one"]  # nothing of the old one

    async def test_switching_goes_on_with_another_session(self, app, scripted):
        scripted("one", "two", "three")
        async with app.running():
            await say(app)
            await say(app, "elsewhere", session_id="other")
            seen = record(app, "session_start", "session_shutdown")
            await app.sessions.switch(HERE, leaving="other")
        assert [(n, where, e.reason) for n, where, e in seen][:1] == [
            ("session_shutdown", "other", "resume")
        ]

    async def test_a_resumed_session_starts_with_that_reason(self, app, scripted):
        scripted("one", "two")
        async with app.running():
            await say(app)
        seen = record(app, "session_start")
        async with app.running():
            await say(app, session_id="other")
            await app.sessions.switch(HERE, leaving="other")
        assert [(where, e.reason) for _, where, e in seen] == [("other", "startup"), (HERE, "resume")]

    async def test_a_veto_leaves_everything_as_it_was(self, app, scripted):
        scripted("one", "two", "three")
        veto = app.hooks.register(
            "session_before_switch", lambda e: SessionBeforeSwitchResult(cancel=True)
        )
        async with app.running():
            await say(app)
            await say(app, session_id="other")
            before = await kept(app, HERE), await kept(app, "other")
            seen = record(app, "session_start", "session_shutdown")
            for going in (app.sessions.new(HERE), app.sessions.switch("other", leaving=HERE)):
                with pytest.raises(Blocked, match="leaving the session was blocked"):
                    await going
            assert seen == []
            assert (await kept(app, HERE), await kept(app, "other")) == before
            assert len(await app.sessions.list()) == 2
            veto()
            await app.sessions.switch("other", leaving=HERE)

    async def test_an_unknown_session_is_refused(self, app, scripted):
        scripted("one")
        async with app.running():
            await say(app)
            with pytest.raises(UnknownSession, match="no session 'nowhere'"):
                await app.sessions.switch("nowhere", leaving=HERE)
            with pytest.raises(HooklineError, match="the present one"):
                await app.sessions.switch(HERE, leaving=HERE)
            assert await app.sessions.latest() == HERE

    async def test_a_busy_session_cannot_be_left_forked_navigated_or_compacted(self, app, scripted):
        scripted("one", Turn("slow", delay=5), "three")
        async with app.running():
            await say(app)
            leaf = (await app.tape(HERE)).leaf
            begun = asyncio.Event()
            app.hooks.register("turn_start", lambda e: begun.set())
            turn = asyncio.create_task(say(app))
            await begun.wait()
            for refused in (
                app.sessions.new(HERE),
                app.sessions.fork(HERE),
                app.sessions.navigate(HERE, leaf.id),
                app.sessions.compact(HERE),
            ):
                with pytest.raises(SessionBusy, match="in the middle of a turn"):
                    await refused
            assert await app.cancel(HERE)
            assert (await turn).outcome == "cancelled"


class TestForking:
    async def test_a_fork_shares_what_came_before_an_entry_and_goes_its_own_way(self, app, scripted):
        model = scripted("one", "two", "three")
        seen = record(app, "session_start", "session_shutdown", "session_before_fork")
        async with app.running():
            await say(app, "a")
            await say(app, "b")
            asked = [
                e for e in await app.store().entries(HERE)
                if e.payload.get("message", {}).get("content") == "b"
            ]  # fmt: skip
            fork = await app.sessions.fork(HERE, asked[0].id, "before")
            await say(app, "c", session_id=fork)
            assert [m["content"] for m in model.requests[2].messages] == ["a", "one", "c"]
            assert await messages_of(app, HERE) == ["a", "one", "b", "two"]
        assert [(n, e.reason) for n, _, e in seen if n != "session_before_fork"][:3] == [
            ("session_start", "startup"), ("session_shutdown", "fork"), ("session_start", "fork"),
        ]  # fmt: skip
        before = next(e for n, _, e in seen if n == "session_before_fork")
        assert (before.entry_id, before.position) == (asked[0].id, "before")

    async def test_a_vetoed_fork_makes_nothing(self, app, scripted):
        scripted("one")
        app.hooks.register("session_before_fork", lambda e: SessionBeforeForkResult(cancel=True))
        async with app.running():
            await say(app)
            before = await kept(app, HERE)
            seen = record(app, "session_start", "session_shutdown")
            with pytest.raises(Blocked, match="the fork was blocked"):
                await app.sessions.fork(HERE)
            assert (seen, await kept(app, HERE)) == ([], before)
            assert [info.id for info in await app.sessions.list()] == [HERE]

    async def test_an_unknown_entry_is_refused_before_anybody_is_asked(self, app, scripted):
        scripted("one")
        seen = record(app, "session_before_fork", "session_before_tree")
        async with app.running():
            await say(app)
            with pytest.raises(UnknownEntry):
                await app.sessions.fork(HERE, "nonsense")
            with pytest.raises(UnknownEntry):
                await app.sessions.navigate(HERE, "nonsense")
        assert seen == []


class TestTheTree:
    async def first(self, app):
        entries = await app.store().entries(HERE, kinds=["message"])
        return next(e for e in entries if e.payload["message"]["content"] == "one").id

    async def test_going_back_leaves_a_branch_and_tells_of_it(self, app, scripted):
        model = scripted("one", "two", "Tried b.", "three")
        seen = record(app, "session_before_tree", "session_tree")
        async with app.running():
            await say(app, "a")
            await say(app, "b")
            old = (await app.tape(HERE)).leaf
            target = await self.first(app)
            entry = await app.sessions.navigate(HERE, target, summarise=True, label="start")
            await say(app, "c")
            assert await (await app.tape(HERE)).labels() == {"start": target}
        (_, _, before), (_, _, after) = seen
        assert before.preparation.target_id == target
        assert [e.payload["message"]["content"] for e in before.preparation.left_behind
                if e.kind == "message"] == ["b", "two"]  # fmt: skip
        assert (after.new_leaf_id, after.old_leaf_id, after.summary_entry) == (target, old.id, entry)
        said = [m["content"] for m in model.requests[3].messages]
        assert said[:2] == ["a", "one"]
        assert "Tried b." in said[2]
        assert said[-1] == "c"

    async def test_handlers_supply_summary_instructions_and_label(self, app, scripted):
        model = scripted("one", "two", "three")
        result = SessionBeforeTreeResult(summary="nothing of note", label="mine")
        off = app.hooks.register("session_before_tree", lambda e: result)
        async with app.running():
            await say(app, "a")
            await say(app, "b")
            target = await self.first(app)
            await app.sessions.navigate(HERE, target, summarise=True)
            assert len(model.requests) == 2  # nobody was asked for a summary
            assert await (await app.tape(HERE)).labels() == {"mine": target}
            off()
            app.hooks.register(
                "session_before_tree", lambda e: SessionBeforeTreeResult(custom_instructions="in Latin")
            )
            await app.sessions.navigate(HERE, target, summarise=True)
        assert "in Latin" in model.requests[2].messages[0]["content"]

    async def test_a_vetoed_navigation_leaves_the_leaf_where_it_was(self, app, scripted):
        scripted("one", "two")
        app.hooks.register("session_before_tree", lambda e: SessionBeforeTreeResult(cancel=True))
        seen = record(app, "session_tree")
        async with app.running():
            await say(app, "a")
            await say(app, "b")
            before = await kept(app, HERE)
            with pytest.raises(Blocked, match="the navigation was blocked"):
                await app.sessions.navigate(HERE, await self.first(app), summarise=True)
            assert (seen, await kept(app, HERE)) == ([], before)


class TestCompaction:
    @pytest.fixture
    def long(self, app):
        app.limits = Limits(compacting=Compacting(keep=10))
        return app

    async def test_on_demand_a_summary_takes_the_place_of_the_older_part(self, long, scripted):
        model = scripted("one " * 50, "two " * 50, "A summary.", "four")
        seen = record(long, "session_before_compact", "session_compact")
        async with long.running():
            await say(long, "a")
            await say(long, "b")
            before = await kept(long, HERE)
            entry = await long.sessions.compact(HERE, "keep the names")
            assert (await kept(long, HERE))[: len(before)] == before  # nothing is deleted
            await say(long, "c")
        assert entry.payload["summary"] == "A summary."
        assert "keep the names" in model.requests[2].messages[0]["content"]
        assert "A summary." in model.requests[3].messages[0]["content"]
        (_, _, event), (_, _, after) = seen
        assert event.custom_instructions == "keep the names"
        assert after.compaction_entry == entry
        assert after.from_extension is False

    async def test_a_handler_supplies_the_result_and_no_model_is_called(self, long, scripted):
        model = scripted("one " * 50, "two")

        def supply(event):
            kept = event.preparation.first_kept_entry_id
            return SessionBeforeCompactResult(compaction=CompactionResult("Mine.", kept))

        long.hooks.register("session_before_compact", supply)
        seen = record(long, "session_compact")
        async with long.running():
            await say(long, "a")
            await say(long, "b")
            entry = await long.sessions.compact(HERE)
        assert (entry.payload["summary"], len(model.requests)) == ("Mine.", 2)
        assert seen[0][2].from_extension is True

    async def test_a_cancelled_compaction_changes_nothing(self, long, scripted):
        model = scripted("one " * 50, "two")
        long.hooks.register("session_before_compact", lambda e: SessionBeforeCompactResult(cancel=True))
        seen = record(long, "session_compact")
        async with long.running():
            await say(long, "a")
            await say(long, "b")
            before = await kept(long, HERE)
            with pytest.raises(Blocked, match="compaction was blocked"):
                await long.sessions.compact(HERE)
            assert (seen, len(model.requests)) == ([], 2)
            assert await kept(long, HERE) == before

    async def test_a_supplied_compaction_that_does_not_fit_is_refused_and_nothing_changes(
        self, long, scripted
    ):
        scripted("one " * 50, "two")
        long.hooks.register(
            "session_before_compact",
            lambda e: SessionBeforeCompactResult(compaction=CompactionResult("x", "nonsense")),
        )
        async with long.running():
            await say(long, "a")
            await say(long, "b")
            before = await kept(long, HERE)
            with pytest.raises(HooklineError, match="no entry of the context"):
                await long.sessions.compact(HERE)
            assert await kept(long, HERE) == before

    async def test_it_comes_by_itself_near_the_models_limit(self, app, scripted):
        app.limits = Limits(compacting=Compacting(window=400))
        model = scripted("word " * 200, "word " * 100, "A summary.", "three")
        phases = []
        app.hooks.register(
            "session_before_compact", lambda e, ctx: phases.append(app.sessions.queue(HERE).phase)
        )
        async with app.running():
            await say(app, "a")
            await say(app, "b")
            result = await say(app, "c")
            assert app.sessions.queue(HERE).phase == "idle"
        assert result.model_output == "three"
        assert phases == ["compaction"]
        assert "A summary." in model.requests[3].messages[0]["content"]

    async def test_a_handoff_starts_the_context_anew(self, app, scripted):
        model = scripted("one", "two")
        async with app.running():
            await say(app, "a")
            await app.sessions.handoff(HERE, "phase two", summary="We greeted.", state={"file": "x.py"})
            await say(app, "b")
        said = [m["content"] for m in model.requests[1].messages]
        assert len(said) == 2
        assert "We greeted." in said[0]
        assert "x.py" in said[0]


class TestModels:
    async def test_a_session_keeps_its_model_over_a_restart_and_in_a_fork(self, app, scripted):
        scripted("one", "two", name="first")
        other = scripted("three", "four", name="second")
        app.model = "first"
        seen = record(app, "model_select")
        async with app.running():
            await say(app)
            await app.sessions.choose_model(HERE, "second")
            assert (await say(app)).model_output == "three"
            assert (await say(app, session_id="elsewhere")).model_output == "one"
        async with app.running():
            assert (await say(app)).model_output == "four"
            fork = await app.sessions.fork(HERE)
            assert (await say(app, session_id=fork)).model_output == "three"
        ((_, _, event),) = seen
        assert (event.model, event.previous_model, event.source) == (
            "second", "first", "user",
        )  # fmt: skip
        assert len(other.requests) == 3

    async def test_the_thinking_level_survives_a_restart(self, app, scripted):
        model = scripted("one", "two")
        seen = record(app, "thinking_level_select")
        async with app.running():
            await app.sessions.choose_thinking(HERE, "high")
            await say(app)
        async with app.running():
            await say(app)
        assert [request.thinking for request in model.requests] == ["high", "high"]
        assert [(e.level, e.previous_level) for _, _, e in seen] == [("high", None)]

    async def test_an_unknown_model_or_level_changes_nothing(self, app, scripted):
        scripted("one")
        seen = record(app, "model_select", "thinking_level_select")
        async with app.running():
            with pytest.raises(UnknownModel):
                await app.sessions.choose_model(HERE, "nobody:nothing")
            with pytest.raises(BadSetting, match="must be one of"):
                await app.sessions.choose_thinking(HERE, "harder")
            assert await app.sessions.list() == []
        assert seen == []
