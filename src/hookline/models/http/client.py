"""A model behind an HTTP service, streamed without a vendor's library.

Bytes are handed from the socket to `json.loads` and from there to stream events; nothing else is made
for a chunk. Each protocol has a subclass that writes its requests and reads its chunks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

from hookline.errors import BadResponse, BadSetting, ModelError, UnknownModel
from hookline.text.foreign_json import check_depth, parse_json
from hookline.types import StreamEvent

from ..capabilities import Capabilities
from ..model import ModelRequest
from ..output import NativeOutput
from ..prices import cost
from .connections import Connections, http, proxy_of
from .failures import CONNECT, Failures
from .reach import LARGEST, model_names
from .reply import StreamedReply, ToolNames
from .settings import Endpoint
from .sse import EventReader

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientTimeout

_decode = json.JSONDecoder().raw_decode  # quicker than `json.loads` for a short text

LARGEST_ANSWER = 256 * 1024 * 1024
"""Bytes of a stream: more is a fault of the service, not an answer."""
LIST_SECONDS = 5.0
"""How long the list of models may take, which is shown with the error about an unknown one."""
_ERROR_SIZE = 64 * 1024
_DRAIN = 0.2
_HEADERS = {
    "Accept": "text/event-stream",
    # Compressed, words would come in bursts; a compressed response is decoded all the same.
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "hookline",
}


class HttpModel:
    """Asks one model of one endpoint. Connections are kept for the next request until `close`."""

    offer = ""
    """What the endpoint is asked for, in error messages."""
    capabilities: ClassVar[Capabilities]

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        name: str = "",
        connections: Connections | None = None,
    ) -> None:
        self.name = name or f"{endpoint.service.name}:{model}"
        self.context_window = endpoint.settings.context_window
        self.native_output: NativeOutput = endpoint.service.output
        self._model = model
        self._endpoint = endpoint
        self._connections = connections or Connections()
        self._failures = Failures(endpoint, self.name, model, self.offer)
        self._url = endpoint.url(model)
        self._proxy = proxy_of(self._url)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._endpoint.base_url!r})"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Answer piece by piece. Closing the stream closes its connection, which stops the model."""
        payload, names = self._payload(request)
        reply = self._reply(names)
        reader = EventReader()
        response = await self._post(payload)
        try:
            content = response.content
            done, size = False, 0
            while not done:
                data = await content.readany()
                size += len(data)
                if size > LARGEST_ANSWER:
                    raise BadResponse(f"more than {LARGEST_ANSWER} bytes")
                for payload in reader.feed(data) if data else reader.end():
                    if payload == b"[DONE]":
                        done = True
                        break
                    chunk = self._chunk(payload)
                    for event in reply.take(chunk):
                        yield event
                    if reply.done:
                        done = True
                        break
                if not data:
                    break
            self._check_end(reply, done)
            for event in reply.end():
                yield event
            if reply.counts:
                yield StreamEvent("usage", self._usage(reply.usage))
            if done:
                await _drain(response)
            yield StreamEvent("final", {"finish_reason": reply.finish_reason})
        except BadResponse as error:
            raise self._failures.broken(f"sent {error}: does it offer {self.offer}?") from error
        except ModelError:
            raise
        except Exception as error:
            raise self._failures.interrupted(error) from None
        finally:
            # Read to its end, the connection is kept; otherwise this closes it.
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    @cached_property
    def _timeout(self) -> ClientTimeout:
        silence = self._endpoint.settings.timeout
        return http().ClientTimeout(total=None, sock_connect=CONNECT, sock_read=silence)

    async def close(self) -> None:
        """Close the connections that no other model uses. Used again, it connects again."""
        await self._connections.leave(self)

    async def _post(self, payload: bytes) -> ClientResponse:
        """Send the request; give the response when it is a stream of events."""
        endpoint = self._endpoint
        headers = {**_HEADERS, **self._authorization(endpoint.key()), **endpoint.settings.headers}
        session = await self._connections.session(endpoint.base_url, self)
        try:
            response: ClientResponse | ModelError = await session.post(
                self._url,
                data=payload,
                headers=headers,
                proxy=self._proxy,
                # A redirect would take the key to another place.
                allow_redirects=False,
                timeout=self._timeout,
            )
        except Exception as error:
            response = self._failures.not_sent(error)
        if isinstance(response, ModelError):
            # Raised out here, it has no trace of the library's error, which shows the headers.
            raise response
        if response.status == 200 and response.content_type in ("text/event-stream", _NO_TYPE):
            return response
        try:
            failure = self._failure(response, await _beginning(response))
        finally:
            response.close()
        if isinstance(failure, UnknownModel) and (known := await self._known(headers)):
            failure = self._failures.unknown(known)
        raise failure

    async def _known(self, headers: dict[str, str]) -> list[str]:
        """The models that the service lists; none if it does not say."""
        endpoint = self._endpoint
        session = await self._connections.session(endpoint.base_url, self)
        try:
            async with (
                asyncio.timeout(LIST_SECONDS),
                session.get(
                    endpoint.base_url + endpoint.service.models,
                    headers={**headers, "Accept": "application/json"},
                    proxy=self._proxy,
                    allow_redirects=False,
                    timeout=self._timeout,
                ) as response,
            ):
                found = bytearray()
                while len(found) < LARGEST and (data := await response.content.readany()):
                    found += data
                return model_names(bytes(found)) if response.status == 200 else []
        except Exception:
            return []  # the names only help; the error is that there is no such model

    def _payload(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        try:
            return self._write(request)
        except BadSetting:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise BadSetting(
                f"the request to {self.name} cannot be written as JSON: {error}"
            ) from error

    def _authorization(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _write(self, request: ModelRequest) -> tuple[bytes, ToolNames]:
        raise NotImplementedError

    def _reply(self, names: ToolNames) -> StreamedReply:
        raise NotImplementedError

    def _chunk(self, payload: bytes) -> dict[str, Any]:
        try:
            text = payload.decode()
            chunk, end = _decode(text)
            if end != len(text):
                raise BadResponse("an event that is no JSON")
            check_depth(text, chunk)
            if b"\\ud" in payload or b"\\uD" in payload:
                chunk = parse_json(_paired(chunk))
        except (ValueError, RecursionError):
            raise BadResponse("an event that is no JSON") from None
        if not isinstance(chunk, dict):
            raise BadResponse("an event that is no object")
        table = cast("dict[str, Any]", chunk)
        if error := table.get("error"):
            raise self._failures.told(error)
        return table

    def _check_end(self, reply: StreamedReply, done: bool) -> None:
        if reply.error is not None:
            raise self._failures.told(reply.error)
        if reply.failure:
            raise self._failures.broken(reply.failure, transient=reply.transient)
        if reply.reason == "error":
            raise self._failures.broken("broke off its answer", transient=True)
        if not reply.reason and not done:
            raise self._failures.broken("was cut off in the middle of its answer", transient=True)
        if not reply.reason and not reply.spoken:
            raise self._failures.broken("ended without an answer", transient=True)

    def _usage(self, found: dict[str, Any]) -> dict[str, Any]:
        prices = self._endpoint.settings.prices.get(self._model)
        if prices is not None and "cost" not in found:
            found["cost"] = cost(found, prices)
        return found

    def _failure(self, response: ClientResponse, beginning: bytes) -> ModelError:
        if response.status != 200:
            return self._failures.refused(response.status, response.headers, beginning)
        if error := _error_in(beginning):
            return self._failures.told(error)
        return self._failures.broken(
            f"answered with {response.content_type} instead of a stream of events; check base_url"
        )


_NO_TYPE = "application/octet-stream"
"""The content type that the HTTP library assumes if a server sends none."""


async def _beginning(response: ClientResponse) -> bytes:
    """The start of a body that is no stream; what cannot be read is left out."""
    found = bytearray()
    try:
        async with asyncio.timeout(10):
            while len(found) < _ERROR_SIZE and (data := await response.content.readany()):
                found += data
    except Exception:
        pass
    return bytes(found[:_ERROR_SIZE])


async def _drain(response: ClientResponse) -> None:
    """Read to the end, so that the connection can be used again; not for long."""
    if response.content.at_eof():
        return
    try:
        async with asyncio.timeout(_DRAIN):
            await response.content.readany()
    except Exception:
        pass


def _error_in(beginning: bytes) -> object:
    try:
        found = parse_json(beginning)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", found).get("error") if isinstance(found, dict) else None


def _paired(chunk: object) -> str:
    """The chunk as JSON without halves of surrogate pairs, which no file or database takes."""
    text = json.dumps(chunk, ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
