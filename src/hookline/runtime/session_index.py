"""Find sessions: all of them, those of a project, the latest one.

A session belongs to the project in whose folder its first turn ran. The terminal names its sessions
after that folder, so that a conversation never continues in another project by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from time import localtime, strftime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookline.tape import SessionInfo

    from .app import Hookline

TERMINAL = "terminal"
RECENT = 500
"""Among how many of the latest sessions those of a project are found whatever their name."""


class SessionIndex:
    """The sessions of one app, as they can be found."""

    def __init__(self, app: Hookline) -> None:
        self._app = app

    async def list(self, *, limit: int | None = None) -> list[SessionInfo]:
        """Return the sessions of people, latest first; those of subagents are left out."""
        asked = None if limit is None else limit * 4
        while True:
            found = await self._app.store().sessions(limit=asked)
            people = [info for info in found if "/" not in info.id]
            if asked is None or limit is None or len(people) >= limit or len(found) < asked:
                return people[:limit]
            asked *= 4

    async def of_project(self) -> list[SessionInfo]:
        """Return the sessions of this project, latest first."""
        known = {info.id: info for info in await self.list(limit=RECENT)}
        for info in await self._app.store().sessions(prefix=self.project_session()):
            if "/" not in info.id:
                known.setdefault(info.id, info)
        here = [info for info in known.values() if self._is_here(info, known)]
        return sorted(here, key=lambda info: info.updated, reverse=True)

    async def project_first(self, *, limit: int | None = None) -> list[SessionInfo]:
        """Return the sessions of people: this project's, then the others, each latest first."""
        here = await self.of_project()
        names = {info.id for info in here}
        return [*here, *(info for info in await self.list(limit=limit) if info.id not in names)][:limit]

    async def latest(self, channel: str | None = None) -> str | None:
        """Return the session of this project that was written to last, on any or on this channel."""
        for info in await self.of_project():
            if channel is None or channel == (info.channel or info.id.partition(":")[0]):
                return info.id
        return None

    async def cut_off(self, *, among: int = 100) -> str | None:
        """Return the latest session of this project with a turn that started and never finished."""
        for info in (await self.of_project())[:among]:
            if await self._app.sessions.is_cut_off(info.id):
                return info.id
        return None

    async def history(self, session_id: str) -> str:
        """Say how long a session is, when it was used last, and which other project it is from.

        Returns an empty string if the session does not exist yet.
        """
        tape = await self._app.tape(session_id)
        if tape.leaf is None:
            return ""
        outline = await tape.outline()
        count = sum(entry.role in ("user", "assistant") for entry in outline)
        when = strftime("%Y-%m-%d %H:%M", localtime(tape.leaf.time))
        said = f"{count} message{'' if count == 1 else 's'}, last used {when}"
        first = await tape.store.get(outline[0].id) if outline else None
        workspace = first.payload.get("workspace") if first is not None else None
        if workspace and workspace != str(self._app.workspace):
            said += f", from another project: {workspace}"
        return said

    # --- names --------------------------------------------------------------------------------

    def project_session(self, channel: str = TERMINAL) -> str:
        """Return the name of the session that a channel has in this project."""
        return f"{channel}:{project_name(self._app.workspace)}"

    @staticmethod
    def fresh(like: str) -> str:
        """Return the name of a new session in the same folder as the session `like`."""
        return f"{like.partition('#')[0]}#{os.urandom(6).hex()}"

    def _is_here(self, info: SessionInfo, known: Mapping[str, SessionInfo]) -> bool:
        """Tell whether a session, or the one that it was forked from, belongs to this project."""
        seen: set[str] = set()
        while info.id not in seen and (parent := known.get(info.parent or "")):
            seen.add(info.id)
            info = parent
        if info.workspace:
            return info.workspace == str(self._app.workspace)
        return info.id.partition("#")[0].partition(":")[2] == project_name(self._app.workspace)


def project_name(folder: Path) -> str:
    """Return a short name for a folder that no other folder has: its own name and a hash of its path.

    Links are followed. A folder that is renamed or moved gets another name.
    """
    from hashlib import sha256

    path = folder.resolve()
    plain = re.sub(r"[^a-z0-9._-]+", "-", path.name.lower()).strip("-.")[:20]
    return f"{plain or 'folder'}-{sha256(os.fsencode(path)).hexdigest()[:8]}"
