"""The tables of a cluster and their versions: what is there, what is older, bringing it up to date."""

from contextlib import AsyncExitStack

import pytest

from hookline.errors import TapeVersionMismatch
from hookline.serve.cluster import prepare
from hookline.serve.cluster.schema import PART, steps
from hookline.tape.postgres.schema import migrate
from hookline.tape.postgres.store import PostgresStore

from .. import commandline, postgres
from .conftest import Cluster, letter


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys, schema):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[tape]\nurl = "{postgres.url()}"\nschema = "{schema}"\nhome = "team"\n'
    )
    return commandline.here(home, tmp_path, monkeypatch, capsys)


@pytest.fixture
def schema():
    name = postgres.new_schema()
    yield name
    postgres.drop(name)


def test_status_and_migrate_know_the_tables_of_all_parts(hookline, schema):
    assert hookline("db", "migrate").returncode == 0
    status = hookline("db", "status")
    assert status.returncode == 0
    for part in ("cluster", "approvals", "triggers", "trace"):
        (line,) = [line for line in status.stdout.splitlines() if line.startswith(part)]
        assert line.endswith("up to date")
    postgres.execute(f"UPDATE {schema}.versions SET version = 9 WHERE part = 'triggers'")
    status = hookline("db", "status")
    assert status.returncode == 1
    assert "triggers  version 9 of 1: newer than this Hookline; update it" in status.stdout
    refused = hookline("db", "migrate")
    assert refused.returncode == 2
    assert "has version 9, and this Hookline knows versions up to 1" in refused.stderr


def test_parts_that_nobody_used_are_no_fault(hookline):
    assert hookline("tape", "list").returncode == 0
    status = hookline("db", "status")
    assert (status.returncode, status.stdout.count("no tables; made when first used")) == (0, 4)


async def test_tables_of_an_older_cluster_are_refused_until_they_are_brought_up_to_date(
    tmp_path, schema
):
    async with AsyncExitStack() as stack:
        await check_migration(Cluster(tmp_path, schema, stack))


async def check_migration(cluster):
    store = await PostgresStore.open(postgres.url(), schema=cluster.schema, home="team")
    async with store.connection() as connection:
        await migrate(connection, cluster.schema, PART, steps()[:1])
    with pytest.raises(TapeVersionMismatch, match="hookline db migrate"):
        await prepare(store)
    await prepare(store, allowed=True)
    await store.close()
    box = await cluster.gateway()
    await cluster.worker()
    await box.handle(letter())
    (result,) = await box.answers("ada-1")
    assert result.outcome == "answered"
