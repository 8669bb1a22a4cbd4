"""`tape_search`, `tape_read`, `tape_handoff`: the whole tape of the session, in context or not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from hookline.errors import ToolError
from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.output import cut
from hookline.tools.tool import tool

_SHOWN = frozenset({"message", "tool_result", "anchor", "switch", "note"})
"""Kinds of entries that say something; the others are bookkeeping."""
_LONGEST = 2000
"""Characters of an entry, where several are shown."""


@tool(side_effects=SideEffects.read, registry=None)
async def tape_search(
    words: Annotated[str, Field(min_length=1, max_length=1000)],
    context: ToolContext,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> str:
    """Search this conversation by words, including the parts you no longer see.

    words: Entries must contain all of these words; `word*` matches a prefix.
    limit: The most entries to show, newest first.

    """
    tape = _tape_of(context)
    hits = await tape.store.search(words, session_id=tape.session_id, kinds=_SHOWN, limit=limit + 1)
    found = [hit for hit in hits if context.call_id not in _calls(hit.entry)][:limit]
    lines = [f"{_heading(hit.entry)}: {hit.snippet}" for hit in found]
    return "\n".join([*lines, "[tape_read shows an entry whole, by its id]"] if lines else _NOTHING)


_NOTHING = ["[no entry of this conversation has all of these words]"]


@tool(side_effects=SideEffects.read, registry=None)
async def tape_read(
    context: ToolContext,
    entry: str = "",
    direction: Literal["before", "after"] = "before",
    count: Annotated[int, Field(ge=1, le=100)] = 20,
) -> str:
    """Read this conversation entry by entry, including the parts you no longer see.

    entry: The id of the first entry; by default the one just before the part you see.
    direction: Whether to read backwards or forwards from there.
    count: How many entries to read; a single entry is shown in full.

    """
    tape = _tape_of(context)
    start = await _entry(tape, entry) if entry else await _edge(tape)
    if start is None:
        return "[there is nothing before the part that you see]"
    back = direction == "before"
    place = {"before" if back else "after": start.id}
    read: list[Any] = await tape.store.entries(
        start.session_id, kinds=_SHOWN, limit=count + 1, newest_first=back, **place
    )
    read = [start, *read] if entry else read
    shown, left = read[:count], read[count:]
    if not shown:
        return "[there is nothing in this direction]"
    texts = [_whole(each, 0 if count == 1 else _LONGEST) for each in (shown[::-1] if back else shown)]
    if left:
        texts.append(f'[more: tape_read(entry="{left[0].id}", direction="{direction}")]')
    return "\n\n".join(texts)


@tool(side_effects=SideEffects.none, registry=None)
async def tape_handoff(
    summary: Annotated[str, Field(min_length=1, max_length=20_000)],
    context: ToolContext,
    name: Annotated[str, Field(min_length=1, max_length=100)] = "handoff",
) -> str:
    """Finish a phase of the work: from the next message on, a summary replaces the conversation.

    Nothing is lost: tape_search and tape_read still find it.

    summary: What is needed to continue: goals, decisions, names, paths, open questions.
    name: A name for the phase.

    """
    tape = _tape_of(context)
    turn: Any = await tape.last("turn")
    # The current turn stays whole: after a crash it resumes from its entries.
    running = bool(turn) and turn.payload.get("status") == "started"
    written = await tape.anchor(name, summary=summary, keep_from=turn.id if running else None)
    return (
        f"handed off as {name!r} (entry {written.id}); the summary takes the place of what came before"
    )


def _tape_of(context: ToolContext) -> Any:
    if context.tape is None:
        raise ToolError("this call is not on a tape; there is nothing to search or to hand off")
    return context.tape


async def _entry(tape: Any, entry_id: str) -> Any:
    """An entry of this session, and of no other."""
    found = await tape.store.get(entry_id)
    if found is None or found.session_id != tape.session_id:
        raise ToolError(f"this conversation has no entry {entry_id!r}; tape_search gives their ids")
    return found


async def _edge(tape: Any) -> Any:
    """The first entry that the model sees, or None if it sees all of them."""
    anchor = await tape.last("anchor")
    kept = anchor.payload.get("keep_from") if anchor else None
    return (await tape.store.get(kept) or anchor) if kept else anchor


def _calls(entry: Any) -> list[str]:
    """The tool calls that a message makes."""
    message: Any = entry.payload.get("message") or {}
    return [call.get("id", "") for call in message.get("tool_calls") or ()]


def _heading(entry: Any) -> str:
    when = datetime.fromtimestamp(entry.time, UTC)
    return f"[{entry.id}] {when:%Y-%m-%d %H:%M} {_who(entry)}"


def _who(entry: Any) -> str:
    if entry.kind == "message":
        return str(entry.payload.get("message", {}).get("role", "message"))
    return f"result of {entry.payload.get('name')}" if entry.kind == "tool_result" else str(entry.kind)


def _whole(entry: Any, limit: int) -> str:
    text = _text(entry)
    return f"{_heading(entry)}:\n{cut(text, limit) if limit else text}"


def _text(entry: Any) -> str:
    payload: dict[str, Any] = entry.payload
    if entry.kind == "message":
        message: dict[str, Any] = payload.get("message", {})
        calls = [
            f"→ {call.get('name')} {call.get('arguments')}" for call in message.get("tool_calls", ())
        ]
        return "\n".join(filter(None, [_content(message.get("content")), *calls]))
    if entry.kind == "tool_result":
        return _content(payload.get("content"))
    if "summary" in payload:
        return str(payload["summary"] or payload.get("name") or "")
    return str(payload.get("text") or json.dumps(payload, ensure_ascii=False))


def _content(content: object) -> str:
    """The text of a content; pictures and sounds are named."""
    if not isinstance(content, list):
        return str(content or "")
    parts = cast("list[dict[str, Any]]", content)
    return "\n".join(str(part.get("text") or f"[{part.get('type', 'part')}]") for part in parts)
