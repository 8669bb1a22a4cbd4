"""Taking: what is kept of a dispatch at once, while those who called the hook wait.

What may change later is written as text; the rest waits as it is until it is made into rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from orjson import dumps

from hookline.hooks import Implementation, Ruling, Verdict
from hookline.hooks.errors import error_text
from hookline.hooks.observers import Listener, Note, Observed, did_of
from hookline.turn_context import here

from .shapes import Casting, PayloadShape, bare_shape, shape_of
from .snapshot import OPTIONS, encode, plain, read_carefully, snapshot

if TYPE_CHECKING:
    from .tracer import Tracer

PENDING: Final = 10_000
"""Dispatches that wait to be kept; where nothing can be kept, the oldest of them go."""
KNOWN: Final = 10_000
"""Ways in which a compiled hook was run, of which something is remembered."""

Taken = tuple[list[Any], Any, bytes]
"""One dispatch as it was taken; a plain tuple, since one is made for each.

Its row, its scope key, and what was said. Row and text are as `rows` has them, but for the first two of
the row: what was called and where it was, which get their numbers when they are kept.
"""


def taker(tracer: Tracer, watched: Observed) -> Listener:
    """What takes the dispatches of one compiled hook.

    It is one function, with as few calls in it as can be: it runs for every dispatch.
    """
    full, silent, limit, waiting = tracer.full, tracer.silent, tracer.limit, tracer.waiting
    is_kept, is_told = tracer.keeps(watched.spec), bool(tracer.listeners)
    key_of, withholds = watched.key_of, bool(watched.spec.withholds)
    shape: PayloadShape | None = None if full else bare_shape(watched)

    def told(
        args: tuple[Any, ...],
        started: float,
        notes: list[Note],
        value: Any = None,
        error: BaseException | None = None,
    ) -> None:
        nonlocal shape
        try:
            if len(notes) == 1 and error is None:
                impl, begun, ended, returned, what, _ = notes[0]
                said = returned is not None or what is not None
                if not (said or silent):
                    return
                times = () if begun == started else (begun, ended)
            else:
                said = error is not None or anybody_spoke(notes)
                if not (said or silent):
                    return
                impl = returned = what = None
                ended = notes[-1][2] if notes and error is None else perf_counter()
                times = [time for note in notes for time in note[1:3]]
            if withholds:
                value = watched.released(value)
            if shape is None or (shape.event is not None and shape.event is not args[0].__class__):
                shape = shape_of(watched, args)
            about: list[Any] = [None]
            if shape.is_whole:
                try:
                    about[0] = shape.values(args if shape.event is None else args[0])
                except AttributeError:
                    about[0] = read_carefully(args[0], shape.names)
            elif full:  # of what was held back, what was released
                about[0] = read_carefully(watched.arguments(args, value)["event"], shape.names)
            casting = shape.castings.get(impl) if impl is not None else None
            if casting is None:
                casting = casting_of(tracer, shape, notes)
            decision = int(value.decision) if isinstance(value, Verdict) else None  # plain data
            if said:
                if what is None and impl is not None and shape.is_plain:
                    about.append(((0, returned),))
                else:
                    about.append(parts_of(watched, args, notes, value, full))
                    if error is not None:
                        about += (None if decision is None else value.reason, error_text(error))
                    elif decision is not None:
                        about.append(value.reason)
            try:
                text = dumps(about, plain, OPTIONS)
            except TypeError:
                text = b""
            if not 0 < len(text) <= limit:
                text = cut_text(about, shape, limit)
            taken = ([casting, here(), decision, started, ended, *times], key_of(args), text)
            if is_told:
                tracer.tell(taken)
            if is_kept and (said or full):
                waiting.append(taken)
                if tracer.timer is None or len(waiting) > PENDING:
                    tracer.wait()
        except Exception:
            watched.log_failure(tracer)

    told.__code__ = told.__code__.replace()  # the interpreter specialises code where it runs
    return told


def casting_of(tracer: Tracer, shape: PayloadShape, notes: Sequence[Note]) -> Casting:
    """The shape with those who were called."""
    called = tuple([note[0] for note in notes])
    by: Implementation | tuple[Implementation, ...] = called[0] if len(called) == 1 else called
    known = shape.castings.get(by)
    if known is not None:
        return known
    if len(shape.castings) >= KNOWN:
        shape.castings.clear()
    handlers = [None if tracer.is_own(impl) else (impl.name, impl.location) for impl in called]
    casting = shape.castings[by] = Casting(shape, encode((shape.hook, shape.names, handlers)))
    return casting


def parts_of(
    watched: Observed, args: tuple[Any, ...], notes: Sequence[Note], outcome: Any, full: bool
) -> list[tuple[Any, ...]]:
    """What each handler that said something did."""
    reducer = watched.spec.reducer
    chained = reducer.replaces
    event: Any = None
    now: dict[str, Any] = {}
    parts: list[tuple[Any, ...]] = []
    for number, (_, _, _, value, what, at) in enumerate(notes):
        reason = failed = changes = None
        if what is None:
            if value is None:
                continue
            if full and not chained:
                parts.append((number, value))
                continue
            if chained:
                name = reducer.carries or "value"
                before = now[name] if name in now else watched.argument(args, name)
                changes = {name: [before, value]}
                now[name] = value
        elif isinstance(what, Ruling):
            ruling = outcome.trail[at] if isinstance(outcome, Verdict) else None  # pyright: ignore[reportUnknownMemberType]  # as it was released
            reason = ruling.reason if ruling is not None else None
            if ruling is not None and ruling.changes:
                event = event or watched.arguments(args, outcome).get("event")
                changes = {
                    name: [now.get(name, getattr(event, name, None)), after]
                    for name, after in ruling.changes.items()
                }
                now.update(ruling.changes)
        else:
            failed = error_text(what)
        parts.append((number, did_of(value, what, chained), reason, failed, changes))
    return parts


def cut_text(about: list[Any], shape: PayloadShape, limit: int) -> bytes:
    """What was said in a dispatch, as `rows` has it, with each value of about this length at most."""
    payload, parts, *rest = about if len(about) > 1 else (about[0], None)
    if payload is not None:
        payload = dict(zip(shape.names, payload, strict=True))
    texts = [snapshot(payload, limit)]
    if parts is not None:
        texts.append(array(array(snapshot(each, limit) for each in part) for part in parts))
    return array([*texts, *(snapshot(each, limit) for each in rest)])


def array(texts: Iterable[bytes]) -> bytes:
    """JSON texts as one."""
    return b"[" + b",".join(texts) + b"]"


def anybody_spoke(notes: Sequence[Note]) -> bool:
    """Return whether an implementation returned, ruled or raised something."""
    for _, _, _, value, what, _ in notes:  # noqa: SIM110  # a generator would cost more
        if value is not None or what is not None:
            return True
    return False
