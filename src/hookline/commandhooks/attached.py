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

    from hookline.app import Hookline
    from hookline.hooks.implementation import Options

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
            found = [self._kept(file) for file in files.read()]
        except HooklineError as error:
            self._failed("config", error)
            self.handlers.broken = [str(error)]  # nobody can tell whether it would have denied
            self._attach()
            return
        self._files = {file.name: file for file in found}
        problems = [problem for file in found for problem in file.table.problems]
        self.handlers.broken = problems if files.defaults.on_failure == "deny" else []
        self.handlers.use(self.hooks)
        self._attach()

    def _kept(self, file: HooksFile) -> HooksFile:
        """A file as it is now, or its last working version where it cannot be used any more."""
        before = self._files.get(file.name)
        inert = bool(file.sha256) and not file.table.hooks and not file.table.problems
        keeps = (
            before is not None
            and bool(before.table.hooks)
            and (bool(file.table.problems) or (inert and self._still_trusted(before)))
        )
        for problem in file.table.problems:
            more = "; its last working version stays" if keeps else ""
            self._failed(file.name, SettingsError(problem + more))
        for warning in file.table.warnings:
            if warning not in self._app.plugins.warnings:
                self._app.plugins.warn(warning)
        if keeps and before is not None:
            table = Table(before.table.hooks, file.table.problems, file.table.warnings)
            return HooksFile(file.name, table, before.sha256)
        return file

    def _still_trusted(self, file: HooksFile) -> bool:
        path = self._app.workspace / file.name.removeprefix("project/")
        return self._app.trust.has(path, file.sha256)

    def _failed(self, name: str, error: HooklineError) -> None:
        self._names.add(name)
        self._app.plugins.failed(name, "loading", error)

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
        return Implementation(hook.spec, handler, options, name=NAME, seq=self._seq)
