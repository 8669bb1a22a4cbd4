"""Hookline's hooks in crews and agents of CrewAI.

    from hookline.bridges.crewai import hookline

    result = hookline([no_sudo]).kickoff(crew, inputs={"city": "Rome"})      # or akickoff

The hooks hold for this crew only, although CrewAI's own hooks are global. Each task of a crew is a run:
its description is the prompt (`input`), its output the answer (`output`). Model calls, tool calls and
their results are carried, and a task whose `agent_stop` is refused goes back to its agent. An agent is
run the same way: `hookline([no_sudo]).kickoff(agent, "Tidy up.")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from crewai import Agent
from crewai.hooks import HookAborted, InterceptionPoint
from crewai.hooks.dispatch import scoped_hooks

from hookline.errors import BridgeError

from .bridge import Bridge
from .reports import HostAnswer, HostCall, HostRequest, ToolAnswer, replaced
from .run import BridgeRun

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks

TESTED: Final = {"crewai": ("1.15", "2")}
"""The versions of the host that the suite was run with."""


def hookline(hooks: Hooks | Iterable[Any] = (), **options: Any) -> HooklineKickoff:
    """Kicks off crews and agents with Hookline's hooks; `options` are those of `Bridge`."""
    return HooklineKickoff(Bridge(hooks, host="crewai", tested=TESTED, **options))


class HooklineKickoff:
    """Runs crews and agents of CrewAI inside the gates."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    def kickoff(self, crew: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a crew or an agent; the arguments are those of its own `kickoff`."""
        with self._guarded(crew) as scope:
            if not isinstance(crew, Agent):
                return crew.kickoff(*args, **kwargs)
            prompt, *others = args
            return scope.judged(crew.kickoff(scope.started(prompt), *others, **kwargs))

    async def akickoff(self, crew: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a crew or an agent; the arguments are those of its own `akickoff`."""
        with self._guarded(crew) as scope:
            if not isinstance(crew, Agent):
                return await crew.akickoff(*args, **kwargs)
            prompt, *others = args
            return scope.judged(await crew.akickoff(scope.started(prompt), *others, **kwargs))

    @contextmanager
    def _guarded(self, crew: Any) -> Iterator[CrewScope]:
        if getattr(crew, "stream", False):
            raise BridgeError("CrewAI runs a streamed crew without its hooks; use stream=False")
        scope = CrewScope(self.bridge)
        try:
            with scoped_hooks(scope.hooks):
                yield scope
        except BaseException as error:
            found = error.__cause__ if isinstance(error, HookAborted) and error.__cause__ else error
            scope.fail(found)
            raise found from None
        scope.close()


class CrewScope:
    """The runs of one kickoff."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self._runs: dict[str, BridgeRun] = {}
        self._current: ContextVar[CrewRun | None] = ContextVar("hookline_crewai_run", default=None)
        self.hooks: dict[InterceptionPoint, list[Callable[[Any], Any]]] = {
            InterceptionPoint.PRE_STEP: [closed(self._task_starts)],
            InterceptionPoint.POST_STEP: [closed(self._task_ends)],
            InterceptionPoint.PRE_MODEL_CALL: [closed(lambda call: self._run.before_model(call))],
            InterceptionPoint.POST_MODEL_CALL: [closed(lambda call: self._run.after_model(call))],
            InterceptionPoint.PRE_TOOL_CALL: [closed(lambda call: self._run.admit(call))],
            InterceptionPoint.POST_TOOL_CALL: [lambda call: self._run.finish(call)],
        }

    def start(self, prompt: str) -> CrewRun:
        """Start a run, which the hooks of this context report to."""
        run = self.bridge.start_sync(prompt)
        self._runs[run.session] = run
        current = CrewRun(run)
        self._current.set(current)
        return current

    @property
    def _run(self) -> CrewRun:
        """The current run; calls outside of a task, such as planning, get one without a prompt."""
        return self._current.get() or self.start("")

    def end(self, current: CrewRun, text: str) -> str:
        """End a run with its answer, and return the answer that the gates left."""
        self._current.set(None)
        run = self._runs.pop(current.run.session)
        return run.sync(run.end(text))

    def started(self, messages: Any) -> Any:
        """Start the run of an agent; returns the messages with the prompt that the gates left."""
        if isinstance(messages, str):
            return self.start(messages).run.prompt
        *before, said = messages
        return [*before, {**said, "content": self.start(str(said["content"])).run.prompt}]

    def judged(self, result: Any) -> Any:
        """End the run of an agent, whose result gets the text that the gates left."""
        result.raw = self.end(self._run, result.raw)
        return result

    def fail(self, error: BaseException) -> None:
        """End the runs that are open with an error."""
        for run in self._runs.values():
            run.sync(run.fail(error))

    def close(self) -> None:
        """End the runs that no task ended."""
        for run in self._runs.values():
            run.sync(run.end(""))

    def _task_starts(self, step: Any) -> None:
        if step.kind != "task":
            return
        task, prompt = step.task, step.task.description
        current = self.start(prompt)
        current.description = prompt
        task.description = current.run.prompt
        if self.bridge.hooks["agent_stop"].count():
            current.guardrail = lambda output: current.may_stop(output)
            task._guardrails.append(current.guardrail)

    def _task_ends(self, step: Any) -> Any:
        if step.kind != "task":
            return None
        current = self._run
        step.task.description = current.description
        if current.guardrail is not None:
            step.task._guardrails.remove(current.guardrail)
        step.payload.raw = self.end(current, step.payload.raw)
        return step.payload


class CrewRun:
    """One run of an agent, as CrewAI's hooks report it."""

    def __init__(self, run: BridgeRun) -> None:
        self.run = run
        self.description = ""
        self.guardrail: Callable[[Any], Any] | None = None
        self._calls: dict[int, HostCall] = {}
        self._asked: list[dict[str, Any]] | None = None

    def before_model(self, call: Any) -> None:
        """Pass a request to the model through its gates."""
        self.run.sync(self._settle())
        messages: list[dict[str, Any]] = call.messages
        before = [plain_message(message) for message in messages]
        asked = HostRequest(list(before), str(getattr(call.llm, "model", "")))
        changed = self.run.sync(self.run.before_model(asked))
        self._asked = messages
        if changed.system and not any(m.get("content") == changed.system for m in messages):
            changed.messages.insert(0, {"role": "system", "content": changed.system})
        if changed.messages != before:
            messages[:] = replaced(messages, before, changed.messages, dict)

    def after_model(self, call: Any) -> str | None:
        """Pass a text of the model through its gates."""
        self._asked = None
        answer = self.run.sync(self.run.after_model(HostAnswer(call.response or "")))
        return None if answer.text == call.response else answer.text

    async def _settle(self) -> None:
        """Judge an answer with tool calls, which CrewAI reports only in its messages."""
        if self._asked is None:
            return
        said, self._asked = self._asked[-1], None
        message = plain_message(said)
        calls = message.get("tool_calls", [])
        answer = await self.run.after_model(HostAnswer(message["content"], calls, {}, "tool_calls"))
        if answer.tool_calls != calls:
            raise ValueError("CrewAI cannot carry a change of the tool calls in an answer")

    def admit(self, call: Any) -> None:
        """Pass a tool call through its gates."""
        self.run.sync(self._settle())
        given: dict[str, Any] = call.tool_input
        admitted = self.run.sync(self.run.admit(call.tool_name, dict(given)))
        self._calls[id(given)] = admitted
        if admitted.refusal is not None:
            raise HookAborted(admitted.refusal)
        if admitted.arguments != given:
            given.clear()
            given.update(admitted.arguments)

    def finish(self, call: Any) -> str | None:
        """Pass the result of a tool call through its gates; CrewAI ignores what this raises."""
        try:
            admitted = self._calls.pop(id(call.tool_input))
            failed = str(call.tool_result).startswith("Error executing tool:")
            error = RuntimeError(call.tool_result) if failed and not admitted.refusal else None
            value = self.run.sync(self.run.finish(admitted, call.tool_result, error))
        except Exception as error:
            return f"The result was withheld: {error}"
        return str(value) if isinstance(value, ToolAnswer) else None

    def may_stop(self, output: Any) -> tuple[bool, Any]:
        """A guardrail of the task: whether its agent may stop, or what to tell it."""
        refused = self.run.sync(self.run.refuses_to_stop(output.raw))
        return (True, output) if refused is None else (False, refused)


def closed(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook that aborts if it fails; CrewAI would go on."""

    @wraps(hook)
    def guarded(context: Any) -> Any:
        try:
            return hook(context)
        except HookAborted:
            raise
        except Exception as error:
            raise HookAborted(str(error)) from error

    return guarded


def plain_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as handlers see it."""
    content = message.get("content")
    found = {**message, "content": content if isinstance(content, str) else str(content or "")}
    calls = message.get("tool_calls") or ()
    if calls:
        found["tool_calls"] = [plain_call(call) for call in calls]
    return found


def plain_call(call: Any) -> dict[str, Any]:
    """A tool call as handlers see it."""
    made = call["function"] if isinstance(call, Mapping) else call.function
    if isinstance(made, Mapping):
        return {"id": call["id"], "name": made["name"], "arguments": made["arguments"]}
    return {"id": call.id, "name": made.name, "arguments": made.arguments}
