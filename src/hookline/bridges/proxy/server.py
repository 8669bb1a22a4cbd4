"""The HTTP server of the proxy, on this machine."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from hmac import compare_digest
from pathlib import Path
from typing import Final

from aiohttp import web

from hookline.bridges.hosts.home import HomeBridge
from hookline.errors import BadProxyRequest, BadResponse, ConfigError, ModelError, ProviderRefused
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.system.log_redaction import without_secrets

from .chat import ChatCompletions
from .client import ProxyClient
from .conversation import Conversations
from .exchange import Exchange
from .settings import ProxySettings
from .upstream import Provider, Upstream
from .wire import WireFormat

HOST: Final = "127.0.0.1"
TOKEN: Final = "X-Hookline-Token"
WRONG = "the token is missing or wrong; `hookline proxy --print-token` shows it"
log = logging.getLogger("hookline.bridges.proxy")


def formats() -> list[WireFormat]:
    """The formats that are served."""
    return [ChatCompletions()]


class ProxyServer:
    """Serves the formats; each request goes through the hooks of the home."""

    def __init__(
        self, home: Path, workspace: Path, token: str, settings: ProxySettings | None = None
    ) -> None:
        self._bridge = HomeBridge("proxy", home=home, workspace=workspace)
        self._token = token
        self._settings = settings
        self._providers: dict[str, Provider] = {}
        self._conversations: Conversations

    @asynccontextmanager
    async def running(self, port: int | None = None) -> AsyncGenerator[str]:
        """Serve; gives the address."""
        app = await self._bridge.opened()
        settings = self._settings = self._settings or app.config.settings("proxy", ProxySettings)
        self._conversations = Conversations(self._bridge, settings.conversations)
        served = web.Application(client_max_size=settings.max_body)
        for form in formats():
            self._providers[form.name] = Provider(form, getattr(settings, form.name), app.config)
            for path in form.paths:
                served.router.add_post(path, self._answering(form))
        served.router.add_get("/v1/models", self._models)
        served.router.add_get("/v1/models/{model:.+}", self._models)
        served.router.add_route("*", "/{path:.*}", self._unknown)
        runner = web.AppRunner(served, handler_cancellation=True, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, HOST, settings.port if port is None else port)
            try:
                await site.start()
            except OSError as error:
                raise ConfigError(
                    f"the proxy cannot listen on port {settings.port if port is None else port}: "
                    f"{error.strerror}; choose another with --port"
                ) from None
            yield f"http://{HOST}:{runner.addresses[0][1]}"
        finally:
            await self._conversations.close()
            await runner.cleanup()
            for provider in self._providers.values():
                await provider.close()
            await self._bridge.close()

    def _answering(self, form: WireFormat) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(http: web.Request) -> web.StreamResponse:
            try:
                key = self._admit(http, form)
                request = form.read(await self._body(http))
            except BadProxyRequest as error:
                return failed(form, error)
            assert self._settings is not None
            upstream = Upstream(self._providers[form.name], http.headers, http.query_string, key)
            client = ProxyClient(http, form, request.stream, self._settings.keep_alive)
            exchange = Exchange(form, request, upstream, client, self._settings.rounds)
            try:
                async with client.kept_alive():
                    await exchange.run(self._conversations)
                return client.response
            except ProviderRefused as error:
                return await client.fail(error.status, error.body, error.headers, provider_text(error))
            except ConnectionError:
                raise  # the client is gone
            except Exception as error:
                status = 502 if isinstance(error, ModelError) else 500
                told = str(error) if isinstance(error, HooklineError) else error_text(error)
                if isinstance(error, BadResponse):
                    told = f"the provider sent {told}"
                told = without_secrets(told)
                log.warning("proxy.failed session=%s: %s", client.session, told)
                body = json.dumps(form.error(status, told)).encode()
                return await client.fail(status, body, {"Content-Type": "application/json"}, told)

        return answer

    async def _body(self, http: web.Request) -> bytes:
        try:
            return await http.read()
        except web.HTTPRequestEntityTooLarge:
            assert self._settings is not None
            most = f"{self._settings.max_body:,}"
            raise BadProxyRequest(
                f"the request has more than {most} bytes; see max_body in [proxy]", status=413
            ) from None

    def _admit(self, http: web.Request, form: WireFormat) -> str:
        """Check the token; return the client's own key if that goes to the provider."""
        assert self._settings is not None
        given = form.token(http.headers)
        key = given if self._settings.forward_keys else ""
        token = http.headers.get(TOKEN, "") if self._settings.forward_keys else given
        if not compare_digest(token.encode(), self._token.encode()):
            raise BadProxyRequest(WRONG, status=401, code="invalid_api_key")
        if http.headers.get("Origin"):
            raise BadProxyRequest("pages of a browser may not use the proxy", status=403)
        return key

    async def _models(self, http: web.Request) -> web.StreamResponse:
        """The list of models, or one of them."""
        form = formats()[0]
        try:
            key = self._admit(http, form)
            body = await Upstream(self._providers[form.name], http.headers, "", key).models()
            named = http.match_info.get("model")
            if named is None:
                return web.Response(body=body, content_type="application/json")
            for each in json.loads(body)["data"]:
                if each["id"] == named:
                    return web.json_response(each)
            raise BadProxyRequest(
                f"the model {named!r} does not exist", status=404, code="model_not_found"
            )
        except BadProxyRequest as error:
            return failed(form, error)
        except ProviderRefused as error:
            return web.Response(status=error.status, body=error.body, headers=error.headers)
        except (ModelError, ValueError, KeyError, TypeError) as error:
            return failed(form, BadProxyRequest(f"no list of models: {error}", status=502))

    async def _unknown(self, http: web.Request) -> web.StreamResponse:
        served = ", ".join(form.paths[0] for form in formats())
        error = BadProxyRequest(f"the proxy does not serve {http.path}; it serves {served}", status=404)
        return failed(formats()[0], error)


def failed(form: WireFormat, error: BadProxyRequest) -> web.Response:
    """An error as the format has it."""
    return web.json_response(form.error(error.status, str(error), error.code), status=error.status)


def provider_text(error: ProviderRefused) -> str:
    """What the provider said, for the middle of a stream."""
    try:
        return str(json.loads(error.body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return str(error)
