"""Which servers there are: what the settings say, and whether a project's may be used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from .errors import McpError

if TYPE_CHECKING:
    from hookline.config import Config
    from hookline.plugins.trust import Trust

    from .settings import ServerSettings

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Server:
    """A server as it is configured."""

    name: str
    table: Mapping[str, Any]
    """Its settings as they are written; `${VAR}` is filled in when it is started."""
    origin: Literal["user", "project"] = "user"
    trusted: bool = True

    @property
    def enabled(self) -> bool:
        """Whether it is to be used."""
        return self.trusted and self.table.get("enabled", True) is not False

    @property
    def target(self) -> str:
        """What it runs or where it is, as it is written and without secrets."""
        from hookline.config.secrets import masked

        if "url" in self.table:
            return str(masked(self.table["url"]))
        args = self.table.get("args")
        words = cast("list[Any]", args) if isinstance(args, list) else []
        return " ".join(map(str, [self.table.get("command", "nothing"), *words]))

    def settings(self) -> ServerSettings:
        """Its settings, checked and filled in; what is wrong is told with its place."""
        from hookline.config.checking import faults
        from hookline.config.expand import expand

        from .settings import ServerSettings

        where = f"mcp.servers.{self.name}"
        if not NAME.fullmatch(self.name):
            raise McpError(f"{where}: a server's name has letters, digits, - and _, at most 64 of them")
        values = expand(dict(self.table), where=where)
        if wrong := faults(ServerSettings, values, where):
            raise McpError("; ".join(f"{fault.dotted}: {fault.text}" for fault in wrong))
        return ServerSettings.model_validate(values)


def configured(config: Config, trust: Trust) -> list[Server]:
    """Every server of the settings.

    What a project says of servers counts once it is trusted. Until then its own are listed as not
    trusted, and those of the user are as the user has them.
    """
    projects = _servers(config.of_project("mcp"))
    trusted = not projects or _is_trusted(config, trust)
    counting = _servers(config.section("mcp") if trusted else config.beside_project("mcp"))
    found = [
        Server(name, _table(value), "project" if name in projects else "user")
        for name, value in counting.items()
    ]
    inert = [name for name in projects if name not in counting]
    return found + [Server(n, _table(projects[n]), "project", trusted=False) for n in inert]


def _servers(section: Mapping[str, Any]) -> dict[str, Any]:
    servers: Any = section.get("servers", {})
    if not isinstance(servers, dict):
        raise McpError("mcp.servers must be a table for each server, such as [mcp.servers.time]")
    return cast("dict[str, Any]", servers)


def _table(value: Any) -> Mapping[str, Any]:
    """A server's table; what is none has no settings, and is refused as such when it is used."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_trusted(config: Config, trust: Trust) -> bool:
    """Whether exactly what was read of the project's file is what a person trusted."""
    import tomllib

    from hookline.config.config import FILE
    from hookline.plugins.sources import SourceError, read_source

    if config.project_dir is None:
        return False
    path: Path = config.project_dir / FILE
    try:
        content = read_source(path, config.project_dir.parent).content
        said = tomllib.loads(content.decode("utf-8-sig")).get("mcp", {})
    except (SourceError, ValueError):
        return False
    return trust.allows(path, content) and said == config.of_project("mcp")
