"""The local recogniser: Moonshine, with the small English model that its wheel carries."""

from __future__ import annotations

from functools import partial
from typing import Any

from .engine import Recording
from .errors import BadAudio, VoiceError
from .sound import RATE, decoded, levelled, library, pieces, trimmed
from .worker import Stopped, VoiceWorker

MODEL = "tiny-en"

_SILENCE = [0.0] * (RATE * 3 // 10)

_PAUSE = [0.0] * RATE
"""The model's detector of speech remembers the recording before: after this it is the same for each."""


class MoonshineRecognizer:
    """Listens in a thread of its own. The model is loaded with the first recording, and kept."""

    def __init__(self) -> None:
        self._worker: VoiceWorker | None = None
        self._model: Any = None

    async def hear(self, recording: Recording) -> str:
        """The words of a recording in English."""
        language = (recording.language or "en").lower().replace("_", "-").partition("-")[0]
        if language != "en":
            raise VoiceError(
                f"the local recogniser knows English, not {recording.language!r}; "
                "set model in [stt] to another one, such as openai:whisper-1"
            )
        if self._worker is None:
            self._worker = VoiceWorker("hearing")
        return await self._worker.run(partial(self._hear, recording))

    async def close(self) -> None:
        """End the thread and drop the model."""
        if self._worker is not None:
            self._worker.close()
        self._worker, self._model = None, None

    def _hear(self, recording: Recording, stopped: Stopped) -> str:
        model = self._model = self._model or _load()
        samples = decoded(
            recording.data, recording.format, max_seconds=recording.max_seconds, stopped=stopped
        )
        found: list[str] = []
        # In silence before speech the model invents words; without some after it, it loses the end.
        for piece in pieces(levelled(trimmed(samples))):
            if stopped():
                break
            if len(piece):
                heard: list[float] = [*piece.tolist(), *_SILENCE]
                model.transcribe_without_streaming(_PAUSE, RATE)
                lines: list[Any] = model.transcribe_without_streaming(heard, RATE).lines
                found += [line.text.strip() for line in lines]
        text = " ".join(filter(None, found))
        if not text:
            raise BadAudio("no speech was heard in the recording")
        return text


def _load() -> Any:
    purpose = "speech recognition"
    moonshine = library("moonshine_voice.transcriber", purpose)
    api = library("moonshine_voice.moonshine_api", purpose)
    path = library("moonshine_voice.utils", purpose).get_model_path(MODEL)
    if not path.is_dir():
        raise VoiceError(
            "this version of moonshine-voice brings no model: pip install 'moonshine-voice==0.1.0'"
        )
    return moonshine.Transcriber(path, api.ModelArch.TINY, options={"return_audio_data": "false"})
