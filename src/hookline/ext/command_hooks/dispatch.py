"""Asking: the hooks that a moment concerns, all at once, each run or posted to once."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.plugins.reach import unclear_text
from hookline.sandbox.view import EMPTIED
from hookline.types import HookContext

from .answer import HookAnswer, changed, failed, of_command, of_output
from .environment import environment
from .process import CommandExit, HookProcess
from .settings import CommandHook
from .spares import Spares
from .transcript import Transcripts

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

log = logging.getLogger("hookline")

_PATHS = re.compile(r"[^\s'\"=;|&()<>]+")
"""What could be a path in a command line."""

_FREQUENT = ("PreToolUse", "PostToolUse")
"""The events whose hooks have a process ready for the next time."""


class Asking:
    """Puts the hooks of an app to work."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._hooks: dict[str, list[CommandHook]] = {}
        self._transcripts = Transcripts(app.home, app.workspace)
        self._environs: dict[tuple[bool, frozenset[str]], dict[str, str]] = {}
        self._readable: dict[str, tuple[Path, ...]] = {}
        self._spares = Spares()
        self._background: set[asyncio.Task[Any]] = set()

    def use(self, hooks: Iterable[CommandHook]) -> None:
        """Have these hooks from now on, in the environment as it is now."""
        self._spares.close()
        self._spares = Spares()
        self._environs = {}
        self._readable = {}
        self._hooks = {}
        for hook in hooks:
            self._hooks.setdefault(hook.event, []).append(hook)

    async def ask(
        self,
        event: str,
        ctx: HookContext,
        subjects: tuple[str, ...],
        about: Mapping[str, Any],
    ) -> list[HookAnswer]:
        """What the hooks that an event concerns answer, in the order in which they are written."""
        chosen = self._chosen(event, subjects, about)
        if not chosen:
            return []
        body = Body(partial(self._body, event, ctx, about), shared=len(chosen) > 1)
        for hook in chosen:
            if hook.background:
                self.later(self._told(hook, body, ctx))
        waited = [hook for hook in chosen if not hook.background]
        if len(waited) == 1:
            answers = [await self._one(waited[0], body)]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(hook, body)) for hook in waited]
            answers = [task.result() for task in tasks]
        self._tell(answers, ctx)
        return answers

    def later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something that nobody waits for before the app ends."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """Wait for what runs in the background; each has its time limit."""
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)
        self._spares.close()

    # --- which ----------------------------------------------------------------------------------

    def _chosen(
        self, event: str, subjects: tuple[str, ...], about: Mapping[str, Any]
    ) -> list[CommandHook]:
        chosen: dict[Any, CommandHook] = {}
        for hook in self._hooks.get(event, ()):
            if not hook.matcher.matches(subjects):
                continue
            if hook.condition is not None and not hook.condition.holds(
                subjects, about.get("tool_input") or {}, str(self._app.workspace)
            ):
                continue
            same = chosen.get(hook.key)
            if same is None or (hook.denies and not same.denies):
                chosen[hook.key] = hook  # of two that are the same, the stricter one
        return [*chosen.values()]

    # --- with what ------------------------------------------------------------------------------

    async def _body(self, event: str, ctx: HookContext, about: Mapping[str, Any]) -> bytes:
        """The JSON that hooks get."""
        app = self._app
        session_id = root_of(app, ctx)
        given: dict[str, Any] = {
            "session_id": session_id,
            "transcript_path": await self._transcript(session_id),
            "cwd": str(app.workspace),
            "permission_mode": "default",
            "hook_event_name": event,
            "user": ctx.identity.user,
            "channel": ctx.identity.channel,
        }
        if ctx.depth > 0:
            given["agent_id"] = ctx.session_id.rpartition("/")[2]
            given["agent_type"] = ctx.agent_id
            if event == "SubagentStop":
                given["agent_transcript_path"] = await self._transcript(ctx.session_id)
        return json.dumps({**given, **about}, default=str).encode()

    async def _transcript(self, session_id: str) -> str:
        """The path of a session's transcript, brought up to date where there is a tape."""
        store = self._app.get_tape_store()
        if store is None or not session_id:
            return self._transcripts.path(session_id or "none")
        try:
            return await self._transcripts.write(store, session_id)
        except (OSError, HooklineError) as error:  # a hook judges the call, not the transcript
            log.warning("command_hook.transcript session=%s: %s", session_id, error_text(error))
            return self._transcripts.path(session_id)

    # --- one hook -------------------------------------------------------------------------------

    async def _one(self, hook: CommandHook, body: Body) -> HookAnswer:
        """One hook's answer; whatever goes wrong is an answer too."""
        if hook.obstacle is not None and (why := hook.obstacle()):
            return changed(hook, why)
        if hook.unclear and not confines(self._app):
            return failed(hook, unclear_text(hook.unclear))
        try:
            if hook.url:
                from .http import post

                return of_output(hook, await post(hook, await body.get(), os.environ))
            return of_command(hook, await self._run(hook, body))
        except OSError as error:
            return failed(hook, f"it cannot be started: {error.strerror or error}")
        except HooklineError as error:
            return failed(hook, str(error))
        except Exception as error:
            return failed(hook, error_text(error))

    async def _run(self, hook: CommandHook, body: Body) -> CommandExit:
        """Run a hook's command, in the process that is ready for it if there is one."""
        if hook.event not in _FREQUENT or hook.obstacle is not None:
            return await self._start(hook).finish(body.get, hook.timeout)
        profile, spares = self._app.sandbox.profile_of("command_hooks", hook.sandbox), self._spares
        spare = spares.take(hook.place, profile)
        process = spare or self._start(hook)
        can_wait = spare is not None or process.is_like_new(profile)
        ended = await process.finish(body.get, hook.timeout)
        if can_wait:
            spares.prepare(hook.place, partial(self._start, hook, waits=True))
        return ended

    def _start(self, hook: CommandHook, *, waits: bool = False) -> HookProcess:
        workspace, environ = self._app.workspace, self._environ(hook)
        return HookProcess(command_of(hook), workspace, environ, waits=waits, **self._inside(hook))

    def _environ(self, hook: CommandHook) -> dict[str, str]:
        """What a hook sees of the environment: made once for all hooks that may see the same."""
        project, allowed = hook.obstacle is not None, hook.allowed or frozenset()
        if (project, allowed) not in self._environs:
            keep = (*self._app.sandbox.settings.environment, *allowed)
            made = environment(str(self._app.workspace), keep)
            if project:  # compiled files that lie in a project are not covered by its trust
                made["PYTHONPYCACHEPREFIX"] = self._app.trust.pycache
            self._environs[project, allowed] = made
        return self._environs[project, allowed]

    def _inside(self, hook: CommandHook) -> dict[str, Any]:
        """How a hook is confined: it may read the transcript, and the files that a user's own names."""
        if hook.place not in self._readable:
            named: list[Path] = []
            if hook.obstacle is None:
                settings = Path.home() / ".claude" / "settings.json"
                private = (self._app.home, self._app.workspace, settings, Path("/tmp/other"))
                named = places_named(command_of(hook), private)
            self._readable[hook.place] = (self._transcripts.folder, *named)
        return {
            "sandbox": self._app.sandbox,
            "kind": "command_hooks",
            "profile": hook.sandbox,
            "network": hook.network,
            "project": hook.obstacle is not None,
            "read": self._readable[hook.place],
        }

    async def _told(self, hook: CommandHook, body: Body, ctx: HookContext) -> None:
        self._tell([await self._one(hook, body)], ctx)

    def _tell(self, answers: list[HookAnswer], ctx: HookContext) -> None:
        """Tell the person what hooks have to say to them, and which failed."""
        for answer in answers:
            if answer.failure:
                log.warning("command_hook.failed %s: %s", answer.hook.place, answer.failure)
                ctx.notify(f"{answer.hook.place} failed: {answer.failure}")
            if answer.message:
                ctx.notify(answer.message)


class Body:
    """The JSON that the hooks of one event get, made once, while their processes start."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, bytes]], *, shared: bool) -> None:
        self._make = make
        self._shared = shared
        self._made: asyncio.Task[bytes] | None = None

    async def get(self) -> bytes:
        """All of it; where several wait, one may be cancelled and the others still get it."""
        if not self._shared:
            return await self._make()
        if self._made is None:
            self._made = asyncio.create_task(self._make())
        return await asyncio.shield(self._made)


def confines(app: Hookline) -> bool:
    """Whether command hooks run in a sandbox."""
    sandbox = getattr(app, "sandbox", None)
    return bool(sandbox is not None and sandbox.active)


def command_of(hook: CommandHook) -> list[str]:
    """The words to start: a program with its arguments, or a line for the shell."""
    return [hook.command, *hook.args] if hook.args is not None else [shell(), "-c", hook.command]


@cache
def shell() -> str:
    """The shell that commands are written for, or the one that every system has."""
    return next(
        (path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK)), "/bin/sh"
    )


def places_named(words: Iterable[str], private: Iterable[Path]) -> list[Path]:
    """The folders of the files that the words of a command name by an absolute path.

    A folder that holds a `private` place, or sockets, is too much to show: then it is the file alone.
    """
    found: dict[Path, None] = {}
    for word in words:
        for name in _PATHS.findall(word):
            path = Path(os.path.expandvars(name)).expanduser()
            if path.is_absolute() and path.is_file():
                folder = path.resolve().parent
                broad = any(place.is_relative_to(folder) for place in private)
                broad = broad or any(folder.is_relative_to(place) for place in EMPTIED)
                found[path if broad else folder] = None
    return [*found]


def root_of(app: Hookline, ctx: HookContext) -> str:
    """The session of the person: a subagent's hooks are told of the conversation it belongs to."""
    if ctx.depth == 0:
        return ctx.session_id
    run = app.sessions.run(ctx.session_id)
    return run.lineage[0] if run is not None and run.lineage else ctx.session_id.partition("/")[0]
