"""One test for all rows of a table, where each row takes less time than a test of its own costs.

    @each_row("text, number", [("one", 1), ("two", 2)])
    def test_a_number_is_read(text, number): ...

It takes the arguments of `pytest.mark.parametrize`. All rows share the fixtures of the test, so use it
only where a row leaves nothing behind. Every row runs; those that fail are reported together.
"""

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], object] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test once with each row, as one test."""
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = [dict(zip(given, _values(row, len(given)), strict=True)) for row in rows]
    labels = None if ids is None or callable(ids) else [*ids]

    def label(number: int) -> str:
        if labels is not None:
            return labels[number]
        return "-".join(str(ids(v) if callable(ids) else repr(v))[:200] for v in table[number].values())

    @contextmanager
    def checked() -> Generator[Callable[[int], Any]]:
        failed: list[Exception] = []

        @contextmanager
        def row(number: int) -> Generator[None]:
            try:
                yield
            except Exception as error:
                error.add_note(f"row {number}: {label(number)}")
                failed.append(error)

        yield row
        if failed:
            raise ExceptionGroup(f"{len(failed)} of {len(table)} rows failed", failed)

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        assert table, f"{test.__name__} has no row"

        @wraps(test)
        def run(*owner: Any, **fixtures: Any) -> None:
            with checked() as row:
                for number, values in enumerate(table):
                    with row(number):
                        test(*owner, **fixtures, **values)

        @wraps(test)
        async def wait(*owner: Any, **fixtures: Any) -> None:
            with checked() as row:
                for number, values in enumerate(table):
                    with row(number):
                        await test(*owner, **fixtures, **values)

        every: Any = wait if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        kept = [p for p in signature.parameters.values() if p.name not in given]
        every.__signature__ = signature.replace(parameters=kept)
        return every

    return decorate


def _values(row: Any, count: int) -> tuple[Any, ...]:
    if isinstance(row, type(pytest.param())):
        assert not row.marks, "a row cannot be marked"
        return tuple(row.values)
    return (row,) if count == 1 else tuple(row)
