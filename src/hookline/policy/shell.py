"""What a shell command would run and touch, for policies to judge."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .words import DEEPEST, STARTING, Opaque, Word, read_line

SKIPPED = {*STARTING, "fi", "done", "}"}
HIDING = {
    "eval", "case", "esac", "function", "select", "coproc", "alias", "shopt", "set", "trap", "source",
    ".", "enable", "bind", "let",
}  # fmt: skip
"""What changes how the rest is read, or runs text."""
WRAPPERS = {
    "sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "stdbuf", "setsid", "xargs", "command",
    "exec", "builtin", "busybox", "toybox", "find", "chroot", "su", "watch", "parallel", "strace",
    "ltrace", "flock", "script", "unshare", "nsenter", "time", "taskset", "chrt", "systemd-run",
    "start-stop-daemon", "runuser", "fd", "fdfind",
}  # fmt: skip
"""Programs that run another one, named somewhere in their arguments."""
SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "mksh", "rbash"}
INTERPRETERS = {
    "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh",
    "osascript", "awk", "gawk", "mawk", "nawk", "ex", "ed", "vi", "vim", "emacs", "gdb",
    "expect", "m4", "pwsh", "powershell", "jshell", "R", "Rscript", "ghci", "irb",
}  # fmt: skip
"""Programs whose arguments may be a program."""
INDIRECT = {
    "git": r"-c|--config-env|--exec-path=",
    "tar": r"--.*(exec|command|compress)|-I",
    "sed": r"-\w*f|.*(^|\W)[gpIM\d]*e[gpIM\d]*(\s|$)",
}
"""Options by which a program that is not made for it runs something else."""
OWN_WAYS = {*HIDING, *WRAPPERS, *SHELLS, *INTERPRETERS, *INDIRECT, "cd", "pushd"}
"""Programs that are looked at more closely; the others do what their name says."""
VERSION = re.compile(r"[\d.]+$")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
STEERING = re.compile(
    r"(PATH|IFS|HOME|PWD|ENV|BASH_ENV|SHELLOPTS|BASHOPTS|PS4|CDPATH|PROMPT_COMMAND|LD_\w+|DYLD_\w+|GIT_\w+|"
    r"PYTHON\w+|PERL5\w+|NODE_OPTIONS|EDITOR|PAGER|VISUAL)\+?="
)
"""Variables that change which program runs, or what it does."""


@dataclass(slots=True)
class Commands:
    """What a command line would run: an over-estimate wherever that is not certain."""

    lines: list[str] = field(default_factory=list[str])
    """Each command, its words with one blank between them."""
    programs: set[str] = field(default_factory=set[str])
    options: set[str] = field(default_factory=set[str])
    """`rm -r`, `rm --force`: each program with each of its options, bundles taken apart."""
    words: list[Word] = field(default_factory=list[Word])
    """Every word that may name a file or an address."""
    folders: list[str] = field(default_factory=list[str])
    """Where `cd` may have gone."""
    operators: set[str] = field(default_factory=set[str])
    opaque: bool = False
    """Some of it cannot be understood with certainty."""
    dynamic: bool = False
    """Some word is known only when it runs."""

    def add(self, other: Commands) -> None:
        """Take in those of another command line."""
        self.lines += other.lines
        self.programs |= other.programs
        self.options |= other.options
        self.words += other.words
        self.folders += other.folders
        self.operators |= other.operators
        self.opaque |= other.opaque
        self.dynamic |= other.dynamic


def commands_of(text: str) -> Commands:
    """Take a command line apart."""
    found = Commands([], set(), set(), [], [], set())
    _read(text, found, 0)
    return found


def argv_commands(words: list[str]) -> Commands:
    """The same for a program with its arguments, which no shell will read."""
    found = Commands()
    _add([Word(word, quoted=True) for word in words], found, 0)
    return found


def _read(text: str, found: Commands, depth: int) -> None:
    try:
        if depth > DEEPEST:
            raise Opaque
        script = read_line(text)
    except Opaque:
        found.opaque = True
        return
    found.operators |= script.operators
    for target in script.targets:
        _note(target, found)
    for command in script.commands:
        _add(command, found, depth)
    for inner in script.inner:
        _read(inner, found, depth + 1)


def _note(word: Word, found: Commands) -> None:
    found.words.append(word)
    found.dynamic = found.dynamic or word.dynamic


def _add(command: list[Word], found: Commands, depth: int) -> None:
    while command and command[0].text in SKIPPED and not command[0].quoted:
        command = command[1:]
    while command and "=" in command[0].text and ASSIGNMENT.match(command[0].text):
        if STEERING.match(command[0].text):
            found.opaque = True
        _note(command[0], found)
        command = command[1:]
    if not command:
        return
    first, rest = command[0], command[1:]
    if first.dynamic or first.pattern:
        found.opaque = found.opaque or first.text not in ("[", "[[")
    program = _program(first)
    found.words += rest
    for word in rest:
        if word.dynamic:
            found.dynamic = True
    _name(program, rest, found)
    if program in OWN_WAYS or not program.isalpha():  # it may end in its version
        _look_inside(program, rest, found, depth)


def _program(word: Word) -> str:
    """The program that a word names, without its folder."""
    return word.text.rpartition("/")[2]


def _name(program: str, rest: list[Word], found: Commands) -> None:
    """Note a program with its words and its options."""
    texts = [program, *[word.text for word in rest]]
    line = " ".join(texts)
    if line.split() != texts:  # there are blanks in some of them
        line = " ".join([program, *[" ".join(word.text.split()) for word in rest]])
    found.programs.add(program)
    found.lines.append(line)
    if " -" in line:
        for text in texts[1:]:
            if text[:1] == "-" and text != "-":
                for option in _options(text):
                    found.options.add(f"{program} {option}")


def _options(text: str) -> Iterable[str]:
    """The options that a word holds: `-rf` are two."""
    if text[1] == "-" and text != "--":
        return (text.partition("=")[0],)
    return (text,) if len(text) == 2 else (text, *[f"-{letter}" for letter in text[1:]])


def _look_inside(program: str, rest: list[Word], found: Commands, depth: int) -> None:
    """Programs that run other ones, and words that are programs."""
    base = base_of(program)
    if program in HIDING:
        found.opaque = True
    if program in INDIRECT and any(re.match(INDIRECT[program], word.text) for word in rest):
        found.opaque = True
    if program in ("cd", "pushd") and rest:
        found.folders.append(rest[-1].text)
        found.opaque = found.opaque or rest[-1].dynamic
    if base in SHELLS:
        _shell(rest, found, depth)
    elif base in INTERPRETERS and (
        not any(_names_a_file(word) for word in rest)
        or base in ("awk", "gawk", "mawk", "nawk", "ed", "ex", "gdb", "m4", "expect")
        or any(re.match(r"-\w*[ceEpr]|--(eval|command|print|execute)|-$", word.text) for word in rest)
    ):
        harmless = {"--version", "-V", "-v", "--help", "-h", "-m"}
        found.opaque = found.opaque or not (rest and rest[0].text in harmless)
    if base in WRAPPERS and depth <= DEEPEST:
        for position, word in enumerate(rest):
            if not word.text.startswith("-") and not ASSIGNMENT.match(word.text):
                _add_named(rest[position:], found, depth + 1)
        if program in ("su", "script", "watch", "parallel", "flock"):
            for word in rest:
                _read(word.text, found, depth + 1)
    elif base in WRAPPERS:
        found.opaque = True


def _add_named(command: list[Word], found: Commands, depth: int) -> None:
    """A command that is perhaps one: any word after a wrapper may be the program."""
    program = _program(command[0])
    if command[0].dynamic:
        found.opaque = True
        return
    _name(program, command[1:], found)
    if program not in HIDING and base_of(program) not in WRAPPERS:
        _look_inside(program, command[1:], found, depth)


def base_of(program: str) -> str:
    """A program's name without its version: `python3.12` is a `python`."""
    return program if program[-1:].isalpha() else VERSION.sub("", program)


def _names_a_file(word: Word) -> bool:
    return not word.text.startswith("-") and bool(word.text)


def _shell(rest: list[Word], found: Commands, depth: int) -> None:
    """`sh -c TEXT` is read; a shell that is fed in another way can do anything."""
    for position, word in enumerate(rest):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text):
            script = next((w for w in rest[position + 1 :] if not w.text.startswith(("-", "+"))), None)
            if script is None or script.dynamic:
                found.opaque = True
            else:
                _read(script.text, found, depth + 1)
            return
    if not any(_names_a_file(word) for word in rest) and not any(
        word.text in ("--version", "--help") for word in rest
    ):
        found.opaque = True
