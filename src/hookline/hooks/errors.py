"""The errors of the kernel, and how errors are shown to people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pluggy import PluginValidationError


class HooklineError(Exception):
    """Base of every error that Hookline raises on purpose."""

    exit_code: ClassVar[int] = 2
    """The status with which the command line exits."""
    hook: str | None = None
    """The hook that the error is about."""
    plugin: object = None
    """The plugin that the error is about, by name; pluggy's own errors give the object."""


class DeclarationError(HooklineError, ValueError):
    """A hook is declared in a way that makes no sense."""


class UnknownHook(HooklineError, ValueError):
    """No hook of this name is declared."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown hook {name!r}{suggestion(name, known)}")
        self.hook = name


class RegistrationError(HooklineError, ValueError, PluginValidationError):
    """A plugin or handler cannot be registered; it is also an error of pluggy's own class."""

    def __init__(self, message: str, plugin: object = None) -> None:
        ValueError.__init__(self, message)
        self.plugin = plugin


class CallError(HooklineError, TypeError):
    """A hook was called with arguments that it does not take."""

    exit_code = 1


class MissingArgument(CallError):
    """An implementation needs an argument that the caller did not pass."""


class WrongResult(HooklineError, TypeError):
    """An implementation returned something that its hook does not accept."""

    exit_code = 1


class HookTimeout(HooklineError, TimeoutError):
    """An implementation did not answer within its time limit."""

    exit_code = 1


class NotAwaited(HooklineError, RuntimeError):
    """An implementation returned an awaitable to a synchronous call."""

    exit_code = 1


class Unsettled(HooklineError, RuntimeError):
    """Guards keep rewriting each other's result."""

    exit_code = 1


def suggestion(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return the nearest known names as a hint: `; did you mean 'tool_call'?`."""
    from difflib import get_close_matches

    nearest = get_close_matches(name, list(known), n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""


def error_text(error: BaseException) -> str:
    """Return an error in one line, even if its own `__str__` raises."""
    try:
        text = str(error)
    except Exception:
        text = "<its message cannot be shown>"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
