"""The sections that there are, and what a project's file may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

THINKING = ("off", "low", "medium", "high")

SCALARS = {"model": "the model that answers", "thinking": "how long it thinks first"}
"""The settings that stand above all tables; both are texts."""

CHECKED = ("limits", "plugins", "providers")
"""The sections of which `schema` has the form."""

OPEN = (
    "agents",
    "channels",
    "compaction",
    "gateway",
    "hooks",
    "mcp",
    "options",
    "policy",
    "session",
    "skills",
    "stores",
    "stt",
    "tape",
    "trace",
    "triggers",
    "tts",
    "voice",
)
"""The sections whose form is declared by whoever reads them."""

SPELLED: Mapping[str, Any] = {"providers": {"openai-compatible": {}}}
"""Names with a hyphen, for variables of the environment, which have none."""


def admitted(project: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What a project's file may say without being trusted, and the rest with the reason.

    A repository is a stranger's: it must not decide where keys and conversations are sent, nor name
    a model that is a program of its own.
    """
    taken = dict(project)
    refused: dict[str, str] = {}
    if "providers" in taken:
        del taken["providers"]
        refused["providers"] = "only your own files say where requests and keys go"
    model = taken.get("model")
    if isinstance(model, str) and _brought(model):
        del taken["model"]
        refused["model"] = "a project may not name an address or a file as the model; use --model"
    return taken, refused


def _brought(model: str) -> bool:
    """Whether a model is named by an address or a file instead of by a name."""
    provider, _, rest = model.partition(":")
    return (
        provider in ("scripted", "openai-compatible")
        or "://" in rest
        or (provider == "local" and bool(rest))
    )
