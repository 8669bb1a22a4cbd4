"""A cluster in the computer: gateways, lanes, workers and a database, from 1 worker to 64.

    python benchmarks/capacity.py --json capacity.json       # measure what a turn takes
    python benchmarks/simulate.py --measured capacity.json   # compare, then the curve
    python benchmarks/simulate.py --measured capacity.json --flush-ms 0.5 --model-seconds 5
    python benchmarks/simulate.py --workers 64 --databases 4 --json curve.json

What is in it. Messages come in at gateways, which spend CPU and commit a job. Of a job one worker is
told, the next in turn that has a slot free; it asks for the oldest job whose session nobody has, one
question at a time, and goes on asking while there are more. Once it has a session, it makes the turns
of all messages that wait in it. A turn is slices of a worker's CPU (one core, since Python runs one
thread) with transactions between them; some of these wait for the disk. Transactions that wait at the
same time share a flush, as PostgreSQL does. A slice that finds its worker asleep costs more than one
that finds it busy: waking a process is work, and so is going to sleep again.

What is not. Streams of chunks to gateways, failures, locks of rows and pages, caches, a network that is
full, and a database whose statements get slower as its tables grow.

The comparison puts workers, gateway and database on the cores that the measurement had. What a turn
costs one worker is given, as fast as it can and at a pace; the other runs are predicted. The curve
gives each worker a core, and the database a machine of its own. Throughput and CPU are those of a
backlog; the waits, from accepted to answered, and the CPU beside them, are those of a load of 70 % of
that throughput. The same seed gives the same numbers.
"""

import argparse
import json
import random
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import simpy

Steps: TypeAlias = Generator[simpy.Event, Any, None]
CURVE = (1, 2, 4, 8, 16, 32, 64)
UTILIZATION = 0.7


@dataclass(frozen=True)
class Costs:
    """What one turn takes: seconds, and numbers of transactions."""

    worker_cpu: float = 0.0030
    """Of a worker that is always busy."""
    wake: float = 0.0002
    """More, for each slice that finds its worker asleep."""
    database_cpu: float = 0.0030
    accept_cpu: float = 0.0010
    deliver_cpu: float = 0.0008
    """Of the gateway, for the answer."""
    transactions: int = 15
    """Of a turn, the one that fetches its job among them."""
    flushes: int = 8
    """Transactions that wait for the disk."""
    flush: float = 0.001
    notice: float = 0.002
    """From a commit to the worker that is told of it."""
    network: float = 0.0
    """There and back, for each transaction."""
    model: float = 0.0
    """What the model takes in all, in two calls; each varies, exponentially."""


@dataclass(frozen=True)
class Cluster:
    """What there is to do the work."""

    workers: int = 1
    at_once: int = 8
    """Turns of one worker at the same time."""
    polling: float = 1.0
    """Seconds after which an idle worker looks for jobs by itself."""
    gateways: int = 1
    databases: int = 1
    database_cores: int = 8
    shared_cores: int | None = None
    """Cores for everything on one machine; None: a core for each worker and gateway."""
    speed: float = 1.0
    """Of the shared cores: what other programs leave of them."""


@dataclass(frozen=True)
class Load:
    """What there is to do."""

    turns: int
    sessions: int
    rate: float | None = None
    """Messages a second; None: all are accepted before the workers start."""


@dataclass
class Job:
    """An accepted message."""

    number: int
    session: int
    accepted: float
    started: float = 0.0
    finished: float = 0.0


@dataclass
class Outcome:
    """What became of a load."""

    accepted: int = 0
    cpu: float = 0.0
    worker_cpu: float = 0.0
    seconds: float = 0.0
    empty_fetches: int = 0
    done: list[Job] = field(default_factory=list[Job])

    @property
    def per_second(self) -> float:
        return len(self.done) / self.seconds

    @property
    def steady_per_second(self) -> float:
        """Of the middle half: without the start, and without the end, when workers have less to do."""
        quarter = len(self.done) // 4
        first, last = self.done[quarter], self.done[-quarter - 1]
        return (len(self.done) - 2 * quarter - 1) / (last.finished - first.finished)

    @property
    def cpu_ms(self) -> float:
        """Of workers and databases, for each turn."""
        return self.cpu / len(self.done) * 1e3

    @property
    def worker_ms(self) -> float:
        """CPU of workers, for each turn."""
        return self.worker_cpu / len(self.done) * 1e3

    def wait_ms(self, share: float) -> float:
        """What this share of the messages did not wait longer than for their answer."""
        waits = sorted(job.finished - job.accepted for job in self.done)
        return waits[min(len(waits) - 1, int(share * len(waits)))] * 1e3


class Lanes:
    """Messages by session: the oldest of each that nobody has."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[Job]] = {}
        self._busy: set[int] = set()
        self._ready: list[tuple[int, int]] = []

    def add(self, job: Job) -> None:
        lane = self._waiting.setdefault(job.session, deque())
        lane.append(job)
        if len(lane) == 1 and job.session not in self._busy:
            heappush(self._ready, (job.number, job.session))

    def take(self) -> Job | None:
        if not self._ready:
            return None
        _, session = heappop(self._ready)
        self._busy.add(session)
        return self._waiting[session].popleft()

    @property
    def has_more(self) -> bool:
        return bool(self._ready)

    def following(self, session: int) -> Job | None:
        """The next message of a session, for whoever has it; with the last, it is given up."""
        if lane := self._waiting[session]:
            return lane.popleft()
        self._busy.discard(session)
        return None


class Simulation:
    """One load on one cluster."""

    def __init__(self, costs: Costs, cluster: Cluster, load: Load, seed: int = 1) -> None:
        self.env = simpy.Environment()
        self.costs, self.cluster, self.load = costs, cluster, load
        self.random = random.Random(seed)
        self.outcome = Outcome()
        self.finished = self.env.event()
        shared = cluster.shared_cores
        self.machine = simpy.Resource(self.env, shared) if shared else None
        self.databases = [Database(self) for _ in range(cluster.databases)]
        self.gateways = [simpy.Resource(self.env, 1) for _ in range(cluster.gateways)]
        for number in range(cluster.workers):
            self.databases[number % cluster.databases].workers.append(
                Worker(self, self.databases[number % cluster.databases])
            )

    def run(self) -> Outcome:
        jobs = [Job(n, n % self.load.sessions, 0.0) for n in range(self.load.turns)]
        if self.load.rate is None:
            for job in jobs:
                self.accepted(job)
        else:
            self.env.process(self.arrivals(jobs, self.load.rate))
        for database in self.databases:
            for worker in database.workers:
                self.env.process(worker.run())
        self.env.run(until=self.finished)
        self.outcome.seconds = self.env.now
        return self.outcome

    def database_of(self, session: int) -> "Database":
        """The one that the hash of a session names."""
        return self.databases[crc32(str(session).encode()) % len(self.databases)]

    def arrivals(self, jobs: Sequence[Job], rate: float) -> Steps:
        for job in jobs:
            yield self.env.timeout(self.random.expovariate(rate))
            job.session = self.random.randrange(self.load.sessions)
            self.env.process(self.accept(job))

    def accept(self, job: Job) -> Steps:
        """A gateway takes a message; it is accepted when it is on the disk."""
        gateway = self.gateways[job.number % len(self.gateways)]
        yield from self.compute(self.costs.accept_cpu, gateway)
        yield from self.database_of(job.session).transaction(flush=True)
        job.accepted = self.env.now
        self.accepted(job)

    def accepted(self, job: Job) -> None:
        self.outcome.accepted += 1
        database = self.database_of(job.session)
        database.lanes.add(job)
        self.env.process(database.notify())

    def deliver(self, job: Job) -> Steps:
        """A gateway gets the answer to a message."""
        yield from self.compute(self.costs.deliver_cpu, self.gateways[job.number % len(self.gateways)])
        job.finished = self.env.now
        self.outcome.done.append(job)
        if len(self.outcome.done) == self.load.turns:
            self.finished.succeed()

    def compute(self, seconds: float, place: simpy.Resource) -> Steps:
        """Use a core: of a process or a server, and of the machine where all share one."""
        with place.request() as turn:
            yield turn
            if self.machine is None:
                yield self.env.timeout(seconds)
                return
            with self.machine.request() as core:
                yield core
                yield self.env.timeout(seconds / self.cluster.speed)


class Database:
    """Lanes, cores, and a log whose flushes are shared."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.lanes = Lanes()
        self.workers: list[Worker] = []
        cluster = simulation.cluster
        self._cores = simpy.Resource(simulation.env, cluster.shared_cores or cluster.database_cores)
        self._flushing = False
        self._waiting: list[simpy.Event] = []
        self._next = 0

    def transaction(self, *, flush: bool) -> Steps:
        costs = self.simulation.costs
        spent = costs.database_cpu / costs.transactions
        self.simulation.outcome.cpu += spent
        yield from self.simulation.compute(spent, self._cores)
        if flush:
            durable = self.simulation.env.event()
            self._waiting.append(durable)
            if not self._flushing:
                self.simulation.env.process(self._flush())
            yield durable
        if costs.network:
            yield self.simulation.env.timeout(costs.network)

    def _flush(self) -> Steps:
        self._flushing = True
        while self._waiting:
            batch, self._waiting = self._waiting, []
            yield self.simulation.env.timeout(self.simulation.costs.flush)
            for durable in batch:
                durable.succeed()
        self._flushing = False

    def notify(self) -> Steps:
        """Tell the next worker that has a slot free; where none has, they ask when one is."""
        yield self.simulation.env.timeout(self.simulation.costs.notice)
        for _ in self.workers:
            worker = self.workers[self._next % len(self.workers)]
            self._next += 1
            if worker.has_room:
                worker.notice()
                return


class Worker:
    """A process with one core, and some turns at once."""

    def __init__(self, simulation: Simulation, database: Database) -> None:
        self.simulation, self.database = simulation, database
        self._core = simpy.Resource(simulation.env, 1)
        self._slots = simpy.Resource(simulation.env, simulation.cluster.at_once)
        self._noticed = simulation.env.event()

    @property
    def has_room(self) -> bool:
        return self._slots.count < self._slots.capacity

    def notice(self) -> None:
        if not self._noticed.triggered:
            self._noticed.succeed()

    def run(self) -> Steps:
        env = self.simulation.env
        while True:
            yield from self._fetch_all()
            yield self._noticed | env.timeout(self.simulation.cluster.polling)
            self._noticed = env.event()

    def _fetch_all(self) -> Steps:
        """Ask for jobs while there are some; what is noticed meanwhile is not forgotten."""
        while True:
            slot = self._slots.request()
            yield slot
            yield from self._compute()
            job = self.database.lanes.take()
            has_more = self.database.lanes.has_more
            yield from self.database.transaction(flush=False)
            if job is None:
                self.simulation.outcome.empty_fetches += 1
                self._slots.release(slot)
                return
            self.simulation.env.process(self._have(job, slot))
            if not has_more:
                return

    def _compute(self) -> Steps:
        """The CPU before one transaction."""
        costs, outcome = self.simulation.costs, self.simulation.outcome
        is_asleep = not (self._core.count or self._core.queue)
        spent = costs.worker_cpu / costs.transactions + (costs.wake if is_asleep else 0.0)
        outcome.cpu += spent
        outcome.worker_cpu += spent
        yield from self.simulation.compute(spent, self._core)

    def _have(self, job: Job, slot: Any) -> Steps:
        """Have a session: the turns of all messages that wait in it."""
        following: Job | None = job
        while following is not None:
            job = following
            yield from self._turn(job)
            following = self.database.lanes.following(job.session)
            self.simulation.env.process(self.simulation.deliver(job))
        was_full = not self.has_room
        self._slots.release(slot)
        if was_full:  # and heard of nothing
            self.notice()

    def _turn(self, job: Job) -> Steps:
        costs, random_ = self.simulation.costs, self.simulation.random
        job.started = self.simulation.env.now
        left, reads = costs.transactions - 1, costs.transactions - costs.flushes
        calls = (reads + 1, reads + 1 + left // 3) if costs.model else ()
        for step in range(left):
            if step in calls:
                yield self.simulation.env.timeout(random_.expovariate(2 / costs.model))
            yield from self._compute()
            yield from self.database.transaction(flush=step >= reads)


# --- Measured and simulated ---


def costs_of(measured: dict[str, Any], seed: int) -> Costs:
    """What a turn takes: given by the runs with one worker, and by the tries of single parts.

    What a busy worker spends and what waking costs are found together: no run of one worker on the
    machine that it shares is always busy or always asleep. So the two runs are simulated, and both
    costs corrected by what is missing, until they fit.
    """
    server, fast, paced = measured["postgres"], measured["fast"][0], measured["paced"][0]
    transactions = max(2, round(server["transactions"]))
    commit = server["commit_ms"] / 1e3
    costs = Costs(
        worker_cpu=fast["worker_ms"] / 1e3,
        wake=max(0.0, paced["worker_ms"] - fast["worker_ms"]) / 1e3 / transactions,
        database_cpu=fast["database_ms"] / 1e3,
        accept_cpu=fast["accept_ms"] / 1e3,
        deliver_cpu=fast["gateway_ms"] / 1e3,
        transactions=transactions,
        flushes=max(1, min(round(server["flushes"]), transactions - 1)),
        flush=max(0.0, commit - server["commit_unflushed_ms"] / 1e3),
        notice=server["notice_ms"] / 1e3,
    )
    for _ in range(FITTING):
        busy, asleep = (play(measured, row, costs, seed).worker_ms for row in (fast, paced))
        rise = (paced["worker_ms"] - asleep) - (fast["worker_ms"] - busy)
        costs = replace(
            costs,
            worker_cpu=costs.worker_cpu + (fast["worker_ms"] - busy) / 1e3,
            wake=max(0.0, costs.wake + rise / 1e3 / transactions),
        )
    return costs


FITTING = 5


def play(measured: dict[str, Any], row: dict[str, Any], costs: Costs, seed: int) -> Outcome:
    """One run that was measured, on as many cores."""
    cores = measured["machine_cores"]
    cluster = Cluster(
        workers=row["workers"],
        at_once=measured["concurrency"],
        shared_cores=cores,
        speed=min(1.0, row["cores"] / cores),
    )
    load = Load(row["turns"], row["sessions"], row["pace"] or None)
    return Simulation(costs, cluster, load, seed).run()


def compare(measured: dict[str, Any], costs: Costs, seed: int) -> list[dict[str, Any]]:
    """The measured runs, what the model says of them, and how far it is off."""
    rows: list[dict[str, Any]] = []
    for row in (*measured["paced"], *measured["fast"]):
        outcome = play(measured, row, costs, seed)
        said = {"per_second": outcome.steady_per_second, "worker_ms": outcome.worker_ms}
        if row["pace"]:
            said |= {"wait_p50_ms": outcome.wait_ms(0.5), "wait_p90_ms": outcome.wait_ms(0.9)}
        rows.append(
            {
                "workers": row["workers"],
                "pace": row["pace"],
                "measured": {name: row[name] for name in said},
                "simulated": said,
                "error": {name: said[name] / row[name] - 1 for name in said},
            }
        )
    return rows


def curve(
    costs: Costs, cluster: Cluster, workers: Sequence[int], turns: int, seed: int
) -> list[dict[str, Any]]:
    """Throughput, CPU and waits for each number of workers."""
    rows: list[dict[str, Any]] = []
    for count in workers:
        grown = replace(cluster, workers=count)
        slots = count * cluster.at_once
        total = max(turns * count, 4 * slots)
        full = Simulation(costs, grown, Load(total, 4 * slots), seed).run()
        rate = UTILIZATION * full.steady_per_second
        some = Simulation(costs, grown, Load(total, 100 * slots, rate), seed).run()
        rows.append(
            {
                "workers": count,
                "per_second": full.steady_per_second,
                "cpu_ms": full.cpu_ms,
                "rate": rate,
                "cpu_ms_at_rate": some.cpu_ms,
                "wait_p50_ms": some.wait_ms(0.5),
                "wait_p99_ms": some.wait_ms(0.99),
                "empty_fetches": some.empty_fetches / total,
            }
        )
    return rows


def print_comparison(rows: Sequence[dict[str, Any]]) -> None:
    print("Measured, simulated, and the error of the model; what one worker costs was given")
    heads = ("turns/s", "worker CPU ms/turn", "wait p50, ms", "wait p90, ms")
    print(f"{'':14}workers" + "".join(f"{head:>24}" for head in heads))
    for row in rows:
        cells = [
            f"{was:.1f} {row['simulated'][name]:.1f} {row['error'][name]:+.0%}"
            for name, was in row["measured"].items()
        ]
        load = f"{row['pace']:g} a second" if row["pace"] else "a backlog"
        print(f"{load:14}{row['workers']:>7}" + "".join(f"{cell:>24}" for cell in cells))
    print()


def print_curve(rows: Sequence[dict[str, Any]]) -> None:
    print(f"{'':38}at {UTILIZATION:.0%} of that")
    print("workers   turns/s  CPU ms/turn   x of 1   CPU ms/turn  wait p50 ms   p99 ms  empty fetches")
    for row in rows:
        print(
            f"{row['workers']:>7}{row['per_second']:>10.0f}{row['cpu_ms']:>13.2f}"
            f"{row['per_second'] / rows[0]['per_second']:>9.1f}{row['cpu_ms_at_rate']:>14.2f}"
            f"{row['wait_p50_ms']:>13.1f}{row['wait_p99_ms']:>9.0f}{row['empty_fetches']:>15.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measured", type=Path, metavar="FILE", help="what capacity.py wrote")
    parser.add_argument("--workers", type=int, nargs="+", default=CURVE, metavar="N")
    parser.add_argument("--turns", type=int, default=60, help="for each worker (%(default)s)")
    parser.add_argument("--at-once", type=int, default=8, help="turns of one worker (%(default)s)")
    parser.add_argument("--polling", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--gateways", type=int, default=4)
    parser.add_argument("--databases", type=int, default=1)
    parser.add_argument("--database-cores", type=int, default=8)
    parser.add_argument("--flush-ms", type=float, help="of the database's disk; default: as measured")
    parser.add_argument("--notice-ms", type=float, help="default: as measured")
    parser.add_argument("--model-seconds", type=float, default=0.0, help="in each turn (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything")
    options = parser.parse_args()
    if min(*options.workers, options.turns, options.at_once, options.databases, options.gateways) < 1:
        parser.error("workers, turns, gateways and databases are at least 1")
    if min(options.workers) < options.databases:
        parser.error(f"--workers: every one of the {options.databases} databases needs a worker")
    costs, compared = Costs(), []
    if options.measured:
        measured = json.loads(options.measured.read_text())
        costs = costs_of(measured, options.seed)
        compared = compare(measured, costs, options.seed)
        print_comparison(compared)
    costs = replace(costs, model=options.model_seconds)
    if options.flush_ms is not None:
        costs = replace(costs, flush=options.flush_ms / 1e3)
    if options.notice_ms is not None:
        costs = replace(costs, notice=options.notice_ms / 1e3)
    cluster = Cluster(
        at_once=options.at_once,
        polling=options.polling,
        gateways=options.gateways,
        databases=options.databases,
        database_cores=options.database_cores,
    )
    rows = curve(costs, cluster, options.workers, options.turns, options.seed)
    print(", ".join(f"{name} {value:g}" for name, value in asdict(costs).items()))
    print_curve(rows)
    if options.json:
        found = {
            "seed": options.seed,
            "costs": asdict(costs),
            "cluster": asdict(cluster),
            "compared": compared,
            "curve": rows,
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
