"""The contenders other than Hookline: hand-written loops and other hook libraries.

Each contender is one or more `Row`s. A row says what a call site would write (`call`), how to attach
handlers (`attach`), what the dispatch means, and whether one failing handler leaves the others running
(`isolates`). `dispatch.py` tests that last claim before it measures anything.

Every peer is called in the cheapest way its documentation offers: a hook caller or signal is looked up
once, and nothing is wrapped around it.
"""

from collections.abc import Sequence
from types import FunctionType, SimpleNamespace

from rows import (
    COUNTS,
    MEANINGS,
    MODES,
    THOUSAND,
    Attach,
    Handler,
    Meaning,
    Mode,
    Names,
    Row,
)

BARE_LOOP = "loop"
SAME_MEANING = "loop of the same meaning"

# --- Hand-written loops: no try, no checks. The limit that the ratios are against. ---


def own_code(function: FunctionType) -> FunctionType:
    """Copy a function with its code: two loops sharing code would share inline caches as well."""
    return FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def sync_loop(handlers: Sequence[Handler]) -> Names:
    def loop(event: object) -> None:
        for handler in handlers:
            handler(event)

    return {"loop": own_code(loop)}


def sync_first(handlers: Sequence[Handler]) -> Names:
    def loop(event: object) -> object:
        for handler in handlers:
            result = handler(event)
            if result is not None:
                return result
        return None

    return {"loop": own_code(loop)}


def sync_chain(handlers: Sequence[Handler]) -> Names:
    def loop(value: object) -> object:
        for handler in handlers:
            result = handler(value)
            if result is not None:
                value = result
        return value

    return {"loop": own_code(loop)}


def sync_collect(handlers: Sequence[Handler]) -> Names:
    def loop(event: object) -> list[object]:
        results: list[object] = []
        for handler in handlers:
            result = handler(event)
            if result is not None:
                results.append(result)
        return results

    return {"loop": own_code(loop)}


def async_loop(handlers: Sequence[Handler]) -> Names:
    async def loop(event: object) -> None:
        for handler in handlers:
            await handler(event)

    return {"loop": own_code(loop)}


def async_first(handlers: Sequence[Handler]) -> Names:
    async def loop(event: object) -> object:
        for handler in handlers:
            result = await handler(event)
            if result is not None:
                return result
        return None

    return {"loop": own_code(loop)}


def async_chain(handlers: Sequence[Handler]) -> Names:
    async def loop(value: object) -> object:
        for handler in handlers:
            result = await handler(value)
            if result is not None:
                value = result
        return value

    return {"loop": own_code(loop)}


def async_collect(handlers: Sequence[Handler]) -> Names:
    async def loop(event: object) -> list[object]:
        results: list[object] = []
        for handler in handlers:
            result = await handler(event)
            if result is not None:
                results.append(result)
        return results

    return {"loop": own_code(loop)}


def loops() -> list[Row]:
    same: dict[Meaning, dict[Mode, Attach]] = {
        "first": {"sync": sync_first, "async": async_first},
        "chain": {"sync": sync_chain, "async": async_chain},
        "collect": {"sync": sync_collect, "async": async_collect},
    }
    rows: list[Row] = []
    for mode in MODES:
        alone = "(the measuring loop alone)"
        rows.append(Row(alone, mode, "notify", "pass", lambda _: {}, False, counts=(0,)))
        call = "await loop(event)" if mode == "async" else "loop(event)"
        bare = async_loop if mode == "async" else sync_loop
        for meaning in MEANINGS:
            returns = "event" if meaning in ("chain", "collect") else "None"
            # The thousand is for `notify`: it shows whether the cost per handler stays the same.
            counts = (*COUNTS, THOUSAND) if meaning == "notify" else COUNTS
            rows.append(
                Row(BARE_LOOP, mode, meaning, call, bare, False, returns=returns, counts=counts)
            )
            if meaning in same:
                attach = same[meaning][mode]
                rows.append(Row(SAME_MEANING, mode, meaning, call, attach, False, returns=returns))
    return rows


# --- pluggy ---


def attach_pluggy(handlers: Sequence[Handler], firstresult: bool = False) -> Names:
    import pluggy

    hookspec, hookimpl = pluggy.HookspecMarker("bench"), pluggy.HookimplMarker("bench")

    class Specs:
        @hookspec(firstresult=firstresult)
        def fired(self, event: object) -> object: ...

    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(Specs)
    for handler in handlers:
        manager.register(SimpleNamespace(fired=hookimpl(handler)))
    return {"hook": manager.hook.fired, "manager": manager, "hookimpl": hookimpl}


def attach_pluggy_first(handlers: Sequence[Handler]) -> Names:
    return attach_pluggy(handlers, firstresult=True)


def pluggy() -> list[Row]:
    call = "hook(event=event)"
    await_all = "for awaitable in hook(event=event): await awaitable"
    collect_all = "[await awaitable for awaitable in hook(event=event)]"
    awaits = "pluggy awaits nothing: the call site awaits what the async handlers returned"
    return [
        Row("pluggy", "sync", "notify", call, attach_pluggy, False, "pluggy", note="makes a list"),
        Row("pluggy", "sync", "first", call, attach_pluggy_first, False, "pluggy"),
        Row("pluggy", "sync", "collect", call, attach_pluggy, False, "pluggy", returns="event"),
        Row("pluggy", "async", "notify", await_all, attach_pluggy, False, "pluggy", note=awaits),
        Row(
            "pluggy", "async", "collect", collect_all, attach_pluggy, False, "pluggy",
            returns="event", note=awaits,
        ),
    ]  # fmt: skip


# --- blinker ---


def attach_blinker(handlers: Sequence[Handler]) -> Names:
    from blinker import Signal

    signal = Signal()
    for handler in handlers:
        signal.connect(handler)
    return {"signal": signal, "handlers": handlers}  # connected weakly: somebody must hold them


def blinker() -> list[Row]:
    note = "the event is the sender; makes a list of (receiver, result), in no fixed order"
    rows: list[Row] = []
    calls: list[tuple[Mode, str]] = [
        ("sync", "signal.send(event)"),
        ("async", "await signal.send_async(event)"),
    ]
    answers: list[tuple[Meaning, str]] = [("notify", "None"), ("collect", "event")]
    for mode, call in calls:
        for meaning, returns in answers:
            rows.append(
                Row(
                    "blinker", mode, meaning, call, attach_blinker, False, "blinker",
                    returns=returns, note=note,
                )
            )  # fmt: skip
    return rows


# --- pyee ---


def attach_pyee(handlers: Sequence[Handler]) -> Names:
    from pyee import EventEmitter

    emitter = EventEmitter()
    for handler in handlers:
        emitter.on("fired", handler)
    return {"emitter": emitter}


def attach_pyee_asyncio(handlers: Sequence[Handler]) -> Names:
    from pyee.asyncio import AsyncIOEventEmitter

    emitter = AsyncIOEventEmitter()
    for handler in handlers:
        emitter.on("fired", handler)
    emitter.on("error", lambda error: None)  # without it, pyee raises the error after all
    return {"emitter": emitter}


def pyee() -> list[Row]:
    emit, wait = 'emitter.emit("fired", event)', "await emitter.wait_for_complete()"
    return [
        Row("pyee", "sync", "notify", emit, attach_pyee, False, "pyee"),
        Row(
            "pyee, emit only", "async", "notify", emit, attach_pyee_asyncio, True, "pyee",
            after=wait, note="schedules one task per handler and returns: no handler has run yet",
        ),
        Row(
            "pyee, emit and wait", "async", "notify", f"{emit}; {wait}", attach_pyee_asyncio, True,
            "pyee", note="schedules one task per handler, then waits until all are done",
        ),
    ]  # fmt: skip


# --- Django's Signal ---


def attach_django(handlers: Sequence[Handler]) -> Names:
    from django.dispatch import Signal

    signal = Signal()
    for handler in handlers:
        signal.connect(handler)
    return {"signal": signal, "handlers": handlers}  # connected weakly: somebody must hold them


def django() -> list[Row]:
    pairs = "makes a list of (receiver, result)"
    calls: list[tuple[str, Mode, str, bool, str]] = [
        ("django send", "sync", "signal.send(None, event=event)", False, pairs),
        ("django send_robust", "sync", "signal.send_robust(None, event=event)", True, pairs),
        (
            "django asend_robust",
            "async",
            "await signal.asend_robust(None, event=event)",
            True,
            f"{pairs}; runs the handlers concurrently",
        ),
    ]
    answers: list[tuple[Meaning, str]] = [("notify", "None"), ("collect", "event")]
    return [
        Row(
            name, mode, meaning, call, attach_django, isolates, "django",
            parameters="event, **_", returns=returns, note=note,
        )
        for name, mode, call, isolates, note in calls
        for meaning, returns in answers
    ]  # fmt: skip


# --- strands' HookRegistry ---


def attach_strands(handlers: Sequence[Handler]) -> Names:
    from strands.hooks import BaseHookEvent, HookRegistry

    class Fired(BaseHookEvent):
        pass

    registry = HookRegistry()
    for handler in handlers:
        registry.add_callback(Fired, handler)
    return {"registry": registry, "event": Fired()}


def strands() -> list[Row]:
    call = "registry.invoke_callbacks(event)"
    await_ = "await registry.invoke_callbacks_async(event)"
    note = "one event object for all dispatches"
    return [
        Row("strands", "sync", "notify", call, attach_strands, False, "strands-agents", note=note),
        Row("strands", "async", "notify", await_, attach_strands, False, "strands-agents", note=note),
    ]


# --- google-adk's PluginManager ---


def attach_adk(handlers: Sequence[Handler], callback: str) -> Names:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.plugins.plugin_manager import PluginManager

    # A class each, as plugins are written: what they share is the base class.
    plugins: list[BasePlugin] = [
        type(f"Plugin{index}", (BasePlugin,), {callback: handler})(name=f"plugin_{index}")
        for index, handler in enumerate(handlers)
    ]
    return {"plugins": PluginManager(plugins), "error": ValueError("reported to the plugins")}


def attach_adk_first(handlers: Sequence[Handler]) -> Names:
    return attach_adk(handlers, "before_run_callback")


def attach_adk_notify(handlers: Sequence[Handler]) -> Names:
    return attach_adk(handlers, "on_run_error_callback")


def google_adk() -> list[Row]:
    return [
        Row(
            "google-adk on_run_error", "async", "notify",
            "await plugins.run_on_run_error_callback(invocation_context=event, error=error)",
            attach_adk_notify, True, "google-adk",
            parameters="self, *, invocation_context, error",
            note="the only two callbacks that isolate are on_run_error and on_agent_error",
        ),
        Row(
            "google-adk before_run", "async", "first",
            "await plugins.run_before_run_callback(invocation_context=event)",
            attach_adk_first, False, "google-adk", parameters="self, *, invocation_context",
        ),
    ]  # fmt: skip


# --- pydantic-ai's Hooks ---


def attach_pydantic_ai(handlers: Sequence[Handler]) -> Names:
    from pydantic_ai.capabilities import Hooks

    hooks = Hooks()
    for handler in handlers:
        hooks.on.before_run(handler)
    return {"hooks": hooks}


def attach_pydantic_ai_chain(handlers: Sequence[Handler]) -> Names:
    from pydantic_ai.capabilities import Hooks

    hooks = Hooks()
    for handler in handlers:
        hooks.on.after_run(handler)
    return {"hooks": hooks}


def pydantic_ai() -> list[Row]:
    return [
        Row(
            "pydantic-ai before_run", "async", "notify", "await hooks.before_run(event)",
            attach_pydantic_ai, False, "pydantic-ai-slim", parameters="ctx",
        ),
        Row(
            "pydantic-ai after_run", "async", "chain", "await hooks.after_run(None, result=event)",
            attach_pydantic_ai_chain, False, "pydantic-ai-slim",
            parameters="ctx, *, result", returns="result",
        ),
    ]  # fmt: skip


# --- bubus ---


def attach_bubus(handlers: Sequence[Handler]) -> Names:
    from bubus import BaseEvent, EventBus

    class Fired(BaseEvent[None]):
        pass

    bus = EventBus()
    for handler in handlers:
        bus.on(Fired, handler)
    return {"bus": bus, "Fired": Fired}


def bubus() -> list[Row]:
    note = "an event is dispatched once, so making it is part of the cost; every handler is a task"
    return [
        Row(
            "bubus", "async", "notify", "await bus.dispatch(Fired())", attach_bubus, True, "bubus",
            note=note, warm_up=60,  # its history of 50 events must be full
        )
    ]  # fmt: skip


def peers() -> list[Row]:
    """Return the rows of every peer, installed or not."""
    return [
        *pluggy(),
        *blinker(),
        *pyee(),
        *django(),
        *strands(),
        *google_adk(),
        *pydantic_ai(),
        *bubus(),
    ]
