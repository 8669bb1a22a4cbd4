"""The many other providers, through `any-llm-sdk`: `any:PROVIDER/MODEL`, such as `any:mistral/NAME`.

The library and the vendor's own behind it are imported with the first request. Where an endpoint is
OpenAI-compatible, `openai-compatible` does the same for a tenth of the work.

Settings are given by provider: `{"any": {"mistral": {"api_key": "..."}}}`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Mapping
from importlib import import_module
from typing import Any, cast

from hookline.errors import (
    BadResponse,
    BadSetting,
    ContextOverflow,
    ModelError,
    ModelFailed,
    ModelUnavailable,
    UnknownModel,
)
from hookline.types import Message, StreamEvent

from .capabilities import CAPABILITIES
from .http.failures import retry_after
from .http.reply import ToolNames
from .http.settings import Endpoint, HttpService, Settings
from .model import Model, ModelRequest
from .openai.wire import ChatReply, body, usage
from .prices import cost

INSTALL = "pip install any-llm-sdk"
EXAMPLE = "any:PROVIDER/MODEL"
ANTHROPIC = "anthropic"
EPHEMERAL = {"type": "ephemeral"}

_BROKE = ("ProviderError", "UpstreamProviderError", "GatewayTimeoutError")
_TRANSIENT = (408, 409, 425, 429, 500, 502, 503, 504, 529)


def make_anyllm(model: str, settings: Mapping[str, Any]) -> Model:
    """A model of the library, from `PROVIDER/MODEL`."""
    provider, _, rest = model.partition("/")
    if not provider or not rest:
        raise UnknownModel(f"any:{model}".rstrip(":"), [], f"; name a provider and a model: {EXAMPLE}")
    return AnyModel(provider, rest, read_settings(provider, settings))


def read_settings(provider: str, settings: Mapping[str, Any]) -> Settings:
    """The settings of one of the library's providers, or an error that names the wrong one."""
    where = f"any:{provider}"
    values: object = settings.get(provider, {})
    if not isinstance(values, Mapping):
        raise BadSetting(f"the settings of {where} must be a table, got {type(values).__name__}")
    read = Settings.read(cast("Mapping[str, Any]", values), where)
    if read.headers:
        raise BadSetting(f"'headers' cannot be set for {where}: its library makes them")
    return read


class AnyModel:
    """Asks a model through the library. There is one client for each event loop, kept until `close`."""

    capabilities = CAPABILITIES["any"]

    def __init__(self, provider: str, model: str, settings: Settings) -> None:
        self.name = f"any:{provider}/{model}"
        self.context_window = settings.context_window
        self._provider = provider
        self._model = model
        self._settings = settings
        # What the library takes: it gives its own words to its providers.
        self._service = HttpService(f"any:{provider}", effort=True, no_effort="none")
        self._endpoint = Endpoint(self._service, settings, settings.base_url)
        self._clients: dict[asyncio.AbstractEventLoop, Any] = {}

    def __repr__(self) -> str:
        return f"AnyModel({self.name!r})"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Answer piece by piece. Closing the stream closes that of the library."""
        names = ToolNames(tool["name"] for tool in request.tools)
        reply = ChatReply(names)
        asked = body(request, self._model, names, self._service, self._settings)
        if self._provider == ANTHROPIC:
            remind(asked["messages"], request.messages)
            if "cache_control" not in {**self._settings.options, **request.options}:
                mark_cached(asked)
        chunks: Any = None
        try:
            client = await self._client()
            async with asyncio.timeout(self._settings.timeout):
                chunks = await client.acompletion(**asked)
            reader = aiter(chunks)
            while True:
                async with asyncio.timeout(self._settings.timeout):
                    chunk = await anext(reader, None)
                if chunk is None:
                    break
                plain = chunk.model_dump(exclude_none=True)
                signature = flatten(plain)
                for event in reply.take(plain):
                    yield event
                if signature:
                    yield StreamEvent("reasoning", {"delta": "", "signature": signature})
            if not reply.reason:
                raise ModelFailed(
                    f"{self.name} was cut off in the middle of its answer", transient=True
                )
            for event in reply.end():
                yield event
            if reply.counts:
                yield StreamEvent("usage", self._usage(reply.counts))
            yield StreamEvent("final", {"finish_reason": reply.finish_reason})
        except BadResponse as error:
            raise ModelFailed(f"{self.name} sent {error}") from error
        except ModelError:
            raise
        except Exception as error:
            # The vendor's error is not chained: it may show the request with its key.
            raise self._failure(error) from None
        finally:
            await _close(chunks)

    async def close(self) -> None:
        """Close the clients. Used again, it makes new ones."""
        clients, self._clients = self._clients, {}
        here = asyncio.get_running_loop()
        for loop, client in clients.items():
            if loop is here:
                await _close(getattr(client, "client", None))

    async def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            try:
                # It takes a second, during which other tasks run.
                library: Any = await asyncio.to_thread(import_module, "any_llm")
            except ImportError as error:
                raise ModelUnavailable(
                    f"{self.name} needs any-llm-sdk, which is not installed: {INSTALL}"
                ) from error
            self._clients = {each: kept for each, kept in self._clients.items() if not each.is_closed()}
            client = self._clients[loop] = self._create(library)
        return client

    def _create(self, library: Any) -> Any:
        key = self._endpoint.key() or None
        base = self._settings.base_url or None
        try:
            provider = library.AnyLLM.get_provider_class(self._provider)
            # Trying again is decided in one place, and that is not the vendor's library.
            once = {} if provider.MAX_RETRIES_SUPPORT == "unsupported" else {"max_retries": 0}
            return library.AnyLLM.create(
                self._provider, api_key=key, api_base=base, unified_exceptions=True, **once
            )
        except ImportError as error:
            raise ModelUnavailable(
                f"{self.name} needs more packages: pip install 'any-llm-sdk[{self._provider}]'"
            ) from error

    def _usage(self, counts: dict[str, Any]) -> dict[str, Any]:
        found = usage(counts)
        prices = self._settings.prices.get(self._model)
        if prices is not None and "cost" not in found:
            found["cost"] = cost(found, prices)
        return found

    def _failure(self, error: Exception) -> ModelError:
        """What the library's error means; its classes are known by name, to need no import."""
        kind = type(error).__name__
        said = " ".join(self._endpoint.redact(str(error)).split())[:300]
        says = f": {said}" if said else ""
        if isinstance(error, TimeoutError):
            return ModelFailed(
                f"{self.name} said nothing for {self._settings.timeout:g} s", transient=True
            )
        if kind == "UnsupportedProviderError":
            known = [f"any:{each}" for each in getattr(error, "supported_providers", ())]
            return UnknownModel(f"any:{self._provider}", known)
        if kind == "MissingApiKeyError":
            return ModelUnavailable(f"{self.name} needs a key{says}")
        if kind == "ModelNotFoundError":
            return UnknownModel(self.name, [], f"; its provider does not have it{says}")
        if kind == "ContextLengthExceededError":
            return ContextOverflow(f"the conversation is too long for {self.name}{says}")
        if kind == "AuthenticationError":
            return ModelFailed(f"{self.name}: the key was refused; check it{says}")
        status = getattr(error, "status_code", None)
        # Without a status there was no answer: the connection failed, or the provider broke.
        broke = status is None and kind in _BROKE
        after = retry_after({"retry-after": str(getattr(error, "retry_after", None) or "")})
        transient = kind == "RateLimitError" or status in _TRANSIENT or broke
        return ModelFailed(f"{self.name} failed{says}", transient=transient, retry_after=after)


def flatten(chunk: dict[str, Any]) -> str:
    """Write the library's reasoning as text, as endpoints do; give its signature, if there is one."""
    choices: Any = chunk.get("choices")
    delta: Any = choices and choices[0].get("delta")
    if not delta:
        return ""
    reasoning: Any = delta.get("reasoning")
    if reasoning and not isinstance(reasoning, str):
        delta["reasoning"] = reasoning.get("content") or ""
    extra: Any = delta.get("extra_content")
    about: Any = extra and extra.get(ANTHROPIC)
    return str(about.get("signature") or "") if about else ""


def remind(asked: list[Message], said: list[Message]) -> None:
    """Return the model's reasoning of this turn to it: it must see it before its tool calls."""
    ours = [message for message in said if message.get("role") in ("user", "assistant")]
    theirs = [message for message in asked if message["role"] == "assistant"]
    while ours and theirs and ours[-1]["role"] == "assistant":
        message, written = ours.pop(), theirs.pop()
        signature: Any = message.get("reasoning_signature")
        if signature and not signature.startswith("{"):  # a layout of ours is for our own clients
            written["reasoning"] = message.get("reasoning", "")
            written["extra_content"] = {ANTHROPIC: {"signature": signature}}


def mark_cached(asked: dict[str, Any]) -> None:
    """Have the provider keep what the next request will begin with: all of this one."""
    for message in asked["messages"]:
        if message["role"] == "system":  # it stays when the conversation is rebuilt from an anchor
            kept = {"type": "text", "text": message["content"], "cache_control": EPHEMERAL}
            message["content"] = [kept]
    asked["cache_control"] = EPHEMERAL  # at the top it stands for the last block of the request


async def _close(thing: object) -> None:
    """Close a stream or client of some vendor's library, however it spells that."""
    close = getattr(thing, "aclose", None) or getattr(thing, "close", None)
    if close is None:
        return
    try:
        closing = close()
        if inspect.isawaitable(closing):
            await closing
    except Exception:
        # It is given up anyway, and the answer or error before it matters more.
        pass
