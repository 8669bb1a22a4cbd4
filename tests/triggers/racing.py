"""A process that goes through twenty moments of a cron trigger, and prints those that it fired.

python racing.py HOME NOW     # prints "ready", waits for a line, then goes
"""

import asyncio
import os
import sys
from pathlib import Path

from hookline.ext.triggers import Triggers
from hookline.models import ScriptedModel
from hookline.runtime.app import Hookline
from hookline.testing import VirtualClock


async def main() -> None:
    app = Hookline(home=Path(sys.argv[1]), workspace=Path(sys.argv[1]))
    app.load_hooks(packages=False)
    # Each has a session of its own: what they compete for is the moment.
    app.hooks.register("resolve_session", lambda message: f"process:{os.getpid()}")
    app.hooks.register(
        "agent_start", lambda event, ctx: print(app.sessions.runs[ctx.session_id].envelope["content"])
    )
    model = ScriptedModel(["ok"], repeat=True)
    app.models.add(model)
    app.model = model.name
    clock = VirtualClock(float(sys.argv[2]))
    triggers = Triggers(app, clock=clock)
    async with app.running():
        await triggers.start()
        await clock.asleep(1 if triggers.ledger.look_every is None else 2)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for _ in range(20):
            await clock.advance(3600)
        await triggers.drained()
        await triggers.stop()


asyncio.run(main())
