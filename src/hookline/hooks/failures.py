"""What an implementation can do wrong, told: the errors, their notes and their log lines."""

from __future__ import annotations

import logging
from typing import Any

from .errors import MissingArgument, NotAwaited, WrongResult, error_text
from .implementation import Implementation
from .spec import has_literal, type_name
from .verdict import Denied

log = logging.getLogger("hookline.hooks")


def check(value: Any, impl: Implementation) -> Any:
    """Give a result back, or refuse it for its type."""
    if value is not None and not impl.spec.accepts(value):
        raise wrong_result(value, impl)
    return value


def wrong_result(value: Any, impl: Implementation) -> WrongResult:
    """The error for a result of the wrong type."""
    spec = impl.spec
    got = repr(value) if has_literal(spec.result) else type(value).__name__
    return WrongResult(
        f"{impl.name} returned {got} on hook {spec.name!r}, "
        f"which takes {type_name(spec.result)} or None ({impl.location})"
    )


def not_awaited(impl: Implementation) -> NotAwaited:
    """Warn of an awaitable that a synchronous call cannot use; the error carries the same text."""
    log.warning("hook.async_not_supported hook=%s adapter=%s", impl.spec.name, impl.name)
    return NotAwaited(f"hook.async_not_supported hook={impl.spec.name} adapter={impl.name}")


def missing_error(impl: Implementation, missing: list[str]) -> MissingArgument:
    """The error for arguments that the caller left out."""
    return MissingArgument(
        f"{impl.name} needs {', '.join(map(repr, missing))}, "
        f"which the call of hook {impl.spec.name!r} did not pass"
    )


def note(error: BaseException, impl: Implementation) -> None:
    """Name hook and plugin on an error that goes on to the caller."""
    error.add_note(f"in {impl.name} on hook {impl.spec.name!r} ({impl.location})")


def skip(error: Exception, impl: Implementation, subject: object = None) -> None:
    """Log an error that is left out: `hook.tool_call_failed tool_name=shell adapter=acme: ...`."""
    log_failure("failed", error, impl, subject)


def deny(error: Exception, impl: Implementation, subject: object = None) -> None:
    """Log an error that counts as a deny."""
    log_failure("denied", error, impl, subject)


def log_failure(what: str, error: Exception, impl: Implementation, subject: object) -> None:
    """One line that names the hook, what it was about, the plugin and the error, then the traceback."""
    about = f" {impl.spec.match}={subject}" if subject is not None else ""
    name, text = impl.spec.name, error_text(error)
    log.error("hook.%s_%s%s adapter=%s: %s", name, what, about, impl.name, text, exc_info=error)


def denied(error: Exception, impl: Implementation) -> Denied:
    """What stands in a list of results for a guard that failed."""
    return Denied(f"{impl.name} failed: {error_text(error)}")
