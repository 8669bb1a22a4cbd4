"""Access: which methods of a protocol read and which write, and the permissions that allow them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, get_args

from .errors import StoreMisconfigured

Access = Literal["read", "write"]
ALL: frozenset[Access] = frozenset(get_args(Access))

F = TypeVar("F", bound=Callable[..., Any])


def reads(method: F) -> F:
    """Mark a protocol's method as a read: it needs the permission to read."""
    setattr(method, "__access__", "read")  # noqa: B010  # a function has no such attribute to typing
    return method


def writes(method: F) -> F:
    """Mark a protocol's method as a write: it needs the permission to write."""
    setattr(method, "__access__", "write")  # noqa: B010
    return method


def access_of(protocol: type, method: str) -> Access | None:
    """The permission that a method needs; None for a method that users of the store cannot call."""
    return getattr(getattr(protocol, method, None), "__access__", None)


def permission(store: str, access: str) -> str:
    """The permission as tools list it: `db.notes:read`."""
    return f"db.{store}:{access}"


def granted(store: str, permissions: Iterable[str]) -> frozenset[Access]:
    """What these permissions allow on a store."""
    listed = set(permissions)
    return frozenset(access for access in ALL if permission(store, access) in listed)


def offered(store: str, capabilities: Iterable[str]) -> frozenset[Access]:
    """The methods that a store supports: all, unless its capabilities say less."""
    listed = list(capabilities)
    known = {permission(store, access) for access in ALL}
    for capability in listed:
        if capability not in known:
            raise StoreMisconfigured(
                store,
                f"capabilities: {capability!r} is none of {', '.join(sorted(known))}",
            )
    return granted(store, listed) if listed else ALL
