"""A process that dies with an event in hand, and finishes its turn when run again.

python crashing.py HOME POINT     # emit an event; die at that point
python crashing.py HOME ""        # start again, and print what became of it
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from hookline.channel import Channel
from hookline.ext.triggers import TriggerEvent, Triggers
from hookline.models import ScriptedModel
from hookline.runtime.app import Hookline

home, point = Path(sys.argv[1]), sys.argv[2]
sent = []


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Telegram(Channel):
    async def send(self, message):
        if message["channel"] == "telegram":
            sent.append(message["content"])
        return message["channel"] == "telegram"


async def main() -> None:
    app = Hookline(home=home, workspace=home)
    app.load_hooks(packages=False)
    app.channel = Telegram()
    model = ScriptedModel(["Thank you."], repeat=True)
    app.models.add(model)
    app.model = model.name
    if point == "claimed":
        app.hooks.register("message:receive", lambda event: die())
    elif point == "model":
        app.hooks.register("model_call", lambda event: die())
    triggers = Triggers(app)
    async with app.running():
        await triggers.start()
        if point:
            payload = {"order": {"id": 17, "customer": "ada"}}
            await triggers.emit(TriggerEvent("orders", payload, id="one"))
        await triggers.drained()
        record = await triggers.ledger.find("orders", "one")
        entries = await app.store().entries("orders:ada", kinds={"message"})
        await triggers.stop()
    heard = [entry.payload["message"] for entry in entries]
    said = {role: [m["content"] for m in heard if m["role"] == role] for role in ("user", "assistant")}
    print(json.dumps({"state": record.state, "sent": sent, **said}))


asyncio.run(main())
