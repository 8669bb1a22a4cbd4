"""What a project brings that would run: hook files, configuration, settings files, skills.

Each is a `TrustItem` with a hash. Nothing of it counts until a person has trusted the item with
that hash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import SourceError
from hookline.text.untrusted import load_toml, read_beginning

from .snapshot import MOST, digest
from .sources import FileSource, files_below, read_source, read_sources, real_path, sha256_of
from .trust import TrustItem

if TYPE_CHECKING:
    from .reach import ProjectCommand

HOOKS = Path(".hookline", "hooks")
EVALS = Path(".hookline", "evals")
CONFIG = Path(".hookline", "config.toml")
SKILLS = (Path(".agents", "skills"), Path(".claude", "skills"))
"""Folders of skills, in a project and in the user's home."""

DOCUMENTS = {
    ".adoc", ".gif", ".jpeg", ".jpg", ".markdown", ".md", ".png", ".rst", ".svg", ".txt", ".webp",
}  # fmt: skip
"""Files of a skill that are there to be read. Everything else could be run."""
_PLAIN_NAMES = {"AUTHORS", "CHANGELOG", "COPYING", "LICENSE", "NOTICE", "README"}
_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
_HEADER_REFERENCE = re.compile(r"\$\{?(\w+)")
LARGEST_SKILL = 16_000_000
"""Bytes of all files of a skill that can be trusted."""
MOST_SKILLS = 100
"""Skills of one folder of a project."""


def project_items(project: Path, own: Mapping[str, Any] | None = None) -> list[TrustItem]:
    """Everything in a project that needs trust, except what cannot be read or leads out.

    `own` holds the user's settings, which decide what in the project needs trust.
    """
    from .settingsfiles import settings_items

    return [
        *hook_items(project),
        *config_items(project, own or {}),
        *settings_items(project),
        *skill_items(project),
    ]


def hook_items(project: Path) -> Iterator[TrustItem]:
    """Every Python file among the hook files and the evaluations, helpers too."""
    for place in (HOOKS, EVALS):
        yield from hook_items_in(project / place, project)


def hook_items_in(place: Path, project: Path) -> Iterator[TrustItem]:
    """The same for one folder or file in the project."""
    if not stays(place, project):
        return
    try:
        paths = [place] if place.suffix == ".py" else files_below(place)
    except SourceError:
        return  # it cannot be loaded either, and loading says why
    for path, read in read_sources((each for each in paths if each.suffix == ".py"), project):
        if isinstance(read, FileSource):
            yield TrustItem("hook file", project, path, read.sha256)


# --- the configuration ----------------------------------------------------------------------------


def config_items(project: Path, own: Mapping[str, Any]) -> Iterator[TrustItem]:
    """The project's configuration, where something in it waits for trust."""
    from hookline.config.project import admitted

    try:
        source = read_source(project / CONFIG, project)
    except SourceError:
        return
    written = tables_of(source.content)
    waiting = [each.dotted for each in admitted(written, own, folder=project)[1] if each.waits]
    if waiting:
        yield config_item(source, project, waiting)


def config_item(source: FileSource, project: Path, waiting: Iterable[str] = ()) -> TrustItem:
    """A configuration with every file that its commands reach; `waiting` are settings to show."""
    tables = tables_of(source.content)
    commands = [*config_commands(tables)]
    shown = [f"{command.place}: {command}" for command in commands]
    above = tuple(command.place.partition("[")[0] for command in commands)
    sets = [f"sets {name}" for name in waiting if not name.startswith(above or ("\0",))]
    return item_of("config", source, project, commands, [*shown, *sets], config_variables(tables))


def tables_of(config: bytes) -> dict[str, Any]:
    """The contents of a configuration; nothing if it is not TOML."""
    try:
        return load_toml(config.decode("utf-8-sig"))
    except ValueError:
        return {}


def config_commands(tables: Mapping[str, Any]) -> Iterator[ProjectCommand]:
    """Everything in a configuration that runs or is connected to."""
    hooks = _table(_table(tables.get("hooks")).get("commands"))
    yield from hook_commands(hooks, "hooks.commands")
    for name, server in _table(_table(tables.get("mcp")).get("servers")).items():
        if isinstance(server, Mapping):
            yield _server(name, cast("Mapping[str, Any]", server))


def hook_commands(events: Mapping[str, Any], above: str) -> Iterator[ProjectCommand]:
    """The commands of a table of command hooks, each with its place in the table."""
    for event, groups in events.items():
        for number, group in enumerate(_list(groups), 1):
            for at, hook in enumerate(_list(_table(group).get("hooks")), 1):
                given = _table(hook)
                place = f"{above}.{event}[{number}].hooks[{at}]"
                if "command" in given or "url" in given:
                    yield _hook(place, given)


def hook_variables(events: Mapping[str, Any]) -> Iterator[str]:
    """The variables of the environment that command hooks ask for."""
    for groups in events.values():
        for group in _list(groups):
            for hook in map(_table, _list(_table(group).get("hooks"))):
                yield from map(str, _list(hook.get("allowedEnvVars")))
                yield from references(hook.get("headers"), _HEADER_REFERENCE)


def config_variables(tables: Mapping[str, Any]) -> Iterator[str]:
    """The variables of the environment that a configuration asks for."""
    hooks = _table(tables.get("hooks"))
    yield from hook_variables(_table(hooks.get("commands")))
    plain = {name: each for name, each in hooks.items() if name != "commands"}
    yield from references({**tables, "hooks": plain}, _REFERENCE)


def references(value: Any, pattern: re.Pattern[str]) -> Iterator[str]:
    """The names that texts refer to, wherever they are in a table."""
    if isinstance(value, str):
        yield from pattern.findall(value)
    for each in [*_table(value).values(), *_list(value)]:
        yield from references(each, pattern)


def _hook(place: str, given: Mapping[str, Any]) -> ProjectCommand:
    from .reach import ProjectCommand

    command, args = str(given.get("command", "")), given.get("args")
    shell = not isinstance(args, list)
    words = () if shell else (command, *map(str, _list(args)))
    url = str(given.get("url", ""))
    return ProjectCommand(place, command if shell else "", words, files=_files(given), url=url)


def _server(name: str, given: Mapping[str, Any]) -> ProjectCommand:
    from .reach import ProjectCommand

    words = (str(given["command"]), *map(str, _list(given.get("args")))) if "command" in given else ()
    env = {str(key): str(value) for key, value in _table(given.get("env")).items()}
    return ProjectCommand(
        f"mcp.servers.{name}",
        words=words,
        folder=str(given.get("cwd", "")),
        env=env,
        files=_files(given),
        url=str(given.get("url", "")),
    )


def _files(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    files = given.get("files")
    return tuple(map(str, _list(files))) if isinstance(files, list) else None


def item_of(
    kind: str,
    source: FileSource,
    project: Path,
    commands: Iterable[ProjectCommand],
    runs: Iterable[str],
    reads: Iterable[str],
) -> TrustItem:
    """A file that names commands; its hash covers all that they reach."""
    from .reach import Reach  # it loads the reader of shell commands; most projects bring none

    reach = Reach(project)
    unclear = {command.place: why for command in commands if (why := reach.follow(command))}
    snapshot = reach.snapshot
    sha256 = digest(kind, source.content, [snapshot])
    snapshot.add(reach.project / os.path.relpath(source.path, project), source.content)
    names = tuple(sorted(set(reads)))
    return TrustItem(kind, project, source.path, sha256, tuple(runs), names, snapshot, unclear)


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


# --- skills ---------------------------------------------------------------------------------------


def skill_items(project: Path) -> Iterator[TrustItem]:
    """The project's skills that have more than documents."""
    for place in SKILLS:
        yield from skill_items_in(project / place, project)


def skill_items_in(folder: Path, project: Path) -> Iterator[TrustItem]:
    """The skills of one folder in the project that have more than documents."""
    if not stays(folder, project) or not folder.is_dir():
        return
    for child in skill_folders(folder):
        if stays(child, folder):
            item = skill_item(child, project)
            if item is not None:
                yield item


def skill_folders(folder: Path) -> list[Path]:
    """The folders with a `SKILL.md`, by name; no more than `MOST_SKILLS`."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []
    found = (folder / name for name in names if os.path.lexists(folder / name / "SKILL.md"))
    return [*islice(found, MOST_SKILLS)]


def skill_item(folder: Path, project: Path) -> TrustItem | None:
    """A skill that has something to run; None for one that is documents alone.

    Its hash covers every file of the folder: a script may read or run any of them.
    """
    try:
        files = files_below(folder, every=True)
    except SourceError as error:
        return TrustItem("skill", project, folder, os.urandom(32).hex(), (str(error),))
    scripts = tuple(p.relative_to(folder).as_posix() for p in files if not is_document(p))
    if not scripts:
        return None
    lines: list[str] = []
    room = LARGEST_SKILL
    for path in files[:MOST]:
        name = path.relative_to(folder).as_posix()
        if room < 0:
            break
        try:
            source = read_source(path, folder, LARGEST_SKILL)
            room -= len(source.content)
            lines.append(f"{source.sha256}  {name}")
        except SourceError:
            room = -1
    if len(files) > MOST or room < 0:  # nothing is trusted that was not read
        lines.append(os.urandom(32).hex())
    content = "\n".join(lines).encode("utf-8", "surrogateescape")
    return TrustItem("skill", project, folder, sha256_of(content), scripts)


def is_document(path: Path) -> bool:
    """Whether a file of a skill is there to be read: text or an image that nothing can start."""
    if path.is_symlink() or path.name.startswith("."):
        return False
    if path.suffix.lower() not in DOCUMENTS and path.name not in _PLAIN_NAMES:
        return False
    try:
        if path.stat().st_mode & 0o111:
            return False
        return read_beginning(path, 2) != b"#!"
    except OSError:
        return False


# --- places ---------------------------------------------------------------------------------------


def stays(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder with all links followed."""
    try:
        real_path(path, folder)
    except SourceError:
        return False
    return True


def belongs(path: Path, project: Path) -> bool:
    """Whether a path is the project's: as it is written, or with all links followed.

    A link in the project that leads out of it is still the project's word.
    """
    written = Path(os.path.abspath(path))  # noqa: PTH100
    return written.is_relative_to(Path(os.path.abspath(project))) or stays(path, project)  # noqa: PTH100
