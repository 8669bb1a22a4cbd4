"""The engines that Hookline brings: those of this machine, and those behind a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine import Recognizer, Synthesizer, VoiceProvider
from .errors import VoiceError


def builtin_providers() -> list[VoiceProvider]:
    """The built-in providers. Each imports its dependencies when one of its engines is created or
    used.
    """
    from .remote import remote_providers

    return [VoiceProvider("local", _moonshine, _espeak), *remote_providers()]


def _moonshine(model: str, settings: Mapping[str, Any]) -> Recognizer:
    from .moonshine import MODEL, MoonshineRecognizer

    _check("recogniser", model, MODEL)
    return MoonshineRecognizer()


def _espeak(model: str, settings: Mapping[str, Any]) -> Synthesizer:
    from .espeak import EspeakSynthesizer

    _check("synthesiser", model, "espeak")
    return EspeakSynthesizer()


def _check(what: str, model: str, known: str) -> None:
    if model not in ("", known):
        raise VoiceError(f"unknown local {what} {model!r}; there is 'local', which is {known!r}")
