"""What goes wrong with policies."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.hooks.errors import HooklineError, suggestion


class PolicyError(HooklineError, ValueError):
    """A policy, pack or setting that cannot be used; the message says where and why."""


class ApprovalError(PolicyError):
    """An approval that cannot be kept, found or given any more."""


class UnknownPack(PolicyError, LookupError):
    """A name that no pack has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        hint = suggestion(name, names) or f"; there are: {', '.join(names)}"
        super().__init__(f"unknown policy pack {name!r}{hint} (a folder is written as './my-pack')")
        self.name = name
