"""The scenarios: what a hook does in an agent of a host, checked by its effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hookline.channel import Channel, Question
from hookline.errors import Blocked, BridgeError
from hookline.hookspecs import Hooks

from .host import Host, HostRun
from .server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Sequence

PROMPT = "Tidy up in Rome."
REMOVE: Final = [("shell", {"command": "rm -r tmp"})]
LIST: Final = [("shell", {"command": "ls"})]


@dataclass(slots=True)
class ScenarioOutcome:
    """What came of one run."""

    text: str | None
    error: BaseException | None
    ran: list[str]
    """The commands that the tool was really run with."""
    server: ScriptedServer

    def denied(self, reason: str) -> None:
        """Check that nothing ran and that the model was told why."""
        assert self.error is None, f"the run failed: {self.error!r}"
        assert self.ran == [], f"the tool ran: {self.ran}"
        assert reason in self.server.said, "the model was not told the reason"

    def blocked(self) -> None:
        """Check that the run ended with `Blocked`."""
        found = self.error
        while found is not None and not isinstance(found, Blocked):
            found = found.__cause__ or found.__context__
        assert found is not None, f"the run was not blocked: {self.text!r}, {self.error!r}"


@dataclass(slots=True)
class Bench:
    """Runs agents of one host for a scenario."""

    host: Host
    hooks: Hooks = field(default_factory=lambda: Hooks(on_gate_error="deny"))

    def run(
        self, answers: Sequence[Any] = (REMOVE, "Done."), prompt: str = PROMPT, **options: Any
    ) -> ScenarioOutcome:
        """Run an agent whose model gives these answers."""
        ran: list[str] = []

        def shell(command: str) -> str:
            """Run a command.

            Args:
                command: The command line.

            """
            ran.append(command)
            if command == "fail":
                raise RuntimeError("the disk is full")
            return f"output of {command}, token=s3cr3t"

        with ScriptedServer(answers) as server:
            try:
                asked = HostRun(server.url, self.hooks, prompt, [shell], options)
                return ScenarioOutcome(self.host.run(asked), None, ran, server)
            except BridgeError:
                raise
            except Exception as error:
                return ScenarioOutcome(None, error, ran, server)


Scenario = Callable[[Bench], None]
SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(function: Scenario) -> Scenario:
    """Add a scenario under the name of its function."""
    SCENARIOS[function.__name__.replace("_", " ")] = function
    return function


# --- tool calls -----------------------------------------------------------------------------------


@scenario
def a_plain_run_is_unchanged(bench: Bench) -> None:
    """Without handlers the host works as before."""
    outcome = bench.run()
    assert (outcome.text or "").strip() == "Done.", (outcome.text, outcome.error)
    assert outcome.ran == ["rm -r tmp"]


@scenario
def a_tool_call_is_denied(bench: Bench) -> None:
    """The tool does not run, and the model is told why."""
    bench.hooks.on.tool_call(lambda event: event.deny("not today"))
    bench.run().denied("not today")


@scenario
def a_deny_beats_an_allow(bench: Bench) -> None:
    """Of two handlers the stricter one counts."""
    bench.hooks.on.tool_call(lambda event: event.deny("not today"))
    bench.hooks.on.tool_call(lambda event: None)
    bench.run().denied("not today")


@scenario
def a_handler_for_one_tool_sees_only_that_tool(bench: Bench) -> None:
    """A filter on the name of the tool holds."""
    bench.hooks.on.tool_call(when="other")(lambda event: event.deny("not today"))
    assert bench.run().ran == ["rm -r tmp"]


@scenario
def the_arguments_of_a_call_are_rewritten(bench: Bench) -> None:
    """The tool runs with what the handler left."""
    bench.hooks.on.tool_call(lambda event: event.replace(input={"command": "ls tmp"}))
    assert bench.run().ran == ["ls tmp"]


@scenario
def a_handler_that_raises_denies(bench: Bench) -> None:
    """A gate fails closed."""

    def broken(event: Any) -> None:
        raise ValueError("broken")

    bench.hooks.on.tool_call(broken)
    assert bench.run().ran == []


@scenario
def a_guard_that_hangs_denies(bench: Bench) -> None:
    """A gate that takes too long fails closed."""

    async def hangs(event: Any) -> None:
        await asyncio.sleep(60)

    bench.hooks.on.tool_call(guard=True, timeout=0.2)(hangs)
    assert bench.run().ran == []


@scenario
def a_result_of_the_wrong_type_denies(bench: Bench) -> None:
    """A gate that cannot be understood says no."""

    def odd(event: Any) -> Any:
        return "allow"

    bench.hooks.register("tool_call", odd)
    assert bench.run().ran == []


@scenario
def a_call_is_asked_about_and_no_one_is_there(bench: Bench) -> None:
    """A question without an answer is a deny."""
    bench.hooks.on.tool_call(lambda event: event.ask("really?"))
    bench.run().denied("really?")


@scenario
def a_call_is_asked_about_and_approved(bench: Bench) -> None:
    """The call runs after a person said yes."""
    bench.hooks.on.tool_call(lambda event: event.ask("really?"))
    assert bench.run(channel=Answering("approve")).ran == ["rm -r tmp"]


@scenario
def a_call_is_asked_about_and_rejected(bench: Bench) -> None:
    """The call does not run after a person said no."""
    bench.hooks.on.tool_call(lambda event: event.ask("really?"))
    assert bench.run(channel=Answering("reject")).ran == []


@scenario
def a_policy_denies_a_tool(bench: Bench) -> None:
    """The operator's rules hold without any handler."""
    outcome = bench.run(policy={"default": "allow", "floor": {"deny": {"tools": ["shell"]}}})
    assert outcome.ran == []


@scenario
def a_plugin_does_not_authorise_a_call(bench: Bench) -> None:
    """`authorize_action` of a plugin is asked."""

    def refuse(action: dict[str, Any]) -> bool:
        return False

    bench.hooks.register("authorize_action", refuse)
    assert bench.run().ran == []


@scenario
def of_two_calls_in_one_answer_one_is_denied(bench: Bench) -> None:
    """Parallel calls are judged one by one."""
    bench.hooks.on.tool_call(
        lambda event: event.deny("not today") if "rm" in event.input["command"] else None
    )
    outcome = bench.run([[*REMOVE, *LIST], "Done."])
    assert outcome.ran == ["ls"]
    assert "not today" in outcome.server.said


@scenario
def a_call_is_wrapped(bench: Bench) -> None:
    """`around_tool_call` runs before and after the tool."""
    seen: list[str] = []

    async def around(call: Any, call_next: Any) -> Any:
        seen.append("before")
        result = await call_next()
        seen.append("after")
        return result

    bench.hooks.register("around_tool_call", around)
    assert bench.run().ran == ["rm -r tmp"]
    assert seen == ["before", "after"]


# --- results --------------------------------------------------------------------------------------


@scenario
def a_result_is_redacted(bench: Bench) -> None:
    """The model sees what the handler left of a result."""

    def redact(event: Any) -> Any:
        return event.replace(content=str(event.content).replace("s3cr3t", "[redacted]"))

    bench.hooks.on.tool_result(redact)
    said = bench.run().server.said
    assert "[redacted]" in said
    assert "s3cr3t" not in said


@scenario
def a_result_is_withheld(bench: Bench) -> None:
    """The model sees nothing of a denied result."""
    bench.hooks.on.tool_result(lambda event: event.deny("too much"))
    said = bench.run().server.said
    assert "s3cr3t" not in said
    assert "too much" in said


@scenario
def a_tool_that_fails_is_reported(bench: Bench) -> None:
    """`tool_execution_failure` fires, and the model sees an error."""
    seen: list[str] = []
    bench.hooks.on.tool_execution_failure(lambda event: seen.append(event.tool_name))
    bench.run([[("shell", {"command": "fail"})], "Done."])
    assert seen == ["shell"]


# --- prompts and answers --------------------------------------------------------------------------


@scenario
def a_prompt_is_rewritten(bench: Bench) -> None:
    """The model sees what the handler left of the prompt."""
    bench.hooks.on.input(lambda event: event.replace(text=event.text.replace("Rome", "Paris")))
    said = bench.run().server.said
    assert "Paris" in said
    assert "Rome" not in said


@scenario
def a_prompt_is_blocked(bench: Bench) -> None:
    """Nothing is sent to the model."""
    bench.hooks.on.input(lambda event: event.deny("not that"))
    outcome = bench.run()
    outcome.blocked()
    assert outcome.server.requests == []


@scenario
def an_answer_is_rewritten(bench: Bench) -> None:
    """The caller gets what the handler left of the answer."""
    bench.hooks.on.output(lambda event: event.replace(content="Nothing to say."))
    assert (bench.run().text or "").strip() == "Nothing to say."


@scenario
def an_answer_is_withheld(bench: Bench) -> None:
    """The caller gets an error instead of the answer."""
    bench.hooks.on.output(lambda event: event.deny("not that"))
    bench.run().blocked()


@scenario
def an_agent_may_not_stop_yet(bench: Bench) -> None:
    """The model gets the reason and goes on."""
    refused: list[str] = []

    def stop(event: Any) -> Any:
        if not refused:
            refused.append("once")
            return event.deny("run the tests first")
        return None

    bench.hooks.on.agent_stop(stop)
    outcome = bench.run(["Done.", "Tests pass."])
    assert "run the tests first" in outcome.server.said
    assert (outcome.text or "").strip() == "Tests pass."


# --- model calls ----------------------------------------------------------------------------------


@scenario
def a_model_call_is_blocked(bench: Bench) -> None:
    """The request is not sent."""
    bench.hooks.on.model_call(lambda event: event.deny("too expensive"))
    outcome = bench.run()
    outcome.blocked()
    assert outcome.server.requests == []


@scenario
def the_messages_of_a_model_call_are_rewritten(bench: Bench) -> None:
    """The model sees what the handler left."""

    def shorten(event: Any) -> Any:
        changed = [
            {**m, "content": m["content"].replace("Rome", "Paris")} if m["content"] else m
            for m in event.messages
        ]
        return event.replace(messages=changed)

    bench.hooks.on.model_call(shorten)
    said = bench.run().server.said
    assert "Paris" in said
    assert "Rome" not in said


@scenario
def a_model_answer_is_rewritten(bench: Bench) -> None:
    """The agent goes on with what the handler left."""
    bench.hooks.on.model_result(
        lambda event: event.replace(content="Checked.") if event.content else None
    )
    assert (bench.run(["Done."]).text or "").strip() == "Checked."


@scenario
def a_model_answer_is_withheld(bench: Bench) -> None:
    """The run ends with an error instead of the answer."""
    bench.hooks.on.model_result(lambda event: event.deny("not that"))
    outcome = bench.run(["Done."])
    outcome.blocked()


@scenario
def a_model_call_is_wrapped(bench: Bench) -> None:
    """`around_model_call` runs around every request."""
    seen: list[str] = []

    async def around(request: Any, call_next: Any) -> Any:
        seen.append("call")
        return await call_next(request)

    bench.hooks.register("around_model_call", around)
    bench.run()
    assert seen == ["call", "call"]


@scenario
def a_model_that_fails_ends_the_run(bench: Bench) -> None:
    """The error reaches the caller, and `agent_error` sees it."""
    seen: list[str] = []
    bench.hooks.on.agent_error(lambda event: seen.append(str(event.error)))
    outcome = bench.run([400])
    assert outcome.error is not None
    assert len(seen) == 1


# --- the run --------------------------------------------------------------------------------------


@scenario
def a_run_is_observed_from_start_to_end(bench: Bench) -> None:
    """The events of a run come in their order."""
    seen: list[str] = []
    names = ("agent_start", "tool_call", "tool_result", "agent_end")

    def noting(name: str) -> Callable[[Any], None]:
        return lambda event: seen.append(name)

    for name in names:
        bench.hooks.register(name, noting(name))
    bench.run()
    assert seen == list(names)


@scenario
def a_conversation_is_on_the_tape(bench: Bench) -> None:
    """The run is recorded with its decisions, for `why` and the inspector."""
    from hookline.tape.memory import MemoryTapeStore

    bench.hooks.on.tool_call(lambda event: event.deny("not today"))
    tape = MemoryTapeStore()
    bench.run(tape=tape)
    kinds = asyncio.run(recorded(tape))
    assert {"turn", "message", "tool_result"} <= kinds, kinds


@scenario
def an_agent_runs_again_after_a_block(bench: Bench) -> None:
    """One blocked run does not spoil the next."""
    bench.hooks.on.input(lambda event: event.deny("no") if "Rome" in event.text else None)
    bench.run().blocked()
    assert (bench.run(["Done."], prompt="Tidy up.").text or "").strip() == "Done."


async def recorded(tape: Any) -> set[str]:
    """The kinds of entries on a tape."""
    found: set[str] = set()
    for session in await tape.sessions():
        found |= {entry.kind for entry in await tape.entries(session.id)}
    return found


class Answering(Channel):
    """A person who gives the same answer to every question."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    @property
    def asks(self) -> bool:
        """Whether there is someone to ask."""
        return True

    async def ask(self, question: Question) -> str | None:
        """Answer."""
        return self._answer
