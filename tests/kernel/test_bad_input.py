"""Bad input is refused where it enters, with a message that names what is wrong and the fix."""

import asyncio
import logging
import re
import threading
import time
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from hookline.hooks import (
    CAPTURE,
    DENY,
    OLDEST,
    RAISE,
    SKIP,
    Answer,
    CallError,
    Catalog,
    DeclarationError,
    Event,
    Family,
    HookTimeout,
    RegistrationError,
    UnknownHook,
    WrongResult,
    around,
    chain,
    collect,
    event,
    first,
    flatten,
    gate,
    hookimpl,
    hookspec,
    join,
    merge,
    notify,
    outcomes,
    patch,
)

from ..tables import each_row
from .sample import DoneEvent, OrderEvent, OrderResult, Shop, shop


def refused(what: str):
    return pytest.raises(RegistrationError, match=what)


class TestNames:
    def test_an_unknown_hook_offers_the_nearest_names(self, hooks):
        with pytest.raises(UnknownHook, match="unknown hook 'gret'; did you mean 'greet'"):
            hooks.register("gret", print)
        with pytest.raises(ValueError, match="did you mean 'greet'"):
            hooks.call("gret", guest="x")
        with pytest.raises(UnknownHook, match="did you mean 'greet'"):
            hooks["gret"]

    def test_an_unknown_hook_is_no_error_for_questions(self, hooks):
        assert hooks.has_hooks("gret") is False
        assert hooks.handler_count("gret") == 0
        assert hooks.unregister("gret", print) is False

    def test_an_undeclared_event_offers_the_nearest_classes(self, hooks):
        @dataclass
        class OrdrEvent(Event[None]):
            pass

        with pytest.raises(UnknownHook, match="did you mean 'OrderEvent'"):
            hooks.register(OrdrEvent, lambda e: None)
        with pytest.raises(UnknownHook, match="OrderEvent"):
            asyncio.run(hooks.emit(OrdrEvent()))

    def test_a_plugin_implementing_an_unknown_hook_is_told_where(self, hooks):
        class Plugin:
            @hookimpl
            def gret(self, guest):
                return guest

        with refused(
            r"plugin 'Plugin': unknown hook 'gret'; did you mean 'greet'.*test_bad_input.py:\d+"
        ):
            hooks.add(Plugin())
        assert hooks.report() == {}

    def test_an_optional_hook_may_be_unknown(self, hooks):
        class Plugin:
            @hookimpl(optionalhook=True)
            def not_here(self):
                return 1

        assert hooks.add(Plugin()) == "Plugin"


class TestParameters:
    def test_a_parameter_the_hook_lacks_is_refused_with_place_and_what_exists(self, hooks):
        def handler(gest):
            return gest

        with refused(
            r"handler on hook 'greet' asks for 'gest'; its parameters are: guest, session_id; "
            r"did you mean 'guest'\? \(.*test_bad_input.py:\d+\)"
        ):
            hooks.register("greet", handler)

    @pytest.mark.parametrize("suffix", ["!", "?"])
    def test_a_default_that_the_hook_does_not_know_is_the_functions_own(self, hooks, suffix):
        hooks.register("sign", lambda guest, suffix=suffix: guest + suffix)
        assert hooks.call_sync("sign", guest="Ada") == f"Ada{suffix}"

    def test_a_keyword_only_default_that_the_hook_does_not_know_is_the_functions_own(self, hooks):
        class Plugin:
            @hookimpl
            def sign(self, guest, *, suffix="!"):
                return guest + suffix

        hooks.add(Plugin())
        assert hooks.call_sync("sign", guest="Ada") == "Ada!"

    def test_a_default_whose_name_is_nearly_a_parameter_is_warned_of(self, hooks, caplog):
        hooks.register("greet", lambda guest, sesion_id=None: guest)
        assert "never gets 'sesion_id'; did you mean 'session_id'?" in caplog.text

    def test_what_a_partial_has_filled_in_is_not_asked_for(self, hooks):
        def sign(guest, session, prefix):
            return f"{prefix} {guest} {session}"

        hooks.register("sign", partial(sign, session="s", prefix="Dear"))
        assert hooks.call_sync("sign", guest="Ada") == "Dear Ada s"

    def test_an_events_handler_takes_the_event_and_ctx_only(self, hooks):
        with refused(r"asks for 'context'; its parameters are: event, ctx \(OrderEvent\)"):
            hooks.register(OrderEvent, lambda e, context: None)

    def test_only_args_is_refused_where_parameters_go_by_name(self, hooks):
        with refused(r"takes only \*args"):
            hooks.register("greet", lambda *args: "x")

    def test_a_callable_without_a_readable_signature_is_refused(self, hooks):
        with refused("no signature that can be read"):
            hooks.register("greet", {}.update)

    def test_an_undeclared_argument_is_the_callers_error(self, hooks):
        with pytest.raises(
            CallError, match="takes guest, session_id, not 'gest'; did you mean 'guest'"
        ):
            hooks.call("greet", gest="x")
        with pytest.raises(CallError, match="pass its arguments as keywords"):
            hooks.call("greet", "x")
        with pytest.raises(CallError, match="takes its context and nothing else"):
            hooks.call(DoneEvent(), None, 3)

    def test_a_rewritten_argument_must_be_passed(self, hooks):
        with pytest.raises(CallError, match="needs the argument 'text'"):
            hooks.call("polish")
        with pytest.raises(CallError, match="needs the argument 'call_next'"):
            hooks.call("serve", order=None)


class TestPlugins:
    def test_no_hooks_at_all_is_refused(self, hooks):
        with refused("plugin 'object' implements no hook; mark its methods with @hookimpl"):
            hooks.add(object())

    def test_the_same_plugin_twice_is_refused(self, hooks):
        class Plugin:
            @hookimpl
            def greet(self):
                return "hi"

        plugin = Plugin()
        hooks.add(plugin)
        with refused("plugin 'Plugin' is registered already"):
            hooks.add(plugin)
        with refused("is registered already, as 'Plugin'"):
            hooks.add(plugin, name="other")
        with refused("another plugin is registered as 'Plugin'; pass name="):
            hooks.add(Plugin())
        assert hooks.handler_count("greet") == 1

    def test_a_class_instead_of_an_instance_is_refused(self, hooks):
        class Plugin:
            @hookimpl
            def greet(self, guest):
                return guest

        with refused(r"plugin 'Plugin' is a class, not an instance; register Plugin\(\) instead"):
            hooks.add(Plugin)

    def test_a_method_named_like_a_hook_but_not_marked_is_refused(self, hooks):
        class Plugin:
            @hookimpl
            def greet(self):
                return "hi"

            def tally(self, guest):
                return 1

        with refused(r"has 'tally', named like a hook but not marked: add @hookimpl.*test_bad_input"):
            hooks.add(Plugin())
        assert hooks.handler_count("greet") == 0

    def test_a_module_may_import_a_function_named_like_a_hook(self, hooks):
        module = ModuleType("acme_plugin")

        def greet(guest):
            return guest

        greet.__module__ = "acme_plugin"
        module.greet = hookimpl(greet)
        module.tally = asyncio.sleep
        assert hooks.add(module) == "acme_plugin"
        assert asyncio.run(hooks.call("greet", guest="Ada", session_id="s")) == "Ada"

    def test_methods_inherited_from_the_typed_base_do_not_count(self, hooks):
        class Plugin(Shop):
            @hookimpl
            def greet(self, guest: str, session_id: str) -> str:
                return guest

        hooks.add(Plugin())
        assert hooks.report() == {"greet": ["Plugin"]}

    def test_hooks_that_exclude_each_other_are_refused_in_one_plugin(self, hooks):
        class Plugin:
            @hookimpl
            def menu(self):
                return "soup"

            @hookimpl
            def stream_menu(self):
                return "soup"

        with refused(
            "implements both 'menu' and 'stream_menu'|implements both 'stream_menu' and 'menu'"
        ):
            hooks.add(Plugin())

    def test_the_old_hookwrapper_is_refused(self, hooks):
        import pluggy

        class Plugin:
            @pluggy.HookimplMarker("hookline")(hookwrapper=True)
            def greet(self):
                yield

        with refused("old hookwrapper=True on 'greet'; use wrapper=True"):
            hooks.add(Plugin())

    def test_a_failed_registration_through_pm_leaves_nothing_behind(self, hooks):
        class Plugin:
            @hookimpl
            def greet(self):
                return "hi"

            @hookimpl
            def tally(self, nobody):
                return 1

        with refused("asks for 'nobody'"):
            hooks.pm.register(Plugin())
        assert hooks.report() == {}
        assert not hooks.pm.get_plugins()

    @pytest.mark.parametrize("hook", ["order", "admit", "opening", "serve"])
    def test_a_wrapper_where_it_could_hide_a_verdict_is_refused(self, hooks, hook):
        class Plugin:
            @hookimpl(wrapper=True, specname=hook)
            def around_it(self):
                return (yield)

        with refused("a wrapper must not turn a deny into an allow"):
            hooks.add(Plugin())

    def test_a_wrapper_that_is_no_generator_is_refused(self, hooks):
        class Plugin:
            @hookimpl(wrapper=True)
            async def greet(self):
                yield

        with refused("wrapper=True but is not a generator"):
            hooks.add(Plugin())


class TestOptions:
    def test_an_unknown_option_offers_the_nearest(self, hooks):
        with refused("unknown option 'tryfrist'; did you mean 'tryfirst'"):
            hooks.register("greet", lambda: "x", tryfrist=True)

    @pytest.mark.parametrize("limit", [0, -1, "5"])
    def test_a_time_limit_must_be_above_zero(self, hooks, limit):
        with refused("a time limit is a number of seconds above zero"):
            hooks.register("greet", lambda: "x", timeout=limit)

    @pytest.mark.parametrize("order", ["first", None, True, float("nan")])
    def test_an_order_must_be_a_number(self, hooks, order):
        with refused("an order is a number, and lower runs first"):
            hooks.register("greet", lambda: "x", order=order)

    def test_tryfirst_and_trylast_together_are_refused(self, hooks):
        with refused("both tryfirst and trylast"):
            hooks.register("greet", lambda: "x", tryfirst=True, trylast=True)

    @pytest.mark.parametrize("hook", ["greet", "tally", "bell", "sign", "state", "dishes", "serve"])
    def test_a_guard_where_nothing_can_be_denied_is_refused(self, hooks, hook):
        with refused("has nothing to deny or withhold"):
            hooks.register(hook, lambda **kw: None, guard=True)

    def test_a_pattern_needs_a_field_to_match(self, hooks):
        with refused("the hook has no field to match"):
            hooks.register("greet", lambda: "x", when="A*")
        with refused("neither a pattern nor a predicate"):
            hooks.register("greet", lambda: "x", when=3)

    def test_a_predicate_must_not_be_async(self, hooks):
        async def when(guest):
            return True

        with refused("async predicate"):
            hooks.register("greet", lambda: "x", when=when)

    def test_a_handler_must_be_callable(self, hooks):
        with refused("must be callable"):
            hooks.register("greet", "hello")

    def test_a_scoped_handler_needs_a_hook_that_carries_a_key(self, hooks):
        with refused("hook 'tally' carries no scope key"):
            hooks.scope("s1").register("tally", lambda: 1)
        with refused("a scope needs a key"):
            hooks.scope(None)

    def test_an_around_handler_must_take_call_next(self, hooks):
        with refused("does not take call_next"):
            hooks.register("serve", lambda order: "x")


class TestResults:
    @pytest.mark.parametrize("kind", ["sync", "async"])
    async def test_a_wrong_return_type_names_hook_handler_and_type(self, hooks, kind):
        def wrong(guest):
            return 5

        async def wrong_async(guest):
            return 5

        hooks.register("greet", wrong if kind == "sync" else wrong_async)
        with pytest.raises(
            WrongResult, match=r"wrong(_async)? returned int on hook 'greet', which takes str or None"
        ) as caught:
            await hooks.call("greet", guest="Ada", session_id="s")
        assert isinstance(caught.value, TypeError)

    async def test_a_value_outside_a_literal_is_a_wrong_result_and_denies(self, hooks, caplog):
        hooks.register("approve", lambda request: "aprove")
        assert await hooks.call("approve", request="x") == "reject"
        assert (
            "returned 'aprove' on hook 'approve', which takes 'approve' | 'reject' or None"
            in caplog.text
        )

    async def test_a_wrong_result_under_skip_is_logged_and_never_used(self, hooks, caplog):
        hooks.register("tally", lambda guest: "many")
        hooks.register("tally", lambda guest: 2)
        assert await hooks.call("tally", guest="Ada") == [2]
        assert "hook.tally_failed adapter=" in caplog.text
        assert "which takes int or None" in caplog.text

    async def test_any_result_on_an_event_of_the_wrong_class_is_refused(self, hooks, caplog):
        hooks.register(OrderEvent, lambda e: {"block": True}, guard=True)
        verdict = await hooks.call(OrderEvent("soup"))
        assert verdict.denied
        assert "returned dict on hook 'order'" in verdict.reason


class TestAsyncOnSync:
    def test_an_async_implementation_of_a_sync_hook_is_skipped_with_a_warning(self, hooks, caplog):
        async def late(guest):
            return "late"

        hooks.register("sign", late)
        hooks.register("sign", lambda guest: asyncio.sleep(0))
        hooks.register("sign", lambda guest: "now")
        with caplog.at_level(logging.WARNING):
            assert hooks.call_sync("sign", guest="Ada") == "now"
        warnings = [r.getMessage() for r in caplog.records]
        assert len(warnings) == 2
        assert re.fullmatch(r"hook.async_not_supported hook=sign adapter=.*late", warnings[-1])

    def test_an_async_guard_in_a_synchronous_call_denies(self, hooks):
        async def guard(event):
            return None

        hooks.register(OrderEvent, guard, guard=True)
        verdict = hooks.call_sync(OrderEvent("soup"))
        assert verdict.denied
        assert "hook.async_not_supported" in verdict.reason

    def test_an_async_authoriser_in_a_synchronous_call_denies(self, hooks):
        async def allow(guest):
            return True

        hooks.register("admit", allow)
        assert hooks.call_sync("admit", guest="Ada") is False

    def test_an_async_implementation_is_a_failed_outcome(self, hooks):
        async def close(day):
            return 1

        hooks.register("closing", close)
        [outcome] = hooks.call_sync("closing", day="Monday")
        assert not outcome.success
        assert "hook.async_not_supported hook=closing" in str(outcome.error)


class TestTimeLimits:
    async def test_an_async_handler_that_never_returns_is_cut_off(self, hooks):
        async def forever(guest):
            await asyncio.Event().wait()

        hooks.register("greet", forever, timeout=0.01)
        with pytest.raises(HookTimeout, match=r"forever did not answer hook 'greet' within 0.01 s"):
            await hooks.call("greet", guest="Ada", session_id="s")

    async def test_a_sync_handler_that_never_returns_is_left_behind(self, hooks, caplog):
        release = threading.Event()

        def forever(guest):
            release.wait(5)
            return "too late"

        hooks.register("greet", forever, timeout=0.02)
        for _ in range(3):
            with pytest.raises(HookTimeout, match="did not answer"):
                await hooks.call("greet", guest="Ada", session_id="s")
        assert "hook.left_behind hook=greet" in caplog.text
        with pytest.raises(HookTimeout, match="3 earlier calls are still running"):
            await hooks.call("greet", guest="Ada", session_id="s")
        release.set()

    async def test_a_guard_that_swallows_its_cancellation_never_allows(self, hooks):
        async def swallow(event):
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                return OrderResult()

        hooks.register(OrderEvent, swallow, guard=True, timeout=0.01)
        verdict = await hooks.call(OrderEvent("soup"))
        assert verdict.denied
        assert "did not answer hook 'order' within 0.01 s" in verdict.reason

    async def test_a_guard_that_swallows_every_cancellation_is_dropped(self, hooks):
        async def cling(event):
            while True:
                try:
                    await asyncio.sleep(5)
                except asyncio.CancelledError:
                    pass

        hooks.register(OrderEvent, cling, guard=True, timeout=0.01)
        verdict = await asyncio.wait_for(hooks.call(OrderEvent("soup")), 30)
        assert verdict.denied

    async def test_a_guard_that_blocks_the_loop_past_its_limit_never_allows(self, hooks):
        async def block(event):
            time.sleep(0.03)
            return OrderResult()

        hooks.register(OrderEvent, block, guard=True, timeout=0.01)
        assert (await hooks.call(OrderEvent("soup"))).denied

    async def test_a_callers_own_cancellation_still_propagates(self, hooks):
        async def forever(guest):
            await asyncio.Event().wait()

        hooks.register("bell", forever, timeout=30)
        task = asyncio.create_task(hooks.call("bell", guest="Ada"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_a_limit_of_a_sync_handler_covers_what_it_returns_to_await(self, hooks):
        hooks.register("greet", lambda guest: asyncio.sleep(5, "late"), timeout=0.02)
        with pytest.raises(HookTimeout):
            await hooks.call("greet", guest="Ada", session_id="s")

    def test_a_synchronous_call_keeps_the_limit_too(self, hooks):
        release = threading.Event()
        hooks.register("sign", lambda guest: release.wait(5), timeout=0.02)
        with pytest.raises(HookTimeout):
            hooks.call_sync("sign", guest="Ada")
        release.set()


class TestErrorsThatCannotBeShown:
    class Unprintable(Exception):
        def __str__(self):
            raise RuntimeError("no message for you")

    async def test_it_is_logged_and_skipped(self, hooks, caplog):
        def fail(guest):
            raise self.Unprintable

        hooks.register("tally", fail)
        hooks.register("tally", lambda guest: 1)
        assert await hooks.call("tally", guest="Ada") == [1]
        assert "Unprintable: <its message cannot be shown>" in caplog.text

    async def test_it_denies_with_a_reason(self, hooks):
        def fail(event):
            raise self.Unprintable

        hooks.register(OrderEvent, fail, guard=True)
        verdict = await hooks.call(OrderEvent("soup"))
        assert verdict.denied
        assert "its message cannot be shown" in verdict.reason


class TestDeclarations:
    LEGAL = {
        "first": {RAISE, SKIP},
        "collect": {RAISE, SKIP},
        "flatten": {RAISE, SKIP},
        "merge": {RAISE, SKIP},
        "join": {RAISE, SKIP},
        "chain": {RAISE, SKIP},
        "patch": {RAISE, SKIP},
        "gate": {SKIP, DENY},
        "notify": {RAISE, SKIP},
        "outcomes": {CAPTURE},
        "around": {RAISE},
    }
    RESULT = {"flatten": list, "merge": dict, "join": str}
    REDUCERS = {
        "first": first, "collect": collect, "flatten": flatten, "merge": merge, "join": join,
        "chain": chain("x"), "patch": patch, "gate": gate, "notify": notify, "outcomes": outcomes,
        "around": around,
    }  # fmt: skip

    @each_row("errors", [RAISE, SKIP, DENY, CAPTURE])
    @each_row("name", REDUCERS)
    def test_an_error_policy_that_means_nothing_is_refused(self, name, errors):
        reducer = self.REDUCERS[name]

        def declare():
            if name in ("patch", "gate"):

                @event(reducer, errors=errors)
                @dataclass
                class Thing(Event[OrderResult]):
                    type: str = "thing"

                return

            def thing(self, x, call_next):
                """A thing."""

            thing.__annotations__["return"] = self.RESULT.get(name, str) | None
            hookspec(reducer, errors=errors)(thing)

        if errors in self.LEGAL[name]:
            declare()
        else:
            with pytest.raises(DeclarationError, match="hook 'thing'"):
                declare()

    @each_row(
        ("reducer", "options", "annotation", "reason"),
        [
            (gate, {"errors": SKIP}, str, "`gate` needs an event"),
            (chain("y"), {}, str, "chain names 'y', which is no parameter"),
            (flatten, {}, str, "`flatten` needs a result type of list"),
            (flatten(unique="a", single=True), {}, list, "takes unique= or single=, not both"),
            (merge, {}, str, "`merge` needs a result type of dict"),
            (merge(into="x"), {}, dict, "needs order=OLDEST"),
            (merge(into="y"), {"order": OLDEST}, dict, "names no parameter"),
            (join, {}, int, "`join` needs a result type of str"),
            (around, {}, str, "needs a parameter named call_next"),
            (first, {"errors": DENY}, str, "needs a result type of bool"),
            (first(deny=3), {"errors": DENY}, str, "not of the result type"),
            (first, {"timeout": 0}, str, "timeout must be above zero"),
            (first, {"scope": "y"}, str, "scope='y' names no parameter"),
            (first, {"match": "y"}, str, "match='y' names no parameter"),
            (first, {}, asyncio.Future, "must not be awaitable"),
        ],
    )
    def test_a_declaration_that_means_nothing_is_refused(self, reducer, options, annotation, reason):
        def thing(self, x):
            """A thing."""

        thing.__annotations__["return"] = annotation
        with pytest.raises(DeclarationError, match=reason):
            hookspec(reducer, **options)(thing)

    def test_other_shapes_are_refused(self):
        with pytest.raises(DeclarationError, match="every parameter must be a plain one"):

            @hookspec(first)
            def starred(self, *x) -> Answer[str]: ...

        with pytest.raises(DeclarationError, match="parameter '_x' must be a public name"):

            @hookspec(first)
            def private(self, _x) -> Answer[str]: ...

        with pytest.raises(DeclarationError, match="must be an object, not a string"):

            @hookspec(first)
            def quoted(self, x) -> "Answer[str]": ...

        with pytest.raises(DeclarationError, match="must be a dataclass"):

            @event(notify)
            class NotData(Event[None]):
                pass

        with pytest.raises(DeclarationError, match="of a result class with verdict"):

            @event(gate)
            @dataclass
            class NoResult(Event[None]):
                type: str = "no_result"

        with pytest.raises(DeclarationError, match="needs a field"):

            @event(notify)
            @dataclass
            class NoType(Event[None]):
                x: int = 0

    def test_a_name_declared_twice_is_refused(self):
        class Again(Family, name="again"):
            @hookspec(first)
            def greet(self, guest: str) -> Answer[Any]:
                """Say hello again."""

        with pytest.raises(DeclarationError, match="hook 'greet' is declared already"):
            Catalog(Shop, Again)
        with pytest.raises(DeclarationError, match="declares no hook"):
            shop().declare(object)
