"""A disk that is really full: one clear error, nothing half written, and going on with more room."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hookline.ext.stores.errors import StoreUnavailable
from hookline.ext.triggers.ledger import SQLiteLedger
from hookline.hookspecs import TriggerEvent
from hookline.runtime.inbox import Inbox
from hookline.tape import Entry, SQLiteStore, Tape, TapeFull, TapeUnavailable
from hookline.tape.postgres.store import PostgresStore

from .. import postgres
from ..commandline import here
from ..gateway.conftest import served  # noqa: F401  (a fixture)
from .conftest import note
from .disks import Disk, mounted
from .servers import Server, folders, give, server_user

pytestmark = pytest.mark.slow


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A home on a small disk."""
    with mounted(tmp_path / "home", "1m") as disk:
        yield disk


def told(error: BaseException, file: Path) -> bool:
    said = str(error)
    return "\n" not in said and str(file) in said and "the disk is full; make room" in said


async def until_refused(
    action: Callable[[int], Awaitable[object]], kind: type[Exception], start: int = 0
) -> tuple[int, Exception]:
    """Do it with one number after another: the one that was refused, and the refusal."""
    for number in range(start, 1000):
        try:
            await action(number)
        except kind as error:
            return number, error
    raise AssertionError("there was room for everything")


async def fill_up(tape: Tape, disk: Disk, room: int = 40_000) -> tuple[list[Entry], TapeFull]:
    """Append until that is refused: what was kept, and the refusal."""
    disk.leave(room)
    kept = await tape.branch()
    while len(kept) < 1000:
        try:
            kept.append(await tape.append("note", {"text": words()}))
        except TapeFull as error:
            return kept, error
    raise AssertionError("there was room for everything")


# --- SQLite ---


async def test_a_tape_refuses_what_has_no_room_and_goes_on_once_there_is_some(disk: Disk):
    file = disk.path / "tape.db"
    store = SQLiteStore(file)
    tape = await Tape.open(store, "s1")
    kept, refusal = await fill_up(tape, disk)
    assert len(kept) > 1
    assert told(refusal, file)
    with pytest.raises(TapeFull):
        await tape.append_many([("note", {"text": "x" * 3000})] * 10)
    others = await asyncio.gather(
        *(store.append([note("x" * 3000, session=f"o{n}")]) for n in range(5)), return_exceptions=True
    )
    assert [type(other) for other in others] == [TapeFull] * 5
    assert await tape.branch() == kept
    assert len(await store.sessions()) == 1
    disk.make_room()
    kept.append(await tape.append("note", {"text": "after"}))
    assert [hit.entry for hit in await store.search("after")] == kept[-1:]
    await store.close()
    again = SQLiteStore(file)
    assert await again.entries("s1") == kept
    assert again._db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    await again.close()


@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
async def test_a_tape_that_cannot_be_opened_for_want_of_room_says_so(disk: Disk, known: bool):
    file = disk.path / "tape.db"
    if known:
        store = SQLiteStore(file)
        await store.append([note("one")])
        await store.close()
    disk.fill()
    with pytest.raises(TapeFull) as refusal:
        SQLiteStore(file)
    assert told(refusal.value, file)
    disk.make_room()
    store = SQLiteStore(file)
    assert len(await store.entries("s1")) == known
    await store.close()


async def test_an_inbox_has_every_message_that_it_accepted_and_none_that_it_refused(disk: Disk):
    store = SQLiteStore(disk.path / "tape.db")
    inbox = Inbox(store)

    def letter(number: int) -> dict[str, str]:
        text = f"number {number} " + "x" * 500
        return {"content": text, "channel": "mail", "chat_id": "c1", "message_id": f"m{number}"}

    assert await inbox.waiting("a") == []  # makes the table
    disk.leave(40_000)
    count, refusal = await until_refused(lambda number: inbox.accept(letter(number), "a"), TapeFull)
    assert count > 1
    assert told(refusal, disk.path / "tape.db")
    expected = [letter(number) for number in range(count)]
    assert [w.envelope for w in await inbox.waiting("a", limit=1000)] == expected
    disk.make_room()
    assert not (await inbox.accept(letter(count), "a")).duplicate
    await store.close()
    store = SQLiteStore(disk.path / "tape.db")
    waiting = await Inbox(store).waiting("a", limit=1000)
    assert [w.envelope for w in waiting] == [*expected, letter(count)]
    await store.close()


async def test_a_ledger_refuses_an_event_without_room_and_takes_it_later(disk: Disk):
    file = disk.path / "triggers.db"
    disk.fill()
    ledger = SQLiteLedger(disk.path)
    with pytest.raises(StoreUnavailable) as refusal:
        await ledger.enqueue(TriggerEvent("build", id="0"))
    assert told(refusal.value, file)
    disk.make_room()
    assert await ledger.enqueue(TriggerEvent("build", id="0"))
    disk.leave(40_000)
    long = {"text": "x" * 500}
    count, refused = await until_refused(
        lambda number: ledger.enqueue(TriggerEvent("build", long, id=str(number))),
        StoreUnavailable, start=1,
    )  # fmt: skip
    assert told(refused, file)
    assert await ledger.counts("build") == {"queued": count}
    with pytest.raises(StoreUnavailable):
        await ledger.claim(TriggerEvent("build", id="0"), "me", again=True)
    disk.make_room()
    taken, record = await ledger.claim(TriggerEvent("build", id="0"), "me", again=True)
    assert (taken, record.tries) == (True, 1)
    assert await ledger.enqueue(TriggerEvent("build", id=str(count)))
    await ledger.close()


# --- The doors ---


@pytest.fixture
def hookline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., SimpleNamespace]:
    (tmp_path / "turns.toml").write_text('[[turns]]\ntext = "The garden is fine."\n')
    return here(tmp_path / "home", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_a_turn_on_the_command_line_is_refused_in_one_line(disk: Disk, hookline, known: bool):
    ask = ("run", "--model", "scripted:turns.toml", "How is the garden?")
    if known:
        assert hookline(*ask).returncode == 0
    disk.fill()
    refused = hookline(*ask)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert told(Exception(refused.stderr.removesuffix("\n")), disk.path / "tape.db")
    disk.make_room()
    assert hookline(*ask).stdout == "The garden is fine.\n"
    listed = hookline("tape", "list").stdout
    assert listed.count(" 4 entries") == (2 if known else 1)


def test_the_id_of_a_home_is_made_whole_or_not_at_all(disk: Disk, hookline, schema: str):
    url = {"HOOKLINE_TAPE__URL": postgres.url(), "HOOKLINE_TAPE__SCHEMA": schema}
    disk.fill()
    refused = hookline("tape", "list", **url)
    assert refused.returncode == 2
    assert re.fullmatch(
        r"hookline: .*home-id \(No space left on device\); make room.*\n", refused.stderr
    )
    assert not list(disk.path.glob("home-id*"))
    disk.make_room()
    assert hookline("tape", "list", **url).returncode == 0


async def test_a_gateway_accepts_nothing_that_it_cannot_keep(disk: Disk, app, scripted, served):  # noqa: F811
    scripted(*["fine"] * 1000)

    async def say(web, name: str) -> int:
        at = f"{web.url}api/sessions/web:test/messages"
        key = {"idempotency-key": name}
        async with web.http.post(at, json={"text": f"{name} " + "x" * 500}, headers=key) as response:
            if response.status == 503:
                assert response.headers["retry-after"]
                assert "try again later" in (await response.json())["detail"]
            return response.status

    statuses: dict[str, int] = {}
    async with served() as web:
        disk.leave(100_000)
        while len(statuses) < 100 and list(statuses.values()).count(503) < 3:
            name = f"m{len(statuses)}"
            statuses[name] = await say(web, name)
        assert {200, 503} <= set(statuses.values()) <= {200, 500, 503}
        disk.make_room()
        refused = [name for name, status in statuses.items() if status == 503]
        assert [await say(web, name) for name in refused] == [200] * len(refused)
        taken = [name for name in statuses if name not in refused]
        assert {await say(web, name) for name in taken} == {409}  # accepted before
    async with app.running():
        turns = await app.store().entries("web:test", kinds={"turn"})
    begun = [t.payload["envelope"]["content"].split()[0] for t in turns if "envelope" in t.payload]
    answered = [name for name, status in statuses.items() if status != 500]
    assert [name for name in begun if name in answered] == answered
    assert len(begun) == len(set(begun))


# --- PostgreSQL ---


@pytest.fixture
def small() -> Iterator[tuple[Disk, str]]:
    """A database whose tables are on a small disk, and where it is."""
    name = postgres.new_schema()
    with folders("disk") as (folder,), mounted(folder, "24m") as disk:
        place = folder / "tables"
        place.mkdir()
        postgres.server()
        give(place, server_user())
        postgres.execute(
            f"CREATE TABLESPACE {name} LOCATION '{place}'", f"CREATE DATABASE {name} TABLESPACE {name}"
        )
        try:
            yield disk, postgres.url().replace("/postgres?", f"/{name}?")
        finally:
            postgres.execute(f"DROP DATABASE {name} WITH (FORCE)", f"DROP TABLESPACE {name}")


async def test_postgres_without_room_refuses_an_append_and_goes_on(small: tuple[Disk, str]):
    disk, url = small
    store = await PostgresStore.open(url)
    tape = await Tape.open(store, "s1")
    kept, refusal = await fill_up(tape, disk, room=400_000)
    assert len(kept) > 1
    assert re.search(r"its disk is full; make room .*No space left on device", str(refusal))
    assert "\n" not in str(refusal)
    with pytest.raises(TapeFull):
        await tape.append_many([("note", {"text": words()})] * 200)
    assert await tape.branch() == kept
    disk.make_room()
    kept.append(await tape.append("note", {"text": "after"}))
    assert await store.entries("s1") == kept
    await store.close()


async def test_postgres_that_ends_for_want_of_room_for_its_log_has_all_that_it_confirmed():
    with folders("server", "disk") as (folder, place), mounted(place, "8m") as disk:
        server = Server(folder)
        give(place, server_user())
        server.make("--waldir", str(place / "log"), "--wal-segsize=1")
        server.set("min_wal_size = 2MB", "max_wal_size = 1GB")
        server.start()
        try:
            store = await PostgresStore.open(server.url, timeout=0.5)
            tape = await Tape.open(store, "s1")
            kept = await until_gone(tape, disk)
            disk.make_room()
            server.stop("immediate")
            server.start()  # as whatever looks after it does
            await tape.refresh()
            found = await store.entries("s1")
            assert found[: len(kept)] == kept
            assert len(found) - len(kept) in (0, 1)  # the last may have arrived
            last = await tape.append("note", {"text": "after"})
            assert await tape.branch() == [*found, last]
            await store.close()
        finally:
            server.stop("immediate")


async def until_gone(tape: Tape, disk: Disk) -> list[Entry]:
    """Append until the server gives up: what it confirmed."""
    disk.fill()
    kept: list[Entry] = []
    while len(kept) < 5000:
        try:
            kept.append(await tape.append("note", {"text": words()}))
        except TapeUnavailable:
            return kept
    raise AssertionError("there was room for everything")


def words() -> str:
    """A text that takes its room, as it cannot be made smaller."""
    return os.urandom(1500).hex()
