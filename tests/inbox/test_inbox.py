"""The inbox: what it keeps, what it knows again, and who has what."""

import pytest

from hookline.runtime.inbox import Inbox, packed, unpacked
from hookline.tape import SQLiteStore, TapeFull
from hookline.types import AudioPart, ImagePart, TextPart


def letter(name="m1", **fields):
    return {"content": "hi", "channel": "mail", "chat_id": "c1", "message_id": name, **fields}


@pytest.fixture
async def store(tmp_path):
    store = SQLiteStore(tmp_path / "tape.db")
    yield store
    await store.close()


@pytest.fixture
def inbox(store):
    return Inbox(store)


async def test_a_message_is_accepted_once_whatever_became_of_it(inbox):
    first = await inbox.accept(letter(), "a")
    again = await inbox.accept(letter(), "b")
    assert (first.duplicate, again.duplicate, again.number) == (False, True, first.number)
    await inbox.settle(letter(), "answered")
    assert (await inbox.accept(letter(), "a")).duplicate


async def test_ids_of_different_chats_and_channels_are_different_messages(inbox):
    await inbox.accept(letter(), "a")
    assert not (await inbox.accept(letter(chat_id="c2"), "a")).duplicate
    assert not (await inbox.accept(letter(channel="post"), "a")).duplicate


async def test_what_waits_comes_in_order_and_with_everything_it_carried(inbox):
    parts = [TextPart("look"), AudioPart(b"\0\xff", "audio/ogg"), ImagePart(url="http://x/y.png")]
    await inbox.accept(letter("m1", parts=parts), "a")
    await inbox.accept(letter("m2"), "b")
    await inbox.accept(letter("m3", thread={"id": 3}), "a")
    first, second = await inbox.waiting("a")
    assert first.envelope == letter("m1", parts=parts)
    assert second.envelope == letter("m3", thread={"id": 3})
    assert [w.envelope["message_id"] for w in await inbox.waiting("a", after=first.number)] == ["m3"]


async def test_what_is_done_with_leaves_no_text_behind(inbox, store):
    await inbox.accept(letter(content="my secret"), "a")
    await inbox.settle(letter(), "answered")
    assert await inbox.waiting("a") == []
    assert await inbox.owner_of(letter()) is None
    rows = await store.using("read", lambda db: db.execute("SELECT * FROM inbox").fetchall())
    assert "answered" in rows[0]
    assert "secret" not in str(rows)


async def test_messages_that_became_part_of_another_are_done_with_together(inbox):
    for name in ("m1", "m2", "m3"):
        await inbox.accept(letter(name), "a")
    await inbox.settle(letter("m3", joined="m1\nm2"), "answered")
    assert await inbox.waiting("a") == []


async def test_only_what_belonged_to_the_dead_is_taken_over(inbox):
    for name, owner in (("m1", "dead"), ("m2", "alive"), ("m3", "dead")):
        await inbox.accept(letter(name), owner)
    assert await inbox.take_over("new", {"new", "alive"}.__contains__) == 2
    assert [w.envelope["message_id"] for w in await inbox.waiting("new")] == ["m1", "m3"]
    assert await inbox.owner_of(letter("m2")) == "alive"


async def test_keys_are_forgotten_only_once_their_messages_are_done_with(inbox):
    await inbox.accept(letter("m1"), "a")
    await inbox.accept(letter("m2"), "a")
    await inbox.settle(letter("m1"), "answered")
    assert await inbox.forget(before=float("inf")) == 1
    assert not (await inbox.accept(letter("m1"), "a")).duplicate
    assert (await inbox.accept(letter("m2"), "a")).duplicate


async def test_a_full_disk_is_told_and_nothing_is_accepted(inbox, store):
    assert await inbox.waiting("a") == []
    pages = await store.using("read", lambda db: db.execute("PRAGMA page_count").fetchone()[0])
    await store.using("limit", lambda db: db.execute(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(TapeFull, match="cannot keep a message"):
        await inbox.accept(letter(content="x" * 100_000), "a")
    assert await inbox.waiting("a") == []


def test_a_field_that_json_cannot_hold_is_left_out():
    class Socket:
        pass

    assert unpacked(packed(letter(socket=Socket(), nested={"a": [1, Socket()]}))) == letter(
        nested={"a": [1]}
    )
