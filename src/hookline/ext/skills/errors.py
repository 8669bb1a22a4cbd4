"""Errors of skills."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.hooks.errors import HooklineError, suggestion

_SHOWN = 20


class SkillError(HooklineError):
    """A skill that cannot be read or is not well formed; the message says why."""


class UnknownSkill(SkillError, LookupError):
    """A name that no skill has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        super().__init__(f"unknown skill {name!r}{suggestion(name, names) or _list(names)}")
        self.name = name


def _list(names: list[str]) -> str:
    if not names:
        return "; there are no skills"
    return f"; there are: {', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"
