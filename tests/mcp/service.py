"""A server over HTTP, made with the official package; prints the port that it listens on."""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from starlette.responses import PlainTextResponse

server = MCPServer("service", version="2.0")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def paint() -> list:
    """Paint."""
    return ["a dot", Image(data=b"\x89PNG dot", format="png")]


@server.tool()
def towns() -> list[str]:
    """List towns: a text for each, and all of them as structured data."""
    return ["Ulm", "Bern"]


@server.tool()
def weather() -> CallToolResult:
    """Say it in words and as data."""
    said = [TextContent(type="text", text="Sunny in Ulm.")]
    return CallToolResult(content=said, structured_content={"town": "Ulm", "weather": "sunny"})


@server.tool()
def data() -> CallToolResult:
    """Answer with data alone."""
    return CallToolResult(content=[], structured_content={"town": "Ulm"})


@server.tool()
async def slow(ctx: Context) -> str:
    """Report, then answer."""
    await ctx.report_progress(1, 2, "half")
    return "slow"


@server.tool()
async def learn(ctx: Context) -> str:
    """Become able to forget."""

    def forget() -> str:
        """Forget."""
        return "forgotten"

    server.add_tool(forget)
    await ctx.notify_tools_changed()
    return "learned"


class Guarded:
    """Nobody comes in without the password."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != b"Bearer s3cret":
            return await PlainTextResponse("who are you?", 401)(scope, receive, send)
        return await self.app(scope, receive, send)


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0))
listener.listen()  # whoever knows the port may connect, and waits until it is served
app = Guarded(server.streamable_http_app())
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
