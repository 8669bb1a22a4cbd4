"""The manifest of the plugin `voice`, readable without importing the plugin."""

MANIFEST = {
    "name": "voice",
    "order": 160,
    "settings": {
        "stt": "hookline.ext.voice.settings:SpeechToTextSettings",
        "tts": "hookline.ext.voice.settings:TextToSpeechSettings",
    },
}
