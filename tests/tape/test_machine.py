"""Thousands of random operations on a real file: whatever happens, the tape stays a tape."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from hookline.agent.compaction import CompactionResult, apply, plan
from hookline.tape import Entry, SQLiteStore, Tape, TapeContext, TapeError
from hookline.tape.tree import Tree

from ..effort import EFFORT

OPERATIONS = 1_000 * EFFORT  # about 2,500 as a rule; how long each run gets is up to hypothesis
STEPS = 50
EXAMPLES = 48 * EFFORT  # some end before their last step

PAYLOADS = st.dictionaries(
    st.text(max_size=5), st.text(max_size=5) | st.integers() | st.none(), max_size=3
)
CALLS = st.lists(st.sampled_from("abc"), max_size=2, unique=True)


MEMORY = Path("/dev/shm")
"""Where files need no disk: here it is the process that ends, and never the machine."""


def new_directory() -> Path:
    return Path(tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None))


class TapeMachine(RuleBasedStateMachine):
    """Sessions on one file, beside a plain list of everything that was ever appended."""

    tapes = Bundle("tapes")
    operations = 0  # of all runs together

    @initialize(target=tapes)
    def start(self) -> Tape:
        self.directory = new_directory()
        self.runner = asyncio.Runner()
        self.store = SQLiteStore(self.directory / "tape.db")
        self.written: dict[str, Entry] = {}
        self.open: dict[str, Tape] = {}
        self.touched: str | None = None
        self.steps = 0
        return self.opened("root")

    def opened(self, session: str) -> Tape:
        self.open[session] = self.run(Tape.open(self.store, session))
        return self.open[session]

    def run(self, awaitable: Any) -> Any:
        return self.runner.get_loop().run_until_complete(awaitable)  # `run` sets up signals each time

    def wrote(self, tape: Tape, entries: list[Entry]) -> None:
        for entry in entries:
            assert entry.id not in self.written
            self.written[entry.id] = entry
        assert tape.leaf == entries[-1]
        self.touched = tape.session_id

    def mine(self, tape: Tape) -> list[Entry]:
        return [entry for entry in self.written.values() if entry.session_id == tape.session_id]

    @rule(tape=tapes, kind=st.sampled_from(["note", "state", "model"]), payload=PAYLOADS, meta=PAYLOADS)
    def append(self, tape: Tape, kind: str, payload: dict[str, Any], meta: dict[str, Any]) -> None:
        self.wrote(tape, [self.run(tape.append(kind, payload, meta=meta))])

    @rule(tape=tapes, calls=CALLS, answered=CALLS)
    def turn(self, tape: Tape, calls: list[str], answered: list[str]) -> None:
        named = [{"id": call, "name": "t", "arguments": {}} for call in calls]
        message = {"role": "assistant", "content": "hm", "tool_calls": named}
        steps = [("message", {"message": message}), *(("tool_call", call) for call in named)]
        steps += [("tool_result", {"tool_call_id": call, "content": "x"}) for call in answered]
        self.wrote(tape, self.run(tape.append_many(steps)))

    @rule(tape=tapes, keep=st.booleans())
    def anchor(self, tape: Tape, keep: bool) -> None:
        branch = self.run(tape.branch())
        kept = branch[-min(3, len(branch))].id if keep and branch else None
        self.wrote(tape, [self.run(tape.anchor("a", summary="so far", keep_from=kept))])

    @rule(tape=tapes, keep=st.integers(0, 10))
    def compact(self, tape: Tape, keep: int) -> None:
        preparation = plan(self.run(tape.context_entries()), keep_tokens=keep)
        if preparation is not None:
            done = CompactionResult("so far", preparation.first_kept_entry_id)
            self.wrote(tape, [self.run(apply(tape, done))])

    @rule(tape=tapes, data=st.data())
    def navigate(self, tape: Tape, data: st.DataObject) -> None:
        targets = [None, *(entry.id for entry in self.mine(tape))]
        target = data.draw(st.sampled_from(targets))
        left = self.run(tape.left_behind(target))[1]
        assert left == self.path(tape.leaf)[len(self.path(tape.leaf)) - len(left) :]
        self.wrote(tape, [self.run(tape.switch(target))])

    @rule(tape=tapes, other=tapes, data=st.data())
    def navigate_to_a_foreign_branch(self, tape: Tape, other: Tape, data: st.DataObject) -> None:
        """It goes to entries of its own tree only; refused, nothing has changed."""
        own = {entry.id for entry in self.run(tape.outline())}
        if foreign := [entry.id for entry in self.mine(other) if entry.id not in own]:
            with pytest.raises(TapeError):
                self.run(tape.switch(data.draw(st.sampled_from(foreign))))

    @rule(tape=tapes, name=st.text("ab", min_size=1, max_size=3))
    def rename(self, tape: Tape, name: str) -> None:
        self.wrote(tape, [self.run(tape.rename(name))])
        infos = {info.id: info.name for info in self.run(self.store.sessions())}
        assert infos[tape.session_id] == name

    @rule(tape=tapes, name=st.text(max_size=3), data=st.data())
    def label(self, tape: Tape, name: str, data: st.DataObject) -> None:
        if mine := self.mine(tape):
            target = data.draw(st.sampled_from(mine)).id
            self.wrote(tape, [self.run(tape.label(target, name))])
            assert self.run(tape.labels())[name] == target

    @rule(tape=tapes, target=tapes, position=st.sampled_from(["at", "before"]), data=st.data())
    def fork(self, tape: Tape, position: Any, data: st.DataObject) -> Tape:
        mine = self.mine(tape)
        entry = data.draw(st.sampled_from(mine)).id if mine else None
        child = self.run(tape.fork(entry_id=entry, position=position))
        self.open[child.session_id] = child
        self.wrote(child, [child.leaf])
        return child

    @rule(child=tapes)
    def merge(self, child: Tape) -> None:
        first = next(iter(self.mine(child)), None)
        if first is not None and first.kind == "fork":
            parent = self.open[first.payload["session_id"]]
            if made := self.run(parent.merge(child)):
                self.wrote(parent, made)

    @rule(tape=consumes(tapes), target=tapes)
    def reopen(self, tape: Tape) -> Tape:
        return self.opened(tape.session_id)

    @rule()
    def crash(self) -> None:
        """The process ends without closing, and another opens the file."""
        copy = new_directory()
        for file in self.directory.iterdir():
            shutil.copy(file, copy)
        self.run(self.store.close())
        shutil.rmtree(self.directory)
        self.directory = copy
        self.store = SQLiteStore(copy / "tape.db")
        for tape in self.open.values():
            tape.store = self.store
        self.run(self.check_all())

    @rule(tape=tapes)
    def write_behind_the_back(self, tape: Tape) -> None:
        """Another process appends in between: what comes after is refused until the tape is read."""
        other = SQLiteStore(self.directory / "tape.db")
        behind = self.run(Tape.open(other, tape.session_id))
        entry = self.run(behind.append("note", {}))
        self.written[entry.id] = entry
        self.run(other.close())
        for refused in (tape.append("note", {}), tape.switch(None), tape.anchor("x"), tape.fork()):
            with pytest.raises(TapeError, match="another writer"):
                self.run(refused)
        assert self.run(tape.refresh()) == entry
        self.touched = tape.session_id

    @invariant()
    def the_tape_is_a_tape(self) -> None:
        if not hasattr(self, "store"):
            return
        TapeMachine.operations += 1
        self.steps += 1
        if self.steps % 10 == 0:
            self.run(self.check_all())
        elif self.touched is not None:
            self.run(self.check(self.open[self.touched]))

    async def check_all(self) -> None:
        kept = {}
        for info in await self.store.sessions():
            entries = await self.store.entries(info.id)
            assert info.entries == len(entries)
            kept.update({entry.id: entry for entry in entries})
        assert kept == self.written  # nothing lost, nothing changed, nothing made up
        for tape in self.open.values():
            await self.check(tape)

    async def check(self, tape: Tape) -> None:
        leaf = await self.store.leaf(tape.session_id)
        assert leaf == tape.leaf
        branch = await tape.branch()
        assert branch == self.path(leaf)
        assert not branch or branch[0].parent_id is None
        outline = await tape.outline()
        tree = Tree.of(outline)
        assert [entry.id for run in tree.trunk() for entry in run.entries] == [e.id for e in branch]
        assert {entry.id for entry in outline} >= {entry.id for entry in self.mine(tape)}
        context = await tape.context_entries()
        assert {entry.id for entry in context} <= {entry.id for entry in branch}
        open_calls: list[str] = []
        for message in TapeContext().messages(context):
            if message["role"] == "tool":
                assert open_calls.pop(0) == message["tool_call_id"]
            else:
                assert open_calls == []
                open_calls = [call["id"] for call in message.get("tool_calls", ())]
        assert open_calls == []

    def path(self, leaf: Entry | None) -> list[Entry]:
        path: list[Entry] = []
        while leaf is not None:
            path.append(leaf)
            leaf = self.written[leaf.parent_id] if leaf.parent_id is not None else None
        return path[::-1]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.check_all())
            self.run(self.store.close())
            self.runner.close()
            shutil.rmtree(self.directory)


@pytest.mark.slow
def test_a_tape_stays_a_tape_through_thousands_of_operations():
    TapeMachine.operations = 0
    run_state_machine_as_test(
        TapeMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert TapeMachine.operations >= OPERATIONS
