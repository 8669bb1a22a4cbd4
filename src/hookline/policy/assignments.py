r"""Assignments: values that a text gives to secret names, in the syntaxes in which people write them.

export API_TOKEN='…'    "password": "…"    password: …    --token …    <secret>…</secret>
api_keys = ["…", "…"]   credentials:\n  user: …           [secrets]\nname = "…"
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from hookline.text.patterns import Pattern

from .secret_names import is_code, is_placeholder, looks_random, strength

Span = tuple[int, int, str]

_KIND = "secret"
_WORD = r"(?:pass|pwd|\bpw|secret|token|jwt|key|cred|auth|cookie|_pat\b|\bpin\b)"
"""What every name has in it that counts."""
_NAME = rf"[\w.$-]*{_WORD}[\w.-]*"
_QUOTED = r'\\*"((?:[^"\\\n]|\\[^"\n])*)|\\*\'((?:[^\'\\\n]|\\[^\'\n])*)|`([^`\n]*)'
_ASSIGNED = (
    rf"(?i)({_NAME})(\\*[\"'`]?\]?[ \t]*(?::=|=>|==?|:)[ \t]*)"
    rf"(?:[brfu]{{0,2}}(?:{_QUOTED})|([^\s\"'`,;&|<>(){{}}\[\]]+))"
)
_LISTED = rf"(?i)({_NAME})\\*[\"'`]?\]?\s*(?:=>|=|:)\s*[\[({{]([^\])}}]*)"
_ITEM = r'"((?:[^"\\\n]|\\.)*)"(\s*:)?|\'((?:[^\'\\\n]|\\.)*)\'(\s*:)?'
_OPTION = rf"(?i)(?:^|\s)--?({_NAME})[ \t]+(?:{_QUOTED}|([^\s\"'`-][^\s\"'`]*))"
_ELEMENT = rf"(?i)<({_NAME})(?:\s[^<>]*)?>([^<>]+)</"
_NAMED = (
    rf"(?i)\b(?:name|key)[\"']?\s*[:=]\s*[\"']?({_NAME})[\"']?,?\s+[\"']?value[\"']?\s*[:=]\s*"
    r"(?:\"([^\"\n]*)|'([^'\n]*)|([^\s\"'<>,{}]+))"
)
_HEADING = (
    rf"(?im)^([ \t]*(?:-[ \t]+)?)[\"']?({_NAME})[\"']?:[ \t]*(?:#.*)?$"
    rf"|^\[[\[]?([\w.\"-]*{_WORD}[\w\"-]*)\]+[ \t]*$"
)
_COLOUR = r"\x1b\[[0-9;]*m"
_NOISE = rf"{_COLOUR}|%2[27]|[^\w\x1b]"
_NEAR = (
    rf"(?i)(?:{_COLOUR})?({_NAME})(?:{_NOISE}){{0,8}}(?:[=:|\t\x{{ff1d}}]|%3D|%3A)"
    rf"(?:{_NOISE}|\b[a-z_.]{{1,40}}\(|[brfu]{{1,2}}[\"']){{0,16}}([\w+/.%-]{{16,}}=*)"
)
"""A long value after a name, whatever stands between the two: colours, a block of YAML, a table."""
MOST_LINES = 500
"""How many lines below a heading such as `credentials:` are checked."""


@cache
def _pattern(expression: str) -> Pattern:
    return Pattern(expression)


def _assigned(text: str) -> Iterator[Span]:
    for groups in _pattern(_ASSIGNED).groups(text):
        (begin, name_end), (_, sign_end), *values = groups
        quoted, bare = values[:3], values[3]
        name = text[begin:name_end].strip("-.$")
        level = strength(name)
        if not level:
            continue
        span = next((each for each in quoted if each[0] >= 0), None)
        if span is not None:
            compared = "==" in text[name_end:sign_end]
            yield from _kept_unless_secret(text, span, 1 if compared else level)
        elif _is_bare_value(text, begin, text[name_end:sign_end], bare, level):
            yield (*_whole(text, begin, bare), _KIND)


def _kept_unless_secret(text: str, span: tuple[int, int], level: int) -> Iterator[Span]:
    value = text[span[0] : span[1]]
    if value.strip() and not is_placeholder(value) and (level == 2 or looks_random(value)):
        yield (*span, _KIND)


def _is_bare_value(text: str, begin: int, sign: str, span: tuple[int, int], level: int) -> bool:
    """Whether an unquoted word is a value, as in `.env` and YAML, and not part of a program."""
    value = text[span[0] : span[1]]
    if is_placeholder(value) or "==" in sign:
        return False
    after = text[span[1] : span[1] + 1]
    random = looks_random(value)
    is_variable = sign == "=" and text[begin : span[0] - 1].isupper()
    if after and after in "([" and not is_variable:  # a call, an index, a generic type
        return False
    if level == 1:
        return (random and ":" in sign) or (random and sign == "=")
    if value.isdigit():
        return (
            len(value) >= 4
            and sign.strip("\"' ") != ":="
            and "token" not in text[begin : span[0]].lower()
        )
    if ":" in sign:  # YAML, a header: the value is all that follows on the line
        rest = text[span[1] : span[1] + 200].split("\n", 1)[0].strip(" \t\r,;}])'\"\\")
        return (not rest or rest.startswith("#") or random) and not (
            is_code(value) and after in ("=", ",")
        )
    if sign != sign.strip() or text[begin - 1 : begin] in ("(", ","):  # spaces: INI, or a program
        return random or not is_code(value)
    if text[max(0, begin - 2) : begin] == ", ":
        return random or not is_code(value)
    return value.lower() != text[begin : span[0] - len(sign)].lower()


def _whole(text: str, begin: int, span: tuple[int, int]) -> tuple[int, int]:
    """The value to the end of its line where the line is one of an environment file."""
    head = text[max(0, begin - 20) : begin].rpartition("\n")[2].strip()
    if head not in ("", "export", "set", "ENV") or text[span[0] - 1] != "=":
        return span
    rest = text[span[1] : span[1] + 1000].split(maxsplit=1)
    glued = rest[0] if rest and not text[span[1]].isspace() else ""
    return span[0], span[1] + len(glued)


def _listed(text: str) -> Iterator[Span]:
    for name, inside in _pattern(_LISTED).groups(text):
        if strength(text[name[0] : name[1]].strip("-.$")) < 2:
            continue
        held = text[inside[0] : inside[1]]
        for one, one_is_key, other, other_is_key in _pattern(_ITEM).groups(held):
            span = one if one[0] >= 0 else other
            if max(one_is_key[0], other_is_key[0]) < 0:
                moved = (inside[0] + span[0], inside[0] + span[1])
                yield from _kept_unless_secret(text, moved, 2)


def _optioned(text: str) -> Iterator[Span]:
    for name, *values in _pattern(_OPTION).groups(text):
        if strength(text[name[0] : name[1]]) == 2:
            span = next(each for each in values if each[0] >= 0)
            value = text[span[0] : span[1]]
            if "=" not in value or not value.startswith("="):
                yield from _kept_unless_secret(text, span, 2 if len(value) > 2 else 1)


def _named(text: str, expression: str = _NAMED) -> Iterator[Span]:
    for name, *values in _pattern(expression).groups(text):
        level = strength(text[name[0] : name[1]])
        if level:
            yield from _kept_unless_secret(text, next(v for v in values if v[0] >= 0), level)


def _near(text: str) -> Iterator[Span]:
    for name, value in _pattern(_NEAR).groups(text):
        if strength(text[name[0] : name[1]].strip("-.$")) == 2:
            yield from _kept_unless_secret(text, value, 1)


def _elements(text: str) -> Iterator[Span]:
    return _named(text, _ELEMENT)


def _below_headings(text: str) -> Iterator[Span]:
    """Lines below `credentials:` in YAML or `[secrets]` in TOML."""
    done = 0
    for indent, key, table in _pattern(_HEADING).groups(text):
        name = key if key[0] >= 0 else table
        if name[0] < done or strength(text[name[0] : name[1]].strip("\"'")) < 2:
            continue
        deep = len(text[indent[0] : indent[1]].expandtabs()) if key[0] >= 0 else -1
        at = text.find("\n", name[1]) + 1
        for _ in range(MOST_LINES):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            line = text[at:end]
            if at == 0 or at > len(text) or _is_outside(line, deep):
                break
            yield from _value_of_line(text, at, line)
            at = end + 1
        done = at


def _is_outside(line: str, deep: int) -> bool:
    bare = line.lstrip()
    if not bare or bare.startswith("#"):
        return deep >= 0 and not line.strip() and not line  # a blank line may stand inside
    if deep < 0:
        return bare.startswith("[")
    indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
    return indent < deep or (indent == deep and not bare.startswith("- "))


def _value_of_line(text: str, at: int, line: str) -> Iterator[Span]:
    bare = line.strip()
    for sign in (":", "="):
        name, found, value = bare.partition(sign)
        if found and " " not in name.strip().removeprefix("- "):
            break
    else:
        value = bare.removeprefix("- ") if bare.startswith("- ") else ""
    value = value.strip().strip("\"'")
    if not value or " " in value or is_placeholder(value):
        return
    begin = text.find(value, at)
    yield begin, begin + len(value), _KIND


ASSIGNMENTS = (_assigned, _listed, _optioned, _named, _near, _elements, _below_headings)
"""What finds the values under secret names, each from left to right."""
