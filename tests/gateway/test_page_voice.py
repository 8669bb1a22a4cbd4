"""Recording on the page, with a microphone that plays a file, and answers that are heard."""

import wave
from importlib.util import find_spec
from pathlib import Path

import pytest

from hookline.events import MessageReceiveEvent, MessageReceiveResult
from hookline.ext.voice import Voice
from hookline.models import ScriptedModel, Turn
from hookline.types import AudioPart

from .page import CHROMIUM, MISSING, browser, opened, serving, true

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


def recording(folder: Path, sound: bytes, rate: int) -> Path:
    """A file that Chromium takes for its microphone: the sound, then silence."""
    path = folder / "said.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(rate) + sound + bytes(2 * rate * 30))
    return path


def microphone(path: Path) -> list[str]:
    return [
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={path}",
    ]


async def test_a_recording_reaches_the_gateway(tmp_path):
    heard: list[AudioPart] = []

    def listen(event: MessageReceiveEvent, ctx):
        heard.extend(part for part in event.parts if isinstance(part, AudioPart))
        return MessageReceiveResult(action="reject", reason="that was enough")

    path = recording(tmp_path, bytes(range(256)) * 200, 16_000)
    async with serving(tmp_path, ScriptedModel(["hi"])) as house:
        house.app.hooks.register("message:receive", listen, tryfirst=True)
        async with browser(*microphone(path)) as chromium:
            page = await opened(chromium, house)
            await page.click("#record")
            await page.wait_for_selector("#recording >> text=0:01")
            await page.click("#discard")  # this one is thrown away
            await page.wait_for_selector("#composer-text")
            assert await page.locator(".person").count() == 0
            await page.click("#record")
            await page.wait_for_selector("#recording >> text=0:01")
            await page.click("#record")
            await page.wait_for_selector(".note >> text=that was enough")
            assert [part.mime_type for part in heard] == ["audio/webm"]
            assert heard[0].data.startswith(b"\x1a\x45\xdf\xa3")  # how every WebM file begins
            assert b"OpusHead" in heard[0].data
            assert await page.get_attribute(".person audio", "src")
            assert page.problems == []


@pytest.mark.skipif(
    not (find_spec("espeakng_loader") and find_spec("moonshine_voice")), reason="needs hookline[voice]"
)
async def test_a_recorded_question_is_answered_by_sound(tmp_path):
    turns = [Turn(text="The capital of France is Paris.", match="(?i)capital.*france")]
    async with serving(tmp_path, ScriptedModel(turns)) as house:
        said = await Voice.of(house.app).say("What is the capital of France?", form="wav")
        source = tmp_path / "speech.wav"
        source.write_bytes(said.data)
        with wave.open(str(source)) as file:
            sound, rate = file.readframes(file.getnframes()), file.getframerate()
        seconds = len(sound) // (2 * rate) + 3
        async with browser(*microphone(recording(tmp_path, sound, rate))) as chromium:
            page = await opened(chromium, house)
            await page.click("#record")
            await page.wait_for_selector(f"#recording >> text=0:0{seconds}")
            await page.click("#record")
            page.set_default_timeout(60_000)
            await page.wait_for_selector("text=The capital of France is Paris.")
            await page.wait_for_selector(".answer audio")
            playing = "player => player.duration > 1 && player.currentTime > 0.1"
            player = await page.query_selector(".answer audio")
            await true(page, playing, player)
            await page.reload()
            await page.wait_for_selector(".person >> text=/capital of france/i")  # what was understood
            assert page.problems == []
