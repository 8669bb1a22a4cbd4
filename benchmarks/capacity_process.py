"""One worker of `capacity.py`: makes the turns of jobs until none is left.

    python benchmarks/capacity_process.py FOLDER URL CONCURRENCY

The jobs are procrastinate's, locked by session; the tape is in the same database, and the app is the
one that users have. The turn is that of `turn.py`: two model calls, one tool call, the answer in ten
pieces. It says `up` when it is ready, begins when it is told, and prints what it did as a line of JSON.
"""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from time import process_time, time
from typing import Any

import procrastinate
from frameworks import ANSWER, ARGUMENTS, CALL_ID, CHUNK, QUESTION, TOOL, add

from hookline.app import Hookline
from hookline.models.script import Call, Turn
from hookline.models.scripted import ScriptedModel
from hookline.tools import tool

HOME = "capacity"


def make_app(folder: Path, url: str | None = None) -> Hookline:
    """The app of a worker; without a url, its tape is a SQLite file in the folder."""
    if url:
        os.environ |= {"HOOKLINE_TAPE__URL": url, "HOOKLINE_TAPE__HOME": HOME}
    app = Hookline(home=folder / "home", workspace=folder, project=False)
    app.load_hooks(packages=False)
    said = Turn(tool_calls=[Call(TOOL, json.loads(ARGUMENTS), CALL_ID)]), Turn(ANSWER, chunk=CHUNK)
    app.models.add(Scripted(said))
    app.model = "scripted"
    app.tools.add(tool(registry=None, side_effects="none")(add))
    return app


class Scripted:
    """The scripted turn, decided by what is shown: turns of several sessions cross each other."""

    name = "scripted"
    context_window: int | None = None

    def __init__(self, said: tuple[Turn, Turn]) -> None:
        self._ask, self._answer = (ScriptedModel([turn], repeat=True, record=False) for turn in said)

    def stream(self, request: Any) -> Any:
        asked = request.messages[-1]["role"] == "user"
        return (self._ask if asked else self._answer).stream(request)

    async def close(self) -> None:
        pass


async def make_turn(app: Hookline, session: str, number: int, more: str = "") -> None:
    """One message, with more text where that is wanted, and its answer."""
    envelope = {"content": QUESTION + more, "session_id": session, "message_id": f"m{number}"}
    result = await app.process_inbound(envelope, stream=lambda event: None)
    if result.model_output != ANSWER:
        raise RuntimeError(f"another turn: {result.model_output!r}, {result.outcome}")


def queue(url: str, connections: int = 4) -> procrastinate.App:
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    return procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=url, max_size=connections)
    )


async def main() -> None:
    folder, url, concurrency = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    app, jobs = make_app(folder, url), queue(url)
    rows: list[tuple[float, float, float]] = []

    @jobs.task(name="turn")
    async def turn(session: str, number: int, accepted: float) -> None:
        began = time()
        await make_turn(app, session, number)
        rows.append((accepted, began, time()))

    logging.disable(logging.INFO)
    async with app.running(), jobs.open_async():
        print("up", flush=True)
        sys.stdin.readline()
        cpu = process_time()
        await jobs.run_worker_async(concurrency=concurrency, wait=False, install_signal_handlers=False)
        cpu = process_time() - cpu
    print(json.dumps({"cpu": cpu, "rows": rows}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
