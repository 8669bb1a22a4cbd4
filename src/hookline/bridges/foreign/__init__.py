"""Extensions of other frameworks as plugins of Hookline.

    hooks.add(from_langchain(PIIMiddleware("email")))

An extension can be mounted if it touches only tool calls and texts; others are refused with the reason.
A plugin of pluggy whose functions have the names of our hooks needs none of this.
"""

from __future__ import annotations

from typing import Any

from hookline.errors import BridgeError


def from_langchain(middleware: Any) -> object:
    """A middleware of LangChain as a plugin."""
    from .langchain import mount  # pyright: ignore[reportUnknownVariableType]

    return mount(middleware)


def from_pydantic_ai(capability: Any) -> object:
    """A capability of pydantic-ai as a plugin."""
    from .pydantic_ai import mount  # pyright: ignore[reportUnknownVariableType]

    return mount(capability)


def from_strands(provider: Any) -> object:
    """A hook provider or a plugin of Strands as a plugin."""
    from .strands import mount

    return mount(provider)


def refuse(extension: Any, why: str) -> BridgeError:
    """The error for an extension that cannot be mounted."""
    return BridgeError(f"{type(extension).__name__} cannot be mounted: {why}")


__all__ = ["from_langchain", "from_pydantic_ai", "from_strands"]
