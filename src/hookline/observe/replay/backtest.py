"""Backtest: every recorded tool call before the gates of today, and which decisions change.

    report = await backtest(make, reader)

A call goes through the runner's own admission: `before_tool_call`, `tool_call`, the schema,
`authorize_action`, packs and floor. No tool runs, nobody is asked, nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any

from hookline.hooks import Decision, Ruling
from hookline.hookspecs import Hooks
from hookline.policy.meter import Spent
from hookline.runtime.confinement import Confinement
from hookline.tools.calls import Admitted, Requested, Resolve, ToolCaller
from hookline.tools.runner import ToolRunner
from hookline.types import NOBODY, HookContext, ToolCall, ToolResultContent

from .app import ReplayApp
from .playback import RecordedRegistry
from .record import RecordedToolCall, deciders, reason_of
from .replayer import MARK
from .report import BacktestReport, DecisionChange, Word
from .traffic import CallSource, RecordedCall, Turned, Used, traffic

Tell = Callable[[int], None]
"""Hears how many more calls were judged."""

_STEP = 500
WORDS: dict[str, Word] = {
    "allowed": "allow",
    "approved": "ask",
    "rejected": "ask",
    "denied": "deny",
}


class Gates(ToolRunner):
    """The runner as far as its gates: a question counts as asked and is not put to anybody."""

    def __init__(self, app: ReplayApp) -> None:
        super().__init__(app.hooks, app.tools, judge=Confinement(app).judge, approve=self._asked)
        self._start = Hooks(app.hooks.catalog)["tool_execution_start"]  # not published

    async def _asked(self, request: dict[str, Any], resolve: Resolve | None) -> Ruling:
        return Ruling(reason=str(request["question"]), by="resolve_approval")


class Unwritten:
    """A journal that keeps nothing."""

    async def tool_call(self, call: ToolCall, requested: Any, rulings: list[Ruling]) -> None:
        """Forget it."""

    async def tool_result(
        self, result: ToolResultContent, *, ran: bool, terminate: bool, rulings: list[Ruling]
    ) -> None:
        """Forget it."""


class RecordedSpending:
    """What a session had spent when a call was made."""

    def __init__(self) -> None:
        self.spent = Spent()
        self.now = 0.0

    async def __call__(self, session_id: str) -> dict[str, int]:
        """The sums at the time of the call."""
        spent, began = self.spent, self.spent.began
        running = max(0.0, self.now - began) if began is not None else 0.0
        return {
            "calls": spent.calls,
            "tokens": spent.tokens,
            "cost": round(spent.cost * 1_000_000),
            "seconds": int(spent.seconds + running),
        }

    def count(self, row: RecordedCall | Turned | Used) -> None:
        """Add the cost of a row."""
        spent = self.spent
        if isinstance(row, Used):
            usage: dict[str, Any] = json.loads(row.meta).get("usage") or {}
            counted = (usage.get("input_tokens"), usage.get("output_tokens"))
            spent.tokens += sum(int(number or 0) for number in counted)
            spent.cost += float(usage.get("cost") or 0)
        elif isinstance(row, RecordedCall):
            spent.calls += row.arguments is not None
        elif row.began:
            spent.began = row.time
        elif spent.began is not None:
            spent.seconds += max(0.0, row.time - spent.began)
            spent.began = None


async def backtest(
    make: Callable[[], ReplayApp],
    source: CallSource,
    *,
    since: float = 0.0,
    sessions: Collection[str] | None = None,
    tell: Tell | None = None,
) -> BacktestReport:
    """Judge the calls of recorded sessions since a time; a replay's own sessions are left out."""
    app = make()
    report = BacktestReport(notes=list(app.notes))
    if sessions is None:
        sessions = [s.id for s in source.sessions(since) if MARK not in s.id]
    async with app.running():
        court = Court(app, report)
        for session_id in sessions:
            await court.hear(source, session_id, since, tell)
    report.notes += court.notes()
    return report


class Court:
    """Judges recorded calls in one app."""

    def __init__(self, app: ReplayApp, report: BacktestReport) -> None:
        self._app = app
        self._report = report
        self._gates = Gates(app)
        self._journal = Unwritten()
        self._spending: RecordedSpending | None = None
        self._known: set[str] = set()
        """The tools that ran in the calls judged so far."""
        self._counts = bool(app.policy.packs or app.policy.budget)

    async def hear(self, source: CallSource, session_id: str, since: float, tell: Tell | None) -> None:
        """Judge the calls of one session, in order."""
        app, report = self._app, self._report
        if self._counts:
            self._spending = app.policy.spending = RecordedSpending()
        report.sessions += 1
        ctx = HookContext(session_id, "main", session_id.count("/"), app=app)
        caller = ToolCaller(ctx, self._journal, app.workspace)
        turn = NOBODY
        waiting = 0
        for row in traffic(source, session_id, usage=self._counts):
            if type(row) is RecordedCall:
                if row.time >= since:
                    who = row.identity or turn
                    if who != caller.identity:
                        caller.identity, caller.ctx = who, replace(ctx, identity=who)
                    await self._judge(row, caller)
                    waiting += 1
                    if tell is not None and waiting == _STEP:
                        tell(waiting)
                        waiting = 0
            elif type(row) is Turned:
                turn = row.identity
            if self._spending is not None:
                self._spending.count(row)
        if tell is not None:
            tell(waiting)

    async def _judge(self, row: RecordedCall, caller: ToolCaller) -> None:
        if row.arguments is not None and row.name not in self._known:
            self._stand_in(row)
        caller.source = row.source
        if self._spending is not None:
            self._spending.now = row.time
        started = perf_counter()
        admitted = await self._gates.admit(Requested(row.id, row.name, row.requested), caller)
        self._report.judged(perf_counter() - started)
        now = word(admitted)
        if row.arguments is None:
            if now == WORDS[row.decided]:
                return
        elif now == ("ask" if row.asked else "allow") and row.arguments == admitted.call.arguments:
            return
        await self._differs(row, caller, admitted, now)

    async def _differs(
        self, row: RecordedCall, caller: ToolCaller, admitted: Admitted, now: Word
    ) -> None:
        """Look more closely: what exactly is different, and is it so each time."""
        then = WORDS[row.decided]
        arguments = plain(admitted.call.arguments) if admitted.refusal is None else None
        rewrites = row.arguments is not None and arguments is not None and arguments != row.arguments
        if now == then and not rewrites:
            return
        again = await self._gates.admit(Requested(row.id, row.name, row.requested), caller)
        repeated = plain(again.call.arguments) if again.refusal is None else None
        rulings = [as_data(ruling) for ruling in admitted.rulings]
        said = "denied" if now == "deny" else "approved" if now == "ask" else "allowed"
        change = DecisionChange(
            kind=f"{then} → {now}" if now != then else "rewritten",
            session_id=caller.ctx.session_id,
            entry=row.entry,
            call=row.id,
            tool=row.name,
            requested=row.requested,
            before={
                "decision": then,
                "by": deciders(row.decided, row.rulings),
                "reason": reason_of(row.decided, row.rulings),
                "arguments": row.arguments,
            },
            after={
                "decision": now,
                "by": deciders(said, rulings),
                "reason": admitted.refusal or reason_of(said, rulings),
                "arguments": arguments,
            },
        )
        if (word(again), repeated) != (now, arguments):
            self._report.unsteady(change)
        else:
            self._report.changed(change)

    def _stand_in(self, row: RecordedCall) -> None:
        tools = self._gates.registry
        self._known.add(row.name)
        if row.name not in tools and isinstance(tools, RecordedRegistry):
            call = RecordedToolCall(
                row.id, row.name, row.requested, row.entry, row.arguments, row.rulings
            )
            tools.stand_in([call])

    def notes(self) -> Iterable[str]:
        """Notes for the reader of the report."""
        tools = self._gates.registry
        if isinstance(tools, RecordedRegistry) and tools.missing:
            yield f"tools that are not there now, any arguments welcome: {', '.join(tools.missing)}"


def word(admitted: Admitted) -> Word:
    """What the gates say of a call."""
    if admitted.refusal is not None:
        return "deny"
    return "ask" if any(r.decision is Decision.ASK for r in admitted.rulings) else "allow"


def plain(arguments: Any) -> Any:
    """Arguments as the tape would keep them."""
    try:
        return json.loads(json.dumps(dict(arguments)))
    except (TypeError, ValueError):
        return dict(arguments)


def as_data(ruling: Ruling) -> dict[str, Any]:
    """A ruling as the tape would record it; an unanswered question has no answer."""
    return {"by": ruling.by, "decision": ruling.decision.name.lower(), "reason": ruling.reason}
