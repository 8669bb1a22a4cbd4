"""Reach: the files of a project that a command runs from, as far as they can be told.

Trust covers what really runs, so the hash of a command includes the script that it names, everything
in the script's folder, and whatever project files these name in turn. A command whose files cannot be
told this way lists them (`files = [...]`); one that does not is `unclear` and runs in the sandbox only.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from shutil import which

from hookline.errors import SourceError
from hookline.text.shell import ShellScript, SimpleCommand, Word, command_of, split
from hookline.text.shell.effects import base_of
from hookline.text.shell.reader import STEERING as SHELL_STEERING
from hookline.text.shell.words import GLOB

from .scripts import CODE_SUFFIXES, COMPUTES, IMPORTS, SUFFIXES, SYSTEM, interpreter_of, names_in
from .snapshot import Snapshot
from .sources import read_source

MOST_FOLLOWED = 200
"""Scripts that are read on the way; a command with more is unclear."""
MOST_COMMANDS = 200
"""Commands of one file that are followed; the others are unclear."""
MOST_NAMES = 40_000
"""Names that are looked up, in all scripts together."""
MOST_FOUND = 4_000
"""Those of them that may name a file."""
MOST_SHELL = 128_000
"""Bytes of all lines and scripts for the shell."""
MOST_MATCHES = 200
"""Files of one folder that a wildcard stands for."""

PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "HOOKLINE_PROJECT_DIR")
"""Variables that hold the project's folder for each command."""

SHELLS = ("ash", "bash", "dash", "ksh", "sh", "zsh")
INTERPRETERS = (
    *SHELLS, "bun", "deno", "lua", "node", "nodejs", "perl", "php", "pypy", "python", "ruby", "tsx",
)  # fmt: skip
PLAIN_OPTIONS = {
    **dict.fromkeys(SHELLS, re.compile(r"-[eux]+|-[eux]*o|pipefail")),
    "python": re.compile(r"-[uBsIOPq]+"),
}
"""The options that change nothing about which files run."""

PLAIN = frozenset({
    "[", "basename", "break", "cat", "chmod", "continue", "cp", "curl", "cut", "date", "declare",
    "dirname", "echo", "exit", "export", "false", "grep", "head", "jq", "kill", "local", "logger",
    "ls", "mkdir", "mv", "notify-send", "printf", "pwd", "read", "readlink", "realpath", "return",
    "rm", "set", "shift", "sleep", "sort", "tail", "tee", "test", "touch", "tr", "true", "uniq",
    "unset", "wait", "wc", "wget",
})  # fmt: skip
"""Programs that run no file of the project."""

WRAPPERS = ("builtin", "command", "exec", "nohup")
RUNNING_BUILTINS = (*WRAPPERS, ".", "cd", "coproc", "eval", "fc", "pushd", "source", "trap")
"""Builtins that run something, or change where it is looked up."""
STEERING = re.compile(rf"{SHELL_STEERING.pattern}|\w*PATH|\w*OPTS|\w+_COMMAND|\w+_PROJECT_DIR")
"""Variables that decide which program or which library a command takes."""

NODES = ("bun", "deno", "node", "nodejs", "tsx")


@dataclass(frozen=True, slots=True)
class ProjectCommand:
    """A command that a file of a project names."""

    place: str
    """Where: `hooks.PreToolUse`, `mcp.servers.time`."""
    line: str = ""
    """A line for the shell."""
    words: tuple[str, ...] = ()
    """A program with its arguments, without a shell."""
    folder: str = ""
    """Its working directory, relative to the project."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: tuple[str, ...] | None = None
    """The files and folders that its author lists."""
    url: str = ""

    def __str__(self) -> str:
        return self.line or " ".join(self.words) or self.url


Script = tuple[Path, str | None]
"""A file and the interpreter that a command gives for it; None for a file that is only named."""


class Reach:
    """What some commands of one file run from."""

    def __init__(self, project: Path) -> None:
        self.project = Path(os.path.realpath(project))
        self.snapshot = Snapshot(self.project)
        self._answers: dict[object, str] = {}
        """What `follow` returned, by command: hooks of several events often run the same one."""
        self._followed: dict[Script, list[str] | None] = {}
        """Whether it is unclear what a file runs, and why; None while it is being followed."""
        self._open: list[Script] = []
        """The files that are being followed, outermost first."""
        self._lowest = 0
        """The place there of the outermost one that a file within it names."""
        self._partial: list[Script] = []
        """Files that name one that was being followed, so that its reasons are not among theirs."""
        self._commands = self._names = self._found = self._shell_read = 0
        self._entries: dict[Path, frozenset[str]] = {}

    def follow(self, command: ProjectCommand) -> str:
        """Cover a command's files. Returns why they cannot all be determined, or nothing."""
        if command.url and not command.line and not command.words:
            return ""
        self._commands += 1
        if self._commands > MOST_COMMANDS:
            return f"the file has more than {MOST_COMMANDS} commands"
        same = (command.line, command.words, command.folder, tuple(command.env), command.files)
        if same not in self._answers:
            self._answers[same] = self._answer(command)
        return self._answers[same]

    def _answer(self, command: ProjectCommand) -> str:
        try:
            unclear = self._follow(command)
        except UnicodeEncodeError:  # half of a surrogate pair, which only JSON can spell
            return "its text is not Unicode"
        finally:
            for script in (*self._partial, *self._open):
                self._followed.pop(script, None)
            self._partial, self._open, self._lowest = [], [], 0
        if command.files is not None:
            unclear = self._listed(command.files)
        unread = self.snapshot.unread
        return unclear or (f"{unread} is too large, or cannot be read" if unread else "")

    def _follow(self, command: ProjectCommand) -> str:
        base = self.project / command.folder
        steering = next((name for name in command.env if STEERING.fullmatch(name.upper())), None)
        reasons = [f"it sets {steering}"] if steering else []
        if command.folder.startswith("~"):
            reasons.append("it does not run in the project")
        if command.words:
            words = [Word(word, quoted=True) for word in command.words]
            reasons += self._simple(SimpleCommand(words), ShellScript(), [base])
            line = " ".join(command.words).encode("utf-8", "surrogateescape")
            reasons += self._named(line, [base])
        elif command.line:
            line = command.line.encode("utf-8", "surrogateescape")
            reasons += self._shell(line, [base])
            reasons += self._named(line, [base])
        return next(iter(reasons), "")

    def _listed(self, names: Iterable[str]) -> str:
        """Cover what the author of a command lists."""
        for name in names:
            path = self.project / name
            inside = self._inside(path)
            if inside is None:
                return f"`files` names {name!r}, which is not in the project"
            if not _is_file(inside) and os.path.isdir(inside):  # noqa: PTH112
                if not self.snapshot.add_folder(path):
                    return f"`files` names {name!r}, which has too many files"
            elif _is_file(inside):
                self.snapshot.add(path)
            else:
                return f"`files` names {name!r}, which does not exist"
        return ""

    # --- a line for the shell, or a script ----------------------------------------------------

    def _shell(self, text: bytes, bases: list[Path]) -> list[str]:
        self._shell_read += len(text)
        if self._shell_read > MOST_SHELL:
            return ["its scripts are too long to be read"]
        try:
            found = split(text.decode(), dict.fromkeys(PROJECT_VARIABLES, str(self.project)))
        except UnicodeDecodeError:
            return ["its text is not Unicode"]
        reasons = [f"its line cannot be read: {why}" for why in found.unclear]
        bases = [*bases]
        for command in found.commands:
            reasons += self._simple(command, found, bases)
        for word in found.targets:
            for name in self._files_of(word):
                self._take(name or "", bases)
        return reasons

    def _simple(self, command: SimpleCommand, script: ShellScript, bases: list[Path]) -> list[str]:
        """Follow one simple command. `cd` adds a folder to `bases`."""
        steered = [name for name, _ in command.assignments if STEERING.fullmatch(name)]
        reasons = [f"it sets {name}" for name in steered]
        for words in filter(None, (command.words, command.unexpanded)):
            texts = [text for word in words for text in self._files_of(word)]
            reasons += self._program(texts, SimpleCommand(words, text=command.text), script, bases)
        return reasons

    def _program(
        self, words: list[str | None], command: SimpleCommand, script: ShellScript, bases: list[Path]
    ) -> list[str]:
        """Follow the program that a command names; what the reader cannot understand is unclear."""
        while words and words[0] in WRAPPERS:
            words = words[1:]
        if not words or words[0] is None:
            return ["its program is not fixed"]
        program, arguments = words[0], words[1:]
        if program in script.functions and not _exists(program):
            return []
        if program in (".", "source"):
            return self._script("sh", arguments[:1], bases)
        read = command_of(command)
        if read.opaque:
            return read.unclear
        if steering := next((name for name in read.assigned if STEERING.fullmatch(name)), None):
            return [f"it sets {steering}"]
        if program == ":":
            return []
        if program in ("cd", "pushd"):
            return self._enter(arguments, bases)
        if "/" in program:
            taken = self._take(program, bases, run=True)
            if taken is not None:
                return taken
            if not program.startswith(SYSTEM):
                return [f"{program} is no file of the project"]
        name = base_of(PurePath(program).name)
        if name in INTERPRETERS:
            return self._script(name, arguments, bases)
        if name in PLAIN:
            for word in arguments:
                if word is not None:
                    self._take(word, bases)
            return []
        return [f"{program} may run files that the command does not name"]

    def _files_of(self, word: Word) -> Iterator[str | None]:
        """A word's text, or the files of one folder of the project that it stands for now.

        None if it is known only when the command runs.
        """
        if word.glob is None or word.dynamic:
            yield None if word.dynamic else word.text
            return
        yield None  # another file may match later
        folder, _, pattern = word.glob.rpartition("/")
        if word.glob.startswith(("/", "~")) or ".." in word.glob or GLOB.search(folder):
            return  # never walk the whole disk
        matching = sorted(fnmatch.filter(self._listing(self.project / folder), pattern))
        yield from (f"{folder}/{name}" if folder else name for name in matching[:MOST_MATCHES])

    def _enter(self, arguments: list[str | None], bases: list[Path]) -> list[str]:
        if len(arguments) != 1 or arguments[0] is None or arguments[0].startswith("-"):
            return ["it enters a folder that is not fixed"]
        if len(bases) > 8:  # each folder doubles them
            return ["it enters too many folders"]
        bases.extend([base / arguments[0] for base in bases])
        return []

    def _script(self, interpreter: str, arguments: list[str | None], bases: list[Path]) -> list[str]:
        """Follow the script that an interpreter is given."""
        options = PLAIN_OPTIONS.get(interpreter)
        while arguments and arguments[0] is not None and options and options.fullmatch(arguments[0]):
            arguments = arguments[1:]
        if not arguments or arguments[0] is None or arguments[0].startswith("-"):
            return [f"the script for {interpreter} is not fixed"]
        taken = self._take(arguments[0], bases, run=True, interpreter=interpreter)
        for word in arguments[1:]:
            if word is not None:
                self._take(word, bases)
        return [f"there is no script {arguments[0]!r}"] if taken is None else taken

    # --- files --------------------------------------------------------------------------------

    def _take(
        self, word: str, bases: Iterable[Path], *, run: bool = False, interpreter: str = ""
    ) -> list[str] | None:
        """Cover the project file that a word names, and follow it; None if it names none."""
        if "\0" in word or len(word) > 1000:
            return None
        reasons: list[str] | None = None
        for base in bases:
            path = Path(os.path.normpath(base / os.path.expanduser(word)))  # noqa: PTH111
            if not os.path.lexists(path):
                continue
            within, inside = path.is_relative_to(self.project), self._inside(path)
            if inside is None:
                if within:
                    reasons = [*(reasons or []), f"{word} leads out of the project"]
                elif run and not str(path).startswith(SYSTEM):
                    reasons = [*(reasons or []), f"{word} is not in the project"]
                continue
            if _is_file(inside):
                reasons = [*(reasons or []), *self._file(path, inside, interpreter, run=run)]
            elif run:
                reasons = [*(reasons or []), f"{word} is a folder"]
        return reasons

    def _file(self, path: Path, inside: Path, interpreter: str, *, run: bool) -> list[str]:
        """Cover a file and what it names. Returns why that cannot be determined, or nothing."""
        script = (path, interpreter if run else None)
        if script in self._followed:
            known = self._followed[script]
            if known is None:
                self._lowest = min(self._lowest, self._open.index(script))
            return known or []
        if len(self._followed) > MOST_FOLLOWED:
            return ["it reaches too many files"]
        self._followed[script] = None
        depth, outside = len(self._open), self._lowest
        self._open.append(script)
        self._lowest = depth
        reasons = self._followed[script] = self._contents(path, inside, interpreter, run=run)[:1]
        self._open.pop()
        if self._lowest < depth:
            self._partial.append(script)
        self._lowest = min(self._lowest, outside)
        return reasons

    def _contents(self, path: Path, inside: Path, interpreter: str, *, run: bool) -> list[str]:
        try:
            content = read_source(inside, self.project).content
        except SourceError as error:
            self.snapshot.add(path)
            return [str(error)]
        self.snapshot.add(path, content)
        bases = [self.project, inside.parent]
        if not run:
            return self._named(content, bases)
        reasons: list[str] = []
        whole = self._folder_of(inside, reasons)
        interpreter = interpreter or interpreter_of(path, content)
        if b"\0" in content or interpreter not in INTERPRETERS:
            return [*reasons, f"it cannot be told what {path.name} runs"]
        if interpreter in SHELLS:
            reasons += self._shell(content, bases)
        elif COMPUTES.search(content):
            reasons.append(f"{path.name} decides at run time what it runs")
        elif interpreter in NODES:
            reasons += self._node_modules(inside)
        if interpreter == "python" and not whole:
            reasons += self._imported(content, inside.parent)
        return [*reasons, *self._named(content, bases, code=True)]

    def _imported(self, content: bytes, folder: Path) -> list[str]:
        """Cover a Python script's imports from its folder, including packages that do not exist yet."""
        self.snapshot.add_folder(folder, "modules")
        words = {word for line in IMPORTS.findall(content) for word in re.findall(rb"\w+", line)}
        for name in sorted(words)[:MOST_FOLLOWED]:
            package = folder / os.fsdecode(name)
            if not package.is_dir():
                self.snapshot.add(package)  # one that comes later is a change
            elif not self.snapshot.add_folder(package):
                return [f"the package {package.name} has too many files"]
        return ["it imports too much"] if len(words) > MOST_FOLLOWED else []

    def _node_modules(self, script: Path) -> list[str]:
        """Cover the folders in which a script for Node finds packages, also absent ones."""
        places = [each / "node_modules" for each in script.parents if each.is_relative_to(self.project)]
        if any(os.path.lexists(place) for place in places):
            return ["node_modules has files that no command names"]
        for place in places:
            self.snapshot.add(place)
        return []

    def _folder_of(self, script: Path, reasons: list[str]) -> bool:
        """Cover everything next to a script, unless that is the whole project."""
        if script.parent == self.project:
            return False
        if self.snapshot.add_folder(script.parent):
            return True
        reasons.append(f"the folder of {script.name} has too many files")
        return False

    def _named(self, text: bytes, bases: list[Path], *, code: bool = False) -> list[str]:
        """Cover the project's files that a text names, as a path, a module or within quotes.

        In a program (`code`), a program that it names counts as one that it runs.
        """
        reasons: list[str] = []
        for name in names_in(text):
            self._names += 1
            if self._names > MOST_NAMES:
                return [*reasons, "its scripts are too long to be read"]
            for path in self._candidates(os.path.normpath(name), bases, SUFFIXES if code else ("",)):
                self._found += 1
                if self._found > MOST_FOUND:
                    return [*reasons, "it names too many files"]
                inside = self._inside(path)
                if inside is not None and _is_file(inside):
                    run = code and path.suffix in CODE_SUFFIXES
                    reasons += self._file(path, inside, "", run=run)
        return reasons

    def _candidates(self, name: str, bases: list[Path], suffixes: Iterable[str]) -> Iterator[Path]:
        """The paths that a name may stand for, without those that cannot exist."""
        first, below, _ = name.partition("/")
        for base in bases:
            entries = self._listing(base) if first not in ("", "..") else None
            if below and entries is not None and first not in entries:
                continue
            for suffix in suffixes:
                if below or entries is None or (name + suffix).partition("/")[0] in entries:
                    yield Path(os.path.normpath(base / (name + suffix)))

    def _listing(self, folder: Path) -> frozenset[str]:
        if folder not in self._entries:
            try:
                self._entries[folder] = frozenset(os.listdir(folder))  # noqa: PTH208
            except (OSError, ValueError):
                self._entries[folder] = frozenset()
        return self._entries[folder]

    def _inside(self, path: Path) -> Path | None:
        """The real path, if it is in the project."""
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):
            return None
        return real if real.is_relative_to(self.project) and real != self.project else None


def _exists(program: str) -> bool:
    """Whether a name that a script gives to a function is a program too, or one that the shell has."""
    return program in RUNNING_BUILTINS or which(program) is not None


def _is_file(path: Path) -> bool:
    """Whether a file is there; `Path.is_file` raises for a name that is too long."""
    return os.path.isfile(path)  # noqa: PTH113


def unclear_text(why: str) -> str:
    """What to do about a command whose files cannot be determined."""
    return f"{why}, so it runs in the sandbox only, and none is active; list its files in `files`"
