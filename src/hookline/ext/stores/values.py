"""Values at the door of a store: what cannot be kept is refused before anything is written."""

from __future__ import annotations

import json
import secrets
from typing import Any

from .errors import BadStoreValue

LONGEST_ID = 1000
MOST = 10_000
"""The largest number of results that a call gives."""


def name(value: Any, what: str) -> str:
    """A text that names something: an id, a collection, a user."""
    checked = text(value, what)
    if not checked or len(checked) > LONGEST_ID or "\0" in checked:
        raise BadStoreValue(
            f"{what} must be a text of 1 to {LONGEST_ID:,} characters without NUL, not "
            f"{checked[:40]!r}{f' ({len(checked):,} characters)' if checked else ''}"
        )
    return checked


def text(value: Any, what: str) -> str:
    """A text that can be written as UTF-8."""
    if not isinstance(value, str):
        raise BadStoreValue(f"{what} must be a text, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadStoreValue(
            f"{what} cannot be written as UTF-8: {error.reason} at {error.start}"
        ) from error
    return value


def number(value: Any, what: str) -> float:
    """A finite number, for example a time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise BadStoreValue(f"{what} must be a finite number, not {value!r}")
    return float(value)


def limit(value: Any, least: int = 1, what: str = "limit") -> int:
    """How many results are wanted."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise BadStoreValue(f"{what} must be a whole number from {least} to {MOST:,}, not {value!r}")
    return value


def encoded(value: Any, what: str, *, sort_keys: bool = False) -> str:
    """A value as JSON; with sorted keys, equal values are equal texts."""
    try:
        written = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise BadStoreValue(f"{what} cannot be written as JSON: {error}") from error
    return text(written, what)


def fields(value: Any, what: str) -> str:
    """A JSON object as JSON."""
    if not isinstance(value, dict):
        raise BadStoreValue(f"{what} must be a dict, not {type(value).__name__}")
    return encoded(value, what)


def new_id() -> str:
    """A unique id."""
    return secrets.token_hex(10)
