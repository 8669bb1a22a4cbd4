"""The provider `anthropic:`, for models behind the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hookline.errors import ModelError, UnknownModel

from ..model import Model
from ..openai.providers import INSTALL
from ..registry import ModelProvider

if TYPE_CHECKING:
    from ..openai.settings import Endpoint

NAME = "anthropic"
SUMMARY = "Anthropic: anthropic:MODEL"


def anthropic_provider() -> ModelProvider:
    """The provider. What it needs is imported when one of its models is made or used."""
    pools: list[Any] = []  # its models share connections

    def make(model: str, settings: Mapping[str, Any]) -> Model:
        from ..openai.connections import Connections
        from .client import AnthropicModel

        if not model:
            raise UnknownModel(NAME, [], f"; name a model: {NAME}:MODEL")
        if not pools:
            pools.append(Connections())
        return AnthropicModel(model, endpoint(settings), connections=pools[0])

    return ModelProvider(NAME, make, SUMMARY, problem)


def endpoint(settings: Mapping[str, Any]) -> Endpoint:
    """Where the service is, with the settings of the provider."""
    from ..openai.settings import Endpoint, OpenAIService, Settings

    service = OpenAIService(
        NAME,
        base_url="https://api.anthropic.com",
        path="/v1/messages",
        url_env="ANTHROPIC_BASE_URL",
        key_env="ANTHROPIC_API_KEY",
        needs_key=True,
        summary=SUMMARY,
    )
    return Endpoint.of(service, Settings.read(settings, NAME))


def problem(settings: Mapping[str, Any]) -> str:
    """Why its models cannot be used here; nothing if they can."""
    if find_spec("aiohttp") is None:
        return f"aiohttp is not installed: {INSTALL}"
    try:
        endpoint(settings).key()
    except ModelError as error:
        return str(error)
    return ""
