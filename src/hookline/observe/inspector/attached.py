"""The catalogue with who is attached, and the plugins with how they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..reference.markdown import FAMILIES, describe

if TYPE_CHECKING:
    from hookline.hooks import HookSpec
    from hookline.hooks.implementation import Implementation
    from hookline.hookspecs import Hooks
    from hookline.runtime.app import Hookline

    from ..trace.stats import Measured


def catalogue(hooks: Hooks, fired: dict[str, tuple[int, float]]) -> list[dict[str, Any]]:
    """Every hook as declared, with who is attached in run order, and when it was last seen firing."""
    told: list[dict[str, Any]] = []
    for family, specs in hooks.catalog.families().items():
        for spec in specs:
            calls, last = fired.get(spec.name, (None, None))
            told.append(
                {
                    **describe(spec),
                    "family_title": FAMILIES.get(family, family),
                    "attached": _attached(hooks, spec),
                    "calls": calls,
                    "last": last,
                }
            )
    return told


def _attached(hooks: Hooks, spec: HookSpec) -> list[dict[str, Any]]:
    hook = hooks[spec.name]
    everywhere = [_described(impl) for impl in hook.run_order()]
    known = {id(impl) for impl in hook.run_order()}
    scoped = [
        {**_described(impl), "scope": str(key)}
        for key in hook.scope_keys()
        for impl in hook.run_order(key)
        if id(impl) not in known
    ]
    return [*everywhere, *scoped]


def _described(impl: Implementation) -> dict[str, Any]:
    marks = {
        "wrapper": impl.wrapper,
        "guard": impl.guard,
        "first": impl.tryfirst,
        "last": impl.trylast,
        "filtered": impl.when is not None,
    }
    return {
        "name": impl.name,
        "place": impl.location,
        "marks": [name for name, is_set in marks.items() if is_set],
        "order": impl.order,
        "timeout": impl.timeout,
        "is_plugin": impl.plugin is not None,
        "left_behind": impl.left_behind,
    }


def plugins(app: Hookline, measured: Mapping[str, Measured]) -> dict[str, Any]:
    """Every plugin with its state, hooks and times, the hook files, and the problems."""
    hooks = app.hooks
    own: dict[str, list[str]] = {}
    handlers: dict[str, list[str]] = {}
    for spec in hooks.catalog.values():
        for impl in hooks[spec.name].run_order():
            where = own if impl.plugin is not None else handlers
            where.setdefault(impl.name, []).append(spec.name)
    failures = [{"plugin": each.plugin, "text": str(each)} for each in app.failures]
    return {
        "plugins": [
            {**asdict(each), "hooks": own.get(each.name, []), "health": _health(measured, each.name)}
            for each in app.plugins.states()
        ],
        "handlers": [
            {"name": name, "hooks": found, "health": _health(measured, name)}
            for name, found in handlers.items()
        ],
        "failures": failures,
        "warnings": list(app.plugins.warnings),
        "files": [
            {"name": file.name, "handlers": len(file.implementations)} for file in app.hook_files.files
        ],
        "not_trusted": [str(each) for each in app.hook_files.inert()],
    }


def _health(measured: Mapping[str, Measured], name: str) -> dict[str, Any] | None:
    return asdict(measured[name]) if name in measured else None
