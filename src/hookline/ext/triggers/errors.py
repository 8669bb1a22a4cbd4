"""Errors of triggers."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.hooks import HooklineError
from hookline.hooks.errors import suggestion


class TriggerError(HooklineError, ValueError):
    """Something about a trigger cannot be done."""


class TemplateError(TriggerError):
    """A message template that cannot be read, or that the payload does not fill."""


class TriggersStopping(TriggerError):
    """An event came while triggers were being stopped; it was not accepted."""

    def __init__(self) -> None:
        super().__init__("the triggers are being stopped; send the event again later")


class UnknownTrigger(TriggerError):
    """A trigger that no section names."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        there = f"there are {', '.join(known)}" if known else "none is configured"
        super().__init__(
            f"unknown trigger {name!r}{suggestion(name, known)}; {there}, "
            f"and a section [triggers.{name}] makes one"
        )


class MissingTriggerLibrary(TriggerError):
    """A trigger needs a library that is not installed."""

    def __init__(self, kind: str, library: str, extra: str) -> None:
        super().__init__(f"a {kind} trigger needs {library}: pip install 'hookline[{extra}]'")


class WebhookRefused(TriggerError):
    """A request that makes no turn, with the status that says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
