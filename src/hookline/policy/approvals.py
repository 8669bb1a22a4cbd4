"""Approvals: the questions that wait for a person, and what people have allowed.

    approvals = Approvals(home / "approvals.db")
    question = approvals.ask(request)                 # an id; it is pending now
    approvals.answer(question, "session", by="ada")   # in this process or in another one
    approvals.allowed(request)                        # the grant that covers a call, if one does

They are kept in a SQLite file of their own, not on the tape: a grant is asked for by other processes
and taken back by them, which a tape that only grows and is open in a running scope alone cannot serve.
What was decided is on the tape as well, with each call.

A grant covers one tool with exactly these arguments in one workspace. One that is over, or used up, or
revoked, covers nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from .answers import Answer, Scope
from .errors import PolicyError

SECONDS = 600.0
"""How long a question waits for its answer."""
UNUSED = 3600.0
"""How long a yes for one call waits for that call: long enough for a process to come back."""
KEPT = 30 * 86400.0
"""How long what is over stays on the list."""
POLL = 0.5
"""Seconds between two looks for an answer that another process may have given."""

SCHEMA = """
create table if not exists questions (
    id text primary key, asked real not null, expires real not null, hash text not null,
    session_id text not null, call_id text not null, request text not null,
    answered real, approved integer, answer text, reason text, by text
);
create table if not exists grants (
    id text primary key, question text, hash text not null, tool text not null, call text not null,
    session_id text not null, call_id text, workspace text not null, scope text not null,
    until real, by text not null, made real not null, used real, revoked real
);
create index if not exists grants_by_hash on grants (hash);
"""
GRANT = "id, hash, tool, call, session_id, call_id, workspace, scope, until, by, made, used, revoked"


class ApprovalError(PolicyError):
    """An approval that cannot be kept, found or given any more."""


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for a person."""

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
    """The one call that it is for, where it is for one."""
    workspace: str
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
"""Is told of a grant that was made or revoked, before it counts; what it raises undoes that."""


def call_hash(tool: str, arguments: Mapping[str, Any]) -> str:
    """What an approval is bound to: the tool and its arguments, to the last character."""
    text = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Approvals:
    """The questions and grants of one home."""

    def __init__(
        self,
        path: Path,
        *,
        seconds: float = SECONDS,
        told: Told | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self.seconds = seconds
        self._told = told
        self._clock = clock

    # --- questions ----------------------------------------------------------------------------

    def ask(self, request: Mapping[str, Any]) -> str:
        """Keep a question until it is answered or its time is over; give its id.

        A call that is asked about again, as after a restart, has the id that it had.
        """
        now = self._clock()
        bound = bound_to(request)
        with self._open() as db:
            old = now - KEPT
            db.execute("delete from questions where expires < ?", (old,))
            db.execute("delete from grants where coalesce(revoked, used, until) < ?", (old,))
            known = db.execute(
                "select id from questions where (hash, session_id, call_id) = (?, ?, ?) "
                "and answered is null",
                (bound, request["session_id"], request["call_id"]),
            ).fetchone()
            name = str(known[0]) if known else str(request.get("id") or new_id("ask"))
            kept = json.dumps({**request, "id": name, "hash": bound}, default=repr)
            db.execute(
                "insert into questions (id, asked, expires, hash, session_id, call_id, request) "
                "values (?, ?, ?, ?, ?, ?, ?) "
                "on conflict (id) do update set expires = excluded.expires",
                (name, now, now + self.seconds, bound, request["session_id"], request["call_id"], kept),
            )
        return name

    def pending(self, session_id: str | None = None) -> list[Question]:
        """The questions that wait, the oldest first; of one session and its subagents, or all."""
        if not self.path.exists():
            return []
        with self._open(reading=True) as db:
            rows = db.execute(
                "select id, request, asked, expires from questions "
                "where answered is null and expires > ? order by asked, rowid",
                (self._clock(),),
            ).fetchall()
        found = [Question(row[0], json.loads(row[1]), row[2], row[3]) for row in rows]
        return [one for one in found if session_id is None or session_id in sessions_of(one.request)]

    def answer(self, question: str, answer: Answer | str, *, by: str = "") -> Grant | None:
        """Answer a question; the grant, where it is a yes. The first answer counts."""
        answer = Answer.read(answer) if isinstance(answer, str) else answer
        now = self._clock()
        with self._open() as db:
            row = db.execute(
                "select request, expires, answered from questions where id = ?", (question,)
            ).fetchone()
            if row is None:
                raise ApprovalError(
                    f"no question {question!r}; `hookline policy approvals` shows what waits"
                )
            if row[2] is not None:
                raise ApprovalError(f"the question {question!r} was answered already")
            if row[1] <= now:
                raise ApprovalError(f"the question {question!r} is over: it was denied in the meantime")
            grant = self._grant(db, question, json.loads(row[0]), answer, by, now)
            db.execute(
                "update questions set answered = ?, approved = ?, answer = ?, reason = ?, by = ? "
                "where id = ?",
                (now, answer.approved, json.dumps(asdict(answer)), answer.reason, by, question),
            )
        return grant

    def answered(self, question: str) -> tuple[Answer, str] | None:
        """What was answered, and by whom; None as long as nobody did."""
        with self._open(reading=True) as db:
            row = db.execute("select answer, by from questions where id = ?", (question,)).fetchone()
        return (Answer(**json.loads(row[0])), row[1]) if row and row[0] else None

    def close_question(self, question: str) -> None:
        """Nobody waits for an answer any more."""
        with self._open() as db:
            db.execute(
                "update questions set expires = ? where id = ? and answered is null",
                (self._clock(), question),
            )

    async def wait(self, question: str) -> Answer | None:
        """Wait until a question is answered, here or in another process; None when its time is over."""
        while True:  # first whether it waits: it may be answered between the two looks
            waits = question in [one.id for one in await asyncio.to_thread(self.pending)]
            found = await asyncio.to_thread(self.answered, question)
            if found is not None or not waits:
                return None if found is None else found[0]
            await asyncio.sleep(POLL)

    # --- grants ---------------------------------------------------------------------------------

    def _grant(
        self,
        db: sqlite3.Connection,
        question: str,
        request: dict[str, Any],
        answer: Answer,
        by: str,
        now: float,
    ) -> Grant | None:
        if not answer.approved:
            return None
        once = answer.scope == "once"
        seconds = UNUSED if once else answer.seconds
        grant = Grant(
            id=new_id("ap"),
            hash=request["hash"],
            tool=request["tool"],
            call=f"{request['tool']} {json.dumps(request['arguments'], ensure_ascii=False)}",
            session_id=request["session_id"] if once else sessions_of(request)[-1],
            call_id=request["call_id"] if once else None,
            workspace=request["workspace"],
            scope=answer.scope,
            until=None if seconds is None else now + seconds,
            by=by,
            made=now,
            used=None,
            revoked=None,
        )
        if self._told is not None:
            self._told("grant", grant)
        values = (question, *(getattr(grant, name) for name in GRANT.split(", ")))
        db.execute(f"insert into grants (question, {GRANT}) values ({', '.join('?' * 14)})", values)
        return grant

    def allowed(self, request: Mapping[str, Any]) -> Grant | None:
        """The grant that covers a call; one that is for a single call is used up by this."""
        if not self.path.exists():
            return None
        now, sessions = self._clock(), sessions_of(request)
        with self._open() as db:
            rows = db.execute(
                f"select {GRANT} from grants where hash = ? and workspace = ? "
                "and used is null and revoked is null and (until is null or until > ?) "
                "order by call_id is not null, made desc",
                (bound_to(request), request["workspace"], now),
            ).fetchall()
            for grant in (Grant(*row) for row in rows):
                if grant.call_id is None:
                    if grant.session_id in sessions:
                        return grant
                elif (grant.session_id, grant.call_id) == (request["session_id"], request["call_id"]):
                    db.execute("update grants set used = ? where id = ?", (now, grant.id))
                    return grant
        return None

    def list(self, *, everything: bool = False) -> list[Grant]:
        """The grants that are valid, the latest first; or all that are remembered."""
        if not self.path.exists():
            return []
        with self._open(reading=True) as db:
            rows = db.execute(f"select {GRANT} from grants order by made desc, rowid desc").fetchall()
        grants = [Grant(*row) for row in rows]
        return [g for g in grants if everything or g.state(self._clock()) == "valid"]

    def revoke(self, grant_id: str) -> Grant:
        """Take a grant back; from now on its call is asked about again."""
        found = {grant.id: grant for grant in self.list()}.get(grant_id)
        if found is None:
            raise ApprovalError(
                f"no approval {grant_id!r} that is valid; `hookline policy approvals` shows them"
            )
        with self._open() as db:
            if self._told is not None:
                self._told("revoke", found)
            db.execute("update grants set revoked = ? where id = ?", (self._clock(), grant_id))
        return found

    # --- the file -------------------------------------------------------------------------------

    @contextmanager
    def _open(self, *, reading: bool = False) -> Generator[sqlite3.Connection]:
        """One transaction: everything in it is kept, or nothing."""
        try:
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            db = sqlite3.connect(self.path, timeout=5.0, isolation_level=None)
            try:
                db.executescript(SCHEMA)
                db.execute("begin" if reading else "begin immediate")
                try:
                    yield db
                except BaseException:
                    db.execute("rollback")
                    raise
                db.execute("commit")
            finally:
                db.close()
        except (OSError, sqlite3.Error) as error:
            raise ApprovalError(f"the approvals in {self.path} cannot be used: {error}") from error


def bound_to(request: Mapping[str, Any]) -> str:
    """The hash of a request's call; never the one that it says it has."""
    return call_hash(request["tool"], request["arguments"])


def sessions_of(request: Mapping[str, Any]) -> list[str]:
    """The session that asks, and those that it is a subagent of, from the inside out."""
    line = cast("list[str] | None", request.get("lineage"))
    return list(line) if line else [str(request["session_id"])]


def new_id(prefix: str) -> str:
    """A short name that people can type."""
    return f"{prefix}_{uuid4().hex[:10]}"
