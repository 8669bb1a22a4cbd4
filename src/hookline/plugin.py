"""The two markers of a plugin, under the name that plugin authors look for.

from hookline.plugin import hookimpl, hookspec
"""

from .hooks import hookimpl, hookspec

__all__ = ["hookimpl", "hookspec"]
