"""`[gateway]`: where the gateway listens, who may come in, and how much it takes."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from hookline.config import Config, ConfigError
from hookline.config.checking import faults
from hookline.hooks import HooklineError

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class UnsafeBinding(HooklineError, ValueError):
    """The gateway would be open to the network without a token."""


def settings_of(config: Config, **given: Any) -> GatewaySettings:
    """`[gateway]` of the settings, with what was given on the command line over it."""
    config.declare("gateway", GatewaySettings)
    said = config.settings("gateway", GatewaySettings).model_dump(exclude_unset=True)
    wanted = {**said, **{name: value for name, value in given.items() if value is not None}}
    if found := faults(GatewaySettings, wanted, "gateway"):
        raise ConfigError("\n".join(f"{fault.dotted}: {fault.text}" for fault in found))
    return GatewaySettings.model_validate(wanted)


class GatewaySettings(BaseModel):
    """What `[gateway]` says; `hookline gateway` has options for the first few."""

    model_config = ConfigDict(extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(default=8765, ge=0, le=65535)
    """0: any free one."""
    channels: list[str] | None = None
    """The enabled ones; by default `web`, `openai`, what plugins bring, and every shipped one that has
    a table `[channels.<name>]`."""
    token: SecretStr | None = None
    """What every request must carry; needed where the host is not this machine's own."""
    users: dict[str, SecretStr] = Field(default_factory=dict[str, SecretStr])
    """Further tokens, by the name of who has them."""
    hosts: list[str] = Field(default_factory=list)
    """Names by which the gateway may be called, beside this machine's own."""
    cors: list[str] = Field(default_factory=list)
    """Origins of other sites that may call it."""
    inspector: bool = True
    """Whether `/inspect` shows sessions, hooks and decisions to who may come in."""
    requests_per_minute: int = Field(default=600, ge=0)
    """For each user; 0: no limit."""
    burst: int = Field(default=60, ge=1)
    """How many requests may come at once before the limit counts."""
    max_body: int = Field(default=20_000_000, ge=1)
    """Bytes of one request or WebSocket message."""
    in_flight: int = Field(default=4096, ge=1)
    """Messages being processed or waiting; further ones wait outside."""
    debounce: float = Field(default=0.0, ge=0)
    """Seconds in which further messages of one sender are taken together; 0: off."""
    drain: float = Field(default=20.0, ge=0)
    """Seconds that running turns get to finish on shutdown; what is left is parked."""
    resume: float = Field(default=24.0, ge=0)
    """Hours back in which cut-off turns are looked for at the start; 0: none."""
    backlog: int = Field(default=1_000_000, ge=1)
    """Characters that may wait for a slow reader before it is disconnected."""
    worker: bool = True
    """In a cluster: whether this process makes turns too, or leaves all of them to workers."""
    ping: float = Field(default=20.0, gt=0)
    """Seconds between pings of a WebSocket, and that an answer to one may take."""

    @field_validator("token")
    @classmethod
    def _is_said(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not token.get_secret_value().strip():
            raise ValueError("an empty token protects nothing; leave it out, or set one")
        return token

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def tokens(self) -> dict[str, str]:
        """The tokens by user."""
        named = {name: token.get_secret_value() for name, token in self.users.items()}
        return {"owner": self.token.get_secret_value(), **named} if self.token else named

    def check(self) -> None:
        """Refuse to be open to the network without a token."""
        if not self.is_local and not self.tokens():
            raise UnsafeBinding(
                f"the gateway would listen on {self.host} for everybody: set a token "
                "(HOOKLINE_GATEWAY__TOKEN, or token in [gateway]), or keep --host 127.0.0.1"
            )


class WorkerSettings(BaseModel):
    """What `[worker]` says: how a process makes the turns of a cluster."""

    model_config = ConfigDict(extra="forbid")

    concurrency: int = Field(default=32, ge=1)
    """How many sessions have their turn at the same time."""
    drain: float = Field(default=20.0, ge=0)
    """Seconds that running turns get to finish on shutdown; another worker goes on with the rest."""
    heartbeat: float = Field(default=5.0, gt=0)
    """Seconds between two signs of life, and between two looks for workers that give none."""
    silence: float = Field(default=30.0, gt=0)
    """Seconds without a sign of life after which others go on with a worker's turns."""
    poll: float = Field(default=1.0, gt=0)
    """Seconds between two looks for work of which no notice came."""
    deaths: int = Field(default=5, ge=1)
    """How many workers may end in the middle of one message, before it is taken for what ends them."""

    @model_validator(mode="after")
    def _is_patient(self) -> WorkerSettings:
        if self.silence < 2 * self.heartbeat:
            raise ValueError("silence must be at least twice the heartbeat, or live workers seem dead")
        return self


def worker_settings_of(config: Config) -> WorkerSettings:
    """`[worker]` of the settings."""
    config.declare("worker", WorkerSettings)
    return config.settings("worker", WorkerSettings)
