"""Plugins of installed packages: found, asked for their manifests, put in order, imported."""

from hookline.errors import BadManifest, BadRequirement, PluginClash, PluginError, UnknownPlugin

from .failure import PluginFailure
from .packages import GROUP, MANIFESTS, entries

__all__ = [
    "GROUP",
    "MANIFESTS",
    "BadManifest",
    "BadRequirement",
    "PluginClash",
    "PluginError",
    "PluginFailure",
    "UnknownPlugin",
    "entries",
]
