"""Words: a shell command taken apart as the shell does it, as far as that is certain.

The reader understands quoting, operators, redirections, substitutions and here-documents. What it
cannot be sure of it does not guess: the word is `dynamic`, or the whole command is opaque, and policies
treat both as something that may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

BLANK = " \t"
OPERATORS = ("&&", "||", ";;", "|&", "|", ";", "&", "\n")
BETWEEN = {operator: operator for operator in OPERATORS} | {"\n": "newline"}
"""How the operators between commands are told to policies."""
QUOTES = "'\""
REDIRECTIONS = ("&>>", "<<<", "<<-", "<<", ">>", "<>", ">|", ">&", "<&", "&>", ">", "<")
STARTING = ("if", "then", "else", "elif", "do", "while", "until", "!", "{", "time")
"""Words of the shell's own, after which a command begins."""
BREAK = re.compile(r"[ \t\n]")
PLAIN = re.compile(r"[\w./:=@%+,^-]+")
"""Characters that stand for themselves."""
COMMON = re.compile(
    r"""
    [ \t]*+
    (?: ( (?: [\w./:=@%+,^-]++ | '(?!~)[^'\0]*+' | "(?!~)[^"\\$`\0]*+" ) (?=[ \t\n|&;]|\Z)
        | && | \|\| | \|& | ;(?!;) | [|&\n]
        )
      | .+
    )
    """,
    re.VERBOSE | re.DOTALL,
)
"""The next word or operator where nothing needs a closer look; nothing, where something does."""
LONGEST = 65_536
DEEPEST = 6


class Opaque(Exception):
    """The command cannot be understood with certainty."""


@dataclass(slots=True)
class Word:
    """One word as the shell would pass it on; `dynamic` where it is known only when it runs."""

    text: str
    dynamic: bool = False
    pattern: bool = False
    """It has wildcards that the shell replaces by the files that match."""
    quoted: bool = False


@dataclass(slots=True)
class Script:
    """What a command line consists of."""

    commands: list[list[Word]] = field(default_factory=list[list[Word]])
    targets: list[Word] = field(default_factory=list[Word])
    """Files that redirections open."""
    operators: set[str] = field(default_factory=set[str])
    inner: list[str] = field(default_factory=list[str])
    """The text of substitutions: they are commands, too."""


def read_line(text: str) -> Script:
    """Take a command line apart; `Opaque` where that cannot be done with certainty.

    Most lines are words, some of them in quotes, and operators between commands: one look finds them.
    """
    pieces: list[str] = COMMON.findall(text)
    if "" in pieces or len(text) > LONGEST:
        return Reader(text).read()
    command: list[Word] = []
    commands = [command]
    operators: set[str] = set()
    for piece in pieces:
        if piece in BETWEEN:
            operators.add(BETWEEN[piece])
            command = []
            commands.append(command)
        elif piece[0] in QUOTES:
            command.append(Word(piece[1:-1], quoted=True))
        else:
            command.append(Word(piece))
    return Script([one for one in commands if one], [], operators, [])


class Reader:
    """Reads one command line from its beginning to its end."""

    def __init__(self, text: str) -> None:
        if "\0" in text or len(text) > LONGEST:
            raise Opaque
        self.text = text
        self.at = 0
        self.script = Script()
        self._awaited: list[tuple[str, bool, bool]] = []
        """Here-documents whose text begins on the next line: delimiter, quoted, tabs stripped."""

    def read(self) -> Script:
        """The whole line."""
        command: list[Word] = []
        for kind, value in self._pieces():
            if kind == "word":
                command.append(value)
            else:
                self.script.operators.add(BETWEEN.get(value.text, value.text))
                command = self._end(command)
        self._end(command)
        if self._awaited:
            raise Opaque
        return self.script

    def _end(self, command: list[Word]) -> list[Word]:
        if command:
            self.script.commands.append(command)
        return []

    def _pieces(self) -> Iterator[tuple[str, Word]]:
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char in BLANK:
                self.at += 1
            elif char.isalpha():
                yield "word", self._word()
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif char in "()":
                if char == "(" and (text.startswith("((", self.at) or self._after_a_word()):
                    raise Opaque  # arithmetic, or the definition of a function
                self.at += 1
                yield "operator", Word(char)
            elif not text.startswith(("<(", ">("), self.at) and self._redirection():
                continue
            elif operator := next((o for o in OPERATORS if text.startswith(o, self.at)), None):
                if operator == ";;":
                    raise Opaque  # a `case`
                self.at += len(operator)
                if operator == "\n":
                    self._here_documents()
                yield "operator", Word(operator)
            else:
                word = self._word()
                redirected = text.startswith(("<", ">"), self.at) and not word.quoted
                if not (redirected and word.text.isdigit()):  # else it is the number of a file
                    yield "word", word

    def _after_a_word(self) -> bool:
        before = self.text[: self.at].rstrip(" \t\\\n")
        if not before or before[-1] in "|&;(){!=":
            return False
        return BREAK.split(before)[-1] not in STARTING

    def _redirection(self) -> bool:
        operator = next((o for o in REDIRECTIONS if self.text.startswith(o, self.at)), None)
        if operator is None:
            return False
        self.at += len(operator)
        self.script.operators.add(operator)
        while self.text.startswith((" ", "\t", "\\\n"), self.at):
            self.at += 2 if self.text[self.at] == "\\" else 1
        word = self._word()
        if not word.text and not word.dynamic and not word.quoted:
            raise Opaque
        if operator in ("<<", "<<-"):
            if word.dynamic:
                raise Opaque
            self._awaited.append((word.text, word.quoted, operator == "<<-"))
        elif operator != "<<<" and not (operator in (">&", "<&") and word.text.strip("-").isdigit()):
            self.script.targets.append(word)
        return True

    def _here_documents(self) -> None:
        for delimiter, quoted, stripped in self._awaited:
            while True:
                if self.at >= len(self.text):
                    raise Opaque
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                if (line.lstrip("\t") if stripped else line) == delimiter:
                    break
                if not quoted and ("$" in line or "`" in line or line.endswith("\\")):
                    raise Opaque
        self._awaited = []

    # --- one word -----------------------------------------------------------------------------

    def _word(self) -> Word:
        word, parts, text = Word(""), list[str](), self.text
        while self.at < len(text):
            if plain := PLAIN.match(text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
                continue
            char = text[self.at]
            if text.startswith(("<(", ">("), self.at):
                self.at += 1
                self._substitution(word)
            elif char in " \t\n|&;()<>":
                break
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "\\":
                parts.append(text[self.at + 1 : self.at + 2])
                word.quoted = True
                self.at += 2
            elif char == "'":
                parts.append(self._until("'"))
                word.quoted = True
            elif char == '"':
                word.quoted = True
                self._double(word, parts)
            elif char in "$`":
                self._dollar(word, parts)
            else:
                word.pattern = word.pattern or char in "*?["
                word.dynamic = word.dynamic or char in "{}"
                parts.append(char)
                self.at += 1
        word.text = "".join(parts)
        word.dynamic = word.dynamic or word.text.startswith(("~+", "~-"))
        if word.dynamic and word.text in ("{", "}", "{}"):
            word.dynamic = False
        return word

    def _until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise Opaque
        inside, self.at = self.text[self.at + 1 : end], end + 1
        return inside

    def _double(self, word: Word, parts: list[str]) -> None:
        self.at += 1
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == '"':
                self.at += 1
                return
            if text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "\\" and text[self.at + 1 : self.at + 2] in tuple('$`"\\'):
                parts.append(text[self.at + 1])
                self.at += 2
            elif char in "$`":
                self._dollar(word, parts)
            else:
                parts.append(char)
                self.at += 1
        raise Opaque

    def _dollar(self, word: Word, parts: list[str]) -> None:
        """Something that the shell replaces."""
        text = self.text
        if text[self.at] == "`":
            self.script.inner.append(self._until("`"))
            word.dynamic = True
            return
        following = text[self.at + 1 : self.at + 2]
        if following == "(":
            if text.startswith("$((", self.at):
                raise Opaque
            self.at += 1
            self._substitution(word)
            return
        if following == "[":
            raise Opaque  # arithmetic of old
        if not (following.isalnum() or following in tuple("_{'\"@*#?-$!")):
            parts.append("$")
            self.at += 1
            return
        for known, value in (("$HOME", "~"), ("${HOME}", "~"), ("$PWD", "."), ("${PWD}", ".")):
            after = text[self.at + len(known) : self.at + len(known) + 1]
            if text.startswith(known, self.at) and not (after.isalnum() or after == "_"):
                word.dynamic = word.dynamic or bool(parts)
                parts.append(value)
                self.at += len(known)
                return
        word.dynamic = True
        self.at += 1
        if following == "'":
            self._until("'")
        elif following == "{":
            inside = self._until("}")
            if any(char in inside for char in "`'\"{\\") or "$(" in inside:
                raise Opaque
        elif following != '"':
            self.at += 1
            while text[self.at : self.at + 1].isalnum() or text[self.at : self.at + 1] == "_":
                self.at += 1

    def _substitution(self, word: Word) -> None:
        """`(…)` from here on, with what is quoted in it left alone."""
        word.dynamic = True
        start, depth, text = self.at + 1, 0, self.text
        while self.at < len(text):
            char = text[self.at]
            if char == "\\":
                self.at += 2
                continue
            if char in "'\"":
                if char == '"' and "$(" in text[self.at :]:
                    raise Opaque  # quotes within quotes: too deep to be sure
                self._until(char)
                continue
            if char == "#" or text.startswith("<<", self.at):
                raise Opaque
            depth += (char == "(") - (char == ")")
            self.at += 1
            if depth == 0:
                self.script.inner.append(text[start : self.at - 1])
                return
        raise Opaque
