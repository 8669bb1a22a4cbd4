"""Recordings are understood, or refused with words for their sender."""

import asyncio
import struct

import numpy as np
import pytest

from hookline.ext.voice import BadAudio, VoiceError
from hookline.ext.voice.formats import FORMATS, format_of
from hookline.ext.voice.sound import RATE, encoded, pieces, trimmed
from hookline.ext.voice.worker import MOST_WAITING, VoiceWorker
from hookline.types import AudioPart

from .recordings import CONTAINERS, SENTENCE, is_sentence, picture_only, recorded, voice


def sound(samples: np.ndarray, rate: int = RATE) -> bytes:
    return encoded((samples * 32767).astype("<i2").tobytes(), rate, "wav")


@pytest.mark.parametrize("kind", CONTAINERS)
async def test_what_is_spoken_is_heard_in_every_format(speech, wav, kind):
    container, codec, mime_type = CONTAINERS[kind]
    data = recorded(wav, container, codec)
    assert format_of(data) in FORMATS
    assert is_sentence(await speech().hear(AudioPart(data, mime_type)))


async def test_the_name_of_a_format_does_not_matter(speech, wav):
    data = recorded(wav, "webm", "libopus")
    assert is_sentence(await speech().hear(AudioPart(data, "audio/wav")))


async def test_a_telephone_and_a_studio_are_heard(speech, wav):
    for rate, layout in ((8_000, "mono"), (96_000, "stereo")):
        data = recorded(wav, "wav", "pcm_s16le", rate=rate, layout=layout)
        assert "lights" in await speech().hear(AudioPart(data))


async def test_a_recording_is_heard_the_same_whatever_was_heard_before(speech):
    """The second sentence that the voice of a process says is hard to understand at this rate."""
    spoken = [
        recorded((await speech().say(SENTENCE)).data, "wav", "pcm_s16le", rate=8_000, layout="mono")
        for _ in range(2)
    ]
    heard = [(n, await speech().hear(AudioPart(spoken[n]))) for n in (0, 0, 0, 0, 0, 1, 1, 1, 1)]
    assert len({text for n, text in heard if n == 1}) == 1


async def test_silence_around_speech_adds_no_words(speech, wav):
    raw = np.frombuffer(wav[44:], "<i2").astype("f4") / 32768
    noise = (np.random.default_rng(1).standard_normal(22_050) * 0.003).astype("f4")
    data = sound(np.concatenate([noise, raw, noise, noise]), 22_050)
    assert is_sentence(await speech().hear(AudioPart(data)))


async def test_quiet_speech_is_heard(speech, wav):
    raw = np.frombuffer(wav[44:], "<i2").astype("f4") / 32768
    assert is_sentence(await speech().hear(AudioPart(sound(raw * 0.05, 22_050))))


@pytest.mark.parametrize(
    "samples",
    [np.zeros(RATE), np.random.default_rng(2).standard_normal(RATE) * 0.001, np.zeros(10)],
    ids=["silence", "a quiet room", "a blink"],
)
async def test_a_recording_without_speech_is_told(speech, samples):
    with pytest.raises(BadAudio, match="no speech was heard"):
        await speech().hear(AudioPart(sound(samples)))


BAD = {
    "empty": (lambda wav: b"", "the recording is empty"),
    "text": (lambda wav: b"this is no recording", "in no known format; send WAV, OGG"),
    "playlist": (lambda wav: b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "in no known format"),
    "header alone": (lambda wav: wav[:44], "the WAV file .*no sound|the WAV file is cut off"),
    "half a header": (lambda wav: wav[:20], "the WAV file is cut off"),
    "half a WAV": (lambda wav: wav[: len(wav) // 2], "the WAV file is cut off"),
    "half an M4A": (
        lambda wav: recorded(wav, "ipod", "aac")[:4000],
        "the M4A file is damaged or cut off",
    ),
    "half a FLAC": (lambda wav: recorded(wav, "flac", "flac")[:20_000], "the FLAC file is"),
    "noise in WebM": (
        lambda wav: b"\x1a\x45\xdf\xa3" + bytes(range(256)) * 8,
        "the WebM file is damaged",
    ),
    "noise in MP3": (lambda wav: b"ID3" + bytes(range(256)) * 8, "the MP3 file"),
    "one sample a second": (
        lambda wav: wav[:24] + struct.pack("<II", 1, 2) + wav[32:],
        "damaged: it has 1 samples a second",
    ),
    "a picture": (lambda wav: picture_only(), "the WebM file has no sound in it"),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_file_is_told_in_a_line(speech, wav, case):
    make, message = BAD[case]
    with pytest.raises(BadAudio, match=message) as caught:
        await speech().hear(AudioPart(make(wav)))
    assert "\n" not in str(caught.value)


async def test_a_recording_that_is_too_large_or_too_long_is_refused(speech, wav):
    with pytest.raises(BadAudio, match=r"too large: 0.1 MB, at most 0.001 MB"):
        await speech(stt={"max_bytes": 1000}).hear(AudioPart(wav))
    short = speech(stt={"max_seconds": 1})
    for container, codec in (("wav", "pcm_s16le"), ("mp3", "libmp3lame"), ("webm", "libopus")):
        with pytest.raises(BadAudio, match="longer than 1 seconds; send a shorter one"):
            await short.hear(AudioPart(recorded(wav, container, codec)))


async def test_another_language_than_english_wants_another_engine(speech, wav):
    for language in ("en", "en-GB", "EN_us"):
        assert await speech(stt={"language": language}).hear(AudioPart(wav))
    with pytest.raises(VoiceError, match="knows English, not 'de'; set model in \\[stt\\]"):
        await speech(stt={"language": "de"}).hear(AudioPart(wav))


async def test_the_local_engines_have_one_model_each(tmp_path, wav):
    made = voice(tmp_path, stt={"provider": "local", "model": "large"}, tts={"model": "local:large"})
    with pytest.raises(VoiceError, match="unknown local recogniser 'large'; there is 'local'"):
        await made.hear(AudioPart(wav))
    with pytest.raises(VoiceError, match="unknown local synthesiser 'large'"):
        await made.say("hello")


async def test_several_recordings_at_once_are_all_heard(speech, wav):
    made = speech()
    found = await asyncio.gather(*(made.hear(AudioPart(wav)) for _ in range(4)))
    assert len(found) == 4
    assert all(is_sentence(each) for each in found)


def test_long_sound_is_cut_where_it_is_quiet():
    loud = np.full(25 * RATE, 0.5, "f4")
    quiet = np.zeros(RATE, "f4")
    whole = np.concatenate([loud, quiet, loud, quiet, loud])
    found = list(pieces(whole))
    assert len(found) == 3
    assert sum(map(len, found)) == len(whole)
    assert all(len(each) <= 30 * RATE for each in found)
    assert [abs(each[-1]) for each in found[:2]] == [0, 0]


def test_trimming_keeps_a_margin_and_leaves_nothing_of_silence():
    loud = np.full(RATE, 0.5, "f4")
    quiet = np.zeros(RATE, "f4")
    found = trimmed(np.concatenate([quiet, loud, quiet]))
    assert RATE < len(found) < RATE * 1.5
    assert len(trimmed(quiet)) == 0


async def test_work_that_nobody_waits_for_is_told_so_and_a_full_queue_refuses():
    from threading import Event

    worker, began, seen, go = VoiceWorker("test"), Event(), Event(), Event()

    def first(stopped):
        began.set()
        go.wait(10)
        if stopped():
            seen.set()

    task = asyncio.create_task(worker.run(first))
    await asyncio.to_thread(began.wait, 10)
    waiting = [asyncio.create_task(worker.run(lambda stopped: None)) for _ in range(MOST_WAITING - 1)]
    await asyncio.sleep(0)
    with pytest.raises(VoiceError, match="try again"):
        await worker.run(lambda stopped: None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await asyncio.gather(*waiting)
    assert seen.is_set()
    worker.close()
