"""The code that dispatches a hook: readable, and made of what its reducer says."""

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import hookline
from hookline.hooks import (
    OLDEST,
    SKIP,
    Answer,
    CallError,
    Catalog,
    Dispatch,
    Family,
    HookRegistry,
    Reducer,
    hookimpl,
    hookspec,
)

from .sample import CATALOG, OrderEvent


class Largest(Reducer):
    name, returns = "largest", "the largest result"
    start = "_largest = None"
    add = "if _largest is None or _r > _largest: _largest = _r"
    end = "_largest"
    firstresult = True


class Until(Reducer):
    """Stops at the first result that reaches a limit, and returns the sum so far."""

    name, returns = "until", "the sum"
    stops = True

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.start = "_sum = 0"
        self.add = f"_sum = _capped(_sum + _r)\nif _sum >= {limit}:\n    return _sum"
        self.end = "_sum"
        self.names = {"_capped": lambda value: min(value, limit)}


class Market(Family, name="market"):
    @hookspec(Largest(), order=OLDEST, errors=SKIP)
    def offer(self, item: str) -> Answer[int]:
        """Offer a price."""

    @hookspec(Until(5), order=OLDEST, errors=SKIP)
    def fill(self, item: str) -> Answer[int]:
        """Add to the basket."""


def market(name: str, results: list[Any]) -> HookRegistry:
    hooks = HookRegistry(Catalog(Market))
    for number, result in enumerate(results):

        def plain(item: str, result: Any = result) -> Any:
            return 1 // 0 if result == "fails" else result

        async def later(item: str, result: Any = result) -> Any:
            return 1 // 0 if result == "fails" else result

        hooks.register(name, later if number % 2 else plain)
    return hooks


class TestAReducerOfOnesOwn:
    @pytest.mark.parametrize("count", [1, 100], ids=["written out", "in a loop"])
    @pytest.mark.parametrize("traced", [False, True])
    def test_it_reduces_whatever_the_layout(self, count, traced):
        hooks = market("offer", [2, None, "fails", 7, "no int", 5] * count)
        records: list[Dispatch] = []
        if traced:
            hooks.trace(records.append)
        assert asyncio.run(hooks.call("offer", item="lamp")) == 7
        assert [record.value for record in records] == [7] * traced

    @pytest.mark.parametrize("traced", [False, True])
    def test_it_may_stop_early_and_use_names_of_its_own(self, traced):
        hooks = market("fill", [2, None, 9, "fails"])
        records: list[Dispatch] = []
        if traced:
            hooks.trace(records.append)
        assert asyncio.run(hooks.call("fill", item="egg")) == 5
        assert [len(record.calls) for record in records] == [3] * traced

    def test_it_may_be_wrapped(self):
        class Doubling:
            @hookimpl(wrapper=True)
            def offer(self):
                return 2 * (yield)

        hooks = market("offer", [3, 4])
        hooks.add(Doubling())
        assert asyncio.run(hooks.call("offer", item="lamp")) == 8

    def test_it_takes_part_in_the_other_ways_of_calling(self):
        hooks = market("offer", [3, None, 4])
        assert asyncio.run(hooks.call_many("offer", item="lamp")) == [3, None, 4]
        assert asyncio.run(hooks.call_first("offer", item="lamp")) == 3


def test_only_the_reducers_know_which_reducer_is_which():
    """Whatever else needs to know asks for a flag, so that a reducer is one class."""
    asks = re.compile(r"reducer\.name\s*(?:==|!=|in\b|not in\b)|isinstance\([^(),]*reducer\s*,")
    root = Path(hookline.__file__).parent
    files = [file for file in root.rglob("*.py") if file != root / "hooks" / "reducers.py"]
    assert [str(file) for file in files if asks.search(file.read_text(encoding="utf-8"))] == []


class TestTheSource:
    @pytest.mark.parametrize("name", CATALOG)
    def test_it_is_python_and_names_who_is_called_in_run_order(self, hooks, name):
        def older(*_, **given): ...
        async def newer(*_, **given): ...

        hooks.register(name, older)
        hooks.register(name, newer)
        source = hooks[name].source()
        ast.parse(source)
        called = re.findall(r"# \S+\.(older|newer) \(\S+test_source.py:\d+\)", source)
        assert called == [impl.function.__name__ for impl in hooks[name].run_order()]
        assert str(hooks[name].spec.reducer) in source

    def test_it_changes_with_what_is_attached(self, hooks):
        before = hooks["tally"].source()
        off = hooks.register("tally", lambda: 1, when=lambda guest: True)
        assert "if _w0(guest):" in hooks["tally"].source()
        off()
        assert hooks["tally"].source() == before

    def test_it_shows_wrappers_observers_and_scopes(self, hooks):
        class Wrapper:
            @hookimpl(wrapper=True)
            def greet(self):
                return (yield)

        hooks.add(Wrapper(), name="wrapping")
        hooks.subscribe(print)
        hooks.scope("s").register("greet", lambda: None)
        assert "# wrapped by wrapping (" in hooks["greet"].source()
        assert "# scopes with handlers of their own: 1" in hooks["greet"].source()
        assert "# observers: 1" in hooks["order"].source()

    def test_a_name_with_line_breaks_stays_in_its_comment(self, hooks):
        class Plugin:
            @hookimpl
            def sign(self): ...

        hooks.add(Plugin(), name="bad\nimport os")
        assert "\nimport os" not in hooks["sign"].source()


class TestCallingByName:
    """Each method keeps a function for the names it was called with first."""

    @pytest.mark.parametrize("method", ["call_sync", "run", "call_first_sync", "call_many_sync"])
    def test_other_names_get_another_function(self, hooks, method):
        hooks.register("greet", lambda **given: ",".join(given))
        call = getattr(hooks, method)
        for given in (
            {"guest": "Ada", "session_id": "s"},
            {"session_id": "s", "guest": "Ada"},
            {"guest": "Ada"},
            {},
            {"guest": "Ada", "session_id": "s"},
        ):
            expected = ",".join(name for name in ("guest", "session_id") if name in given)
            assert call("greet", **given) in (expected, [expected])
        with pytest.raises(CallError, match="takes guest, session_id, not 'gest'"):
            call("greet", gest="Ada", session_id="s")

    def test_a_change_holds_from_the_next_call_on(self, hooks):
        off = hooks.register("tally", lambda: 1)
        assert hooks.run("tally", guest="Ada") == [1]
        hooks.register("tally", lambda: 2)
        assert hooks.run("tally", guest="Ada") == [1, 2]
        off()
        assert hooks.run("tally", guest="Ada") == [2]

    def test_the_context_of_an_event_may_be_left_out(self, hooks):
        seen: list[Any] = []
        hooks.register("order", lambda event, ctx: seen.append(ctx))
        asyncio.run(hooks.call("order", event=OrderEvent("soup")))
        asyncio.run(hooks.call("order", ctx=1, event=OrderEvent("soup")))
        asyncio.run(hooks.call(OrderEvent("soup"), 2))
        with pytest.raises(CallError, match="needs the argument 'event'"):
            asyncio.run(hooks.call("order", ctx=1))
        assert seen == [None, 1, 2]
