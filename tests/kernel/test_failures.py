"""One call fails and the others go on: who failed, and what those after it see."""

import sys
from typing import Any

import pytest

from hookline.hooks import HookRegistry

from .sample import Order

KEPT = ValueError("raised before")


def failing_before() -> None:
    """Raise an error that has been through another traceback already."""
    try:
        raise KEPT
    except ValueError:
        pass
    raise KEPT


class Disguised(ValueError):
    """An error that hides where it came from."""

    __traceback__ = property(lambda self: None, lambda self, value: None)  # type: ignore[assignment]


def disguised() -> None:
    raise Disguised


def named(hooks: HookRegistry, name: str, handlers: list[Any]) -> None:
    for number, handler in enumerate(handlers):
        handler.__qualname__ = f"number_{number}"
        hooks.register(name, handler)


def failed(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Who was said to have failed."""
    messages = (record.getMessage() for record in caplog.records)
    return [text.split("number_")[1][0] for text in messages if "_failed" in text]


async def test_a_chain_goes_on_from_the_value_before_each_failure(hooks, caplog):
    def broken() -> None:
        raise ValueError

    named(
        hooks,
        "prepare",
        [
            lambda options: {**options, "a": 1},
            lambda: broken(),
            lambda options: {**options, "b": 2},
            lambda: "no dict",
            lambda options: {**options, "c": len(options)},
            lambda: broken(),
        ],
    )
    result = await hooks.call("prepare", order=Order("soup"), dish="soup", options={})
    assert result == {"a": 1, "b": 2, "c": 2}
    assert failed(caplog) == ["1", "3", "5"]


async def test_collect_keeps_what_came_before_and_after_each_failure(hooks, caplog):
    async def answer() -> int:
        return 4

    named(
        hooks,
        "tally",
        [lambda: 0, lambda: None, lambda: 1 / 0, lambda: 3, answer, lambda: "x", lambda: 6],
    )
    assert await hooks.call("tally", guest="Ada") == [0, 3, 4, 6]
    assert failed(caplog) == ["2", "5"]


@pytest.mark.parametrize("culprit", [failing_before, disguised], ids=["raised before", "disguised"])
async def test_who_failed_is_known_whatever_the_error_carries(hooks, caplog, culprit):
    rung: list[int] = []
    named(
        hooks,
        "bell",
        [lambda: rung.append(0), lambda: culprit(), lambda: rung.append(2), lambda: culprit()],
    )
    await hooks.call("bell", guest="Ada")
    assert rung == [0, 2]
    assert failed(caplog) == ["1", "3"]


async def test_those_after_a_failure_do_not_see_it(hooks):
    seen: list[Any] = []

    async def look() -> None:
        seen.append(sys.exc_info()[1])
        try:
            raise KeyError
        except KeyError as error:
            seen.append(error.__context__)

    hooks.register("bell", lambda: 1 / 0)
    hooks.register("bell", look)
    await hooks.call("bell", guest="Ada")
    assert seen == [None, None]


async def test_all_of_the_most_that_are_written_out_may_fail(hooks, caplog):
    for _ in range(64):
        hooks.register("bell", lambda: 1 / 0)
    await hooks.call("bell", guest="Ada")
    assert caplog.text.count("hook.bell_failed") == 64


async def test_a_handler_that_dispatches_its_own_hook_is_named_for_its_own_failure(hooks, caplog):
    depth = 0

    async def again(guest: str) -> None:
        nonlocal depth
        depth += 1
        if depth == 1:
            await hooks.call("bell", guest=guest)
        raise ValueError(f"at depth {depth}")

    named(hooks, "bell", [lambda: None, again, lambda: None])
    await hooks.call("bell", guest="Ada")
    assert failed(caplog) == ["1", "1"]


async def test_what_was_removed_meanwhile_still_runs_after_a_failure(hooks):
    rung: list[str] = []

    def breaking() -> None:
        off()
        raise ValueError

    hooks.register("bell", breaking)
    off = hooks.register("bell", lambda: rung.append("last"))
    await hooks.call("bell", guest="Ada")
    assert rung == ["last"]
    await hooks.call("bell", guest="Ada")
    assert rung == ["last"]


async def test_an_error_that_goes_on_names_the_one_of_many_that_raised_it(hooks):
    named(hooks, "polish", [lambda text: text, lambda: 1 / 0, lambda text: text])
    with pytest.raises(ZeroDivisionError) as raised:
        await hooks.call("polish", text="a")
    assert "number_1" in raised.value.__notes__[0]
