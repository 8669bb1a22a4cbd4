"""Globs: `**`, `*`, `?`, `[abc]` and `{a,b}` as a regular expression over paths with `/`."""

from __future__ import annotations

import re

from hookline.tools.errors import ToolError

_SET = re.compile(r"\[([!^]?)(\]?[^\]]+|\])\]")
_SPECIAL = re.compile(r"[\\\[\]^&~|]")


def glob_pattern(glob: str) -> re.Pattern[str]:
    """The pattern of a glob. One without a slash matches names in every folder."""
    glob = glob.removeprefix("./")
    if "/" not in glob:
        glob = f"**/{glob}"
    try:
        return re.compile(_translate(glob.lstrip("/")), re.DOTALL)
    except re.error as error:
        raise ToolError(f"{glob!r} is not a glob: {error.msg}") from error


def _translate(glob: str) -> str:
    out: list[str] = []
    at = depth = 0
    while at < len(glob):
        rest, char = glob[at:], glob[at]
        if rest.startswith("**/"):
            out.append("(?:[^/]+/)*")
            at += 3
            continue
        if rest.startswith("**"):
            out.append(".*")
            at += 2
            continue
        if char == "[" and (found := _SET.match(rest)):
            inside = _SPECIAL.sub(r"\\\g<0>", found[2])
            out.append(f"[{'^/' if found[1] else ''}{inside}]")
            at += len(found[0])
            continue
        if char == "{" and "}" in rest:
            depth += 1
            out.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            out.append(")")
        elif char == "," and depth:
            out.append("|")
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)))
        at += 1
    return "".join(out) + ")" * depth
