"""Command patterns: `git push *`, compared with what a command line would run.

    CommandPattern("git push *").match(commands_of("git -C . push"))    # "git -C . push"

A pattern is a program and its first words. Options of the command may stand anywhere between them,
those of the pattern must be among the command's, and a `*` at the end stands for the rest, which may
be nothing. A word that is known only when it runs may be any word.
"""

from __future__ import annotations

from functools import lru_cache

from ..patterns import matches_glob, plain
from .effects import base_of
from .options import GLOBAL_OPTIONS
from .programs import ORDINARY
from .reader import ShellCommands, options_of
from .words import Word

AHEAD = 32
"""Words after a program that is not known among which another program is looked for."""


class CommandPattern:
    """One pattern over commands."""

    __slots__ = ("_bare", "_open", "_operands", "_options", "_program", "_whole", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        words = plain(text).split()
        self._whole = " ".join(words)
        self._bare = self._whole.removesuffix(" *")
        self._open = words[-1:] == ["*"]
        rest = words[1:-1] if self._open and len(words) > 1 else words[1:]
        self._program = words[0].rpartition("/")[2] if words else ""
        self._options = [word for word in text.split()[1:] if word.startswith("-")]
        self._operands = [word for word in rest if not word.startswith("-")]

    def match(self, commands: ShellCommands) -> str | None:
        """The command that the pattern describes, or may describe; None if there is certainly none."""
        for line, call in zip(commands.lines, commands.calls, strict=True):
            folded = plain(line)
            if folded == self._bare or matches_glob(folded, self._whole) or self._fits(call):
                return line
        return None

    def _fits(self, call: list[Word]) -> bool:
        if self._at(call):
            return True
        if call[0].text in ORDINARY:
            return False
        return any(self._at(call[at:]) for at in range(1, min(len(call), AHEAD)))

    def _at(self, call: list[Word]) -> bool:
        program = call[0].text.rpartition("/")[2]
        if not self._program or not (
            matches_glob(plain(program), self._program) or plain(base_of(program)) == self._program
        ):
            return False
        return self._has_options(program, call) and self._has_operands(program, call[1:])

    def _has_options(self, program: str, call: list[Word]) -> bool:
        if not self._options or any(word.dynamic for word in call):
            return True
        given: set[str] = set()
        for word in call[1:]:
            if word.text[:1] == "-" and word.text != "-":
                given |= options_of(program, word.text)
        for option in self._options:
            name = option.partition("=")[0]
            letters = (
                {name} if name.startswith("--") or len(name) == 2 else {f"-{one}" for one in name[1:]}
            )
            wanted = [options_of(program, one) if len(one) > 1 else {one} for one in letters]
            if name not in given and not all(one & given for one in wanted):
                return False
        return True

    def _has_operands(self, program: str, words: list[Word]) -> bool:
        """Follow every way to read the words: an option may or may not take the word after it."""
        takes, flags = GLOBAL_OPTIONS.get(program, (frozenset[str](), frozenset[str]()))
        last = len(self._operands)
        places = {0}
        skippable = certain = False
        for word in words:
            if self._open and last in places:
                return True
            if word.dynamic:
                places = set(range(min(places), last + 1))
                skippable = True
                continue
            text = word.text
            if text[:1] == "-" and len(text) > 1:
                certain = text in takes
                skippable = not (text in flags or (text.partition("=")[0] in takes and "=" in text))
                continue
            folded = plain(text)
            found: set[int] = set()
            for place in places:
                if skippable or text[:1] == "+":  # `cargo +nightly`
                    found.add(place)
                if certain or place >= last:
                    continue
                wanted = self._operands[place]
                if matches_glob(folded, wanted):
                    found.add(place + 1)
                    if wanted == "*":
                        found.add(place)
            places, skippable, certain = found, False, False
            if not places:
                return False
        return last in places


@lru_cache(maxsize=512)
def command_pattern(text: str) -> CommandPattern:
    """A pattern, prepared once."""
    return CommandPattern(text)
