"""What the page reads: `/inspect` and everything under `/inspect/api`.

Everything is read-only, except for replays, which write nothing, and answers to approvals, which the
server adds. The gateway's security decides who may come in, and from which pages. Modules that only a
request needs are imported there, so a gateway starts without them.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from importlib.metadata import version
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from hookline.observe.trace.plugin import Tracing

from . import FILES, PAGE, STATIC
from .attached import catalogue, plugins
from .comparison import replayed
from .decisions import audited, decisions, pending
from .plain import plain
from .reader import AppReader, turn_of
from .tail import Filter

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Start = Annotated[int, Query(ge=0)]
Count = Annotated[int, Query(ge=1, le=1000)]
Name = Annotated[str, Query(max_length=500)]
Shown = Literal["all", "hooks", "decided", "none"]
"""Which bars of a timeline: every one, no handlers, hooks that made a difference, or no hooks."""

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HOUR = 3600.0
WEEK = 7 * 24 * HOUR
MOST_TAILS = 32
"""How many may read along at once: each is shown every dispatch."""
FRESH = {"cache-control": "no-cache"}


class ReplayOrder(BaseModel):
    """What to replay."""

    model_config = ConfigDict(extra="forbid")

    session: str = Field(min_length=1, max_length=500)


def unstored(response: Response) -> None:
    """What people said stays out of caches."""
    response.headers["cache-control"] = "no-store"


def inspector_routes(app: Hookline, leaving: asyncio.Event) -> tuple[APIRouter, APIRouter]:
    """The page, which contains no data and is public, and its data, which is for operators.

    They belong to one running app; `leaving` ends the live streams.
    """
    reader = AppReader(app, leaving)
    api = APIRouter()
    api.routes += [*session_routes(reader).routes, *house_routes(reader).routes]
    return page_routes(), api


def page_routes() -> APIRouter:
    """The page and its files, which are few and small, and read once."""
    router = APIRouter(include_in_schema=False)
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

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return answers["icon.svg"]

    @router.get(FILES + "{name}")
    async def file(name: str) -> Response:
        if name not in answers:
            raise HTTPException(404, "there is no such file")
        return answers[name]

    return router


def session_routes(reader: AppReader) -> APIRouter:
    """Sessions, their events, trees and turns."""
    app = reader.app
    router = APIRouter(prefix=f"{PAGE}/api", dependencies=[Depends(unstored)], include_in_schema=False)

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
                "channel": info.channel,
                "workspace": info.workspace,
                "busy": app.sessions.run(info.id) is not None,
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
            "busy": app.sessions.run(id) is not None,
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
            "rows": await reader.turn_lines(outline, start, count),
        }

    @router.get("/session/tree")
    async def tree(id: Name) -> dict[str, Any]:  # noqa: A002
        return (await reader.outline(id)).tree

    @router.get("/session/turn")
    async def turn(
        id: Name,  # noqa: A002
        number: Start,
        shown: Shown = "all",
        hooks: bool = True,
        glance: bool = False,
        start: Start = 0,
        count: Count = 1000,
        entry: Name = "",
        dispatch: Name = "",
    ) -> dict[str, Any]:
        from .timeline import SHOWN, place_of

        outline = await reader.outline(id)
        found = turn_of(outline, number)
        if glance:
            timeline = await reader.glance(outline, found)
        else:
            timeline = await reader.timeline(outline, found, hooks=hooks)
        whole, bars = timeline.bars[0], [*filter(SHOWN[shown], timeline.bars)]
        return {
            **outline.turn_line(found, ()),
            "duration": None if glance else whole.end - whole.start,
            "turns": len(outline.turns),
            "traced": timeline.traced if hooks and not glance else None,
            "whole": whole.end - whole.start,
            "total": len(bars),
            "start": start,
            "bars": [bar.told(whole.start) for bar in bars[start : start + count]],
            "open": place_of(bars, entry, dispatch),
        }

    @router.get("/session/summary")
    async def summary(id: Name, number: Start) -> dict[str, Any]:  # noqa: A002
        from .summary import summary_of

        outline = await reader.outline(id)
        found = turn_of(outline, number)
        running = app.sessions.run(id) is not None and number == len(outline.turns)
        return summary_of(await reader.entries(outline, found), running=running)

    @router.get("/session/entry")
    async def entry(id: Name, entry: Name, hooks: bool = True) -> dict[str, Any]:  # noqa: A002
        from ..trace.turns import call_id_of
        from .explanation import explained

        outline = await reader.outline(id)
        place = outline.places.get(entry)
        found = await app.store().get(entry) if place is not None else None
        if place is None or found is None:
            raise HTTPException(404, f"session {id!r} has no entry {entry!r}")
        call_id, turn = call_id_of(found), outline.turn_at(place)
        around = await reader.around(outline, place, call_id)
        is_traced = hooks and turn is not None and call_id is not None
        records = await reader.records(outline, turn) if turn and is_traced else None
        begun = await app.store().get(outline.entries[turn.start].id) if turn else None
        told = explained(found, around, records, app.hooks, begun)
        return {**told, "place": place, "turn": turn.number if turn else None}

    @router.get("/session/dispatch")
    async def one_dispatch(id: Name, number: Start, record: Name) -> dict[str, Any]:  # noqa: A002
        from .explanation import dispatch

        outline = await reader.outline(id)
        turn = turn_of(outline, number)
        records = await reader.records(outline, turn)
        found = next((each for each in records if each.id == record), None)
        if found is None:
            raise HTTPException(404, "there is no such dispatch in the trace any more")
        return dispatch(found)

    return router


def house_routes(reader: AppReader) -> APIRouter:
    """The catalogue, the plugins, the decisions, and what happens now."""
    app = reader.app
    router = APIRouter(prefix=f"{PAGE}/api", dependencies=[Depends(unstored)], include_in_schema=False)

    @router.get("/about")
    async def about() -> dict[str, Any]:
        return {
            "version": version("hookline"),
            "home": str(app.home),
            "workspace": str(app.workspace),
            "model": app.model,
            "trace": Tracing.of(app).level,
            "running": [*app.sessions.runs],
        }

    @router.get("/hooks")
    async def hooks() -> list[dict[str, Any]]:
        return catalogue(app.hooks, await (await Tracing.of(app).store()).fired())

    @router.get("/hooks/fired")
    async def fired(name: Name) -> dict[str, Any]:
        from .hook_activity import hook_activity

        if name not in app.hooks.catalog:
            raise HTTPException(404, f"there is no hook {name!r}")
        return await hook_activity(reader, name, time() - HOUR)

    @router.get("/plugins")
    async def all_plugins(health: bool = True) -> dict[str, Any]:
        from ..trace import measure

        if not health:
            return plugins(app, {})
        since = time() - HOUR
        stats = await reader.apart(lambda tape, traces: measure(tape, traces, since=since))
        return plugins(app, {each.name: each for each in stats.plugins})

    @router.get("/decisions")
    async def all_decisions(
        session: Name = "", decision: Name = "", limit: Count = 200
    ) -> dict[str, Any]:
        from ..trace.gate_failures import gate_failures

        found = await decisions(app.store(), session or None, decision or None, limit)
        trace = await reader.trace(session or None, time() - WEEK)
        failures = gate_failures(trace.records)[-limit:]
        return {
            "decisions": found,
            "let_through": [plain(asdict(each), 2000) for each in reversed(failures)],
            "pending": await asyncio.to_thread(pending, app),
            "audit": audited(app, session or None),
        }

    @router.post("/replay")
    async def replay(body: ReplayOrder) -> dict[str, Any]:
        from ..replay import ReplayError, UnknownRecording

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
        if reader.tail.watching >= MOST_TAILS:
            raise HTTPException(429, f"{MOST_TAILS} pages read along already; close one")
        wanted = Filter(hook, plugin, session, decision, dispatches)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        events = reader.tail.events(wanted)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    return router
