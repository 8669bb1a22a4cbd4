"""Replaying: a recorded session once more, through today's plugins, and what differs.

    comparison = await replay(app.store(), "terminal:local", lambda: loaded(app))

The record is played on a tape in memory, under the session's own name, so that hooks see what they saw.
It is played twice: what the two do not agree on is not deterministic. A what-if is written down when it
is done, whole, as a fork of the session; the session itself is never touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hookline.agent.journal import TapeJournal
from hookline.errors import Diverged, ReplayError, ReplayStopped, UnknownRecording
from hookline.hooks.errors import HooklineError, error_text
from hookline.tape import FORK, Entry, TapeStore, new_id
from hookline.tape.entry import MESSAGE, TOOL_CALL, TOOL_RESULT
from hookline.tools.arguments import parse
from hookline.tools.runner import Requested, ToolCaller
from hookline.types import Identity

from .app import ReplayApp
from .comparison import Comparison, Pair, compare
from .playback import RecordedModels, RecordedRegistry
from .record import RecordedItem, missing_fields, read_items, restored, source_of

MARK = "/replay-"
"""What the names of sessions have that a replay wrote."""


_OURS = frozenset(
    {
        "approval", "audit", "authorize_action", "default", "floor", "policy", "resolve_approval",
        "runner", "sandbox", "tool_call",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Changes to the replay."""

    entry: str | None = None
    """Entry to start replaying from; everything before it stays as recorded."""
    message: str | None = None
    """What the user says in the turn of that entry."""
    results: Mapping[str, str] = field(default_factory=dict[str, str])
    """Results of tools, by call."""
    model: str | None = None
    """Who answers where the conversation is no longer the recorded one."""
    keep: bool = False
    """Whether to record the replay even without changes."""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else is otherwise, for the mark on the tape: plugins, packs."""

    @property
    def kept(self) -> bool:
        """Whether the replay becomes a branch on the tape."""
        return bool(self.keep or self.entry or self.message is not None or self.results or self.model)


@dataclass(slots=True)
class SessionRecording:
    """A session being replayed: what stays as recorded, and the items to replay."""

    session_id: str
    branch: list[Entry]
    cut: int
    """How many entries of the branch stand as they are."""
    items: list[RecordedItem]
    first: int
    """The first item to replay, counted from 0 on the branch."""
    within: bool = False
    """Whether the first item continues in its middle."""

    @property
    def standing(self) -> list[Entry]:
        """What stays as recorded; if it belongs to another session, a fork continues from it."""
        kept = self.branch[: self.cut]
        if not kept or kept[-1].session_id == self.session_id:
            return kept
        last = kept[-1]
        led = {"session_id": last.session_id, "entry_id": last.id, "position": "at"}
        return [*kept, Entry.new(self.session_id, last.id, FORK, led)]


async def replay(
    store: TapeStore,
    session_id: str,
    make: Callable[[], ReplayApp],
    what_if: WhatIf | None = None,
) -> Comparison:
    """Play a session of a store in an app of today and compare; `make` gives a loaded app."""
    what_if = what_if or WhatIf()
    recording = await record_of(store, session_id, what_if)
    app = make()
    comparison = Comparison(session_id, notes=[*app.notes, *notes_on(recording, app)])
    first = await play(app, recording, what_if, comparison)
    for pair in first:
        comparison.pairs.append(pair)
        comparison.differences += compare(pair.index, pair.original, pair.replayed)
    if app.playback.model.live:
        comparison.notes.append(
            f"{what_if.model} answered from where it diverged; it was not played twice"
        )
    else:
        await _play_again(make(), recording, what_if, comparison)
    if what_if.kept:
        comparison.branch = await write_branch(store, app, recording, what_if)
    return comparison


async def _play_again(
    app: ReplayApp, recording: SessionRecording, what_if: WhatIf, comparison: Comparison
) -> None:
    """Replay again, and separate what is not deterministic."""
    again = await play(app, recording, what_if, Comparison(recording.session_id))
    for one, other in zip(comparison.pairs, again, strict=False):
        comparison.random += compare(one.index, one.replayed, other.replayed)
    unsteady = {difference.key for difference in comparison.random}
    comparison.differences = [d for d in comparison.differences if d.key not in unsteady]


# --- what is played -----------------------------------------------------------------------------


async def record_of(store: TapeStore, session_id: str, what_if: WhatIf) -> SessionRecording:
    """Read what to replay, and where it starts."""
    leaf = await store.leaf(session_id)
    if leaf is None:
        known = [info.id for info in await store.sessions()]
        look = "`hookline tape list` shows the sessions"
        raise UnknownRecording("session", session_id, known, look)
    branch = await store.branch(await _end(store, session_id, what_if.entry) or leaf.id)
    items = read_items(branch)
    first = _first(branch, items, session_id, what_if)
    item = items[first]
    for call_id in what_if.results:
        known = [c for i in items[first:] for c in i.calls]
        if call_id not in known:
            look = f"the calls from there on are {', '.join(known) or 'none'}"
            raise UnknownRecording("call", call_id, known, look)
    cut, within = _cut(branch, item, what_if)
    return SessionRecording(session_id, branch, cut, items[first:], first, within)


async def _end(store: TapeStore, session_id: str, entry_id: str | None) -> str | None:
    """The last entry of the branch that goes through an entry."""
    if entry_id is None:
        return None
    last: str | None = None
    below: set[str] = set()
    known: list[str] = []
    for entry in await store.outline(session_id):
        known.append(entry.id)
        if entry.id == entry_id or entry.parent_id in below:
            below.add(entry.id)
            last = entry.id
    if last is None:
        look = f"`hookline tape show {session_id}` lists them"
        raise UnknownRecording(f"entry of session {session_id!r} with the id", entry_id, known, look)
    return last


def _first(branch: list[Entry], items: list[RecordedItem], session_id: str, what_if: WhatIf) -> int:
    """The item to begin with."""
    made = [n for n, item in enumerate(items) if item.kind != "carried"]
    if what_if.entry is not None:
        places = {entry.id: place for place, entry in enumerate(branch)}
        wanted = places[what_if.entry]
        made = [n for n in made if places[items[n].entries[-1].id] >= wanted]
    else:
        made = [n for n in made if items[n].entries[0].session_id == session_id]
    if not made:
        where = f"from entry {what_if.entry} on" if what_if.entry else "of its own"
        raise ReplayError(f"session {session_id!r} has no turn {where} that could be replayed")
    if what_if.message is not None:
        turns = [n for n in made if items[n].kind == "turn"]
        if what_if.entry is None and len(turns) > 1:
            told = ", ".join(items[n].entry for n in turns)
            raise ReplayError(
                "--message replaces what was said in one turn: say which with --from; "
                f"turns begin at {told}"
            )
        if not turns or (what_if.entry is not None and turns[0] != made[0]):
            raise ReplayError("--message replaces what was said in a turn, and there is none")
        return turns[0]
    return made[0]


def _cut(branch: list[Entry], item: RecordedItem, what_if: WhatIf) -> tuple[int, bool]:
    """How much of a branch stays, and whether that ends within a turn, which then continues there.

    From a call or a result on, all calls of that answer are replayed, because they belong together.
    """
    places = {entry.id: place for place, entry in enumerate(branch)}
    start = places[item.entry]
    at = places[what_if.entry] if what_if.entry is not None else start
    if item.kind != "turn" or what_if.message is not None or at <= start + 1:
        return start, False
    while at > start and branch[at].kind in (TOOL_CALL, TOOL_RESULT):
        at -= 1
        if branch[at].kind == MESSAGE:
            return at + 1, True
    return (at, True) if at > start + 1 else (start, False)


def notes_on(recording: SessionRecording, app: ReplayApp) -> list[str]:
    """Notes about a record: missing fields, plugins that are gone."""
    notes: list[str] = []
    lacking = dict.fromkeys(name for item in recording.items for name in missing_fields(item))
    if lacking:
        notes.append(
            f"recorded by an older version, without {', '.join(lacking)}: replayed as far as it goes"
        )
    if "/" in recording.session_id.partition(MARK)[0]:
        notes.append("a subagent's session is replayed as the main agent's: with its tools and prompt")
    if any(item.compacted for item in recording.items):
        notes.append("a compaction in the middle of a turn is not replayed: the context stays whole")
    present = {name for name, plugin in app.hooks.pm.list_name_plugin() if plugin is not None}
    present |= {f.name for f in app.hook_files.files}
    present |= {i.name for n in app.hooks.catalog for i in app.hooks[n].implementations}
    named = {
        str(ruling.get("by", ""))
        for item in recording.items
        for call in item.calls.values()
        for ruling in call.rulings
        if ruling.get("changed") or ruling.get("decision") != "allow"
    }
    gone = sorted(n for n in named if n and n not in present and not _is_ours(n))
    if gone:
        notes.append(f"decided at the time and not loaded now: {', '.join(gone)}")
    return notes


def _is_ours(name: str) -> bool:
    """Whether a ruling is the policy's, a person's or the runner's own."""
    first = name.partition(" ")[0].partition(".")[0]
    return first in _OURS or ("/" in name and not name.endswith(".py"))  # a pack's rule, no hook file


# --- playing ------------------------------------------------------------------------------------


async def play(
    app: ReplayApp, recording: SessionRecording, what_if: WhatIf, comparison: Comparison
) -> list[Pair]:
    """Replay every item, and return the results."""
    playback = app.playback
    model = playback.model
    model.session_id = recording.session_id
    playback.results.load(read_items(recording.branch))
    playback.results.supplied.update(what_if.results)
    await playback.store.append(recording.standing)
    pairs: list[Pair] = []
    async with app.running():
        if what_if.model is not None and isinstance(app.models, RecordedModels):
            model.real = app.models.real(what_if.model)
        if isinstance(app.tools, RecordedRegistry):
            gone = app.tools.stand_in(playback.results.calls)
            if gone:
                comparison.notes.append(f"tools that are not there now: {', '.join(gone)}")
        for number, item in enumerate(recording.items):
            if item.kind == "carried":
                entry = item.entries[0]
                await (await app.tape(recording.session_id)).append(
                    entry.kind, entry.payload, meta=entry.meta
                )
                continue
            try:
                made = await _make(app, recording, item, what_if, number)
            except _Ended as ended:
                index = recording.first + number
                if isinstance(ended.error, Diverged):
                    comparison.diverged = f"item {index} ({item.entry}): {ended.error}"
                else:
                    comparison.stopped = f"item {index} ({item.entry}): {ended.error}"
                pairs.append(Pair(index, item, ended.made))
                break
            if model.stale is not None:
                comparison.notes.append(
                    f"item {recording.first + number}: from answer {model.stale + 1} on the model was "
                    "shown a different conversation; its recorded answers were used anyway"
                )
                model.stale = None
            pairs.append(Pair(recording.first + number, item, made))
    return pairs


class _Ended(Exception):
    """The replay cannot continue after this item."""

    def __init__(self, error: HooklineError, made: RecordedItem) -> None:
        super().__init__(str(error))
        self.error = error
        self.made = made


async def _make(
    app: ReplayApp, recording: SessionRecording, item: RecordedItem, what_if: WhatIf, number: int
) -> RecordedItem:
    """Replay one item, and read the result from the tape."""
    session, store = recording.session_id, app.playback.store
    before = await store.leaf(session)
    within = recording.within and number == 0
    standing = [e for e in recording.branch[: recording.cut] if e in item.entries] if within else []
    raised: Exception | None = None
    app.playback.results.begin(item)
    try:
        if item.kind == "call":
            await _persons_call(app, session, item)
        elif within:
            answers = sum(len(i.answers) for i in read_items(standing))
            app.playback.model.begin(item, answers)
            await app.resume(session)
        else:
            app.playback.model.begin(item)
            edited = what_if.message if number == 0 else None
            await _inbound(app, session, item, edited)
    except Exception as error:
        raised = error
    after = await store.entries(session, after=before.id if before is not None else None)
    made = [i for i in read_items([*standing, *after]) if i.kind != "carried"]
    result = made[0] if made else replace(item, entries=[], status="", calls={}, answers=[])
    if raised is not None:
        result.error = result.error or error_text(raised)
        result.status = result.status or "failed"
    stopped = app.playback.model.stopped
    if stopped is not None:
        raise _Ended(ReplayStopped(stopped), result)
    if isinstance(raised, Diverged):
        raise _Ended(raised, result)
    return result


async def _inbound(app: ReplayApp, session: str, item: RecordedItem, edited: str | None) -> None:
    """Let the message come in once more, and what joined its turn."""
    message: dict[str, Any] = dict(item.identity.stamped(item.envelope or {}))
    message.pop("session_id", None)
    prompt = restored(item.prompt)
    if edited is not None:
        message["content"] = edited
    elif "content" not in message:
        message["content"] = prompt if isinstance(prompt, str) else ""
    if isinstance(prompt, list) and edited is None:
        message["attachments"] = cast("list[Any]", prompt)[1:]
    joining: list[asyncio.Task[bool]] = []

    def join(said: Any, envelope: Any) -> None:
        run = app.sessions.run(session)
        if run is not None:
            joining.append(asyncio.ensure_future(run.steering.join(said, envelope)))

    app.playback.model.join = join
    try:
        await app.process(message, session_id=session)
    finally:
        app.playback.model.join = None
        for task in joining:
            task.cancel()
        await asyncio.gather(*joining, return_exceptions=True)


async def _persons_call(app: ReplayApp, session: str, item: RecordedItem) -> None:
    for call in item.calls.values():
        arguments = parse(call.requested)[0]
        kept = next((e.meta["identity"] for e in item.entries if "identity" in e.meta), None)
        identity = Identity.restored(kept)
        source = next((source_of(e.meta) for e in item.entries if "source" in e.meta), "command")
        caller = ToolCaller(
            app.context(session, identity),
            TapeJournal(await app.tape(session), identity, source),
            app.workspace,
            source=source,
            identity=identity,
        )
        await app.runner.run(Requested(call.id, call.name, arguments), caller)


# --- the branch ---------------------------------------------------------------------------------


async def write_branch(
    store: TapeStore, app: ReplayApp, recording: SessionRecording, what_if: WhatIf
) -> str:
    """Record the replay as a fork of the session, atomically. Returns its name."""
    session = recording.session_id
    child = f"{session}{MARK}{new_id()[:12].lower()}"
    at = recording.branch[recording.cut - 1].id if recording.cut else None
    asked = {
        "of": session,
        "from": recording.items[0].entry,
        "message": what_if.message,
        "results": dict(what_if.results),
        "model": what_if.model,
        **what_if.about,
    }
    payload = {"session_id": session, "entry_id": at, "position": "at"}
    fork = Entry.new(child, at, FORK, payload, {"replay": asked})
    standing = {entry.id for entry in recording.branch[: recording.cut]}
    made = [e for e in await app.playback.store.entries(session) if e.id not in standing]
    written = [e for e in made if e.kind != FORK]
    inside = {e.id for e in written}
    moved = [
        replace(e, session_id=child, parent_id=e.parent_id if e.parent_id in inside else fork.id)
        for e in written
    ]
    await store.append([fork, *moved], expect={child: None})
    return child
