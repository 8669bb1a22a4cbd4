"""Answers become sound: what is said of them, by which voice, in which format."""

import asyncio
import wave
from io import BytesIO

import pytest

from hookline.ext.voice import VoiceError
from hookline.ext.voice.espeak import voice_name
from hookline.ext.voice.formats import format_of
from hookline.ext.voice.speakable import sentences, speakable
from hookline.types import AudioPart

from .recordings import SENTENCE, is_sentence


def seconds(part: AudioPart) -> float:
    with wave.open(BytesIO(part.data)) as file:
        return file.getnframes() / file.getframerate()


@pytest.mark.parametrize("form", ["wav", "ogg", "mp3"])
async def test_an_answer_is_spoken_in_the_format_that_is_set(speech, form):
    made = speech(tts={"format": form})
    part = await made.say(SENTENCE)
    assert part.mime_type == {"wav": "audio/wav", "ogg": "audio/ogg", "mp3": "audio/mpeg"}[form]
    assert format_of(part.data).mime_type == part.mime_type
    assert is_sentence(await made.hear(part))
    await made.close()


async def test_a_compact_format_is_small(speech):
    large, small = [await speech(tts={"format": form}).say(SENTENCE) for form in ("wav", "ogg")]
    assert len(small.data) * 5 < len(large.data)


async def test_the_voice_that_is_set_speaks(speech):
    names = ("Annie", "Annie", "Michael")
    one, same, other = [await speech(tts={"voice": f"en-us+{each}"}).say(SENTENCE) for each in names]
    assert seconds(one) == pytest.approx(seconds(same), abs=0.005)
    assert seconds(one) != pytest.approx(seconds(other), abs=0.005)


async def test_speed_shortens_and_sentences_are_all_said(speech):
    usual, quick = [await speech(tts={"speed": each}).say(SENTENCE) for each in (1.0, 1.6)]
    assert seconds(quick) < 0.8 * seconds(usual)
    twice = await speech().say("Turn on the kitchen lights. Turn on the kitchen lights.")
    assert seconds(twice) > 1.8 * seconds(usual)


def test_a_voice_is_a_language_and_a_variant():
    assert voice_name(None, None) == "en-us+Annie"
    assert voice_name("en-us+Michael", "de") == "en-us+Michael"
    assert voice_name("+Michael", None) == "en-us+Michael"
    assert voice_name("en-gb", None) == "en-gb+Annie"
    assert voice_name(None, "en") == "en-us+Annie"
    assert voice_name(None, "DE") == "de+Annie"


async def test_other_languages_have_voices_and_unknown_ones_are_told(speech):
    assert seconds(await speech(tts={"language": "de"}).say("Guten Tag, ich bin da.")) > 0.5
    with pytest.raises(VoiceError, match=r"does not speak 'xx'"):
        await speech(tts={"language": "xx"}).say("hello")
    for name in ("en-us+Anie", "en-us+../../x"):
        with pytest.raises(VoiceError, match="unknown voice 'en-us"):
            await speech(tts={"voice": name}).say("hello")


async def test_two_voices_at_once_do_not_mix(speech):
    one, other = speech(), speech(tts={"speed": 2.0})
    alone = [await one.say(SENTENCE), await other.say(SENTENCE)]
    together = await asyncio.gather(*(each.say(SENTENCE) for _ in range(5) for each in (one, other)))
    for part, usual in zip(together, alone * 5, strict=True):
        assert seconds(part) == pytest.approx(seconds(usual), rel=0.1)


async def test_nothing_is_said_of_code_alone(speech):
    assert await speech().say("```python\nprint('hello')\n```") is None
    assert await speech().say("  \n---\n✅") is None


def test_markdown_is_read_as_people_would():
    text = """\
# Lights

They are **on** now, see [the page](https://example.org/a?b=c) or https://example.org/very/long.
Use `turn_off` to switch -5 degrees.

- kitchen ✅
- hall!

```python
secret = 1
```

| room | state |
|------|-------|
| hall | off   |

![a lamp](lamp.png)
<b>bold</b>
"""
    assert speakable(text, 1000).split("\n") == [
        "Lights.",
        "They are on now, see the page or example.org Use turn off to switch -5 degrees.",
        "kitchen.",
        "hall!",
        "room, state.",
        "hall, off.",
        "a lamp bold.",
    ]


def test_a_long_answer_ends_with_a_whole_sentence():
    text = "One is here. Two is here. " + "Three goes on and on " * 50
    assert speakable(text, 30) == "One is here. Two is here."
    assert speakable("word " * 100, 22) == "word word word word"
    assert speakable("x" * 100, 10) == "x" * 10
    assert speakable("One is here.", 12) == "One is here."
    assert speakable("One is here. Two.", 12) == "One is here."


def test_sentences_end_where_a_new_one_begins():
    assert sentences("It costs 3.5, e.g. today. Really?\nYes! OK") == [
        "It costs 3.5, e.g. today.",
        "Really?",
        "Yes!",
        "OK",
    ]
