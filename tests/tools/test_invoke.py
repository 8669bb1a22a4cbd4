"""How functions of each kind run, stream, fail, hang and are cancelled."""

import asyncio
import functools
import subprocess
import sys
import textwrap
import threading
import time
from contextvars import ContextVar
from functools import partial

import pytest

from hookline.tools import Result, ToolContext, ToolError, tool

unregistered = partial(tool, registry=None)
colour: ContextVar[str] = ContextVar("colour", default="none")


class TestKinds:
    async def test_a_sync_function_runs_in_a_thread_with_the_callers_context(self, call):
        @unregistered()
        def where() -> list:
            return [threading.current_thread() is threading.main_thread(), colour.get()]

        colour.set("red")
        assert await call(where) == [False, "red"]

    async def test_an_async_function_runs_in_the_callers_task(self, call):
        @unregistered()
        async def where() -> bool:
            return threading.current_thread() is threading.main_thread()

        assert await call(where) is True

    async def test_a_generator_reports_what_it_yields_and_the_last_is_the_result(self, call, reports):
        @unregistered()
        def count(to: int):
            yield from range(to)

        assert await call(count, to=3) == 2
        assert reports == [0, 1, 2]

    async def test_a_generators_return_value_is_the_result(self, call, reports):
        @unregistered()
        def count(to: int):
            yield from range(to)
            return "done"

        assert await call(count, to=2) == "done"
        assert reports == [0, 1]

    async def test_an_async_generator_reports_and_its_last_is_the_result(self, call, reports):
        @unregistered()
        async def count(to: int):
            for n in range(to):
                yield n

        assert await call(count, to=3) == 2
        assert reports == [0, 1, 2]
        assert await call(count, to=0) is None

    async def test_a_result_is_the_result_and_no_progress(self, call, reports):
        @unregistered()
        async def stream():
            yield "half"
            yield Result("whole")

        @unregistered()
        def steps():
            yield "half"
            yield Result("whole")

        assert await call(stream) == "whole"
        assert await call(steps) == "whole"
        assert reports == ["half", "half"]

    async def test_a_sync_function_may_return_an_awaitable_or_an_async_generator(self, call, reports):
        async def later():
            return 1

        async def stream():
            yield 2

        assert await call(unregistered(name="a")(lambda: later())) == 1
        assert await call(unregistered(name="b")(lambda: stream())) == 2
        assert reports == [2]

    async def test_partials_wrapped_functions_methods_and_objects_are_functions_too(self, call):
        async def add(a: int, b: int) -> int:
            return a + b

        @functools.wraps(add)
        def wrapped(*args, **kwargs):
            return add(*args, **kwargs)

        class Adder:
            async def __call__(self, a: int, b: int) -> int:
                return a + b

            def method(self, a: int, b: int) -> int:
                return a + b

        for function in (partial(add, b=2), wrapped, Adder(), Adder().method):
            assert await call(unregistered(name="add")(function), a=1, b=2) == 3

    async def test_positional_only_and_keyword_only_parameters(self, call):
        @unregistered()
        def order(a: int, context: ToolContext, /, b: int, *, c: int = 3) -> list:
            return [a, b, c, context.session_id]

        assert await call(order, a=1, b=2) == [1, 2, 3, "s1"]

    async def test_the_context_is_handed_in_and_reports(self, call, reports, workspace):
        @unregistered()
        def work(context: ToolContext) -> str:
            context.report("half")
            return str(context.workspace)

        assert await call(work) == str(workspace)
        assert reports == ["half"]

    async def test_the_model_cannot_set_the_context(self, call):
        @unregistered()
        def work(context: ToolContext) -> None: ...

        with pytest.raises(ToolError, match="context: unknown argument"):
            await call(work, context={})

    async def test_many_sync_calls_run_side_by_side(self, call):
        barrier = threading.Barrier(40)

        @unregistered()
        def meet() -> int:
            return barrier.wait(10)

        assert sorted(await asyncio.gather(*(call(meet) for _ in range(40)))) == list(range(40))


class TestFailing:
    @pytest.mark.parametrize("kind", ["sync", "async", "generator", "async generator"])
    async def test_what_a_tool_raises_comes_out_as_it_is(self, call, kind):
        async def async_() -> None:
            raise KeyError("lost")

        async def async_generator():
            yield 1
            raise KeyError("lost")

        def sync() -> None:
            raise KeyError("lost")

        def generator():
            yield 1
            raise KeyError("lost")

        kinds = {
            "sync": sync, "async": async_, "generator": generator, "async generator": async_generator,
        }  # fmt: skip
        with pytest.raises(KeyError, match="lost"):
            await call(unregistered(name="x")(kinds[kind]))

    async def test_a_tool_cannot_end_the_program(self, call):
        async def leave_async() -> None:
            sys.exit(3)

        with pytest.raises(ToolError, match=r"tried to end the program \(exit code 3\)"):
            await call(unregistered(name="leave")(lambda: sys.exit(3)))
        with pytest.raises(ToolError, match="tried to end the program"):
            await call(unregistered(name="leave")(leave_async))

    async def test_a_tool_that_cancels_itself_is_a_failing_tool(self, call):
        @unregistered()
        async def quitter() -> None:
            raise asyncio.CancelledError

        with pytest.raises(ToolError, match="'quitter' cancelled itself"):
            await call(quitter)

    async def test_a_stray_stop_iteration_does_not_hang_the_call(self, call):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await call(unregistered(name="x")(lambda: next(iter([]))))


class TestHanging:
    async def test_cancellation_reaches_an_async_tool(self, call):
        ended = []

        @unregistered()
        async def hang() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(True)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await call(hang)
        assert ended == [True]

    async def test_cancellation_reaches_an_async_generator(self, call, reports):
        ended = []

        @unregistered()
        async def hang():
            try:
                yield "begun"
                await asyncio.sleep(60)
            finally:
                ended.append(True)

        task = asyncio.create_task(call(hang))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (ended, reports) == ([True], ["begun"])

    async def test_a_cancelled_generator_ends_at_its_next_step(self, call, reports):
        ended = threading.Event()

        @unregistered()
        def tick():
            try:
                while True:
                    time.sleep(0.01)
                    yield "tick"
            finally:
                ended.set()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await call(tick)
        seen = len(reports)
        assert await asyncio.to_thread(ended.wait, 5)
        assert len(reports) - seen <= 1

    async def test_a_sync_tool_that_hangs_is_left_behind_and_reports_no_more(self, call, reports):
        go, ended = threading.Event(), threading.Event()

        @unregistered()
        def hang(context: ToolContext) -> str:
            go.wait(30)
            context.report("too late")
            ended.set()
            return "too late"

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await call(hang)
        go.set()
        assert await asyncio.to_thread(ended.wait, 5)
        assert reports == []

    def test_a_tool_that_hangs_for_ever_does_not_hold_up_the_exit(self):
        code = textwrap.dedent("""
            import asyncio, threading
            from hookline.tools import tool, ToolContext

            @tool
            def hang() -> None:
                threading.Event().wait()

            async def main():
                try:
                    async with asyncio.timeout(0.1):
                        await hang._invoke({}, ToolContext(), print)
                except TimeoutError:
                    print("given up")

            asyncio.run(main())
        """)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True
        )
        assert done.stdout == "given up\n"
        assert done.stderr == ""
