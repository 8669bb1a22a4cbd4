"""Log records and error messages without secrets.

`redact_logs` works on every record of the process, whichever logger, handler or formatter it goes
through. A line that cannot be redacted is withheld. A very long one is cut, so that logging stays fast.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

WITHHELD = "[withheld: it could not be redacted]"
LONGEST = 10_000
"""Characters of a line or traceback that are kept."""
ENDS = " \t\n\"',;&"
"""Where a long text may be cut."""

Redact = Callable[[str], str]
_active: list[Redact] = []


def redact_logs(redact: Redact) -> Callable[[], None]:
    """Redact every log record from now on, and return what ends this."""
    _install()
    _active.append(redact)
    return lambda: _active.remove(redact)


def without_secrets(text: str) -> str:
    """The text as it may be logged or printed."""
    if not _active:
        return text
    if len(text) > LONGEST:
        # Without the last word, which may be part of a secret that cannot be recognized any more.
        kept = text[:LONGEST]
        kept = kept[: max(map(kept.rfind, ENDS)) + 1]
        text = f"{kept}… ({len(text) - len(kept):,} more characters)"
    try:
        for redact in dict.fromkeys(_active):
            text = redact(text)
    except Exception as error:
        return f"{WITHHELD}: {type(error).__name__}"
    return text


@cache
def _install() -> None:
    """Make log records by way of `without_secrets`, once for the process."""
    made = logging.getLogRecordFactory()

    def redacted(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = made(*args, **kwargs)
        if _active:
            record.msg, record.args = without_secrets(record.getMessage()), None
            if record.exc_info:  # formatters use the text if there is one
                text = logging.Formatter().formatException(record.exc_info)
                record.exc_text = without_secrets(text)
        return record

    logging.setLogRecordFactory(redacted)
