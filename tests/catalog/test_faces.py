"""What the package and the catalogue offer to users: names, records, typed bases."""

import inspect
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest

import hookline
import hookline.events
from hookline import AsyncStreamEvents, Hooks, StreamEvent, hookimpl
from hookline import typed_events as bases
from hookline.events import HookContext, MessageReceiveResult, ToolCallEvent
from hookline.hooks import Catalog, Family, RegistrationError, first
from hookline.hooks.annotations import plain_result
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


def test_the_public_face_has_every_event_result_and_part():
    classes = {
        name
        for module in (hookline.events,)
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }
    parts = {"TextPart", "AudioPart", "ImagePart", "ToolCall", "ToolResultContent", "HookContext"}
    assert set(hookline.events.__all__) == classes | parts | {"HookEvent", "Part"}
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


BASES = [v for v in vars(bases).values() if inspect.isclass(v) and v.__module__ == bases.__name__]


def test_the_bases_have_one_method_for_every_event():
    methods = [(m, f) for base in BASES for m, f in vars(base).items() if not m.startswith("_")]
    assert len(methods) == len(EVENT_SPECS)
    for name, method in methods:
        spec = method.__hookspec__
        assert spec is CATALOG[spec.name]
        assert name == spec.name.replace(":", "_")
        assert method.__doc__ == spec.doc
        parameters = inspect.signature(method).parameters
        assert list(parameters) == ["self", "event", "ctx"]
        assert (parameters["event"].annotation, parameters["ctx"].annotation) == (
            spec.event,
            HookContext,
        )
        assert plain_result(method.__annotations__["return"]) is spec.result


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_a_base_stands_for_the_declarations_of_its_family(base: type):
    (family,) = Catalog(base).families()
    assert base.__name__ == f"{family.capitalize()}Events"
    assert set(Catalog(base)) == {spec.name for spec in EVENT_SPECS if spec.family == family}
    hooks = Hooks()
    hooks.declare(base)  # the same declarations once more, no others
    assert list(hooks.catalog) == list(CATALOG)


def test_a_plugin_that_inherits_a_base_implements_only_what_it_marks():
    class Doorkeeper(bases.GatewayEvents, bases.ToolEvents, TurnHooks):
        @hookimpl(specname="message:receive")
        def message_receive(self, event: Any, ctx: Any) -> Any:
            return MessageReceiveResult("reject")

    hooks = Hooks()
    hooks.add(Doorkeeper())
    assert hooks.report() == {"message:receive": ["Doorkeeper"]}


def test_an_overridden_method_must_be_marked():
    class Forgetful(bases.ToolEvents):
        def tool_call(self, event: Any, ctx: Any) -> Any: ...

        @hookimpl
        def tool_result(self, event: Any, ctx: Any) -> Any: ...

    with pytest.raises(RegistrationError, match="'tool_call', named like a hook but not marked"):
        Hooks().add(Forgetful())
