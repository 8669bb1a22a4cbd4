"""Differences between a handler's input and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

MISSING: Final = "(nothing)"


@dataclass(frozen=True, slots=True)
class PayloadChange:
    """One value that was changed, and where in the payload it is."""

    path: str
    before: Any
    after: Any


def differences(before: Any, after: Any, path: str = "") -> list[PayloadChange]:
    """What differs, as deep as both are tables or lists of one length."""
    if before == after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        found: list[PayloadChange] = []
        for name in dict.fromkeys((*old, *new)):
            inner = f"{path}.{name}" if path else str(name)
            found += differences(old.get(name, MISSING), new.get(name, MISSING), inner)
        return found
    if isinstance(before, list) and isinstance(after, list):
        was, now = cast("list[Any]", before), cast("list[Any]", after)
        if len(was) == len(now):
            pairs = enumerate(zip(was, now, strict=True))
            return [c for n, (b, a) in pairs for c in differences(b, a, f"{path}[{n}]")]
    return [PayloadChange(path, before, after)]
