"""What can go wrong with speech. The messages are for whoever spoke: one line, and what to do."""

from __future__ import annotations

from hookline.hooks.errors import HooklineError

INSTALL = "pip install 'hookline[voice]'"


class VoiceError(HooklineError):
    """The root of the errors of speech."""


class BadAudio(VoiceError, ValueError):
    """A recording that cannot be listened to."""


class NothingHeard(BadAudio):
    """A recording without speech in it."""


class VoiceUnavailable(VoiceError):
    """An engine that exists but cannot be used here."""


class UnknownVoice(VoiceError, LookupError):
    """A name that stands for no engine, no voice or no language."""


class VoiceBusy(VoiceError):
    """More is waiting than is worth waiting for."""
