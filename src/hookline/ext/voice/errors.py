"""What can go wrong with speech. The messages are for whoever spoke: one line, and what to do."""

from __future__ import annotations

from hookline.hooks.errors import HooklineError

INSTALL = "pip install 'hookline[voice]'"


class VoiceError(HooklineError):
    """The root of the errors of speech."""


class BadAudio(VoiceError, ValueError):
    """A recording that cannot be listened to."""
