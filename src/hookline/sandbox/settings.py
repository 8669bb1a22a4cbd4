"""`[sandbox]`: how children are confined.

A project may tighten what the user's own files say, and never loosen it: see `stricter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hookline.errors import SandboxError

Profile: TypeAlias = Literal["read-only", "workspace", "open", "off"]
PROFILES: tuple[Profile, ...] = ("read-only", "workspace", "open", "off")
"""From the strictest to none at all."""

Kind: TypeAlias = Literal["shell", "jobs", "command_hooks", "mcp", "search", "git"]
KINDS: tuple[Kind, ...] = ("shell", "jobs", "command_hooks", "mcp", "search", "git")

Outside: TypeAlias = Literal["allow", "ask", "deny"]
OUTSIDE: tuple[Outside, ...] = ("deny", "ask", "allow")

DEFAULTS: Mapping[Kind, Profile] = {
    "shell": "workspace",
    "jobs": "workspace",
    "command_hooks": "open",
    "mcp": "open",
    "search": "read-only",
    "git": "workspace",
}

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size(value: Any) -> Any:
    """Read `"512M"` or `"4GiB"` as a number of bytes."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower().removesuffix("b").removesuffix("i")
    digits = text.rstrip("kmgt")
    unit = text[len(digits) :]
    if unit not in _UNITS or not digits.strip().isdigit():
        raise ValueError('must be a number of bytes, or a text such as "512M" or "4G"')
    return int(digits) * _UNITS[unit]


Size = Annotated[int, BeforeValidator(size), Field(gt=0)]


class _SandboxSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class ChildLimits(_SandboxSection):
    """`[sandbox.limits]`: the limits of one child and its descendants. `None` means no limit."""

    memory: Size | None = 8 << 30
    """Bytes of memory that one process may allocate."""
    processes: Annotated[int, Field(gt=0)] | None = 1024
    """Processes and threads at once."""
    open_files: Annotated[int, Field(gt=0)] | None = 8192
    """Open files per process."""
    cpu_seconds: Annotated[int, Field(gt=0)] | None = None
    """Seconds of processor time per process."""
    file_size: Size | None = 16 << 30
    """Bytes of the largest file that a process may write."""

    def lowered(self, other: ChildLimits) -> ChildLimits:
        """The lower of two limits, one by one."""
        values: dict[str, int | None] = {}
        for name in type(self).model_fields:
            given = [v for v in (getattr(self, name), getattr(other, name)) if v is not None]
            values[name] = min(given, default=None)
        return ChildLimits(**values)


class SandboxSettings(_SandboxSection):
    """`[sandbox]`."""

    enabled: bool = True
    """False starts every child unconfined, and then shell calls need approval; see `required`."""
    required: bool = True
    """Whether a shell call needs approval when no sandbox is active, even if policy allows it."""
    auto_approve: bool = False
    """Run confined shell commands without asking. Packs, the floor and hooks still judge them."""
    outside: Outside = "ask"
    """What happens to a shell call that asks to run outside the sandbox."""
    profile: Profile | None = None
    """The profile of `shell` and `jobs`, unless they have their own."""
    shell: Profile | None = None
    jobs: Profile | None = None
    command_hooks: Profile | None = None
    mcp: Profile | None = None
    search: Profile | None = None
    git: Profile | None = None
    subagents: Profile | None = None
    """The loosest profile that any child of a subagent may have."""
    read: list[str] = Field(default_factory=list)
    """Further folders and files that confined children may read."""
    write: list[str] = Field(default_factory=list)
    """Further folders that confined children may write to; not in `read-only`."""
    protect: list[str] = Field(default_factory=list)
    """Further paths in the workspace that stay read-only."""
    network: list[str] | dict[Kind, list[str]] = Field(default_factory=list)
    """Hosts that children may reach through the proxy, for all kinds or by kind; `*` is any host."""
    environment: list[str] = Field(default_factory=list)
    """Further variables that children inherit, by name or as `PREFIX_*`."""
    limits: ChildLimits = Field(default_factory=ChildLimits)

    def profile_of(self, kind: Kind, *, project: bool = False) -> Profile:
        """The profile of a kind of child; a project's code never gets a looser one than `workspace`."""
        chosen: Profile | None = getattr(self, kind)
        if chosen is None and kind in ("shell", "jobs"):
            chosen = self.profile
        profile = chosen or DEFAULTS[kind]
        return strictest(profile, "workspace") if project else profile

    def hosts_of(self, kind: Kind) -> list[str]:
        """The hosts that the settings open for a kind of child."""
        return self.network if isinstance(self.network, list) else self.network.get(kind, [])


def strictest(*profiles: Profile) -> Profile:
    """The strictest of some profiles."""
    return PROFILES[min(map(PROFILES.index, profiles))]


def read_settings(values: Mapping[str, Any], place: str = "[sandbox]") -> SandboxSettings:
    """Check one file's `[sandbox]`; the error names the setting."""
    try:
        return SandboxSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise SandboxError(f"{place}: {name}: {first['msg']}") from None


def layered(user: Mapping[str, Any], project: Mapping[str, Any]) -> SandboxSettings:
    """The settings of the user's own files, tightened by a project's."""
    own = read_settings(user)
    return stricter(own, read_settings(project, "the project's [sandbox]"), project) if project else own


def stricter(
    own: SandboxSettings, project: SandboxSettings, said: Mapping[str, Any]
) -> SandboxSettings:
    """Apply a project's settings to the user's, as far as they tighten them; ignore the rest."""
    changed: dict[str, Any] = {}
    for kind in KINDS:
        wanted: Profile | None = getattr(project, kind)
        if wanted is None and kind in ("shell", "jobs"):
            wanted = project.profile
        if wanted is not None:
            changed[kind] = strictest(own.profile_of(kind), wanted)
    if project.subagents is not None:
        changed["subagents"] = strictest(own.subagents or "off", project.subagents)
    if "outside" in said:
        changed["outside"] = OUTSIDE[min(OUTSIDE.index(own.outside), OUTSIDE.index(project.outside))]
    if "network" in said:
        changed["network"] = {
            kind: [host for host in own.hosts_of(kind) if host in project.hosts_of(kind)]
            for kind in KINDS
        }
    if "limits" in said:
        lowered = own.limits.lowered(project.limits)
        given = cast("dict[str, Any]", said["limits"])
        changed["limits"] = own.limits.model_copy(
            update={name: getattr(lowered, name) for name in given}
        )
    changed["protect"] = [*own.protect, *project.protect]
    changed["required"] = own.required or ("required" in said and project.required)
    changed["auto_approve"] = own.auto_approve and project.auto_approve is not False
    if "auto_approve" not in said:
        changed["auto_approve"] = own.auto_approve
    if "enabled" in said and project.enabled:
        changed["enabled"] = True
    return own.model_copy(update=changed)
