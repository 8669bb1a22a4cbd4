"""The gateway under load: streaming conversations, idle connections, the start.

    python benchmarks/gateway.py [--conversations 1000] [--rounds 3] [--json FILE]

Each server is a process of its own on loopback, and this one is the load generator: plain sockets and
an HTTP parser as small as it can be, so that the servers are what is measured. `bare` is a FastAPI
endpoint that streams the same chunks with the same pauses, and keeps nothing.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress, ratio

TOKEN = "the-token-of-the-benchmark"
KINDS = 20
CHUNKS = 100
SIZE = 16
DELAY = 0.01
LIBRARIES = ("fastapi", "hookline", "httptools", "uvicorn", "uvloop", "websockets")


def answer(kind: int) -> str:
    """What is said to a question of a kind: no two are alike."""
    return "".join(f"{kind:03d}-{i:05d} words."[:SIZE].ljust(SIZE) for i in range(CHUNKS))


# --- the servers ---------------------------------------------------------------------------------


def serve_ours(home: str) -> None:
    from pydantic import SecretStr

    from hookline.cli.gateway import run_loop
    from hookline.models import ScriptedModel
    from hookline.models.script import Turn
    from hookline.runtime.app import Hookline
    from hookline.serve import Gateway, GatewaySettings
    from hookline.serve.server import serve

    turns = [Turn(answer(k), chunk=SIZE, delay=DELAY, match=f"kind {k:03d}") for k in range(KINDS)]
    app = Hookline(home=Path(home), workspace=Path(home), project=False)
    app.load_hooks(packages=False)

    async def main() -> None:
        model = ScriptedModel(turns, repeat=True)
        app.models.add(model)
        app.model = model.name
        settings = GatewaySettings(
            port=0, token=SecretStr(TOKEN), requests_per_minute=0, in_flight=100_000
        )
        await serve(Gateway(app, settings=settings), started=lambda url: print(url, flush=True))

    run_loop(main())


def serve_bare() -> None:
    import socket

    import uvicorn
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse
    from pydantic import BaseModel

    class Message(BaseModel):
        text: str
        id: str

    app = FastAPI()
    answers = [answer(kind) for kind in range(KINDS)]

    @app.post("/api/sessions/{session}/messages")
    async def say(session: str, message: Message) -> StreamingResponse:
        text = answers[int(message.text.rpartition(" ")[2])]

        async def chunks():
            for start in range(0, len(text), SIZE):
                await asyncio.sleep(DELAY)
                frame = {"type": "text", "id": message.id, "delta": text[start : start + SIZE]}
                yield f"event: text\ndata: {json.dumps(frame)}\n\n"
            end = {"type": "end", "id": message.id, "outcome": "answered", "text": text}
            yield f"event: end\ndata: {json.dumps(end)}\n\n"

        return StreamingResponse(chunks(), media_type="text/event-stream")

    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
    config = uvicorn.Config(app, log_config=None, access_log=False, loop="uvloop", http="httptools")
    uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def server(which: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, __file__, "--serve", which, "--home", home]
        environ = {**os.environ, "HOOKLINE_HOME": home}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environ
        )
        try:
            assert process.stdout is not None
            url = process.stdout.readline()
            yield process, int(url.rstrip("/\n").rpartition(":")[2])
        finally:
            process.terminate()
            process.wait(30)


# --- the load ------------------------------------------------------------------------------------


@dataclass
class Load:
    seconds: float = 0.0
    cpu: float = 0.0
    chunks: int = 0
    lost: int = 0
    crossed: int = 0
    gaps: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return self.chunks / self.seconds

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.gaps, n=100)[98]


async def converse(port: int, number: int, load: Load, reading: asyncio.Semaphore) -> None:
    """One conversation: ask, read the stream to its end, compare with what was to be said."""
    kind, name = number % KINDS, f"m{number}"
    body = json.dumps({"text": f"kind {kind:03d}", "id": name}).encode()
    request = (
        f"POST /api/sessions/s{number}/messages HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nAccept: text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    ).encode()
    async with reading:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(request + body)
    texts: list[str] = []
    ended, before = None, 0.0
    try:
        while line := await reader.readline():
            if not line.startswith(b"data: "):
                continue
            now = time.perf_counter()
            frame = json.loads(line[6:])
            if frame["type"] == "text":
                load.crossed += frame["id"] != name
                texts.append(frame["delta"])
                load.chunks += 1
                if before:
                    load.gaps.append(now - before)
                before = now
            elif frame["type"] == "end":
                ended = frame
    except OSError:
        pass
    finally:
        writer.close()
    if ended is None:
        load.lost += 1
    elif "".join(texts) != answer(kind) or ended["text"] != answer(kind) or ended["id"] != name:
        load.crossed += 1


async def drive(port: int, conversations: int, pid: int, first: int) -> Load:
    load, opening = Load(), asyncio.Semaphore(100)
    cpu, began = cpu_seconds(pid), time.perf_counter()
    await asyncio.gather(*(converse(port, first + i, load, opening) for i in range(conversations)))
    load.seconds, load.cpu = time.perf_counter() - began, cpu_seconds(pid) - cpu
    return load


async def idle(port: int, pid: int, connections: int) -> float:
    """Bytes that the server holds for a WebSocket that nobody uses."""

    async def connect(number: int) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"GET /ws?session=idle{number} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Authorization: Bearer {TOKEN}\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"}")  # the session frame
        return writer

    kept = [await connect(i) for i in range(100)]  # what only the first ones cost
    before = resident(pid)
    kept += [await connect(100 + i) for i in range(connections)]
    held = (resident(pid) - before) / connections
    for writer in kept:
        writer.close()
    return held


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- the start -----------------------------------------------------------------------------------


def with_bytecode() -> dict[str, str]:
    """The environment of a start for which bytecode is cached, as it is after an installation."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def start_to_ready() -> float:
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "hookline", "gateway", "--port", "0"]
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=home,
            env={**with_bytecode(), "HOOKLINE_HOME": home},
        )  # fmt: skip
        assert process.stderr is not None
        while "is at" not in process.stderr.readline():
            assert process.poll() is None
        seconds = time.perf_counter() - began
        process.terminate()
        process.wait(30)
        return seconds


def import_fastapi() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import fastapi"], check=True, env=with_bytecode())
    return time.perf_counter() - began


# --- the run -------------------------------------------------------------------------------------


def measure(conversations: int, rounds: int) -> dict[str, Any]:
    import uvloop

    found: dict[str, list[Load]] = {"bare": [], "ours": []}
    with (
        server("bare") as (bare, bare_port),
        server("ours") as (ours, our_port),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        for turn in range(rounds + 1):  # the first one warms both up
            for which, port, pid in (("bare", bare_port, bare.pid), ("ours", our_port, ours.pid)):
                progress(f"{which}, round {turn} of {rounds}")
                load = runner.run(drive(port, conversations, pid, turn * conversations))
                if turn:
                    found[which].append(load)
        held = runner.run(idle(our_port, ours.pid, 1000))
    starts = [(start_to_ready(), import_fastapi()) for _ in range(max(3, rounds))]
    best = {which: max(loads, key=lambda load: load.per_second) for which, loads in found.items()}
    return {
        "conversations": conversations,
        "lost": sum(load.lost for load in found["ours"]),
        "crossed": sum(load.crossed for load in found["ours"]),
        "idle_bytes": held,
        "ready_seconds": min(ready for ready, _ in starts),
        "import_fastapi_seconds": min(imported for _, imported in starts),
        **{
            which: {
                "chunks_per_second": load.per_second,
                "p99_ms": min(each.p99 for each in found[which]) * 1000,
                "seconds": load.seconds,
                "cpu_seconds": load.cpu,
            }
            for which, load in best.items()
        },
    }


def checks(found: dict[str, Any]) -> list[Check]:
    ours, bare = found["ours"], found["bare"]
    return [
        Check("conversations at once, streaming", found["conversations"], 1000, at_least=True, unit=""),
        Check("conversations lost", found["lost"], 0, unit=""),
        Check("conversations crossed", found["crossed"], 0, unit=""),
        Check("idle WebSocket", found["idle_bytes"] / 1000, 60, unit="kB"),
        Check(
            "chunks per second, of the bare endpoint's",
            ratio(ours["chunks_per_second"], bare["chunks_per_second"]), 0.5, at_least=True,
        ),
        Check("p99 between chunks, of the bare endpoint's", ratio(ours["p99_ms"], bare["p99_ms"]), 2),
        Check(
            "start to ready, of importing FastAPI",
            ratio(found["ready_seconds"], found["import_fastapi_seconds"]), 2,
        ),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--conversations", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", choices=("ours", "bare"), help=argparse.SUPPRESS)
    parser.add_argument("--home", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve == "ours":
        serve_ours(options.home)
        return
    if options.serve == "bare":
        serve_bare()
        return
    where = environment(LIBRARIES, options.rounds)
    print_environment(where)
    found = measure(options.conversations, options.rounds)
    print(f"{'':8}{'chunks/s':>12}{'p99 ms':>10}{'seconds':>10}{'CPU s':>8}")
    for which in ("bare", "ours"):
        row = found[which]
        print(
            f"{which:8}{row['chunks_per_second']:12,.0f}{row['p99_ms']:10.1f}"
            f"{row['seconds']:10.2f}{row['cpu_seconds']:8.2f}"
        )
    ready, imported = found["ready_seconds"], found["import_fastapi_seconds"]
    print(f"ready after {ready:.2f} s; import fastapi {imported:.2f} s")
    made = checks(found)
    passed = print_outcomes(made)
    if options.json:
        data = {"environment": where, "measured": found, "checks": [check.as_json() for check in made]}
        options.json.write_text(json.dumps(data, indent=2))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
