"""Approvals: the questions that wait for a person, and what people have allowed.

    approvals = Approvals(home / "approvals.db")
    question = approvals.ask(request)                 # an id; it is pending now
    approvals.answer(question, "session", by="ada")   # in this process or in another one
    approvals.allowed(request)                        # the grant that covers a call, if one does

They are kept in a SQLite file of their own, or beside a tape in PostgreSQL (`postgres_approvals`), and
not on the tape: a grant is asked for by other processes and taken back by them, which a tape that only
grows and is open in a running scope alone cannot serve. What was decided is on the tape as well, with
each call.

A grant covers one tool with exactly these arguments in one workspace. One that is over, or used up, or
revoked, covers nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from hookline.channel import ASK, Question
from hookline.errors import ApprovalError

from .answers import ApprovalAnswer, Scope
from .approval_storage import ApprovalStorage, ApprovalTransaction, SQLiteApprovals

SECONDS = 600.0
"""How long a question waits for its answer."""
UNUSED = 3600.0
"""How long a yes for one call waits for that call: long enough for a process to come back."""
KEPT = 30 * 86400.0
"""How long finished questions stay on the list."""
POLL = 0.5
"""Seconds between two looks for an answer that another process may have given."""

LINKS = ("id", "hash", "session_id", "call_id", "tool", "workspace", "agent_id", "channel", "user")
"""Fields of a question that identify its origin; they are never redacted."""
GRANT = (
    "id, hash, tool, call, session_id, call_id, workspace, who, scope, until, by, made, used, revoked"
)


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A question that waits for a person."""

    id: str
    request: dict[str, Any]
    asked: float
    expires: float


@dataclass(frozen=True, slots=True)
class Grant:
    """A call that a person allowed."""

    id: str
    hash: str
    tool: str
    call: str
    """The tool and its arguments, for people to read."""
    session_id: str
    """The session that it counts in, with its subagents."""
    call_id: str | None
    """The single call that it is for, if it is for one."""
    workspace: str
    who: str
    """On whose behalf the call was made; a grant for a session or a time counts for no one else."""
    scope: Scope
    until: float | None
    by: str
    made: float
    used: float | None
    revoked: float | None

    def state(self, now: float | None = None) -> str:
        """`valid`, `used`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        if self.used is not None:
            return "used"
        over = self.until is not None and self.until <= (time.time() if now is None else now)
        return "expired" if over else "valid"


Told = Callable[[str, Grant], None]
"""Called with a grant that was made or revoked, or with a no, before it takes effect. If it raises,
the change is undone."""


def call_hash(tool: str, arguments: Mapping[str, Any]) -> str:
    """What an approval is bound to: the tool and its exact arguments."""
    text = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Approvals:
    """The questions and grants of one home, in a file or in another storage."""

    def __init__(
        self,
        storage: ApprovalStorage | Path,
        *,
        seconds: float = SECONDS,
        told: Told | None = None,
        clock: Callable[[], float] | None = None,
        redact: Callable[[Any], Any] | None = None,
    ) -> None:
        self.storage = SQLiteApprovals(storage) if isinstance(storage, Path) else storage
        self.seconds = seconds
        self._told = told
        self._clock = clock or self.storage.now
        self._redact = redact
        """Applied to a question's call once it was answered; until then people must see all of it."""

    def close(self) -> None:
        """Close the storage until it is used again."""
        self.storage.close()

    # --- questions ----------------------------------------------------------------------------

    def ask(self, request: Mapping[str, Any]) -> str:
        """Keep a question until it is answered or its time is over; give its id.

        A call that is asked about again, as after a restart, has the id that it had. So has a hook's
        question, also if it was answered meanwhile.
        """
        now = self._clock()
        is_asked_by_hook = request.get("kind") == ASK
        seconds = (is_asked_by_hook and request["arguments"]["timeout"]) or self.seconds
        bound = bound_to(request)
        call = (bound, request["session_id"], request["call_id"])
        with self.storage.transaction(alone=True) as db:
            old = now - KEPT
            db.write("delete from {questions} where expires < ?", (old,))
            db.write("delete from {grants} where coalesce(revoked, used, until) < ?", (old,))
            known = db.read(
                "select id from {questions} where (hash, session_id, call_id) = (?, ?, ?) "
                + ("" if is_asked_by_hook else "and answered is null"),
                call,
            )
            name = str(known[0][0]) if known else str(request.get("id") or new_id("ask"))
            kept = json.dumps({**request, "id": name, "hash": bound}, default=repr)
            db.write(
                "insert into {questions} (id, asked, expires, hash, session_id, call_id, request) "
                "values (?, ?, ?, ?, ?, ?, ?) "
                "on conflict (id) do update set expires = excluded.expires",
                (name, now, now + seconds, *call, kept),
            )
        return name

    def pending(self, session_id: str | None = None) -> list[PendingApproval]:
        """The questions that wait, the oldest first; of one session and its subagents, or all."""
        if self.storage.empty:
            return []
        rows = self.storage.read(
            "select id, request, asked, expires from {questions} "
            "where answered is null and expires > ? order by asked, rowid",
            (self._clock(),),
        )
        found = [PendingApproval(row[0], json.loads(row[1]), row[2], row[3]) for row in rows]
        return [one for one in found if session_id is None or session_id in sessions_of(one.request)]

    def answer(self, question: str, answer: ApprovalAnswer | str, *, by: str = "") -> Grant | None:
        """Answer a question. Returns the grant if it is a yes. The first answer counts.

        The answer to a hook's question must be one of its choices, if it has some.
        """
        now = self._clock()
        with self.storage.transaction() as db:
            answer = self._read(db, question, answer) if isinstance(answer, str) else answer
            # Only one of two who answer at once changes the row, whatever both read before.
            first = db.write(
                "update {questions} set answered = ?, approved = ?, answer = ?, reason = ?, by = ? "
                "where id = ? and answered is null and expires > ?",
                (now, answer.approved, json.dumps(asdict(answer)), answer.reason, by, question, now),
            )
            rows = db.read("select request, answered from {questions} where id = ?", (question,))
            if not rows:
                raise ApprovalError(
                    f"no question {question!r}; `hookline policy approvals` shows what waits"
                )
            request, answered = rows[0]
            if not first and answered is not None:
                raise ApprovalError(f"the question {question!r} was answered already")
            if not first:
                raise ApprovalError(f"the question {question!r} is over: it was denied in the meantime")
            asked = json.loads(request)
            self._forget_arguments(db, question, asked)
            if asked.get("kind") == ASK:
                return None
            return self._grant(db, question, asked, answer, by, now)

    @staticmethod
    def _read(db: ApprovalTransaction, question: str, said: str) -> ApprovalAnswer:
        rows = db.read("select request from {questions} where id = ?", (question,))
        request: dict[str, Any] = json.loads(rows[0][0]) if rows else {}
        if request.get("kind") != ASK:
            return ApprovalAnswer.read(said)
        asked = Question.of(request)
        text = asked.read(said)
        if text is None:
            raise ApprovalError(f"{said!r} is no answer to {question}; choose {asked.prompt}")
        return ApprovalAnswer(True, text=text)

    def forget(self, question: str) -> None:
        """Drop a hook's question: it was answered, and the hook has the answer."""
        with self.storage.transaction() as db:
            db.write("delete from {questions} where id = ?", (question,))

    def answered(self, question: str) -> tuple[ApprovalAnswer, str] | None:
        """The answer and who gave it; None while there is none."""
        rows = self.storage.read("select answer, by from {questions} where id = ?", (question,))
        return (ApprovalAnswer(**json.loads(rows[0][0])), rows[0][1]) if rows and rows[0][0] else None

    def close_question(self, question: str) -> None:
        """Withdraw a question: no one waits for its answer any more."""
        now = self._clock()
        with self.storage.transaction() as db:
            db.write(
                "update {questions} set expires = ? where id = ? and answered is null", (now, question)
            )
            for (request,) in db.read("select request from {questions} where id = ?", (question,)):
                self._forget_arguments(db, question, json.loads(request))

    def _forget_arguments(self, db: ApprovalTransaction, question: str, asked: dict[str, Any]) -> None:
        """Redact a question that is over."""
        if self._redact is None:
            return
        kept = {name: each for name, each in asked.items() if isinstance(each, str) and name in LINKS}
        text = json.dumps({**self._redact(asked), **kept})
        db.write("update {questions} set request = ? where id = ?", (text, question))

    async def wait(self, question: str) -> ApprovalAnswer | None:
        """Wait until a question is answered, here or in another process; None when its time is over."""
        while True:
            answer, waits = await asyncio.to_thread(self._look, question)
            if not waits:
                return answer
            await asyncio.sleep(POLL)

    def _look(self, question: str) -> tuple[ApprovalAnswer | None, bool]:
        """The answer, if there is one, and whether one may still come."""
        rows = self.storage.read("select answer, expires from {questions} where id = ?", (question,))
        if not rows:
            return None, False
        answer, expires = rows[0]
        if answer:
            return ApprovalAnswer(**json.loads(answer)), False
        return None, expires > self._clock()

    # --- grants ---------------------------------------------------------------------------------

    def _shown(self, request: dict[str, Any]) -> str:
        arguments = request["arguments"] if self._redact is None else self._redact(request["arguments"])
        return shown(request["tool"], arguments)

    def _grant(
        self,
        db: ApprovalTransaction,
        question: str,
        request: dict[str, Any],
        answer: ApprovalAnswer,
        by: str,
        now: float,
    ) -> Grant | None:
        once = answer.scope == "once"
        seconds = UNUSED if once else answer.seconds
        grant = Grant(
            id=new_id("ap"),
            hash=request["hash"],
            tool=request["tool"],
            call=self._shown(request),
            session_id=request["session_id"] if once else sessions_of(request)[-1],
            call_id=request["call_id"] if once else None,
            workspace=request["workspace"],
            who=requester_of(request),
            scope=answer.scope,
            until=None if seconds is None else now + seconds,
            by=by,
            made=now,
            used=None,
            revoked=None,
        )
        if self._told is not None:
            self._told("grant" if answer.approved else "reject", grant)
        if not answer.approved:
            return None
        values = (question, *(getattr(grant, name) for name in GRANT.split(", ")))
        marks = ", ".join("?" * len(values))
        db.write("insert into {grants} (question, " + GRANT + f") values ({marks})", values)
        return grant

    def allowed(self, request: Mapping[str, Any]) -> Grant | None:
        """The grant that covers a call; one that is for a single call is used up by this."""
        if self.storage.empty:
            return None
        now, sessions, who = self._clock(), sessions_of(request), requester_of(request)
        rows = self.storage.read(
            "select " + GRANT + " from {grants} where hash = ? and workspace = ? "
            "and used is null and revoked is null and (until is null or until > ?) "
            "order by call_id is not null, made desc",
            (bound_to(request), request["workspace"], now),
        )
        this_call = (request["session_id"], request["call_id"])
        for grant in (Grant(*row) for row in rows):
            if grant.call_id is None:
                if grant.session_id in sessions and grant.who == who:
                    return grant
            elif (grant.session_id, grant.call_id) == this_call and self._end(grant, "used", now):
                return grant
        return None

    def _end(self, grant: Grant, how: str, now: float) -> bool:
        """End a grant; False where another process was faster."""
        with self.storage.transaction() as db:
            ended = db.write(
                "update {grants} set " + how + " = ? where id = ? and used is null and revoked is null",
                (now, grant.id),
            )
            if ended and how == "revoked" and self._told is not None:
                self._told("revoke", grant)
        return bool(ended)

    def list(self, *, everything: bool = False) -> list[Grant]:
        """The grants that are valid, the latest first; or all that are remembered."""
        if self.storage.empty:
            return []
        rows = self.storage.read("select " + GRANT + " from {grants} order by made desc, rowid desc")
        now = self._clock()
        return [
            grant
            for grant in (Grant(*row) for row in rows)
            if everything or grant.state(now) == "valid"
        ]

    def revoke(self, grant_id: str) -> Grant:
        """Take a grant back; from now on its call is asked about again."""
        found = {grant.id: grant for grant in self.list()}.get(grant_id)
        if found is None or not self._end(found, "revoked", self._clock()):
            raise ApprovalError(
                f"no approval {grant_id!r} that is valid; `hookline policy approvals` shows them"
            )
        return found


def bound_to(request: Mapping[str, Any]) -> str:
    """The hash of a request's call; never the one that it says it has."""
    return call_hash(request["tool"], request["arguments"])


def shown(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call for people to read, in letters that every storage takes."""
    text = f"{tool} {json.dumps(arguments, ensure_ascii=False)}"
    return text.encode("utf-8", "backslashreplace").decode()


def sessions_of(request: Mapping[str, Any]) -> list[str]:
    """The asking session and its parents, innermost first."""
    line = cast("list[str] | None", request.get("lineage"))
    return list(line) if line else [str(request["session_id"])]


def requester_of(request: Mapping[str, Any]) -> str:
    """Everyone on whose behalf a call is made, each with their channel, as one text."""
    people: Any = request.get("participants") or [request]
    named = sorted([str(each.get("channel") or ""), str(each.get("user") or "")] for each in people)
    return json.dumps(named)


def new_id(prefix: str) -> str:
    """A short name that people can type."""
    return f"{prefix}_{uuid4().hex[:10]}"
