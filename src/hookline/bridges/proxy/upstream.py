"""`Upstream`: the provider that the requests of one format go to."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hookline.errors import BadResponse, BadSetting, ModelError, ModelUnavailable, ProviderRefused
from hookline.models.http.client import LARGEST_ANSWER
from hookline.models.http.connections import Connections, http, proxy_of
from hookline.models.http.failures import CONNECT, Failures
from hookline.models.http.providers import service
from hookline.models.http.services import SERVICES
from hookline.models.http.settings import Endpoint, Settings

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from hookline.config import Config

    from .wire import WireFormat

_PASSED = (
    "retry-after",
    "x-request-id",
    "request-id",
    "x-ratelimit-",
    "anthropic-ratelimit-",
    "x-should-retry",
)
"""How the headers of a provider begin that the client gets."""


class Provider:
    """A provider as it is configured."""

    def __init__(self, form: WireFormat, name: str, config: Config) -> None:
        if name not in SERVICES:
            known = ", ".join(sorted(each for each, facts in SERVICES.items() if speaks(facts, form)))
            raise BadSetting(f"proxy.{form.name} names no provider: {name!r}; choose one of {known}")
        if not speaks(SERVICES[name], form):
            raise BadSetting(f"proxy.{form.name} = {name!r}: that provider speaks another format")
        settings = Settings.read(config.expanded("providers").get(name, {}), name)
        self.form = form
        self.endpoint = Endpoint.of(service(name), settings)
        self.connections = Connections()

    async def close(self) -> None:
        """Close the connections."""
        await self.connections.leave(self)


class Upstream:
    """A provider, for one request of a client."""

    def __init__(self, provider: Provider, headers: Mapping[str, str], query: str, key: str) -> None:
        self._provider = provider
        self._headers, self._query, self._key = headers, query, key

    @asynccontextmanager
    async def post(self, body: bytes, *, stream: bool) -> AsyncGenerator[ClientResponse]:
        """Send a request. Raises `ProviderRefused` if the answer is an error."""
        provider = self._provider
        url = provider.endpoint.url() + (f"?{self._query}" if self._query else "")
        async with self._sent("POST", url, body, stream=stream) as response:
            yield response

    async def models(self) -> bytes:
        """The list of models, as the provider gives it."""
        endpoint = self._provider.endpoint
        async with self._sent("GET", endpoint.base_url + endpoint.service.models) as response:
            return await self.whole(response)

    @asynccontextmanager
    async def _sent(
        self, method: str, url: str, body: bytes | None = None, *, stream: bool = False
    ) -> AsyncGenerator[ClientResponse]:
        provider, endpoint = self._provider, self._provider.endpoint
        key = self._key or endpoint.key()
        headers = {
            "Accept": "text/event-stream" if stream else "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "hookline",
            **({"Content-Type": "application/json"} if body is not None else {}),
            **provider.form.key_headers(key, self._headers),
            **endpoint.settings.headers,
        }
        session = await provider.connections.session(endpoint.base_url, provider)
        timeout = http().ClientTimeout(
            total=None, sock_connect=CONNECT, sock_read=endpoint.settings.timeout
        )
        response: ClientResponse | ModelError
        try:
            response = await session.request(
                method,
                url,
                data=body,
                headers=headers,
                proxy=proxy_of(url),
                allow_redirects=False,  # a redirect would take the key to another place
                timeout=timeout,
            )
        except Exception as error:
            response = Failures(endpoint, endpoint.service.name, "", "").not_sent(error)
        if isinstance(response, ModelError):
            raise response  # out here it has no trace of the library's error, which shows the headers
        try:
            if response.status != 200:
                raise await self._refused(response)
            yield response
        finally:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    async def _refused(self, response: ClientResponse) -> ProviderRefused:
        text = self._provider.endpoint.redact((await self.whole(response)).decode(errors="replace"))
        if self._key:
            text = text.replace(self._key, "***")
        headers = self.passed_headers(response) | {"Content-Type": response.content_type}
        status = response.status
        if status in (401, 403) and not self._key:  # the client's key is not the one that is wrong
            message = f"the provider does not accept the key that the proxy has for it ({status})"
            raise ModelUnavailable(message)
        return ProviderRefused(status if status >= 400 else 502, text.encode(), headers)

    def passed_headers(self, response: ClientResponse) -> dict[str, str]:
        """The headers of an answer that the client gets."""
        return {
            name: value for name, value in response.headers.items() if name.lower().startswith(_PASSED)
        }

    async def chunks(self, response: ClientResponse) -> AsyncGenerator[bytes]:
        """The bytes of a stream as they come."""
        if response.content_type != "text/event-stream":
            raise BadResponse(f"{response.content_type} in place of a stream of events")
        size = 0
        try:
            while data := await response.content.readany():
                size += len(data)
                if size > LARGEST_ANSWER:
                    raise BadResponse(f"more than {LARGEST_ANSWER} bytes")
                yield data
        except (OSError, http().ClientError) as error:
            raise BadResponse(f"an answer that was cut off ({type(error).__name__})") from None

    async def whole(self, response: ClientResponse) -> bytes:
        """A body that comes at once."""
        found = bytearray()
        try:
            while data := await response.content.readany():
                found += data
                if len(found) > LARGEST_ANSWER:
                    raise BadResponse(f"more than {LARGEST_ANSWER} bytes")
        except (OSError, http().ClientError) as error:
            raise BadResponse(f"an answer that was cut off ({type(error).__name__})") from None
        return bytes(found)


def speaks(facts: Mapping[str, object], form: WireFormat) -> bool:
    """Whether a provider speaks a format."""
    return facts.get("api", "chat") == form.api
