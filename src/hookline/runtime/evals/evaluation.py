"""Running cases: each in a conversation of its own, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hookline.errors import EvalError, OutputInvalid
from hookline.hooks.errors import HooklineError, error_text
from hookline.runtime.agent_parts import output_form

from .case import UNSET, Case, check_cases, check_share
from .report import CaseResult, EvalReport, EvalRun

if TYPE_CHECKING:
    from hookline.agent.output import OutputForm
    from hookline.runtime.agent import Agent

T = TypeVar("T")


async def evaluate(
    agent: Agent[T],
    cases: Iterable[Case[T]],
    *,
    runs: int = 1,
    concurrency: int = 4,
    at_least: float = 1.0,
    tell: Callable[[EvalRun], None] = lambda run: None,
) -> EvalReport:
    """Run an agent on every case, `runs` times, and report how many runs passed.

    A run that raises has failed. An error that every run would meet, such as an unknown model or a
    missing key, is raised instead. `tell` is called after each run.
    """
    check_share(at_least, "at_least")
    for name, number in (("runs", runs), ("concurrency", concurrency)):
        if number < 1:
            raise EvalError(f"{name} is at least 1, not {number}")
    form = output_form(agent.output_type)
    checked = [fitting(case, agent.output_type, form) for case in check_cases(cases)]
    results = [CaseResult(case.name, at_least=case.at_least) for case in checked]
    waiting = iter([(number, case) for number, case in enumerate(checked) for _ in range(runs)])
    started = perf_counter()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, runs * len(checked))):
                group.create_task(_work(agent, waiting, results, tell))
    except BaseExceptionGroup as errors:
        raise first_of(errors) from None
    return EvalReport(results, at_least, perf_counter() - started)


def first_of(group: BaseExceptionGroup[Any]) -> BaseException:
    """The first error of a group."""
    error: Any = group
    while isinstance(error, BaseExceptionGroup):
        error = cast("Any", error).exceptions[0]
    return error


def fitting(case: Case[Any], kind: Any, form: OutputForm[Any] | None) -> Case[Any]:
    """A case whose expected value has the type of the answers; plain data is read as that type."""
    expected = case.expected
    if expected is UNSET:
        return case
    if form is None:
        if not isinstance(expected, str):
            raise EvalError(
                f"case {case.name!r}: the agent answers with text, and expected is {expected!r}; "
                "give the agent output=, or the case a check"
            )
        return case
    try:
        return replace(case, expected=form.value(expected))
    except OutputInvalid as error:
        shown = getattr(kind, "__name__", str(kind))
        raise EvalError(f"case {case.name!r}: expected does not fit output={shown}: {error}") from None


async def _work(
    agent: Agent[Any],
    waiting: Iterator[tuple[int, Case[Any]]],
    results: list[CaseResult],
    tell: Callable[[EvalRun], None],
) -> None:
    for number, case in waiting:
        run = await run_case(agent, case)
        results[number].runs.append(run)
        tell(run)


async def run_case(agent: Agent[Any], case: Case[Any]) -> EvalRun:
    """Run a case once."""
    started = perf_counter()
    try:
        result = await agent.run(case.input)
    except HooklineError as error:
        if error.exit_code == 2:  # the agent cannot run as it is
            raise
        return EvalRun(error_text(error), perf_counter() - started, is_error=True)
    except Exception as error:
        return EvalRun(error_text(error), perf_counter() - started, is_error=True)
    seconds = perf_counter() - started
    denials = [str(each) for each in result.decisions if each.decision == "deny"]
    reason = await case.judge(result)
    return EvalRun(reason, seconds, result.cost, result.text, denials, result=result)
