"""The sections that there are, and what a project's file may say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hookline.hooks.errors import suggestion

from .errors import ConfigError

if TYPE_CHECKING:
    from .layers import Layer

THINKING = ("off", "low", "medium", "high")

SCALARS = {"model": "the model that answers", "thinking": "how long it thinks first"}
"""The settings that stand above all tables; both are texts."""

CHECKED = ("compaction", "limits", "plugins", "providers", "streaming")
"""The sections of which `schema` has the form."""

OPEN = (
    "agent_hooks",
    "agents",
    "audit",
    "channels",
    "gateway",
    "hooks",
    "mcp",
    "options",
    "otel",
    "policy",
    "redaction",
    "sandbox",
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


def known(declared: Iterable[str]) -> list[str]:
    """The names that the top of a file may have, with what was declared."""
    return [*SCALARS, *CHECKED, *OPEN, *(name.partition(".")[0] for name in declared)]


def check_top(values: Mapping[str, Any], layers: Sequence[Layer], declared: Iterable[str]) -> None:
    """Refuse what cannot be anybody's section: an unknown name that is no table, and wrong kinds."""
    names = known(declared)
    for name, value in values.items():
        owner = next((layer for layer in reversed(layers) if layer.has(name)), None)
        place = f"{owner.label(name)}: " if owner else ""
        if name in SCALARS:
            _check_scalar(name, value, place)
        elif isinstance(value, dict):
            continue  # a plugin that is not loaded may own it: a review tells
        elif name in names:
            raise ConfigError(f"{place}{name} must be a table, such as [{name}]")
        elif owner is None or owner.origin != "environment":  # a variable may be somebody else's
            raise ConfigError(f"{place}unknown setting {name!r}{suggestion(name, names)}")


def _check_scalar(name: str, value: Any, place: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{place}{name} must be a text, {SCALARS[name]}")
    if name == "thinking" and value not in THINKING:
        levels = ", ".join(THINKING)
        raise ConfigError(f"{place}thinking must be one of {levels}{suggestion(value, THINKING)}")


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
    for name in ("audit", "otel", "redaction", "trace"):
        if name in taken:
            del taken[name]
            refused[name] = "only your own files say what is kept"
    if "triggers" in taken:
        del taken["triggers"]
        refused["triggers"] = "only your own files start turns that nobody asked for"
    for name in ("gateway", "channels"):
        if taken.pop(name, None) is not None:
            refused[name] = "only your own files say who may come in, and how"
    if taken.pop("tape", None) is not None:
        refused["tape"] = "only your own files say where conversations are kept"
    for name in ("agent_hooks", "streaming"):
        if taken.pop(name, None) is not None:
            refused[name] = "only your own files say how answers and calls are judged"
    model = taken.get("model")
    if isinstance(model, str) and _brought(model):
        del taken["model"]
        refused["model"] = "a project may not name an address or a file as the model; use --model"
    for name in ("stt", "tts"):
        if "://" in _engine(taken.get(name)):
            del taken[name]
            refused[name] = "only your own files say where recordings and answers go"
    return taken, refused


def _engine(table: object) -> str:
    """What a table of speech names as its engine; the halves may stand apart."""
    values = cast("dict[str, Any]", table if isinstance(table, dict) else {})
    return f"{values.get('provider')}:{values.get('model')}"


def _brought(model: str) -> bool:
    """Whether a model is named by an address or a file instead of by a name."""
    provider, _, rest = model.partition(":")
    return (
        provider in ("scripted", "openai-compatible")
        or "://" in rest
        or (provider == "local" and bool(rest))
    )
