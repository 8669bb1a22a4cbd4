"""A process that takes events of a queue until all have had their turn, and prints what it was asked.

python sharing.py HOME
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from hookline.ext.triggers import Triggers
from hookline.models import ScriptedModel
from hookline.runtime.app import Hookline


async def main() -> None:
    app = Hookline(home=Path(sys.argv[1]), workspace=Path(sys.argv[1]))
    app.load_hooks(packages=False)
    app.hooks.register("resolve_session", lambda message: f"process:{os.getpid()}")
    model = ScriptedModel(["ok"], repeat=True)
    app.models.add(model)
    app.model = model.name
    triggers = Triggers(app)
    async with app.running():
        await triggers.start()
        async with asyncio.timeout(60):
            while (await triggers.ledger.counts("orders")).get("done", 0) < 20:
                await asyncio.sleep(0.02)
        await triggers.stop()
    print(json.dumps([request.messages[-1]["content"] for request in model.requests]))


asyncio.run(main())
