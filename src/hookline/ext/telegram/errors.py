"""Errors of the Telegram channel."""

from __future__ import annotations

from hookline.hooks.errors import HooklineError


class TelegramFailed(HooklineError, RuntimeError):
    """Telegram did not take a call."""


class UnreadableMessage(HooklineError, ValueError):
    """A message that says nothing to an agent, or carries too much."""
