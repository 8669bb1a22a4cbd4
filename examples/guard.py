"""A guard for any agent: it denies, rewrites, redacts and logs."""

import logging
import re

from hookline import hookimpl
from hookline.events import OutputEvent, ToolCallEvent, ToolExecutionEndEvent, ToolResultEvent

log = logging.getLogger("guard")
TOKEN = re.compile(r"token=\w+")


@hookimpl(guard=True)
def tool_call(event: ToolCallEvent):
    """Nothing runs as root; what would be removed is moved away instead."""
    command = str(event.input.get("command", ""))
    if "sudo" in command:
        return event.deny("not as root")
    if command.startswith("rm -r "):
        return event.replace(input={**event.input, "command": f"mv {command[6:]} /tmp/trash"})
    return None


@hookimpl(guard=True)
def tool_result(event: ToolResultEvent):
    """The model never sees a token."""
    return event.replace(content=TOKEN.sub("token=[redacted]", str(event.content)))


@hookimpl(guard=True)
def output(event: OutputEvent):
    """Neither does the person who asked."""
    return event.replace(content=TOKEN.sub("token=[redacted]", event.content))


@hookimpl
def tool_execution_end(event: ToolExecutionEndEvent):
    """Every call is in the log."""
    log.info("%s: %s", event.tool_result.name, event.tool_result.content)
