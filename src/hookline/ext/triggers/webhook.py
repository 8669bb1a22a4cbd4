"""The webhook trigger: a signed request makes a turn.

The sender signs `<timestamp>.<body>` with HMAC-SHA256, or `<timestamp>.<id>.<body>` where it sends an
id, and says so in three headers:

    X-Hookline-Timestamp: 1767225600
    X-Hookline-Id: order-17                      (optional)
    X-Hookline-Signature: sha256=<hex>

Two secrets are accepted while one takes the other's place. A request is taken once: by its id, or by
what was signed. The body is a JSON object, so that it cannot be taken for one with an id in front.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

from pydantic import Field, SecretStr, field_validator

from hookline.ext.triggers.errors import WebhookRefused
from hookline.hookspecs import Route, TriggerEvent
from hookline.text.foreign_json import parse_json

from .errors import MissingTriggerLibrary, TriggerError, TriggersStopping
from .settings import TriggerSettings
from .trigger import Trigger

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
SHORTEST = 16
RESERVED = ("api", "v1", "ws", "inspect", "health", "ready", "metrics", "openapi.json", "telegram")
"""First words of the paths that a gateway serves itself."""


class WebhookSettings(TriggerSettings):
    """`type = "webhook"`."""

    secret: SecretStr
    previous_secret: SecretStr | None = None
    """Accepted too, while senders change to the new one."""
    path: str | None = None
    """By default `/triggers/<name>`."""
    window: float = Field(default=300.0, gt=0)
    """Seconds by which a timestamp may differ from the time here."""
    max_body: int = Field(default=1_000_000, ge=1)
    """Bytes."""
    wait: bool = False
    """Whether the response contains the answer; it then takes as long as the turn."""

    @field_validator("secret", "previous_secret")
    @classmethod
    def _is_long(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and len(secret.get_secret_value()) < SHORTEST:
            raise ValueError(f"must have {SHORTEST} characters or more")
        return secret

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, path: str | None) -> str | None:
        if path is None:
            return path
        words = path.split("/")
        if not re.fullmatch(r"(/[\w.~-]+)+", path, re.ASCII) or {".", ".."} & {*words}:
            raise ValueError("must be a path such as /triggers/orders")
        if words[1].lower() in RESERVED:
            raise ValueError(
                f"/{words[1]} is the gateway's own; choose a path such as /triggers/orders"
            )
        return path


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The signed parts of a request."""

    timestamp: str
    id: str | None
    signature: str
    body: bytes

    @classmethod
    def of(cls, headers: Mapping[str, str], body: bytes) -> SignedRequest:
        """Parse the headers; refuse missing or malformed ones."""
        timestamp = headers.get("x-hookline-timestamp", "")
        if not re.fullmatch(r"[0-9]{1,12}", timestamp):
            raise WebhookRefused(401, "X-Hookline-Timestamp must have the time in seconds since 1970")
        given = headers.get("x-hookline-id")
        if given is not None and not _ID.fullmatch(given):
            raise WebhookRefused(400, "X-Hookline-Id may have 1 to 128 letters, digits, '-' and '_'")
        kind, _, signature = headers.get("x-hookline-signature", "").partition("=")
        if kind != "sha256" or not re.fullmatch(r"[0-9a-fA-F]{64}", signature):
            raise WebhookRefused(401, "X-Hookline-Signature must be sha256=<64 hexadecimal digits>")
        return cls(timestamp, given, signature.lower(), body)

    @property
    def signed(self) -> bytes:
        """The bytes that are signed."""
        lead = f"{self.timestamp}.{self.id}." if self.id else f"{self.timestamp}."
        return lead.encode() + self.body

    @property
    def key(self) -> str:
        """What the request is known by."""
        return self.id or hashlib.sha256(self.signed).hexdigest()


def sign(secret: str, timestamp: int, body: bytes, event_id: str | None = None) -> dict[str, str]:
    """The headers of a signed request, for senders."""
    request = SignedRequest(str(timestamp), event_id, "", body)
    digest = hmac.new(secret.encode(), request.signed, hashlib.sha256).hexdigest()
    headers = {"X-Hookline-Timestamp": str(timestamp), "X-Hookline-Signature": f"sha256={digest}"}
    return {**headers, "X-Hookline-Id": event_id} if event_id else headers


class WebhookTrigger(Trigger[WebhookSettings]):
    """Serves one path, and makes a turn of each request that is signed and new."""

    form: ClassVar[type[Any]] = WebhookSettings

    @property
    def path(self) -> str:
        """Where requests go."""
        return self.settings.path or f"/triggers/{self.name}"

    @cached_property
    def _secrets(self) -> list[bytes]:
        given = (self.settings.secret, self.settings.previous_secret)
        return [secret.get_secret_value().encode() for secret in given if secret is not None]

    def routes(self) -> list[Route]:
        """One route, in FastAPI's form."""
        try:
            from .endpoint import router
        except ImportError:
            raise MissingTriggerLibrary("webhook", "FastAPI", "gateway") from None
        return [router(self)]

    async def receive(self, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        """Handle one request: the status and body of the response."""
        request = SignedRequest.of(headers, body)
        self._check(request)
        payload = _payload(body)
        event = TriggerEvent(self.name, payload, request.key, self.context.clock.now())
        try:
            receipt = await self.context.emit(event)
        except TriggerError as error:
            raise _refusal(error) from error
        if not receipt.taken:
            return 409, {"id": event.id, "status": receipt.state, "error": "it was received already"}
        if not self.settings.wait:
            return 202, {"id": event.id, "status": "accepted"}
        settled = await receipt.settled()
        if settled.result is None or settled.state == "started":
            return 500, {"id": event.id, "status": settled.state, "error": "the turn failed"}
        result = settled.result
        said = {"outcome": result.outcome, "answer": result.model_output, "reason": result.stopped}
        return 200, {"id": event.id, "status": settled.state, **said}

    def _check(self, request: SignedRequest) -> None:
        """Refuse a request that is too old, or not signed with one of our secrets."""
        if abs(self.context.clock.now() - int(request.timestamp)) > self.settings.window:
            raise WebhookRefused(
                401, f"the timestamp is more than {self.settings.window:g} seconds off"
            )
        matches = [
            hmac.compare_digest(
                hmac.new(secret, request.signed, hashlib.sha256).hexdigest(), request.signature
            )
            for secret in self._secrets
        ]
        if not any(matches):
            raise WebhookRefused(401, "the signature is wrong")


def _payload(body: bytes) -> dict[str, Any]:
    try:
        payload = parse_json(body)
    except (ValueError, RecursionError):
        raise WebhookRefused(400, "the body is not JSON") from None
    if not isinstance(payload, dict):
        raise WebhookRefused(400, "the body must be a JSON object")
    return cast("dict[str, Any]", payload)


def _refusal(error: TriggerError) -> WebhookRefused:
    return WebhookRefused(503 if isinstance(error, TriggersStopping) else 422, str(error))
