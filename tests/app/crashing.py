"""A program that is killed in the middle of a turn, and continues it when run again.

python crashing.py HOME KIND POINT     # start a turn; die at that point
python crashing.py HOME KIND           # continue it
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from hookline.app import Hookline
from hookline.events import BeforeAgentStartEventResult
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.policy import Policy
from hookline.tools import tool
from hookline.tools.registry import Registry

home, kind = Path(sys.argv[1]), sys.argv[2]
point = sys.argv[3] if len(sys.argv) > 3 else ""
log = home / "runs.log"
SIDE_EFFECTS = {"reads": "read", "writes": "write", "idempotent": "write"}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@tool(
    side_effects=SIDE_EFFECTS[kind],
    idempotency_key="name" if kind == "idempotent" else None,
    registry=Registry(),
)
def count(name: str) -> str:
    with log.open("a") as file:
        file.write("run\n")
    if point == "tool":
        die()
    return "counted"


def app_that_dies() -> Hookline:
    app = Hookline(home=home, workspace=home, policy=Policy(default="allow"))
    app.load_hooks(packages=False)
    app.tools.add(count)
    app.hooks.register(
        "before_agent_start", lambda event: BeforeAgentStartEventResult(system_prompt="Only this.")
    )
    if point in ("around_before", "around_after"):

        async def around(call, call_next):
            if point == "around_before":
                die()
            value = await call_next()
            die()
            return value

        app.hooks.register("around_tool_call", around)
    elif point and point != "tool":
        app.hooks.register(point, lambda **kwargs: die())
    return app


TURNS = [Turn("I count.", tool_calls=[Call("count", {"name": "a"}, "call_1")]), Turn("Done.")]


async def main() -> None:
    app = app_that_dies()
    fired: list[str] = []
    app.hooks.trace(lambda dispatch: fired.append(dispatch.hook))
    async with app.running():
        entries = await app.store().entries("s", kinds=["message"])
        answered = sum(e.payload["message"]["role"] == "assistant" for e in entries)
        model = ScriptedModel(TURNS[answered:] or ["nothing more"])
        app.models.add(model)
        app.model = model.name
        if point:
            await app.process_inbound({"content": "count", "session_id": "s", "channel": "test"})
            raise SystemExit("it was not killed")
        result = await app.resume("s")
        entries = await app.store().entries("s")
    told = [e.payload["content"] for e in entries if e.kind == "tool_result"]
    print(
        json.dumps(
            {
                "output": result.model_output if result else None,
                "channel": result.outbounds[0]["channel"] if result else None,
                "runs": len(log.read_text().splitlines()) if log.exists() else 0,
                "told": told,
                "fired": fired,
                "system": model.requests[0].system if model.requests else None,
                "last": entries[-1].payload.get("status") if entries else None,
            }
        )
    )


asyncio.run(main())
