"""Scenarios of whole runs: events, tape, streams, subagents, cancellation, budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hookline.errors import BridgeError
from hookline.tape.memory import MemoryTapeStore

from .bench import REMOVE, Bench, recorded, scenario

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


@scenario
def two_runs_at_the_same_time_are_kept_apart(bench: Bench) -> None:
    """A block of one run does not touch the other."""
    bench.hooks.on.input(lambda event: event.deny("no") if "Rome" in event.text else None)
    with ThreadPoolExecutor(2) as pool:
        blocked = pool.submit(bench.run, ["Done."])
        other = pool.submit(bench.run, [REMOVE, "Done."], "Tidy up.")
        blocked.result().blocked()
        other.result().answered("Done.")


@scenario
def what_is_stored_is_redacted(bench: Bench) -> None:
    """With a home whose settings redact, no file has the secret."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        settings = Path(home, "config.toml")
        settings.write_text('[redaction]\nenabled = true\npatterns = { token = "s3cr3t" }\n', "utf-8")
        outcome = bench.run(home=home, policy="allow")
        assert "s3cr3t" in outcome.server.said, outcome.error
        files = [path for path in Path(home).rglob("*") if path.is_file() and path != settings]
        stored = b"".join(path.read_bytes() for path in files)
        assert b"[redacted token]" in stored
        assert b"s3cr3t" not in stored


@scenario
def a_run_is_cancelled(bench: Bench) -> None:
    """The turn ends as cancelled, and the next run works."""
    tape = MemoryTapeStore()
    outcome = bench.run([None], cancel=True, tape=tape)
    assert outcome.error is not None, outcome.text
    assert asyncio.run(turn_states(tape)) == ["started", "cancelled"]
    bench.run(["Done."]).answered("Done.")


@scenario
def a_call_of_a_subagent_is_denied(bench: Bench) -> None:
    """The gates hold in agents that an agent calls."""
    if bench.host.delegation is None:
        raise BridgeError("the suite knows no subagents of this host")
    bench.hooks.on.tool_call(when="shell")(lambda event: event.deny("not today"))
    answers = [[bench.host.delegation], REMOVE, "I may not.", "Done."]
    bench.run(answers, subagent=True).denied("not today")


# --- streams --------------------------------------------------------------------------------------


@scenario
def a_streamed_run_is_unchanged(bench: Bench) -> None:
    """Without handlers the host streams as before."""
    outcome = bench.run(stream=True)
    assert "Done." in (outcome.text or ""), outcome.error
    assert outcome.ran == ["rm -r tmp"]


@scenario
def a_call_in_a_streamed_run_is_denied(bench: Bench) -> None:
    """The gates of tools hold in a streamed run."""
    bench.hooks.on.tool_call(lambda event: event.deny("not today"))
    bench.run(stream=True).denied("not today")


@scenario
def a_streamed_answer_is_rewritten(bench: Bench) -> None:
    """The stream never shows what the handler took out."""
    bench.hooks.on.output(lambda event: event.replace(content="Nothing to say."))
    outcome = bench.run(["The token is s3cr3t."], stream=True)
    assert "Nothing to say." in (outcome.text or ""), (outcome.text, outcome.error)
    assert "s3cr3t" not in (outcome.text or "")


@scenario
def a_streamed_answer_is_withheld(bench: Bench) -> None:
    """The stream ends with an error before it shows anything of the answer."""
    bench.hooks.on.output(lambda event: event.deny("not that"))
    outcome = bench.run(["The token is s3cr3t."], stream=True)
    outcome.blocked()


async def turn_states(tape: MemoryTapeStore) -> list[str]:
    """The states of the turns on a tape."""
    entries = [e for s in await tape.sessions() for e in await tape.entries(s.id)]
    return [entry.payload["status"] for entry in entries if entry.kind == "turn"]
