"""`Case`: an input of an evaluation, and what is expected of the run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, cast

from typing_extensions import TypeVar

from hookline.errors import EvalError
from hookline.hooks.errors import error_text
from hookline.runtime.agent_parts import check_function
from hookline.text.document import one_line
from hookline.types import Part, text_of

if TYPE_CHECKING:
    from hookline.runtime.run_record import RunResult


class _Unset(Enum):
    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


Unset: TypeAlias = Literal[_Unset.UNSET]
UNSET: Final = _Unset.UNSET
"""Instead of an expected value, which may be None."""

T = TypeVar("T", default=Any)
NAMED = 40
"""Characters of an input that name a case without a name."""

Verdict: TypeAlias = bool | str | None
"""What a checker returns: True or None if the run passed; False, or the reason, if it failed."""


@dataclass(frozen=True, slots=True)
class Case(Generic[T]):
    """An input, and what is expected of the run. Everything that is given must hold."""

    input: str | Sequence[Part]
    expected: T | Unset = UNSET
    """What `result.output` must equal. Blanks around text do not count."""
    _: KW_ONLY
    contains: str | Sequence[str] = ()
    """What must be in the text of the answer, in any case."""
    called: str | Sequence[str] = ()
    """The tools that must be called, and run."""
    denied: str | Sequence[str] = ()
    """The tools of which a call must be denied."""
    check: Callable[[RunResult[T]], Verdict | Awaitable[Verdict]] | None = None
    """Returns True or None if the run passed; False, or the reason, if it failed. May be async, and
    may use `assert`."""
    name: str = ""
    """By default the beginning of the input."""
    at_least: float | None = None
    """The share of this case's runs that must pass."""

    def __post_init__(self) -> None:
        if not self.name:
            text = self.input if isinstance(self.input, str) else text_of(self.input)
            object.__setattr__(self, "name", one_line(text, NAMED) or "(no text)")
        check_share(self.at_least, f"case {self.name!r}: at_least")
        if self.check is not None:
            check_function(self.check, f"the check of case {self.name!r}")
        if self.expected is UNSET and not (self.contains or self.called or self.denied or self.check):
            raise EvalError(
                f"case {self.name!r} expects nothing: give it expected, contains, called, denied or "
                "check"
            )

    async def judge(self, result: RunResult[T]) -> str:
        """Why a run failed; nothing if it passed."""
        for wrong in (self._output(result), self._text(result), self._tools(result)):
            if wrong:
                return wrong
        return "" if self.check is None else await checked(self.check, result)

    def _output(self, result: RunResult[T]) -> str:
        if self.expected is UNSET:
            return ""
        expected: Any = self.expected
        found: Any = result.output
        if isinstance(expected, str) and isinstance(found, str):
            expected, found = expected.strip(), found.strip()
        return "" if found == expected else f"expected {expected!r}, got {found!r}"

    def _text(self, result: RunResult[T]) -> str:
        text = result.text.casefold()
        missing = [word for word in listed(self.contains) if word.casefold() not in text]
        return f"{missing[0]!r} is not in the answer {result.text!r}" if missing else ""

    def _tools(self, result: RunResult[T]) -> str:
        ran = {call.name for call in result.tool_calls if not call.is_error}
        for name in listed(self.called):
            if name not in ran:
                tools = ", ".join(sorted(ran)) or "no tool"
                return f"{name} was not called, or failed; {tools} ran"
        stopped = {each.on for each in result.decisions if each.decision == "deny"}
        missing = [name for name in listed(self.denied) if name not in stopped]
        return f"no call of {missing[0]} was denied" if missing else ""


async def checked(check: Callable[[Any], Any], result: RunResult[Any]) -> str:
    """Why a checker does not accept a run; nothing if it does. One that raises does not."""
    name = getattr(check, "__name__", type(check).__name__)
    try:
        verdict = check(result)
        if inspect.isawaitable(verdict):
            verdict = await verdict
    except AssertionError as error:
        return f"{name}: {error}" if str(error) else f"{name}: an assertion failed"
    except Exception as error:
        return f"the checker {name} raised {error_text(error)}"
    if verdict is None or verdict is True:
        return ""
    if isinstance(verdict, str):
        return verdict or f"{name} returned an empty reason"
    if verdict is False:
        return f"{name} returned False for the answer {result.text!r}"
    return (
        f"the checker {name} returned {verdict!r}; return True or None if the run passed, and False "
        "or the reason if it failed"
    )


def listed(value: str | Sequence[str]) -> Sequence[str]:
    """One name, or several."""
    return (value,) if isinstance(value, str) else value


def check_share(value: Any, what: str) -> None:
    """Refuse what is no share of runs."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise EvalError(f"{what} is a share of the runs from 0 to 1, not {value!r}")


def check_cases(given: Any) -> list[Case[Any]]:
    """The cases, which have different names."""
    if isinstance(given, str | dict) or not hasattr(given, "__iter__"):
        raise EvalError(f"cases are a list of Case(...), not {given!r}")
    cases: dict[str, Case[Any]] = {}
    for number, case in enumerate(cast("Iterable[Any]", given), 1):
        if not isinstance(case, Case):
            raise EvalError(f"case {number} is a {type(case).__name__}; write Case(input, expected)")
        if case.name in cases:
            raise EvalError(f"two cases are named {case.name!r}: give one of them another name=")
        cases[case.name] = case
    if not cases:
        raise EvalError("there are no cases: give at least one Case(input, expected)")
    return [*cases.values()]
