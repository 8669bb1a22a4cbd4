"""`Voice`: what an app hears and says, with the engines that its settings name.

    text = await Voice.of(app).hear(AudioPart(data))
    part = await Voice.of(app).say("**Good** morning.")

Engines go by name, as models do: `local`, `openai:whisper-1`. More of them are plugged in with
`register`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from hookline.hooks.errors import suggestion
from hookline.types import AudioPart

from .engine import Recognizer, Recording, SpokenFormat, Synthesizer, Utterance, VoiceProvider
from .errors import VoiceError
from .formats import check_recording
from .settings import SpeechToTextSettings, TextToSpeechSettings

if TYPE_CHECKING:
    from hookline.config import Config
    from hookline.runtime.app import Hookline

log = logging.getLogger("hookline.ext.voice")

E = TypeVar("E")


class Voice:
    """The engines within reach. One is made when it is first used, and kept."""

    def __init__(self, config: Config, *, builtin: bool = True) -> None:
        self._config = config
        self._providers: dict[str, VoiceProvider] = {}
        self._recognizers: dict[str, Recognizer] = {}
        self._synthesizers: dict[str, Synthesizer] = {}
        self._warned: set[str] = set()
        if builtin:
            from .builtin import builtin_providers

            for provider in builtin_providers():
                self.register(provider)

    @classmethod
    def of(cls, app: Hookline) -> Self:
        """The engines of an app, as `[stt]` and `[tts]` say."""
        found = app.extensions.get(cls)
        if found is None:
            found = app.extensions[cls] = cls(app.config)
        return found

    def register(self, provider: VoiceProvider) -> None:
        """Plug in a provider; a later one with the same name takes its place."""
        self._providers[provider.name] = provider

    @property
    def hearing(self) -> SpeechToTextSettings:
        """`[stt]` as it stands."""
        return self._config.settings("stt", SpeechToTextSettings)

    @property
    def speaking(self) -> TextToSpeechSettings:
        """`[tts]` as it stands."""
        return self._config.settings("tts", TextToSpeechSettings)

    async def hear(self, audio: AudioPart) -> str:
        """The words of a recording, or an error that its sender understands."""
        settings = self.hearing
        found = check_recording(audio.data, settings.max_bytes)
        recording = Recording(audio.data, found, settings.language, settings.max_seconds)
        return await self.recognizer(settings.engine).hear(recording)

    async def say(self, text: str, *, form: SpokenFormat | None = None) -> AudioPart | None:
        """Markdown as speech, or None if it contains nothing to speak."""
        from .speakable import speakable

        settings = self.speaking
        aloud = await asyncio.to_thread(speakable, text, settings.max_characters)
        if not aloud:
            return None
        utterance = Utterance(
            aloud, settings.voice, settings.speed, settings.language, form or settings.format
        )
        return await self.synthesizer(settings.engine).say(utterance)

    def recognizer(self, name: str) -> Recognizer:
        """The recogniser of that name."""
        if name not in self._recognizers:
            self._recognizers[name] = self._make(name, lambda each: each.recognizer, "recogniser")
        return self._recognizers[name]

    def synthesizer(self, name: str) -> Synthesizer:
        """The synthesiser of that name."""
        if name not in self._synthesizers:
            self._synthesizers[name] = self._make(name, lambda each: each.synthesizer, "synthesiser")
        return self._synthesizers[name]

    def warn_once(self, text: str) -> None:
        """Log what hinders speech, the first time."""
        if text not in self._warned:
            self._warned.add(text)
            log.warning("voice.not_spoken %s", text)

    async def close(self) -> None:
        """Close every engine that was made. A failure does not keep the others open."""
        engines = [*self._recognizers.values(), *self._synthesizers.values()]
        self._recognizers, self._synthesizers = {}, {}
        failures: list[Exception] = []
        for engine in engines:
            try:
                await engine.close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _make(
        self,
        name: str,
        maker: Callable[[VoiceProvider], Callable[[str, Mapping[str, Any]], E] | None],
        what: str,
    ) -> E:
        prefix, _, model = name.partition(":")
        able = [each.name for each in self._providers.values() if maker(each) is not None]
        make = maker(self._providers[prefix]) if prefix in able else None
        if make is None:
            near = suggestion(prefix, able) or f"; there is {', '.join(able)}"
            raise VoiceError(f"unknown {what} {name!r}{near}")
        return make(model, self._config.expanded("providers").get(prefix, {}))
