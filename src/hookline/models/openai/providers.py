"""The OpenAI-compatible services that are known by name, and `openai-compatible` for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hookline.errors import ModelError, UnknownModel

from ..model import Model
from ..registry import ModelProvider

if TYPE_CHECKING:
    from .settings import Endpoint, OpenAIService

INSTALL = "pip install aiohttp"

COMPATIBLE = "openai-compatible"

_SERVICES: dict[str, dict[str, Any]] = {
    "openai": {
        "base_url": "https://api.openai.com/v1",
        "url_env": "OPENAI_BASE_URL",
        "key_env": "OPENAI_API_KEY",
        "needs_key": True,
        "summary": "OpenAI: openai:MODEL",
        "effort": True,
        "longest": "max_completion_tokens",
        "cache_key": True,
        "output": True,
    },
    "openrouter": {
        "base_url": "https://openrouter.ai/api/v1",
        "key_env": "OPENROUTER_API_KEY",
        "needs_key": True,
        "summary": "OpenRouter: openrouter:VENDOR/MODEL",
        "effort": True,
        "no_effort": "none",
    },
    "groq": {
        "base_url": "https://api.groq.com/openai/v1",
        "key_env": "GROQ_API_KEY",
        "needs_key": True,
        "summary": "Groq: groq:MODEL",
        "effort": True,
    },
    "deepseek": {
        "base_url": "https://api.deepseek.com/v1",
        "key_env": "DEEPSEEK_API_KEY",
        "needs_key": True,
        "summary": "DeepSeek: deepseek:MODEL",
        "effort": True,
        "thoughts": True,
    },
    "ollama": {
        "base_url": "http://localhost:11434/v1",
        "key_env": "OLLAMA_API_KEY",
        "summary": "an Ollama server on this machine: ollama:MODEL",
        "effort": True,
        "no_effort": "none",
        "output": True,
    },
    "vllm": {
        "base_url": "http://localhost:8000/v1",
        "key_env": "VLLM_API_KEY",
        "summary": "a vLLM server on this machine: vllm:MODEL",
        "effort": True,
        "output": True,
    },
    "llamacpp": {
        "base_url": "http://localhost:8080/v1",
        "key_env": "LLAMA_API_KEY",
        "summary": "a llama.cpp server on this machine: llamacpp:MODEL",
        "output": True,
    },
    "lmstudio": {
        "base_url": "http://localhost:1234/v1",
        "key_env": "LMSTUDIO_API_KEY",
        "summary": "an LM Studio server on this machine: lmstudio:MODEL",
        "output": True,
    },
    COMPATIBLE: {
        "summary": f"any such endpoint: {COMPATIBLE}:URL#MODEL",
        "effort": True,
    },
}


def openai_providers() -> list[ModelProvider]:
    """The providers. What they need is imported when one of their models is made or used."""
    return [
        ModelProvider(
            name, _maker(name), facts["summary"], _problem_of(name), obstacle=_obstacle_of(name)
        )
        for name, facts in _SERVICES.items()
    ]


def service_names() -> list[str]:
    """The names of the services."""
    return list(_SERVICES)


def service(name: str) -> OpenAIService:
    """The known facts about a service."""
    from .settings import OpenAIService

    return OpenAIService(name, **_SERVICES[name])


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
        from .client import OpenAIModel
        from .connections import Connections

        called = f"{name}:{model}"
        model, endpoint = endpoint_of(name, model, settings)
        if not pools:
            pools.append(Connections())
        return OpenAIModel(model, endpoint, name=called, connections=pools[0])

    return make


def _obstacle_of(name: str) -> Callable[[Mapping[str, Any], str], str]:
    def find_obstacle(settings: Mapping[str, Any], model: str) -> str:
        """Ask a server of one's own; the services behind a key are not asked."""
        from .reach import obstacle
        from .settings import Endpoint, Settings

        if _SERVICES[name].get("needs_key") or (name == COMPATIBLE and not settings.get("base_url")):
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
