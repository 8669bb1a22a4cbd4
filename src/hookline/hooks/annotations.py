"""Result types: what a hook's annotation says about the values that implementations may return."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, is_typeddict

from .errors import DeclarationError

_AWAITABLE = get_origin(Awaitable[Any])


def plain_result(annotation: Any) -> Any:
    """Return an annotation without None and without what must be awaited."""
    if isinstance(annotation, str):
        raise DeclarationError(
            f"the result type {annotation!r} must be an object, not a string: "
            "declare hooks in a module without `from __future__ import annotations`"
        )
    if annotation is NoneType:
        return None
    if not is_union(annotation):
        return annotation
    kept = [a for a in get_args(annotation) if a is not NoneType and get_origin(a) is not _AWAITABLE]
    return Union[tuple(kept)] if kept else None  # noqa: UP007  (built at run time)


def outer_classes(annotation: Any) -> tuple[type, ...] | None:
    """Return the classes to check a value against; None if the type says too little to check.

    The results of a hook that returns None are not checked.
    """
    if annotation is None or annotation is NoneType:
        return None
    if is_union(annotation):
        parts = [outer_classes(a) for a in get_args(annotation)]
        return None if None in parts else tuple(c for p in parts for c in p or ())
    if get_origin(annotation) is Literal:
        return tuple({type(value): None for value in get_args(annotation)})
    cls: Any = get_origin(annotation) or annotation
    if is_typeddict(cls):
        return (dict,)
    if cls is float:
        return (float, int)
    unknown = cls is Any or cls is object or getattr(cls, "_is_protocol", False)
    return None if unknown or not isinstance(cls, type) else (cast("type", cls),)


def fits(value: Any, annotation: Any) -> bool:
    """Return whether a value has the outer class of a type; a literal must be one of its values."""
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if is_union(annotation):
        return any(fits(value, a) for a in get_args(annotation))
    classes = outer_classes(annotation)
    return classes is None or isinstance(value, classes)


def has_literal(annotation: Any) -> bool:
    """Return whether a type is, or is a union with, a `Literal`: then classes alone do not decide."""
    if is_union(annotation):
        return any(has_literal(a) for a in get_args(annotation))
    return get_origin(annotation) is Literal


def is_union(annotation: Any) -> bool:
    """Return whether a type is a union, written in either way."""
    return get_origin(annotation) in (Union, UnionType)


def type_name(annotation: Any) -> str:
    """Return a type as people write it."""
    if annotation is None or annotation is NoneType:
        return "None"
    if isinstance(annotation, str):
        return annotation
    if is_union(annotation):
        return " | ".join(type_name(a) for a in get_args(annotation))
    if get_origin(annotation) is Literal:
        return " | ".join(repr(a) for a in get_args(annotation))
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(annotation))
