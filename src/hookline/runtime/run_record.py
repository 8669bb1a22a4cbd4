"""The record of a run, filled while it runs, and `RunResult`."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from time import time
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from hookline.hooks import Decision, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from hookline.agent.run import AgentRun
    from hookline.hooks import Dispatch, HookSpec, Implementation, Ruling
    from hookline.hookspecs import Hooks
    from hookline.types import Message

T = TypeVar("T")

OTHER_GATES: Final = ("input", "agent_stop", "output", "model_call", "model_result")
"""The gates whose verdicts are noted; the tool runner reports those on tool calls itself."""


@dataclass(frozen=True, slots=True)
class MadeToolCall:
    """A tool call of a run, and its result as the model saw it."""

    id: str
    name: str
    arguments: Any
    """A dictionary; empty if the model wrote no valid JSON."""
    result: Any = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class RunDecision:
    """A decision of a handler, the policy or a person during a run."""

    on: str
    """The name of the tool, or of the hook if it was not about a tool call."""
    decision: str
    """`allow`, `ask` or `deny`."""
    by: str
    reason: str | None = None
    changed: tuple[str, ...] = ()
    """The fields that were rewritten."""
    call_id: str = ""

    def __str__(self) -> str:
        verb = {"allow": "allowed", "ask": "asked about", "deny": "denied"}[self.decision]
        verb = "rewrote" if self.changed and self.decision == "allow" else verb
        fields = f" ({', '.join(self.changed)})" if self.changed else ""
        return f"{self.by} {verb} {self.on}{fields}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class RunStep:
    """A model call or a tool call on the timeline of a run; times are seconds since the epoch."""

    kind: Literal["model", "tool"]
    name: str
    start: float
    end: float
    state: Literal["ok", "failed", "denied"] = "ok"
    call_id: str = ""
    tokens: int | None = None
    """What the model wrote."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


@dataclass(slots=True)
class RunRecord:
    """The facts about a run, collected while it is running."""

    agent: object
    parent: RunRecord | None = None
    """The record of the run in whose tool call this one runs."""
    run: AgentRun | None = None
    calls: list[str] = field(default_factory=list[str])
    """The ids of the tool calls that were judged."""
    decisions: list[RunDecision] = field(default_factory=list[RunDecision])
    began: float = field(default_factory=time)
    steps: list[RunStep] = field(default_factory=list[RunStep])

    def decided_on_call(self, action: dict[str, Any], rulings: Sequence[Ruling]) -> None:
        """Note the rulings on a tool call, except for a plain yes of the default policy."""
        self.calls.append(action["call_id"])
        self._note(action["tool"], rulings, action["call_id"])

    def _note(self, on: str, rulings: Sequence[Ruling], call_id: str = "") -> None:
        for ruling in rulings:
            changed = tuple(sorted(ruling.changes or ()))
            if ruling.decision is not Decision.ALLOW or ruling.reason or changed:
                decision = RunDecision(
                    on, ruling.decision.name.lower(), ruling.by, ruling.reason, changed, call_id
                )
                self._add(decision)

    def _add(self, decision: RunDecision) -> None:
        if decision not in self.decisions:
            self.decisions.append(decision)
        if self.parent is not None:
            self.parent._add(decision)

    def decided(self, dispatch: Dispatch) -> None:
        """Note the verdict of a gate that is not about a tool call."""
        verdict = dispatch.value
        if isinstance(verdict, Verdict):
            self._note(dispatch.hook, verdict.trail)  # pyright: ignore[reportUnknownMemberType]


_RECORD: ContextVar[RunRecord | None] = ContextVar("hookline_run_record", default=None)

current_record: Final[Callable[[], RunRecord | None]] = _RECORD.get
"""The record of the run that this code is part of."""


class recording:  # noqa: N801  # used as `with recording(record):`
    """Let the code of a block belong to a run."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record

    def __enter__(self) -> RunRecord:
        self._token = _RECORD.set(self._record)
        return self._record

    def __exit__(self, *_: object) -> None:
        _RECORD.reset(self._token)


def note_gates(hooks: Hooks) -> None:
    """Note the verdicts of gates that have handlers in the record of the run that they are about."""

    def wants(spec: HookSpec, attached: Sequence[Implementation]) -> bool:
        return spec.name in OTHER_GATES and bool(attached)

    def sink(dispatch: Dispatch) -> None:
        notes = current_record()
        if notes is not None:
            notes.decided(dispatch)

    hooks.trace(sink, wants)


@dataclass(frozen=True, slots=True)
class RunResult(Generic[T]):
    """The outcome of one run of an agent."""

    text: str
    """The answer as text."""
    output: T
    """The answer in the type that `output=` names; the text if it names none."""
    session: str
    """Pass it as `session=` to continue this conversation."""
    messages: list[Message] = field(repr=False)
    """The whole conversation, with this run at its end."""
    tool_calls: list[MadeToolCall]
    usage: dict[str, Any]
    decisions: list[RunDecision]
    timeline: list[RunStep] = field(default_factory=list[RunStep], repr=False)
    """The model calls and tool calls of the run, and when each began and ended."""
    seconds: float = 0.0
    """How long the run took."""

    @property
    def cost(self) -> float | None:
        """What the run cost in US dollars; None if the price of the model is not known."""
        return self.usage.get("cost")

    def why(self) -> str:
        """Who allowed, denied or rewrote what, one line each."""
        lines = map(str, self.decisions)
        return "\n".join(lines) or "no handler and no policy rule decided anything in this run"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Show the run in a notebook."""
        from .run_document import run_document

        return run_document(self).fragment()


def tool_calls_of(messages: Sequence[Message], ids: Collection[str]) -> list[MadeToolCall]:
    """The tool calls in messages that have these ids, each with its result."""
    if not ids:
        return []
    from hookline.agent.model_call import parsed_call

    found: list[MadeToolCall] = []
    waiting: dict[str, int] = {}  # by id, which a later model call may use again
    for message in messages:
        for call in message.get("tool_calls", ()):
            if call["id"] in ids:
                waiting[call["id"]] = len(found)
                arguments = dict(parsed_call(call).arguments)
                found.append(MadeToolCall(call["id"], call["name"], arguments))
        place = waiting.pop(message.get("tool_call_id", ""), None)
        if place is not None:
            is_error = bool(message.get("is_error"))
            found[place] = replace(found[place], result=message["content"], is_error=is_error)
    return found
