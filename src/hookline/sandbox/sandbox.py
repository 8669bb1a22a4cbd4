"""`Sandbox`: turns the command line of a child into one that confines it."""

from __future__ import annotations

import asyncio
import atexit
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from pathlib import Path
from threading import Lock

from hookline.errors import SandboxError
from hookline.system.children.process import TimeoutExpired, run
from hookline.types import NOBODY, Identity

from . import bubblewrap, landlock, limits, scratch, seatbelt, seccomp, secrets
from .environment import encoded, filtered
from .explain import explain
from .launch import Hold, Launch
from .placeholders import Placeholders
from .proxy import INSIDE, PORT, Client, Judge, Proxy, let_through, variables
from .settings import ChildLimits, Kind, Profile, SandboxSettings, strictest
from .view import FileView, SandboxPaths, guarded, view

_RELAY = Path(__file__).with_name("relay.py")
_RELAY_INSIDE = "/run/hookline/relay.py"
_FRESH = 5.0
"""Seconds for which it is remembered where secrets and toolchains are."""

_loosest: ContextVar[Profile] = ContextVar("loosest profile", default="off")


class Sandbox:
    """The sandbox of one app."""

    def __init__(
        self,
        *,
        workspace: Path,
        home: Path,
        settings: SandboxSettings | None = None,
        hidden: Sequence[Path] = (),
    ) -> None:
        self.settings = settings or SandboxSettings()
        own = tuple(secrets.unique([home, scratch.base(), *hidden]))
        self.places = SandboxPaths(workspace.resolve(), own, tuple(secrets.user_homes()))
        self._placeholders = Placeholders(self.places.workspace)
        self._views: dict[tuple[Profile, tuple[Path, ...]], tuple[float, FileView]] = {}
        self._temporary: dict[str, Path] = {}
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._judge: Judge = let_through
        self._proxy: Proxy | None = None

    @classmethod
    def none(cls, workspace: Path | None = None) -> Sandbox:
        """A sandbox that confines nothing."""
        return cls(
            workspace=workspace or Path.cwd(),
            home=Path("/nonexistent"),
            settings=SandboxSettings(enabled=False),
        )

    def use(self, settings: SandboxSettings) -> None:
        """Confine children that start from now on by other settings."""
        with self._lock:
            self.settings = settings
            self._views.clear()
            self.__dict__.pop("_found", None)

    # --- which one ------------------------------------------------------------------------------

    @cached_property
    def _found(self) -> tuple[str, str]:
        """The name of the sandbox that works here, and why there is none."""
        if not self.settings.enabled:
            return "none", "[sandbox] enabled = false"
        return probe()

    @property
    def name(self) -> str:
        """`bubblewrap`, `sandlock`, `seatbelt` or `none`."""
        return self._found[0]

    @property
    def active(self) -> bool:
        """Whether children are confined."""
        return self.name != "none"

    @property
    def reason(self) -> str:
        """Why there is no sandbox, and how to get one; empty if there is one."""
        return self._found[1]

    @property
    def missing(self) -> str:
        """What the active sandbox cannot do here; empty if there is nothing."""
        return missing(self.name)

    # --- profiles -------------------------------------------------------------------------------

    def profile_of(
        self, kind: Kind, profile: Profile | None = None, *, project: bool = False
    ) -> Profile:
        """The profile in which a child of a kind starts here and now."""
        chosen = profile or self.settings.profile_of(kind, project=project)
        if project:
            chosen = strictest(chosen, self.settings.profile_of(kind, project=True))
        return strictest(chosen, _loosest.get())

    @contextmanager
    def at_most(self, profile: Profile | None) -> Generator[None]:
        """Start no child in a looser profile inside this block."""
        if profile is None:
            yield
            return
        token = _loosest.set(strictest(_loosest.get(), profile))
        try:
            yield
        finally:
            _loosest.reset(token)

    # --- launching ------------------------------------------------------------------------------

    def launch(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        profile: Profile | None = None,
        kind: Kind = "shell",
        network: Sequence[str] | None = None,
        secrets: Mapping[str, str] | None = None,
        read: Sequence[Path] = (),
        session: str = "",
        call_id: str = "",
        identity: Identity = NOBODY,
        project: bool = False,
    ) -> Launch:
        """Confine a command.

        argv: The command.
        cwd: Its working directory.
        env: The environment to filter by the allow-list.
        profile: The profile, if it is not the one of the kind.
        kind: What starts it.
        network: The hosts that it may reach; None: as the settings say for the kind.
        secrets: Variables that it gets as they are.
        read: Files and folders that it needs of Hookline's own home.
        session: The session that it belongs to; children of one session share a temporary folder.
        call_id: The tool call that it belongs to.
        identity: On whose behalf it runs.
        project: Whether a project's configuration brings the command.
        """
        chosen = self.profile_of(kind, profile, project=project)
        if chosen == "off":
            return Launch(list(argv), {**env, **(secrets or {})}, cwd, chosen)
        environ = filtered(env, self.settings.environment, secrets)
        if not self.active:
            return Launch(list(argv), environ, cwd, chosen)
        environ["TMPDIR"] = "/tmp"
        environ.setdefault("XDG_CACHE_HOME", "/tmp/.cache")
        hosts = self.hosts_of(kind, chosen, network, project=project)
        seen = self._view(chosen, tuple(read))
        command = argv[-1] if kind in ("shell", "jobs") and argv else " ".join(argv)
        scope = f"{session or kind} of the project" if project else session or kind
        if self.name != "bubblewrap":
            return self._without_namespaces(argv, cwd, environ, seen, scope)
        client = (
            Client(kind, hosts, command, session, call_id, identity) if hosts and self._loop else None
        )
        group = f"{kind}-project" if project else kind
        return self._bubblewrap(argv, cwd, environ, seen, scope, client, group)

    def hosts_of(
        self,
        kind: Kind,
        profile: Profile,
        network: Sequence[str] | None = None,
        *,
        project: bool = False,
    ) -> tuple[str, ...]:
        """The hosts that a child may reach through the proxy; a project chooses among the user's."""
        configured = tuple(self.settings.hosts_of(kind))
        if network is not None:
            return tuple(host for host in network if not project or host in configured)
        return configured or (("*",) if profile == "open" else ())

    def _view(self, profile: Profile, read: tuple[Path, ...]) -> FileView:
        """A child's view of the file system; secrets are located again when one may have appeared."""
        now = time.monotonic()
        until, seen = self._views.get((profile, read), (0.0, None))
        if seen is None or until < now or (seen.watched and not seen.watched.unchanged):
            seen = view(self.places, self.settings, profile, read=read)
            self._views[profile, read] = (now + _FRESH, seen)
        return guarded(seen, self.places.workspace, self.settings.protect)

    def _without_namespaces(
        self, argv: Sequence[str], cwd: Path, env: dict[str, str], seen: FileView, scope: str
    ) -> Launch:
        """Confine by sandlock or Seatbelt: the network is on in `open`, else off."""
        temporary = self.temporary(scope).resolve()
        env = {**env, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(temporary / ".cache")}
        network = seen.profile == "open"
        hold = Hold()
        if self.name == "sandlock":
            variables = hold.hand_over("environment", encoded(env))
            bounds = self.settings.limits
            line = landlock.arguments(seen, temporary, bounds, network=network, variables=variables)
            env = {}
        else:  # the system takes DYLD_* from its own programs
            line = [seatbelt.PROGRAM, "-p", seatbelt.profile(seen, temporary, network=network)]
        line = [*limits.start(self.settings.limits, hold.waiting), *line, *argv]
        return Launch(line, env, cwd, seen.profile, hold.files, seen.note, hold, hold.close)

    def _bubblewrap(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: dict[str, str],
        seen: FileView,
        scope: str,
        client: Client | None,
        group: str,
    ) -> Launch:
        bwrap = bubblewrap.program()
        if bwrap is None:
            raise SandboxError("bwrap is gone; reinstall bubblewrap, or set [sandbox] enabled = false")
        folders = [path for each in seen.guarded for path in each.folders]
        files = {path: text for each in seen.guarded for path, text in each.files.items()}
        with ExitStack() as stack:
            if folders or files:
                self._placeholders.hold(folders, files)
                stack.callback(self._placeholders.release)
            if missing := [path for path in (*folders, *files) if not os.path.lexists(path)]:
                raise SandboxError(f"{missing[0]} cannot be kept from being created")
            hold = Hold()
            stack.callback(hold.close)
            # bubblewrap reads to the end of the pipe and closes it, so that the child does not get it
            options = [*_supported, "--block-fd", str(hold.waiting)]
            if (filtering := seccomp.opened()) is not None:
                options += ("--seccomp", str(hold.keep(filtering)))
            shared: list[tuple[Path, str]] = []
            inner = list(argv)
            if client is not None:
                proxy = self._served()
                token = proxy.admit(client)
                stack.callback(proxy.dismiss, token)
                shared = [(proxy.path, INSIDE), (_RELAY, _RELAY_INSIDE)]
                python = str(Path(sys.executable))
                inner = [python, "-I", "-S", _RELAY_INSIDE, INSIDE, token, str(PORT), *inner]
                env = {**env, **variables()}
            options += ("--args", str(hold.hand_over("environment", bubblewrap.variables(env))))
            temporary = self.temporary(scope)
            line = bubblewrap.arguments(bwrap, seen, temporary, cwd, options=options, shared=shared)
            bounds = self.settings.limits
            return Launch(
                [*limits.start(bounds, hold.waiting, group), *line, *limits.count(bounds), *inner],
                {},
                Path("/"),
                seen.profile,
                hold.files,
                seen.note,
                hold,
                stack.pop_all().close,
                partial(self._shows, seen, scope, temporary),
            )

    def _shows(self, seen: FileView, scope: str, temporary: Path) -> bool:
        """Whether a child that starts now would see the same files."""
        if seen.watched is None or self._temporary.get(scope) != temporary:
            return False
        return os.path.isdir(temporary) and seen.watched.unchanged  # noqa: PTH112

    # --- the network ----------------------------------------------------------------------------

    def start(self, judge: Judge = let_through, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Serve the network from a loop, or the running one: every connection goes to the judge."""
        self._loop = loop or asyncio.get_running_loop()
        self._judge = judge

    def stop(self) -> None:
        """Serve the network no more; children that start now have none."""
        self._loop = None
        with self._lock:
            proxy, self._proxy = self._proxy, None
        if proxy is not None:
            proxy.close()

    def _served(self) -> Proxy:
        """The proxy, listening; connections wait until the loop comes to it."""
        with self._lock:
            if self._proxy is None:
                assert self._loop is not None
                self._proxy = Proxy(self._judge)
                asyncio.run_coroutine_threadsafe(self._proxy.start(), self._loop)
            return self._proxy

    def explain(self, output: str, launch: Launch) -> str:
        """One line for the result of a command that failed because of the sandbox; else empty."""
        return explain(output, launch.profile) if self.active and launch.profile != "off" else ""

    def temporary(self, scope: str) -> Path:
        """The private temporary folder of a session; it is /tmp for its children."""
        with self._lock:
            folder = self._temporary.get(scope)
            if folder is None or not folder.is_dir():
                if not self._temporary:
                    atexit.register(self.close)
                folder = Path(tempfile.mkdtemp(prefix="tmp-", dir=scratch.own()))
                self._temporary[scope] = folder
        return folder

    def close(self) -> None:
        """Stop the proxy, and remove the temporary folders."""
        self.stop()
        with self._lock:
            folders = list(self._temporary.values())
            self._temporary.clear()
        self._placeholders.close()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


_probed: dict[str, tuple[str, str]] = {}
_supported: list[str] = []


def missing(name: str) -> str:
    """The limitations of the sandbox on this machine."""
    found = [landlock.MISSING] if name == "sandlock" else []
    if name == "bubblewrap" and "--disable-userns" not in _supported:
        found.append("bubblewrap is older than 0.8: user namespaces are refused by the filter alone")
    if name != "none" and sys.platform == "linux" and seccomp.program(platform.machine()) is None:
        found.append(f"system calls are not filtered on {platform.machine()}")
    if name == "bubblewrap" and (uncounted := limits.missing()):
        found.append(uncounted)
    return "; ".join(found)


def probe() -> tuple[str, str]:
    """Find the sandbox that works on this machine by running it, once per process."""
    if "found" not in _probed:
        _probed["found"] = _probe()
    return _probed["found"]


def _probe() -> tuple[str, str]:
    if sys.platform == "linux":
        bwrap = bubblewrap.program()
        why = "bubblewrap is not installed (Debian, Fedora, Arch: package `bubblewrap`)"
        if bwrap is not None:
            error = _try_bubblewrap(bwrap)
            if error is None:
                return "bubblewrap", ""
            why = f"bubblewrap does not work here: {error}"
        if not landlock.installed():
            return "none", f"{why}; `pip install 'hookline[sandbox]'` may work instead"
        error = _try_sandlock()
        return ("none", f"{why}; sandlock does not work here: {error}") if error else ("sandlock", "")
    if sys.platform == "darwin":
        if Path(seatbelt.PROGRAM).exists():
            return "seatbelt", ""
        return "none", f"{seatbelt.PROGRAM} is missing"
    return "none", f"there is no sandbox for {sys.platform}"


def _try_sandlock() -> str | None:
    """Run sandlock; why it does not work, or None."""
    folder = Path(tempfile.gettempdir())
    line = landlock.arguments(FileView("read-only"), folder, ChildLimits(), network=False)
    try:
        done = run([*line, "/bin/true"], timeout=20)
    except (OSError, TimeoutExpired) as failure:
        return str(failure)
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return said[0] if said else f"exit code {done.returncode}"


def _try_bubblewrap(bwrap: str) -> str | None:
    """Run bubblewrap; why it does not work, or None. Finds out which options it knows."""
    error = ""
    for options in (["--disable-userns"], []):
        line = [bwrap, "--unshare-all", "--unshare-user", *options, "--die-with-parent"]
        line += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "/bin/true"]
        try:
            done = run(line, timeout=10)
        except (OSError, TimeoutExpired) as failure:
            return str(failure)
        if done.returncode == 0:
            _supported[:] = options
            return None
        error = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        error = error[0] if error else f"exit code {done.returncode}"
    return error
