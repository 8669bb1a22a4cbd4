"""Code objects: made once per shape, and a function of its own for each use."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

from .implementation import Arguments
from .spec import HookSpec

_codes: dict[Any, CodeType] = {}
_CODES = 1024


def known(key: Any) -> CodeType | None:
    """The code of that shape, where it was made before."""
    return _codes.get(key)


def remember(key: Any, source: str) -> CodeType:
    """Compile the function in a source and keep its code."""
    filename = f"<hookline dispatch {abs(hash(source)):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    code = next(c for c in compile(source, filename, "exec").co_consts if isinstance(c, CodeType))
    if len(_codes) >= _CODES:
        _codes.clear()
    _codes[key] = code
    return code


def instantiate(
    code: CodeType, spec: HookSpec | None, env: dict[str, Any], defaults: tuple[Any, ...] | None
) -> Callable[..., Any]:
    """A function of its own from shared code. What it refers to are its globals: on 3.11 to 3.13
    a specialised global costs less than a closure's cell, which every call copies.
    """
    name = spec.name if spec else "adapter"
    return FunctionType(code.replace(co_name=name, co_qualname=name), env, name, defaults)


def defaults_of(spec: HookSpec) -> tuple[Any, ...] | None:
    """An event's context may be left out."""
    return (None,) if spec.event is not None else None


def adapter(
    function: Callable[..., Any], arguments: Arguments, params: tuple[str, ...]
) -> Callable[..., Any]:
    """A callable over all of a hook's parameters, by position, for one that takes some."""
    return forward(function, params, arguments.source(params))


def forward(
    function: Callable[..., Any],
    params: tuple[str, ...],
    arguments: str,
    spec: HookSpec | None = None,
    defaults: tuple[Any, ...] | None = None,
) -> Callable[..., Any]:
    """A function with these parameters that calls another with these arguments."""
    key = ("forward", params, arguments)
    code = known(key) or remember(
        key,
        f"def fire({', '.join(params)}):\n    return _f({arguments})\n",
    )
    return instantiate(code, spec, {"_f": function}, defaults)


def by_scope(
    spec: HookSpec,
    passed: tuple[str, ...],
    base: Callable[..., Any],
    keys: Mapping[Any, Any],
    nested: Mapping[Any, Any],
    under: Callable[[Any], Callable[..., Any]],
) -> Callable[..., Any]:
    """Choose by the scope key of each call: the scope's own function, or the one for everybody."""
    parameter, _, attribute = (spec.scope or "").partition(".")
    scope_key = f'getattr({parameter}, "{attribute}", None)' if attribute else parameter
    arguments = ", ".join(passed)
    key = ("scope", passed, spec.scope)
    code = known(key) or remember(
        key,
        f"def fire({arguments}):\n"
        f"    _k = {scope_key}\n"
        f"    if _k in _keys or _k in _nested:\n"
        f"        return _under(_k)({arguments})\n"
        f"    return _base({arguments})\n",
    )
    env = {"_base": base, "_keys": keys, "_nested": nested, "_under": under, "getattr": getattr}
    return instantiate(code, spec, env, defaults_of(spec))


def named(layered: Callable[..., Any], spec: HookSpec, passed: tuple[str, ...]) -> Callable[..., Any]:
    """Give a layered function the hook's own parameters, so that it can be called by name."""
    return forward(layered, passed, ", ".join(passed), spec, defaults_of(spec))
