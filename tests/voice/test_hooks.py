"""The shipped hook files `stt.py` and `tts.py`, through a whole turn."""

import logging
import subprocess
import sys

import pytest

from hookline.channel import Channel
from hookline.events import MessageReceiveEvent, MessageSendEvent
from hookline.ext.voice import Voice, VoiceError, VoiceProvider
from hookline.models import ScriptedModel
from hookline.plugins.hook_files import get_builtins_hooks_dir
from hookline.runtime.app import Hookline
from hookline.types import AudioPart, ImagePart, TextPart

from .recordings import is_sentence, recorded


class Door(Channel):
    """A channel that keeps the parts it was sent and the end, in order."""

    def __init__(self) -> None:
        self.given: list[object] = []

    async def send(self, message):
        if message.get("parts"):
            self.given.append(message["parts"])
        return True

    def stream(self, event):
        if event.kind == "end":
            self.given.append("end")


@pytest.fixture
def made(tmp_path, engines):
    """Makes an app with settings, whose model answers with a sentence."""

    def make(**sections):
        app = Hookline(home=tmp_path / "home", workspace=tmp_path, overrides=sections, project=False)
        app.load_hooks(packages=False)
        Voice.of(app).register(engines)
        model = ScriptedModel(["**Turn on** the kitchen lights"], repeat=True)
        app.models.add(model)
        app.model = model.name
        return app, model

    return make


async def turn(app, *parts, content=""):
    door = Door()
    async with app.running():
        message = {"content": content, "channel": "web", "chat_id": "1"}
        if parts:
            message["parts"] = list(parts)
        result = await app.process(message, door)
    return result, door.given


def test_the_two_files_are_shipped():
    names = [path.name for path in get_builtins_hooks_dir().glob("*.py")]
    assert sorted(names) == ["__init__.py", "stt.py", "tts.py"]


async def test_a_spoken_question_reaches_the_model_as_text_and_is_answered_by_sound(made, wav):
    app, model = made()
    result, given = await turn(app, AudioPart(recorded(wav, "webm", "libopus"), "audio/webm"))
    assert result.outcome == "answered"
    [request] = model.requests
    assert is_sentence(request.messages[-1]["content"])
    [[part], end] = given
    assert (part.type, part.mime_type, end) == ("audio", "audio/wav", "end")
    assert is_sentence(await Voice.of(app).hear(part))


async def test_other_parts_are_kept_in_their_order(made, wav):
    app, _ = made()
    app.hook_files.load()
    picture = ImagePart(b"\x89PNG")
    parts = [TextPart("first"), AudioPart(wav), picture, TextPart("last"), AudioPart(wav)]
    verdict = await app.hooks.call(MessageReceiveEvent(parts=parts), app.context(""))
    first, heard, kept, last, again = verdict.event.parts
    assert (first, kept, last) == (TextPart("first"), picture, TextPart("last"))
    assert is_sentence(heard.text)
    assert is_sentence(again.text)
    assert verdict.event.text == f"first\n{heard.text}\nlast\n{again.text}"
    assert verdict.decided_by in (None, "builtin/stt.py")


async def test_a_bad_recording_comes_back_with_the_reason_and_no_model_is_asked(made, wav):
    app, model = made()
    for data, reason in ((b"", "is empty"), (b"text", "no known format"), (wav[:9000], "cut off")):
        result, _ = await turn(app, AudioPart(data), content="listen")
        assert result.outcome == "rejected"
        assert reason in result.stopped
    assert model.requests == []


@pytest.mark.parametrize("enabled", [None, True, False])
async def test_speech_is_recognised_unless_it_is_off(made, wav, enabled):
    app, _ = made(stt={} if enabled is None else {"enabled": enabled})
    app.hook_files.load()
    event = MessageReceiveEvent(parts=[AudioPart(wav)])
    verdict = await app.hooks.call(event, app.context(""))
    assert verdict.event.parts[0].type == ("audio" if enabled is False else "text")
    silent = await app.hooks.call(
        MessageReceiveEvent(text="hi", parts=[TextPart("hi")]), app.context("")
    )
    assert "parts" not in silent.changes


@pytest.mark.parametrize("is_voice", [True, False])
@pytest.mark.parametrize("enabled", [None, True, False])
async def test_an_answer_is_spoken_to_who_spoke_or_always_or_never(made, enabled, is_voice):
    app, _ = made(tts={} if enabled is None else {"enabled": enabled})
    app.hook_files.load()
    event = MessageSendEvent(response_text="It is done.", is_voice=is_voice)
    given = await app.hooks.call(event, app.context(""))
    spoken = is_voice if enabled is None else enabled
    assert [part.type for result in given for part in result.parts] == (["audio"] if spoken else [])


async def test_settings_choose_voice_speed_and_format(made):
    app, _ = made(tts={"enabled": True, "format": "mp3", "voice": "en-us+Michael", "speed": 1.2})
    _, [[part], _] = await turn(app, content="hello")
    assert part.mime_type == "audio/mpeg"


async def test_wrong_settings_reject_a_recording_and_leave_an_answer_unspoken(made, wav, caplog):
    app, _ = made(stt={"langauge": "en"}, tts={"enabled": True, "speed": 9})
    result, _ = await turn(app, AudioPart(wav))
    assert "unknown key 'langauge'; did you mean 'language'?" in result.stopped
    result, given = await turn(app, content="hello")
    assert (result.outcome, given) == ("answered", ["end"])
    assert "tts.speed" in caplog.text


async def test_an_unknown_engine_is_told_with_what_there_is(made, wav):
    app, _ = made(stt={"model": "opnai:whisper-1"})
    result, _ = await turn(app, AudioPart(wav))
    assert result.stopped == "unknown recogniser 'opnai:whisper-1'; did you mean 'openai'?"


async def test_an_engine_of_ones_own_is_plugged_in(made, wav):
    class Parrot:
        async def hear(self, recording):
            return f"{recording.format.name} of {recording.language}"

        async def say(self, utterance):
            return AudioPart(utterance.text.encode(), "audio/x-parrot")

        async def close(self):
            closed.append(self)

    closed: list[Parrot] = []
    app, model = made(
        stt={"model": "parrot", "language": "fr"}, tts={"provider": "parrot", "model": "x"}
    )
    Voice.of(app).register(VoiceProvider("parrot", lambda *_: Parrot(), lambda *_: Parrot()))
    _, [[part], _] = await turn(app, AudioPart(wav))
    assert model.requests[0].messages[-1]["content"] == "WAV of fr"
    assert part == AudioPart(b"Turn on the kitchen lights.", "audio/x-parrot")
    assert len(closed) == 2


async def test_an_engine_that_breaks_rejects_the_message_instead_of_passing_the_sound_on(
    made, wav, caplog
):
    class Broken:
        async def hear(self, recording):
            raise RuntimeError("a wire came loose")

        async def close(self):
            pass

    app, model = made(stt={"model": "broken"})
    Voice.of(app).register(VoiceProvider("broken", lambda *_: Broken()))
    result, _ = await turn(app, AudioPart(wav))
    assert (result.outcome, result.stopped) == ("rejected", "the recording could not be understood")
    assert model.requests == []
    assert "a wire came loose" in caplog.text


async def test_what_hinders_speech_is_logged_once(made, caplog):
    class Missing:
        async def say(self, utterance):
            raise VoiceError("nobody is here")

        async def close(self):
            pass

    app, _ = made(tts={"model": "missing", "enabled": True})
    Voice.of(app).register(VoiceProvider("missing", None, lambda *_: Missing()))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert (await turn(app, content="hello"))[1] == ["end"]
    assert caplog.text.count("nobody is here") == 1


WITHOUT_EXTRA = """
import asyncio, logging, sys
from importlib.machinery import PathFinder
from pathlib import Path

MISSING = {"av", "moonshine_voice", "espeakng_loader", "numpy"}

class NotInstalled:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled)
logging.basicConfig(format="%(message)s")

from hookline.runtime.app import Hookline
from hookline.types import AudioPart
from hookline.models import ScriptedModel

async def main(folder):
    app = Hookline(home=folder, workspace=folder, overrides={"tts": {"enabled": True}})
    app.load_hooks(packages=False)
    model = ScriptedModel(["Hello."], repeat=True)
    app.models.add(model)
    app.model = model.name
    wav = Path(sys.argv[2]).read_bytes()
    async with app.running():
        spoken = {"content": "", "parts": [AudioPart(wav)]}
        heard = await app.process(spoken)
        print(heard.outcome, heard.stopped)
        for _ in range(2):
            said = await app.process({"content": "hi"})
            print(said.outcome, said.parts)

asyncio.run(main(Path(sys.argv[1])))
"""


def test_without_the_extra_a_sender_is_told_how_to_install_it(tmp_path, wav):
    file = tmp_path / "speech.wav"
    file.write_bytes(wav)
    command = [sys.executable, "-c", WITHOUT_EXTRA, str(tmp_path), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "rejected speech recognition is not installed here: pip install 'hookline[voice]'",
        "answered []",
        "answered []",
    ]
    assert (
        done.stderr.count("speech synthesis is not installed here: pip install 'hookline[voice]'") == 1
    )


LIGHT = """
import asyncio, sys
from pathlib import Path
from hookline.runtime.app import Hookline
from hookline.models import ScriptedModel

async def main(folder):
    app = Hookline(home=folder, workspace=folder)
    app.load_hooks(packages=False)
    model = ScriptedModel(["Hello."])
    app.models.add(model)
    app.model = model.name
    async with app.running():
        await app.process({"content": "hi"})
    print([file.name for file in app.hook_files.files])
    heavy = ("hookline.ext.voice.voice", "av", "numpy", "moonshine_voice", "espeakng_loader")
    print([name for name in heavy if name in sys.modules])

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_written_message_loads_nothing_of_it(tmp_path):
    command = [sys.executable, "-c", LIGHT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['builtin/stt.py', 'builtin/tts.py']", "[]"]
