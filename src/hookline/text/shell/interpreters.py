"""Shell interpreters: shells, whose text is read, and other languages, whose programs are not."""

from __future__ import annotations

import re

from .effects import Effects
from .programs import AWKS, HARMLESS, OTHER_SHELLS, PLAIN_OPTIONS, SEDS
from .words import Word

SHELL_OPTIONS = frozenset("cleuxvnfilmsrhBpabCET")
LONG_SHELL_OPTIONS = frozenset(
    ["--login", "--posix", "--norc", "--noprofile", "--restricted", "--verbose"]
)
SED_OPTION = re.compile(
    r"-[nErsuz]*(?:i[\w.~]*)?|--(?:quiet|silent|regexp-extended|in-place|sandbox)(?:=.*)?"
)
ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/)"
SED = re.compile(
    rf"\s*(?:{ADDRESS}(?:,(?:\+\d+|{ADDRESS}))?\s*!?)?\s*"
    r"(?:[dpqQlnNgGhHxPD=]"
    r"|s(?P<mark>[/|#,@:!~%])(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)"
    r"(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)[gpiI\d]*"
    r"|y/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/)\s*"
)
"""One command of sed that runs and writes nothing else."""
AWK = re.compile(r"system|getline|ARG|ENVIRON|close|[|>@`\\]")
"""What an awk program may run or open."""
SPECIAL_FILE = re.compile(r"/+(?:dev|proc)/")
LONGEST = 4_000
"""Characters of a program for sed or awk that are looked at."""


def shell_effects(program: str, rest: list[Word], text: str | None, found: Effects) -> None:
    """`sh -c TEXT` and here-documents are read; a shell that is fed in another way can do anything."""
    at, runs_text = 0, False
    while at < len(rest) and rest[at].text[:1] in ("-", "+") and not rest[at].dynamic:
        option = rest[at].text
        at += 1
        if option in ("--", "-"):
            break
        if option in ("--version", "--help"):
            return
        if option[1:] in ("o", "O"):
            found.unknown_option(program, option)
            at += 1
        elif option.startswith("--"):
            if option not in LONG_SHELL_OPTIONS:
                found.unknown_option(program, option)
        elif not SHELL_OPTIONS.issuperset(option[1:]):
            found.unknown_option(program, option)
        elif "c" in option:
            runs_text = True
        elif "s" in option:
            found.unclear.append(f"{program} reads commands from its input")
    if at < len(rest) and rest[at].dynamic:
        found.only_when_run(program)
    elif runs_text:
        found.texts += [word.text for word in rest[at : at + 1]]
    elif at < len(rest):
        if SPECIAL_FILE.match(rest[at].text):
            found.unclear.append(f"{program} reads commands from its input")
        found.runs.append(rest[at:])
    elif text is not None:
        found.texts.append(text)
    else:
        found.unclear.append(f"{program} reads commands from its input")


def interpreter_effects(program: str, rest: list[Word], found: Effects) -> None:
    """A program in another language is not read, unless it is a plain filter."""
    if program in OTHER_SHELLS:
        found.unclear.append(f"{program} has a syntax that is not read")
    elif len(rest) == 1 and rest[0].text in HARMLESS:
        return
    elif program in SEDS:
        sed_effects(program, rest, found)
    elif program in AWKS:
        awk_effects(program, rest, found)
    elif (command := script_file(program, rest)) is not None:
        found.runs.append(command)
    else:
        found.unclear.append(f"{program} runs a program in another language")


def script_file(program: str, rest: list[Word]) -> list[Word] | None:
    """The file or module that an interpreter runs, with its arguments; None if there is none."""
    for at, word in enumerate(rest):
        if word.dynamic:
            return None
        if word.text == "-m" and program in ("python", "pypy"):
            return rest[at + 1 :] or None
        if word.text in PLAIN_OPTIONS.get(program, ()):
            continue
        if program in ("deno", "bun") and at == 0:
            return None
        return None if word.text.startswith("-") or SPECIAL_FILE.match(word.text) else rest[at:]
    return None


def sed_effects(program: str, rest: list[Word], found: Effects) -> None:
    """Commands of sed that run a program or write a file are not followed."""
    scripts: list[Word] = []
    named = False
    words = iter(rest)
    for word in words:
        text = word.text
        if text in ("-e", "--expression"):
            scripts.append(next(words, Word("", dynamic=True)))
            named = True
        elif text.startswith("--expression="):
            scripts.append(Word(text.partition("=")[2], word.dynamic))
            named = True
        elif SED_OPTION.fullmatch(text):
            continue
        elif text.startswith("-"):
            found.unknown_option(program, text)
            return
        elif not named and not scripts:
            scripts.append(word)
    if any(script.dynamic or not is_plain_sed(script.text) for script in scripts):
        found.unclear.append(f"{program} may run or write something")


def is_plain_sed(text: str) -> bool:
    """Whether a program for sed only prints, deletes and replaces."""
    at = 0
    while at < len(text) <= LONGEST:
        step = SED.match(text, at)
        if step is None or step.end() == at:
            return False
        at = step.end()
        if at < len(text) and text[at] not in ";\n":
            return False
        at += 1
    return len(text) <= LONGEST


def awk_effects(program: str, rest: list[Word], found: Effects) -> None:
    """A program for awk that may run or open something is not followed."""
    at = 0
    while at < len(rest):
        text = rest[at].text
        if text in ("-F", "-v"):
            at += 2
        elif text[:2] in ("-F", "-v"):
            at += 1
        else:
            break
    script = rest[at] if at < len(rest) else Word("", dynamic=True)
    unsafe = script.text.startswith("-") or len(script.text) > LONGEST or AWK.search(script.text)
    if script.dynamic or unsafe:
        found.unclear.append(f"{program} runs a program that may run or open something")
