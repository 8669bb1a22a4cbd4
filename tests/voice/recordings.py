"""Recordings to listen to: one sentence, spoken by the local engine, in every format."""

from difflib import SequenceMatcher
from io import BytesIO
from pathlib import Path

import av

from hookline.config import Config
from hookline.ext.voice import Voice

SENTENCE = "turn on the kitchen lights"

CONTAINERS = {
    "wav": ("wav", "pcm_s16le", "audio/wav"),
    "wav of floats": ("wav", "pcm_f32le", "audio/x-wav"),
    "ogg opus": ("ogg", "libopus", "audio/ogg"),
    "mp3": ("mp3", "libmp3lame", "audio/mpeg"),
    "m4a": ("ipod", "aac", "audio/mp4"),
    "mp4": ("mp4", "aac", "audio/mp4"),
    "mp4 opus": ("mp4", "libopus", "audio/mp4"),
    "aac": ("adts", "aac", "audio/aac"),
    "webm": ("webm", "libopus", "audio/webm;codecs=opus"),
    "flac": ("flac", "flac", "audio/flac"),
}


def voice(home: Path, **sections) -> Voice:
    return Voice(Config.load(home, overrides=sections, environ={}))


def is_sentence(text: str) -> bool:
    """Whether a transcript is the sentence, but for a letter: no two utterances sound the same."""
    plain = "".join(each for each in text.lower() if each.isalpha() or each == " ").strip()
    return SequenceMatcher(None, plain, SENTENCE).ratio() > 0.75


def recorded(wav: bytes, container: str, codec: str, *, rate: int = 48_000, layout="stereo") -> bytes:
    """A WAV as another kind of file, the way a phone or a browser would have recorded it."""
    file = BytesIO()
    with av.open(BytesIO(wav)) as source, av.open(file, "w", format=container) as target:
        stream = target.add_stream(codec, rate=rate, layout=layout)
        resampler = av.AudioResampler(stream.format, layout, rate, stream.frame_size or None)
        for frame in [*source.decode(audio=0), None]:
            for piece in resampler.resample(frame):
                target.mux(stream.encode(piece))
        target.mux(stream.encode(None))
    return file.getvalue()


def picture_only() -> bytes:
    """A WebM file with a picture and no sound."""
    file = BytesIO()
    with av.open(file, "w", format="webm") as target:
        stream = target.add_stream("libvpx", rate=5)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        frame = av.VideoFrame(64, 64, "yuv420p")
        target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return file.getvalue()
