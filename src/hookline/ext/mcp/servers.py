"""Which servers there are: what the settings say, and whether a project's may be used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from hookline.plugins.reach import unclear_text

from .errors import McpError

if TYPE_CHECKING:
    from hookline.config import Config
    from hookline.plugins.trust import Trust

    from .settings import ServerSettings

FILE = "config.toml"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


def _none() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server as it is configured."""

    name: str
    table: Mapping[str, Any]
    """Its settings as they are written; `${VAR}` is filled in when it is started."""
    origin: Literal["user", "project"] = "user"
    trusted: bool = True
    obstacle: Callable[[], str] = _none
    """Says right before each start why a project's server must not run."""
    pycache: str = ""
    """Where Python compiles a project's server to: compiled files in a project are not trusted."""

    @property
    def enabled(self) -> bool:
        """Whether it is to be used."""
        return self.trusted and self.table.get("enabled", True) is not False

    @property
    def target(self) -> str:
        """The command or URL as configured, without secrets."""
        from hookline.config.secrets import masked

        if "url" in self.table:
            return str(masked(self.table["url"]))
        args = self.table.get("args")
        words = cast("list[Any]", args) if isinstance(args, list) else []
        return " ".join(map(str, [self.table.get("command", "nothing"), *words]))

    def settings(self) -> ServerSettings:
        """The validated settings; errors name their place."""
        from hookline.config.expand import expand
        from hookline.config.validation import faults

        from .settings import ServerSettings

        where = f"mcp.servers.{self.name}"
        if why := self.obstacle():
            raise McpError(f"{where}: {why}")
        if not NAME.fullmatch(self.name):
            raise McpError(f"{where}: a server's name has letters, digits, - and _, at most 64 of them")
        values = expand(dict(self.table), where=where)
        if self.pycache and "command" in values:
            values["env"] = {"PYTHONPYCACHEPREFIX": self.pycache, **_table(values.get("env"))}
        if wrong := faults(ServerSettings, values, where):
            raise McpError("; ".join(f"{fault.dotted}: {fault.text}" for fault in wrong))
        return ServerSettings.model_validate(values)


def configured(config: Config, trust: Trust, confines: bool = False) -> list[McpServer]:
    """Every server in the settings.

    A project's servers count once the project is trusted; until then they are listed as untrusted.
    `confines` says that programs run in a sandbox, which is required if a program's files are unknown.
    """
    written = _table(config.written_in_project("mcp").get("servers"))
    counting = _servers(config.section("mcp"))
    own = _servers(config.own("mcp"))
    found = [
        McpServer(name, _table(value), *_of_project(name, config, trust, confines))
        if name not in own
        else McpServer(name, _table(value))
        for name, value in counting.items()
    ]
    inert = [name for name in written if name not in counting]
    return found + [McpServer(n, _table(written[n]), "project", trusted=False) for n in inert]


def _of_project(
    name: str, config: Config, trust: Trust, confines: bool
) -> tuple[Literal["project"], bool, Callable[[], str], str]:
    assert config.project_dir is not None
    path: Path = config.project_dir / FILE

    def obstacle() -> str:
        if why := trust.broken(path):
            return why
        item = trust.item(path)
        unclear = item.unclear.get(f"mcp.servers.{name}") if item is not None else None
        return unclear_text(unclear) if unclear and not confines else ""

    return "project", True, obstacle, trust.pycache


def _servers(section: Mapping[str, Any]) -> dict[str, Any]:
    servers: Any = section.get("servers", {})
    if not isinstance(servers, dict):
        raise McpError("mcp.servers must be a table for each server, such as [mcp.servers.time]")
    return cast("dict[str, Any]", servers)


def _table(value: Any) -> Mapping[str, Any]:
    """A server's table. Anything else counts as empty, and is refused when the server is used."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
