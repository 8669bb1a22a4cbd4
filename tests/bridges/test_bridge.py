"""`Bridge`: hooks around an agent that Hookline does not run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.bridges import Bridge, BridgeError
from hookline.bridges.testing import SCENARIOS, Bench
from hookline.errors import Blocked
from hookline.events import ToolCallEvent

from .hosts.plain_host import HOST

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_agent_written_by_hand_carries_every_scenario(name: str):
    SCENARIOS[name](Bench(HOST))


def test_a_handler_of_a_hook_that_the_host_cannot_carry_is_refused():
    hooks = Hooks()
    hooks.on.agent_stop(lambda event: None)
    with pytest.raises(BridgeError, match=r"toaster cannot carry .* agent_stop: it has no heart"):
        Bridge(hooks, host="toaster", unreachable={"agent_stop": "it has no heart"})
    Bridge(hooks, host="toaster", unreachable={"agent_stop": "it has no heart"}, partial=True)


def test_two_bridges_share_hooks_and_see_later_handlers():
    hooks = Hooks()
    one, two = (Bridge(hooks, host=name) for name in ("one", "two"))

    async def verdicts() -> list[str | None]:
        found: list[str | None] = []
        for bridge in (one, two):
            run = await bridge.start("hi")
            found.append((await run.admit("shell", {"command": "ls"})).refusal)
            await run.end("done")
            await bridge.close()
        return found

    assert asyncio.run(verdicts()) == [None, None]
    off = hooks.register(ToolCallEvent, lambda event: event.deny("late"))
    assert asyncio.run(verdicts()) == ["late", "late"]
    off()
    assert asyncio.run(verdicts()) == [None, None]


async def test_runs_at_the_same_time_are_kept_apart():
    def deny_odd(event: ToolCallEvent) -> Any:
        return event.deny("odd") if int(event.input["n"]) % 2 else None

    bridge = Bridge([deny_odd], host="many")

    async def one(n: int) -> str | None:
        run = await bridge.start(f"run {n}")
        call = await run.admit("count", {"n": n})
        await asyncio.sleep(0)
        await run.finish(call, "ok")
        assert await run.end(f"answer {n}") == f"answer {n}"
        return call.refusal

    refusals = await asyncio.gather(*(one(n) for n in range(20)))
    assert refusals == [("odd" if n % 2 else None) for n in range(20)]
    await bridge.close()


async def test_a_run_that_is_not_ended_by_its_host_does_not_block_the_end():
    bridge = Bridge(host="careless")
    await bridge.start("hi")
    await asyncio.wait_for(bridge.close(), 10)


async def test_a_prompt_that_is_blocked_starts_no_run():
    hooks = Hooks()
    hooks.on.input(lambda event: event.deny("no"))
    bridge = Bridge(hooks, host="test")
    with pytest.raises(Blocked, match="the prompt was blocked: no"):
        await bridge.start("hi")
    await bridge.close()


def test_the_matrix_in_the_docs_is_the_one_that_was_measured():
    from hookline.bridges.testing import matrix

    files = sorted((ROOT / "docs" / "bridges").glob("*.json"))
    found = [json.loads(file.read_text("utf-8")) for file in files]
    page = (ROOT / "docs" / "bridges.md").read_text("utf-8")
    assert found
    assert matrix({each["host"]: each["verdicts"] for each in found}) in page
    for each in found:
        assert each["versions"] in page, each["host"]
        assert each["verdicts"].keys() == SCENARIOS.keys(), each["host"]
        assert not [v for v in each["verdicts"].values() if v.startswith("FAILED")]
