"""The hook files of an app: found, attached in their place, reloaded while it runs.

    await app.hook_files.reload()

All hook files stand at one place in the order of handlers, after the plugins of packages, and keep it
when they are reloaded. A dispatch that is under way finishes with what it began with.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hookline.events import ResourcesDiscoverEvent
from hookline.hooks import NEWEST
from hookline.hooks.errors import HooklineError, error_text

if TYPE_CHECKING:
    from asyncio import Lock

    from hookline.plugins.hook_files import HookFile, HookFolder, Loaded
    from hookline.plugins.sources import FileSource
    from hookline.plugins.trust import Trust, TrustItem
    from hookline.plugins.watcher import Stamps

    from .app import Hookline

Group = Literal["own", "extra"]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The result of a reload."""

    files: list[str]
    handlers: int
    problems: list[str] = field(default_factory=list[str])
    inert: int = 0
    dropped: list[str] = field(default_factory=list[str])
    """What ran until now and is inert from now on."""

    def __str__(self) -> str:
        count = f"{len(self.files)} hook file{'' if len(self.files) == 1 else 's'}"
        lines = [f"{count}, {self.handlers} handler{'' if self.handlers == 1 else 's'}", *self.problems]
        lines += [f"dropped, because it changed since it was trusted: {name}" for name in self.dropped]
        if self.inert:
            lines.append(inert_text(self.inert))
        return "\n".join(lines)


class HookFiles:
    """Loads the hook files of an app, and reloads them."""

    def __init__(self, app: Hookline) -> None:
        self.app = app
        self.wanted = False
        """Whether this app uses hook files; set by `load_hooks`."""
        self.entering: Callable[[], None] | None = None
        """Is called before files are loaded for the first time; the command line sets it."""
        self.shipped: list[Path] = []
        """Folders of hook files that plugins of Hookline bring; they load before all others."""
        self.announced: int | None = None
        """How many inert parts of the project a person was shown."""
        self._files: dict[Group, list[HookFile]] = {"own": [], "extra": []}
        self._names: set[str] = set()
        """Whatever was reported under, so that a reload starts with a clean sheet."""
        self._extra: list[Path] = []
        self._skills: list[Path] = []
        """Folders of skills that `resources_discover` named."""
        self._seq: int | None = None
        self._stamps: Stamps = {}
        self._lock: Lock | None = None

    @property
    def files(self) -> list[HookFile]:
        """The files that are loaded, in their order."""
        return [*self._files["own"], *self._files["extra"]]

    @property
    def folders(self) -> list[HookFolder]:
        """The folders of hook files: Hookline's own, the profile's, the project's."""
        from hookline.plugins.hook_files import HookFolder
        from hookline.plugins.project import HOOKS

        app = self.app
        folders = [
            *(HookFolder("builtin", folder) for folder in self.shipped),
            HookFolder("profile", app.config.profiled.hooks_dir),
        ]
        if app.project:
            folders.append(HookFolder("project", app.workspace / HOOKS, app.workspace))
        return folders

    # --- loading ------------------------------------------------------------------------------

    def load(self) -> None:
        """Load the folders' files on the first call; of a project, only trusted files."""
        if self.wanted and self._seq is None:
            if self.entering is not None:
                self.entering()
            self._seq = self.app.hooks.next_seq()
            self._load_own()

    async def start(self) -> None:
        """Load everything, also what plugins and hook files point to (`resources_discover`)."""
        from asyncio import Lock

        self._lock = Lock()
        self.load()
        if self.wanted:
            await self._discover("startup")

    async def reload(self) -> Reloaded:
        """Read settings and files again: old handlers and tools go, new ones come; conversations stay.

        A user's file that cannot be used any more is reported, and its last working version stays. What
        changed in a project since it was trusted is dropped.
        """
        if self._lock is None:
            raise HooklineError("hook files are reloaded only inside `async with app.running()`")
        async with self._lock, self.app.sessions.reloading():
            self.app.plugins.forget_failures(self._names)
            self._names.clear()
            before, guarded = self._running_of_project(), self._guarded_by_project()
            faults = self._reload_settings()
            self._load_own()
            await self._discover("reload")
            gone = sorted(before - self._running_of_project())
            dropped = [f"{name}{_unguarded(guarded.get(name, []))}" for name in gone]
        mine = [f for f in self.app.failures if f.plugin in self._names]
        handlers = sum(len(file.implementations) for file in self.files)
        problems = [*faults, *(str(failure) for failure in mine)]
        return Reloaded([f.name for f in self.files], handlers, problems, len(self.inert()), dropped)

    def _running_of_project(self) -> set[str]:
        """The active parts of the project: its hook files, settings and servers."""
        names = {file.name for file in self.files if file.name.startswith("project/")}
        if self.app.config.trusted:
            from hookline.plugins.project import CONFIG

            names.add(CONFIG.as_posix())
        return names

    def _guarded_by_project(self) -> dict[str, list[str]]:
        """The hooks that each of the project's files guards."""
        return {
            file.name: sorted({impl.spec.name for impl in file.implementations if impl.guard})
            for file in self.files
        }

    def _reload_settings(self) -> list[str]:
        """Read the settings again and return their errors. A project's changed settings no longer
        count.
        """
        config = self.app.config
        try:
            config.reload()
            self.app.subagents.reload()
            self.app.reload_gates()
        except HooklineError as error:
            return [str(error)]
        return [config.fault] if config.fault else []

    def _load_own(self) -> None:
        self._check_record()
        self._load("own", self.folders)

    async def _discover(self, reason: Literal["startup", "reload"]) -> None:
        """Ask where else to look, and look there."""
        hook, app = self.app.hooks["resources_discover"], self.app
        answers: list[Any] = []
        if hook.live:
            event = ResourcesDiscoverEvent(cwd=str(app.workspace), reason=reason)
            answers = await hook.fire(event, app.context(""))
        self._extra = [self._place(p) for a in answers for p in a.hook_paths or ()]
        self._skills = [self._place(p) for a in answers for p in a.skill_paths or ()]
        self._load("extra", [self._extra_folder(path) for path in dict.fromkeys(self._extra)])
        loaded = app.hooks["resources_loaded"]
        if loaded.live:
            await loaded.fire([*self._skills], reason)

    def _place(self, path: str) -> Path:
        return self.app.workspace / Path(path).expanduser()

    def _extra_folder(self, path: Path) -> HookFolder:
        from hookline.plugins.hook_files import HookFolder
        from hookline.plugins.project import belongs

        of_project = belongs(path, self.app.workspace)
        label = str(path.parent if path.suffix == ".py" else path)
        return HookFolder(label, path, self.app.workspace if of_project else None, named=True)

    def _load(self, group: Group, folders: Iterable[HookFolder]) -> None:
        """Replace the files of a group."""
        from hookline.plugins.hook_files import load_folder

        if self._seq is None:
            return
        self._note_stamps()  # before reading: what changes meanwhile is read again
        before = {file.name: file for file in self._files[group]}
        after: list[HookFile] = []
        for folder in folders:
            judge = partial(_judge, self.app.trust, folder)
            loaded = load_folder(
                folder,
                self.app.hooks,
                seq=self._seq,
                judge=judge,
                skips=self.app.absences.leaves_out,
            )
            kept = self._kept(folder, loaded, before)
            after += sorted([*loaded.files, *kept], key=lambda file: file.source.path.name)
            for name, error in loaded.problems:
                if not self.app.absences.leaves_out(name):
                    is_kept = any(file.name == name for file in kept)
                    self._failed(
                        name, error, kept=is_kept, left_out=self._counts(folder, name) and not is_kept
                    )
        self._exchange(group, after)

    def _kept(self, folder: HookFolder, loaded: Loaded, before: dict[str, HookFile]) -> list[HookFile]:
        """The old versions of a user's files that cannot be used as they are now."""
        if folder.project is not None:
            return []
        names = {name for name, _ in loaded.problems}
        found = (before.get(name) for name in names)
        return [file for file in found if file is not None and file.source.path.exists()]

    def _check_record(self) -> None:
        """Report a trust record that cannot be used."""
        from hookline.errors import TrustError

        try:
            self.app.trust.projects()
        except TrustError as error:
            self._failed("trust", error, left_out=False)  # what it lists is inert

    def _counts(self, folder: HookFolder, name: str) -> bool:
        """Whether a file that fails should have run: in a project, if it was ever trusted."""
        if folder.project is None:
            return True
        root = folder.path.parent if folder.path.suffix == ".py" else folder.path
        path = root / name.removeprefix(folder.label).removeprefix("/")
        return self.app.trust.knows_place(folder.project, path)

    def _failed(
        self, name: str, error: HooklineError, *, kept: bool = False, left_out: bool = True
    ) -> None:
        from hookline.errors import HookFileError

        self._names.add(name)
        if kept:
            error = HookFileError(f"{error}; its last working version stays")
        self.app.plugins.failed(name, "loading", error, left_out=left_out)

    # --- attaching ----------------------------------------------------------------------------

    def _exchange(self, group: Group, files: list[HookFile]) -> None:
        """Attach a group's files in the place of the old ones, in one step for each hook."""
        hooks, old = self.app.hooks, self.files
        if not files and not self._files[group]:
            return
        self._files[group] = files
        gone = [file for file in old if file not in self.files]
        self._arrange()
        with hooks.lock:
            was = [impl for file in old for impl in file.implementations]
            now = [impl for file in self.files for impl in file.implementations]
            for name in {impl.spec.name for impl in (*was, *now)}:
                hooks[name].exchange(was, [impl for impl in now if impl.spec.name == name])
        for file in gone:
            self.app.plugins.take_out(file.name)  # its tools
        fresh = [file for file in files if file not in old]
        self._names.update(file.name for file in files)
        for file in fresh:
            self.app.plugins.undo_with(file.name, partial(self._drop, file))
        self._register_tools(fresh)
        used = {id(file.package) for file in self.files}
        for file in gone:
            if id(file.package) not in used:
                file.package.close()

    def _arrange(self) -> None:
        """Give each handler its place: as if they had been registered one after the other."""
        impls = [impl for file in self.files for impl in file.implementations]
        for position, impl in enumerate(impls):
            last_first = impl.tryfirst or (impl.spec.order is NEWEST and not impl.trylast)
            impl.place_at(-position if last_first else position)

    def _register_tools(self, fresh: list[HookFile]) -> None:
        """Ask new files for their tools, where the others have been asked already."""
        if "tools" in self.app.__dict__:
            hook = self.app.hooks["register_tools"]
            for file in fresh:
                impls = [impl for impl in file.implementations if impl.spec is hook.spec]
                if impls:
                    self.app.plugins.register_tools(self.app.tools, hook.only(impls)())

    def _drop(self, file: HookFile) -> None:
        """Take a file out that failed after it was attached."""
        hooks = self.app.hooks
        with hooks.lock:
            for impl in file.implementations:
                hooks[impl.spec.name].exchange([impl], ())
        for files in self._files.values():
            if file in files:
                files.remove(file)

    # --- trust --------------------------------------------------------------------------------

    def items(self) -> list[TrustItem]:
        """Everything of the project that needs trust, trusted or not."""
        from hookline.plugins.project import hook_items_in, project_items, skill_items_in

        app = self.app
        if not app.project:
            return []
        items = project_items(app.workspace, app.config.own_values())
        for path in self._extra:
            items.extend(hook_items_in(path, app.workspace))
        for path in self._skills:
            items.extend(skill_items_in(path, app.workspace))
        return [*{item.path: item for item in items}.values()]

    def inert(self) -> list[TrustItem]:
        """What the project brings that does nothing, because it is not trusted."""
        from hookline.errors import TrustError

        items = self.items()
        try:
            return self.app.trust.pending(self.app.workspace, items)
        except TrustError:
            return items

    # --- changes ------------------------------------------------------------------------------

    @asynccontextmanager
    async def watching(self, tell: Callable[[str], Any]) -> AsyncGenerator[None]:
        """Reload whenever a hook file changes, and report the result."""
        from asyncio import CancelledError, create_task

        task = create_task(self._watch(tell))
        try:
            yield
        finally:
            task.cancel()
            try:
                await task
            except CancelledError:
                pass

    async def _watch(self, tell: Callable[[str], Any]) -> None:
        from hookline.plugins.watcher import changes

        try:
            async for _ in changes(self.places, lambda: self._stamps):
                tell(str(await self.reload()))
        except Exception as error:
            tell(f"hook files are no longer watched, /reload still reads them: {error_text(error)}")

    def places(self) -> list[Path]:
        """The folders of hook files, and the files that the project's commands run from."""
        paths = [*(folder.path for folder in self.folders), *self._extra]
        found = [path.parent if path.suffix == ".py" else path for path in paths]
        return [*found, *self.app.trust.watched()] if self.app.project else found

    def _note_stamps(self) -> None:
        from hookline.plugins.watcher import stamps

        self._stamps = stamps(self.places())


def _judge(trust: Trust, folder: HookFolder, source: FileSource) -> None:
    """Refuse a project's file that was not trusted with exactly these bytes."""
    from hookline.errors import Untrusted

    if folder.project is not None and not trust.allows(source.path, source.content):
        raise Untrusted(f"{source.path} is not trusted; `hookline trust` shows it and asks")


def _unguarded(hooks: list[str]) -> str:
    """That the guards of a file are gone."""
    return f"; nothing guards {', '.join(hooks)} in its place" if hooks else ""


def inert_text(count: int) -> str:
    """What to do about things that are not trusted."""
    subject = "1 thing of this project is" if count == 1 else f"{count} things of this project are"
    return f"{subject} inert, because not trusted; `hookline trust` shows what would run and asks"
