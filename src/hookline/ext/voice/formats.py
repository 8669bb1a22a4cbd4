"""Recognise audio formats by their first bytes.

The declared type is ignored: browsers and phones get it wrong. Unrecognised data never reaches a
decoder, which would try formats that open other files and addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import BadAudio


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """One format: its name in messages, the decoder's name for it, and how files of it are marked."""

    name: str
    demuxer: str
    extension: str
    mime_type: str
    tells_length: bool = True
    """Whether the header's length, if it has one, matches the data."""


WAV = AudioFormat("WAV", "wav", "wav", "audio/wav")
OGG = AudioFormat("OGG", "ogg", "ogg", "audio/ogg")
FLAC = AudioFormat("FLAC", "flac", "flac", "audio/flac")
MP4 = AudioFormat("M4A", "mov", "m4a", "audio/mp4")
WEBM = AudioFormat("WebM", "matroska", "webm", "audio/webm")
MP3 = AudioFormat("MP3", "mp3", "mp3", "audio/mpeg", tells_length=False)
AAC = AudioFormat("AAC", "aac", "aac", "audio/aac", tells_length=False)

FORMATS = (WAV, OGG, FLAC, MP4, WEBM, MP3, AAC)


def format_of(data: bytes) -> AudioFormat | None:
    """The format of a recording, or None."""
    start = data[:12]
    if start[:4] in (b"RIFF", b"RF64") and start[8:12] == b"WAVE":
        return WAV
    if start[4:8] == b"ftyp":
        return MP4
    for mark, found in ((b"OggS", OGG), (b"fLaC", FLAC), (b"\x1a\x45\xdf\xa3", WEBM), (b"ID3", MP3)):
        if start.startswith(mark):
            return found
    if len(start) > 1 and start[0] == 0xFF and start[1] & 0xE0 == 0xE0:
        layer = start[1] & 0x06
        return MP3 if layer else AAC if start[1] & 0xF0 == 0xF0 else None
    return None


def check_recording(data: bytes, max_bytes: int) -> AudioFormat:
    """The format of a recording that may be listened to, or an error for its sender."""
    if not data:
        raise BadAudio("the recording is empty; record it again")
    if len(data) > max_bytes:
        raise BadAudio(
            f"the recording is too large: {len(data) / 1e6:.1f} MB, "
            f"at most {max_bytes / 1e6:g} MB are taken; send a shorter one"
        )
    found = format_of(data)
    if found is None:
        names = ", ".join(each.name for each in FORMATS)
        raise BadAudio(f"the recording is in no known format; send {names}")
    return found
