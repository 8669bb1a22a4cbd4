"""A server's tools as tools of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookline.specs import SideEffects, ToolSpec
from hookline.tools.context import ToolContext
from hookline.tools.output import cut
from hookline.tools.tool import Tool

from .errors import McpError

if TYPE_CHECKING:
    from mcp.types import Tool as Listed
    from mcp.types import ToolAnnotations

    from .connection import ServerConnection
    from .settings import ServerSettings

LONGEST_DESCRIPTION = 10_000
"""The longest description shown to the model, in characters."""


def tool_of(connection: ServerConnection, settings: ServerSettings, listed: Listed) -> Tool:
    """A tool that calls the server; one that no model could be offered is refused."""
    namespace = connection.name if settings.prefix is None else settings.prefix
    _check_schema(listed)
    try:
        spec = ToolSpec(
            name=listed.name,
            namespace=namespace,
            version=connection.version,
            description=cut(listed.description or listed.title or "", LONGEST_DESCRIPTION),
            input_schema=listed.input_schema,
            output_schema=listed.output_schema or {},
            side_effects=effects_of(settings, listed),
            tags=["mcp"],
        )
    except ValueError as error:
        raise McpError(f"the tool {listed.name[:80]!r} cannot be used: {_first(error)}") from error

    async def call(context: ToolContext, /, **arguments: Any) -> Any:
        return await connection.call(listed.name, arguments, context.report)

    place = f"the MCP server {connection.name!r}"
    return Tool(spec, call, timeout=settings.timeout, place=place)


def effects_of(settings: ServerSettings, listed: Listed) -> SideEffects:
    """The tool's side effects: from the settings, or from the server's hints as far as they are
    credible.
    """
    said = settings.side_effects
    if isinstance(said, dict):
        said = said.get(listed.name)
    return said or _hinted(listed.annotations)


def _hinted(hints: ToolAnnotations | None) -> SideEffects:
    if hints is None or hints.open_world_hint:
        return SideEffects.external
    if hints.read_only_hint:
        return SideEffects.read
    if hints.destructive_hint is False and hints.open_world_hint is False:
        return SideEffects.write
    return SideEffects.external


def _check_schema(listed: Listed) -> None:
    """Refuse a schema that is none: a provider would refuse the whole request for it."""
    from jsonschema.exceptions import SchemaError

    from hookline.errors import SchemaTooLarge
    from hookline.tools.schema_validator import check_schema

    try:
        check_schema(listed.input_schema)
    except SchemaError as error:
        told = f"its schema is not valid: {error.message[:200]}"
        raise McpError(f"the tool {listed.name[:80]!r} cannot be used: {told}") from error
    except (SchemaTooLarge, RecursionError) as error:
        told = str(error) or "its schema is too deep"
        raise McpError(f"the tool {listed.name[:80]!r} cannot be used: {told}") from None


def _first(error: ValueError) -> str:
    faults: Any = getattr(error, "errors", None)
    if faults is None:
        return str(error)
    first = faults()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
