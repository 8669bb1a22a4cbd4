"""Who saw what, who changed what: a trace of every dispatch.

Run it: python examples/watch.py
"""

import asyncio

from hookline import Hooks
from hookline.events import HookContext, ToolCallEvent, ToolCallEventResult
from hookline.hooks import Dispatch

hooks = Hooks()


@hooks.on(ToolCallEvent, when="write")
def stay_here(event: ToolCallEvent) -> ToolCallEventResult | None:
    if event.input["path"].startswith("/"):
        return ToolCallEventResult(input={"path": "." + event.input["path"]})
    return None


@hooks.on(ToolCallEvent)
def working_hours(event: ToolCallEvent) -> ToolCallEventResult:
    return ToolCallEventResult(ask=True, reason=f"{event.tool_name} wants to run")


def show(dispatch: Dispatch) -> None:
    print(f"{dispatch.hook} in {dispatch.key}")
    for call in dispatch.calls:
        changed = f" ({', '.join(call.fields)})" if call.fields else ""
        print(f"    {call.by} {call.did}{changed}")


async def main() -> None:
    hooks.trace(show)
    event = ToolCallEvent(tool_name="write", input={"path": "/etc/hosts"})
    verdict = await hooks.call(event, HookContext(session_id="session-1"))
    print(verdict.decision.name, verdict.event.input, verdict.reason)


if __name__ == "__main__":
    asyncio.run(main())
