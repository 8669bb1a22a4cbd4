"""The one class: registration in both styles, the ways of calling, scopes, subscribers, trace."""

import asyncio
import gc
import inspect
import sys
import threading
import weakref
from functools import partial

import pytest

from hookline.hooks import (
    SKIP,
    Answer,
    CallError,
    Catalog,
    Event,
    Family,
    HookRegistry,
    RegistrationError,
    UnknownHook,
    first,
    hookimpl,
    hookspec,
    notify,
)

from .sample import Ctx, DoneEvent, Order, OrderEvent, OrderResult, PlateEvent, PlateResult, shop


class Echo:
    @hookimpl
    def greet(self, guest):
        return f"plugin:{guest}"


async def greet(hooks, session_id="s", guest="Ada"):
    return await hooks.call("greet", guest=guest, session_id=session_id)


class TestRegistration:
    async def test_register_returns_what_removes_it(self, hooks):
        off = hooks.register("greet", lambda: "hi")
        assert await greet(hooks) == "hi"
        off()
        off()
        assert await greet(hooks) is None

    async def test_on_returns_the_handler_itself_with_off(self, hooks):
        @hooks.on("greet")
        @hooks.on("polish")
        def handler(**kwargs):
            return "hi"

        assert handler() == "hi"
        assert hooks.handler_count("greet") == hooks.handler_count("polish") == 1
        handler.off()
        assert hooks.handler_count("greet") == hooks.handler_count("polish") == 0

    async def test_a_bound_method_can_be_decorated_and_removed_by_equal_method(self, hooks):
        class Thing:
            def hello(self, guest):
                return "thing"

        thing, other = Thing(), Thing()
        kept = hooks.on("greet")(thing.hello)
        assert kept("x") == "thing"
        assert not hooks.unregister("greet", other.hello)
        assert hooks.unregister("greet", thing.hello)
        hooks.on("greet")(thing.hello).off()
        assert hooks.handler_count("greet") == 0

    async def test_plugins_and_handlers_share_one_order(self, hooks):
        hooks.register("votes", lambda: "handler 1")
        hooks.add(type("P", (), {"votes": hookimpl(lambda self: "plugin")})(), name="p")
        hooks.register("votes", lambda: "handler 2")
        hooks.register("votes", lambda: "first of all", tryfirst=True)
        hooks.register("votes", lambda: "last of all", trylast=True)
        hooks.register("votes", lambda: "before it", tryfirst=True)
        assert await hooks.call("votes", guest="x") == [
            "before it", "first of all", "handler 2", "plugin", "handler 1", "last of all",
        ]  # fmt: skip

    @pytest.mark.parametrize("hook", ["votes", "tally"])  # newest first, oldest first
    async def test_a_lower_order_runs_first_within_each_group(self, hooks, hook):
        ran = []

        def add(name, **options):
            hooks.register(hook, lambda: ran.append(name), **options)

        add("10", order=10)
        add("-10", order=-10)
        add("first 5", tryfirst=True, order=5)
        add("last -5", trylast=True, order=-5)
        add("none")
        add("last", trylast=True)
        add("first", tryfirst=True)
        add("0.5", order=0.5)
        marked = hookimpl(specname=hook, order=-1)(lambda self: ran.append("plugin -1"))
        hooks.add(type("P", (), {"named": marked})(), name="p")
        await hooks.call(hook, guest="x")
        assert ran == [
            "first", "first 5", "-10", "plugin -1", "none", "0.5", "10", "last -5", "last",
        ]  # fmt: skip

    async def test_equal_orders_run_by_the_order_of_the_hook(self, hooks):
        for hook, expected in (("votes", ["b", "a"]), ("tally", ["a", "b"])):
            ran = []
            hooks.register(hook, partial(ran.append, "a"), order=3)
            hooks.register(hook, partial(ran.append, "b"), order=3)
            await hooks.call(hook, guest="x")
            assert ran == expected

    async def test_the_report_is_in_run_order(self, hooks):
        hooks.add(Echo(), name="a")
        hooks.add(Echo(), name="b")
        assert hooks.report() == {"greet": ["b", "a"]}

    async def test_once_runs_once_even_when_dispatches_overlap(self, hooks):
        ran = []

        async def handler(guest):
            ran.append(guest)
            await asyncio.sleep(0)

        hooks.register("bell", handler, once=True)
        await asyncio.gather(*(hooks.call("bell", guest=n) for n in range(5)))
        assert ran == [0]
        assert not hooks.has_hooks("bell")

    async def test_filters_by_pattern_and_predicate(self, hooks):
        seen = []
        hooks.register(OrderEvent, lambda e: seen.append(("glob", e.dish)), when="so*|stew")
        hooks.register(
            OrderEvent, lambda e: seen.append(("table", e.dish)), when=lambda e: e.table == 7
        )
        hooks.register("prepare", lambda: seen.append("prepare"), when="soup")
        for dish in ("soup", "stew", "fish"):
            await hooks.call(OrderEvent(dish, 7 if dish == "fish" else 1))
            await hooks.call("prepare", order=Order(dish), dish=dish, options={})
        assert seen == [("glob", "soup"), "prepare", ("glob", "stew"), ("table", "fish")]

    async def test_a_guard_whose_filter_fails_denies(self, hooks):
        hooks.register(OrderEvent, lambda e: None, when=lambda e: 1 / 0, guard=True)
        assert (await hooks.call(OrderEvent("soup"))).denied

    async def test_clear_removes_handlers_never_plugins(self, hooks):
        hooks.add(Echo())
        hooks.register("greet", lambda: "handler")
        hooks.scope("s").register("greet", lambda: "scoped")
        hooks.clear("greet")
        assert await greet(hooks) == "plugin:Ada"
        hooks.register("bell", lambda: None)
        hooks.clear()
        assert hooks.report() == {"greet": ["Echo"]}


class TestPlugins:
    async def test_unregistering_blocking_and_pm(self, hooks):
        plugin = Echo()
        hooks.add(plugin)
        assert hooks.pm.hook.greet(guest="Ada", session_id="s") == "plugin:Ada"
        hooks.remove(plugin)
        assert await greet(hooks) is None
        with pytest.raises(RegistrationError, match="no such plugin"):
            hooks.remove("Echo")
        hooks.pm.set_blocked("Echo")
        assert hooks.add(plugin) is None
        hooks.pm.unblock("Echo")
        hooks.pm.register(plugin)
        assert await greet(hooks) == "plugin:Ada"
        hooks.pm.set_blocked("Echo")
        assert await greet(hooks) is None

    async def test_a_colon_in_a_name_is_reached_by_specname(self, hooks):
        seen = []

        class Plugin:
            @hookimpl(specname="shop:done")
            async def done(self, event, ctx):
                seen.append((event.guest, ctx))

        hooks.add(Plugin())
        await hooks.emit(DoneEvent("Ada"), Ctx("s"))
        assert seen == [("Ada", Ctx("s"))]

    async def test_the_subset_caller_is_ours_for_what_remains(self, hooks):
        class Tap:
            @hookimpl
            async def greet(self, guest, session_id):
                parent = hooks.pm.subset_hook_caller("greet", remove_plugins=[self])
                inner = await parent(guest=guest, session_id=session_id)
                return None if inner is None else f"tap({inner})"

        hooks.add(Tap())
        assert await greet(hooks) is None
        hooks.add(Echo())
        assert await greet(hooks) == "plugin:Ada"
        hooks.remove("Echo")
        hooks.register("greet", lambda: "handler", trylast=True)
        assert await greet(hooks) == "tap(handler)"

    async def test_plugins_may_declare_hooks_of_their_own(self, hooks):
        class More(Family, name="more"):
            @hookspec(first)
            def dessert(self, guest: str) -> Answer[str]:
                """Something sweet."""

        class Early:
            @hookimpl(optionalhook=True)
            def dessert(self, guest):
                return f"cake for {guest}"

        hooks.add(Early())
        hooks.pm.add_hookspecs(More)
        assert await hooks.call("dessert", guest="Ada") == "cake for Ada"
        assert "dessert" in hooks.catalog
        assert "dessert" not in shop().catalog
        assert hooks.pm.hook.dessert(guest="Bob") == "cake for Bob"

    async def test_static_and_class_methods_and_marked_subclasses(self, hooks):
        class Plugin:
            @hookimpl
            @staticmethod
            def greet(guest):
                return "static"

            @classmethod
            @hookimpl
            def polish(cls, text):
                return cls.__name__

        hooks.add(Plugin())
        assert await greet(hooks) == "static"
        assert await hooks.call("polish", text="x") == "Plugin"


class TestCalling:
    async def test_fewer_arguments_are_fine_for_those_who_do_not_need_them(self, hooks):
        hooks.register("greet", lambda guest: guest)
        assert await hooks.call("greet", guest="Ada") == "Ada"
        hooks.register("greet", lambda session_id="none": session_id)
        assert await hooks.call("greet", guest="Ada") == "none"
        hooks.register("greet", lambda session_id: session_id)
        with pytest.raises(
            TypeError, match="needs 'session_id', which the call of hook 'greet' did not pass"
        ):
            await hooks.call("greet", guest="Ada")

    async def test_kwargs_gets_all_that_was_passed(self, hooks):
        seen = []
        hooks.register("greet", lambda **kw: seen.append(kw))
        hooks.register("greet", lambda session_id, **kw: seen.append((session_id, kw)))
        await greet(hooks)
        await hooks.call("greet", session_id="t")
        assert seen == [
            ("s", {"guest": "Ada"}),
            {"guest": "Ada", "session_id": "s"},
            ("t", {}),
            {"session_id": "t"},
        ]

    async def test_fire_takes_every_parameter_by_position(self, hooks):
        hook = hooks["greet"]
        assert not hook.live
        assert await hook.fire("Ada", "s") is None
        hooks.register("greet", lambda guest, session_id: f"{guest}@{session_id}")
        assert hook.live
        assert await hook.fire("Ada", "s") == "Ada@s"
        with pytest.raises(TypeError, match=r"greet\(\) missing 1 required positional argument"):
            await hook.fire("Ada")

    async def test_emit_gives_each_result_none_included_and_leaves_failures_out(self, hooks, caplog):
        def fail(event):
            raise ValueError("boom")

        hooks.register(DoneEvent, lambda e: 1)
        hooks.register(DoneEvent, fail)
        hooks.register(DoneEvent, lambda e: None)
        assert await hooks.emit(DoneEvent()) == [1, None]
        assert "hook.shop:done_failed adapter=" in caplog.text

    async def test_emit_with_nothing_attached_is_one_coroutine_and_no_task(self, hooks):
        entered = []

        def watch(frame, event, argument):
            if event == "call" and frame.f_code.co_flags & inspect.CO_COROUTINE:
                entered.append(frame.f_code.co_name)

        def run():
            coroutine = hooks.emit(DoneEvent())
            sys.setprofile(watch)
            try:
                coroutine.send(None)
            except StopIteration as stop:
                return stop.value
            finally:
                sys.setprofile(None)

        tasks = asyncio.all_tasks()
        assert run() == []
        assert entered == ["emit"]
        assert asyncio.all_tasks() == tasks
        hooks.register(DoneEvent, lambda e: None)
        entered.clear()
        run()
        assert len(entered) > 1, "with a handler there is more to enter, and the watch sees it"

    async def test_emit_folds_like_call(self, hooks):
        seen = []
        hooks.register(OrderEvent, lambda e: OrderResult(dish="stew"))
        hooks.register(OrderEvent, lambda e: seen.append(e.dish))
        assert await hooks.emit(OrderEvent("soup")) == [OrderResult(dish="stew"), None]
        assert seen == ["stew"]

    async def test_the_faces_of_other_systems(self, hooks):
        for value in ("a", None, "b"):
            hooks.register("votes", lambda _v=value: _v)
        assert await hooks.call_many("votes", guest="x") == ["b", None, "a"]
        assert await hooks.call_first("votes", guest="x") == "b"
        assert hooks.call_many_sync("votes", guest="x") == ["b", None, "a"]
        assert hooks.call_first_sync("votes", guest="x") == "b"
        assert hooks.run("votes", guest="x") == ["b", "a"]

    def test_run_on_a_chain_gives_the_final_value(self, hooks):
        assert hooks.run("prepare", dish="soup", options={"q": 1}) == {"q": 1}
        hooks.register("prepare", lambda dish, options: {**options, "dish": dish})
        assert hooks.run("prepare", dish="soup", options={"q": 1}) == {"q": 1, "dish": "soup"}
        assert hooks.run("bell", guest="x") == []

    @pytest.mark.parametrize("hook", ["order", "plate", "serve"])
    async def test_faces_that_would_lose_a_verdict_are_refused(self, hooks, hook):
        with pytest.raises(CallError, match=r"use hooks\.call"):
            hooks.run(hook)
        with pytest.raises(CallError, match="its verdict would be lost"):
            await hooks.call_many(hook)

    async def test_a_sync_hook_can_be_awaited(self, hooks):
        hooks.register("sign", lambda: "open")
        assert await hooks.call("sign", guest="Ada") == "open"

    async def test_an_awaitable_from_a_plain_function_is_awaited(self, hooks):
        async def answer(guest):
            return f"async {guest}"

        hooks.register("greet", lambda guest: answer(guest))
        assert await greet(hooks) == "async Ada"

    async def test_changes_hold_from_the_next_dispatch_on(self, hooks):
        ran = []

        def add(guest):
            ran.append("add")
            hooks.register("bell", lambda: ran.append("added"))
            hooks.unregister("bell", gone)

        def gone(guest):
            ran.append("gone")

        hooks.register("bell", add, once=True)
        hooks.register("bell", gone)
        await hooks.call("bell", guest="x")
        assert ran == ["add", "gone"]
        await hooks.call("bell", guest="x")
        assert ran == ["add", "gone", "added"]


class TestLooking:
    async def test_counting_and_listing(self, hooks):
        assert not hooks.has_hooks("greet")
        hooks.add(Echo())
        hooks.register("order", lambda e: None)
        hooks.scope("s").register("greet", lambda: None)
        assert hooks.has_hooks("greet")
        assert hooks.handler_count("greet") == 2
        assert hooks.registered_events() == ["order"]
        assert "greet" in hooks


class TestScopes:
    async def test_a_scoped_handler_is_seen_only_under_its_key(self, hooks):
        view = hooks.scope("s1")
        view.register("greet", lambda: "scoped")

        @view.on(OrderEvent, guard=True)
        def deny(event):
            return OrderResult(block=True, reason="not here")

        hooks.register("greet", lambda: "everybody")
        assert await greet(hooks, "s1") == "everybody"
        hooks.register("greet", lambda: None)
        assert (await greet(hooks, "s1"), await greet(hooks, "s2")) == ("everybody", "everybody")
        hooks.clear("greet")
        view.register("greet", lambda: "scoped")
        assert (await greet(hooks, "s1"), await greet(hooks, "s2")) == ("scoped", None)
        assert (await hooks.call(OrderEvent(), Ctx("s1"))).denied
        assert (await hooks.call(OrderEvent(), Ctx("s2"))).allowed
        assert (await hooks.call(OrderEvent())).allowed
        assert view.handler_count("order") == 1
        assert view.unregister("order", deny)
        view.close()
        assert not hooks["greet"].live

    async def test_a_nested_scope_sees_the_handlers_around_it_until_it_is_undone(self, hooks):
        outer = hooks.scope("parent")
        outer.register("greet", lambda: "outer")
        undo = hooks.nest("child", within="parent")
        undo_deeper = hooks.nest("grandchild", within="child")
        assert (await greet(hooks, "child"), await greet(hooks, "grandchild")) == ("outer", "outer")
        outer.close()
        assert await greet(hooks, "grandchild") is None
        outer.register("greet", lambda: "again")  # also what is attached later
        assert await greet(hooks, "grandchild") == "again"
        with pytest.raises(RegistrationError, match="cannot be nested"):
            hooks.nest("parent", within="grandchild")
        undo_deeper()
        undo()
        assert (await greet(hooks, "child"), await greet(hooks, "parent")) == (None, "again")

    async def test_ten_thousand_scoped_handlers_come_and_go_without_a_trace(self, hooks):
        hook = hooks["greet"]
        await greet(hooks)
        bare = hook.fire.__code__.co_code
        gone = []

        class Handler:
            def __call__(self, guest):
                return "scoped"

        views = []
        for n in range(10_000):
            view, handler = hooks.scope(n), Handler()
            view.register("greet", handler)
            gone.append(weakref.ref(handler))
            views.append(view)
        del handler
        assert await greet(hooks, 9_999) == "scoped"
        assert await greet(hooks, "other") is None
        for view in views:
            view.close()
        await greet(hooks)
        gc.collect()
        assert not hook.live
        assert hook.fire.__code__.co_code == bare
        assert not any(ref() for ref in gone)


class TestSubscribers:
    async def test_they_see_every_event_after_its_handlers_as_it_became(self, hooks):
        seen = []

        async def later(event, ctx):
            seen.append((event.type, ctx))

        hooks.register(PlateEvent, lambda e: PlateResult(content="new"))
        off = hooks.subscribe(lambda event: seen.append(event))
        off_later = hooks.subscribe(later)
        hooks.subscribe(lambda event: 1 / 0)
        assert await hooks.emit(PlateEvent("old")) == [PlateResult(content="new")]
        assert seen == [PlateEvent("new"), ("plate", None)]
        off()
        off_later()
        await hooks.call(DoneEvent())
        assert len(seen) == 2

    async def test_what_they_return_is_dropped_and_what_they_raise_is_logged(self, hooks, caplog):
        hooks.subscribe(lambda event: OrderResult(block=True))
        hooks.subscribe(lambda event: 1 / 0)
        assert (await hooks.call(OrderEvent())).allowed
        assert "hook.subscriber_failed hook=order" in caplog.text
        assert hooks["order"].live


class TestTrace:
    async def test_a_record_tells_what_each_did(self, hooks):
        records = []
        hooks.add(Echo(), name="echo")
        hooks.register(OrderEvent, lambda e: OrderResult(dish="stew"))
        hooks.register(OrderEvent, lambda e: OrderResult(block=True, reason="no"))
        hooks.register(OrderEvent, lambda e: 1 / 0)
        off = hooks.trace(records.append)
        await greet(hooks, "s1")
        await hooks.call(OrderEvent("soup"), Ctx("s2"))
        await hooks.call("tally", guest="Ada")
        one, two, three = records
        assert (one.hook, one.key, one.value) == ("greet", "s1", "plugin:Ada")
        assert [(c.by, c.did) for c in one.calls] == [("echo", "value")]
        assert (two.key, [c.did for c in two.calls]) == ("s2", ["rewrote", "denied", "raised"])
        assert two.calls[0].fields == ("dish",)
        assert three.calls == []
        assert all(r.duration >= sum(c.duration for c in r.calls) for r in records)
        off()
        await greet(hooks)
        assert len(records) == 3

    async def test_without_a_listener_the_code_is_the_same_as_before(self, hooks):
        hooks.register("greet", lambda guest: guest)
        await greet(hooks)
        before = hooks["greet"].fire.__code__.co_code
        off = hooks.trace(print)
        await greet(hooks)
        assert hooks["greet"].fire.__code__.co_code != before
        off()
        await greet(hooks)
        assert hooks["greet"].fire.__code__.co_code == before

    async def test_a_sink_that_raises_is_logged(self, hooks, caplog):
        hooks.trace(lambda record: 1 / 0)
        assert await greet(hooks) is None
        assert "hook.trace_failed hook=greet" in caplog.text


class TestMany:
    @pytest.mark.parametrize("count", [63, 64, 65, 1000])
    async def test_any_number_of_handlers_runs_in_order(self, hooks, count):
        for n in range(count):
            if n % 7 == 3:
                hooks.register("tally", lambda guest, _n=n: _n)
            elif n % 7 == 5:

                async def handler(_n=n):
                    return _n

                hooks.register("tally", handler)
            else:
                hooks.register("tally", lambda _n=n: _n)
        assert await hooks.call("tally", guest="x") == list(range(count))
        assert hooks.call_many_sync("tally", guest="x") == [n for n in range(count) if n % 7 != 5]

    async def test_guards_beyond_the_unrolled_number_still_settle(self, hooks):
        for _ in range(70):
            hooks.register("polish", lambda text: text + ".")
        for letter in "ab":
            hooks.register("polish", lambda text, _l=letter: text.replace(_l, "*"), guard=True)
        assert await hooks.call("polish", text="abc") == "**c" + "." * 70

    async def test_threads_may_register_while_others_dispatch(self):
        hooks = shop()
        stop = threading.Event()
        failures = []

        def churn():
            try:
                while not stop.is_set():
                    off = hooks.register("sign", lambda: "x")
                    hooks.call_sync("sign", guest="a")
                    off()
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=churn) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(300):
            text = hooks.call_sync("sign", guest="a")
            assert set(text) <= {"x", "\n"}
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
        assert hooks.call_sync("sign", guest="a") == ""


async def test_hooks_of_one_shape_that_match_different_fields_do_not_share_code(caplog):
    class Alike(Family, name="alike"):
        @hookspec(notify, errors=SKIP, match="a")
        def one(self, a: str, b: str) -> None:
            """Match the first."""

        @hookspec(notify, errors=SKIP, match="b")
        def two(self, a: str, b: str) -> None:
            """Match the second."""

    hooks = HookRegistry(Catalog(Alike))
    for name in ("one", "two"):
        hooks.register(name, lambda: 1 / 0)
        await hooks.call(name, a="A", b="B")
    assert "hook.one_failed a=A adapter=" in caplog.text
    assert "hook.two_failed b=B adapter=" in caplog.text


async def test_a_hooks_object_comes_with_a_catalogue_of_its_own():
    one, two = shop(), shop()
    one.register("greet", lambda: "one")
    assert await greet(two) is None
    assert isinstance(one, HookRegistry)
    assert issubclass(OrderEvent, Event)


class TestHooksMadeAtFirstUse:
    def test_a_registry_makes_the_hooks_that_are_used_and_no_others(self, hooks):
        hooks.register("polish", lambda: None)
        hooks.register(OrderEvent, lambda event: None)
        hooks.handler_count("greet")
        with hooks.scope("s"), pytest.raises(UnknownHook):
            hooks["polis"]
        assert [hook.spec.name for hook in hooks.made()] == [
            name for name in hooks.catalog if name in ("polish", "order")
        ]
        assert hooks["order"] is hooks[OrderEvent]

    async def test_an_observer_sees_hooks_that_were_first_used_after_it_came(self, hooks):
        seen = []
        hooks.subscribe(seen.append)
        await hooks.call(DoneEvent())
        assert seen == [DoneEvent()]

    def test_threads_that_first_use_a_hook_at_once_get_one_object(self, hooks):
        ready = threading.Barrier(8)
        found = []

        def use():
            ready.wait()
            found.append((hooks["greet"], hooks[OrderEvent]))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1

    def test_a_hook_that_was_declared_and_removed_before_its_use_is_unknown(self, hooks):
        class More(Family):
            @hookspec(first)
            def greet_twice(self) -> Answer[str]:
                """Greet twice."""

        with hooks.owner("plugin"):
            hooks.declare(More)
        assert "greet_twice" in hooks
        hooks.remove_owned("plugin")
        assert "greet_twice" not in hooks
        with pytest.raises(UnknownHook):
            hooks["greet_twice"]
