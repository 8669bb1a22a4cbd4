"""Asks a model for a summary: of what a compaction leaves out, or of an abandoned branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookline.tape import ANCHOR, MESSAGE, SWITCH, TOOL_RESULT, Entry
from hookline.tape.context import said_by
from hookline.types import Message

from .tokens import as_json, calls_of, content_text, message_of, role_of

if TYPE_CHECKING:
    from .compaction import Preparation

LONGEST_RESULT = 2_000
"""How many characters of a tool's result go into a summary."""

_COMPACT = """\
Below is a conversation between a user and an agent that works with tools. It has grown too long, and
your summary will take its place: whoever goes on knows only the summary and what came after it. Do not
answer the conversation. Write the summary in this form, leaving out what has nothing in it:

## Goal
What the user wants.
## Rules
What the user asked to be done or left, and preferences that were named.
## Done
What was found out and finished, with exact paths, names, numbers and error messages.
## Open
What is being worked on and what comes next.
## Decisions
What was decided, and why."""

_UPDATE = """\
The conversation was summarised before. Write that summary anew with what happened since: keep what
still holds, move what was finished, drop what no longer matters."""

_SPLIT = """\
The last request is still being worked on: what follows it stays as it is. Give the request in the
user's own words, and what was done for it so far."""

_LEFT = """\
Below is a part of a conversation between a user and an agent that works with tools. The user went back
to an earlier point to go on differently. Say in a few lines what was tried in this part, what came of
it, what was changed outside the conversation (files, commands), and what is worth knowing for another
way. Do not answer the conversation."""


def summary_request(preparation: Preparation, custom_instructions: str | None = None) -> list[Message]:
    """The messages that ask for a compaction's summary; the last one is carried forward in it."""
    parts = [_COMPACT]
    if preparation.previous_summary:
        parts.append(_UPDATE)
    if preparation.splits_turn:
        parts.append(_SPLIT)
    before = preparation.previous_summary
    carried = [f"<summary>\n{before}\n</summary>"] if before else []
    return _request(parts, custom_instructions, carried, preparation.entries)


def branch_request(entries: Sequence[Entry], custom_instructions: str | None = None) -> list[Message]:
    """The messages that ask for the summary of a branch left behind: `Tape.left_behind` has it."""
    return _request([_LEFT], custom_instructions, [], entries)


def _request(
    parts: list[str], instructions: str | None, carried: list[str], entries: Sequence[Entry]
) -> list[Message]:
    also = [f"Also: {instructions}"] if instructions else []
    conversation = f"<conversation>\n{transcript(entries)}\n</conversation>"
    return [{"role": "user", "content": "\n\n".join([*parts, *also, *carried, conversation])}]


def transcript(entries: Sequence[Entry]) -> str:
    """The entries as text: messages, calls and results, with long results shortened."""
    return "\n\n".join(line for line in map(_told, entries) if line)


def _told(entry: Entry) -> str:
    if entry.meta.get("context") is False:
        return ""
    if entry.kind == MESSAGE:
        who = role_of(entry)
        said = content_text(message_of(entry).get("content"))
        calls = [f"{call.get('name')}({as_json(call.get('arguments'))})" for call in calls_of(entry)]
        lines = [f"[{who}] {said}"] if said else []
        return "\n".join([*lines, *(f"[{who} calls] {call}" for call in calls)])
    if entry.kind == TOOL_RESULT:
        failed = " failed" if entry.payload.get("is_error") else ""
        return f"[{entry.payload.get('name') or 'tool'}{failed}] {_result(entry)}"
    told = said_by(entry) if entry.kind in (ANCHOR, SWITCH) else ""
    return f"[earlier] {told}" if told else ""


def _result(entry: Entry) -> str:
    text = content_text(entry.payload.get("content"))
    cut = len(text) - LONGEST_RESULT
    return text if cut <= 0 else f"{text[:LONGEST_RESULT]}\n[{cut} characters cut]"
