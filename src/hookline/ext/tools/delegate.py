"""`delegate`: give tasks to subagents and collect their answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hookline.errors import ToolError
from hookline.specs import SideEffects
from hookline.tools.context import ToolContext
from hookline.tools.tool import tool

Text = Annotated[str, Field(min_length=1, max_length=20_000)]


@tool(side_effects=SideEffects.none, timeout=3600, registry=None)
async def delegate(
    context: ToolContext,
    tasks: Annotated[list[Text], Field(min_length=1, max_length=100)],
    role: str = "",
    knows: Literal["task", "conversation", "earlier"] | None = None,
    tools: list[str] | None = None,
) -> str:
    """Give tasks to other agents, which work in parallel, and wait for their answers.

    Each task gets its own agent, which does not see the other tasks.

    tasks: The tasks; each must be complete in itself.
    role: The kind of agent, if roles are configured.
    knows: What the agents see besides the task: nothing, this conversation, or their earlier tasks.
    tools: The tools they may use; by default all of yours.

    """
    from hookline.runtime.subagent_task import Task

    contexts: dict[str | None, Any] = {
        None: None, "task": "temporary", "conversation": "inherit", "earlier": "named",
    }  # fmt: skip
    allowed = tuple(tools) if tools is not None else None
    run = context.app.sessions.run(context.session_id)
    call = f"{run.turn_id[:8]}.{context.call_id}" if run is not None else context.call_id
    given = [  # the ids are the same after a crash, so a repeated call resumes its subagents
        Task(text, role=role, context=contexts[knows], tools=allowed, id=f"{call}.{number}")
        for number, text in enumerate(tasks, 1)
    ]
    results = await context.app.subagents.run_all(
        given, parent=context.session_id, report=context.report, identity=context.identity
    )
    if all(result.status == "failed" for result in results):
        raise ToolError("\n".join(f"{result.label} failed: {result.text}" for result in results))
    if len(results) == 1:
        return results[0].text
    return "\n\n".join(
        f"## {number}. {result.status}\n{result.text}" for number, result in enumerate(results, 1)
    )
