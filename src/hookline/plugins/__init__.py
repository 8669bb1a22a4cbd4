"""Plugins of installed packages: the entry-point group `hookline`."""

from .failure import PluginFailure
from .packages import GROUP, installed

__all__ = ["GROUP", "PluginFailure", "installed"]
