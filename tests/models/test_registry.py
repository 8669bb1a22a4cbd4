"""Models are found by name, made once, and unknown ones are refused with a hint."""

import subprocess
import sys
from pathlib import Path

import pytest

from hookline.models import (
    BadSetting,
    LocalModel,
    ModelError,
    ModelProvider,
    Models,
    ModelUnavailable,
    ScriptedModel,
    UnknownModel,
)
from hookline.system.home import home


def test_a_scripted_model_is_found_by_its_file_and_kept(tmp_path: Path):
    path = tmp_path / "turns.toml"
    path.write_text("[[turns]]\ntext = 'x'")
    models = Models()
    model = models.get(f"scripted:{path}")
    assert isinstance(model, ScriptedModel)
    assert models.get(f"scripted:{path}") is model


def test_the_default_is_the_local_model():
    model = Models().get()
    assert isinstance(model, LocalModel)
    assert model.name == "local"
    assert Models(default="local:/own.gguf").get().name == "local:/own.gguf"


def test_settings_reach_their_provider():
    model = Models(settings={"local": {"offer_tools": True, "context": 512}}).get("local")
    assert isinstance(model, LocalModel)
    assert model.settings.offer_tools
    assert model.context_window == 512


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"thread": 2}, "unknown setting 'thread' of the local model; did you mean 'threads'"),
        ({"threads": 0}, "'threads'.*at least 1, got 0"),
        ({"context": "big"}, "'context'.*whole number.*'big'"),
        ({"temperature": 3}, "'temperature'.*from 0 to 2, got 3"),
        ({"offer_tools": "yes"}, "'offer_tools'.*true or false"),
    ],
)
def test_bad_settings_are_named(values, problem):
    with pytest.raises(BadSetting, match=problem):
        Models(settings={"local": values}).get("local")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("locl", "did you mean 'local'"),
        ("zzz", "there is 'local', 'scripted'"),
        ("opnai:gpt", "unknown model 'opnai:gpt'"),
        ("my.gguf", "did you mean 'local:my.gguf'"),
        ("turns.toml", "did you mean 'scripted:turns.toml'"),
        ("scripted", "name its file: scripted:turns.toml"),
    ],
)
def test_unknown_names_get_a_hint(name, hint):
    with pytest.raises(UnknownModel, match=hint):
        Models().get(name)


def test_other_providers_and_ready_models_plug_in():
    made: list[str] = []

    def make(model, settings):
        made.append(model)
        return ScriptedModel(["x"], name=f"mine:{model}")

    models = Models(builtin=False)
    models.register(ModelProvider("mine", make, "of my own", names=lambda: ["mine:big", "mine:small"]))
    assert models.get("mine:big") is models.get("mine:big")
    assert made == ["big"]
    ready = ScriptedModel(["x"], name="ready")
    models.add(ready)
    assert models.get("ready") is ready
    with pytest.raises(UnknownModel, match="did you mean 'mine:small'"):
        models.get("mne:small")


def test_a_provider_that_lacks_its_library_is_unavailable():
    def make(model, settings):
        raise ModuleNotFoundError("no", name="somelib")

    models = Models()
    models.register(ModelProvider("far", make))
    with pytest.raises(ModelUnavailable, match="'far:x' needs somelib"):
        models.get("far:x")


def test_available_says_why_not():
    models = Models(builtin=False, default="good")
    models.register(
        ModelProvider(
            "bad", lambda *_: ScriptedModel([]), "b", problem=lambda settings: "no key; set one"
        )
    )
    models.add(ScriptedModel(["x"], name="good"))
    found = {each.name: each for each in models.available()}
    assert (found["bad"].usable, found["bad"].reason) == (False, "no key; set one")
    assert (found["good"].usable, found["good"].default) == (True, True)
    assert {each.name for each in Models().available()} >= {"local", "scripted:FILE", "openai", "any"}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "openai needs a key: set OPENAI_API_KEY"),
        ({"api_key": "sk-1234"}, ""),
        ({"base_url": "http://127.0.0.1:1/v1"}, ""),
        ({"api_key_env": "MY_KEY"}, "openai needs a key: set MY_KEY"),
        ({"api_ke": "x"}, "unknown setting 'api_ke' of openai; did you mean 'api_key'"),
        ({"base_url": "nowhere"}, "the base URL of openai is invalid"),
    ],
)
def test_what_is_available_depends_on_the_settings(monkeypatch, settings, reason):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = {each.name: each for each in Models(settings={"openai": settings}).available()}
    assert found["openai"].usable == (not reason)
    assert found["openai"].reason.startswith(reason)
    assert bool(found["openai"].reason) == bool(reason)


async def test_closing_closes_every_model_and_reports_a_failure():
    closed: list[str] = []

    class Held(ScriptedModel):
        async def close(self) -> None:
            closed.append(self.name)
            if self.name == "a":
                raise ModelError("stuck")

    models = Models()
    for name in "ab":
        models.add(Held(["x"], name=name))
    with pytest.raises(ModelError, match="stuck"):
        await models.close()
    assert closed == ["a", "b"]


def test_the_home_is_the_variable_or_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("HOOKLINE_HOME", str(tmp_path))
    assert home() == tmp_path
    monkeypatch.delenv("HOOKLINE_HOME")
    assert home() == Path.home() / ".hookline"


def test_importing_models_loads_nothing_heavy():
    code = (
        "import sys, hookline.models\nfrom hookline.models import ScriptedModel\n"
        "hookline.models.Models()\n"
        "heavy = ('xllamacpp', 'asyncio', 'subprocess', 'pydantic', 'aiohttp', 'any_llm')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
