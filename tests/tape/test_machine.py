"""Random operations on a real file: whatever happens, the tape stays a tape."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from hookline.tape import Entry, SQLiteStore, Tape, TapeContext

PAYLOADS = st.dictionaries(
    st.text(max_size=5), st.text(max_size=5) | st.integers() | st.none(), max_size=3
)
CALLS = st.lists(st.sampled_from("abc"), max_size=2, unique=True)


class TapeMachine(RuleBasedStateMachine):
    """Sessions on one file, beside a plain list of everything that was ever appended."""

    tapes = Bundle("tapes")

    @initialize(target=tapes)
    def start(self) -> Tape:
        self.directory = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.store = SQLiteStore(self.directory / "tape.db")
        self.written: dict[str, Entry] = {}
        self.open: dict[str, Tape] = {}
        return self.opened("root")

    def opened(self, session: str) -> Tape:
        self.open[session] = self.run(Tape.open(self.store, session))
        return self.open[session]

    def run(self, awaitable: Any) -> Any:
        return self.runner.run(awaitable)

    def wrote(self, tape: Tape, entries: list[Entry]) -> None:
        for entry in entries:
            assert entry.id not in self.written
            self.written[entry.id] = entry
        assert tape.leaf == entries[-1]

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
    def compact(self, tape: Tape, keep: bool) -> None:
        branch = self.run(tape.branch())
        kept = branch[-min(3, len(branch))].id if keep and branch else None
        self.wrote(tape, [self.run(tape.anchor("a", summary="so far", keep_from=kept))])

    @rule(tape=tapes, data=st.data())
    def navigate(self, tape: Tape, data: st.DataObject) -> None:
        if mine := self.mine(tape):
            self.wrote(tape, [self.run(tape.switch(data.draw(st.sampled_from(mine)).id))])

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
        copy = Path(tempfile.mkdtemp())
        for file in self.directory.iterdir():
            shutil.copy(file, copy)
        self.run(self.store.close())
        shutil.rmtree(self.directory)
        self.directory = copy
        self.store = SQLiteStore(copy / "tape.db")
        for tape in self.open.values():
            tape.store = self.store

    @invariant()
    def the_tape_is_a_tape(self) -> None:
        if not hasattr(self, "store"):
            return
        kept = {}
        for info in self.run(self.store.sessions()):
            entries = self.run(self.store.entries(info.id))
            assert info.entries == len(entries)
            kept.update({entry.id: entry for entry in entries})
        assert kept == self.written  # nothing lost, nothing changed, nothing made up
        for tape in self.open.values():
            self.check(tape)

    def check(self, tape: Tape) -> None:
        leaf = self.run(self.store.leaf(tape.session_id))
        assert leaf == tape.leaf
        branch = self.run(tape.branch())
        assert branch == self.path(leaf)
        context = self.run(tape.context_entries())
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
            self.run(self.store.close())
            self.runner.close()
            shutil.rmtree(self.directory)


TestTapeMachine = TapeMachine.TestCase
TestTapeMachine.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
