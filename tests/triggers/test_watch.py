"""Watching real files."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from hookline.ext.triggers import Triggers
from hookline.ext.triggers.watch import settled

from .conftest import said

SETTINGS = """
[triggers.inbox]
type = "watch"
paths = ["inbox"]
globs = ["*.txt"]
ignore = ["draft*"]
message = "{changes.0.change}: {paths}"
debounce = 0.05
"""


@pytest.fixture
def inbox(app):
    folder = app.workspace / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def watching(serving):
    @asynccontextmanager
    async def watch():
        async with serving() as triggers:
            async with asyncio.timeout(30):
                await triggers.configured["inbox"].watching.wait()
            yield triggers

    return watch


async def heard(triggers, model, count):
    async with asyncio.timeout(30):
        while len(model.requests) < count:
            await asyncio.sleep(0.01)
    await triggers.drained()
    return said(model)


async def test_files_that_come_change_and_go_make_turns(settings, scripted, inbox, watching):
    settings(SETTINGS)
    model = scripted("ok", repeat=True)
    async with watching() as triggers:
        (inbox / "a.txt").write_text("one")
        await heard(triggers, model, 1)
        (inbox / "a.txt").write_text("two")
        await heard(triggers, model, 2)
        (inbox / "a.txt").unlink()
        assert await heard(triggers, model, 3) == [
            "created: inbox/a.txt", "modified: inbox/a.txt", "deleted: inbox/a.txt",
        ]  # fmt: skip


async def test_only_what_fits_counts(settings, scripted, inbox, watching):
    settings(SETTINGS)
    model = scripted("ok", repeat=True)
    (inbox / "below").mkdir()
    async with watching() as triggers:
        (inbox / "a.pdf").write_text("no")
        (inbox / "draft.txt").write_text("no")
        (inbox / "below" / "b.txt").write_text("yes")
        assert await heard(triggers, model, 1) == ["created: inbox/below/b.txt"]


async def test_changes_that_follow_each_other_are_one_turn(settings, scripted, inbox, watching):
    settings(SETTINGS.replace("0.05", "0.4"))
    model = scripted("ok", repeat=True)
    async with watching() as triggers:
        for number in range(20):
            (inbox / "a.txt").write_text(str(number))
            (inbox / f"b{number % 2}.txt").write_text(str(number))
        found = await heard(triggers, model, 1)
    assert found == ["created: inbox/a.txt, inbox/b0.txt, inbox/b1.txt"]


async def test_only_the_changes_that_are_asked_for(settings, scripted, inbox, watching):
    settings(SETTINGS + 'changes = ["deleted"]\n')
    model = scripted("ok", repeat=True)
    (inbox / "a.txt").write_text("there")
    async with watching() as triggers:
        (inbox / "b.txt").write_text("new")
        (inbox / "a.txt").unlink()
        assert await heard(triggers, model, 1) == ["deleted: inbox/a.txt"]


async def test_a_folder_that_is_not_there_is_told_and_stops_nobody(
    app, settings, scripted, serving, errors
):
    settings(SETTINGS + '[triggers.jobs]\ntype = "queue"\npoll = 0.01\n')
    model = scripted("ok")
    async with serving() as triggers:
        await triggers.enqueue("jobs", "work")
        await heard(triggers, model, 1)
    ((stage, error),) = errors
    assert stage == "trigger"
    assert "[triggers.inbox] paths: inbox does not exist" in str(error)


async def test_of_two_that_watch_one_is_told(app, settings, scripted, inbox, watching):
    settings(SETTINGS)
    model = scripted("ok", repeat=True)
    async with watching() as triggers:
        second = Triggers(app)
        trigger = second.configured["inbox"]
        trigger.context = second.context
        await trigger.set_up()
        await trigger.begin()
        (inbox / "a.txt").write_text("one")
        await heard(triggers, model, 1)
        assert not trigger.watching.is_set()
        await trigger.end()
        await second.close()
        assert await triggers.ledger.counts("inbox") == {"done": 1}


def test_what_an_editor_does_to_save_is_one_change(tmp_path):
    there, gone = str(tmp_path / "there"), str(tmp_path / "gone")
    (tmp_path / "there").touch()
    assert settled([("deleted", there), ("created", there)]) == {there: "modified"}
    assert settled([("created", there), ("modified", there)]) == {there: "created"}
    assert settled([("created", gone), ("deleted", gone)]) == {}
    assert settled([("modified", gone), ("deleted", gone)]) == {gone: "deleted"}
