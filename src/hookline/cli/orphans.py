"""Orphans: processes that an agent starts stay below it in the process tree, even after a double fork.

This distinguishes answers to approvals by an agent's own processes from those of a person.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

LOOK_EVERY = 30.0
"""Seconds between two looks for adopted processes that are over."""


@asynccontextmanager
async def adopting() -> AsyncGenerator[None]:
    """Stay the ancestor of everything that is started here, whatever forks twice, and clean up."""
    from hookline.system.processes import Orphans, adopt_orphans, reap

    if not adopt_orphans():
        yield
        return

    async def clean_up() -> None:
        orphans = Orphans()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await asyncio.to_thread(orphans.look)

    cleaning = asyncio.create_task(clean_up())
    try:
        yield
    finally:
        cleaning.cancel()
        reap()
