"""What can be wrong with a plugin before it is one."""

from hookline.hooks import HooklineError


class PluginError(HooklineError, ValueError):
    """A plugin that cannot be loaded as it is."""


class BadManifest(PluginError):
    """A manifest that cannot be read, or that does not fit this release."""


class PluginClash(PluginError):
    """Two plugins want the same thing."""


class BadRequirement(PluginError):
    """A plugin asks for another that is not there, or that asks for it in turn."""


class UnknownPlugin(PluginError):
    """A name that no plugin has."""
