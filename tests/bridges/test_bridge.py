"""`Bridge`: hooks around an agent that Hookline does not run."""

import asyncio
import re
import tomllib
from pathlib import Path
from typing import Any

import pluggy
import pytest

from hookline import Hooks
from hookline.bridges import Bridge, BridgeError
from hookline.bridges.limits import UNREPORTED, numbers
from hookline.bridges.testing import SCENARIOS, Bench
from hookline.bridges.testing.pages import filled, records, sections
from hookline.errors import Blocked
from hookline.events import ToolCallEvent

from ..commandline import here
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


async def test_a_host_that_reports_before_and_after_a_call_runs_handlers_around_it():
    seen: list[str] = []

    async def around(call: Any, call_next: Any) -> Any:
        seen.append("before")
        result = await call_next()
        seen.append(f"after {result}")
        return result.upper()

    hooks = Hooks()
    hooks.register("around_tool_call", around)
    bridge = Bridge(hooks, host="halves")
    run = await bridge.start("hi")
    call = await run.admit("shell", {"command": "ls"})
    assert (call.refusal, seen) == (None, ["before"])
    assert await run.finish(call, "files") == "FILES"
    assert seen == ["before", "after files"]
    await bridge.close()


async def test_a_handler_that_answers_in_place_of_a_tool_keeps_the_host_from_running_it():
    async def around(call: Any, call_next: Any) -> Any:
        return "from the cache"

    hooks = Hooks()
    hooks.register("around_tool_call", around)
    bridge = Bridge(hooks, host="halves")
    run = await bridge.start("hi")
    call = await run.admit("shell", {"command": "ls"})
    assert call.refusal == "from the cache"
    assert await run.finish(call) == "from the cache"
    await bridge.close()


async def test_a_host_that_cannot_run_a_tool_twice_fails_the_call():
    async def again(call: Any, call_next: Any) -> Any:
        await call_next()
        return await call_next()

    hooks = Hooks()
    hooks.register("around_tool_call", again)
    bridge = Bridge(hooks, host="halves")
    run = await bridge.start("hi")
    answer = await run.finish(await run.admit("shell", {"command": "ls"}), "files")
    assert answer.is_error
    assert "cannot run a tool twice" in answer
    await bridge.close()


async def test_a_host_that_reports_subagents_and_compaction_fires_their_hooks():
    seen: list[str] = []
    hooks = Hooks()
    hooks.on.subagent_start(lambda event: seen.append(f"start {event.label}"))
    hooks.on.subagent_end(lambda event: seen.append(f"end {event.status}"))
    hooks.on.session_before_compact(lambda event: event.deny("keep it all"))
    carried = ("subagent_start", "subagent_end", "session_before_compact")
    bridge = Bridge(hooks, host="test", carried=carried)
    run = await bridge.start("hi")
    await run.subagent_starts("1", "helper", "help")
    await run.subagent_ends("1", "helper")
    assert seen == ["start helper", "end completed"]
    assert await run.refuses_to_compact() == "keep it all"
    await bridge.close()


def test_every_hook_that_no_bridge_reports_is_refused_with_the_reason():
    for name, why in UNREPORTED.items():
        hooks = Hooks()
        hooks.register(name, nothing)
        with pytest.raises(BridgeError, match=re.escape(f"{name}: {why}")):
            Bridge(hooks, host="test")


def nothing() -> None:
    """Handle a hook without looking at it."""


async def test_a_plugin_of_pluggy_is_a_plugin():
    theirs = pluggy.HookimplMarker("hookline")

    class Guard:
        @theirs(tryfirst=True)
        def tool_call(self, event: Any) -> Any:
            return event.deny("not today")

        @theirs(specname="agent_start")
        def begins(self) -> None:
            seen.append("began")

    seen: list[str] = []
    bridge = Bridge(host="test", plugins=[Guard()])
    run = await bridge.start("hi")
    assert (await run.admit("shell", {"command": "ls"})).refusal == "not today"
    assert seen == ["began"]
    await bridge.close()


def test_a_conversation_in_a_home_is_explained_inspected_and_backtested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    home, workspace = tmp_path / "home", tmp_path / "work"
    workspace.mkdir()

    def no_sudo(event: ToolCallEvent) -> Any:
        return event.deny("not as root") if "sudo" in event.input["command"] else None

    bench = Bench(HOST)
    bench.hooks.register(ToolCallEvent, no_sudo)
    answers = [[("shell", {"command": "sudo ls"})], [("shell", {"command": "ls"})], "Done."]
    assert bench.run(answers, home=home, policy="allow").ran == ["ls"]
    hookline = here(home, workspace, monkeypatch, capsys)
    (session,) = (line for line in sessions(home) if line.startswith("plain-"))
    why = hookline("why", session, "call_1_0").stdout
    assert "denied" in why
    assert "no_sudo" in why
    assert "not as root" in why
    assert "Tidy up in Rome." in hookline("tape", "show", session).stdout
    (workspace / "no_ls.py").write_text(
        "from hookline import hookimpl\n\n@hookimpl\ndef tool_call(event):\n"
        "    return event.deny('no') if event.input['command'] == 'ls' else None\n",
        "utf-8",
    )
    changed = hookline("backtest", "--plugin", "no_ls.py", "--fail-on", "new-deny", "--jobs", 1)
    assert changed.returncode == 1, changed.stdout + changed.stderr


def sessions(home: Path) -> list[str]:
    """The sessions on the tape of a home."""
    from hookline.tape.sqlite.store import SQLiteStore

    async def found() -> list[str]:
        store = SQLiteStore(home / "tape.db")
        try:
            return [each.id for each in await store.sessions()]
        finally:
            await store.close()

    return asyncio.run(found())


def test_the_pages_show_what_was_recorded():
    docs = ROOT / "docs"
    found = records(docs)
    for each in found:
        assert each["verdicts"].keys() == SCENARIOS.keys(), each["host"]
        assert not [v for v in each["verdicts"].values() if v.startswith("FAILED")]
        assert each["transcript"], each["host"]
    parts = sections(docs, ROOT / "examples" / "guard.py")
    for name in ("bridges.md", "one-guard.md"):
        page = (docs / name).read_text("utf-8")
        assert filled(page, parts) == page, f"{name}: run scripts/test-bridges --write"


def test_the_versions_that_a_bridge_accepts_are_those_of_its_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for module in sorted((ROOT / "src/hookline/bridges").glob("*.py")):
        found = re.search(r'TESTED: Final = {"(.*)": \("(.*)", "(.*)"\)}', module.read_text("utf-8"))
        if found:
            extra = module.stem.replace("_", "-")
            package, first, end = found.groups()
            assert extras["optional-dependencies"][extra] == [f"{package}>={first},<{end}"]
            assert numbers(first) < numbers(end)
