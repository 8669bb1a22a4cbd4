"""Opening the store that the settings name."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookline.errors import TapeUnavailable
from hookline.system.private_files import private_folder

from .sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from .postgres.store import PostgresStore
    from .settings import TapeSettings
    from .store import TapeStore

FILE = "tape.db"
"""The SQLite file in a home."""


async def open_store(home: Path, settings: TapeSettings | None = None) -> TapeStore:
    """The store of a home: PostgreSQL where `[tape] url` names one, or the SQLite file."""
    if settings is not None and settings.url is not None:
        return await open_postgres(home, settings)
    return open_sqlite(home)


def open_sqlite(home: Path) -> SQLiteStore:
    """The SQLite file of a home, made when there is none."""
    private_folder(home)
    return SQLiteStore(home / FILE, lock_timeout=5.0)


async def open_postgres(
    home: Path, settings: TapeSettings, *, migrate: bool | None = None
) -> PostgresStore:
    """The database that the settings name, as this home's."""
    from .settings import home_id

    try:
        from .postgres.store import PostgresStore
    except ImportError as error:
        raise TapeUnavailable(
            "a tape in PostgreSQL needs a library that is not installed; "
            f"run `pip install 'hookline[postgres]'` ({error})"
        ) from error
    assert settings.url is not None
    return await PostgresStore.open(
        settings.url.get_secret_value(),
        schema=settings.schema_,
        home=settings.home or home_id(home),
        where=f"{socket.gethostname()}:{home.absolute()}",
        pool_size=settings.pool_size,
        timeout=settings.timeout,
        statement_timeout=settings.statement_timeout,
        retry=settings.retry,
        migrate=settings.migrate if migrate is None else migrate,
    )


def postgres_of(store: TapeStore) -> PostgresStore | None:
    """The PostgreSQL store, even behind a wrapper; None if it is another kind."""
    if not hasattr(store, "database"):
        return None
    try:
        from .postgres.connection import Database
    except ImportError:  # some other database
        return None
    is_one = isinstance(getattr(store, "database", None), Database)
    return cast("PostgresStore", store) if is_one else None
