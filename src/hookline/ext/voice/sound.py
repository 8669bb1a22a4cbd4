"""Sound as samples: decoded from a recording, trimmed, cut into pieces, and encoded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import INSTALL, BadAudio, VoiceError
from .formats import MP3, OGG, WAV, AudioFormat

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Samples: TypeAlias = NDArray[float32]

RATE = 16_000
"""Samples per second, as recognisers take them."""

SLOWEST, FASTEST = 4_000, 384_000
"""Rates that sound is recorded at. Made-up ones would blow a small file up to any size."""

_FRAME = RATE // 50
_SILENT = 0.003
_QUIET = 0.03
_BEFORE, _AFTER = 4, 8
_SHORT_BY = 0.5
_PEAK, _MOST_GAIN = 0.7, 50.0
_UNKNOWN_SIZE = 0x7FFF0000


def library(name: str, purpose: str) -> Any:
    """An optional library, or an error that says how to install it."""
    try:
        return import_module(name)
    except (ImportError, OSError) as error:  # a library of the system may be missing, too
        raise VoiceError(f"{purpose} is not installed here: {INSTALL}") from error


def _lenient(av: Any) -> dict[str, str]:
    """The option that ignores titles in unknown encodings; from PyAV 19 on they are ignored anyway."""
    return {"metadata_errors": "ignore"} if int(av.__version__.partition(".")[0]) < 19 else {}


def decoded(
    data: bytes, form: AudioFormat, *, max_seconds: float, stopped: Callable[[], bool]
) -> Samples:
    """The recording as mono samples of `RATE`. One that is damaged or cut off is refused whole."""
    av, np = library("av", "decoding of recordings"), library("numpy", "decoding of recordings")
    if form is WAV:
        _check_size(data)
    found: list[Any] = []
    count = 0
    try:
        with av.open(BytesIO(data), format=form.demuxer, **_lenient(av)) as container:
            if not container.streams.audio:
                raise BadAudio(f"the {form.name} file has no sound in it")
            stream = container.streams.audio[0]
            if not SLOWEST <= (stream.rate or 0) <= FASTEST:
                raise BadAudio(
                    f"the {form.name} file is damaged: it has {stream.rate} samples a second"
                )
            declared = _declared_seconds(container, stream) if form.tells_length else 0.0
            if declared > max_seconds:
                raise _too_long(max_seconds)
            resampler = av.AudioResampler("flt", "mono", RATE)
            for frame in _frames(container, stream):
                for piece in resampler.resample(frame):
                    found.append(piece.to_ndarray()[0])
                    count += piece.samples
                if count > max_seconds * RATE:
                    raise _too_long(max_seconds)
                if stopped():
                    raise BadAudio("nobody waits for the recording any more")
    except (av.FFmpegError, ValueError, OverflowError) as error:
        if isinstance(error, BadAudio):
            raise
        raise BadAudio(f"the {form.name} file is damaged or cut off; record it again") from error
    if not count:
        raise BadAudio(f"the {form.name} file has no sound in it")
    if declared - count / RATE > max(_SHORT_BY, declared / 20):
        raise BadAudio(f"the {form.name} file is cut off; record it again")
    return np.concatenate(found)


def _check_size(data: bytes) -> None:
    """Refuse a WAV file shorter than its header says; the decoder would accept it."""
    size = int.from_bytes(data[4:8], "little")
    if data[:4] == b"RIFF" and len(data) < size < _UNKNOWN_SIZE:  # one that is streamed has no size
        raise BadAudio("the WAV file is cut off; record it again")


def _frames(container: Any, stream: Any) -> Iterator[Any]:
    yield from container.decode(stream)
    yield None  # what the resampler still holds


def _declared_seconds(container: Any, stream: Any) -> float:
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / 1_000_000 if container.duration else 0.0


def _too_long(max_seconds: float) -> BadAudio:
    return BadAudio(f"the recording is longer than {max_seconds:g} seconds; send a shorter one")


def trimmed(samples: Samples) -> Samples:
    """The samples without silence around them; nothing is left of silence alone."""
    np = library("numpy", "speech recognition")
    loudness = _loudness(samples)
    loudest = float(loudness.max(initial=0.0))
    if not loudest > _SILENT:
        return samples[:0]
    (loud,) = np.nonzero(loudness > _QUIET * loudest)
    first, last = max(int(loud[0]) - _BEFORE, 0), int(loud[-1]) + 1 + _AFTER
    return samples[first * _FRAME : last * _FRAME]


def levelled(samples: Samples) -> Samples:
    """The samples as loud as speech mostly is."""
    np = library("numpy", "speech recognition")
    peak = float(np.abs(samples).max(initial=0.0))
    return samples * np.float32(min(_PEAK / peak, _MOST_GAIN)) if peak else samples


def pieces(samples: Samples, seconds: int = 30) -> Iterator[Samples]:
    """Split the samples into pieces of bounded length, each at its quietest point."""
    longest = seconds * RATE
    while len(samples) > longest:
        earliest = longest * 2 // 3
        quietest = int(_loudness(samples[earliest:longest]).argmin())
        cut = earliest + quietest * _FRAME + _FRAME // 2
        yield samples[:cut]
        samples = samples[cut:]
    yield samples


def _loudness(samples: Samples) -> Any:
    """How loud each fiftieth of a second is."""
    np = library("numpy", "speech recognition")
    whole = len(samples) // _FRAME * _FRAME
    return np.sqrt((samples[:whole].reshape(-1, _FRAME) ** 2).mean(axis=1))


# --- encoding -----------------------------------------------------------------------------------

SPOKEN = {"wav": WAV, "ogg": OGG, "mp3": MP3}
"""The formats that answers are spoken in, by setting."""

_CODECS = {"ogg": ("libopus", 24_000), "mp3": ("libmp3lame", 48_000)}


def encoded(samples: bytes, rate: int, form: str) -> bytes:
    """Mono samples of 16 bits as a file of that format."""
    return _wav(samples, rate) if form == "wav" else _compressed(samples, rate, form)


def _wav(samples: bytes, rate: int) -> bytes:
    import wave

    file = BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples)
    return file.getvalue()


def _compressed(samples: bytes, rate: int, form: str) -> bytes:
    av, np = library("av", f"encoding of {form}"), library("numpy", f"encoding of {form}")
    codec, bit_rate = _CODECS[form]
    file = BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=24_000, layout="mono")
        stream.bit_rate = bit_rate
        frame = av.AudioFrame.from_ndarray(np.frombuffer(samples, "<i2")[None, :], "s16", "mono")
        frame.sample_rate = rate
        resampler = av.AudioResampler(stream.format, "mono", 24_000, stream.frame_size or None)
        for given in (frame, None):
            for piece in resampler.resample(given):
                container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return file.getvalue()
