"""What can go wrong with a replay or a backtest."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.hooks.errors import HooklineError, suggestion


class ReplayError(HooklineError, ValueError):
    """A replay that cannot be made as it was asked for."""


class UnknownRecording(ReplayError, LookupError):
    """A session or an entry that is on no tape."""

    def __init__(self, what: str, name: str, known: Iterable[str], look: str) -> None:
        super().__init__(f"there is no {what} {name!r}; {look}{suggestion(name, known)}")


class Diverged(HooklineError):
    """The conversation went where the record has no answer."""

    def __init__(self, why: str) -> None:
        super().__init__(f"diverged here; the recorded model has no answer: {why}")


class ReplayStopped(HooklineError):
    """A tool that must not be replayed was reached."""
