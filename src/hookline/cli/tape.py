"""`hookline tape`: sessions listed, shown, searched, exported and imported."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from hookline.errors import BadInput
from hookline.system.private_files import replaced
from hookline.tape import Entry, MemoryTapeStore, SessionInfo, TapeError, TapeStore, export, import_

from .json_output import json_option, print_json

if TYPE_CHECKING:
    from hookline.policy.redaction import Redactor
    from hookline.runtime.app import Hookline

T = TypeVar("T")


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline tape`."""
    group = typer.Typer(help="Read, search, export and import recorded sessions.", no_args_is_help=True)
    cli.add_typer(group, name="tape")

    @group.command("list")
    def list_() -> None:
        """List the sessions; `hookline sessions` does the same."""
        list_sessions(app)

    @group.command()
    def show(
        session_id: Annotated[str, typer.Argument(help="The session.")],
        as_json: Annotated[bool, json_option("Print JSON Lines.")] = False,
    ) -> None:
        """Show a session, entry by entry."""
        show_session(app, session_id, as_json=as_json)

    @group.command()
    def search(
        text: Annotated[str, typer.Argument(help="Words to look for.")],
        session_id: Annotated[
            str | None, typer.Option("--session", help="Only in this session.")
        ] = None,
    ) -> None:
        """Find entries by their words."""
        search_tape(app, text, session_id)

    @group.command()
    def export(
        file: Annotated[Path, typer.Argument(help="Where to write; '-' for standard output.")],
        session_id: Annotated[
            list[str] | None,
            typer.Option("--session", help="Only these sessions, with what they were forked from."),
        ] = None,
        html: Annotated[
            bool, typer.Option("--html", help="Write one session as a page; so does a name in .html.")
        ] = False,
    ) -> None:
        """Write sessions as JSON Lines, or one session as an HTML page."""
        export_tape(app, file, session_id, html=html)

    @group.command("import")
    def import_(file: Annotated[Path, typer.Argument(help="A file that `export` wrote.")]) -> None:
        """Read sessions that `export` wrote; what is there already stays."""
        import_tape(app, file)


def with_store(app: Hookline, action: Callable[[TapeStore], Awaitable[T]]) -> T:
    """Do something with the store, open while it lasts."""
    app.passive = True
    app.absences.enforced = False

    async def run() -> T:
        async with app.running():
            return await action(app.store())

    return asyncio.run(run())


def list_sessions(app: Hookline) -> None:
    """One line for each session: this project's first, then the others with their folder."""

    async def found(store: TapeStore) -> tuple[list[SessionInfo], set[str]]:
        return await store.sessions(), {info.id for info in await app.sessions.of_project()}

    sessions, own = with_store(app, found)
    if not sessions:
        typer.echo("there are no sessions yet")
    for info in sorted(sessions, key=lambda info: info.id.partition("/")[0] not in own):
        forked = f"  forked from {info.parent}" if info.parent else ""
        about = f"  {info.name or info.preview}" if info.name or info.preview else ""
        is_elsewhere = info.workspace and info.id.partition("/")[0] not in own
        place = f"  [{info.workspace}]" if is_elsewhere else ""
        typer.echo(f"{clock(info.updated)}  {info.entries:>6} entries  {info.id}{place}{forked}{about}")


def show_session(app: Hookline, session_id: str, *, as_json: bool = False) -> None:
    """Every entry of a session."""
    entries = with_store(app, lambda store: store.entries(session_id))
    if not entries:
        raise TapeError(f"no session {session_id!r}; `hookline tape list` shows the sessions")
    for entry in entries:
        if as_json:
            print_json(asdict(entry))
        else:
            typer.echo(f"{clock(entry.time)}  {entry.id}  {entry.kind:<12} {summary(entry)}")


def search_tape(app: Hookline, text: str, session_id: str | None) -> None:
    """The entries that have these words."""
    hits = with_store(app, lambda store: store.search(text, session_id=session_id))
    if not hits:
        typer.echo("no entry has these words")
    for hit in hits:
        entry = hit.entry
        typer.echo(f"{clock(entry.time)}  {entry.session_id}  {entry.id}  {hit.snippet}")


def export_tape(
    app: Hookline, file: Path, session_ids: list[str] | None, *, html: bool = False
) -> None:
    """Write JSON Lines, or a page; a file appears only when it is complete."""
    html = html or is_page(file)
    redactor = app.safeguards.exporting
    text = with_store(app, lambda store: exported(store, session_ids, html=html, redactor=redactor))
    if str(file) == "-":
        sys.stdout.write(text)
    else:
        write_whole(file, text)


async def write_export(app: Hookline, file: Path, session_ids: list[str]) -> str:
    """Export sessions of a running app, and print a summary line."""
    redactor = app.safeguards.exporting
    text = await exported(app.store(), session_ids, html=is_page(file), redactor=redactor)
    write_whole(file, text)
    return f"written to {file}"


def is_page(file: Path) -> bool:
    """Whether a file is to be a page, by its name."""
    return file.suffix in (".html", ".htm")


async def exported(
    store: TapeStore, session_ids: list[str] | None, *, html: bool, redactor: Redactor | None = None
) -> str:
    """Sessions as text, redacted."""
    if html:
        session_ids = [await only_one(store, session_ids)]
    if redactor is not None:
        from hookline.policy.redaction import redacted_line

        lines = [redacted_line(redactor, line) async for line in export(store, session_ids)]
        if not html:
            return "".join(lines)
        store = MemoryTapeStore()
        await import_(store, lines, mark=False)
    if html and session_ids:
        return await page_of(store, session_ids[0])
    return await lines_of(store, session_ids)


def write_whole(file: Path, text: str) -> None:
    """Write a file that only its owner can read, or leave the existing one."""
    try:
        with replaced(file) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from None


async def lines_of(store: TapeStore, session_ids: list[str] | None) -> str:
    """These sessions, or all, as JSON Lines."""
    return "".join([line async for line in export(store, session_ids)])


async def only_one(store: TapeStore, session_ids: list[str] | None) -> str:
    """The session that a page is to show; the latest when none is named."""
    latest = [info.id for info in await store.sessions(limit=1)]
    wanted = session_ids or latest
    if len(wanted) != 1:
        what = "there is none" if not wanted else f"{len(wanted)} were named"
        raise BadInput(f"a page shows one session, and {what}: name one with --session")
    return wanted[0]


async def page_of(store: TapeStore, session_id: str) -> str:
    """One session as a page."""
    from hookline.tape.html import html_page

    return await html_page(store, session_id)


def import_tape(app: Hookline, file: Path) -> None:
    """Read JSON Lines."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}") from None
    done = with_store(app, lambda store: import_(store, lines))
    typer.echo(f"{done.added} entries added, {done.skipped} already there")


def clock(time: float) -> str:
    """A time as people read it."""
    return datetime.fromtimestamp(time).strftime("%Y-%m-%d %H:%M:%S")


def summary(entry: Entry) -> str:
    """An entry in one line."""
    payload: dict[str, Any] = entry.payload
    message: dict[str, Any] = payload.get("message") or {}
    if message:
        calls = ", ".join(str(c.get("name")) for c in message.get("tool_calls", ()))
        text = f"{message.get('role')}: {message.get('content')}" + (f" → {calls}" if calls else "")
    elif "content" in payload:
        text = f"{payload.get('name')}: {payload['content']}"
    else:
        text = json.dumps(payload)
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99] + "…"
