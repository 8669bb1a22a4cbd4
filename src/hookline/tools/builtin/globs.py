"""Globs: `**`, `*`, `?`, `[abc]` and `{a,b}` as a regular expression over paths with `/`."""

from __future__ import annotations

import re


def glob_pattern(glob: str) -> re.Pattern[str]:
    """The pattern of a glob. One without a slash matches names in every folder."""
    glob = glob.removeprefix("./")
    if "/" not in glob:
        glob = f"**/{glob}"
    return re.compile(_translate(glob.lstrip("/")), re.DOTALL)


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
        if char == "[" and (found := re.match(r"\[(!?)(\]?[^\]]*)\]", rest)):
            inside = found[2].replace("\\", "\\\\").replace("[", "\\[")
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
