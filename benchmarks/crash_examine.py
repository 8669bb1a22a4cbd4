"""What the crash suite finds: the tapes, and what was written, compared with the plan."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hookline.tape import Entry, TapeStore


@dataclass
class Report:
    """What was found, added up over the rounds."""

    store: str
    workers: int
    kills: int = 0
    messages: int = 0
    calls_interrupted: int = 0
    sent_twice: int = 0
    """Not a fault: a crash between sending and recording; the channel can drop the second."""
    faults: list[str] = field(default_factory=list)

    def row(self) -> str:
        return (
            f"{self.store:10} {self.workers:7} {self.kills:6} {self.messages:9} "
            f"{self.calls_interrupted:12} {self.sent_twice:11} {len(self.faults):7}"
        )


HEAD = "store      workers  kills  messages  interrupted  sent twice  faults"


def plan_of(sessions: int, messages: int) -> dict[str, list[str]]:
    """The messages of each session, in order."""
    return {f"s{s}": [f"s{s}-m{m}" for m in range(messages)] for s in range(sessions)}


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def examine(store: TapeStore, folder: Path, plan: dict[str, list[str]], report: Report) -> None:
    """Compare what is left with the plan."""
    ran, faults = Counter(lines(folder / "ran.txt")), report.faults
    for session, names in plan.items():
        entries = await store.entries(session)
        faults += [f"{session}: {fault}" for fault in faults_of(entries, names)]
        faults += [f"{name}: its tool ran {ran[name]} times" for name in names if ran[name] > 1]
        results = (e.payload for e in entries if e.kind == "tool_result")
        report.calls_interrupted += sum(result["is_error"] for result in results)
        report.messages += len(names)
    sent = Counter(lines(folder / "sent.txt"))
    report.sent_twice += sum(count > 1 for count in sent.values())
    if unsent := {f"{name}/0 paid {name}" for names in plan.values() for name in names} - set(sent):
        faults.append(f"never sent: {sorted(unsent)}")
    if errors := lines(folder / "errors.txt"):
        faults.append(f"errors were told: {errors[:3]}")


def faults_of(entries: list[Entry], names: list[str]) -> list[str]:
    """What is wrong with the tape of a session that got these messages."""
    faults: list[str] = []
    started = [e for e in entries if e.kind == "turn" and e.payload["status"] == "started"]
    turns = [e.payload["envelope"]["message_id"] for e in started]
    if missing := set(names) - set(turns):
        faults.append(f"lost {sorted(missing)}")
    if len(turns) != len(set(turns)):
        faults.append(f"two turns for one message: {[n for n, c in Counter(turns).items() if c > 1]}")
    if turns != sorted(turns, key=names.index):
        faults.append(f"out of order: {turns}")
    ends = Counter(
        e.payload["turn_id"] for e in entries if e.kind == "turn" and e.payload["status"] == "completed"
    )
    if any(ends[e.payload["turn_id"]] != 1 for e in started):
        faults.append("a turn without one end")
    said = [e.payload["message"] for e in entries if e.kind == "message"]
    answers = Counter(m["content"] for m in said if m["role"] == "assistant" and m["content"])
    counts = {name: answers[f"paid {name}"] for name in names}
    faults += [f"{name}: {count} answers" for name, count in counts.items() if count != 1]
    for before, entry in zip([None, *entries], entries, strict=False):
        if entry.parent_id != (before and before.id):
            faults.append(f"entry {entry.id} does not follow the one before")
    calls = Counter(e.payload["id"] for e in entries if e.kind == "tool_call")
    results = Counter(e.payload["tool_call_id"] for e in entries if e.kind == "tool_result")
    if set(calls) - set(results) or max(results.values(), default=1) > 1:
        faults.append("calls and results do not match")
    return faults
