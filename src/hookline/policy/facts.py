"""Facts: what a policy may know of a call, worked out when it asks.

Cedar compares texts and nothing more. What takes work (following symlinks, reading a command line the
way a shell does, finding the host in an address) is done here, once, and given to every policy.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from hookline.text.patterns import plain
from hookline.text.shell import ShellCommands, argv_commands, commands_of
from hookline.text.shell.options import FOLDER_READERS

from . import targets as places
from .folders import folder_words, included
from .lazy import once
from .names import COMMANDS, GLOBS, HOSTS, LOCAL_GIT, NETWORK, PATHS, TEXTS

FEW = places.MOST // 8
"""Words of commands, each of which stands for four places at most, and those with symlinks followed."""
BIGGEST = 2**63 - 1
NO_COMMANDS = ShellCommands()


class Facts:
    """The facts of one action."""

    def __init__(
        self,
        action: Mapping[str, Any],
        *,
        allow: Sequence[Sequence[str]] = (),
        budget: Mapping[str, int] | None = None,
        spent: Mapping[str, int] | None = None,
    ) -> None:
        self.action = action
        self._allow = allow
        self._budget = budget
        self._spent = spent
        self.given: Mapping[str, Any] = action["arguments"]
        self.workspace = str(action["workspace"])
        self.session = str(action["session_id"])
        self.source = str(action["source"])

    def context(self, names: Sequence[str]) -> dict[str, Any]:
        """The named facts, as Cedar takes them."""
        return {name: getattr(self, name) for name in names}

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, less what Cedar cannot hold."""
        return value_of(self.given)

    @property
    def budget(self) -> dict[str, int]:
        """The budget of a session."""
        return dict(self._budget or {})

    @property
    def spent(self) -> dict[str, int]:
        """What this one has spent."""
        return dict(self._spent or {})

    @property
    def permissions(self) -> list[str]:
        """What the tool says that it needs."""
        return list(self.action.get("permissions", ()))

    @once
    def texts(self) -> list[tuple[str, str]]:
        """Every text in the arguments, with the name it stands under."""
        found: list[tuple[str, str]] = []
        for name, value in self.given.items():
            if isinstance(value, str):
                found.append((str(name), value))
            else:
                found.extend(texts_in(value, str(name)))
        return found

    @property
    def argument_text(self) -> str:
        """Every text in the arguments, folded, between line ends."""
        return places.listed(text for _, text in self.texts)

    # --- commands -------------------------------------------------------------------------------

    @once
    def commands(self) -> ShellCommands:
        """What the call would have a shell run."""
        if COMMANDS.isdisjoint(self.given):
            return NO_COMMANDS
        found: ShellCommands | None = None
        for name, value in self.given.items():
            if name not in COMMANDS:
                continue
            if isinstance(value, list):
                one = argv_commands([str(word) for word in cast("list[Any]", value)])
            else:
                one = commands_of(str(value))
            if found is None:
                found = one
            else:
                both = ShellCommands()
                both.add(found)
                both.add(one)
                found = both
        return found or NO_COMMANDS

    @property
    def walks(self) -> bool:
        """Whether a command reads or changes a folder as a whole, so that the files in it count."""
        if FOLDER_READERS.keys().isdisjoint(self.commands.programs):
            return False
        return any(word for call in self.commands.calls for word in folder_words(call))

    @property
    def programs(self) -> list[str]:
        """The programs that may run, without their folders."""
        programs = self.commands.programs
        for program in programs:
            if not program.islower() or not program.isascii():
                return sorted({*programs, *map(plain, programs)})
        return sorted(programs)

    @property
    def command_text(self) -> str:
        """Each command between line ends, one blank between words."""
        return places.listed([*self.commands.lines, *self.commands.subcommands])

    @property
    def options(self) -> list[str]:
        """Each program with each option."""
        return sorted(self.commands.options)

    @property
    def operators(self) -> list[str]:
        """The shell's operators."""
        return sorted(self.commands.operators)

    @property
    def opaque(self) -> bool:
        """Something of the call cannot be understood with certainty."""
        return self.commands.opaque or (not self._few and self._paths is None)

    @property
    def because(self) -> str:
        """Why it is opaque or dynamic, as the end of a sentence."""
        if self.commands.unclear:
            return f": {self.commands.unclear[0]}"
        if self.opaque:
            return ": it names too many files"
        return ": a word of it is known only when it runs" if self.dynamic else ""

    @property
    def dynamic(self) -> bool:
        """Some word of a command is known only when it runs."""
        return self.commands.dynamic

    # --- files ----------------------------------------------------------------------------------

    @property
    def _few(self) -> bool:
        """Whether it is plain that all places can be looked up, without doing so."""
        commands = self.commands
        if len(commands.words) > FEW or commands.folders:
            return False
        for word in commands.words:
            if word.glob is not None:
                return False
        if not FOLDER_READERS.keys().isdisjoint(commands.programs):
            return False
        for value in self.given.values():
            if isinstance(value, str):
                if not value.isascii() or "\0" in value:
                    return False
            elif value is not None and not isinstance(value, int | float):
                return False
        return True

    @once
    def _places(self) -> places.TargetFiles | None:
        """What the words of commands name; None if that cannot be looked up."""
        commands = self.commands
        if not commands.words:
            return places.TargetFiles(bases=[self.workspace])
        try:
            return places.word_places(commands.words, commands.folders, self.workspace)
        except (ValueError, OSError):
            return None

    @once
    def below(self) -> list[str] | None:
        """The files below folders that a command reads or changes as a whole; None if too many."""
        return self._below(places.MOST_BELOW)

    def see_small_folders(self) -> bool:
        """Look at the files below folders if they are few; whether that was all of them."""
        found = self._below(places.FEW_BELOW)
        if found is not None:
            self.__dict__["below"] = found
        return found is not None

    def _below(self, left: int) -> list[str] | None:
        found = self._places
        paths: list[str] = []
        for call in self.commands.calls:
            try:
                folders = {
                    places.place(word, base)[1]
                    for word in folder_words(call)
                    for base in (found.bases if found else [self.workspace])
                }
            except (ValueError, OSError):
                return None
            inside = places.files_below(folders, left) if folders else []
            if inside is None:
                return None
            left -= len(inside)
            only = included(call)
            paths += [path for path in inside if only(path)] if only else inside
        return paths

    @once
    def _paths(self) -> set[str] | None:
        found: set[str] = set()
        try:
            for name, text in self.texts:
                if is_path(name, text):
                    found.update(places.places(text, self.workspace))
            base = self.given.get("path", ".")
            for name in () if GLOBS.isdisjoint(self.given) else GLOBS & self.given.keys():
                glob, folder = self.given[name], base if isinstance(base, str) else "."
                if isinstance(glob, str) and "\0" not in glob:
                    found.update(places.places(os.path.join(folder, glob), self.workspace))  # noqa: PTH118
            if self.commands.words:
                named, below = self._places, self.below
                if named is None or below is None:
                    return None
                found |= named.paths
                found.update(path for path in below if places.is_protected(path))
        except (ValueError, OSError):
            return None
        return found

    @property
    def globs(self) -> set[str]:
        """Paths with wildcards that a command names, absolute."""
        return self._places.globs if self._places else set()

    @property
    def paths(self) -> list[str]:
        """The files and folders that the call names: as written, and with symlinks followed."""
        return sorted(self._paths or ())

    @property
    def path_text(self) -> str:
        """The same, folded, between line ends."""
        return places.listed(self._paths or ())

    @property
    def outside(self) -> bool:
        """Whether some of them are outside the workspace, which is a resolved folder."""
        below = f"{self.workspace.rstrip('/')}/"
        outer = [path for path in self._paths or () if not path.startswith(below)]
        return bool(outer) and any(path != self.workspace for path in outer)

    # --- hosts ----------------------------------------------------------------------------------

    @once
    def _hosts(self) -> set[str]:
        found: set[str] = set()
        for name, text in self.texts:
            if name not in TEXTS:
                found |= places.hosts_in(text)
            if name in HOSTS:
                found.add(places.host_of(text if "://" in text else f"//{text}"))
        reaches = self.commands.programs & (NETWORK - {"git"})
        for word in self.commands.words:
            found |= places.hosts_in(word.text)
            bare = word.text.split("/")[0].split("@")[-1].split(":")[0]
            if reaches and "://" not in word.text and bare[:1] not in ("-", ".", ""):
                found |= {bare} if "." in bare or bare == "localhost" else set()
        return found

    @property
    def hosts(self) -> list[str]:
        """The hosts that the call names."""
        return sorted(self._hosts)

    @property
    def host_text(self) -> str:
        """The same, folded, between line ends."""
        return places.listed(self._hosts)

    @property
    def network(self) -> bool:
        """Whether the call reaches, or may reach, beyond this machine."""
        if self._hosts or self.opaque:
            return True
        if not self.commands.programs:
            return self.action["side_effects"] == "external"
        if any("/dev/tcp/" in word.text or "/dev/udp/" in word.text for word in self.commands.words):
            return True
        reaching = self.commands.programs & NETWORK
        gits = [line.split() for line in self.commands.lines if line.startswith("git ")]
        if reaching == {"git"} and all(len(git) > 1 and git[1] in LOCAL_GIT for git in gits):
            return self.commands.dynamic
        return bool(reaching)

    @property
    def hosts_allowed(self) -> bool:
        """Whether every host is known and on the allowed list."""
        return (
            bool(self._hosts)
            and not self.opaque
            and not self.dynamic
            and bool(self._allow)
            and all(places.host_allowed(host, some) for host in self._hosts for some in self._allow)
        )


def texts_in(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Every text in a value, with the name of the argument or field it stands under."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict | Mapping):
        for key, inner in cast("Mapping[Any, Any]", value).items():
            if isinstance(inner, str):
                yield str(key), inner
            else:
                yield from texts_in(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[Any]", value):
            yield from texts_in(inner, name)


def is_path(name: str, text: str) -> bool:
    """Whether a text is, or may be, a path."""
    if name in PATHS:
        return "://" not in text or text.startswith("file://")
    if name in TEXTS or name in COMMANDS or name in GLOBS or "\n" in text:
        return False
    return text.startswith(("/", "~", "./", "../", "file://")) or "/../" in text


def value_of(value: Any) -> Any:
    """A value as Cedar holds it: no null, no fraction (it becomes text), no name of Cedar's own."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if -BIGGEST <= value <= BIGGEST else str(value)
    if isinstance(value, dict | Mapping):  # report the first immediately
        return {
            (f" {key}" if str(key).startswith("__") else str(key)): value_of(inner)
            for key, inner in cast("Mapping[Any, Any]", value).items()
            if inner is not None
        }
    if isinstance(value, list | tuple):
        return [value_of(inner) for inner in cast("Sequence[Any]", value) if inner is not None]
    return str(value)
