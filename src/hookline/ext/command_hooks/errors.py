"""What can be wrong with command hooks."""

from hookline.hooks.errors import HooklineError


class SettingsError(HooklineError, ValueError):
    """A settings file, or an entry of it, that cannot be used."""


class HookFailed(HooklineError, RuntimeError):
    """A command hook that did not come to an answer."""
