"""A program that is killed in the middle of a turn, and continues it when run again.

python crashing.py HOME KIND POINT     # start a turn; die at that point
python crashing.py HOME KIND           # continue it
python crashing.py                     # a process for each line of such arguments, in JSON
"""

import asyncio
import gc
import json
import os
import signal
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from hookline.events import BeforeAgentStartEventResult
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.policy import Policy
from hookline.runtime.app import Hookline
from hookline.tools import tool
from hookline.tools.registry import Registry

LOG = "runs.log"
SIDE_EFFECTS = {"reads": "read", "writes": "write", "idempotent": "write"}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def app_that_dies(home: Path, kind: str, point: str) -> Hookline:
    @tool(
        side_effects=SIDE_EFFECTS[kind],
        idempotency_key="name" if kind == "idempotent" else None,
        registry=Registry(),
    )
    def count(name: str) -> str:
        with (home / LOG).open("a") as file:
            file.write("run\n")
        if point == "tool":
            die()
        return "counted"

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


async def run(home: Path, kind: str, point: str) -> None:
    app = app_that_dies(home, kind, point)
    log = home / LOG
    fired: list[str] = []
    app.hooks.trace(lambda dispatch: fired.append(dispatch.hook))
    async with app.running():
        entries = await app.store().entries("s", kinds=["message"])
        answered = sum(e.payload["message"]["role"] == "assistant" for e in entries)
        model = ScriptedModel(TURNS[answered:] or ["nothing more"])
        app.models.add(model)
        app.model = model.name
        if point:
            await app.process({"content": "count", "session_id": "s", "channel": "test"})
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


def start(home: str, kind: str, point: str = "") -> None:
    asyncio.run(run(Path(home), kind, point))


def serve() -> None:
    """Fork for each line: what takes long, the imports, is done once for all."""
    with tempfile.TemporaryDirectory() as home, redirect_stdout(StringIO()):
        start(home, "reads")
    gc.freeze()  # looking for garbage in what is here would copy it into every fork
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as said:
            child = os.fork()
            if child == 0:
                os.dup2(said.fileno(), sys.stdout.fileno())
                start(*json.loads(line))
                return
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            print(json.dumps({"code": code, "said": said.read()}), flush=True)


start(*sys.argv[1:]) if len(sys.argv) > 1 else serve()
