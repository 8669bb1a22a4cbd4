"""Watching folders for changes, with `watchfiles`, which is imported when it is first needed.

What counts is how the files are now and how they were when they were read: a change that nobody was
told of, because it came before watching began or in a folder that was not there, is seen all the same.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from pathlib import Path

from hookline.errors import SourceError

from .sources import files_below

LOOK_AGAIN = 1.0
"""Seconds between checks, even if nothing was reported."""

Stamps = dict[Path, tuple[int, int, int]]


def stamps(places: Iterable[Path], suffix: str = ".py") -> Stamps:
    """How the Python files of some folders are now, and the other files among the places."""
    found: Stamps = {}
    for place in places:
        single = not place.is_dir()
        try:
            paths = [place] if single else files_below(place)
        except SourceError:  # loading says why nothing of it is used
            paths = []
        for path in paths:
            if single or path.suffix == suffix:
                try:
                    about = path.stat()
                except OSError:
                    found[path] = (0, 0, 0)
                else:
                    found[path] = (about.st_mtime_ns, about.st_size, about.st_ino)
    return found


async def changes(
    folders: Callable[[], Iterable[Path]], known: Callable[[], Stamps]
) -> AsyncGenerator[None]:
    """Yield each time that files are not as they were known; folders may come and go."""
    while True:
        changed = False
        present = sorted({f if f.is_dir() else f.parent for f in folders() if f.parent.is_dir()})
        async with aclosing(reports(present)) as reported:
            async for _ in reported:
                changed = stamps(folders()) != known()
                if changed:
                    break
        if changed:
            yield


async def reports(folders: list[Path]) -> AsyncGenerator[None]:
    """Something happened in these folders, or a while has passed."""
    if not folders:
        from asyncio import sleep

        await sleep(LOOK_AGAIN)
        yield
        return
    from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

    after = int(LOOK_AGAIN * 1000)
    async with aclosing(
        awatch(*folders, debounce=100, rust_timeout=after, yield_on_timeout=True)
    ) as watching:
        async for _ in watching:
            yield
