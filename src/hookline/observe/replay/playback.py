"""Playback: returns the recorded answers of the model, the tools and people.

No tool of the app can be reached from here: every tool that the registry finds has the same name and
schema and returns what was recorded.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

from hookline.agent.journal import plain_content
from hookline.errors import Diverged, ModelFailed, ReplayStopped, ToolError
from hookline.hooks import Decision, Ruling
from hookline.models import Model, ModelRequest, Models
from hookline.specs import ReplayPolicy, SideEffects, ToolSpec
from hookline.tape import MemoryTapeStore
from hookline.tools.calls import Resolve
from hookline.tools.context import ToolContext
from hookline.tools.registry import Registry
from hookline.tools.tool import Tool
from hookline.types import StreamEvent

from .record import RecordedItem, RecordedToolCall, is_approval, plain_text, restored

Join = Callable[[Any, Any], None]
"""Lets a message join the running turn."""


class RecordedModel:
    """Answers as the record has it, each turn's answers in their order."""

    def __init__(self) -> None:
        self.name = "recorded"
        self.context_window: int | None = None
        self.session_id = ""
        self.real: Model | None = None
        """Who answers from where the conversation is no longer the recorded one."""
        self.join: Join | None = None
        self.stopped: str | None = None
        self._turn: RecordedItem | None = None
        self._position = 0
        self.live = False
        """Whether the real model has answered."""
        self.stale: int | None = None
        """The first answer of this turn that was given although the model would have seen else."""

    def begin(self, turn: RecordedItem, position: int = 0) -> None:
        """Be ready to answer in a turn, from one of its answers on."""
        self._turn, self._position, self.stale = turn, position, None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Play the next answer of the turn."""
        if self.stopped is not None:
            raise ReplayStopped(self.stopped)
        turn = self._turn
        if turn is None or request.session_id != self.session_id:
            raise ModelFailed("a replay has recorded answers for the conversation and nothing else")
        at = self._position
        self._position += 1
        differs = not self.live and not is_as_recorded(request, turn, at)
        if self.real is not None and (self.live or differs or at >= len(turn.answers)):
            self.live = True
            async for event in self.real.stream(request):
                yield event
            return
        if differs and self.stale is None:
            self.stale = at
        answer = self._answer(request, turn, at)
        for event in events_of(answer, turn.usages[at]):
            yield event
        for after, said, envelope in turn.joined:
            if after == at + 1 and self.join is not None:
                self.join(restored(said), envelope)

    def _answer(self, request: ModelRequest, turn: RecordedItem, at: int) -> dict[str, Any]:
        if at >= len(turn.answers):
            if turn.status == "failed" and at == len(turn.answers):
                raise failure_of(turn)
            many = len(turn.answers)
            raise Diverged(f"the turn has {many} answer{'' if many == 1 else 's'} on the tape")
        wanted = calls_before(turn, at)
        given = [str(m.get("tool_call_id")) for m in last_results(request)]
        if sorted(wanted) != sorted(given):
            raise Diverged(f"answer {at + 1} was given to other tool calls than were made now")
        return turn.answers[at]

    async def close(self) -> None:
        """Nothing is held."""


def failure_of(turn: RecordedItem) -> ModelFailed:
    """The error that ended a turn, under its own name, so that it reads as it did."""
    name, _, told = (turn.error or "the turn failed here").partition(": ")
    if told and name.isidentifier():
        return type(name, (ModelFailed,), {})(told)
    return ModelFailed(turn.error or name)


def is_as_recorded(request: ModelRequest, turn: RecordedItem, at: int) -> bool:
    """Whether the model gets the same request as in the recording, so far in this turn."""
    if at >= len(turn.answers):
        return False
    if at == 0:
        last = request.messages[-1] if request.messages else {}
        return same_content(last.get("content"), turn.prompt)
    given = {str(m.get("tool_call_id")): m.get("content") for m in last_results(request)}
    wanted = {i: turn.calls[i].content for i in calls_before(turn, at)}
    return given.keys() == wanted.keys() and all(same_content(given[i], wanted[i]) for i in wanted)


def calls_before(turn: RecordedItem, at: int) -> list[str]:
    """The calls of the answer before this one."""
    raw: list[dict[str, Any]] = turn.answers[at - 1].get("tool_calls") or [] if at else []
    return [str(call.get("id")) for call in raw]


def last_results(request: ModelRequest) -> list[dict[str, Any]]:
    """The results that came after the last answer."""
    found: list[dict[str, Any]] = []
    for message in reversed(request.messages):
        if message.get("role") == "assistant":
            break
        if message.get("role") == "tool":
            found.append(message)
    return found


def same_content(now: Any, then: Any) -> bool:
    """Whether two contents say the same, as parts or as the tape keeps them."""
    return plain_text(now if isinstance(now, str) else plain_content(now or "")) == plain_text(then)


def events_of(answer: Mapping[str, Any], usage: Mapping[str, Any]) -> Iterator[StreamEvent]:
    """A recorded answer as a stream."""
    if answer.get("reasoning"):
        thought = {"delta": answer["reasoning"], "signature": answer.get("reasoning_signature", "")}
        yield StreamEvent("reasoning", thought)
    if text := plain_text(answer.get("content")):
        yield StreamEvent("text", {"delta": text})
    calls: list[dict[str, Any]] = answer.get("tool_calls") or []
    for call in calls:
        written: Any = call.get("arguments") or "{}"
        told = written if isinstance(written, str) else json.dumps(written)
        yield StreamEvent("tool_call", {"id": call["id"], "name": call["name"], "arguments": told})
    if usage:
        yield StreamEvent("usage", dict(usage))
    yield StreamEvent("final", {"finish_reason": "tool_calls" if calls else "stop"})


class RecordedModels(Models):
    """Models that all return the recording."""

    def __init__(self, recorded: RecordedModel, **options: Any) -> None:
        super().__init__(**options)
        self._recorded = recorded

    def get(self, name: str | None = None) -> Model:
        """The recorded model, under the name that is asked for."""
        self._recorded.name = name or self.default
        return self._recorded

    def real(self, name: str) -> Model:
        """A model that does answer."""
        return super().get(name)


class Results:
    """The results of tools, by call, and a substitute where there is none."""

    def __init__(self, stop: Callable[[str], None]) -> None:
        self.supplied: dict[str, str] = {}
        self.calls: list[RecordedToolCall] = []
        """Every call of the record."""
        self._now: Mapping[str, RecordedToolCall] = {}
        self._similar: dict[str, RecordedToolCall] = {}
        self._stop = stop

    def load(self, items: Iterable[RecordedItem]) -> None:
        """Know the calls of a record."""
        self.calls = [call for item in items for call in item.calls.values()]
        for call in self.calls:
            if call.ran:
                self._similar.setdefault(alike(call.name, call.arguments or {}), call)

    def begin(self, item: RecordedItem) -> None:
        """Be ready for the calls of an item: some models give the same ids in every turn."""
        self._now = item.calls

    def give(self, spec: ToolSpec, context: ToolContext, arguments: Mapping[str, Any]) -> Any:
        """The result of a call, as the tool's replay policy has it."""
        name = spec.qualified_name
        if context.call_id in self.supplied:
            return self.supplied[context.call_id]
        if spec.replay_policy is ReplayPolicy.fail_loud:
            told = (
                f"{name} must not be replayed (its replay_policy is fail-loud); "
                f"give its result with --result {context.call_id}=TEXT"
            )
            self._stop(told)
            raise ReplayStopped(told)
        if spec.replay_policy is ReplayPolicy.must_stub:
            return f"[replay: {name} was not run; this stands in for its result]"
        call = self._now.get(context.call_id) or self._similar.get(alike(name, arguments))
        if call is None or not (call.ran and call.answered):
            return f"[replay: {name} would have run here; the record has no result of it]"
        if call.is_error:
            raise ToolError(plain_text(call.content))
        return restored(call.content)

    async def approve(self, request: dict[str, Any], resolve: Resolve | None) -> Ruling:
        """The recorded answer of a person, if the call is exactly the same; no one is asked now."""
        question = str(request["question"])
        call = self._now.get(str(request["call_id"]))
        then = next((r for r in reversed(call.rulings if call else []) if is_approval(r)), None)
        by = str(then["by"]) if then else "resolve_approval"
        if call is None or then is None:
            told = f"needs approval, and the record has no answer: {question}"
            return Ruling(Decision.DENY, told, by=by)
        if then.get("decision") != "allow":
            return Ruling(Decision.DENY, str(then.get("reason") or "was rejected"), by=by)
        if call.arguments != request["arguments"]:
            told = f"needs approval, which was given for other arguments: {question}"
            return Ruling(Decision.DENY, told, by=by)
        return Ruling(reason=f"{question} (as recorded)", by=by)


def alike(name: str, arguments: Mapping[str, Any]) -> str:
    """What two calls have in common that ask for the same."""
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"


class RecordedTool(Tool):
    """A tool with another's name and schema that returns the recorded result."""

    __slots__ = ("_results",)

    def __init__(self, real: Tool, results: Results) -> None:
        super().__init__(real.spec, None, place=real.place)
        self._signature = real._signature
        self._results = results

    async def _invoke(
        self, arguments: Mapping[str, Any], context: ToolContext, report: Callable[[Any], None]
    ) -> Any:
        return self._results.give(self.spec, context, arguments)


class RecordedRegistry(Registry):
    """A registry of recorded tools only, including those added later."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._recorded: dict[int, tuple[Tool, RecordedTool]] = {}
        self.missing: dict[str, RecordedTool] = {}
        """Stand-ins for tools that ran then and are not there now."""
        super().__init__()

    def stand_in(self, calls: Iterable[RecordedToolCall]) -> list[str]:
        """Make tools that are gone known again, any arguments welcome; their names."""
        for call in calls:
            if call.ran and super()._find(call.name) is None:
                space, _, name = call.name.rpartition(".")
                effects = SideEffects.read if by_default(call) == "allow" else SideEffects.external
                spec = ToolSpec(name=name, namespace=space, side_effects=effects)
                made = RecordedTool(Tool.from_spec(spec), self._results)
                self.missing.setdefault(call.name, made)
        return list(self.missing)

    def _find(self, name: str) -> Tool | None:
        tool = super()._find(name)
        return self._wrapped(tool) if tool is not None else self.missing.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return map(self._wrapped, super().__iter__())

    def _wrapped(self, tool: Tool) -> Tool:
        if isinstance(tool, RecordedTool):
            return tool
        known = self._recorded.get(id(tool))
        if known is None:
            known = self._recorded[id(tool)] = tool, RecordedTool(tool, self._results)
        return known[1]


def by_default(call: RecordedToolCall) -> str | None:
    """The default's ruling on a call, which reveals its side effects."""
    found = (r for r in call.rulings if str(r.get("by", "")).startswith("default "))
    return next((str(r.get("decision")) for r in found), None)


class Playback:
    """Everything that a replay gives in place of the world: the tape, the model, tools, people."""

    def __init__(self) -> None:
        self.store = MemoryTapeStore()
        self.model = RecordedModel()
        self.results = Results(self._stop)

    def _stop(self, told: str) -> None:
        self.model.stopped = told
