"""The providers of the services in `services`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hookline.errors import ModelError, UnknownModel

from ..model import Model
from ..registry import ModelProvider
from .services import COMPATIBLE, SERVICES

if TYPE_CHECKING:
    from .settings import Endpoint, HttpService

INSTALL = "pip install aiohttp"

_CLIENTS = {
    "chat": ("hookline.models.openai.client", "OpenAIModel"),
    "responses": ("hookline.models.openai.responses", "ResponsesModel"),
    "messages": ("hookline.models.anthropic.client", "AnthropicModel"),
    "gemini": ("hookline.models.google.client", "GoogleModel"),
}
"""The client of each protocol."""


def http_providers() -> list[ModelProvider]:
    """The providers. What they need is imported when one of their models is made or used."""
    return [
        ModelProvider(
            name, _maker(name), facts["summary"], _problem_of(name), obstacle=_obstacle_of(name)
        )
        for name, facts in SERVICES.items()
    ]


def service_names() -> list[str]:
    """The names of the services that are OpenAI-compatible."""
    return [name for name, facts in SERVICES.items() if facts.get("api", "chat") == "chat"]


def service(name: str) -> HttpService:
    """The known facts about a service."""
    from .settings import HttpService

    return HttpService(name, **SERVICES[name])


def endpoint_of(name: str, model: str, settings: Mapping[str, Any]) -> tuple[str, Endpoint]:
    """The model and address that a name stands for at a service."""
    from .settings import Endpoint, Settings

    values = dict(settings)
    called = f"{name}:{model}"
    if name == COMPATIBLE and "://" in model:
        url, _, model = model.rpartition("#") if "#" in model else (model, "", "")
        values["base_url"] = url
    if not model:
        example = f"{COMPATIBLE}:http://localhost:8080/v1#MODEL" if name == COMPATIBLE else ""
        raise UnknownModel(called.rstrip(":"), [], f"; name a model: {example or f'{name}:MODEL'}")
    return model, Endpoint.of(service(name), Settings.read(values, name))


def _maker(name: str) -> Callable[[str, Mapping[str, Any]], Model]:
    # The models of one provider share connections, so the pool lives as long as the provider.
    pools: list[Any] = []

    def make(model: str, settings: Mapping[str, Any]) -> Model:
        from .connections import Connections

        called = f"{name}:{model}"
        model, endpoint = endpoint_of(name, model, settings)
        if not pools:
            pools.append(Connections())
        place, client = _CLIENTS[endpoint.service.api]
        make_model = getattr(import_module(place), client)
        return make_model(model, endpoint, name=called, connections=pools[0])

    return make


def _obstacle_of(name: str) -> Callable[[Mapping[str, Any], str], str]:
    def find_obstacle(settings: Mapping[str, Any], model: str) -> str:
        """Ask a server of one's own; the services behind a key are not asked."""
        from .reach import obstacle
        from .settings import Endpoint, Settings

        if SERVICES[name].get("needs_key") or (name == COMPATIBLE and not settings.get("base_url")):
            return ""
        return obstacle(Endpoint.of(service(name), Settings.read(settings, name)), model)

    return find_obstacle


def _problem_of(name: str) -> Callable[[Mapping[str, Any]], str]:
    def problem(settings: Mapping[str, Any]) -> str:
        if find_spec("aiohttp") is None:
            return f"aiohttp is not installed: {INSTALL}"
        from .settings import Endpoint, Settings

        try:
            read = Settings.read(settings, name)
            if name != COMPATIBLE or read.base_url:  # its model may name the address
                Endpoint.of(service(name), read).key()
        except ModelError as error:
            return str(error)
        return ""

    return problem
