"""The engines, loaded once: they are what costs time."""

import asyncio

import pytest

from hookline.ext.voice import VoiceProvider
from hookline.ext.voice.espeak import EspeakSynthesizer
from hookline.ext.voice.moonshine import MoonshineRecognizer

from .recordings import SENTENCE, voice


class _Kept(MoonshineRecognizer):
    async def close(self) -> None:
        """The model stays for the next test."""


@pytest.fixture(scope="session")
def engines() -> VoiceProvider:
    """The local engines, the recogniser with a model that stays."""
    recognizer = _Kept()
    return VoiceProvider("local", lambda *_: recognizer, lambda *_: EspeakSynthesizer())


@pytest.fixture
def speech(engines, tmp_path):
    """Makes a voice with the given sections of settings."""

    def make(**sections):
        made = voice(tmp_path, **sections)
        made.register(engines)
        return made

    return make


@pytest.fixture(scope="session")
def wav(tmp_path_factory) -> bytes:
    """The sentence as it is spoken."""

    async def say() -> bytes:
        made = voice(tmp_path_factory.mktemp("home"))
        part = await made.say(SENTENCE)
        await made.close()
        return part.data

    return asyncio.run(say())
