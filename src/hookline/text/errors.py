"""Errors of the parsers, which know nothing of Hookline; their callers turn them into its own."""

from __future__ import annotations


class NotRegular(OSError):
    """The path names a folder, a pipe, a socket or a device."""


class TooLarge(OSError):
    """The file has more bytes than the reader allows."""


class TooComplex(ValueError):
    """TOML that is nested too deep, or has names with too many parts."""


class PatternError(ValueError):
    """A pattern that cannot be used; the message says why and what to write instead."""


class TooManyFiles(Exception):
    """A pattern stands for more files than are looked at."""


class UnreadableScript(Exception):
    """The text, or the rest of it, cannot be understood with certainty. Its message says why."""


class ForeignJsonError(ValueError):
    """JSON that is valid, and more than is accepted."""
