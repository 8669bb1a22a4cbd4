"""Voice: recordings become text, and answers become sound.

    text = await app.voice.hear(AudioPart(data))
    part = await app.voice.say("**Good** morning.")

The shipped hook files `stt.py` and `tts.py` do so for every message; `[stt]` and `[tts]` say how.
"""

from .engine import Recognizer, Recording, Synthesizer, Utterance, VoiceProvider
from .errors import BadAudio, VoiceError
from .formats import AudioFormat
from .settings import SpeechToTextSettings, TextToSpeechSettings
from .voice import Voice

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
