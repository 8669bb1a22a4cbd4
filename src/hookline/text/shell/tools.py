"""Tools that run something else under conditions: make, clients of databases, copies of programs."""

from __future__ import annotations

import re

from ..printable import names
from .effects import Effects
from .words import Word

MAKEFILE = re.compile(r"(?:[\w./-]*/)?(?:(?:GNU)?[Mm]akefile[\w.-]*|[\w.-]+\.mk)")
FILE_OPTION = re.compile(r"-[a-zA-Z]*f(.*)|--(?:fi|mak)[\w-]*(?:=(.*))?", re.DOTALL)
VARIABLE = re.compile(r"([\w.-]+)[:?+!]*=(.*)", re.DOTALL)
TOOL_VARIABLE = re.compile(r"\.?SHELL\w*|MAKE\w*|CC|CXX|CPP|LD|AR|AS|FC|RM|LEX|YACC|\w*FLAGS|\w+_?CMD")
VALUE = re.compile(r"[\w./:@%+,=-]*")
STATEMENT_OPTIONS = {
    "psql": re.compile(r"-\w*[cl].*|--(com|lis|ver|hel).*", re.DOTALL),
    "mysql": re.compile(r"-\w*e.*|--(exe|ver|hel).*", re.DOTALL),
}
"""Options with which a client does not read its input."""
PROGRAM_FOLDER = re.compile(r"/(usr/|usr/local/|opt/\w+/)?(s?bin|lib\w*|libexec)/.+", re.DOTALL)
LIKELY = names(
    "git rm rmdir dd mkfs shred truncate chmod chown kill pkill killall reboot shutdown curl wget nc "
    "ncat socat ssh scp sftp rsync cat tee cp mv ln tar zip env sudo doas su nohup timeout xargs eval "
    "sh bash dash zsh ksh python python3 perl ruby node php lua awk sed docker podman kubectl helm "
    "terraform aws gcloud az npm npx pip pip3 gh psql mysql sqlite3 redis-cli openssl gpg crontab "
    "systemctl mount umount base64 printenv grep head tail less more xxd od strings find busybox"
)
"""Programs that are taken for a command where they stand among the arguments of an unknown program."""


def make_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`make` runs a makefile of the project; other files and variables can hold any command."""
    words = iter(rest)
    for word in words:
        if word.dynamic:
            found.only_when_run(program)
            return
        if file := FILE_OPTION.fullmatch(word.text):
            name = file[1] or file[2] or next(words, Word("-")).text
            if not MAKEFILE.fullmatch(name):
                found.unclear.append(f"{program} reads commands from {name[:40]!r}")
        elif (variable := VARIABLE.fullmatch(word.text)) and (
            TOOL_VARIABLE.fullmatch(variable[1]) or not VALUE.fullmatch(variable[2])
        ):
            found.unclear.append(f"{program} may run the value of {variable[1][:40]}")


def client_effects(program: str, rest: list[Word], found: Effects) -> None:
    """A client of a database that is given no statement reads commands from its input."""
    option = STATEMENT_OPTIONS.get(program)
    if option is None:
        operands = [word for word in rest if not word.text.startswith("-")]
        given = len(operands) > (1 if program == "sqlite3" else 0)
    else:
        given = any(option.fullmatch(word.text) for word in rest)
    if not given and not any(word.text in ("--version", "-version", "--help") for word in rest):
        found.unclear.append(f"{program} reads commands from its input")


def copy_effects(program: str, rest: list[Word], found: Effects) -> None:
    """A copy of a program, or a link to it, runs under a name that no rule knows."""
    sources = [word.text for word in rest if not word.text.startswith("-")]
    if any(PROGRAM_FOLDER.fullmatch(text) for text in sources[: max(1, len(sources) - 1)]):
        found.unclear.append(f"{program} may give a program another name")


def likely_command(rest: list[Word], most: int) -> int | None:
    """Where the arguments of a program that is not known look like a command."""
    for at, word in enumerate(rest[:most]):
        if word.text.rpartition("/")[2] in LIKELY and not word.dynamic:
            return at
    return None
