"""The hook kernel: declared hooks, reducers and compiled dispatch.

Declare hooks in a `Family`, put families and events in a `Catalog`, and register and call through
one `HookRegistry`:

    class Checks(Family, name="checks"):
        @hookspec(chain("text"), errors=SKIP)
        def clean(self, text: str) -> Answer[str]:
            '''Rewrite a text before it is shown.'''

    hooks = HookRegistry(Catalog(Checks))

    @hooks.on("clean")
    def strip(text):
        return text.strip()

    assert await hooks.call("clean", text=" hello ") == "hello"

It knows nothing about agents, and imports only pluggy and the standard library. To read it, start with
`spec.py` (what a hook is), `reducers.py` (how results are combined) and
`registry.py` (`HookRegistry`); then
`hook.py` compiles a hook with `source.py`, and `dispatch.py` is what the generated code runs on.
"""

from .errors import (
    CallError,
    DeclarationError,
    HooklineError,
    HookTimeout,
    MissingArgument,
    NotAwaited,
    RegistrationError,
    UnknownHook,
    Unsettled,
    WrongResult,
)
from .hook import Hook, HookCaller
from .implementation import Implementation, Options
from .observers import Dispatch, HandlerCall
from .plugins import PluginManager, hookimpl
from .reducers import (
    CAPTURE,
    DENY,
    NEWEST,
    OLDEST,
    RAISE,
    REDUCERS,
    SKIP,
    Errors,
    Order,
    Outcome,
    Reducer,
    around,
    chain,
    collect,
    first,
    flatten,
    gate,
    join,
    merge,
    notify,
    outcomes,
    patch,
)
from .registry import HookRegistry, Registered, Scope
from .spec import Answer, Catalog, Event, EventClass, Family, HookSpec, event, hookspec
from .verdict import Collected, Decision, Denied, EventResult, Ruling, Verdict, record

__all__ = [
    "CAPTURE",
    "DENY",
    "NEWEST",
    "OLDEST",
    "RAISE",
    "REDUCERS",
    "SKIP",
    "Answer",
    "CallError",
    "Catalog",
    "Collected",
    "Decision",
    "DeclarationError",
    "Denied",
    "Dispatch",
    "Errors",
    "Event",
    "EventClass",
    "EventResult",
    "Family",
    "HandlerCall",
    "Hook",
    "HookCaller",
    "HookRegistry",
    "HookSpec",
    "HookTimeout",
    "HooklineError",
    "Implementation",
    "MissingArgument",
    "NotAwaited",
    "Options",
    "Order",
    "Outcome",
    "PluginManager",
    "Reducer",
    "Registered",
    "RegistrationError",
    "Ruling",
    "Scope",
    "UnknownHook",
    "Unsettled",
    "Verdict",
    "WrongResult",
    "around",
    "chain",
    "collect",
    "event",
    "first",
    "flatten",
    "gate",
    "hookimpl",
    "hookspec",
    "join",
    "merge",
    "notify",
    "outcomes",
    "patch",
    "record",
]  # fmt: skip
