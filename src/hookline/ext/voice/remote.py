"""Speech by a remote service with OpenAI-compatible audio endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import ModelError
from hookline.models.http.connections import Connections, http, proxy_of
from hookline.models.http.failures import CONNECT, Failures
from hookline.models.http.providers import endpoint_of, service_names
from hookline.text.foreign_json import parse_json
from hookline.types import AudioPart

from .engine import Recording, Utterance, VoiceProvider
from .errors import BadAudio
from .formats import format_of

if TYPE_CHECKING:
    from aiohttp import ClientTimeout

    from hookline.models.http.settings import Endpoint

_LARGEST = 50_000_000
_VOICE = "alloy"
_NAMES = {"wav": "wav", "ogg": "opus", "mp3": "mp3"}


class RemoteEngine:
    """One model of one endpoint. Connections are kept for the next request until `close`."""

    def __init__(self, name: str, model: str, endpoint: Endpoint, offer: str) -> None:
        self.name = name
        self._model = model
        self._endpoint = endpoint
        self._connections = Connections()
        self._failures = Failures(endpoint, name, model, offer)
        self._proxy = proxy_of(endpoint.base_url)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._endpoint.base_url!r})"

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.leave(self)

    @cached_property
    def _timeout(self) -> ClientTimeout:
        silence = self._endpoint.settings.timeout
        return http().ClientTimeout(total=None, sock_connect=CONNECT, sock_read=silence)

    async def _post(self, path: str, **body: Any) -> bytes:
        """The answer to a request, whole."""
        endpoint = self._endpoint
        headers = {"User-Agent": "hookline"}
        if key := endpoint.key():
            headers["Authorization"] = f"Bearer {key}"
        headers.update(endpoint.settings.headers)
        session = await self._connections.session(endpoint.base_url, self)
        failure: ModelError | None = None
        try:
            async with session.post(
                f"{endpoint.base_url}/{path}",
                headers=headers,
                proxy=self._proxy,
                allow_redirects=False,  # a redirect would take the key to another place
                timeout=self._timeout,
                **body,
            ) as response:
                found = await _whole(response.content)
                if found is None:
                    failure = self._failures.broken(f"sent more than {_LARGEST // 1_000_000} MB")
                elif response.status != 200:
                    failure = self._failures.refused(response.status, response.headers, found)
                else:
                    return found
        except asyncio.CancelledError:
            raise
        except Exception as error:
            failure = self._failures.not_sent(error)
        # Raised out here, it has no trace of the library's error, which shows the headers.
        raise failure


class RemoteRecognizer(RemoteEngine):
    """Listens by `/audio/transcriptions`. The recording is sent as it came."""

    async def hear(self, recording: Recording) -> str:
        """The words of a recording."""
        form = http().FormData()
        form.add_field("model", self._model)
        form.add_field("response_format", "json")
        if recording.language:
            form.add_field("language", recording.language)
        kind = recording.format
        form.add_field(
            "file", recording.data, filename=f"speech.{kind.extension}", content_type=kind.mime_type
        )
        answer = await self._post("audio/transcriptions", data=form)
        try:
            found: Any = parse_json(answer)
        except (ValueError, RecursionError):
            found = None
        table = cast("dict[str, Any]", found if isinstance(found, dict) else {})
        if error := table.get("error"):
            raise self._failures.told(error)
        text: Any = table.get("text")
        if not isinstance(text, str):
            raise self._failures.broken("sent no transcript: is it OpenAI-compatible?")
        if not text.strip():
            raise BadAudio("no speech was heard in the recording")
        return text.strip()


class RemoteSynthesizer(RemoteEngine):
    """Speaks by `/audio/speech`."""

    async def say(self, utterance: Utterance) -> AudioPart:
        """The sound of a text."""
        body = {
            "model": self._model,
            "input": utterance.text,
            "voice": utterance.voice or _VOICE,
            "speed": utterance.speed,
            "response_format": _NAMES[utterance.format],
        }
        answer = await self._post("audio/speech", json=body)
        # A service may send another format than it was asked for.
        found = format_of(answer)
        if found is None:
            raise self._failures.broken("sent no sound: is it OpenAI-compatible?")
        return AudioPart(answer, found.mime_type)


async def _whole(content: Any) -> bytes | None:
    """Everything that is sent, or None when it is too much."""
    found = bytearray()
    while data := await content.readany():
        found += data
        if len(found) > _LARGEST:
            return None
    return bytes(found)


def remote_providers() -> list[VoiceProvider]:
    """The services that are known by name, as they are for models."""
    return [_provider(name) for name in service_names()]


def _provider(name: str) -> VoiceProvider:
    def recognizer(model: str, settings: Mapping[str, Any]) -> RemoteRecognizer:
        found, endpoint = endpoint_of(name, model, settings)
        return RemoteRecognizer(f"{name}:{model}", found, endpoint, "speech recognition")

    def synthesizer(model: str, settings: Mapping[str, Any]) -> RemoteSynthesizer:
        found, endpoint = endpoint_of(name, model, settings)
        return RemoteSynthesizer(f"{name}:{model}", found, endpoint, "speech synthesis")

    return VoiceProvider(name, recognizer, synthesizer)
