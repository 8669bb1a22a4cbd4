"""Open a page in the user's browser, which keeps running after this process."""

from __future__ import annotations

from threading import Thread

from .environment import environment
from .process import popen, python

_DESKTOP = (
    "BROWSER", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_SESSION", "DISPLAY", "WAYLAND_DISPLAY", "WSL*",
    "XAUTHORITY", "XDG_*",
)  # fmt: skip


def open_page(address: str) -> None:
    """Ask the desktop to show a page; returns at once, and nothing happens without a desktop."""
    child = popen(python("webbrowser", address), env=environment(keep=_DESKTOP), lasting=True)
    Thread(target=child.wait, name="hookline:browser", daemon=True).start()
