"""What becomes of the results: one behaviour of each reducer at a time."""

import asyncio
from typing import Any

import pytest

from hookline.hooks import (
    Answer,
    Decision,
    Denied,
    Family,
    HooklineError,
    Outcome,
    RegistrationError,
    flatten,
    hookimpl,
    hookspec,
)

from .sample import Ctx, DoneEvent, Order, OrderEvent, OrderResult, PlateEvent, PlateResult


async def greet(hooks, guest="Ada"):
    return await hooks.call("greet", guest=guest, session_id="s")


class TestFirst:
    async def test_the_newest_answer_wins_and_the_rest_do_not_run(self, hooks):
        ran = []
        hooks.register("greet", lambda guest: ran.append("old") or "old")
        hooks.register("greet", lambda guest: ran.append("new") or "new")
        assert await greet(hooks) == "new"
        assert ran == ["new"]

    async def test_none_passes_on_and_a_falsy_value_answers(self, hooks):
        hooks.register("greet", lambda: "old")
        hooks.register("greet", lambda: "")
        hooks.register("greet", lambda: None)
        assert await greet(hooks) == ""

    async def test_nobody_answers(self, hooks):
        assert await greet(hooks) is None


class TestLists:
    async def test_collect_leaves_none_out_unless_it_is_kept(self, hooks):
        for value in (1, None, 3):
            hooks.register("tally", lambda _v=value: _v)
        assert await hooks.call("tally", guest="Ada") == [1, 3]
        for value in ("a", None):
            hooks.register("votes", lambda _v=value: _v)
        assert await hooks.call("votes", guest="Ada") == [None, "a"]

    async def test_flatten_makes_one_list_out_of_many(self, hooks):
        hooks.register("dishes", lambda: ["soup", "bread"])
        hooks.register("dishes", lambda: None)
        hooks.register("dishes", lambda: ["fish"])
        assert await hooks.call("dishes", guest="Ada") == ["fish", "soup", "bread"]

    @pytest.mark.parametrize(
        ("given", "flat"),
        [([1, 2], [1, 2]), ((1, 2), [1, 2]), ({"a": 1}, [{"a": 1}]), ("text", ["text"]), ([], [])],
    )
    async def test_flatten_with_single_takes_one_for_a_list_of_one(self, hooks, given, flat):
        class Kitchen(Family, name="kitchen"):
            @hookspec(flatten(single=True))
            def bake(self) -> Answer[Any]:
                """Bake."""

        hooks.declare(Kitchen)
        hooks.register("bake", lambda: "last")
        hooks.register("bake", lambda: given)
        assert await hooks.call("bake") == [*flat, "last"]

    def test_flatten_unique_keeps_the_first_seen_in_priority_order(self, hooks):
        hooks.register("stock", lambda: [Order("soup", {"by": "old"}), Order("bread")])
        hooks.register("stock", lambda: [Order("soup", {"by": "new"})])
        assert hooks.call_sync("stock") == [Order("soup", {"by": "new"}), Order("bread")]

    async def test_outcomes_has_one_entry_for_each_failed_ones_too(self, hooks):
        boom = ValueError("boom")

        class Plugin:
            @hookimpl
            async def opening(self, day):
                return day

        def fail(day):
            raise boom

        hooks.add(Plugin(), name="good")
        hooks.register("opening", fail)
        good, bad = await hooks.call("opening", day="Monday")
        assert good == Outcome("good", True, "Monday")
        assert (bad.success, bad.error) == (False, boom)


class TestDicts:
    async def test_merge_lets_the_higher_priority_value_stand(self, hooks):
        hooks.register("state", lambda: {"a": "old", "b": "old"})
        hooks.register("state", lambda: {"a": "new"})
        assert await hooks.call("state", guest="Ada") == {"a": "new", "b": "old"}

    def test_merge_into_a_parameter_shows_each_what_came_before(self, hooks):
        seen = []
        given = {"model": {"name": "x"}}

        def one(config):
            return {"model": {"size": 1}}

        def two(config):
            seen.append(config)
            return {"model": {"size": 2}}

        hooks.register("settings", one)
        hooks.register("settings", two)
        assert hooks.call_sync("settings", config=given) == {"model": {"name": "x", "size": 2}}
        assert seen == [{"model": {"name": "x", "size": 1}}]
        assert given == {"model": {"name": "x"}}


def test_join_puts_the_lowest_priority_first_and_leaves_empty_ones_out(hooks):
    for text in ("old", "", "new"):
        hooks.register("sign", lambda _t=text: _t)
    assert hooks.call_sync("sign", guest="Ada") == "old\n\nnew"
    hooks.clear("sign")
    assert hooks.call_sync("sign", guest="Ada") == ""


class TestChain:
    async def test_each_sees_what_the_one_before_returned(self, hooks):
        hooks.register("polish", lambda text: text.strip())
        hooks.register("polish", lambda text: None)
        hooks.register("polish", lambda text: text + "!")
        assert await hooks.call("polish", text=" hi ") == "hi!"

    async def test_the_record_that_carries_the_value_is_renewed(self, hooks):
        seen = []
        hooks.register("prepare", lambda options: {**options, "hot": True})
        hooks.register("prepare", lambda order: seen.append(order))
        order = Order("soup", {})
        options = await hooks.call("prepare", order=order, dish="soup", options={})
        assert options == {"hot": True}
        assert seen == [Order("soup", {"hot": True})]
        assert order.options == {}

    async def test_a_failed_guard_withholds_the_value(self, hooks):
        def redact(text):
            raise ValueError("no rules")

        hooks.register("polish", redact, guard=True)
        hooks.register("polish", lambda text: text + " secret")
        text = await hooks.call("polish", text="the")
        assert "secret" not in text
        assert text.startswith("[withheld:")
        assert text.endswith("failed: ValueError: no rules]")


class TestGate:
    async def test_nothing_attached_allows_the_event_as_it_is(self, hooks):
        event = OrderEvent("soup")
        verdict = await hooks.call(event)
        assert verdict.allowed
        assert verdict.event is event
        assert verdict.trail == []

    async def test_the_strictest_wins_and_every_handler_runs(self, hooks):
        ran = []
        answers = [
            OrderResult(block=True, reason="closed"),
            OrderResult(ask="sure?"),
            OrderResult(block=True, reason="too late"),
            None,
        ]
        for answer in answers:
            hooks.register(OrderEvent, lambda e, _a=answer: ran.append(_a) or _a)
        verdict = await hooks.call(OrderEvent("soup"))
        assert (verdict.decision, verdict.reason) == (Decision.DENY, "closed")
        assert ran == answers
        assert [r.decision for r in verdict.trail] == [Decision.DENY, Decision.ASK, Decision.DENY]

    async def test_patches_reach_the_next_handler_and_unknown_fields_are_supplied(self, hooks):
        seen = []
        hooks.register(OrderEvent, lambda e: OrderResult(dish="stew", tip=2))
        hooks.register(OrderEvent, lambda e: seen.append(e.dish))
        event = OrderEvent("soup", 4)
        verdict = await hooks.call(event)
        assert (verdict.event, verdict.supplied) == (OrderEvent("stew", 4), {"tip": 2})
        assert seen == ["stew"]
        assert event.dish == "soup"
        assert verdict.changes == {"dish": "stew"}

    async def test_conflicting_rewrites_are_recorded(self, hooks):
        hooks.register(OrderEvent, lambda e: OrderResult(dish="stew"))
        hooks.register(OrderEvent, lambda e: OrderResult(dish="fish"))
        verdict = await hooks.call(OrderEvent("soup"))
        assert verdict.event.dish == "fish"
        assert list(verdict.conflicts) == ["dish"]
        assert len(verdict.conflicts["dish"]) == 2

    async def test_a_failing_handler_is_skipped_and_a_failing_guard_denies(self, hooks):
        def fail(event):
            raise ValueError("boom")

        hooks.register(OrderEvent, fail)
        assert (await hooks.call(OrderEvent("soup"))).allowed
        hooks.register(OrderEvent, fail, guard=True)
        verdict = await hooks.call(OrderEvent("soup"))
        assert verdict.denied
        assert verdict.reason.endswith("fail failed: ValueError: boom")
        assert verdict.decided_by.endswith("fail")

    async def test_on_gate_error_makes_every_failing_handler_deny_for_good(self, hooks):
        def fail(event):
            raise ValueError("boom")

        hooks.register(OrderEvent, fail)
        assert (await hooks.call(OrderEvent("soup"))).allowed
        hooks.on_gate_error = "deny"
        assert (await hooks.call(OrderEvent("soup"))).denied
        with pytest.raises(RegistrationError, match="cannot be taken back"):
            hooks.on_gate_error = "allow"


class TestGuards:
    async def test_they_judge_after_all_others_whatever_the_order(self, hooks):
        seen = []
        hooks.register(OrderEvent, lambda e: seen.append(e.dish), guard=True)
        hooks.register(OrderEvent, lambda e: OrderResult(dish="stew"))
        hooks.register(OrderEvent, lambda e: OrderResult(dish="fish"), trylast=True)
        await hooks.call(OrderEvent("soup"))
        assert seen == ["fish"]

    async def test_an_earlier_guard_is_asked_once_more_when_a_later_one_rewrites(self, hooks):
        seen = []

        def judge(event):
            seen.append(event.dish)
            return OrderResult(block=event.dish == "fugu", reason="no fugu")

        hooks.register(OrderEvent, judge, guard=True)
        hooks.register(OrderEvent, lambda e: OrderResult(dish="fugu"), guard=True)
        verdict = await hooks.call(OrderEvent("soup"))
        assert seen == ["soup", "fugu"]
        assert (verdict.denied, verdict.reason) == (True, "no fugu")

    async def test_guards_that_keep_rewriting_each_other_deny(self, hooks):
        hooks.register(OrderEvent, lambda e: OrderResult(dish="stew"), guard=True)
        hooks.register(OrderEvent, lambda e: OrderResult(dish="fish"), guard=True)
        verdict = await hooks.call(OrderEvent("soup"))
        assert verdict.denied
        assert "guards do not settle" in verdict.reason

    async def test_redactors_that_agree_settle(self, hooks):
        hooks.register("polish", lambda text: text.replace("key", "***"), guard=True)
        hooks.register("polish", lambda text: text.replace("name", "***"), guard=True)
        assert await hooks.call("polish", text="key of name") == "*** of ***"

    async def test_a_failed_guard_on_a_patch_withholds_the_value(self, hooks):
        def fail(event):
            raise ValueError("boom")

        hooks.register(PlateEvent, lambda e: PlateResult(content="secret"))
        hooks.register(PlateEvent, fail, guard=True)
        verdict = await hooks.call(PlateEvent("plain"))
        assert verdict.withheld
        assert verdict.event.content.startswith("[withheld:")
        assert await hooks.emit(PlateEvent("plain")) == [
            PlateResult(content="secret"),
            Denied(verdict.trail[-1].reason.removeprefix("[withheld: ").removesuffix("]")),
        ]


class TestAround:
    async def test_each_is_around_the_next_and_may_not_call_on(self, hooks):
        async def outer(order, call_next):
            return f"<{await call_next()}>"

        def inner(call_next):
            return "inner"

        async def tool():
            return "tool"

        hooks.register("serve", inner)
        hooks.register("serve", outer)
        assert await hooks.call("serve", order=None, call_next=tool) == "<inner>"
        hooks.unregister("serve", inner)
        assert await hooks.call("serve", order=None, call_next=tool) == "<tool>"
        hooks.clear("serve")
        assert await hooks.call("serve", order=None, call_next=lambda: "tool") == "tool"

    async def test_call_next_takes_an_argument_only_where_the_hook_says_so(self, hooks):
        hooks.register("serve", lambda order, call_next: call_next("other"))
        with pytest.raises(TypeError, match=r"call_next\(\) of hook 'serve' takes no argument"):
            await hooks.call("serve", order=None, call_next=lambda: "tool")
        hooks.register("cook", lambda order, call_next: call_next(Order(order.item.upper())))
        assert await hooks.call("cook", order=Order("soup"), call_next=lambda o: o.item) == "SOUP"

    async def test_the_inner_calls_own_error_is_not_blamed_on_the_middleware(self, hooks):
        async def tool():
            raise ValueError("tool broke")

        async def through(call_next):
            return await call_next()

        hooks.register("serve", through)
        with pytest.raises(ValueError, match="tool broke") as caught:
            await hooks.call("serve", order=None, call_next=tool)
        assert not getattr(caught.value, "__notes__", [])

        def broken(call_next):
            raise KeyError("mine")

        hooks.register("serve", broken)
        with pytest.raises(KeyError) as caught:
            await hooks.call("serve", order=None, call_next=tool)
        assert "broken on hook 'serve'" in caught.value.__notes__[0]
        assert len(caught.value.__notes__) == 1


class TestErrors:
    async def test_raise_stops_and_names_hook_and_plugin(self, hooks):
        ran = []

        class Plugin:
            @hookimpl
            def greet(self, guest):
                raise ValueError("boom")

        hooks.register("greet", lambda: ran.append(1))
        hooks.add(Plugin(), name="acme")
        with pytest.raises(ValueError, match="boom") as caught:
            await greet(hooks)
        assert caught.value.__notes__[0].startswith("in acme on hook 'greet' (")
        assert ran == []

    async def test_an_error_of_ours_carries_the_hook_and_the_plugin(self, hooks):
        class Plugin:
            @hookimpl
            def greet(self, guest):
                raise HooklineError("boom")

        hooks.add(Plugin(), name="acme")
        with pytest.raises(HooklineError, match="boom") as caught:
            await greet(hooks)
        assert (caught.value.hook, caught.value.plugin) == ("greet", "acme")

    async def test_deny_turns_an_error_into_a_no(self, hooks):
        hooks.register("admit", lambda guest: True)
        assert await hooks.call("admit", guest="Ada") is True

        def fail(guest):
            raise ValueError("boom")

        hooks.register("admit", fail, tryfirst=True)
        assert await hooks.call("admit", guest="Ada") is False

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
    @pytest.mark.parametrize("hook", ["tally", "order", "admit", "opening"])
    async def test_interrupts_and_cancellation_always_propagate(self, hooks, hook, error):
        def stop(**kw: Any):
            raise error

        if hook == "order":
            hooks.register("order", lambda event: stop(), guard=True)
            with pytest.raises(error):
                await hooks.call(OrderEvent())
        else:
            hooks.register(hook, stop)
            argument = {"day" if hook == "opening" else "guest": "x"}
            with pytest.raises(error):
                await hooks.call(hook, **argument)


class TestWrappers:
    async def test_the_first_to_run_is_the_outermost_and_replaces_the_value(self, hooks):
        def plugin(mark):
            class Plugin:
                @hookimpl(wrapper=True)
                def greet(self, guest):
                    value = yield
                    return f"{mark}{value}{mark}"

            return Plugin()

        hooks.register("greet", lambda guest: guest)
        hooks.add(plugin("*"), name="old")
        hooks.add(plugin("+"), name="new")
        assert await greet(hooks) == "+*Ada*+"

    async def test_a_wrapper_that_forgets_to_return_is_told(self, hooks):
        class Plugin:
            @hookimpl(wrapper=True)
            def dishes(self):
                yield

        hooks.add(Plugin())
        with pytest.raises(TypeError, match="return the list that `yield` gave, or another"):
            await hooks.call("dishes", guest="Ada")

    async def test_it_may_handle_an_error_but_never_a_cancellation(self, hooks):
        class Plugin:
            @hookimpl(wrapper=True)
            def greet(self):
                try:
                    return (yield)
                except BaseException:
                    return "handled"

        def fail():
            raise error

        hooks.add(Plugin())
        hooks.register("greet", fail)
        error = ValueError("boom")
        assert await greet(hooks) == "handled"
        error = asyncio.CancelledError()
        with pytest.raises(asyncio.CancelledError):
            await greet(hooks)


async def test_a_context_reaches_handlers_that_ask_for_it(hooks):
    seen = []
    hooks.register(DoneEvent, lambda e, ctx: seen.append(ctx.session_id))
    hooks.register(DoneEvent, lambda: seen.append("nothing"))
    await hooks.call(DoneEvent("Ada"), Ctx("s1"))
    assert seen == ["s1", "nothing"]
