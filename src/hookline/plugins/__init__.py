"""Plugins of installed packages: the entry-point group `hookline`."""

from .packages import GROUP, installed

__all__ = ["GROUP", "installed"]
