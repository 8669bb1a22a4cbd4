"""Plugins of installed packages: found, asked for their manifests, put in order, imported."""

from hookline.errors import PluginError

from .failure import PluginFailure
from .packages import GROUP, MANIFESTS, entries

__all__ = [
    "GROUP",
    "MANIFESTS",
    "PluginError",
    "PluginFailure",
    "entries",
]
