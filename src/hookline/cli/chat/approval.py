"""Approval in a chat: what a person may say to a question, which shows all of the call."""

from __future__ import annotations

PROMPT = "allow it? [y/N/session/minutes/why not] "
