"""The hook kernel: declared hooks, reducers and compiled dispatch.

Declare hooks in a `Family`, put families and events in a `Catalog`, and register and call through one
`HookRegistry`. (Programs use `hookline.Hooks`, which is this class with the shipped catalogue.)

    class Checks(Family, name="checks"):
        @hookspec(chain("text"), errors=SKIP)
        def clean(self, text: str) -> Answer[str]:
            '''Rewrite a text before it is shown.'''

    hooks = HookRegistry(Catalog(Checks))

    @hooks.on("clean")
    def strip(text):
        return text.strip()

    assert await hooks.call("clean", text=" hello ") == "hello"

The kernel knows nothing about agents, and imports only pluggy and the standard library. To read it in
one sitting, take the files in this order:

1. `spec.py`: what a hook is. A declaration, as data, from which everything else follows.
2. `reducers.py` and `verdict.py`: how the results of one dispatch become its value. Each reducer is one
   class, with the lines of Python that it adds to a dispatch.
3. `implementation.py`: a callable on a hook, with its signature read and checked. `plugins.py` collects
   the marked methods of plugins, through pluggy.
4. `registry.py`: `HookRegistry`, which attaches, removes, scopes and observes. The methods that call
   hooks are in `calls.py`.
5. `hook.py`: one hook, compiled again after each change. `source.py` writes the function that calls
   what is attached, and `dispatch.py` has what it runs on. `hookline hooks NAME --source` prints it.
6. What only some hooks need: `around.py` (middleware and wrappers), `timeouts.py` (time limits) and
   `observers.py` (subscribers and the trace).
"""

# fmt: off
# isort: off
from .errors import (
    CallError, DeclarationError, HooklineError, HookTimeout, MissingArgument, NotAwaited,
    RegistrationError, UnknownHook, Unsettled, WrongResult,
)
from .hook import Hook, HookCaller
from .implementation import Implementation, Options
from .observers import Dispatch, HandlerCall
from .plugins import PluginManager, hookimpl
from .reducers import (
    CAPTURE, DENY, NEWEST, OLDEST, RAISE, REDUCERS, SKIP, Errors, Order, Outcome, Reducer, around,
    chain, collect, first, flatten, gate, join, merge, notify, outcomes, patch,
)
from .registry import HookRegistry, Registered, Scope
from .spec import Answer, Catalog, Event, EventClass, Family, HookSpec, event, hookspec
from .verdict import Collected, Decision, Denied, EventResult, Ruling, Verdict, record

__all__ = [
    "CAPTURE", "DENY", "NEWEST", "OLDEST", "RAISE", "REDUCERS", "SKIP", "Answer", "CallError",
    "Catalog", "Collected", "Decision", "DeclarationError", "Denied", "Dispatch", "Errors", "Event",
    "EventClass", "EventResult", "Family", "HandlerCall", "Hook", "HookCaller", "HookRegistry",
    "HookSpec", "HookTimeout", "HooklineError", "Implementation", "MissingArgument", "NotAwaited",
    "Options", "Order", "Outcome", "PluginManager", "Reducer", "Registered", "RegistrationError",
    "Ruling", "Scope", "UnknownHook", "Unsettled", "Verdict", "WrongResult", "around", "chain",
    "collect", "event", "first", "flatten", "gate", "hookimpl", "hookspec", "join", "merge",
    "notify", "outcomes", "patch", "record",
]
