"""`hookline mcp`: the servers, what they provide, and whether they respond."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.errors import BadInput
from hookline.hooks.errors import HooklineError, suggestion

from . import FAILED
from .json_output import Json, print_json
from .project import shown
from .terminal import style

if TYPE_CHECKING:
    from hookline.ext.mcp import McpPlugin, McpServer, ServerConnection
    from hookline.runtime.app import Hookline

NONE = "no servers are configured; [mcp.servers.<name>] in config.toml adds one"
ServerName = Annotated[str | None, typer.Argument(help="Only this server.")]


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline mcp`."""
    group = typer.Typer(help="Show and check MCP servers.", no_args_is_help=True)
    cli.add_typer(group, name="mcp")

    @group.command("list")
    def list_(as_json: Json = False) -> None:
        """List the servers that are configured; none is started."""
        list_servers(app, as_json=as_json)

    @group.command()
    def tools(name: ServerName = None, as_json: Json = False) -> None:
        """Connect, and list the tools."""
        list_tools(app, name, as_json=as_json)

    @group.command()
    def check(name: ServerName = None) -> None:
        """Connect, and say how each server is."""
        check_servers(app, name)


def mcp_of(app: Hookline) -> McpPlugin | None:
    """The plugin that has the servers, if it is loaded."""
    try:
        from hookline.ext.mcp import McpPlugin
    except ImportError:
        return None
    return app.extensions.get(McpPlugin)


def plugin_of(app: Hookline) -> McpPlugin:
    """The plugin that has the servers."""
    app.plugins.check_loaded("mcp", "this command")
    plugin = mcp_of(app)
    assert plugin is not None
    return plugin


def list_servers(app: Hookline, *, as_json: bool = False) -> None:
    """Print a line for each server; none is started."""
    servers = plugin_of(app).servers()
    if as_json:
        print_json([described(server) for server in servers], indent=2)
        return
    for server in servers:
        about = described(server)
        typer.echo(
            f"{shown(server.name)}  {about['state']}  {shown(about['target'])}  ({about['origin']})"
        )
    if not servers:
        typer.echo(NONE)


def described(server: McpServer) -> dict[str, str]:
    """A server as plain data, without secrets."""
    state = "enabled" if server.enabled else "disabled" if server.trusted else "not trusted"
    if server.enabled:
        try:
            server.settings()
        except Exception as error:
            state = f"cannot be used: {error}"
    return {"name": server.name, "state": state, "target": server.target, "origin": server.origin}


def list_tools(app: Hookline, name: str | None, *, as_json: bool = False) -> None:
    """Connect and print what the servers provide; exit with status 1 if one cannot be reached."""
    connections = asyncio.run(look(app, name))
    tools = [tool for connection in connections for tool in connection.tools]
    if as_json:
        specs = [tool.spec for tool in tools]
        fields = {"description", "input_schema", "side_effects"}
        rows = [{"name": s.qualified_name, **s.model_dump(mode="json", include=fields)} for s in specs]
        print_json(rows, indent=2)
    else:
        for tool in tools:
            first = tool.description.strip().partition("\n")[0]
            typer.echo(f"{tool.name}  [{tool.spec.side_effects.value}]  {shown(first)}")
        if not tools:
            typer.echo("no server provides a tool")
    leave(connections, quiet=True)


def check_servers(app: Hookline, name: str | None) -> None:
    """Connect and report the state of each server; exit with status 1 if one is not working."""
    leave(asyncio.run(look(app, name)))


async def look(app: Hookline, name: str | None = None) -> list[ServerConnection]:
    """Connect to the servers, list what they provide, and disconnect."""
    plugin = plugin_of(app)
    servers = {server.name: server for server in plugin.servers()}
    if name is not None and name not in servers:
        raise BadInput(f"no server is named {name!r}{suggestion(name, servers) or f'; {NONE}'}")
    if name is not None and not servers[name].enabled:
        state = described(servers[name])["state"]
        raise BadInput(
            f"the server {name!r} is {state}"
            + ("; `hookline trust` shows what it would run" if state == "not trusted" else "")
        )
    if not servers:
        raise BadInput(NONE)
    async with plugin.connected(name) as connections:
        return connections


def report(connection: ServerConnection) -> tuple[bool, str]:
    """How a server is, in a line, and whether that is well."""
    if connection.reason:
        return False, f"{connection.name}: {connection.reason}"
    about = f" ({connection.title} {connection.version})" if connection.title else ""
    wrong = "".join(f"; {problem}" for problem in connection.problems[:5])
    return not wrong, f"{connection.name}: {len(connection.tools)} tools{about}{wrong}"


def leave(connections: list[ServerConnection], *, quiet: bool = False) -> None:
    """Print the reports, or only the bad ones; exit with status 1 if there is one."""
    reports = [report(connection) for connection in connections]
    for good, text in reports:
        if not good or not quiet:
            mark = style("ok", "green") if good else style("!!", "red")
            typer.echo(f"{mark}  {shown(text)}", err=quiet)
    if not all(good for good, _ in reports):
        raise typer.Exit(FAILED)


def survey(app: Hookline) -> tuple[list[McpServer], list[ServerConnection], str]:
    """What `doctor` shows: the servers, the connections, and why there are neither."""
    plugin = mcp_of(app)
    if plugin is None:
        return [], [], ""
    try:
        servers = plugin.servers()
        connections = asyncio.run(look(app)) if any(s.enabled for s in servers) else []
    except HooklineError as error:
        return [], [], str(error)
    return servers, connections, ""
