"""The trace: what one dispatch did, implementation by implementation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .errors import HookTimeout, NotAwaited, error_text
from .implementation import awaited, discard, is_awaitable
from .verdict import Decision, Ruling, Verdict, as_released, emptied

if TYPE_CHECKING:
    from .implementation import Implementation
    from .plan import Plan
    from .spec import HookSpec

log = logging.getLogger("hookline.hooks")

Did = Literal["value", "none", "raised", "timed out", "denied", "asked", "rewrote", "skipped"]


@dataclass(slots=True)
class Call:
    """One implementation's part in a dispatch."""

    by: str
    started: float
    duration: float
    did: Did
    fields: tuple[str, ...] = ()
    """The event's fields that it changed."""
    error: BaseException | None = None
    value: Any = None
    """What it returned, where that is no ruling."""
    ruling: int | None = None
    """Which ruling of the verdict's trail is its own."""
    implementation: Implementation | None = field(default=None, repr=False)


@dataclass(slots=True)
class Dispatch:
    """One call of one hook; times are in seconds of `time.perf_counter`."""

    hook: str
    key: Any
    """The scope key it ran under."""
    arguments: dict[str, Any]
    started: float
    duration: float = 0.0
    calls: list[Call] = field(default_factory=list[Call])
    value: Any = None
    """The reduced value."""
    error: BaseException | None = None


Sink = Callable[..., Any]
"""Takes a `Dispatch`."""
Told = Callable[..., None]
"""Takes what was noted of a dispatch: the arguments, when it began, the notes, the value, the error."""
Chosen = Callable[["HookSpec", "Sequence[Implementation]"], bool]
"""Whether dispatches of a hook with these attached are of interest; asked when they are compiled."""


class Watch(NamedTuple):
    """A sink, and what it looks at: where it does not look, nothing is compiled for it."""

    sink: Sink
    chosen: Chosen | None = None
    """None: every hook, also where nothing is attached."""
    silent: bool = True
    """Whether dispatches count in which nobody said anything."""
    raw: bool = False
    """Give it what was noted, as it is: faster, where there is much to see.

    Then the sink is called once for each compiled hook, with the `Watched`, and gives the `Told` that
    takes its dispatches. That one sees for itself to what is silent and what is withheld.
    """


class Watched:
    """What all dispatches of one compiled hook have in common, and who is told of them."""

    __slots__ = ("key_of", "passed", "sinks", "spec", "takers", "told")

    def __init__(
        self,
        spec: HookSpec,
        passed: tuple[str, ...],
        key_of: Callable[[tuple[Any, ...]], Any],
        sinks: tuple[Watch, ...],
    ) -> None:
        self.spec = spec
        self.passed = passed
        """The names of the arguments, in their order."""
        self.key_of = key_of
        """Reads the scope key off the arguments."""
        self.sinks = tuple(sink for sink in sinks if not sink.raw)
        self.takers: tuple[Told, ...] = tuple(sink.sink(self) for sink in sinks if sink.raw)
        alone = len(self.takers) == 1 and not self.sinks
        self.told: Told = self.takers[0] if alone else self._tell
        """Is called when a dispatch is over; one who is told alone is called without a detour."""

    def _tell(
        self,
        args: tuple[Any, ...],
        started: float,
        notes: list[Note],
        value: Any = None,
        error: BaseException | None = None,
    ) -> None:
        """A dispatch is over; a sink sees what was released of it, and is logged if it raises.

        While it ran it was only noted what happened; the record is made here, if wanted.
        """
        for taker in self.takers:
            taker(args, started, notes, value, error)
        said = error is not None or anybody_spoke(notes)
        value = self.released(value)
        record: Dispatch | None = None
        for sink, _, silent, _ in self.sinks:
            if not (said or silent):
                continue
            try:
                record = record or self._record(args, started, notes, value, error)
                sink(record)
            except Exception:
                self.log_failure(sink)

    def released(self, value: Any) -> Any:
        """What observers may see of the outcome."""
        if not self.spec.withholds or not isinstance(value, Verdict):
            return value
        return as_released(value, self.spec.withholds)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def log_failure(self, sink: object) -> None:
        """A sink raised: the dispatch goes on."""
        log.exception("hook.trace_failed hook=%s sink=%r", self.spec.name, sink)

    def argument(self, args: tuple[Any, ...], name: str) -> Any:
        """One of those that the hook was called with; None where it was not given."""
        return args[self.passed.index(name)] if name in self.passed else None

    def arguments(self, args: tuple[Any, ...], value: Any) -> dict[str, Any]:
        """What the hook was called with; of what was held back, only what was released."""
        arguments = dict(zip(self.passed, args, strict=True))
        withheld = self.spec.withholds
        if withheld:
            judged = isinstance(value, Verdict)
            arguments["event"] = value.event if judged else emptied(arguments["event"], withheld)  # pyright: ignore[reportUnknownMemberType]
        return arguments

    def _record(
        self,
        args: tuple[Any, ...],
        started: float,
        notes: list[Note],
        value: Any,
        error: BaseException | None,
    ) -> Dispatch:
        duration = perf_counter() - started
        chained = self.spec.reducer.name == "chain"
        calls = [call_of(note, chained) for note in notes]
        arguments = self.arguments(args, value)
        key = self.key_of(args)
        return Dispatch(self.spec.name, key, arguments, started, duration, calls, value, error)


class Recorder:
    """The notes of one dispatch, where layers around the compiled function belong to it."""

    __slots__ = ("args", "notes", "started", "watched")

    def __init__(self, watched: Watched, args: tuple[Any, ...]) -> None:
        self.watched = watched
        self.args = args
        self.notes: list[Note] = []
        """Who came back, in the order in which they did; compiled code adds to it directly."""
        self.started = perf_counter()

    def returned(self, impl: Implementation, started: float, value: Any) -> None:
        """An implementation came back."""
        self.notes.append((impl, started, perf_counter(), value, None, 0))

    def failed(self, impl: Implementation, started: float, error: BaseException) -> None:
        """An implementation raised, or what it returned could not be used."""
        failed(self.notes, impl, started, error)

    def done(self, value: Any = None, error: BaseException | None = None) -> None:
        """The dispatch is over."""
        self.watched.told(self.args, self.started, self.notes, value, error)


Note = tuple["Implementation", float, float, Any, Ruling | BaseException | None, int]
"""Who, from when to when, what was returned, the ruling or the error, and the ruling's place."""


def anybody_spoke(notes: list[Note]) -> bool:
    """Whether anybody returned, ruled or raised something."""
    for _, _, _, returned, what, _ in notes:  # noqa: SIM110  # a generator would cost more
        if returned is not None or what is not None:
            return True
    return False


def ruled(notes: list[Note], impl: Implementation, started: float, verdict: Verdict[Any]) -> None:
    """Note that an implementation's result was folded into the verdict."""
    trail = verdict.trail
    notes.append((impl, started, perf_counter(), None, trail[-1], len(trail) - 1))


def failed(notes: list[Note], impl: Implementation, started: float, error: BaseException) -> None:
    """Note that an implementation raised, or that what it returned could not be used."""
    notes.append((impl, started, perf_counter(), None, error, 0))


def call_of(note: Note, chained: bool) -> Call:
    """A note as the record has it."""
    impl, started, ended, value, what, place = note
    did, duration = did_of(value, what, chained), ended - started
    if what is None:
        return Call(impl.name, started, duration, did, (), None, value, None, impl)
    if isinstance(what, Ruling):
        changed = tuple(what.changes or ())
        return Call(impl.name, started, duration, did, changed, None, None, place, impl)
    return Call(impl.name, started, duration, did, (), what, None, None, impl)


def did_of(value: Any, what: Ruling | BaseException | None, chained: bool) -> Did:
    """What an implementation did, by what it returned and by its ruling or error."""
    if what is None:
        return "none" if value is None else "rewrote" if chained else "value"
    if isinstance(what, Ruling):
        if what.decision is not Decision.ALLOW:
            return "denied" if what.decision is Decision.DENY else "asked"
        return "rewrote" if what.changes else "value"
    if isinstance(what, HookTimeout):
        return "timed out"
    return "skipped" if isinstance(what, NotAwaited) else "raised"


Fire = Callable[..., Any]


class Subscriber(NamedTuple):
    """A catch-all observer of events."""

    name: str
    call: Fire


def observed(
    core: Fire, plan: Plan, subscribers: tuple[Subscriber, ...], sinks: tuple[Watch, ...]
) -> Fire:
    """The outermost layer: list of results, subscribers, and the record for the trace."""
    spec, emits = plan.spec, plan.emits
    watched = watching(spec, plan.passed, sinks)

    def opening(args: tuple[Any, ...]) -> tuple[list[Any], Recorder | None, list[Any]]:
        results: list[Any] = []
        hidden: list[Any] = [results] if emits else []
        recorder = None
        if sinks:
            recorder = Recorder(watched, args)
            hidden.append(recorder)
        return results, recorder, hidden

    def run_sync(*args: Any) -> Any:
        results, recorder, hidden = opening(args)
        try:
            value = core(*args, *hidden)
            seen = released(spec, value)
            for subscriber in subscribers:
                tell_sync(subscriber, spec, final_event(seen, args), args)
        except BaseException as error:
            if recorder is not None:
                recorder.done(error=error)
            raise
        if recorder is not None:
            recorder.done(value)
        return results if emits else value

    async def run(*args: Any) -> Any:
        results, recorder, hidden = opening(args)
        try:
            value = await core(*args, *hidden)
            seen = released(spec, value)
            for subscriber in subscribers:
                await tell(subscriber, spec, final_event(seen, args), args)
        except BaseException as error:
            if recorder is not None:
                recorder.done(error=error)
            raise
        if recorder is not None:
            recorder.done(value)
        return results if emits else value

    return run_sync if plan.sync else run


def watching(spec: HookSpec, passed: tuple[str, ...], sinks: tuple[Watch, ...]) -> Watched:
    """What dispatches of a hook that is called with these are recorded for."""
    return Watched(spec, passed, scope_key(spec, passed), sinks)


def released(spec: HookSpec, value: Any) -> Any:
    """What observers may see of the outcome."""
    if not spec.withholds or not isinstance(value, Verdict):
        return value
    return as_released(value, spec.withholds)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def final_event(value: Any, args: tuple[Any, ...]) -> Any:
    """The event after all patches; subscribers see what handlers made of it."""
    return value.event if isinstance(value, Verdict) else args[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


async def tell(subscriber: Subscriber, spec: HookSpec, event: Any, args: tuple[Any, ...]) -> None:
    """Show an event to a subscriber; what it raises is logged."""
    try:
        await awaited(subscriber.call(event, args[1]))
    except Exception as error:
        log_subscriber(subscriber, spec, error)


def tell_sync(subscriber: Subscriber, spec: HookSpec, event: Any, args: tuple[Any, ...]) -> None:
    """The same from a synchronous call, where an awaitable is skipped with a warning."""
    try:
        answer = subscriber.call(event, args[1])
        if is_awaitable(answer):
            discard(answer)
            log.warning("hook.async_not_supported hook=%s adapter=%s", spec.name, subscriber.name)
    except Exception as error:
        log_subscriber(subscriber, spec, error)


def log_subscriber(subscriber: Subscriber, spec: HookSpec, error: Exception) -> None:
    """A failing observer never reaches the dispatch."""
    log.error(
        "hook.subscriber_failed hook=%s adapter=%s: %s",
        spec.name,
        subscriber.name,
        error_text(error),
        exc_info=error,
    )


def scope_key(spec: HookSpec, passed: tuple[str, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """Read the scope key off the arguments, from where the spec says it is."""
    parameter, _, attribute = (spec.scope or "").partition(".")
    if parameter not in passed:
        return lambda args: None
    at = passed.index(parameter)
    if not attribute:
        return itemgetter(at)
    return lambda args: getattr(args[at], attribute, None)
