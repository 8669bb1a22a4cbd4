"""Errors in the configuration of interceptors."""

from __future__ import annotations

from hookline.hooks import HooklineError


class InterceptorError(HooklineError):
    """The interceptors that are configured cannot be used; nothing runs without them."""
