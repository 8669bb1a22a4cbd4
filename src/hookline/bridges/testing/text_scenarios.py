"""Scenarios of prompts, answers and model calls."""

from __future__ import annotations

from typing import Any

from .bench import Bench, scenario

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
def a_handler_of_the_prompt_that_raises_blocks_it(bench: Bench) -> None:
    """Nothing is sent to the model if the gate of the prompt fails."""

    def broken(event: Any) -> None:
        raise ValueError("broken")

    bench.hooks.on.input(broken)
    outcome = bench.run()
    assert outcome.error is not None
    assert outcome.server.requests == []


@scenario
def a_system_prompt_is_extended(bench: Bench) -> None:
    """The model sees what a handler of `before_agent_start` adds."""
    bench.hooks.on.before_agent_start(
        lambda event: event.replace(system_prompt=event.system_prompt + "Answer in French.")
    )
    assert "Answer in French." in bench.run(["Done."]).server.said


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
def a_handler_of_the_answer_that_raises_withholds_it(bench: Bench) -> None:
    """The caller gets an error if the gate of the answer fails."""

    def broken(event: Any) -> None:
        raise ValueError("broken")

    bench.hooks.on.output(broken)
    outcome = bench.run(["Done."])
    assert outcome.error is not None, outcome.text


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
