"""Whether a server on this machine or of one's own answers: one short request for its models."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from .settings import Endpoint

SECONDS = 1.0
LARGEST = 1_000_000
"""Bytes that are read of the answer."""
SHOWN = 5


def obstacle(endpoint: Endpoint, model: str = "") -> str:
    """Why a server cannot be used, or lacks a model, and what to do; empty if it can."""
    name = endpoint.service.name
    try:
        status, body = _get(endpoint)
    except (OSError, HTTPException) as error:
        return (
            f"nothing answers at {endpoint.base_url} ({type(error).__name__}): start the server, "
            f"or set base_url in the settings of {name}"
        )
    if status in (401, 403):
        return f"{endpoint.base_url} refuses the key: set api_key in the settings of {name}"
    known = model_names(body) if status == 200 else []
    if not model or not known or {model, f"{model}:latest"} & {*known}:
        return ""
    more = ", …" if len(known) > SHOWN else ""
    return f"it has no model {model!r}; it has {', '.join(known[:SHOWN])}{more}"


def _get(endpoint: Endpoint) -> tuple[int, bytes]:
    parts = urlsplit(endpoint.base_url)
    make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=SECONDS)
    key = endpoint.key()
    headers = {**endpoint.settings.headers, **({"Authorization": f"Bearer {key}"} if key else {})}
    try:
        connection.request("GET", f"{parts.path}{endpoint.service.models}", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(LARGEST)
    finally:
        connection.close()


def model_names(body: bytes) -> list[str]:
    """The names in a list of models, as any of the services write it; none if it is no such list."""
    try:
        found: Any = json.loads(body)
        if "models" in found:
            return [str(each["name"]).removeprefix("models/") for each in found["models"]]
        return [str(each["id"]) for each in found["data"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
