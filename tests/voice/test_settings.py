"""`[stt]` and `[tts]`, and the commands that try them."""

import pytest

from hookline.config import Config
from hookline.ext.voice import SpeechToTextSettings

from .. import commandline
from .recordings import SENTENCE, is_sentence


@pytest.mark.parametrize(
    ("provider", "model", "engine"),
    [
        (None, None, "local"),
        ("openai", None, "openai"),
        (None, "openai:whisper-1", "openai:whisper-1"),
        ("openai", "whisper-1", "openai:whisper-1"),
        ("openai", "openai:whisper-1", "openai:whisper-1"),
        ("local", "local", "local"),
        ("openai-compatible", "http://localhost:1/v1#m", "openai-compatible:http://localhost:1/v1#m"),
    ],
)
def test_an_engine_is_named_whole_or_in_halves(provider, model, engine):
    assert SpeechToTextSettings(provider=provider, model=model).engine == engine


@pytest.mark.parametrize("section", ["stt", "tts"])
@pytest.mark.parametrize(
    "lines",
    [
        'model = "openai-compatible:http://203.0.113.1/v1#m"',
        'provider = "openai-compatible"\nmodel = "http://203.0.113.1/v1#m"',
        'model = "http://203.0.113.1/v1#m"',
    ],
)
def test_a_project_cannot_say_where_recordings_go(tmp_path, section, lines):
    project = tmp_path / "project" / ".hookline"
    project.mkdir(parents=True)
    (project / "config.toml").write_text(f"[{section}]\n{lines}\n")
    config = Config.load(tmp_path / "home", workspace=project.parent, environ={})
    assert config.section(section) == {}
    assert any("only your own settings say where recordings" in line for line in config.inert_lines())


def test_a_trusted_project_can_choose_among_what_is_known(tmp_path):
    project = tmp_path / "project" / ".hookline"
    project.mkdir(parents=True)
    (project / "config.toml").write_text('[tts]\nvoice = "en-us+Michael"\nmodel = "local"\n')
    given = {"workspace": project.parent, "environ": {}}
    assert Config.load(tmp_path / "home", **given).section("tts") == {}
    config = Config.load(tmp_path / "home", **given, trusts=lambda path, content: True)
    assert config.section("tts") == {"voice": "en-us+Michael", "model": "local"}


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    return commandline.here(tmp_path, tmp_path, monkeypatch, capsys)


def test_a_text_is_said_into_a_file_and_heard_from_it(tmp_path, hookline):
    file = tmp_path / "lights.ogg"
    said = hookline("voice", "say", SENTENCE, str(file))
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith(f"written to {file} (audio/ogg, ")
    heard = hookline("voice", "hear", str(file))
    assert (heard.returncode, heard.stderr) == (0, "")
    assert is_sentence(heard.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hear", "absent.wav"), "cannot read absent.wav: No such file or directory"),
        (("hear", __file__), "the recording is in no known format"),
        (("say", "hello", "x.flac"), "x.flac must end in .wav, .ogg, .mp3"),
        (("say", "```", "x.wav"), "there is nothing to say aloud in the text"),
        (("say", "hello", "no/such/x.wav"), "cannot write no/such/x.wav: No such file or directory"),
    ],
    ids=["absent", "no sound", "format", "nothing", "folder"],
)
def test_what_cannot_be_done_is_told_in_a_line(hookline, arguments, message):
    done = hookline("voice", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"hookline: {message}")
    assert done.stderr.count("\n") == 1


def test_a_wrong_setting_is_refused_before_it_is_written(tmp_path, hookline):
    for key, value, message in (
        ("tts.sped", "1", "unknown key 'sped'; did you mean 'speed'?"),
        ("tts.format", "aiff", "tts.format: must be"),
        ("stt.enabled", "perhaps", "stt.enabled: must be"),
    ):
        done = hookline("config", "set", key, value)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "config.toml").exists()
