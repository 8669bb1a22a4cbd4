"""What can go wrong with a model."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.hooks.errors import HooklineError, suggestion


class ModelError(HooklineError):
    """The root of the errors of models."""


class UnknownModel(ModelError, LookupError):
    """A name that stands for no model."""

    def __init__(self, name: str, known: Iterable[str], hint: str = "") -> None:
        known = list(known)
        nearest = suggestion(name, known)
        choice = nearest or (f"; there is {', '.join(map(repr, known))}" if known else "")
        super().__init__(f"unknown model {name!r}{hint or choice}")
        self.name = name


class ModelUnavailable(ModelError):
    """A model that exists but cannot be used here: not installed, or out of reach.

    The message says in at most three lines what to do.
    """


class ModelFailed(ModelError):
    """A model broke off or refused. When it is `transient`, trying again may help.

    `retry_after` is how many seconds the model asked to be left alone, if it said so.
    """

    def __init__(
        self, message: str, *, transient: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after


class ContextOverflow(ModelError):
    """The request is longer than the model can read."""

    def __init__(self, message: str, *, needed: int | None = None, window: int | None = None) -> None:
        super().__init__(message)
        self.needed = needed
        self.window = window


class ScriptError(ModelError, ValueError):
    """A script of a scripted model that cannot be played as it is written."""


class BadSetting(ModelError, ValueError):
    """A setting of a model that means nothing."""
