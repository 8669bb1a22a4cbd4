"""Explains failures of an endpoint in one line that names the provider, its address and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, cast

from hookline.errors import (
    BadSetting,
    ContextOverflow,
    ModelError,
    ModelFailed,
    ModelUnavailable,
    UnknownModel,
)
from hookline.text.foreign_json import parse_json

from .connections import http
from .settings import Endpoint

CONNECT = 15.0
"""How many seconds a connection may take."""

_LONGEST = 300

_OVERFLOW = re.compile(
    r"context[_ ](length|window|size)|maximum context|exceeds? the (available |model's )?context"
    r"|prompt is too long|input is too long|too many (input )?tokens|reduce the length"
    r"|exceeds the maximum number of (input )?tokens",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]found|not_found_error model|not a valid model|unknown model|models?\b.{0,200}?"
    r"(does not exist|not found|not exist|not supported|is not available)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_NO_KEY = re.compile(r"API_KEY_INVALID|API key (not valid|expired)", re.IGNORECASE)
_WINDOW = re.compile(
    r"(?:(?:maximum )?context (?:length|window|size)[^\d]{0,40}|tokens allowed \(|tokens > )(\d+)",
    re.IGNORECASE,
)
_NEEDED = re.compile(
    r"(?:(?:resulted in|requested|however[^\d]{0,60}?|too long:) (\d+) tokens)|token count \((\d+)\)",
    re.IGNORECASE,
)
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d+)?)s")

_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402,
    "permission_error": 403, "not_found_error": 404, "request_too_large": 413,
    "rate_limit_error": 429, "rate_limit_exceeded": 429, "api_error": 500, "server_error": 500,
    "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip
"""The status that an error of this type or code inside a stream would have."""
# A retry of these can succeed; among the 5xx, "not implemented" never does.
_TRANSIENT = {408, 409, 425, 429}
_LASTING = {501, 505}


class Failures:
    """Creates the errors of one model; `offer` is the request to its endpoint."""

    __slots__ = ("_endpoint", "_model", "_name", "_offer", "_where")

    def __init__(
        self, endpoint: Endpoint, name: str, model: str, offer: str = "chat completions"
    ) -> None:
        self._offer = offer
        self._endpoint = endpoint
        self._name = name
        self._model = model
        self._where = f"{endpoint.service.name} at {endpoint.base_url}"

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """An answer with a status that is not 200."""
        details = _details(body)
        after = retry_after(headers)
        return self._judge(status, details, _asked_delay(details) if after is None else after)

    def unknown(self, known: list[str]) -> UnknownModel:
        """The service does not have the model; `known` are those that it has."""
        service = self._endpoint.service.name
        near = get_close_matches(self._model, known, n=3, cutoff=0.5)
        names = " or ".join(repr(f"{service}:{name}") for name in near)
        return UnknownModel(
            self._name, [], f"; {self._where} does not have it{names and f'; did you mean {names}?'}"
        )

    def told(self, error: object) -> ModelError:
        """An error that came inside a stream, or under the status 200."""
        details = _details_of(error)
        code = details.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 0
        status = status or _STATUS.get(str(details.get("type")), 0) or _STATUS.get(str(code), 0)
        return self._judge(status, details, _asked_delay(details))

    def unreachable(self, why: str) -> ModelUnavailable:
        """Nothing answers there."""
        service = self._endpoint.service
        advice = (
            "is the server running, and base_url right?"
            if not service.needs_key
            else "check the network, and base_url if it is set"
        )
        return ModelUnavailable(f"{self._where} cannot be reached ({why}): {advice}")

    def broken(self, what: str, *, transient: bool = False) -> ModelFailed:
        """The endpoint misbehaved: `what` follows its name."""
        return ModelFailed(self._clean(f"{self._where} {what}"), transient=transient)

    def not_sent(self, error: Exception) -> ModelError:
        """Why there was no response."""
        aiohttp = http()
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return self.unreachable("its name cannot be resolved")
        if isinstance(error, aiohttp.ClientSSLError | aiohttp.ServerFingerprintMismatch):
            return self.unreachable("its certificate or TLS is not accepted")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return self.unreachable("the proxy refused")
        if isinstance(error, aiohttp.ClientConnectorError):
            return self.unreachable(_reason(error))
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return self.unreachable(f"no connection within {CONNECT:g} s")
        if isinstance(error, aiohttp.InvalidURL):
            return BadSetting(f"the base URL of {self._endpoint.service.name} is invalid")
        return self.interrupted(error)

    def interrupted(self, error: Exception) -> ModelError:
        """Why a connection that stood did not last."""
        aiohttp = http()
        if isinstance(error, TimeoutError):
            silence = self._endpoint.settings.timeout
            return self.broken(f"said nothing for {silence:g} s", transient=True)
        if isinstance(error, aiohttp.ClientResponseError):
            return self.broken("does not speak HTTP as it should; check base_url")
        if isinstance(error, aiohttp.ClientPayloadError):
            return self.broken("was cut off in the middle of its answer", transient=True)
        if isinstance(error, aiohttp.ClientConnectionError | OSError):
            return self.broken("closed the connection", transient=True)
        return self.broken(f"failed: {type(error).__name__}")

    def _judge(self, status: int, details: dict[str, Any], after: float | None) -> ModelError:
        said = self._clean(str(details.get("message", "")))
        known = f"{details.get('code', '')} {details.get('type', '')} {details.get('message', '')}"
        says = f": {said}" if said else ""
        if status in (401, 403) or (status == 400 and _NO_KEY.search(known)):
            return ModelFailed(f"{self._where} refused the {self._credentials()} ({status}){says}")
        if status == 413 or (status in (0, 400, 422, 500) and _OVERFLOW.search(known)):
            needed, window = _numbers(details, known)
            return ContextOverflow(
                f"{self._where}: the conversation is too long for {self._model!r}{says}",
                needed=needed,
                window=window,
            )
        if status in (0, 400, 404) and _NO_MODEL.search(known):
            return UnknownModel(self._name, [], f"; {self._where} does not have it{says}")
        if status == 404:
            return ModelFailed(
                f"{self._where} has no {self._offer} (404){says}; check base_url"
                f"{', which mostly ends in /v1' if 'v1' not in self._endpoint.service.path else ''}"
            )
        # Google says "quota" of a limit per minute too, and then how long to wait.
        if status == 402 or (status == 429 and after is None and _QUOTA.search(known)):
            return ModelFailed(f"{self._where} requires payment ({status}){says}; check the account")
        if status == 429:
            return self._failed(f"limits the rate of requests (429){says}", after)
        if 300 <= status < 400:
            return ModelFailed(
                f"{self._where} has moved ({status}){says}; set base_url to its new place"
            )
        transient = status in _TRANSIENT or (status >= 500 and status not in _LASTING)
        if transient:
            return self._failed(f"failed ({status}){says}", after)
        return ModelFailed(f"{self._where} refused the request ({status or 'in its answer'}){says}")

    def _failed(self, what: str, after: float | None) -> ModelFailed:
        return ModelFailed(f"{self._where} {what}", transient=True, retry_after=after)

    def _credentials(self) -> str:
        try:
            key = self._endpoint.key()
        except ModelError:
            key = ""
        if key:
            return f"key in {self._endpoint.key_source}; check it"
        places = [
            *self._endpoint.variables,
            f"api_key in the settings of {self._endpoint.service.name}",
        ]
        return f"request, which had no key; set {' or '.join(places)}"

    def _clean(self, text: str) -> str:
        """One line of bounded length, without secrets."""
        text = " ".join(self._endpoint.redact(text).split())
        text = "".join(each if each.isprintable() else "?" for each in text)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _reason(error: Any) -> str:
    """Why a connection could not be made, without the addresses that were tried."""
    return error.os_error.strerror or "no connection"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds to wait, from a number of (milli)seconds or a date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            seconds = _until(value)
        if seconds is not None and isfinite(seconds):
            return max(seconds, 0.0)
    return None


def _asked_delay(details: Mapping[str, Any]) -> float | None:
    """How many seconds Google asks to wait: among the details of its error, as `"34.5s"`."""
    listed = details.get("details")
    for each in cast("list[Any]", listed) if isinstance(listed, list) else ():
        delay = cast("dict[str, Any]", each).get("retryDelay") if isinstance(each, dict) else None
        if isinstance(delay, str) and (match := _SECONDS.fullmatch(delay)):
            return float(match[1])
    return None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()


def _details(body: bytes) -> dict[str, Any]:
    """The `code`, `type` and `message` of an error's body, whatever form that has."""
    text = body.decode(errors="replace")
    try:
        found = parse_json(text)
    except (ValueError, RecursionError):
        # A proxy's HTML page is not worth a screen of markup.
        return {} if text.lstrip().startswith("<") else {"message": text}
    if isinstance(found, list) and found:
        found = cast("list[Any]", found)[0]
    if isinstance(found, dict):
        table = cast("dict[str, Any]", found)
        return _details_of(table.get("error", table))
    return {"message": text}


def _details_of(error: object) -> dict[str, Any]:
    if isinstance(error, dict):
        details = dict(cast("dict[str, Any]", error))
        details.setdefault("message", details.get("detail") or details.get("msg") or "")
        return details
    return {"message": str(error)}


def _numbers(details: dict[str, Any], text: str) -> tuple[int | None, int | None]:
    """The number of tokens and the limit, if the endpoint reports them."""
    needed, window = details.get("n_prompt_tokens"), details.get("n_ctx")
    if not isinstance(needed, int):
        needed = int(match[1] or match[2]) if (match := _NEEDED.search(text)) else None
    if not isinstance(window, int):
        window = int(match[1]) if (match := _WINDOW.search(text)) else None
    return needed, window
