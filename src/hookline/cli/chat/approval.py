"""Approval in a chat: what the person is shown, and what they may say."""

from __future__ import annotations

PROMPT = "allow it? [y/N/session/minutes/why not] "
LINES = 200
"""Lines of a diff that are shown with a question."""


def folded(diff: str, most: int) -> str:
    """A diff cut to so many lines, with a word on the rest; the call itself is always shown whole."""
    lines = diff.splitlines()
    if len(lines) <= most:
        return diff
    return "\n".join([*lines[:most], f"… {len(lines) - most} more lines"])
