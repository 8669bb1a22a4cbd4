"""What the package and the catalogue offer to users: names, records, typed handlers."""

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import get_args

import pytest

import hookline
import hookline.events
from hookline import AsyncStreamEvents, Hooks, StreamEvent, hookimpl
from hookline.events import HookContext, MessageReceiveEvent, MessageReceiveResult, ToolCallEvent
from hookline.hooks import Catalog, Family, UnknownHook, first
from hookline.hookspecs import CATALOG, TurnHooks

EVENT_SPECS = [spec for spec in CATALOG.values() if spec.event]


async def test_a_stream_keeps_its_state_and_a_tap_passes_it_on():
    async def words() -> AsyncIterator[StreamEvent]:
        yield StreamEvent("text", {"delta": "a"})
        yield StreamEvent("final")

    state = {"usage": 1}
    parent = AsyncStreamEvents(words(), state=state)
    tap = AsyncStreamEvents((event async for event in parent), state=parent._state)
    assert [event.kind async for event in tap] == ["text", "final"]
    assert tap.state is tap._state is state
    assert AsyncStreamEvents(words()).state is None


async def test_a_context_without_a_person_asks_nobody():
    ctx = HookContext()
    assert await ctx.ask("Sure?", choices=["yes", "no"]) is None
    assert ctx.notify("a note") is None


async def test_a_handler_is_scoped_by_the_session_of_its_context():
    hooks = Hooks()
    seen: list[str] = []
    hooks.scope("a").register("tool_call", lambda event, ctx: seen.append(ctx.session_id))
    for session_id in ("a", "b"):
        await hooks.call(ToolCallEvent(), HookContext(session_id))
    assert seen == ["a"]


def test_the_union_of_events_is_derived_from_their_declarations():
    assert set(get_args(hookline.events.HookEvent)) == {spec.event for spec in EVENT_SPECS}


def test_importing_the_package_loads_nothing():
    script = (
        "import sys; before = set(sys.modules); import hookline;"
        "print(sorted(set(sys.modules) - before));"
        "import hookline.hookspecs;"
        "print([m for m in ('typer', 'pydantic', 'fastapi', 'rich') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == ["['hookline']", "[]"], run.stderr


def test_the_package_offers_what_it_promises():
    for name in hookline.__all__:
        assert getattr(hookline, name) is not None
    assert set(hookline.__all__) <= set(dir(hookline))
    assert hookline.Hooks().catalog.keys() == CATALOG.keys()
    with pytest.raises(AttributeError, match="no attribute 'hokimpl'"):
        _ = hookline.hokimpl  # type: ignore[attr-defined]


def test_hooks_comes_with_the_catalogue_or_takes_another():
    class Own(Family, name="own"):
        @hookline.hookspec(first)
        def greet(self, name: str) -> str | None:
            """Greet somebody."""

    assert list(Hooks(Catalog(Own)).catalog) == ["greet"]
    assert Hooks(on_gate_error="deny").on_gate_error == "deny"


def test_a_method_is_marked_with_the_event_that_it_handles():
    class Doorkeeper(TurnHooks):
        @hookimpl(MessageReceiveEvent, guard=True)
        def reject(self, event: MessageReceiveEvent) -> MessageReceiveResult:
            return MessageReceiveResult("reject")

    hooks = Hooks()
    hooks.add(Doorkeeper())
    assert hooks.report() == {"message:receive": ["Doorkeeper"]}
    [attached] = hooks[MessageReceiveEvent].implementations
    assert attached.guard


def test_an_event_class_finds_the_hook_of_its_name():
    hooks = Hooks()
    assert all(hooks[spec.event] is hooks[spec.name] for spec in EVENT_SPECS)
    with pytest.raises(UnknownHook, match="unknown hook 'MessageReceiveResult'; did you mean"):
        _ = hooks[MessageReceiveResult]  # type: ignore[index]
    with pytest.raises(TypeError, match="takes an event or a function, and MessageReceiveResult"):
        hookimpl(MessageReceiveResult)
    with pytest.raises(TypeError, match="no option 'gaurd'"):
        hookimpl(MessageReceiveEvent, gaurd=True)  # type: ignore[call-overload]
