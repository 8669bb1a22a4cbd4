"""`[gateway]`: where the gateway listens, who may use it, and its limits."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from hookline.config import Config, ConfigError
from hookline.config.schema import RetrySettings
from hookline.config.validation import faults
from hookline.system.retry import RetryPolicy

from .token import check_token, own_token
from .users import NAME, OWNER, OWNER_USER, Role, User, Users

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def settings_of(config: Config, **given: Any) -> GatewaySettings:
    """`[gateway]` of the settings, overridden by the command line."""
    said = config.settings("gateway", GatewaySettings).model_dump(exclude_unset=True)
    wanted = {**said, **{name: value for name, value in given.items() if value is not None}}
    if found := faults(GatewaySettings, wanted, "gateway"):
        raise ConfigError("\n".join(f"{fault.dotted}: {fault.text}" for fault in found))
    return GatewaySettings.model_validate(wanted)


class UserSettings(BaseModel):
    """`[gateway.users.<name>]`: another user with a token."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: SecretStr
    role: Role = "user"
    """`user`: their own sessions. `operator`: everything, as the owner of the gateway."""
    approves: bool = True
    """Whether a `user` may answer questions of their own sessions. Operators always may."""

    @field_validator("token")
    @classmethod
    def _is_safe(cls, token: SecretStr) -> SecretStr:
        check_token(token.get_secret_value())
        return token


class GatewaySettings(BaseModel):
    """The `[gateway]` settings; `hookline gateway` has options for some of them."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    host: str = "127.0.0.1"
    port: int = Field(default=8765, ge=0, le=65535)
    """0 means any free port."""
    channels: list[str] | None = None
    """The enabled channels; by default `web`, `openai`, those of plugins, and every one with a table
    `[channels.<name>]`."""
    token: SecretStr | None = None
    """The token of the owner, who is an operator. Without one, a token is generated and stored in the
    home. If the host is not the local machine, a token must be set."""
    users: dict[str, UserSettings] = Field(default_factory=dict[str, UserSettings])
    """Other users with a token, by name. A plain string is the token of a `user`."""
    socket: Path | None = None
    """A Unix socket to listen on as well. Its owner needs no token."""
    models: list[str] = Field(default_factory=list)
    """Models that `/model` may choose, besides the default and those of `[agents]`."""
    hosts: list[str] = Field(default_factory=list)
    """Host names of the gateway, besides those of the local machine."""
    cors: list[str] = Field(default_factory=list)
    """Origins of other sites that may call the gateway."""
    proxies: list[str] = Field(default_factory=list)
    """Addresses of reverse proxies whose `X-Forwarded-For` is trusted."""
    inspector: bool = True
    """Whether `/inspect` shows sessions, hooks and decisions to operators."""
    requests_per_minute: int = Field(default=600, ge=0)
    """Requests a minute for each user; 0 means no limit."""
    burst: int = Field(default=60, ge=1)
    """How many requests may come at once before the limit applies."""
    wrong_tokens: int = Field(default=10, ge=1)
    """Wrong tokens a minute from one address; further ones get 429."""
    approvals_per_minute: int = Field(default=60, ge=1)
    """Answers to questions a minute for each user, right or wrong."""
    frames_per_minute: int = Field(default=1200, ge=1)
    """Frames a minute on one WebSocket, with fragments and pings; a connection that sends more is
    closed."""
    connections: int = Field(default=1024, ge=1)
    """Connections from one address on which no token was sent yet."""
    header_seconds: float = Field(default=10.0, gt=0)
    """Seconds in which the head of a request must be complete."""
    body_seconds: float = Field(default=20.0, gt=0)
    """Seconds in which a body must be complete, or at least another 16 kB of it must arrive."""
    max_header: int = Field(default=32_768, ge=1024)
    """Bytes of the head of a request: its URL and all its headers."""
    max_headers: int = Field(default=100, ge=10)
    """How many headers a request may have."""
    max_body: int = Field(default=20_000_000, ge=1)
    """Bytes of one request or WebSocket message."""
    in_flight: int = Field(default=4096, ge=1)
    """Messages being processed or waiting; further ones wait outside."""
    debounce: float = Field(default=0.0, ge=0)
    """Seconds in which further messages of one sender are merged; 0 turns it off."""
    drain: float = Field(default=20.0, ge=0)
    """Seconds for running turns to finish at shutdown; the rest are parked."""
    resume: float = Field(default=24.0, ge=0)
    """Hours back in which to look for interrupted turns at startup; 0 means none."""
    backlog: int = Field(default=1_000_000, ge=1)
    """Characters that may wait for a slow reader before it is disconnected."""
    worker: bool = True
    """In a cluster: whether this process runs turns too, or leaves all of them to workers."""
    ping: float = Field(default=20.0, gt=0)
    """Seconds between pings of a WebSocket, and for their answers."""

    @field_validator("token")
    @classmethod
    def _is_safe(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None:
            check_token(token.get_secret_value())
        return token

    @field_validator("users", mode="before")
    @classmethod
    def _with_tokens(cls, users: Any) -> Any:
        if not isinstance(users, dict):
            return users
        return {
            name: {"token": given} if isinstance(given, str | SecretStr) else given
            for name, given in users.items()  # pyright: ignore[reportUnknownVariableType]
        }

    @field_validator("users")
    @classmethod
    def _are_named(cls, users: dict[str, UserSettings]) -> dict[str, UserSettings]:
        for name in users:
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r} must be 1 to 64 letters, digits and . _ @ -")
            if name == OWNER:
                raise ValueError(f"{OWNER!r} is whoever has token in [gateway]; choose another name")
        return users

    @field_validator("socket")
    @classmethod
    def _is_expanded(cls, path: Path | None) -> Path | None:
        return path and path.expanduser().absolute()

    @field_validator("cors")
    @classmethod
    def _are_origins(cls, origins: list[str]) -> list[str]:
        for origin in origins:
            if origin in ("*", "null") or "*" in origin:
                raise ValueError(f"{origin!r} would let any page call; name each origin")
        return origins

    @model_validator(mode="after")
    def _are_different(self) -> GatewaySettings:
        known: dict[str, str] = {}
        named = [(OWNER, self.token), *((name, user.token) for name, user in self.users.items())]
        for name, token in named:
            if token is not None:
                other = known.setdefault(token.get_secret_value(), name)
                if other != name:
                    raise ValueError(f"{other} and {name} have the same token; give each their own")
        return self

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def users_of(self, home: Path) -> Users:
        """Everyone with a token; the owner's is generated if none is set."""
        own = self.token.get_secret_value() if self.token is not None else own_token(home)[0]
        return Users(
            [
                (OWNER_USER, own),
                *(
                    (User(name, each.role, each.approves), each.token.get_secret_value())
                    for name, each in self.users.items()
                ),
            ]
        )

    def with_users_of(self, before: GatewaySettings, after: GatewaySettings) -> GatewaySettings:
        """These settings with the users and the token of reloaded ones.

        What differs from `before`, the settings as last read, was set on the command line and stays.
        """
        fields = ("token", "users")
        new = {e: getattr(after, e) for e in fields if getattr(self, e) == getattr(before, e)}
        updated = self.model_copy(update=new)
        updated.check()
        return updated

    def check(self) -> None:
        """Refuse to listen on the network with a generated token that only the local log knows."""
        if not self.is_local and self.token is None and not self.users:
            raise ConfigError(
                f"the gateway would listen on {self.host} for everybody: set a token "
                "(HOOKLINE_GATEWAY__TOKEN, or token in [gateway]), or keep --host 127.0.0.1"
            )


class WorkerSettings(RetrySettings):
    """The `[worker]` settings: how a process runs the turns of a cluster."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    concurrency: int = Field(default=32, ge=1)
    """How many sessions run a turn at the same time."""
    drain: float = Field(default=20.0, ge=0)
    """Seconds for running turns to finish at shutdown; another worker continues the rest."""
    heartbeat: float = Field(default=5.0, gt=0)
    """Seconds between heartbeats, and between checks for workers without one."""
    silence: float = Field(default=30.0, gt=0)
    """Seconds without a heartbeat after which other workers continue a worker's turns."""
    poll: float = Field(default=1.0, gt=0)
    """Seconds between polls for work without a notification."""
    retry: RetryPolicy = RetryPolicy(first=0.1, max=2.0)
    """The delays between attempts to reach the database, and before a failed job is given back."""
    deaths: int = Field(default=5, ge=1)
    """How many workers may die while processing one message before it is given up."""

    @model_validator(mode="after")
    def _is_patient(self) -> WorkerSettings:
        if self.silence < 2 * self.heartbeat:
            raise ValueError("silence must be at least twice the heartbeat, or live workers seem dead")
        return self


def has_triggers(app: Hookline) -> bool:
    """Whether the settings name triggers, or a plugin implements one of their hooks."""
    hooks = ("trigger_init", "trigger_routes", "trigger_start", "trigger_stop")
    return bool(app.config.section("triggers")) or any(map(app.hooks.has_hooks, hooks))


def worker_settings_of(config: Config) -> WorkerSettings:
    """`[worker]` of the settings."""
    return config.settings("worker", WorkerSettings)
