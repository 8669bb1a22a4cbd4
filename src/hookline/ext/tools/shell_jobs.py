"""`shell_output`, `shell_kill`, `shell_jobs`: follow and stop background commands."""

from __future__ import annotations

import time
from typing import Annotated

from pydantic import Field

from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.output import LIMIT, readable_bytes
from hookline.tools.process import ending
from hookline.tools.spool import NOTE
from hookline.tools.tool import tool

from .jobs import Job, find_job, session_jobs

_PAGE = LIMIT - 2 * NOTE


@tool(side_effects=SideEffects.read, registry=None)
def shell_output(
    job: str,
    context: ToolContext,
    since: Annotated[int, Field(ge=0)] = 0,
    wait: Annotated[float, Field(ge=0, le=60)] = 0,
) -> str:
    """Show the output of a background command, and whether it is still running.

    job: The id that `shell` returned.
    since: Where to continue: the number below the previous output.
    wait: Seconds to wait for new output.

    """
    found = find_job(context.session_id, job)
    if wait:
        found.output.wait(since, wait)
    running = found.running
    begin, data = found.output.read(since, _PAGE)
    end = begin + len(data)
    if running or end < found.output.total:
        data = _whole_characters(data)
        end = begin + len(data)
    lost = f"[{begin - since:,} bytes are no longer kept]\n" if begin > since else ""
    more = "there is more: " if end < found.output.total else ""
    note = f"[{_state(found, running)}; {more}go on with since={end}]"
    return f"{lost}{readable_bytes(data)}".rstrip("\n") + f"\n{note}" if data else f"{lost}{note}"


@tool(side_effects=SideEffects.external, registry=None)
def shell_kill(job: str, context: ToolContext) -> str:
    """Kill a background command and its children.

    job: The id that `shell` returned.

    """
    found = find_job(context.session_id, job)
    if not found.running:
        return f"[{job} had ended: {ending(found.code)}]"
    found.kill()
    return f"[{job} {'cannot be ended' if found.running else f'is ended: {ending(found.code)}'}]"


@tool(side_effects=SideEffects.read, registry=None)
def shell_jobs(context: ToolContext) -> str:
    """List this session's background commands, running and finished."""
    lines = [
        f"{job.id}: {job.command[:200]!r} [{_state(job, job.running)}, {job.output.total:,} bytes]"
        for job in session_jobs(context.session_id)
    ]
    return "\n".join(lines) or "[no jobs]"


def _state(job: Job, running: bool) -> str:
    return f"running for {time.monotonic() - job.began:.0f} s" if running else ending(job.code)


def _whole_characters(data: bytes) -> bytes:
    """Without the beginning of a character at the end, whose rest comes with the next piece."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4
            return data[:-back] if byte >= 0xC0 and back < length else data
    return data
