"""A replay beside its original: two lists of steps, aligned, with what differs marked.

    {"session": "web:1", "same": false, "notes": [], "diverged": null, "stopped": null, "different": 1,
     "steps": [{"kind": "call", "title": "shell", "entry": "…", "turn": 0, "state": "different",
                "differences": ["decision"], "original": {…}, "replayed": {…}, "diff": "--- before …"}]}

`state` is `same`, `different`, or `random` where two replays did not agree. A step that only one of the
two has is null in the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .plain import diff_of, plain

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

    from ..replay import Comparison, ReplayApp

Step = dict[str, Any]


async def replayed(app: Hookline, session_id: str) -> dict[str, Any]:
    """Replay a session with today's plugins and compare it with the original; nothing is written."""
    from ..replay import ReplayApp, replay

    def make() -> ReplayApp:
        made = ReplayApp.like(app)
        made.load_hooks()
        return made

    return laid_out(await replay(app.store(), session_id, make))


def laid_out(comparison: Comparison) -> dict[str, Any]:
    """A comparison as aligned steps."""
    told = comparison.data()
    marks = _Marks(told)
    steps = [step for item in told["items"] for step in _steps(item, marks)]
    return {
        "session": told["session_id"],
        "same": told["same"],
        "diverged": told["diverged"],
        "stopped": told["stopped"],
        "notes": told["notes"],
        "different": sum(step["state"] == "different" for step in steps),
        "random": sum(step["state"] == "random" for step in steps),
        "steps": steps,
    }


class _Marks:
    """What differs, by the step that it belongs to."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.different = self._by_step(told["differences"])
        self.random = self._by_step(told["random"])

    @staticmethod
    def _by_step(found: list[Step]) -> dict[tuple[int, str], list[Step]]:
        marks: dict[tuple[int, str], list[Step]] = {}
        for each in found:
            is_answer = each["field"] == "answer"
            of = f"answer {each['place']}" if is_answer else each["call"]
            marks.setdefault((each["item"], of), []).append(each)
        return marks


def _steps(item: dict[str, Any], marks: _Marks) -> Iterator[Step]:
    index, then, now = item["index"], item["original"], item["replayed"]
    about = {"turn": index, "entry": item["entry"]}
    named = ("message", "system", "outcome")
    yield _step("turn", item["kind"], about, marks, "", _only(then, named), _only(now, named))
    calls: list[dict[str, Any]] = [{c["id"]: c for c in each["calls"]} for each in (then, now)]
    for call_id in dict.fromkeys([*calls[0], *calls[1]]):
        before, after = calls[0].get(call_id), calls[1].get(call_id)
        tool: str = before["tool"] if before else calls[1][call_id]["tool"]
        entry = before["entry"] if before else item["entry"]
        yield _step("call", tool, {**about, "entry": entry}, marks, call_id, before, after)
    answers = [each["answers"] for each in (then, now)]
    for number in range(max(map(len, answers))):
        before, after = ({"text": said[number]} if number < len(said) else None for said in answers)
        yield _step("answer", f"answer {number}", about, marks, f"answer {number}", before, after)


def _only(given: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if given[name] is not None}


def _step(
    kind: str, title: str, about: Step, marks: _Marks, of: str, then: Step | None, now: Step | None
) -> Step:
    different = marks.different.get((about["turn"], of), [])
    random = marks.random.get((about["turn"], of), [])
    found = different or random
    sides = [{each["field"]: each[side] for each in found} for side in ("before", "after")]
    return {
        **about,
        "kind": kind,
        "title": title,
        "state": "different" if different else "random" if random else "same",
        "differences": [each["field"] for each in found],
        "original": plain(then),
        "replayed": plain(now),
        "diff": diff_of(*sides),
    }
