"""What is known of the plugin `voice` before it is imported."""

MANIFEST = {
    "name": "voice",
    "order": 160,
    "settings": {
        "stt": "hookline.ext.voice.settings:SpeechToTextSettings",
        "tts": "hookline.ext.voice.settings:TextToSpeechSettings",
    },
}
