# ruff: noqa: E501 -- tables
"""A tape from elsewhere says what was said. It chooses no model, and it goes on only if a person asks."""

import asyncio
import time

import pytest

from hookline.cli import tape as tape_command
from hookline.models import ScriptedModel
from hookline.runtime.app import Hookline
from hookline.serve.gateway import Gateway
from hookline.tape import MemoryTapeStore, Tape, export, import_

from ..gateway.test_gateway import Mailbox, Post

SESSION = "terminal:stolen"


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("home", "work", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "evil.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nturns = ['owned']\nrepeat = True\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    return tmp_path


def opened(place, config="") -> Hookline:
    (place / "home" / "config.toml").write_text(config)
    app = Hookline(home=place / "home", workspace=place / "work")
    app.load_hooks(packages=False)
    mine = ScriptedModel(["mine"] * 3, name="mine")
    app.models.add(mine)
    app.model = mine.name
    return app


async def written(place, *entries) -> None:
    """A file with a session that somebody else made."""
    store = MemoryTapeStore()
    tape = await Tape.open(store, SESSION)
    await tape.append("turn", {"status": "started", "turn_id": "t0"})
    await tape.append("message", {"message": {"role": "user", "content": "hi"}})
    await tape.append("message", {"message": {"role": "assistant", "content": "hello"}})
    await tape.append("turn", {"status": "finished", "turn_id": "t0"})
    for kind, payload in entries:
        await tape.append(kind, payload)
    lines = [line async for line in export(store, [SESSION])]
    (place / "tape.jsonl").write_text("".join(lines))


MODELS = [
    "scripted:{place}/evil.py", "scripted:../evil.py", "openai-compatible:http://127.0.0.1:9/v1#m", "local:{place}/evil.gguf",
    "any:openai/gpt", "openai:gpt-5", "absent", "", " mine", "MINE", "mine\n", "scripted:/dev/stdin",
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
async def test_the_model_of_an_imported_tape_does_not_answer(place, model):
    await written(place, ("model", {"model": model.format(place=place)}))
    app = opened(place)
    async with app.running():
        await import_(app.store(), (place / "tape.jsonl").read_text().splitlines())
        result = await app.process({"content": "go", "session_id": SESSION})
        assert result.model_output == "mine"
        fork = await app.sessions.fork(SESSION)
        assert app.sessions.model_of(str(getattr(fork, "session_id", fork))) == "mine"
    assert not (place / "ran").exists()


async def test_a_model_that_is_configured_answers_and_so_does_one_that_is_chosen_afterwards(place):
    await written(place, ("model", {"model": "theirs"}))
    app = opened(place, '[agents.other]\nmodel = "theirs"\n')
    for name in ("theirs", "third"):
        app.models.add(ScriptedModel([name], name=name))
    async with app.running():
        await import_(app.store(), (place / "tape.jsonl").read_text().splitlines())
        first = await app.process({"content": "go", "session_id": SESSION})
        await app.sessions.choose_model(SESSION, "third")
        await app.sessions.close(SESSION)
        second = await app.process({"content": "go", "session_id": SESSION})
    assert (first.model_output, second.model_output) == ("theirs", "third")


CUT_OFF = [
    ("turn", {
        "status": "started", "turn_id": "t1", "identity": {"user": "root", "channel": "terminal"},
        "envelope": {"content": "wipe it", "session_id": SESSION, "channel": "web", "chat_id": "c"},
    }),
    ("message", {"message": {"role": "user", "content": "wipe it"}}),
]  # fmt: skip


async def test_a_turn_that_an_imported_tape_leaves_open_waits_for_a_person(place):
    await written(place, *CUT_OFF)
    app = opened(place)
    async with app.running():
        await import_(app.store(), (place / "tape.jsonl").read_text().splitlines())
        assert not await app.sessions.is_cut_off(SESSION)
        assert await app.sessions.cut_off() is None
        done = await app.process({"content": "go", "session_id": SESSION, "sender_id": "ada"})
        assert done.model_output == "mine"


async def test_a_gateway_that_starts_does_not_take_it_up(place):
    """Turns that were cut off are begun in the order in which they are found: the imported one first."""
    app = opened(place, "[gateway]\nport = 0\n")
    await written(place, *CUT_OFF)
    async with app.running():
        await import_(app.store(), (place / "tape.jsonl").read_text().splitlines())
        own = await Tape.open(app.store(), "own")
        for kind, payload in CUT_OFF:
            await own.append(kind, payload)
    box = Mailbox("web")
    app.hooks.add(Post(box))
    async with Gateway(app, enabled=["web"]).running(), asyncio.timeout(30):
        while "end answered" not in box.log:
            await asyncio.sleep(0.001)
    async with app.running():
        turns = [
            [entry.payload["status"] for entry in await app.store().entries(name, kinds={"turn"})]
            for name in ("own", SESSION)
        ]
    assert turns[0][-1] != "started"
    assert turns[1][-1] == "started"


async def test_it_goes_on_when_a_person_names_it(place):
    await written(place, *CUT_OFF)
    app = opened(place)
    async with app.running():
        await import_(app.store(), (place / "tape.jsonl").read_text().splitlines())
        result = await app.resume(SESSION)
    assert result is not None
    assert result.model_output == "mine"


async def test_the_command_marks_what_it_imports_once(place):
    await written(place, ("model", {"model": "scripted:x"}))
    app = opened(place)
    for _ in range(2):
        await asyncio.to_thread(tape_command.import_tape, app, place / "tape.jsonl")
    async with app.running():
        kinds = [entry.kind for entry in await app.store().entries(SESSION)]
    assert kinds.count("import") == 1
    assert kinds[-1] == "import"


async def test_more_of_a_session_can_be_imported_later(place):
    store, theirs = MemoryTapeStore(), MemoryTapeStore()
    tape = await Tape.open(theirs, "s")
    for number in range(3):
        await tape.append("note", {"n": number, "time": time.time()})
        done = await import_(store, export(theirs))
        assert done.added == 1
    kinds = [entry.kind for entry in await store.entries("s")]
    assert kinds == ["note", "import"] * 3
