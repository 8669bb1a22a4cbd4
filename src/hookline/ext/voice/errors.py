"""Errors of speech input and output. The speaker sees the messages: one line each, with a remedy."""

from __future__ import annotations

from hookline.hooks.errors import HooklineError

INSTALL = "pip install 'hookline[voice]'"


class VoiceError(HooklineError):
    """The root of the errors of speech."""


class BadAudio(VoiceError, ValueError):
    """A recording that cannot be listened to."""
