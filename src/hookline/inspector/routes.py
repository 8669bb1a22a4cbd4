"""What the page reads: `/inspect` and everything under `/inspect/api`.

Everything is read alone, but for a replay, which is run and writes nothing either. Who may come in, and
from which pages, is decided before: by the gateway's own security. What only a request needs is
imported there: a gateway of which nobody opens the page starts without it.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from time import time
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from . import FILES, PAGE, STATIC
from .attached import catalogue, plugins
from .comparison import replayed
from .decisions import audited, decisions, pending
from .outlines import Outline, Outlines, Turn
from .tail import Filter, Tail

if TYPE_CHECKING:
    from hookline.app import Hookline
    from hookline.tape import Entry
    from hookline.trace import TraceRecord

Start = Annotated[int, Query(ge=0)]
Count = Annotated[int, Query(ge=1, le=1000)]
Name = Annotated[str, Query(max_length=500)]

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
BEFORE = 60.0
"""Seconds before its first entry in which the hooks of a turn may have run."""
HOUR = 3600.0
FRESH = {"cache-control": "no-cache"}


class ReplayOrder(BaseModel):
    """What to replay."""

    model_config = ConfigDict(extra="forbid")

    session: str = Field(min_length=1, max_length=500)


def unstored(response: Response) -> None:
    """What people said stays out of caches."""
    response.headers["cache-control"] = "no-store"


def inspector_routes(app: Hookline, leaving: asyncio.Event) -> APIRouter:
    """The page and what it reads, of one app that runs; `leaving` ends what is listened to."""
    router = APIRouter(include_in_schema=False)
    router.include_router(page_routes())
    reader = Reader(app, leaving)
    router.include_router(session_routes(reader))
    router.include_router(house_routes(reader))
    return router


def page_routes() -> APIRouter:
    """The page and its files, which are few and small, and read once."""
    router = APIRouter()
    files = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
    answers = {
        name: Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=FRESH)
        for name, path in files.items()
    }

    @router.get(PAGE)
    async def page() -> Response:
        return answers["index.html"]

    @router.get(f"{PAGE}/")
    async def slash() -> RedirectResponse:
        return RedirectResponse(PAGE)

    @router.get(FILES + "{name}")
    async def file(name: str) -> Response:
        if name not in answers:
            raise HTTPException(404, "there is no such file")
        return answers[name]

    return router


class Reader:
    """Reads what an app has recorded and what it is doing."""

    def __init__(self, app: Hookline, leaving: asyncio.Event) -> None:
        self.app = app
        self.outlines = Outlines()
        self.tail = Tail(app, leaving)
        self.replaying = asyncio.Lock()

    async def outline(self, session: str) -> Outline:
        """A session in outline, or 404."""
        found = await self.outlines.of(self.app.store(), session)
        if found is None:
            raise HTTPException(404, f"there is no session {session!r}")
        return found

    async def entries(self, outline: Outline, turn: Turn) -> list[Entry]:
        """The entries of a turn."""
        first, last = outline.entries[turn.start], outline.entries[turn.end - 1]
        own = await self.app.store().branch(last.id, until=first.id)
        if own[0].id == first.id:
            return own
        found = [await self.app.store().get(each.id) for each in outline.entries[turn.start : turn.end]]
        return [entry for entry in found if entry is not None]  # a switch in its middle

    async def records(self, session: str, turn: Turn, since: float) -> list[TraceRecord]:
        """What was traced of a turn."""
        trace = await (await self.app.tracing.store()).read(session, since=since - BEFORE)
        return [record for record in trace.records if record.turn == turn.turn_id]


def turn_of(outline: Outline, number: int) -> Turn:
    """A turn by its number, or 404."""
    if not 1 <= number <= len(outline.turns):
        raise HTTPException(404, f"session {outline.session_id!r} has {len(outline.turns)} turns")
    return outline.turns[number - 1]


def session_routes(reader: Reader) -> APIRouter:
    """Sessions, their events, trees and turns."""
    app = reader.app
    router = APIRouter(prefix=f"{PAGE}/api", dependencies=[Depends(unstored)])

    @router.get("/sessions")
    async def sessions(limit: Count = 200) -> list[dict[str, Any]]:
        found = await app.store().sessions(limit=limit)
        return [
            {
                "id": info.id,
                "name": info.name,
                "preview": info.preview,
                "created": info.created,
                "updated": info.updated,
                "entries": info.entries,
                "parent": info.parent,
                "busy": info.id in app.runs,
            }
            for info in found
        ]

    @router.get("/session")
    async def session(id: Name) -> dict[str, Any]:  # noqa: A002
        outline = await reader.outline(id)
        tape = await app.tape(id)
        return {
            "id": id,
            "name": await tape.name(),
            "entries": len(outline.entries),
            "turns": len(outline.turns),
            "leaf": outline.entries[-1].id,
            "created": outline.entries[0].time,
            "updated": outline.entries[-1].time,
            "busy": id in app.runs,
        }

    @router.get("/session/events")
    async def events(id: Name, start: Start = 0, count: Count = 200) -> dict[str, Any]:  # noqa: A002
        outline = await reader.outline(id)
        return {
            "total": len(outline.entries),
            "start": start,
            "rows": outline.events(start, count),
        }

    @router.get("/session/turns")
    async def turns(id: Name, start: Start = 0, count: Count = 200) -> dict[str, Any]:  # noqa: A002
        outline = await reader.outline(id)
        return {
            "total": len(outline.turns),
            "start": start,
            "rows": outline.turn_lines(start, count),
        }

    @router.get("/session/tree")
    async def tree(id: Name) -> dict[str, Any]:  # noqa: A002
        return (await reader.outline(id)).tree

    @router.get("/session/turn")
    async def turn(id: Name, number: Start) -> dict[str, Any]:  # noqa: A002
        from .timeline import bars_of

        outline = await reader.outline(id)
        found = turn_of(outline, number)
        entries = await reader.entries(outline, found)
        records = await reader.records(entries[0].session_id, found, entries[0].time)
        running = id in app.runs and found.number == len(outline.turns)
        return {
            **outline.turn_line(found),
            "turns": len(outline.turns),
            "traced": bool(records),
            "bars": bars_of(entries, records, running=running),
        }

    @router.get("/session/entry")
    async def entry(id: Name, entry: Name) -> dict[str, Any]:  # noqa: A002
        from .explanation import explained

        outline = await reader.outline(id)
        place = outline.places.get(entry)
        found = await app.store().get(entry) if place is not None else None
        if place is None or found is None:
            raise HTTPException(404, f"session {id!r} has no entry {entry!r}")
        turn = next((each for each in outline.turns if each.start <= place < each.end), None)
        around = await reader.entries(outline, turn) if turn else [found]
        records = await reader.records(found.session_id, turn, around[0].time) if turn else []
        told = explained(found, around, records, app.hooks)
        return {**told, "place": place, "turn": turn.number if turn else None}

    @router.get("/session/dispatch")
    async def one_dispatch(id: Name, number: Start, record: Name) -> dict[str, Any]:  # noqa: A002
        from .explanation import dispatch

        outline = await reader.outline(id)
        turn = turn_of(outline, number)
        first = outline.entries[turn.start]
        records = await reader.records(first.session_id, turn, first.time)
        found = next((each for each in records if each.id == record), None)
        if found is None:
            raise HTTPException(404, "there is no such dispatch in the trace any more")
        return dispatch(found)

    return router


def house_routes(reader: Reader) -> APIRouter:
    """The catalogue, the plugins, the decisions, and what happens now."""
    app = reader.app
    router = APIRouter(prefix=f"{PAGE}/api", dependencies=[Depends(unstored)])

    @router.get("/about")
    async def about() -> dict[str, Any]:
        return {
            "version": version("hookline"),
            "home": str(app.home),
            "workspace": str(app.workspace),
            "model": app.model,
            "trace": app.config.get("trace.level", "off"),
            "running": [*app.runs],
        }

    @router.get("/hooks")
    async def hooks() -> list[dict[str, Any]]:
        return catalogue(app.hooks, await (await app.tracing.store()).fired())

    @router.get("/plugins")
    async def all_plugins() -> dict[str, Any]:
        from hookline.trace import measure

        since = time() - HOUR
        stats = await measure(app.store(), await app.tracing.store(), since=since)
        return plugins(app, {each.name: each for each in stats.plugins})

    @router.get("/decisions")
    async def all_decisions(
        session: Name = "", decision: Name = "", limit: Count = 200
    ) -> dict[str, Any]:
        found = await decisions(app.store(), session or None, decision or None, limit)
        return {
            "decisions": found,
            "pending": await asyncio.to_thread(pending, app),
            "audit": audited(app, session or None),
        }

    @router.post("/replay")
    async def replay(body: ReplayOrder) -> dict[str, Any]:
        from hookline.replay import ReplayError, UnknownRecording

        async with reader.replaying:  # one at a time: the process has turns to run as well
            try:
                return await replayed(app, body.session)
            except UnknownRecording as error:
                raise HTTPException(404, str(error)) from None
            except ReplayError as error:
                raise HTTPException(422, str(error)) from None

    @router.get("/tail")
    async def tail(
        hook: Name = "",
        plugin: Name = "",
        session: Name = "",
        decision: Name = "",
        dispatches: bool = True,
    ) -> StreamingResponse:
        wanted = Filter(hook, plugin, session, decision, dispatches)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        events = reader.tail.events(wanted)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    return router
