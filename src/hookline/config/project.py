"""What a project's `.hookline/config.toml` may set: two allow-lists, one before it is trusted.

A repository is written by strangers. Until a person trusts its file, only the settings in `HARMLESS`
count, each checked on its own: they choose among what the user already has, or make things stricter.
After that the settings in `TRUSTED` count too. Whatever is in neither list stays inert, so a new
section is closed to projects until someone decides otherwise here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from .sections import THINKING

Names: TypeAlias = tuple[str, ...]
"""A setting by the names that lead to it. A name may contain a dot, so the parts stay apart."""

Rule: TypeAlias = Callable[[Any, Mapping[str, Any]], str]
"""Why a value is not harmless, or nothing. The mapping has the user's own settings."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,60}")

UNTRUSTED = "this project is not trusted"


@dataclass(frozen=True, slots=True)
class IgnoredSetting:
    """A setting in a project's file that does not count."""

    dotted: str
    reason: str
    waits: bool
    """Whether it counts once the project is trusted."""


def admitted(
    written: Mapping[str, Any],
    own: Mapping[str, Any],
    *,
    trusted: bool = False,
    folder: Path | None = None,
) -> tuple[dict[str, Any], list[IgnoredSetting]]:
    """The settings of a project's file that count, and the others with the reason.

    `own` holds the settings of every other place, and `folder` is the project's.
    """
    counts: dict[str, Any] = {}
    inert: list[IgnoredSetting] = []
    for names, value in _leaves(written):
        never = _never(names, value, own, folder)
        opens = names[0] in TRUSTED  # `[sandbox]` stays as strict as it was
        reason = never or ("" if trusted and opens else _not_harmless(names, value, own))
        if reason:
            inert.append(IgnoredSetting(_dotted(names), reason, waits=opens and not never))
        else:
            _put(counts, names, value)
    return counts, inert


# --- before it is trusted -------------------------------------------------------------------------

SHIPPED_PACKS = ("budgets", "destructive-shell", "network-egress", "protected-paths", "read-only")
STRICTNESS = ("allow", "auto", "ask", "deny")
CHILDREN = (
    "profile", "shell", "jobs", "command_hooks", "mcp", "search", "git", "subagents",
)  # fmt: skip
PROFILES = ("read-only", "workspace", "open", "off")
CHILD_LIMITS = ("memory", "processes", "open_files", "cpu_seconds", "file_size")
MOST, LONGEST = 100, 200
"""Entries of a list, and characters of each."""


def _not_harmless(names: Names, value: Any, own: Mapping[str, Any]) -> str:
    rule = HARMLESS.get(names)
    if rule is None:
        return UNTRUSTED
    if "$" in str(value):
        return f"{UNTRUSTED}, so nothing in it is filled in from your environment"
    return rule(value, own)


def _model(value: Any, own: Mapping[str, Any]) -> str:
    agents = _table(own.get("agents")).values()
    known = [own.get("model", "local"), *(_table(agent).get("model") for agent in agents)]
    if isinstance(value, str) and value in known:
        return ""
    return f"{UNTRUSTED}, so it can only choose a model that your own settings name"


def _thinking(value: Any, own: Mapping[str, Any]) -> str:
    most = own.get("thinking", "medium")
    if value in THINKING and most in THINKING and THINKING.index(value) <= THINKING.index(most):
        return ""
    return f"{UNTRUSTED}, so it can only lower this: at most {most!r}"


def _whole(*names: str, least: int, most: int | None) -> tuple[Names, Rule]:
    """A whole number that may be lowered from the user's, or from the default."""

    def rule(value: Any, own: Mapping[str, Any]) -> str:
        if type(value) is not int or value < least:
            return f"it must be a whole number from {least} on"
        return _above(value, _find(own, names), most)

    return names, rule


def _number(
    *names: str, most: float | None, none: float | None = None, zero: bool = False
) -> tuple[Names, Rule]:
    """A number that may be lowered; `none` is the user's word for no limit, `zero` is a number too."""

    def rule(value: Any, own: Mapping[str, Any]) -> str:
        if type(value) not in (int, float) or not 0 <= value < math.inf or (value == 0 and not zero):
            return "it must be a positive number"
        said = _find(own, names)
        return "" if none is not None and said == none else _above(value, said, most)

    return names, rule


def _above(value: float, said: Any, default: float | None) -> str:
    most = default if said is None else said
    if most is None:
        return ""
    if type(most) not in (int, float):
        return "your own setting is not a number that it could be compared with"
    return "" if value <= most else f"{UNTRUSTED}, so it can only lower this: at most {most:g}"


def _policy_default(value: Any, own: Mapping[str, Any]) -> str:
    least = _find(own, ("policy", "default")) or "auto"
    known = value in STRICTNESS and least in STRICTNESS
    if known and STRICTNESS.index(value) >= STRICTNESS.index(least):
        return ""
    return f"a project can only be stricter than {least!r}"


def _true(value: Any, own: Mapping[str, Any]) -> str:
    return "" if value is True else "a project can only turn this on"


def _false(value: Any, own: Mapping[str, Any]) -> str:
    return "" if value is False else "a project can only turn this off"


def _deny(value: Any, own: Mapping[str, Any]) -> str:
    return "" if value == "deny" else 'a project can only set this to "deny"'


def _ordered(*names: str, values: tuple[str, ...], most: str) -> tuple[Names, Rule]:
    """One of some values, the strictest first: not looser than the user's, or than `most`."""

    def rule(value: Any, own: Mapping[str, Any]) -> str:
        said = _find(own, names) or most
        if value in values and said in values and values.index(value) <= values.index(said):
            return ""
        return f"a project can only be stricter than {said!r}"

    return names, rule


def _texts(*names: str, among: tuple[str, ...] | None = None) -> tuple[Names, Rule]:
    """A list of short strings that can only make the policy stricter."""

    def rule(value: Any, own: Mapping[str, Any]) -> str:
        if not isinstance(value, list) or len(cast("list[Any]", value)) > MOST:
            return f"it must be a list of at most {MOST} texts"
        for each in cast("list[Any]", value):
            if not isinstance(each, str) or len(each) > LONGEST or not each.isprintable():
                return f"it must be a list of printable texts of at most {LONGEST} characters"
            if among is not None and each not in among:
                return f"{UNTRUSTED}, so it can only name {', '.join(among)}"
        return ""

    return names, rule


def _floor(kind: str) -> Iterator[tuple[Names, Rule]]:
    for name in ("tools", "namespaces", "paths", "commands"):
        yield _texts("policy", "floor", kind, name)
    yield _texts("policy", "floor", kind, "effects", among=("none", "read", "write", "external"))


HARMLESS: dict[Names, Rule] = {
    ("model",): _model,
    ("thinking",): _thinking,
    **dict([
        _whole("limits", "steps", least=1, most=50),
        _number("limits", "tool_seconds", most=600, none=0),
        _whole("limits", "parallel_tools", least=1, most=8),
        _whole("limits", "tokens", least=1, most=None),
        _whole("limits", "sent_back", least=0, most=3),
        _whole("limits", "depth", least=0, most=3),
        _whole("limits", "subagents", least=1, most=100),
        _whole("limits", "retry", "attempts", least=1, most=4),
        _number("policy", "approvals", "seconds", most=None),
        _texts("policy", "packs", among=SHIPPED_PACKS),
        *_floor("deny"),
        *_floor("ask"),
        _texts("policy", "network", "allow"),
        _whole("policy", "budgets", "calls", least=0, most=None),
        _whole("policy", "budgets", "tokens", least=0, most=None),
        _whole("policy", "budgets", "seconds", least=0, most=None),
        _number("policy", "budgets", "cost", most=None, zero=True),
        *(_ordered("sandbox", name, values=PROFILES, most="workspace") for name in CHILDREN),
        _ordered("sandbox", "outside", values=("deny", "ask", "allow"), most="ask"),
        _texts("sandbox", "protect"),
        *(_whole("sandbox", "limits", name, least=1, most=None) for name in CHILD_LIMITS),
    ]),
    ("policy", "default"): _policy_default,
    ("hooks", "on_gate_error"): _deny,
    ("sandbox", "enabled"): _true,
    ("sandbox", "required"): _true,
    ("sandbox", "auto_approve"): _false,
}  # fmt: skip
"""What counts without trust. `[policy]` and `[sandbox]` take the stricter of the user's and this."""


# --- after it is trusted --------------------------------------------------------------------------

TRUSTED = (
    "agents", "compaction", "hooks", "limits", "mcp", "model", "options", "plugins", "policy",
    "stores", "stt", "thinking", "tts",
)  # fmt: skip
"""The sections that a trusted project may set."""

OPTIONS = (
    "frequency_penalty", "max_completion_tokens", "max_output_tokens", "max_tokens",
    "parallel_tool_calls", "presence_penalty", "reasoning_effort", "seed", "stop", "temperature",
    "top_k", "top_p", "verbosity",
)  # fmt: skip
"""What a trusted project may send with a request; never an address or a key."""

REASONS = {
    "agent_hooks": "only your own settings say how calls are judged",
    "audit": "only your own settings say what is recorded",
    "channels": "only your own settings say who can reach the gateway",
    "gateway": "only your own settings say who can reach the gateway",
    "otel": "only your own settings say what is recorded",
    "providers": "only your own settings say where requests and keys go",
    "redaction": "only your own settings say what is recorded",
    "sandbox": "only your own settings say what a command can reach",
    "streaming": "only your own settings say how answers are judged",
    "tape": "only your own settings say where conversations are kept",
    "trace": "only your own settings say what is recorded",
    "triggers": "only your own settings start turns without a message from you",
    "worker": "only your own settings say who can reach the gateway",
}


PLUGIN_SWITCHES = {
    (name,) for name in ("disabled", "on_load_error", "order", "require_lock", "required", "unpinned")
}
"""Settings of `[plugins]` for all plugins, besides their own tables."""

_YOURS = {("mcp", "servers"): "server", ("plugins",): "plugin", ("stores",): "store"}
"""Tables with programs, addresses and keys: one that the user has is the user's alone."""


def _never(names: Names, value: Any, own: Mapping[str, Any], folder: Path | None) -> str:
    """Why a setting never counts in a project's file, even if trusted; nothing if it may."""
    section = names[0]
    if names not in HARMLESS and section not in TRUSTED:
        return REASONS.get(section, "a project cannot set this section")
    if names == ("model",) or (section == "agents" and names[2:] == ("model",)):
        return _brought(value)
    if section in ("model", "thinking") and len(names) > 1:
        return "it must be a text"
    if section == "plugins" and names[1:2] in PLUGIN_SWITCHES:
        return "only your own settings say which plugins take part"
    if names[:2] == ("hooks", "on_gate_error"):
        return _deny(value if len(names) == 2 else None, own)
    if names[:2] == ("hooks", "commands") and len(names) == 3 and not isinstance(value, list):
        return "only your own settings say how command hooks run"
    for above, kind in _YOURS.items():
        at = len(above)
        if names[:at] == above and len(names) > at and names[at] in _table(_find(own, above)):
            return f"your own settings configure this {kind}"
    if section == "options" and names[1:] not in {(name,) for name in OPTIONS}:
        return "a project cannot set this option"
    if section in ("stt", "tts") and "://" in f"{value}":
        return "only your own settings say where recordings and answers go"
    if section == "policy":
        return _policy_path(names, value, folder)
    return ""


def _brought(model: Any) -> str:
    """Why a model is not a name but an address or a file."""
    provider, _, rest = str(model).partition(":")
    if (
        not isinstance(model, str)
        or provider in ("scripted", "openai-compatible")
        or "://" in rest
        or (provider == "local" and rest)
    ):
        return "a project cannot name an address or a file as the model; use --model"
    return ""


def _policy_path(names: Names, value: Any, folder: Path | None) -> str:
    """Why a file that `[policy]` names cannot be read: it must lie in the project."""
    if names == ("policy", "floor", "cedar"):
        files = [value]
    elif names == ("policy", "packs") and isinstance(value, list):
        listed = cast("list[Any]", value)
        files = [name for name in listed if not isinstance(name, str) or _is_path(name)]
    else:
        return ""
    for name in files:
        if not isinstance(name, str) or folder is None or not _lies_in(name, folder):
            return "a file or folder that it names must lie in the project"
    return ""


def _is_path(pack: str) -> bool:
    return "/" in pack or pack.startswith(("~", "."))


def _lies_in(name: str, folder: Path) -> bool:
    if name.startswith("~"):
        return False
    try:
        return (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


# --- tables ---------------------------------------------------------------------------------------


def _leaves(values: Mapping[str, Any], above: Names = ()) -> Iterator[tuple[Names, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(cast("Mapping[str, Any]", value), (*above, name))
        elif not isinstance(value, Mapping) or above or name not in TRUSTED:
            yield (*above, name), value


def _put(values: dict[str, Any], names: Names, value: Any) -> None:
    for name in names[:-1]:
        values = values.setdefault(name, {})
    values[names[-1]] = value


def _find(values: Mapping[str, Any], names: Names) -> Any:
    found: Any = values
    for name in names:
        found = _table(found).get(name)
    return found


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _dotted(names: Names) -> str:
    return ".".join(name if _PLAIN.fullmatch(name) else repr(name) for name in names)
