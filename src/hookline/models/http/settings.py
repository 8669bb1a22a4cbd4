"""The address of a service, and how to talk to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, cast
from urllib.parse import quote, urlsplit

from hookline.errors import BadSetting, ModelUnavailable
from hookline.hooks.errors import suggestion

from ..prices import check_prices

RESERVED = ("model", "messages", "stream", "tools")
"""Fields that the request sets and no option may override."""


@dataclass(frozen=True, slots=True)
class HttpService:
    """A provider that is known by name.

    `api` is the protocol that it speaks: chat, responses, messages or gemini. `models` is the path that
    lists its models. `url_env` is the environment variable that names another address, `key_envs` are
    those that can hold its key: the first one that is set counts. `family` is how the names of its
    models begin. `effort` is whether it takes a `reasoning_effort`; `no_effort` is its word for none,
    if it has one. `longest` is its name for `max_tokens`. `thoughts` is whether it wants its reasoning
    back. `output` is whether it holds answers to a JSON Schema.
    """

    name: str
    api: str = "chat"
    base_url: str = ""
    path: str = "/chat/completions"
    models: str = "/models"
    url_env: str = ""
    key_envs: tuple[str, ...] = ()
    needs_key: bool = False
    summary: str = ""
    effort: bool = False
    no_effort: str = ""
    longest: str = "max_tokens"
    cache_key: bool = False
    thoughts: bool = False
    output: bool = False
    family: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one provider.

    `options` go with every request, unless the request says otherwise; None leaves one out.
    `timeout` is how many seconds of silence are waited through. `prices` are as `prices.py` says.
    What may be secret is not shown.
    """

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    api_key_env: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeout: float = 300.0
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, dict[str, float]])
    context_window: int | None = None

    @classmethod
    def read(cls, values: Mapping[str, Any], provider: str) -> Settings:
        """The settings from a table, or an error that names the wrong one and shows no secret."""
        names = [each.name for each in fields(cls)]
        for name in values:
            if name not in names:
                raise BadSetting(f"unknown setting {name!r} of {provider}{suggestion(name, names)}")
        for name in ("base_url", "api_key", "api_key_env"):
            if not isinstance(values.get(name, ""), str):
                raise BadSetting(f"{name!r} of {provider} must be text")
        timeout = values.get("timeout", 300.0)
        if type(timeout) not in (int, float) or not isfinite(timeout) or timeout <= 0:
            raise BadSetting(f"'timeout' of {provider} must be seconds above 0, got {timeout!r}")
        window = values.get("context_window")
        if window is not None and (type(window) is not int or window < 1):
            raise BadSetting(
                f"'context_window' of {provider} must be a whole number above 0, got {window!r}"
            )
        return cls(
            base_url=values.get("base_url", ""),
            api_key=values.get("api_key", ""),
            api_key_env=values.get("api_key_env", ""),
            headers=_headers(values.get("headers", {}), provider),
            options=_options(values.get("options", {}), provider),
            timeout=float(timeout),
            prices=check_prices(values.get("prices", {}), provider),
            context_window=window,
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service as it is set up: everything but the model."""

    service: HttpService
    settings: Settings
    base_url: str
    """Where the service is, as shown in messages."""

    @classmethod
    def of(cls, service: HttpService, settings: Settings) -> Endpoint:
        """The endpoint, or an error when its address is none."""
        named = os.environ.get(service.url_env, "") if service.url_env else ""
        base = settings.base_url or named or service.base_url
        if not base:
            raise BadSetting(
                f"{service.name} needs a base URL: name the model {service.name}:URL#MODEL, "
                f"or set base_url in the settings of {service.name}"
            )
        return cls(service, settings, check_url(base, service))

    def url(self, model: str = "") -> str:
        """The address of requests to a model."""
        return self.base_url + self.service.path.replace("{model}", quote(model, safe=""))

    @property
    def key_source(self) -> str:
        """Where the key comes from, in words."""
        if self.settings.api_key:
            return f"api_key in the settings of {self.service.name}"
        return next((each for each in self.variables if os.environ.get(each, "").strip()), "")

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that can hold the key."""
        return (self.settings.api_key_env,) if self.settings.api_key_env else self.service.key_envs

    def key(self) -> str:
        """The key, looked up each time; nothing if none is set and none is needed."""
        key = (self.settings.api_key or os.environ.get(self.key_source, "")).strip()
        if not key:
            # Another address under a known name is often a server of one's own, without keys.
            if self.settings.api_key_env or (self.service.needs_key and not self.settings.base_url):
                raise ModelUnavailable(
                    f"{self.service.name} needs a key: set {' or '.join(self.variables)}, "
                    f"or api_key in the settings of {self.service.name}"
                )
            return ""
        if not (key.isascii() and key.isprintable()):
            raise BadSetting(f"the key in {self.key_source} has characters that no key has")
        return key

    def redact(self, text: str) -> str:
        """The text without the secrets of the settings, should a server repeat them."""
        secrets = [self.settings.api_key.strip(), *self.settings.headers.values()]
        secrets += [os.environ.get(each, "").strip() for each in self.variables]
        # A short value, such as a version in a header, is no secret and may be part of any word.
        for secret in sorted((s for s in secrets if len(s) >= 6), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def check_url(url: str, service: HttpService) -> str:
    """A base URL without its final slash, or an error that says what is wrong."""
    where = f"the base URL of {service.name}"
    example = service.base_url or "https://example.org/v1"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadSetting(f"{where} is invalid: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise BadSetting(f"{where} has a user or password in it: set api_key or headers instead")
    if parts.query or parts.fragment:
        raise BadSetting(
            f"{where} has a query or fragment: it ends before {service.path}, such as {example}"
        )
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise BadSetting(f"{where} is invalid: {url!r} is not of the form {example}")
    url = url.rstrip("/").removesuffix(service.path)
    version = service.path.split("/")[1]
    return url.removesuffix(f"/{version}") if version.startswith("v1") else url


def _headers(values: object, provider: str) -> dict[str, str]:
    if not isinstance(values, Mapping):
        raise BadSetting(f"'headers' of {provider} must be a table of texts")
    found: dict[str, str] = {}
    for name, value in cast("Mapping[object, object]", values).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise BadSetting(f"'headers' of {provider} must be a table of texts")
        if not name.isascii() or not name.isprintable() or any(each in name for each in " :"):
            raise BadSetting(f"a header of {provider} has an invalid name: {name!r}")
        if not value.isprintable():
            raise BadSetting(f"the header {name!r} of {provider} has a line break in its value")
        found[name] = value
    return found


def _options(values: object, provider: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise BadSetting(f"'options' of {provider} must be a table, got {values!r}")
    options = dict(cast("Mapping[str, Any]", values))
    for name in RESERVED:
        if name in options:
            raise BadSetting(f"{name!r} cannot be an option of {provider}: each request sets it")
    return options
