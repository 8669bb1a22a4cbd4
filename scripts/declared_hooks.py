"""Writes what is derived from the declared hooks: `docs/hooks.md`, and the types of `hooks.on.<name>`.

.venv/bin/python scripts/declared_hooks.py
"""

import sys
import typing
from pathlib import Path
from types import NoneType, UnionType

from hookline.hooks import HookSpec
from hookline.hookspecs import CATALOG
from hookline.observe.reference.markdown import markdown

ROOT = Path(__file__).parents[1]
TYPES = ROOT / "src/hookline/declared_hooks.py"
PAGE = ROOT / "docs/hooks.md"


def types_module() -> str:
    """The source of `hookline.declared_hooks`."""
    used: dict[str, set[str]] = {".decorators": set()}
    lines: list[str] = []
    for family, specs in CATALOG.families().items():
        lines += ["", f"    # {family}", *(f"    {attribute(spec, used)}" for spec in specs)]
    above = [imported(name, used.pop(name)) for name in ("collections.abc", "typing") if name in used]
    below = [imported(name, names) for name, names in sorted(used.items())]
    return "\n".join(
        [
            '"""One typed decorator for each declared hook and event: `hooks.on.<name>`.',
            "",
            "Made by `scripts/declared_hooks.py` from the declarations; a test fails when it is stale.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            imported("typing", {"TYPE_CHECKING"}),
            "",
            "if TYPE_CHECKING:",
            *("    " + line for text in above for line in text.splitlines()),
            "",
            *("    " + line for text in below for line in text.splitlines()),
            "",
            "",
            "class DeclaredHooks:",
            '    """The decorators of the shipped hooks, for type checkers and completion."""',
            *lines,
            "",
        ]
    )


def attribute(spec: HookSpec, used: dict[str, set[str]]) -> str:
    """The line of one hook."""
    kind = "EventDecorator" if spec.event else "SyncHookDecorator" if spec.sync else "HookDecorator"
    used[".decorators"].add(kind)
    types = [annotation(each, used) for each in (spec.event, spec.result)[spec.event is None :]]
    return f"{spec.name.replace(':', '_')}: {kind}[{', '.join(types)}]"


def annotation(of: typing.Any, used: dict[str, set[str]]) -> str:
    """A type as source; the names that it needs are added to those that are used."""
    origin, arguments = typing.get_origin(of), typing.get_args(of)
    if of is None or of is NoneType:
        return "None"
    if origin in (typing.Union, UnionType):
        return " | ".join(annotation(each, used) for each in arguments)
    if origin is typing.Literal:
        used.setdefault("typing", set()).add("Literal")
        return "Literal[" + ", ".join(f'"{each}"' for each in arguments) + "]"
    if origin is not None:
        inner = ", ".join("..." if each is Ellipsis else annotation(each, used) for each in arguments)
        return f"{annotation(origin, used)}[{inner}]"
    if of.__module__ != "builtins":
        module = of.__module__.removeprefix("hookline")
        used.setdefault(module, set()).add(of.__name__)
    return of.__name__


def imported(module: str, names: set[str]) -> str:
    """An import as ruff lays it out."""
    line = f"from {module} import {', '.join(sorted(names))}"
    if len(line) <= 96:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in sorted(names)), ")"])


if __name__ == "__main__":
    TYPES.write_text(types_module())
    PAGE.write_text(markdown(CATALOG))
    sys.stdout.write(f"wrote {TYPES.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}\n")
