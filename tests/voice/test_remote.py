"""Speech by a service, against a server on loopback."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from hookline.ext.voice import BadAudio
from hookline.models import ModelError, ModelFailed, ModelUnavailable, UnknownModel
from hookline.types import AudioPart

from .recordings import recorded

KEY = "sk-very-secret-0123456789"


class Service:
    """What an OpenAI-compatible service does with sound; `answer` does something else instead."""

    def __init__(self, sound: bytes) -> None:
        self.sound = sound
        self.seen: list[dict] = []
        self.answer = None
        self.url = ""

    async def transcriptions(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file = form["file"]
        self.seen.append(
            {**form, "file": file.file.read(), "name": file.filename, "type": file.content_type}
        )
        return await self._answered(request, web.json_response({"text": " Turn on the lights. "}))

    async def speech(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(await request.json())
        return await self._answered(request, web.Response(body=self.sound, content_type="audio/mpeg"))

    async def _answered(self, request, usual):
        if self.answer is not None:
            return await self.answer(request) if callable(self.answer) else self.answer
        given = request.headers.get("Authorization", "")
        if given != f"Bearer {KEY}":
            error = {"error": {"message": f"Incorrect API key: {given}", "code": "invalid_api_key"}}
            return web.json_response(error, status=401)
        return usual


@pytest.fixture
async def service(wav):
    service = Service(recorded(wav, "mp3", "libmp3lame"))
    app = web.Application(client_max_size=10_000_000)
    app.router.add_post("/v1/audio/transcriptions", service.transcriptions)
    app.router.add_post("/v1/audio/speech", service.speech)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    service.url = f"http://{host}:{port}/v1"
    yield service
    await runner.cleanup()


@asynccontextmanager
async def asking(speech, service, *, key=KEY, stt=None, tts=None, **provider):
    made = speech(
        providers={"openai": {"base_url": service.url, "api_key": key, **provider}},
        stt={"model": "openai:whisper-1", **(stt or {})},
        tts={"provider": "openai", "model": "tts-1", **(tts or {})},
    )
    try:
        yield made
    finally:
        await made.close()


async def test_a_recording_is_sent_as_it_came_and_its_text_comes_back(speech, service, wav):
    data = recorded(wav, "webm", "libopus")
    async with asking(speech, service, stt={"language": "en"}) as made:
        assert await made.hear(AudioPart(data, "audio/wav")) == "Turn on the lights."
    [seen] = service.seen
    assert seen == {
        "model": "whisper-1",
        "language": "en",
        "response_format": "json",
        "file": data,
        "name": "speech.webm",
        "type": "audio/webm",
    }


async def test_an_answer_is_spoken_as_the_settings_say(speech, service):
    tts = {"voice": "nova", "speed": 1.5, "format": "mp3"}
    async with asking(speech, service, tts=tts) as made:
        assert await made.say("**Hello.**") == AudioPart(service.sound, "audio/mpeg")
    [seen] = service.seen
    assert seen == {
        "model": "tts-1",
        "input": "Hello.",
        "voice": "nova",
        "speed": 1.5,
        "response_format": "mp3",
    }


async def test_a_compatible_endpoint_is_named_by_its_address(speech, service, wav):
    made = speech(
        providers={"openai-compatible": {"api_key": KEY}},
        stt={"model": f"openai-compatible:{service.url}#whisper"},
    )
    assert await made.hear(AudioPart(wav)) == "Turn on the lights."
    assert service.seen[0]["model"] == "whisper"
    await made.close()


async def test_a_bad_file_is_not_sent(speech, service):
    async with asking(speech, service) as made:
        for data in (b"", b"this is no recording"):
            with pytest.raises(BadAudio):
                await made.hear(AudioPart(data))
    assert service.seen == []


async def failures(speech, service, wav, kind=ModelFailed, *, key=KEY, **provider) -> list[str]:
    """What becomes of both requests: an error each, of one line and without the key."""
    found: list[str] = []
    async with asking(speech, service, key=key, **provider) as made:
        for asked in (made.hear(AudioPart(wav)), made.say("Hello.")):
            with pytest.raises(ModelError) as caught:
                await asked
            assert isinstance(caught.value, kind), repr(caught.value)
            text = str(caught.value)
            assert "\n" not in text
            assert key not in text
            assert caught.value.__context__ is None
            found.append(text)
    return found


async def test_a_wrong_key_is_told_without_it(speech, service, wav):
    for text in await failures(speech, service, wav, key="sk-wrong-9876543210"):
        assert "refused the key in api_key in the settings of openai; check it (401)" in text


async def test_a_missing_key_is_told_before_anything_is_sent(speech, wav, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = speech(stt={"model": "openai:whisper-1"})
    with pytest.raises(ModelUnavailable, match="openai needs a key: set OPENAI_API_KEY"):
        await made.hear(AudioPart(wav))


async def test_a_server_that_fails_is_told(speech, service, wav):
    service.answer = lambda request: answering(web.Response(status=500, text="out of order"))
    for text in await failures(speech, service, wav):
        assert text.endswith("failed (500): out of order")


async def test_garbage_is_told(speech, service, wav):
    for body in (b"\x00\x01garbage", b"", b"[]", b'{"text": 5}', b'{"text": null}'):
        service.answer = lambda request, body=body: answering(web.Response(body=body))
        heard, said = await failures(speech, service, wav)
        assert "sent no transcript: is it OpenAI-compatible?" in heard
        assert "sent no sound: is it OpenAI-compatible?" in said


async def test_an_error_under_the_status_of_success_is_told(speech, service, wav):
    service.answer = lambda request: answering(web.json_response({"error": {"message": "too much"}}))
    heard, _ = await failures(speech, service, wav)
    assert "too much" in heard


async def test_an_endpoint_without_speech_and_an_unknown_model_are_told(speech, service, wav):
    service.answer = lambda request: answering(web.Response(status=404, text="not here"))
    heard, said = await failures(speech, service, wav)
    assert "has no speech recognition (404)" in heard
    assert "has no speech synthesis (404)" in said
    error = {"error": {"message": "The model `whisper-1` does not exist", "code": "model_not_found"}}
    service.answer = lambda request: answering(web.json_response(error, status=404))
    await failures(speech, service, wav, UnknownModel)


async def test_a_redirect_does_not_take_the_key_along(speech, service, wav):
    moved = {"Location": "http://127.0.0.1:1/v1"}
    service.answer = lambda request: answering(web.Response(status=307, headers=moved))
    for text in await failures(speech, service, wav):
        assert "has moved (307)" in text


async def test_a_silent_server_and_one_that_hangs_up_are_told(speech, service, wav):
    over = asyncio.Event()

    async def silent(request):
        await over.wait()
        return web.Response()

    service.answer = silent
    for text in await failures(speech, service, wav, timeout=0.2):
        assert "said nothing for 0.2 s" in text
    over.set()

    async def hang_up(request):
        request.transport.abort()
        return web.Response()

    service.answer = hang_up
    for text in await failures(speech, service, wav):
        assert "closed the connection" in text


async def test_nobody_there_is_told(speech, service, wav):
    service.url = "http://127.0.0.1:1/v1"
    for text in await failures(speech, service, wav, ModelUnavailable):
        assert "cannot be reached" in text


async def test_a_transcript_without_words_is_told(speech, service, wav):
    service.answer = lambda request: answering(web.json_response({"text": "  "}))
    async with asking(speech, service) as made:
        with pytest.raises(BadAudio):
            await made.hear(AudioPart(wav))


async def answering(response: web.Response) -> web.Response:
    return response
