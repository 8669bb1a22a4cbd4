"""Sound as Telegram plays it in a chat: OGG with Opus, MP3 or M4A."""

from __future__ import annotations

from typing import Final

from hookline.types import AudioPart

LONGEST: Final = 3600.0


def as_voice(part: AudioPart) -> bytes | None:
    """A sound that can be sent as a voice message; None if it cannot be converted here."""
    try:
        from hookline.ext.voice import VoiceError
        from hookline.ext.voice.formats import MP3, MP4, OGG, format_of
        from hookline.ext.voice.sound import RATE, decoded, encoded, library
    except ImportError:  # without the voice extension, sound is sent as a file
        return None
    form = format_of(part.data)
    if form in (OGG, MP3, MP4):
        return part.data
    if form is None:
        return None
    try:
        np = library("numpy", "encoding of sound")
        samples = decoded(part.data, form, max_seconds=LONGEST, stopped=lambda: False)
        whole = (samples.clip(-1.0, 1.0) * 32767).astype(np.int16)
        return encoded(whole.tobytes(), RATE, "ogg")
    except VoiceError:
        return None
