"""What a streamed chunk costs: receiving it over loopback HTTP, and showing it in the chat.

    python benchmarks/chunks.py                   # about a minute
    python benchmarks/chunks.py --check           # exit code 1 when a threshold is missed
    python benchmarks/chunks.py --json result.json

An answer of Markdown (prose, lists, code) comes in pieces of four characters, about what a token is.
Receiving is the direct HTTP client: from the socket to the stream event. Showing is the chat's view:
from the stream event to what is written to the terminal, here a pseudo-terminal that is emptied by a
process of its own. Both are CPU time of this process.

At a pace each chunk comes by itself, as from a provider: the client wakes up for each, and the view
draws the open block up to fifteen times a second. At full speed the server sends as fast as the client
reads, so that many chunks come with one read; then the view draws the first 32,000 characters as
Markdown, more in step with the clock, and writes the rest as it is. Thresholds are for a pace, and for
a flood.
"""

import argparse
import asyncio
import json
import os
import pty
import resource
import statistics
import subprocess
import sys
import tracemalloc
from collections.abc import Generator, Iterable
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

from common import Check, environment, print_environment, print_outcomes, progress, ratio
from rich.console import Console

from hookline.cli.chat.screen import Screen
from hookline.models import ModelRequest, Models
from hookline.types import StreamEvent

SIZE = 4
PART = """## Part {n}

The quick *brown* fox jumps over the **lazy** dog, and `code` is quoted here. A paragraph has a few
sentences of this length, which is what models write most of the time, with some emphasis now and then.

- a first item with some words
- a second item with `code` in it
- a third one, after which comes some code

```python
def function_{n}(value: int) -> int:
    return value * {n}
```

"""


def pieces() -> Generator[str]:
    """An answer without end, in pieces."""
    number, rest = 0, ""
    while True:
        rest += PART.replace("{n}", str(number))
        number += 1
        whole = len(rest) - len(rest) % SIZE
        yield from (rest[at : at + SIZE] for at in range(0, whole, SIZE))
        rest = rest[whole:]


def events(count: int) -> list[StreamEvent]:
    return [StreamEvent("text", {"delta": piece}) for piece in islice(pieces(), count)]


# --- The server: a process of its own, so that its CPU is not counted ---


async def serve() -> None:
    from server import END, HEAD, USAGE, chunk

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                order = json.loads(await reader.readexactly(length))
                writer.write(HEAD)
                pause = order["pause"]
                for piece in islice(pieces(), order["count"]):
                    writer.write(chunk({"content": piece}))
                    if pause:
                        await asyncio.sleep(pause)
                    else:
                        await writer.drain()
                writer.write(b"".join([chunk({}, "stop"), *USAGE, *END]))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: ended.done() or ended.set_result(None))
    await ended
    os._exit(0)  # its connections end with it


@contextmanager
def serving() -> Generator[str]:
    command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout  # leaving closes its standard input, and waits for its end
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"


# --- The two sides ---


async def receive(url: str, count: int, pause: float) -> float:
    """The CPU seconds that it takes to receive an answer."""
    models = Models(settings={"openai-compatible": {"base_url": url}})
    model = models.get("openai-compatible:m")
    request = ModelRequest(
        messages=[{"role": "user", "content": "go"}], options={"count": count, "pause": pause}
    )
    got = 0
    started = process_time()
    async with aclosing(model.stream(request)) as stream:  # type: ignore[type-var]
        async for event in stream:
            got += event.kind == "text"
    took = process_time() - started
    await models.close()
    if got != count:
        raise RuntimeError(f"{got:,} of {count:,} chunks came")
    return took


@contextmanager
def terminal() -> Generator[TextIOWrapper]:
    """A pseudo-terminal to write to, which another process empties."""
    ours, theirs = pty.openpty()
    silent = subprocess.DEVNULL
    with subprocess.Popen(["cat"], stdin=ours, stdout=silent, stderr=silent) as reader:
        os.close(ours)
        try:
            with os.fdopen(theirs, "w") as file:
                yield file
        finally:
            reader.terminate()


def screen_on(file: Any, clock: Any = None) -> Screen:
    console = Console(
        file=file, force_terminal=True, color_system="standard", width=100, height=40, highlight=False
    )
    return Screen(console, clock) if clock else Screen(console)


async def show(given: Iterable[StreamEvent], pace: float) -> float:
    """The CPU seconds that it takes to show an answer, of so many chunks a second, or at once.

    In an event loop, as the chat does: without one the view could not draw later.
    """
    now = 0.0
    with terminal() as file:
        screen = screen_on(file, (lambda: now) if pace else None)
        started = process_time()
        screen.begin()
        for event in given:
            now += 1 / pace if pace else 0
            screen.event(event)
        screen.end()
        return process_time() - started


def memory_of(count: int) -> int:
    """Bytes that the view holds at its peak, over an answer of so many chunks."""
    with Path(os.devnull).open("w") as nowhere:
        screen = screen_on(nowhere)
        screen.begin()
        for piece in islice(pieces(), 1000):  # what is loaded and cached once is not the answer's
            screen.event(StreamEvent("text", {"delta": piece}))
        tracemalloc.start()
        for piece in islice(pieces(), count):
            screen.event(StreamEvent("text", {"delta": piece}))
        screen.end()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


# --- Rows ---


@dataclass
class Row:
    """One length and pace, and the CPU microseconds for a chunk, each time."""

    name: str
    count: int
    pace: float  # chunks a second; 0: as fast as it goes
    received: list[float]
    shown: list[float]

    @property
    def share(self) -> float | None:
        """Showing as a share of receiving."""
        return ratio(min(self.shown, default=None), min(self.received, default=None))

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "received_min": min(self.received),
            "received_median": statistics.median(self.received),
            "shown_min": min(self.shown),
            "shown_median": statistics.median(self.shown),
            "share": self.share,
        }


def rows() -> list[Row]:
    found = [(1_000, 0.0), (10_000, 0.0), (100_000, 0.0), (2_000, 1000.0), (500, 100.0)]
    names = {0.0: "at full speed"}
    return [
        Row(f"{count:,}, {names.get(pace, f'{pace:g} a second')}", count, pace, [], [])
        for count, pace in found
    ]


async def measure(found: list[Row], url: str, rounds: int) -> None:
    await receive(url, 1000, 0.0)
    await show(events(1000), 0.0)
    for number in range(rounds):
        for row in found:
            progress(f"round {number + 1} of {rounds}: {row.name}")
            pause = 1 / row.pace if row.pace else 0.0
            row.received.append(await receive(url, row.count, pause) / row.count * 1e6)
            row.shown.append(await show(events(row.count), row.pace) / row.count * 1e6)
    progress("")


def checks(found: list[Row], memory: dict[int, int]) -> list[Check]:
    thousand, _, long, *paced = found
    return [
        *(Check(f"showing against receiving: {row.name}", row.share, 1.0) for row in (long, *paced)),
        Check(
            "100,000 chunks against 1,000: showing, a chunk",
            ratio(min(long.shown), min(thousand.shown)), 1.5,
        ),
        Check(
            "100,000 chunks against 1,000: receiving, a chunk",
            ratio(min(long.received), min(thousand.received)), 1.5,
        ),
        Check(
            "memory of the view at its peak, over 100,000 chunks",
            memory[100_000] / 2**20, 4.0, unit="MiB",
        ),
    ]  # fmt: skip


def print_rows(found: list[Row], memory: dict[int, int]) -> None:
    print("CPU microseconds for a chunk of four characters; showing as a share of receiving.")
    print(f"{'chunks':28}{'receive':>10}{'median':>10}{'show':>10}{'median':>10}{'share':>8}")
    for row in found:
        told = row.as_json()
        print(
            f"{row.name:28}{told['received_min']:>10.1f}{told['received_median']:>10.1f}"
            f"{told['shown_min']:>10.1f}{told['shown_median']:>10.1f}{told['share']:>8.2f}"
        )
    for count, peak in memory.items():
        print(f"The view held {peak / 1024:,.0f} KiB at its peak, over {count:,} chunks.")
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"The process held {largest / 1024:,.0f} MiB at its peak.")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="measurements of a row (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument(
        "--check", action="store_true", help="test the thresholds; exit code 1 on a miss"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return 0
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    found = rows()
    about = environment(["hookline", "rich", "aiohttp"], options.rounds)
    with serving() as url:
        asyncio.run(measure(found, url, options.rounds))
    memory = {count: memory_of(count) for count in (10_000, 100_000)}
    outcomes = checks(found, memory)
    print_environment(about)
    print_rows(found, memory)
    if options.json:
        written = {
            **about,
            "rows": [row.as_json() for row in found],
            "view_peak_bytes": memory,
            "checks": [check.as_json() for check in outcomes],
        }
        options.json.write_text(json.dumps(written, indent=2) + "\n")
    if options.check:
        return 0 if print_outcomes(outcomes) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
