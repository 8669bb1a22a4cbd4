r"""Patterns that stay fast whatever the text is: shell-style globs and regular expressions.

    Glob("git push *").matches("git push origin main")     # True
    PathGlob("src/**/*.py").matches("src/a/b.py")          # True
    Pattern(r"sk-\w{20,}").search("no key here")           # None

Python's `re` and `fnmatch` backtrack: `*a*a*a*b` takes minutes on a few kilobytes of `a`. Text that
a model, a web page or a stranger wrote is therefore never given to them together with a pattern that
can backtrack. A `Glob` is matched piece by piece; everything else runs on RE2, whose time is linear
in the text. RE2 has no lookaround and no backreferences, and its `\d`, `\w` and `\s` mean ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any
from unicodedata import normalize

from hookline.text.errors import PatternError

LONGEST = 4_000
"""Characters that a pattern may have."""

_STARS = re.compile(r"\*+")
_CLASS = re.compile(r"\[([!^]?)(\]?[^\]]+|\])\]")
_PATH_TOKEN = re.compile(r"\*\*/|\*\*|[*?{},]|\[[!^]?(?:\]?[^\]]+|\])\]|[^*?{},\[]+|\[")
_UNICODE_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|(.))", re.DOTALL)


def plain(text: str) -> str:
    """A text in the form that patterns are compared with: look-alikes folded, small letters."""
    return text.lower() if text.isascii() else normalize("NFKC", text).casefold()


class Glob:
    """A shell-style pattern: `*` any text, `?` one character, `[abc]` or `[!abc]` one of a set.

    The text between two stars has a fixed length, so each piece is looked for once, from where the
    one before it ended: the first place that fits is always the best one.
    """

    __slots__ = ("_exact", "_first", "_last", "_middle", "text")

    def __init__(self, text: str) -> None:
        self.text = _of_usable_length(text)
        pieces = [_Piece(piece) for piece in _split_at_stars(text)]
        self._exact = len(pieces) == 1
        self._first, *middle = pieces
        self._last = middle.pop() if middle else self._first
        self._middle = tuple(piece for piece in middle if piece.length)

    def __repr__(self) -> str:
        return f"Glob({self.text!r})"

    def matches(self, text: str) -> bool:
        """Whether the pattern describes the whole text, with the case as it is."""
        if self._exact:
            return len(text) == self._first.length and self._first.is_at(text, 0)
        end = len(text) - self._last.length
        at = self._first.length
        if at > end or not self._first.is_at(text, 0) or not self._last.is_at(text, end):
            return False
        for piece in self._middle:
            found = piece.find(text, at, end)
            if found < 0:
                return False
            at = found + piece.length
        return True


class _Piece:
    """A part of a glob without stars: plain text, or characters of which some are sets."""

    __slots__ = ("_pattern", "_plain", "length")

    def __init__(self, text: str) -> None:
        self._plain = text
        self._pattern: re.Pattern[str] | None = None
        self.length = len(text)
        if "?" in text or "[" in text:
            expression, self.length = _fixed_length(text)
            self._pattern = re.compile(expression, re.DOTALL)

    def is_at(self, text: str, at: int) -> bool:
        if self._pattern is not None:
            return self._pattern.match(text, at) is not None
        return text.startswith(self._plain, at)

    def find(self, text: str, begin: int, end: int) -> int:
        if self._pattern is None:
            return text.find(self._plain, begin, end)
        found = self._pattern.search(text, begin, end)
        return found.start() if found else -1


def _split_at_stars(text: str) -> list[str]:
    if "[" not in text:
        return _STARS.split(text)
    parts = [""]
    at = 0
    while at < len(text):
        if text[at] == "[" and (found := _CLASS.match(text, at)):
            parts[-1] += found[0]
            at = found.end()
        elif text[at] == "*":
            parts.append("")
            at += 1
        else:
            parts[-1] += text[at]
            at += 1
    return parts


def _fixed_length(text: str) -> tuple[str, int]:
    """A piece as a regular expression without repetition, and how many characters it matches."""
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "[" and (found := _CLASS.match(text, at)):
            out.append(_character_class(found[1], found[2]))
            at = found.end()
            continue
        out.append("." if text[at] == "?" else re.escape(text[at]))
        at += 1
    return "".join(out), len(out)


def _character_class(negated: str, inside: str) -> str:
    """`[a-z]` in the syntax that Python and RE2 share; a range that is upside down matches nothing."""
    out: list[str] = []
    at = 0
    while at < len(inside):
        low = high = inside[at]
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            high = inside[at + 2]
            at += 2
        if low <= high:
            out.append(_literal(low) if low == high else f"{_literal(low)}-{_literal(high)}")
        at += 1
    if not out:
        return r"[\s\S]" if negated else r"[^\s\S]"
    return f"[{'^' if negated else ''}{''.join(out)}]"


def _literal(char: str) -> str:
    return f"\\{char}" if char in "\\[]^-&~|" else char


@lru_cache(maxsize=1024)
def _glob(text: str) -> Glob:
    return Glob(text)


def matches_glob(text: str, pattern: str) -> bool:
    """Whether a cached `Glob` matches the whole text."""
    return _glob(pattern).matches(text)


class Pattern:
    """A regular expression on RE2: its time is linear in the text, whatever the expression is."""

    __slots__ = ("_compiled", "text")

    def __init__(
        self, text: str, *, ignore_case: bool = False, multiline: bool = False, dot_all: bool = False
    ) -> None:
        self.text = _of_usable_length(text)
        flags = "i" * ignore_case + "m" * multiline + "s" * dot_all
        source = f"(?{flags}:{_translated(text)})" if flags else _translated(text)
        re2: Any = import_module("re2")  # untyped, and costs some milliseconds: when first needed
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled: Any = re2.compile(source, options)
        except re2.error as error:
            raise PatternError(_why(text, error)) from None
        except UnicodeEncodeError:
            raise PatternError(f"{text!r} has a character that UTF-8 cannot hold") from None

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def search(self, text: str) -> tuple[int, int] | None:
        """Where the expression first matches, from and to; None if it does not."""
        found = self._compiled.search(_encodable(text))
        return found.span() if found else None

    def matches(self, text: str) -> bool:
        """Whether the expression describes the whole text."""
        return self._compiled.fullmatch(_encodable(text)) is not None

    def spans(self, text: str, group: int = 0) -> Iterator[tuple[int, int]]:
        """Where the expression, or a group of it, matches: from and to, from left to right."""
        for found in self._compiled.finditer(_encodable(text)):
            span = found.span(group)
            if span[0] >= 0:
                yield span

    def groups(self, text: str) -> Iterator[list[tuple[int, int]]]:
        """Where each group of each match is; one that takes no part in a match is at -1."""
        numbers = range(1, self._compiled.groups + 1)
        for found in self._compiled.finditer(_encodable(text)):
            yield [found.span(number) for number in numbers]


class PathGlob:
    """A glob over paths: `*` stays within a folder, `**` crosses them; `{a,b}` is either.

    With `sets=False`, brackets and braces stand for themselves, as in `app/[id]/page.tsx`.
    """

    __slots__ = ("_pattern", "text")

    def __init__(self, text: str, *, sets: bool = True, below: bool = False) -> None:
        self.text = _of_usable_length(text)
        expression = _path_expression(text, sets)
        self._pattern = Pattern(f"(?s:{expression}{'(?:/.*)?' if below else ''})")

    def __repr__(self) -> str:
        return f"PathGlob({self.text!r})"

    def matches(self, path: str) -> bool:
        """Whether the glob describes the whole path."""
        return self._pattern.matches(path)


def _path_expression(glob: str, sets: bool) -> str:
    out: list[str] = []
    depth = 0
    closing = glob.rfind("}") if sets else -1
    at = 0
    for found in _PATH_TOKEN.finditer(glob):
        token, at = found[0], found.start()
        match token:
            case "**/":
                out.append("(?:.*/)?")
            case "**":
                out.append(".*")
            case "*":
                out.append("[^/]*")
            case "?":
                out.append("[^/]")
            case "{" if at < closing:
                depth += 1
                out.append("(?:")
            case "}" if depth:
                depth -= 1
                out.append(")")
            case "," if depth:
                out.append("|")
            case _ if sets and (bracket := _CLASS.fullmatch(token)):
                negated = "^/" if bracket[1] else ""
                inside = _character_class("", bracket[2])[1:-1]
                out.append(f"[{negated}{inside}]")
            case _:
                out.append(re.escape(token))
    return "".join(out) + ")" * depth


def _of_usable_length(text: str) -> str:
    if len(text) > LONGEST:
        raise PatternError(f"a pattern may have {LONGEST:,} characters; this one has {len(text):,}")
    return text


def _encodable(text: str) -> str | bytes:
    """The text as RE2 can take it: half a surrogate pair becomes one `?`, so positions stay."""
    if text.isascii():
        return text.encode()  # positions in bytes are those in characters: nothing to convert
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _translated(text: str) -> str:
    r"""What Python and JavaScript write differently: `\Z`, `\uXXXX` and `\/`."""

    def rewritten(found: re.Match[str]) -> str:
        if code := found[1] or found[2]:
            return f"\\x{{{code}}}"
        return {"Z": r"\z", "/": "/", "h": r"[ \t]"}.get(found[3], found[0])

    return _UNICODE_ESCAPE.sub(rewritten, text)


def _why(text: str, error: Exception) -> str:
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    raw = error.args[0] if error.args else error
    said = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    if "invalid perl operator" in said or "invalid escape sequence" in said:
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError):
            pass
        else:
            said = f"{said}; lookaround and backreferences are not supported (RE2 syntax)"
    return f"{shown!r} is not a regular expression: {said}"
