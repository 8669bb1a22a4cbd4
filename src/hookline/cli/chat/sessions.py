"""The slash commands about sessions: to begin, leave, branch, go back and name them."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from shutil import get_terminal_size
from time import localtime, strftime
from typing import TYPE_CHECKING

from hookline.errors import BadInput
from hookline.hooks import HooklineError
from hookline.hooks.errors import suggestion
from hookline.runtime.user_commands import SlashCommand

from .view import one_line

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.tape import SessionInfo
    from hookline.types import HookContext

    from .session import Chat

SHOWN = 20
"""Sessions that are listed."""


def branch_commands(chat: Chat) -> list[SlashCommand]:
    """Commands that change the chat's session or its contents."""
    app = chat.app

    async def new(ctx: HookContext, name: str) -> str:
        named = {"session_id": name.strip()} if name.strip() else {}
        await chat.enter(await app.sessions.new(chat.session_id, **named))
        return f"a new session: {chat.session_id}"

    async def resume(ctx: HookContext, wanted: str) -> str:
        found = await app.sessions.project_first(limit=None if wanted else SHOWN)
        if not wanted.strip():
            own = {info.id for info in await app.sessions.of_project()}
            base = app.sessions.project_session()
            lines = [listed(info, chat.session_id, own, base) for info in found]
            return "\n".join(lines) or "no session yet"
        target = chosen(wanted.strip(), found)
        await app.sessions.switch(target, leaving=chat.session_id)
        await chat.enter(target)
        return f"session {target}: {await app.sessions.history(target)}"

    async def fork(ctx: HookContext, where: str) -> str:
        words = where.split()
        before = words[-1:] == ["before"]
        entry = await chat.entry(" ".join(words[:-1] if before else words))
        here = chat.session_id
        await chat.enter(await app.sessions.fork(here, entry, "before" if before else "at"))
        return f"a fork of {here}: {chat.session_id}"

    async def tree(ctx: HookContext, where: str) -> str:
        words = where.split()
        if not words:
            return await chat.draw_tree()
        summarise = words[-1] == "summary"
        entry = await chat.entry(" ".join(words[:-1] if summarise else words))
        if entry is None:
            raise BadInput("say where to go: /tree, then /tree NUMBER, or /tree LABEL")
        await app.sessions.navigate(chat.session_id, entry, summarise=summarise)
        return await chat.draw_tree()

    async def handoff(ctx: HookContext, said: str) -> str:
        name, _, summary = said.partition(":")
        if not name.strip():
            raise BadInput("name and summary are missing: /handoff NAME: SUMMARY")
        await app.sessions.handoff(chat.session_id, name.strip(), summary=summary.strip() or None)
        return f"handed off: {name.strip()}. The context starts anew"

    async def label(ctx: HookContext, said: str) -> str:
        name, _, where = said.strip().partition(" ")
        if not name:
            return "\n".join(await (await app.sessions.tape(chat.session_id)).labels()) or "no labels"
        await app.sessions.label(chat.session_id, name, await chat.entry(where))
        return f"labelled {name}"

    async def name(ctx: HookContext, said: str) -> str:
        if not said.strip():
            raise BadInput("say what to call this session: /name NAME")
        await (await app.sessions.tape(chat.session_id)).rename(said.strip())
        return f"this session is called {said.strip()} now"

    async def export(ctx: HookContext, file: str) -> str:
        if not file.strip():
            raise BadInput("say where to: /export talk.html, or /export talk.jsonl")
        from ..tape import write_export

        path = Path(file.strip()).expanduser()
        path = path if path.is_absolute() else app.workspace / path
        return await write_export(app, path, [chat.session_id])

    return [
        SlashCommand("new", "Begin a new session: /new [NAME].", new),
        SlashCommand("resume", "List the sessions, or go on with one: /resume ID.", resume),
        SlashCommand("switch", "Go to another session: /switch ID.", resume),
        SlashCommand("fork", "Branch off here, or at a point of the tree: /fork [N [before]].", fork),
        SlashCommand("tree", "Draw the session's tree; go back: /tree N [summary].", tree),
        SlashCommand("handoff", "Start a new context: /handoff NAME: SUMMARY.", handoff),
        SlashCommand("label", "Name this point, or another: /label NAME [N].", label),
        SlashCommand("name", "Name the session: /name NAME.", name),
        SlashCommand("export", "Write the session as HTML or JSON Lines: /export FILE.", export),
    ]


def listed(info: SessionInfo, present: str, own: Collection[str], base: str) -> str:
    """A session in one line of the terminal, with as much of its title as there is room for.

    Names that start with the session of this folder, `base`, are shortened. A session that is not among
    this project's `own` is listed with its folder.
    """
    when = strftime("%Y-%m-%d %H:%M", localtime(info.updated))
    mark = "→" if info.id == present else " "
    name = info.id.removeprefix(base) if info.id.startswith(f"{base}#") else info.id
    line = f"{mark} {name:<20}  {when}  {info.entries:>5} entries  "
    title = one_line(info.name or info.preview, 50)
    if info.workspace and info.id not in own:
        title = f"[{info.workspace}] {title}"
    room = get_terminal_size().columns - len(line) - 1
    return (line + one_line(title, room)).rstrip() if room > 1 else line.rstrip()


def chosen(wanted: str, found: list[SessionInfo]) -> str:
    """The session that a person means: by its id, its name, or the end of its id."""
    for matching in (
        [info.id for info in found if info.id == wanted],
        [info.id for info in found if info.name == wanted],
        [info.id for info in found if info.id.endswith(wanted)],
    ):
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise BadInput(f"{wanted!r} may be {' or '.join(matching)}: say more of it")
    known = [info.id for info in found]
    raise BadInput(f"there is no session {wanted!r}{suggestion(wanted, known)}; /resume lists them")


class TreeLines:
    """The points of a session's tree by the numbers of their lines, as they were last drawn."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._lines: list[str | None] = []

    async def draw(self, session_id: str, width: int) -> str:
        """The tree, with a number before each line that can be gone to."""
        from hookline.tape.tree import Tree

        tape = await self._app.sessions.tape(session_id)
        tree = Tree.of(await tape.outline())
        plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        lines = tree.lines(width=max(width - 6, 40), ascii_only=plain)
        self._lines = [line.entry_id for line in lines if line.entry_id is not None]
        numbers = iter(range(1, len(self._lines) + 1))
        return "\n".join(
            f"{next(numbers):>4}  {line.text}" if line.entry_id is not None else f"      {line.text}"
            for line in lines
        )

    async def entry(self, session_id: str, said: str) -> str | None:
        """The entry that a person means: a number of the tree, a label, or an id; None for nothing."""
        said = said.strip()
        if not said:
            return None
        if said.isdecimal():
            number = int(said)
            if not self._lines:
                raise BadInput("draw the tree first: /tree")
            if not 1 <= number <= len(self._lines):
                raise BadInput(f"the tree has the numbers 1 to {len(self._lines)}, not {number}")
            return self._lines[number - 1]
        tape = await self._app.sessions.tape(session_id)
        labels = await tape.labels()
        if said in labels:
            return labels[said]
        try:
            return (await tape.entry(said)).id
        except HooklineError:
            raise BadInput(
                f"nothing in this session is called {said!r}{suggestion(said, list(labels))}; "
                "use a number of /tree, a label or an entry's id"
            ) from None
