"""Moving tapes between SQLite and PostgreSQL: everything arrives, and it is proved."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hookline.errors import SessionExists
from hookline.tape import MemoryTapeStore, SQLiteStore, Tape, TapeStore
from hookline.tape.copy import copy, digest
from hookline.tape.postgres.store import PostgresStore
from hookline.tape.settings import home_id

from .. import commandline, postgres
from .conftest import chain, note


async def grown(store: TapeStore) -> None:
    """Sessions with forks, switches, names, a merge, and text in many scripts."""
    tape = await Tape.open(store, "main")
    first = await tape.append("message", {"message": {"role": "user", "content": "Grüße 世界 🎉 \0"}})
    await tape.append_many([("note", {"text": f"n {n}"}) for n in range(2500)])
    child = await tape.fork("child")
    await child.append("note", {"text": "in the fork", "half": "\ud800"})
    await tape.merge(child)
    await tape.switch(first.id)
    await tape.rename("A name")
    grandchild = await child.fork("grandchild")
    await grandchild.append("note", {"text": "deep"}, meta={"who": "me"})
    # Two sessions that go on from each other's entries: neither can be copied whole before the other.
    left, right = note("left", session="left"), note("right", session="right")
    await store.append([left, right])
    await store.append([note("l2", right, "left"), note("r2", left, "right")])


async def content(store: TapeStore) -> dict[str, str]:
    return {info.id: await digest(store, info.id, info.entries) for info in await store.sessions()}


async def test_a_home_moves_to_postgres_and_back(tmp_path: Path, schema: str):
    source = SQLiteStore(tmp_path / "one.db")
    await grown(source)
    middle = await PostgresStore.open(postgres.url(), schema=schema)
    seen: list[str] = []
    done = await copy(source, middle, on_session=lambda session_id, count: seen.append(session_id))
    assert (done.sessions, done.skipped) == (5, 0)
    assert sorted(seen) == ["child", "grandchild", "left", "main", "right"]
    back = SQLiteStore(tmp_path / "two.db")
    assert (await copy(middle, back)).added == done.added
    assert await content(source) == await content(middle) == await content(back)
    assert await source.sessions() == await middle.sessions() == await back.sessions()
    for session in ("main", "grandchild"):
        assert await source.outline(session) == await middle.outline(session)
        leaf = await source.leaf(session)
        assert leaf is not None
        assert await source.branch(leaf.id) == await middle.branch(leaf.id)
    for store in (source, middle, back):
        await store.close()


async def test_copying_again_adds_only_what_is_new():
    source, target = MemoryTapeStore(), MemoryTapeStore()
    await grown(source)
    await copy(source, target)
    assert (await copy(source, target)).added == 0
    await (await Tape.open(source, "main")).append("note", {"text": "later"})
    done = await copy(source, target)
    assert (done.added, done.sessions) == (1, 5)
    assert await content(source) == await content(target)


async def test_a_copy_that_was_broken_off_goes_on():
    class Breaking(MemoryTapeStore):
        left = 2

        async def append(self, entries, *, expect=None):
            if self.left == 0:
                raise ConnectionError("gone")
            self.left -= 1
            await super().append(entries, expect=expect)

    source, target = MemoryTapeStore(), Breaking()
    await grown(source)
    with pytest.raises(ConnectionError):
        await copy(source, target)
    arrived = sum(info.entries for info in await target.sessions())
    target.left = 1000
    assert (await copy(source, target)).skipped == arrived > 0
    assert await content(source) == await content(target)


async def test_a_session_that_went_on_there_is_refused():
    source, target = MemoryTapeStore(), MemoryTapeStore()
    entries = chain(3)
    await source.append(entries)
    await target.append(entries[:2])
    await target.append([note("other", entries[1])])
    with pytest.raises(SessionExists, match=r"'s1' went on there.*the other way round"):
        await copy(source, target)
    with pytest.raises(SessionExists, match="went on there"):
        await copy(target, source)
    assert len(await target.entries("s1")) == 3


async def test_other_content_under_the_same_ids_is_noticed():
    source, target = MemoryTapeStore(), MemoryTapeStore()
    entries = chain(3)
    await source.append(entries)
    await target.append([replace(entries[0], payload={"text": "forged"}), *entries[1:]])
    with pytest.raises(SessionExists, match="not the same in both"):
        await copy(source, target)


def test_a_home_keeps_its_id(tmp_path: Path):
    first = home_id(tmp_path / "home")
    assert home_id(tmp_path / "home") == first
    assert home_id(tmp_path / "other") != first
    assert [file.name for file in (tmp_path / "home").iterdir()] == ["home-id"]


# --- On the command line ---


@pytest.fixture
def hookline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def run(home: Path, *arguments: str, **variables: str) -> SimpleNamespace:
        return commandline.here(home, home, monkeypatch, capsys)(*arguments, **variables)

    return run


def test_a_home_on_the_command_line_goes_to_postgres_and_back(tmp_path: Path, schema: str, hookline):
    home = tmp_path / "home"
    home.mkdir()
    script = tmp_path / "script.toml"
    script.write_text('[[turns]]\ntext = "Hello."\n')
    assert hookline(home, "db", "status").stdout.startswith("sqlite")
    refused = hookline(home, "db", "copy", "sqlite", "postgres")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)

    (home / "config.toml").write_text(
        f'[tape]\nurl = "${{TAPE_URL}}"\nschema = "{schema}"\npool_size = 3\n'
    )
    url = {"TAPE_URL": postgres.url().replace("postgres:@", "postgres:s3cret@")}
    missing = hookline(home, "db", "status")
    assert missing.returncode == 2
    assert "TAPE_URL" in missing.stderr
    status = hookline(home, "db", "status", **url)
    assert status.returncode == 1
    assert "run `hookline db migrate`" in status.stdout
    assert "is up to date" in hookline(home, "db", "migrate", **url).stdout
    status = hookline(home, "db", "status", **url)
    assert (status.returncode, "version   1 of 1: up to date" in status.stdout) == (0, True)

    model = f"scripted:{script}"
    said = hookline(home, "run", "hi", "--session", "s", "--model", model, **url)
    assert said.stdout.strip() == "Hello.", said.stderr
    assert not (home / "tape.db").exists()
    assert "s  hi" in hookline(home, "tape", "list", **url).stdout
    back = hookline(home, "db", "copy", "postgres", "sqlite", **url)
    assert "1 sessions are the same in both" in back.stdout, back.stderr
    assert (home / "tape.db").exists()
    again = hookline(home, "db", "copy", "sqlite", "postgres", **url)
    assert "0 entries copied" in again.stdout
    shown = hookline(home, "config", "show", TAPE_URL="unused", HOOKLINE_TAPE__URL=url["TAPE_URL"])
    for done in (status, said, back, again, shown):
        assert "s3cret" not in done.stdout + done.stderr


def test_a_second_home_on_the_same_schema_is_refused(tmp_path: Path, schema: str, hookline):
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir()
        (home / "config.toml").write_text(f'[tape]\nurl = "{postgres.url()}"\nschema = "{schema}"\n')
    assert hookline(homes[0], "db", "migrate").returncode == 0
    refused = hookline(homes[1], "tape", "list")
    assert refused.returncode == 2
    assert "another home" in refused.stderr
    assert str(homes[0]) in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    name = (homes[0] / "home-id").read_text().strip()
    assert hookline(homes[1], "tape", "list", HOOKLINE_TAPE__HOME=name).returncode == 0


def test_a_project_does_not_say_where_conversations_go(tmp_path: Path, monkeypatch, capsys):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    (project / ".hookline").mkdir(parents=True)
    (project / ".hookline" / "config.toml").write_text('[tape]\nurl = "postgresql://evil.example/x"\n')
    done = commandline.here(home, project, monkeypatch, capsys)("tape", "list")
    assert done.returncode == 0, done.stderr
    assert (home / "tape.db").exists()
