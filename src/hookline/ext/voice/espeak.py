"""The local synthesiser: eSpeak NG, whose library and voices come in a wheel."""

from __future__ import annotations

import ctypes
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from hookline.hooks.errors import suggestion
from hookline.types import AudioPart

from .engine import Utterance
from .errors import VoiceError
from .sound import SPOKEN, encoded, library
from .speakable import sentences
from .worker import Stopped, VoiceWorker

LANGUAGE, VARIANT = "en-us", "Annie"
USUAL, LEAST, MOST = 155, 80, 450
"""Words per minute: at this speed recognisers understand it, and these are the engine's bounds."""

_SYNCHRONOUS, _NO_EXIT, _UTF8, _RATE_PARAMETER = 2, 1 << 15, 1, 1
_PAUSE = 0.15

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)

# The library supports one voice and one callback per process.
_speaking = Lock()


class EspeakSynthesizer:
    """Speaks in a thread of its own."""

    def __init__(self) -> None:
        self._worker: VoiceWorker | None = None

    async def say(self, utterance: Utterance) -> AudioPart:
        """The sound of a text, sentence by sentence."""
        if self._worker is None:
            self._worker = VoiceWorker("speaking")
        return await self._worker.run(partial(_say, utterance))

    async def close(self) -> None:
        """End the thread."""
        if self._worker is not None:
            self._worker.close()
        self._worker = None


def voice_name(voice: str | None, language: str | None) -> str:
    """The engine's name of a voice: a language and a variant, such as `en-us+Annie`."""
    spoken, _, variant = (voice or "").partition("+")
    spoken = (spoken or language or LANGUAGE).lower().replace("_", "-")
    return f"{LANGUAGE if spoken == 'en' else spoken}+{variant or VARIANT}"


def _say(utterance: Utterance, stopped: Stopped) -> AudioPart:
    name = voice_name(utterance.voice, utterance.language)
    speed = min(max(round(USUAL * utterance.speed), LEAST), MOST)
    espeak = _library()
    sound = bytearray()
    with _speaking:
        espeak.choose(name, speed)
        for sentence in sentences(utterance.text):
            if stopped():
                break
            if sound:
                sound += bytes(2 * int(espeak.rate * _PAUSE))
            sound += espeak.spoken(sentence)
    form = utterance.format
    return AudioPart(encoded(bytes(sound), espeak.rate, form), SPOKEN[form].mime_type)


class _Espeak:
    """The library, set up once for the process."""

    def __init__(self) -> None:
        loader = library("espeakng_loader", "speech synthesis")
        try:
            self._data = Path(loader.get_data_path())
            lib: Any = ctypes.CDLL(loader.get_library_path())
        except (OSError, RuntimeError) as error:
            raise VoiceError(f"espeak-ng cannot be loaded: {error}") from error
        lib.espeak_Synth.argtypes = [
            *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int),
            *(ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p),
        ]
        self.rate: int = lib.espeak_Initialize(_SYNCHRONOUS, 0, str(self._data).encode(), _NO_EXIT)
        if self.rate <= 0:
            raise VoiceError(f"espeak-ng cannot read its voices in {self._data}")
        self._heard = bytearray()
        self._callback = _Callback(
            self._take
        )  # keep a reference: the library calls it until the process ends
        lib.espeak_SetSynthCallback(self._callback)
        self._lib = lib

    def choose(self, name: str, speed: int) -> None:
        """Take a voice, or refuse one that does not exist."""
        spoken, _, variant = name.partition("+")
        # The library accepts any variant and silently uses its default voice.
        variants = [path.name for path in (self._data / "voices" / "!v").iterdir()]
        if variant not in variants:
            raise VoiceError(f"unknown voice {name!r}{suggestion(variant, variants)}")
        if self._lib.espeak_SetVoiceByName(name.encode(errors="replace")) != 0:
            raise VoiceError(f"unknown voice {name!r}: the local engine does not speak {spoken!r}")
        self._lib.espeak_SetParameter(_RATE_PARAMETER, speed, 0)

    def spoken(self, sentence: str) -> bytes:
        """The samples of a sentence."""
        text = sentence.replace("\0", " ").encode(errors="replace")
        self._heard.clear()
        self._lib.espeak_Synth(text, len(text) + 1, 0, 1, 0, _UTF8, None, None)
        return bytes(self._heard)

    def _take(self, samples: Any, count: int, events: Any) -> int:
        if samples and count > 0:
            self._heard += ctypes.string_at(samples, count * 2)
        return 0


@cache
def _library() -> _Espeak:
    return _Espeak()
