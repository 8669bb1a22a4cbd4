"""What can go wrong with the sandbox."""

from hookline.hooks import HooklineError


class SandboxError(HooklineError):
    """The sandbox is misconfigured, or a child cannot be started in it."""
