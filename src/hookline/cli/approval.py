"""`hookline policy approvals` and related commands: open questions and granted approvals."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from getpass import getuser
from typing import TYPE_CHECKING

import typer

from hookline.channel import exact
from hookline.errors import ApprovalError
from hookline.system.processes import hookline_above
from hookline.text.printable import printable

from .json_output import print_json

if TYPE_CHECKING:
    from hookline.policy.approvals import Grant
    from hookline.runtime.app import Hookline


def list_approvals(app: Hookline, *, everything: bool = False, as_json: bool = False) -> None:
    """List the open questions, then the granted approvals."""
    with closing(app.approvals) as approvals:
        pending, grants = approvals.pending(), approvals.list(everything=everything)
    if as_json:
        told = {
            "pending": [asdict(question) for question in pending],
            "granted": [{**asdict(grant), "state": grant.state()} for grant in grants],
        }
        print_json(told)
        return
    for question in pending:
        request = question.request
        left = max(question.expires - time.time(), 0)
        call = printable(exact(request["tool"], request["arguments"]))
        typer.echo(f"{question.id}  waits, {left:.0f} s left  {request['session_id']}  {call}")
    for grant in grants:
        typer.echo(f"{grant.id}  {state_of(grant)}  {grant.session_id}  {printable(grant.call)}")
    if not pending and not grants:
        typer.echo("nothing waits, and nothing is allowed beyond what the policy says")


def state_of(grant: Grant) -> str:
    """How far a grant goes, and whether it still does."""
    state = grant.state()
    if state != "valid":
        return state
    if grant.scope == "until" and grant.until is not None:
        return f"until {datetime.fromtimestamp(grant.until):%Y-%m-%d %H:%M:%S}"
    return f"for the {'session' if grant.scope == 'session' else 'call'}"


def revoke_approval(app: Hookline, grant_id: str) -> None:
    """Take an approval back. Anyone may, the agent too: it takes a right away."""
    with closing(app.approvals) as approvals:
        grant = approvals.revoke(grant_id)
    typer.echo(f"revoked: {printable(grant.call)}")


def answer_question(app: Hookline, question: str, said: str) -> None:
    """Answer a question that waits in another process, unless that process started this one."""
    above = hookline_above(app.home)
    if above is not None:
        auditor = app.safeguards.auditor
        if auditor is not None:
            auditor.refused({"what": "approval", "question": question, "user": person(), "pid": above})
        raise ApprovalError(
            f"this command runs below a Hookline process, or an agent with its hooks ({above}): "
            "the agent itself may have started it; answer from a terminal of your own"
        )
    with closing(app.approvals) as approvals:
        approvals.answer(question, said, by=person())
        answered = approvals.answered(question)
    typer.echo(f"{question}: {printable(answered[0].told if answered else said)}")


def person() -> str:
    """Who is at this terminal."""
    try:
        return getuser()
    except (KeyError, OSError):
        return "somebody"
