"""Secrets: which settings are never shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

HIDDEN = "***"

_SECRET = r"(?i)(keys?|token|secret|password|passphrase|credentials?|authorization|cookie)\Z"
_HOLDERS = ("headers", "env")
"""Tables whose values are personal, under any name."""
_REFERENCE = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}\Z"
_USER_IN_URL = r"(://[^/@\s:]*:)[^/@\s]+(@)"


def is_secret(dotted: str) -> bool:
    """Whether a setting is secret by its name, such as `providers.openai.api_key`."""
    *parents, name = dotted.split(".")
    if any(parent in _HOLDERS for parent in parents):
        return True
    return bool(re.search(_SECRET, name))


def masked(value: Any, dotted: str = "", secret: Callable[[str], bool] = is_secret) -> Any:
    """The value with `***` in place of secrets. A bare `${VAR}` says no secret and is kept."""
    if isinstance(value, Mapping):
        return {
            name: masked(each, f"{dotted}.{name}" if dotted else str(name), secret)
            for name, each in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, str) and (not value or re.match(_REFERENCE, value)):
        return value
    if dotted and secret(dotted):
        return HIDDEN
    if isinstance(value, list):
        return [masked(each, dotted, secret) for each in cast("list[Any]", value)]
    if isinstance(value, str):
        return re.sub(_USER_IN_URL, rf"\1{HIDDEN}\2", value)
    return value
