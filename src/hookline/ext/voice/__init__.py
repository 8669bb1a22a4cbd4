"""Voice: recordings become text, and answers become sound.

    text = await Voice.of(app).hear(AudioPart(data))
    part = await Voice.of(app).say("**Good** morning.")

The shipped hook files `stt.py` and `tts.py` do so for every message; `[stt]` and `[tts]` say how.
"""

from typing import TYPE_CHECKING

from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .engine import Recognizer, Recording, Synthesizer, Utterance, VoiceProvider
    from .errors import BadAudio, VoiceError
    from .formats import AudioFormat
    from .settings import SpeechToTextSettings, TextToSpeechSettings
    from .voice import Voice
else:
    __getattr__ = lazy_names(__name__, "errors engine formats settings voice")

__all__ = [
    "AudioFormat",
    "BadAudio",
    "Recognizer",
    "Recording",
    "SpeechToTextSettings",
    "Synthesizer",
    "TextToSpeechSettings",
    "Utterance",
    "Voice",
    "VoiceError",
    "VoiceProvider",
]
