"""What can go wrong with the trace."""

from hookline.hooks import HooklineError


class TraceError(HooklineError):
    """Something was asked of the trace, or of what it is about, that is not there."""


class NotInstalled(TraceError):
    """Spans were asked for, and the library that sends them is not there."""
