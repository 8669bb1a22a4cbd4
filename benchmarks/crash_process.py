"""One process of the crash suite.

    python benchmarks/crash_process.py gateway FOLDER SESSIONS MESSAGES
    python benchmarks/crash_process.py member FOLDER SESSIONS MESSAGES NUMBER OF PACE
    python benchmarks/crash_process.py worker FOLDER

A gateway takes the messages of a plan through the app until all are done. A member is a gateway of a
cluster, one of so many: it accepts the messages of its share of the sessions, some seconds apart, and
brings the answers, until it is told to end. A worker is what `hookline worker` runs.

The gateway's channel behaves like one that delivers again what was not acknowledged: it begins with the
first message each time. The tool adds a line to a file and is not to be run twice. The model decides by
what it is shown, so that it goes on where another process stopped.
"""

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ends import Ends

from hookline.channel import Channel
from hookline.cli.gateway import run_loop
from hookline.cli.worker import run_worker
from hookline.hooks import hookimpl
from hookline.models.model import ModelRequest, last_user_text
from hookline.runtime.app import Hookline
from hookline.runtime.turn import TurnResult
from hookline.serve import Gateway, GatewayChannel
from hookline.serve.logs import log_to_stderr
from hookline.serve.server import serve
from hookline.tools.tool import tool
from hookline.types import Envelope, StreamEvent

PAUSE = float(os.environ.get("CRASH_PAUSE", "0.004"))
"""Seconds that a step takes on average, so that kills fall into the middle of steps."""


def add_line(path: Path, text: str) -> None:
    """Add a line, at once and whole, also when several processes do."""
    line = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(line, f"{text}\n".encode())
    os.close(line)


async def pause() -> None:
    await asyncio.sleep(random.uniform(0, 2 * PAUSE))


class Deciding:
    """A model without a memory: a tool call for what a person says, an answer for what a tool says."""

    name = "deciding"
    context_window = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        await pause()
        said = last_user_text(request.messages)
        if request.messages[-1]["role"] == "user":
            call = {"id": f"call-{said}", "name": "pay", "arguments": {"what": said}}
            yield StreamEvent("tool_call", call)
            yield StreamEvent("final", {"text": "", "finish_reason": "tool_calls"})
            return
        for piece in ("paid ", said):
            yield StreamEvent("text", {"delta": piece})
            await pause()
        yield StreamEvent("final", {"text": f"paid {said}", "finish_reason": "stop"})

    async def close(self) -> None:
        pass


class Courier(GatewayChannel):
    """Brings the messages of the plan, and writes down what was accepted and what was sent."""

    name = "courier"

    def __init__(self, folder: Path, sessions: range, messages: int, pace: float = 0.0) -> None:
        self.folder = folder
        self.pace = pace
        self.plan = [(f"s{s}", f"s{s}-m{m}") for m in range(messages) for s in sessions]
        self.bringing: asyncio.Task[None] | None = None

    async def start(self, handle: Any) -> None:
        self.bringing = asyncio.create_task(self.bring(handle))

    async def bring(self, handle: Any) -> None:
        for session, name in self.plan:
            is_new = await handle(
                {
                    "content": name,
                    "channel": self.name,
                    "chat_id": session,
                    "session_id": session,
                    "message_id": name,
                }
            )
            add_line(self.folder / "accepted.txt", name)
            if is_new and self.pace:
                await asyncio.sleep(random.expovariate(1 / self.pace))

    async def stop(self) -> None:
        if self.bringing is not None:
            self.bringing.cancel()

    async def send(self, outbound: Envelope) -> bool:
        add_line(self.folder / "sent.txt", f"{outbound['delivery_id']} {outbound['content']}")
        return True

    def reply_to(self, message: Envelope) -> Channel:
        return Ends(self, message)

    def end(self, inbound: Envelope, result: TurnResult) -> None:
        add_line(self.folder / "ended.txt", f"{inbound['message_id']} {result.outcome}")

    def error(self, inbound: Envelope, message: str) -> None:
        add_line(self.folder / "errors.txt", f"{inbound['message_id']} {message}")


class Couriers:
    """Brings the channel into the app."""

    def __init__(self, courier: Courier) -> None:
        self.courier = courier

    @hookimpl
    def provide_channels(self) -> list[GatewayChannel]:
        return [self.courier]


def make_app(folder: Path) -> Hookline:
    """The app of every process of the suite."""

    @tool(registry=None, name="pay", side_effects="write")
    async def pay(what: str) -> str:
        """Pay for something, which must not happen twice."""
        await pause()
        add_line(folder / "ran.txt", what)
        await pause()
        return "done"

    os.environ["HOOKLINE_POLICY__DEFAULT"] = "allow"
    app = Hookline(home=folder / "home", workspace=folder, project=False)
    app.load_hooks(packages=False)
    app.tools.add(pay)
    app.models.add(Deciding())
    app.model = "deciding"
    return app


async def gateway(folder: Path, sessions: int, messages: int) -> None:
    """Work until all is done."""
    app = make_app(folder)
    courier = Courier(folder, range(sessions), messages)
    app.hooks.add(Couriers(courier))
    gateway = Gateway(app, enabled=["courier"])
    async with gateway.running():
        print("up", flush=True)
        assert courier.bringing is not None
        await courier.bringing
        while await gateway.intake.inbox.waiting(gateway.intake.owner, limit=1):
            await asyncio.sleep(0.01)
    print("done", flush=True)


async def member(folder: Path, sessions: int, messages: int, number: int, of: int, pace: float) -> None:
    """Accept and deliver until told to end."""
    log_to_stderr(as_json=False)
    app = make_app(folder)
    app.hooks.add(Couriers(Courier(folder, range(number, sessions, of), messages, pace)))
    await serve(Gateway(app, enabled=["courier"]), started=lambda _: print("up", file=sys.stderr))


def main() -> None:
    kind, folder, rest = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    if kind == "worker":
        run_worker(make_app(folder), None, log_json=False)
    elif kind == "member":
        run_loop(member(folder, *(int(each) for each in rest[:4]), float(rest[4])))
    else:
        asyncio.run(gateway(folder, int(rest[0]), int(rest[1])))


if __name__ == "__main__":
    main()
