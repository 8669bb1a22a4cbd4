"""A session as one HTML page that needs nothing else and asks for nothing from anywhere.

page = await html_page(store, "s1")

What models, tools and people wrote is text and stays text: it is escaped, and the page's own policy
forbids everything but the style and the script that it brings.
"""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from typing import Any, Final, cast

from hookline.errors import TapeError

from .entry import ANCHOR, MESSAGE, NAME, SWITCH, TOOL_CALL, TOOL_RESULT, Entry
from .outline import one_line, preview_of
from .page import SCRIPT, STYLE
from .store import TapeStore
from .tree import Tree, TreeLine

MOST_ENTRIES: Final = 20_000
"""How many entries a page has room for; of a longer session the newest are shown."""

_LINES = 1_000  # of the tree
_POLICY = (
    "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; "
    "base-uri 'none'; form-action 'none'"
)


async def html_page(store: TapeStore, session_id: str) -> str:
    """The session with all its branches and its origin; the current branch is shown."""
    outline = await store.outline(session_id)
    if not outline:
        raise TapeError(f"no session {session_id!r}; `hookline tape list` shows the sessions")
    own = await store.entries(session_id, limit=MOST_ENTRIES, newest_first=True)
    own.reverse()
    parent_id = next(entry.parent_id for entry in outline if entry.session_id == session_id)
    inherited = await store.branch(parent_id) if parent_id and len(own) < MOST_ENTRIES else []
    entries = [*inherited, *own][-MOST_ENTRIES:]
    names = await store.entries(session_id, kinds={NAME}, limit=1, newest_first=True)
    title = str(names[0].payload.get("name")) if names else session_id
    page = _page(title, session_id, Tree.of(outline), entries, len(outline) - len(entries))
    return page.encode("utf-8", "replace").decode()  # half a surrogate pair has no UTF-8


def _page(
    title: str,
    session_id: str,
    tree: Tree,
    entries: list[Entry],
    left_out: int,
) -> str:
    policy = _POLICY.format(_digest(STYLE), _digest(SCRIPT))
    note = f"<p class=note>{left_out} older entries are not on this page.</p>" if left_out else ""
    on_branch = {entry.id for run in tree.trunk() for entry in run.entries}
    shown = "\n".join(_entry(e, tree, "" if e.id in on_branch else " hidden") for e in entries)
    drawn = "\n".join(_tree_line(line) for line in tree.lines(limit=_LINES, width=50))
    parents = {entry.id: entry.parent_id for entry in entries}
    leaf = tree.leaf.entries[-1].id if tree.leaf else ""
    data = json.dumps({"parents": parents, "leaf": leaf}).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><p>{escape(session_id)}</p>
<label><input type="checkbox" id="details"> journal entries</label></header>
<nav aria-label="Branches">{drawn}</nav>
<main>{note}
{shown}
</main>
<script type="application/json" id="tape">{data}</script>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _tree_line(line: TreeLine) -> str:
    text = escape(line.text)
    if line.entry_id is None:
        return f"<span>{text}</span>"
    here = ' class="here"' if line.is_leaf else ""
    return f'<a href="#e-{escape(line.entry_id)}" data-id="{escape(line.entry_id)}"{here}>{text}</a>'


def _entry(entry: Entry, tree: Tree, hidden: str) -> str:
    """One entry: a message as it reads, a tool's call and result folded, the rest as a line."""
    style, head, body = _shown(entry)
    labels = "".join(f" <mark>{escape(name)}</mark>" for name in tree.labels.get(entry.id, ()))
    top = f"<span class=who>{escape(head)}</span>{labels} <time>{_time(entry)}</time>"
    inner = (
        f"<details><summary>{top}</summary>{body}</details>"
        if style in ("tool", "journal")
        else f"<div class=top>{top}</div>{body}"
    )
    return f'<article id="e-{escape(entry.id)}" class="{style}"{hidden}>{inner}</article>'


def _shown(entry: Entry) -> tuple[str, str, str]:
    """How an entry is displayed: its style, its head, and its escaped body."""
    payload = entry.payload
    if entry.kind == MESSAGE and isinstance(payload.get("message"), dict):
        message: dict[str, Any] = payload["message"]
        role = str(message.get("role") or "message")
        calls: Any = message.get("tool_calls")
        body = _text(message.get("content"))
        if isinstance(calls, list) and calls:
            named = ", ".join(_name(call) for call in cast("list[Any]", calls))
            body += f"<p class=calls>calls {escape(named)}</p>"
        return ("user" if role == "user" else "assistant"), role, body
    if entry.kind == TOOL_CALL:
        return "tool", f"{payload.get('name')} is called", _json(payload.get("arguments"))
    if entry.kind == TOOL_RESULT:
        failed = " failed" if payload.get("is_error") else ""
        head = f"{payload.get('name') or 'tool'}{failed}: {_line(entry)}"
        return "tool", head, _text(payload.get("content"))
    if entry.kind in (ANCHOR, SWITCH) and payload.get("summary"):
        return "anchor", f"{entry.kind} {payload.get('name') or ''}", _text(payload["summary"])
    return "journal", f"{entry.kind} {_line(entry)}", _json(payload)


def _time(entry: Entry) -> str:
    try:
        return datetime.fromtimestamp(entry.time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return ""  # a number that is no time is no reason to refuse the page


def _line(entry: Entry) -> str:
    if entry.kind == TOOL_RESULT:
        content = entry.payload.get("content")
        return one_line(content) if isinstance(content, str) else ""
    return preview_of(entry.kind, entry.payload)


def _name(call: Any) -> str:
    return str(cast("dict[str, Any]", call).get("name")) if isinstance(call, dict) else "?"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return f"<pre>{escape(content)}</pre>" if content else ""
    parts = cast("list[Any]", content) if isinstance(content, list) else [content]
    return "".join(_part(part) for part in parts)


def _part(part: Any) -> str:
    known = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    text = known.get("text")
    if isinstance(text, str):
        return f"<pre>{escape(text)}</pre>"
    return f"<p class=note>({escape(str(known.get('type') or 'something else'))}, not shown)</p>"


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, ensure_ascii=False, indent=2))}</pre>"
