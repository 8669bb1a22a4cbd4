"""The form of `[mcp]`: one table for each server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hookline.config.schema import RetrySettings
from hookline.sandbox.settings import Profile
from hookline.specs import Namespace, SideEffects
from hookline.system.retry import RetryPolicy
from hookline.text.patterns import matches_glob

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ToolChoice(BaseModel):
    """`tools`: which of a server's tools are taken. Names may have `*`; a denied one is never taken."""

    model_config = ConfigDict(extra="forbid")

    allow: list[str] | None = None
    deny: list[str] = Field(default_factory=list)

    def takes(self, tool: str) -> bool:
        """Whether a tool is taken."""
        allowed = self.allow is None or _among(tool, self.allow)
        return allowed and not _among(tool, self.deny)


class ServerSettings(RetrySettings):
    """`[mcp.servers.<name>]`: a program (`command`) or a service over HTTP (`url`)."""

    model_config = ConfigDict(extra="forbid")

    command: str | None = Field(default=None, min_length=1)
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    """Variables for this program only, in addition to a few such as `PATH` and `HOME`."""
    cwd: str | None = None
    """Where the program runs, relative to the workspace; by default `/`, or for one that the project
    brings, the workspace."""
    url: str | None = Field(default=None, pattern=r"^https?://")
    headers: dict[str, str] = Field(default_factory=dict)
    files: list[str] | None = None
    """The project files that the program runs, if the command does not show them."""
    sandbox: Profile | None = None
    """The profile of the sandbox that the program runs in; by default `[sandbox] mcp`. For one that the
    project brings, only a stricter one counts."""
    network: list[str] | None = None
    """The hosts that the program may reach from the sandbox; by default those of `[sandbox] network`.
    A project's program reaches only hosts that are listed there as well."""
    enabled: bool = True
    tools: ToolChoice = Field(default_factory=ToolChoice)
    timeout: Seconds = 60
    """Seconds that one call may take."""
    start_timeout: Seconds = 30
    """Seconds until it must have answered and listed its tools."""
    retry: RetryPolicy = RetryPolicy(attempts=5)
    """How often in a row it is connected to, and the delays between; a call starts over."""
    side_effects: SideEffects | dict[str, SideEffects] | None = None
    """What its tools do, whatever the server says: for all, or for each by name."""
    prefix: Namespace | None = None
    """The namespace of its tools; by default the name of the server, and with "" none."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> ServerSettings:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either 'command' (a program) or 'url' (a service), and not both")
        if self.command is None and (self.args or self.env or self.cwd):
            raise ValueError("'args', 'env' and 'cwd' belong to a 'command', not to a 'url'")
        if self.command is None and (self.sandbox or self.network is not None):
            raise ValueError("'sandbox' and 'network' belong to a 'command', not to a 'url'")
        if self.url is None and self.headers:
            raise ValueError("'headers' belong to a 'url', not to a 'command'")
        return self


class McpSettings(BaseModel):
    """`[mcp]`."""

    model_config = ConfigDict(extra="forbid")

    servers: dict[str, ServerSettings] = Field(default_factory=dict)


def _among(name: str, patterns: Iterable[str]) -> bool:
    return any(matches_glob(name, pattern) for pattern in patterns)
