"""The providers that Hookline brings: the local model, the scripted one, and those behind a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.errors import BadSetting, UnknownModel

from .http.providers import http_providers
from .model import Model
from .registry import ModelProvider

if TYPE_CHECKING:
    from .weights import Progress


def builtin_providers(
    home: Path | None = None, progress: Progress | None = None
) -> list[ModelProvider]:
    """The providers, with models stored under `home`; `progress` is called during downloads."""

    def make_local(model: str, settings: Mapping[str, Any]) -> Model:
        from .local import LocalModel, LocalSettings

        return LocalModel(
            model or None, home=home, settings=LocalSettings.read(settings), progress=progress
        )

    def local_problem(settings: Mapping[str, Any]) -> str:
        from .local import local_problem

        return local_problem(home)

    return [
        ModelProvider(
            "local", make_local, "a small model in this process: no network, no key", local_problem
        ),
        ModelProvider(
            "scripted", _make_scripted, "plays a conversation from a TOML or Python file", names=_files
        ),
        *http_providers(),
        ModelProvider(
            "any", _make_any, "many more, through any-llm-sdk: any:PROVIDER/MODEL", _any_problem
        ),
    ]


def _make_scripted(model: str, settings: Mapping[str, Any]) -> Model:
    from .scripted import ScriptedModel

    if not model:
        raise UnknownModel("scripted", [], "; name its file: scripted:turns.toml")
    return ScriptedModel.from_file(model)


def _files() -> list[str]:
    return ["scripted:FILE"]


def _make_any(model: str, settings: Mapping[str, Any]) -> Model:
    from .anyllm import make_anyllm

    return make_anyllm(model, settings)


def _any_problem(settings: Mapping[str, Any]) -> str:
    from importlib.util import find_spec

    if find_spec("any_llm") is None:
        return "any-llm-sdk is not installed: pip install any-llm-sdk"
    if not settings:
        return ""
    from .anyllm import read_settings

    try:
        for provider in settings:
            read_settings(provider, settings)
    except BadSetting as error:
        return str(error)
    return ""
