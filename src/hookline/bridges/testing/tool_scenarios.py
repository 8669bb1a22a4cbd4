"""Scenarios of tool calls and their results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .bench import LIST, REMOVE, Answering, Bench, scenario

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
def a_call_waits_for_a_late_answer(bench: Bench) -> None:
    """The agent goes on when a person has answered."""
    bench.hooks.on.tool_call(lambda event: event.ask("really?"))
    outcome = bench.run(channel=Answering("approve", seconds=0.3))
    assert outcome.ran == ["rm -r tmp"], outcome.error
    outcome.answered("Done.")


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
def calls_in_one_answer_keep_their_own_arguments_and_results(bench: Bench) -> None:
    """Parallel calls are rewritten one by one."""
    bench.hooks.on.tool_call(
        lambda event: event.replace(input={"command": event.input["command"] + " -v"})
    )
    outcome = bench.run([[*REMOVE, *LIST], "Done."])
    assert sorted(outcome.ran) == ["ls -v", "rm -r tmp -v"]
    for command in outcome.ran:
        assert f"output of {command}," in outcome.server.said


@scenario
def two_handlers_rewrite_one_call_in_their_order(bench: Bench) -> None:
    """The second handler sees what the first left."""

    def adding(word: str) -> Callable[[Any], Any]:
        return lambda event: event.replace(input={"command": f"{event.input['command']} {word}"})

    bench.hooks.on.tool_call(adding("one"))
    bench.hooks.on.tool_call(adding("two"))
    assert bench.run().ran == ["rm -r tmp one two"]


@scenario
def a_session_has_a_budget_of_calls(bench: Bench) -> None:
    """The call that exceeds the budget is denied."""
    policy = {"default": "allow", "packs": ["budgets"], "budgets": {"calls": 1}}
    outcome = bench.run([LIST, REMOVE, "Done."], policy=policy)
    assert outcome.ran == ["ls"], outcome.error
    assert "budget" in outcome.server.said


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
def a_result_that_is_not_text_is_redacted(bench: Bench) -> None:
    """The same holds for a tool that returns an object."""

    def redact(event: Any) -> Any:
        return event.replace(content=str(event.content).replace("s3cr3t", "[redacted]"))

    bench.hooks.on.tool_result(redact)
    said = bench.run([[("status", {})], "Done."]).server.said
    assert "[redacted]" in said
    assert "s3cr3t" not in said


@scenario
def a_handler_of_results_that_raises_withholds_the_result(bench: Bench) -> None:
    """A gate fails closed after the call as well."""

    def broken(event: Any) -> None:
        raise ValueError("broken")

    bench.hooks.on.tool_result(broken)
    outcome = bench.run()
    assert outcome.ran == ["rm -r tmp"]
    assert "s3cr3t" not in outcome.server.said


@scenario
def an_error_of_a_tool_is_redacted(bench: Bench) -> None:
    """The model sees what the handler left of an error, or the run ends."""

    def redact(event: Any) -> Any:
        return event.replace(content=str(event.content).replace("disk", "[redacted]"))

    bench.hooks.on.tool_result(redact)
    assert "the disk is full" not in bench.run([[("shell", {"command": "fail"})], "Done."]).server.said


@scenario
def a_tool_that_fails_is_reported(bench: Bench) -> None:
    """`tool_execution_failure` fires, and the model sees an error."""
    seen: list[str] = []
    bench.hooks.on.tool_execution_failure(lambda event: seen.append(event.tool_name))
    bench.run([[("shell", {"command": "fail"})], "Done."])
    assert seen == ["shell"]
