"""`hookline audit`: the log of decisions, shown and verified."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookline.errors import AuditError, BadInput
from hookline.policy.hash_chain import ChainReport, encoded, files_of, records, verify
from hookline.text.printable import printable

from . import FAILED
from .json_output import json_option
from .terminal import style

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

AGO = {"m": 60, "h": 3600, "d": 86400}
COLOURS = {"allowed": "green", "denied": "red"}


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline audit`."""
    group = typer.Typer(help="Read and verify the log of decisions.", no_args_is_help=True)
    cli.add_typer(group, name="audit")

    @group.command()
    def show(
        session: Annotated[
            str | None, typer.Option(help="Only this session and its subagents.")
        ] = None,
        since: Annotated[
            str | None, typer.Option(help="A time, such as 2026-01-31 or 2026-01-31T12:00; or 2h, 3d.")
        ] = None,
        as_json: Annotated[bool, json_option("Print JSON Lines.")] = False,
    ) -> None:
        """Show what was decided, the oldest first."""
        show_decisions(app, session, since, as_json=as_json)

    @group.command()
    def verify(
        head: Annotated[
            str | None, typer.Option(help="A hash that was noted elsewhere and must be in the log.")
        ] = None,
        key: Annotated[
            Path | None, typer.Option(help="The public key that the signatures must be of.")
        ] = None,
        witness: Annotated[
            Path | None, typer.Option(help="A file with signed heads, kept elsewhere.")
        ] = None,
        complete: Annotated[
            bool, typer.Option("--complete", help="Fail if lines follow the last signature.")
        ] = False,
    ) -> None:
        """Check that the log is complete and unchanged, and who signed it."""
        verify_log(app, head, key, witness, complete=complete)


def show_decisions(
    app: Hookline, session: str | None, since: str | None, *, as_json: bool = False
) -> None:
    """A line for each record of a session since a time."""
    path = app.safeguards.audit_path
    start = when(since) if since else 0.0
    if not files_of(path):
        raise BadInput(f"there is no audit log at {path}; `hookline config set audit.enabled true`")
    try:
        found = 0
        for record in records(path):
            if record.get("time", 0) >= start and within(record, session):
                typer.echo(encoded(record) if as_json else line_of(record))
                found += 1
        if not found and not as_json:
            typer.echo("the audit log has no such decisions")
    except OSError as error:
        raise AuditError(f"the audit log {path} cannot be read: {error}") from error


def within(record: dict[str, Any], session: str | None) -> bool:
    """Whether a record is about a session or one of its subagents."""
    found = str(record.get("session_id", ""))
    return session is None or found == session or found.startswith(f"{session}/")


def when(text: str) -> float:
    """A time as it is typed: a date, a date with a time, or how long ago."""
    ago = re.fullmatch(r"(\d{1,6})([mhd])", text.strip())
    if ago:
        return time.time() - int(ago[1]) * AGO[ago[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except ValueError:
        raise BadInput(
            f"--since {text!r} is no time: write 2026-01-31, 2026-01-31T12:00, 30m, 2h or 3d"
        ) from None


def line_of(record: dict[str, Any]) -> str:
    """A record as people read it."""
    at = datetime.fromtimestamp(record["time"]).strftime("%Y-%m-%d %H:%M:%S")
    outcome = str(record.get("outcome", ""))
    what = record.get("tool") or record.get("hook") or ""
    call = f" {record['call_id']}" if record.get("call_id") else ""
    who = [
        f"{ruling['decision']} by {ruling['by']}" + (" (rewrote)" if ruling.get("changed") else "")
        for ruling in record.get("rulings", ())
    ]
    if "grant" in record:
        who = [f"{record['grant']} {record['scope']} by {record.get('user') or 'somebody'}"]
    shown = style(f"{outcome:<9}", COLOURS.get(outcome, "yellow"))
    told = printable(
        f"{record.get('kind', ''):<8} {what}{call}  {record.get('session_id', '')}  {'; '.join(who)}"
    )
    return f"{at}  {shown} {told}"


def verify_log(
    app: Hookline,
    head: str | None,
    key: Path | None = None,
    witness: Path | None = None,
    *,
    complete: bool = False,
) -> None:
    """Check the chain, and with a public key its signatures; exit with 1 at the first fault."""
    path = app.safeguards.audit_path
    if key is None and (witness is not None or complete):
        raise BadInput("--witness and --complete are about signatures; name the public key by --key")
    try:
        report = verify(path, expected=head)
        if key is not None and report.fault is None:
            check_signatures(report, key, witness, path, complete=complete)
    except OSError as error:
        raise AuditError(f"the audit log {path} cannot be read: {error}") from error
    for note in report.notes:
        typer.echo(note, err=True)
    if report.fault:
        typer.echo(f"hookline: the audit log does not hold: {report.fault}", err=True)
        typer.echo(f"{report.lines} line(s) before that are as they were written", err=True)
        raise typer.Exit(FAILED)
    signed = f"; signed up to line {report.signed.seq}" if key is not None and report.signed else ""
    typer.echo(f"{report.lines} line(s), nothing changed{signed}; head {report.head.hash}")


def check_signatures(
    report: ChainReport, key: Path, witness: Path | None, path: Path, *, complete: bool
) -> None:
    """Check the last signature, which covers every earlier line, and compare it with a witness."""
    from hookline.policy.signature import statement, verifier, witnessed

    holds = verifier(key)
    if report.signed is None or report.signature is None:
        report.fault = "no line is signed: signatures were removed, or [audit] has neither sign nor key"
        return
    at, signature = report.signature
    if not holds(statement(report.signed.seq, report.signed.hash, at), signature):
        report.fault = (
            f"the signature of line {report.signed.seq} is not of this key: the log was written anew, "
            "or another key signed it"
        )
        return
    if witness is not None:
        noted, noted_at, text = witnessed(witness)
        if not holds(statement(noted.seq, noted.hash, noted_at), text):
            report.fault = f"the last line of the witness {witness} has no signature of this key"
            return
        if report.signed.seq < noted.seq or verify(path, expected=noted.hash).fault:
            report.fault = (
                f"the signature of line {noted.seq}, which the witness has, is missing: the end was "
                "cut off, or the log was written anew"
            )
            return
    tail = report.lines - report.signed.seq - 1
    if tail > 0:
        text = f"{tail} line(s) after line {report.signed.seq + 1} are not signed"
        if complete:
            report.fault = text
        else:
            report.notes.append(f"{text}: only the chain holds them")
