"""Shell wrappers: programs that run the command in their arguments, and where it begins."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from .effects import Effects, base_of
from .git import GIT_COMMANDS, git_effects
from .interpreters import interpreter_effects, shell_effects
from .programs import (
    INTERPRETERS,
    ORDINARY,
    OTHER_SHELLS,
    QUERIES,
    SETTERS,
    SHELLS,
    TEXT_OPTIONS,
    UNREADABLE,
    UNREADABLE_ARGUMENTS,
    WRAPPERS,
    WrapperProgram,
)
from .tools import client_effects, copy_effects, likely_command, make_effects
from .words import Word

AHEAD = 32
"""Arguments of a program that is not known that are looked at."""
LOADER = re.compile(r"ld(-linux.*|-musl.*|64)?\.so.*")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL | re.ASCII)
ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[[^=]*\])?(?:\+?=.*)?", re.DOTALL | re.ASCII)
SPLIT = re.compile(r"-[iv0]*S(.*)|--split[\w-]*=(.*)", re.DOTALL)
WATCH_OPTION = re.compile(r"-[bcdegtx]+|-n[\d.]+|--(?:interval=.*|differences|no-title|exec|color)")
FLOCK_OPTION = re.compile(r"-[sxenuoF]+|--(?:nonblock|exclusive|shared|unlock|close|no-fork)")


def effects_of(program: str, rest: list[Word], text: str | None) -> Effects:
    """What a program with these arguments, and this text to read, does in turn."""
    found = Effects()
    base = base_of(program)
    rule = UNREADABLE_ARGUMENTS.get(program)
    if rule is not None:
        for word in rest:
            if rule.fullmatch(word.text):
                found.unclear.append(f"{program} may run something else with {word.text[:40]!r}")
                break
    if program[:4] == "git-" and program[4:] in GIT_COMMANDS:
        found.runs.append([Word("git"), Word(program[4:]), *rest])
    elif base in SHELLS:
        shell_effects(program, rest, text, found)
    elif base.lower() in INTERPRETERS or base in OTHER_SHELLS:
        interpreter_effects(base.lower(), rest, found)
    elif program in SPECIAL:
        SPECIAL[program](program, rest, found)
    elif program in UNREADABLE:
        found.unclear.append(f"{program} runs what it is given in a way that cannot be followed")
        read_texts(program, rest, found)
    elif program in WRAPPERS:
        wrapper_effects(program, rest, found)
    elif program not in ORDINARY:
        unknown_effects(program, rest, found)
    return found


def wrapper_effects(program: str, rest: list[Word], found: Effects) -> None:
    """Find the command in the arguments of a wrapper."""
    for spec in WRAPPERS[program]:
        position = command_position(program, spec, rest, found)
        if position is not None:
            command = rest[position:]
            found.runs.append(fed(rest[:position], command) if program == "xargs" else command)
            return
    if any(spec.subcommand for spec in WRAPPERS[program]):
        unknown_effects(program, rest, found)


def command_position(
    program: str, spec: WrapperProgram, rest: list[Word], found: Effects
) -> int | None:
    """Where the command begins; None if there is none, or it is not certain where."""
    at, operands, subcommand = 0, spec.operands, spec.subcommand
    while at < len(rest):
        word = rest[at]
        text = word.text
        if word.dynamic:
            found.only_when_run(program)
            return None
        if text == "--":
            at += 1
            break
        if text.startswith("-") and text != "-":
            taken = option_words(spec, text)
            if taken is None:
                found.unknown_option(program, text)
                return None
            if any(one.dynamic for one in rest[at : at + taken]):  # it may be no word, or several
                found.only_when_run(program)
                return None
            at += taken
        elif spec.assignments and (given := ASSIGNMENT.fullmatch(text)):
            found.assignments.append((given[1], Word(given[2])))
            at += 1
        elif spec.assignments and "=" in text:
            found.unclear.append(f"{program} sets a variable with an unusual name")
            return None
        elif subcommand:
            if text != subcommand:
                return None
            subcommand = ""
            at += 1
        elif operands:
            operands -= 1
            at += 1
        else:
            break
    return None if subcommand or operands or at >= len(rest) else at


def option_words(spec: WrapperProgram, text: str) -> int | None:
    """How many words an option takes up; None if it is not known."""
    if text.startswith("--"):
        name, given, _ = text[2:].partition("=")
        known = [one for one in spec.long | spec.flags if one.startswith(name)]
        exact = [name] if name in known else known
        takes = {one in spec.long for one in exact}
        if len(takes) != 1:
            return None
        return 2 if takes.pop() and not given else 1
    for position, letter in enumerate(text[1:], start=1):
        if letter in spec.short:
            return 1 if position < len(text) - 1 else 2
        if letter not in spec.letters:
            return None
    return 1


def fed(options: list[Word], command: list[Word]) -> list[Word]:
    """What `xargs` runs, with arguments that come from its input."""
    marks = ["{}"]
    replaced = False
    for word, following in zip(options, [*options[1:], Word("")], strict=False):
        if word.text.startswith(("-I", "-i", "--rep")):
            replaced = True
            own = word.text.partition("=")[2] if word.text.startswith("--") else word.text[2:]
            marks.append(own or following.text)
    if not replaced:
        return [*command, Word("", dynamic=True)]
    return [
        Word(word.text, dynamic=True) if any(mark and mark in word.text for mark in marks) else word
        for word in command
    ]


def read_texts(program: str, rest: list[Word], found: Effects) -> None:
    """Read the command lines among the arguments of a program that cannot be followed as well."""
    if program in ("eval", "ssh"):
        found.texts.append(" ".join(word.text for word in rest))
    elif program in ("source", ".") and rest and not rest[0].dynamic:
        found.runs.append(rest)
    for word, following in pairwise(rest):
        if word.text in TEXT_OPTIONS.get(program, ()):
            found.texts.append(following.text)


def unknown_effects(program: str, rest: list[Word], found: Effects) -> None:
    """A program that is not known may run what looks like a command in its arguments."""
    if LOADER.fullmatch(program):
        found.only_when_run(program)
    start = likely_command(rest, AHEAD)
    if start is not None:
        found.runs.append(rest[start:])
    for at, word in enumerate(rest[:AHEAD]):
        name = base_of(word.text.rpartition("/")[2])
        following = rest[at + 1].text if at + 1 < len(rest) else ""
        if name in SHELLS and following.startswith("-") and "c" in following:
            found.unclear.append(f"{program} may run {name}")
            return
        if word.text == "--" and at + 1 < len(rest):
            found.runs.append(rest[at + 1 :])
            return


# --- single programs --------------------------------------------------------------------------------


def cd_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`cd` changes what relative paths mean."""
    targets = [word for word in rest if word.dynamic or not word.text.startswith("-")]
    if any(word.text == "-" for word in rest) or any(word.dynamic or word.pattern for word in targets):
        found.unclear.append("the folder it changes to is known only when it runs")
    else:
        found.folders.append(targets[-1].text if targets else "~")


def command_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`command -v` only looks a program up."""
    if not (rest and re.fullmatch(r"-\w*[vV]\w*", rest[0].text)):
        wrapper_effects(program, rest, found)


def env_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`env -S` splits a text by rules of its own."""
    for at, word in enumerate(rest):
        text = word.text
        split = SPLIT.fullmatch(text)
        if split or text == "--split-string":
            own = (split[1] or split[2]) if split else ""
            after = rest[at + 1 :]
            found.unclear.append("env splits a text into a command")
            found.texts.append(" ".join([own or "", *[one.text for one in after]]))
            return
        if not text.startswith("-") and "=" not in text:
            break
    wrapper_effects(program, rest, found)


def eval_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`eval` reads its words once more."""
    if any(word.dynamic or word.pattern for word in rest):
        found.only_when_run(program)
    found.texts.append(" ".join(word.text for word in rest))


def find_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`find -exec` runs a command for the files it finds."""
    at = 0
    while at < len(rest):
        if rest[at].text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = at + 1
            while end < len(rest) and rest[end].text != ";":
                if rest[end].text == "+" and rest[end - 1].text == "{}":
                    break
                end += 1
            found.runs.append(
                [
                    Word(word.text, dynamic=True) if "{}" in word.text else word
                    for word in rest[at + 1 : end]
                ]
            )
            at = end
        at += 1


def flock_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`flock FILE COMMAND`, or `flock FILE -c TEXT`."""
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        if rest[at].text in ("-w", "-E", "--wait", "--timeout"):
            at += 1
        elif not FLOCK_OPTION.fullmatch(rest[at].text):
            found.unknown_option(program, rest[at].text)
        at += 1
    after = rest[at + 1 :]
    if after and after[0].text in ("-c", "--command"):
        if any(word.dynamic for word in after):
            found.only_when_run(program)
        found.texts += [word.text for word in after[1:2]]
    elif after:
        found.runs.append(after)


def watch_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`watch` gives its words to a shell."""
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        if rest[at].text in ("-n", "--interval"):
            at += 1
        elif not WATCH_OPTION.fullmatch(rest[at].text):
            found.unknown_option(program, rest[at].text)
        at += 1
    if any(word.dynamic for word in rest[at:]):
        found.only_when_run(program)
    found.texts.append(" ".join(word.text for word in rest[at:]))


def trap_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`trap TEXT SIGNAL` has the text read later."""
    words = [word for word in rest if word.text not in ("--", "-l", "-p")]
    if words and words[0].dynamic:
        found.only_when_run(program)
    elif words and words[0].text not in ("", "-"):
        found.texts.append(words[0].text)


def set_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`set` with options that are not known yet may change how the rest is read."""
    if rest and rest[0].text != "--" and any(word.dynamic for word in rest):
        found.unclear.append("options of the shell are set when it runs")


def variable_effects(program: str, rest: list[Word], found: Effects) -> None:
    """`read` and `declare` set the variables in their arguments; an option's value counts as one."""
    value = Word("", dynamic=True)
    for word in rest:
        text = word.text
        name = ASSIGNED.fullmatch(text)
        if word.dynamic or word.pattern:
            found.unclear.append(f"the variable that {program} sets is known only when it runs")
        elif name and ("=" in text or program not in ("export", "readonly")):
            found.assignments.append((name[1], value))
        elif text.startswith("-"):  # `-aNAME`, after any other letters
            found.assignments += [(text[at:], value) for at in range(2, min(len(text), AHEAD))]


SPECIAL: dict[str, Callable[[str, list[Word], Effects], None]] = {
    "cd": cd_effects,
    "pushd": cd_effects,
    "command": command_effects,
    "env": env_effects,
    "eval": eval_effects,
    "find": find_effects,
    "flock": flock_effects,
    "watch": watch_effects,
    "trap": trap_effects,
    "set": set_effects,
    "git": git_effects,
    "make": make_effects,
    "gmake": make_effects,
    "cp": copy_effects,
    "mv": copy_effects,
    "ln": copy_effects,
    "install": copy_effects,
    **dict.fromkeys(SETTERS, variable_effects),
    **dict.fromkeys(QUERIES, client_effects),
}
"""Programs with rules of their own."""
QUIET = (
    ORDINARY
    - SPECIAL.keys()
    - UNREADABLE_ARGUMENTS.keys()
    - WRAPPERS.keys()
    - UNREADABLE
    - INTERPRETERS
)
"""Programs that need no closer look."""
