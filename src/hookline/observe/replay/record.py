"""The record: the events of a branch of a tape, item by item.

An item is a turn, a message without a turn, or a person's own call; other entries are carried over
unchanged. Both sides of a comparison are read by the same functions.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from hookline.tape import ANCHOR, SWITCH, Entry
from hookline.tape.entry import INBOUND, MESSAGE, TOOL_CALL, TOOL_RESULT, TURN
from hookline.tools.arguments import parse
from hookline.types import NOBODY, AudioPart, FilePart, Identity, ImagePart, TextPart

Decided: TypeAlias = Literal["allowed", "approved", "rejected", "denied"]
"""The outcome of a call: allowed, approved by a person, rejected by one, or denied."""

Kind: TypeAlias = Literal["turn", "inbound", "call", "carried"]

CARRIED = frozenset({MESSAGE, ANCHOR, SWITCH})
"""Entries between turns that affect the context."""

APPROVAL = ("resolve_approval", "approval")


@dataclass(slots=True)
class RecordedToolCall:
    """A tool call: its request, its decision and its result."""

    id: str
    name: str
    requested: Any
    entry: str
    arguments: dict[str, Any] | None = None
    """The arguments that it ran with; None if it did not run."""
    rulings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    answered: bool = False
    content: Any = ""
    is_error: bool = False
    terminate: bool = False

    @property
    def ran(self) -> bool:
        """Whether it was let through to the tool."""
        return self.arguments is not None

    @property
    def decided(self) -> Decided:
        """The decision."""
        return decided(self.ran, self.rulings)

    @property
    def by(self) -> list[str]:
        """Who decided: the owners of the decisive rulings."""
        return deciders(self.decided, self.rulings)

    @property
    def reason(self) -> str | None:
        """Why it was not simply allowed."""
        return reason_of(self.decided, self.rulings)

    @property
    def rewritten(self) -> bool:
        """Whether it ran with other arguments than were asked for."""
        return self.arguments is not None and self.arguments != parse(self.requested)[0]


@dataclass(slots=True)
class RecordedItem:
    """One thing that happened: a turn, a message without one, a person's call."""

    kind: Kind
    entries: list[Entry]
    turn_id: str = ""
    envelope: dict[str, Any] | None = None
    identity: Identity = NOBODY
    """On whose behalf the turn ran."""
    prompt: Any = None
    system: str | None = None
    status: str = "cut off"
    error: str | None = None
    answers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    usages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    calls: dict[str, RecordedToolCall] = field(default_factory=dict[str, RecordedToolCall])
    joined: list[tuple[int, Any, Any]] = field(default_factory=list[tuple[int, Any, Any]])
    """Messages sent while the turn ran: after how many answers, the content, and the envelope."""
    compacted: bool = False

    @property
    def entry(self) -> str:
        """The id of its first entry."""
        return self.entries[0].id if self.entries else ""

    @property
    def answer(self) -> str | None:
        """What the model said last."""
        return plain_text(self.answers[-1].get("content")) if self.answers else None


def source_of(meta: Mapping[str, Any]) -> str:
    """What made a call, from the meta of its entry: the model, or a user's command or shell."""
    return str(meta.get("source") or "model")


def decided(ran: bool, rulings: Sequence[Mapping[str, Any]]) -> Decided:
    """What rulings and their outcome come to."""
    if ran:
        return "approved" if any(r.get("decision") == "ask" for r in rulings) else "allowed"
    first = next((r for r in rulings if r.get("decision") == "deny"), None)
    return "rejected" if first is not None and is_approval(first) else "denied"


def deciders(said: Decided, rulings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The owners of the decisive rulings; an allowed call needs none."""
    if said == "allowed":
        return []
    wanted = "deny" if said in ("denied", "rejected") else "ask"
    return [str(r.get("by", "")) for r in rulings if r.get("decision") == wanted]


def reason_of(said: Decided, rulings: Sequence[Mapping[str, Any]]) -> str | None:
    """The first reason that goes with a decision."""
    wanted = "deny" if said in ("denied", "rejected") else "ask"
    found = (r.get("reason") for r in rulings if r.get("decision") == wanted)
    return next((str(reason) for reason in found if reason), None)


def is_approval(ruling: Mapping[str, Any]) -> bool:
    """Whether a ruling is a person's answer."""
    return str(ruling.get("by", "")).partition(" ")[0] in APPROVAL


def read_items(entries: Iterable[Entry]) -> list[RecordedItem]:
    """What happened on a branch, in order."""
    items: list[RecordedItem] = []
    turn: RecordedItem | None = None
    for entry in entries:
        payload = entry.payload
        if entry.kind == TURN:
            turn = _turn(entry, turn, items)
        elif turn is not None:
            turn.entries.append(entry)
            _read(turn, entry)
        elif entry.kind == INBOUND:
            outcome = str(payload.get("outcome") or "dropped")
            said = cast("dict[str, Any] | None", payload.get("envelope"))
            items.append(RecordedItem("inbound", [entry], envelope=said, status=outcome))
            items[-1].identity = Identity.of(said)
            items[-1].error = payload.get("reason")
        elif entry.kind in (TOOL_CALL, TOOL_RESULT):
            _persons_call(entry, items)
        elif entry.kind in CARRIED:
            items.append(RecordedItem("carried", [entry], status=""))
    return items


def _turn(entry: Entry, turn: RecordedItem | None, items: list[RecordedItem]) -> RecordedItem | None:
    payload = entry.payload
    turn_id = str(payload.get("turn_id", ""))
    if payload.get("status") == "started":
        if turn is None or turn.turn_id != turn_id:
            turn = RecordedItem("turn", [], turn_id=turn_id, envelope=payload.get("envelope"))
            turn.identity = Identity.restored(payload.get("identity"))
            turn.system = payload.get("system")
            items.append(turn)
        turn.entries.append(entry)
        return turn
    if turn is not None:
        turn.entries.append(entry)
        turn.status, turn.error = str(payload.get("status")), payload.get("error")
    return None


def _read(turn: RecordedItem, entry: Entry) -> None:
    payload = entry.payload
    if entry.kind == MESSAGE:
        message = cast("dict[str, Any]", payload.get("message") or {})
        if message.get("role") == "assistant":
            turn.answers.append(message)
            turn.usages.append(entry.meta.get("usage") or {})
            for raw in cast("list[dict[str, Any]]", message.get("tool_calls") or []):
                call_id = str(raw.get("id"))
                asked = raw.get("arguments") or "{}"
                turn.calls[call_id] = RecordedToolCall(call_id, str(raw.get("name")), asked, entry.id)
        elif turn.prompt is None:
            turn.prompt = message.get("content")
        elif entry.meta.get("steered"):
            said = (len(turn.answers), message.get("content"), entry.meta.get("envelope"))
            turn.joined.append(said)
    elif entry.kind in (TOOL_CALL, TOOL_RESULT):
        if source_of(entry.meta) == "model":  # a user's own call during the turn is not part of it
            _call(turn.calls, entry)
    elif entry.kind == ANCHOR:
        turn.compacted = True


def _call(calls: dict[str, RecordedToolCall], entry: Entry) -> RecordedToolCall:
    payload = entry.payload
    call_id = str(payload.get("id") or payload.get("tool_call_id") or entry.id)
    call = calls.get(call_id)
    if call is None:
        asked = payload.get("requested", "{}")
        call = calls[call_id] = RecordedToolCall(call_id, str(payload.get("name")), asked, entry.id)
    rulings = cast("list[dict[str, Any]]", entry.meta.get("rulings") or [])
    if entry.kind == TOOL_CALL:
        call.arguments = dict(payload.get("arguments") or {})
        call.requested = payload.get("requested", call.arguments)
        call.rulings, call.entry = rulings, entry.id
        return call
    if not call.ran:
        call.rulings, call.entry = rulings, entry.id
        if payload.get("ran", False):  # an older record, or one that lost the call itself
            call.arguments = parse(call.requested)[0]
    call.answered = True
    call.content, call.is_error = payload.get("content", ""), bool(payload.get("is_error"))
    call.terminate = bool(payload.get("terminate"))
    return call


def _persons_call(entry: Entry, items: list[RecordedItem]) -> None:
    payload = entry.payload
    call_id = str(payload.get("id") or payload.get("tool_call_id"))
    known = next((i for i in items if i.kind == "call" and call_id in i.calls), None)
    if known is None:
        known = RecordedItem("call", [], status="")
        items.append(known)
    known.entries.append(entry)
    _call(known.calls, entry)


def missing_fields(item: RecordedItem) -> list[str]:
    """Fields that current records have and this one lacks, because an older version made it."""
    found: list[str] = []
    for entry in item.entries:
        payload = entry.payload
        if entry.kind == TURN and payload.get("status") == "started":
            found += [name for name in ("envelope", "system") if name not in payload]
        elif entry.kind == TOOL_CALL and "requested" not in payload:
            found.append("requested")
        elif entry.kind == TOOL_RESULT and "ran" not in payload:
            found.append("ran")
    return list(dict.fromkeys(found))


def restored(content: Any) -> Any:
    """Content from the tape as its parts; text stays text."""
    if not isinstance(content, list):
        return content
    return [_part(part) for part in cast("list[Any]", content)]


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    known = cast("dict[str, Any]", part)
    kind, mime = known.get("type"), str(known.get("mime_type", ""))
    if kind == "text":
        return TextPart(str(known.get("text", "")))
    if kind == "image" and known.get("url"):
        return ImagePart(mime_type=mime, url=known["url"])
    if kind == "file":
        data, name = b64decode(known.get("data") or ""), str(known.get("name", ""))
        return FilePart(data, mime, name, known.get("url"))
    if kind in ("image", "audio") and isinstance(known.get("data"), str):
        made = ImagePart if kind == "image" else AudioPart
        return made(b64decode(known["data"]), mime)
    return known


def plain_text(content: Any) -> str:
    """Content in the form in which two of it are compared and shown."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    return json.dumps(content, ensure_ascii=False, sort_keys=True, default=str)
