"""The inspector: sessions, turns, hooks, plugins and decisions as a page, read from one record.

    pages, api = inspector_routes(app, leaving)     # for FastAPI: /inspect, and /inspect/api under it

The gateway serves it beside its channels, and `hookline inspect` alone. It reads; the one thing that
it starts is a replay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PAGE: Final = "/inspect"
"""Where the page is."""
FILES: Final = "/inspect/static/"
"""The folder of its static files. They are public, because they contain no one's data."""
STATIC: Final = Path(__file__).parent / "static"
