"""`HookDesk`: takes the events of hosts and answers each in the host's format. It never raises."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from re import fullmatch
from time import monotonic
from typing import TYPE_CHECKING

from hookline.errors import BridgeError, HooklineError
from hookline.hooks.errors import error_text
from hookline.system.file_lock import Lock
from hookline.system.home import home as default_home
from hookline.system.log_redaction import without_secrets
from hookline.system.processes import note_agent

from .formats import HostFormat, format_of
from .moment import HookOutput, Judgement, Moment

if TYPE_CHECKING:
    from .home import HomeBridge
    from .session import HostSession

SPARE = 5.0
"""Seconds between the end of our patience and that of the client."""
MOST = 256
"""Sessions that stay in memory."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}"


class HookDesk:
    """The sessions of hosts in this process."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = home or default_home()
        self._bridges: dict[tuple[str, Path], HomeBridge] = {}
        self._sessions: dict[str, OpenHostSession] = {}
        """By name, the one that was used last at the end."""
        self._retired: list[HomeBridge] = []
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._loading = asyncio.Lock()

    async def answer(
        self,
        host: str,
        payload: bytes,
        limit: float,
        project: Path | None = None,
        client: int | None = None,
    ) -> HookOutput:
        """The answer to one event of a host; a failure is an answer too, and a gate's is no.

        `client` is the process that the host started for it.
        """
        form: HostFormat | None = None
        kind = None
        try:
            form = format_of(host)
            given = form.parse(payload)
            kind = form.kind_of(given)
            workspace = project or form.workspace_of(given)
            moment = form.read(given, workspace)
            if client is not None and session_name(host, moment.session) not in self._sessions:
                note_agent(self.home, client)
            judgement = await self._judged(form, moment, workspace, max(limit - SPARE, limit / 2))
            return form.answer(moment, carried(form, moment, judgement), workspace)
        except TimeoutError:
            reason = f"there was no answer within {limit:g} s"
        except HooklineError as error:
            reason = str(error)
        except Exception as error:  # a mistake of ours or a plugin's
            reason = error_text(error)
        reason = without_secrets(reason)
        return (
            HookOutput(stderr=f"hookline: {reason}\n", code=2)
            if form is None
            else form.failure(kind, reason)
        )

    async def _judged(
        self, form: HostFormat, moment: Moment, workspace: Path, seconds: float
    ) -> Judgement:
        name = session_name(form.name, moment.session)
        async with asyncio.timeout(seconds):
            async with self._opening[name]:
                opened = await self._opened(form, name, workspace, seconds)
                opened.busy += 1
            try:
                return await opened.session.judge(moment)
            finally:
                opened.busy -= 1

    async def _opened(
        self, form: HostFormat, name: str, workspace: Path, seconds: float
    ) -> OpenHostSession:
        """The session, on a bridge that is up to date."""
        from .session import HostSession

        known = self._sessions.get(name)
        bridge = await self._bridge(form.name, known.workspace if known else workspace)
        if known is not None and known.bridge is not bridge and not known.busy:
            await self._sessions.pop(name).close()
            known = None
        if known is None:
            lock = await self._locked(name, seconds)
            waits = None if form.asks else max(seconds - SPARE, seconds / 2)
            known = OpenHostSession(HostSession(bridge, name, waits), bridge, workspace, lock)
        self._sessions.pop(name, None)
        self._sessions[name] = known
        await self._tidy()
        return known

    async def _bridge(self, host: str, workspace: Path) -> HomeBridge:
        """The bridge of a host in a workspace: a new one if the files that it loaded have changed."""
        from .home import HomeBridge

        async with self._loading:
            found = self._bridges.get((host, workspace))
            if found is not None and found.app.stamps() != found.app.loaded:
                self._retired.append(self._bridges.pop((host, workspace)))
                found = None
            if found is None:
                found = HomeBridge(host, home=self.home, workspace=workspace)
                await found.opened()
                self._bridges[host, workspace] = found
            return found

    async def _locked(self, name: str, seconds: float) -> Lock:
        """The lock of a session, which one process has at a time."""
        lock = Lock(self.home / "hook" / f"{sha256(name.encode()).hexdigest()[:32]}.lock")
        ends = monotonic() + seconds * 0.9
        while not lock.acquire():
            if monotonic() > ends:
                raise BridgeError(f"another process works on the session {name}, and does not end")
            await asyncio.sleep(0.05)
        return lock

    async def _tidy(self) -> None:
        """Close what is not used any more."""
        idle = [name for name, each in self._sessions.items() if not each.busy]
        for name in idle[: max(len(self._sessions) - MOST, 0)]:
            self._opening.pop(name, None)
            await self._sessions.pop(name).close()
        used = {id(each.bridge) for each in self._sessions.values()}
        for bridge in [bridge for bridge in self._retired if id(bridge) not in used]:
            self._retired.remove(bridge)
            await bridge.close()

    async def close(self) -> None:
        """Leave all sessions to other processes, and close the home."""
        for opened in self._sessions.values():
            await opened.close()
        self._sessions.clear()
        for bridge in [*self._bridges.values(), *self._retired]:
            await bridge.close()


class OpenHostSession:
    """A session in this process, and what it uses."""

    def __init__(self, session: HostSession, bridge: HomeBridge, workspace: Path, lock: Lock) -> None:
        self.session, self.bridge, self.workspace = session, bridge, workspace
        self.busy = 0
        self._lock = lock

    async def close(self) -> None:
        """Leave the session to another process."""
        try:
            with suppress(HooklineError):
                await self.session.park()
        finally:
            self._lock.release(forget=True)


def carried(form: HostFormat, moment: Moment, judgement: Judgement) -> Judgement:
    """A judgement that the host can carry out; a change that it cannot becomes a no."""
    if moment.kind != "prompt" or judgement.text is None or form.rewrites_prompts:
        return judgement
    if judgement.context:
        judgement.text = None
        return judgement
    reason = f"a handler rewrote the prompt, which {form.title} cannot do. Send this instead:"
    return Judgement(denied=True, reason=f"{reason}\n\n{judgement.text}", notes=judgement.notes)


def session_name(host: str, given: str) -> str:
    """The name of our session: the host's own if it is plain, otherwise its hash."""
    if not given:
        return f"{host}-unnamed"
    plain = fullmatch(_NAME, given)
    return (
        f"{host}-{given if plain else sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    )


def alone(host: str, payload: bytes, limit: float) -> tuple[int, bytes, bytes]:
    """Answer one event in a process of its own."""
    given = os.environ.get("CLAUDE_PROJECT_DIR")
    project = Path(given) if given else None

    async def run() -> HookOutput:
        desk = HookDesk()
        try:
            return await desk.answer(host, payload, limit, project, os.getpid())
        finally:
            await desk.close()

    output = asyncio.run(run())
    return output.code, encoded(output.stdout), encoded(output.stderr)


def encoded(text: str) -> bytes:
    """Text as bytes, whatever is in it."""
    return text.encode("utf-8", "replace")
