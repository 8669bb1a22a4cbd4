"""What is attached: a handler on each event that some command hook is for, exchanged at a reload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookline.hooks import HooklineError
from hookline.hooks.implementation import Implementation

from .errors import SettingsError
from .files import Files, HooksFile
from .handlers import Handlers
from .prompt import PromptContext
from .settings import CommandHook, Table

if TYPE_CHECKING:
    from pathlib import Path

    from hookline.hooks.implementation import Options
    from hookline.runtime.app import Hookline

NAME = "command hooks"

ON = {
    "tool_call": ("PreToolUse",),
    "authorize_action": ("PreToolUse",),
    "tool_result": ("PreToolUse", "PostToolUse", "PostToolUseFailure"),
    "model_call": ("PreToolUse", "PostToolUse", "PostToolUseFailure"),
    "input": ("UserPromptSubmit",),
    "session_start": ("SessionStart",),
    "session_compact": ("SessionStart",),
    "session_shutdown": ("SessionEnd",),
    "agent_stop": ("Stop", "SubagentStop"),
    "session_before_compact": ("PreCompact",),
    "notification": ("Notification",),
}
"""The events that have a handler, and for which hooks."""

_GATES = {"tool_call", "tool_result", "input", "agent_stop", "session_before_compact"}


class Attached:
    """The command hooks of an app."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._seq = app.hooks.next_seq()  # a reload keeps the place in the order
        self._implementations: list[Implementation] = []
        self._files: dict[str, HooksFile] = {}
        self._projects: dict[str, HooksFile] = {}
        """The project's files whose hooks ran, as they were trusted."""
        self._names: set[str] = set()
        self._prompt: PromptContext | None = None
        self.handlers = Handlers(app)

    @property
    def hooks(self) -> list[CommandHook]:
        """Those that run, in the order in which they are written."""
        return [hook for file in self._files.values() for hook in file.table.hooks]

    def load(self, home: Path | None) -> None:
        """Read every place, and attach what is there in place of what was."""
        app = self._app
        app.plugins.forget_failures(self._names)
        self._names.clear()
        try:
            files = Files(app, home)
            skips = app.absences.leaves_out
            found = [self._kept(file) for file in files.read() if not skips(file.name)]
            dropped = self._dropped(found)
        except HooklineError as error:
            self._failed("config", error)
            self.handlers.broken = [str(error)]  # nobody can tell whether it would have denied
            self._attach()
            return
        self._files = {file.name: file for file in found}
        whole = [f.name for f in found if f.table.hooks and not f.table.problems]
        app.absences.parts["command-hooks"] = whole
        problems = [problem for file in found for problem in file.table.problems]
        self.handlers.broken = [*dropped, *(problems if files.defaults.on_failure == "deny" else [])]
        self.handlers.use(self.hooks)
        self._attach()

    def _kept(self, file: HooksFile) -> HooksFile:
        """A file as it is now; a user's file that cannot be read keeps its last working version."""
        before = self._files.get(file.name)
        keeps = (
            before is not None
            and not before.sha256
            and bool(before.table.hooks)
            and bool(file.table.problems)
        )
        for problem in file.table.problems:
            more = "; its last working version stays" if keeps else ""
            counts = not keeps and self._counts(file)
            self._failed(file.name, SettingsError(problem + more), left_out=counts)
        for warning in file.table.warnings:
            if warning not in self._app.plugins.warnings:
                self._app.plugins.warn(warning)
        if keeps and before is not None:
            table = Table(before.table.hooks, file.table.problems, file.table.warnings)
            return HooksFile(file.name, table, before.sha256)
        return file

    def _counts(self, file: HooksFile) -> bool:
        """Whether a file that cannot be used should have run: in a project, if it was ever trusted."""
        if not file.name.startswith("project/") or file.sha256:
            return True
        project = self._app.workspace
        return self._app.trust.knows_place(project, project / file.name.removeprefix("project/"))

    def _dropped(self, found: list[HooksFile]) -> list[str]:
        """The project's guards that ran until now and changed, or are gone, without a person's word.

        They may be what the agent would like to get rid of, so tool calls are denied until a person
        trusts the file again, or revokes its trust.
        """
        now = {file.name: file for file in found if file.sha256 and file.table.hooks}
        told: list[str] = []
        for name, file in {**self._projects}.items():
            path = self._app.workspace / name.removeprefix("project/")
            if name in now:
                continue
            if not self._app.trust.has(path, file.sha256):
                del self._projects[name]
                continue
            text = f"{path} changed since it was trusted, so its hooks are dropped"
            self._failed(name, SettingsError(f"{text}; `hookline trust` shows it and asks"))
            if any(hook.event == "PreToolUse" for hook in file.table.hooks):
                told.append(text)
        self._projects |= now
        return told

    def _failed(self, name: str, error: HooklineError, *, left_out: bool = True) -> None:
        self._names.add(name)
        self._app.plugins.failed(name, "loading", error, left_out=left_out)

    # --- attaching ----------------------------------------------------------------------------

    def _attach(self) -> None:
        hooks, wanted = self._app.hooks, {hook.event for hook in self.hooks}
        if self.handlers.broken:
            wanted.add("PreToolUse")
        guarded = {hook.event for hook in self.hooks if hook.denies}
        if self.handlers.broken:
            guarded.add("PreToolUse")
        fresh = [
            self._implementation(name, guard=name in _GATES and not guarded.isdisjoint(events))
            for name, events in ON.items()
            if not wanted.isdisjoint(events)
        ]
        old, self._implementations = self._implementations, fresh
        with hooks.lock:
            for name in ON:
                gone = [impl for impl in old if impl.spec.name == name]
                new = [impl for impl in fresh if impl.spec.name == name]
                if gone or new:
                    hooks[name].exchange(gone, new)
        if self._prompt is None and not wanted.isdisjoint({"UserPromptSubmit", "SessionStart"}):
            self._prompt = PromptContext(self.handlers.take_context)
            hooks.add(self._prompt, name=NAME)

    def _implementation(self, name: str, *, guard: bool) -> Implementation:
        handler: Any = getattr(self.handlers, name)
        options: Options = {"guard": True} if guard else {}
        if name == "authorize_action":
            options = {"trylast": True}  # whoever else answers is not overridden
        hook = self._app.hooks[name]
        places = dict.fromkeys(each.location for each in self.hooks if each.event in ON[name])
        location = ", ".join(places)
        return Implementation(hook.spec, handler, options, name=NAME, seq=self._seq, location=location)
