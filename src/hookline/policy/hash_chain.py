"""The chain: lines of a log that each carry the hash of the one before, read and verified.

    {"seq": 1, "time": …, "kind": "decision", …, "prev": "000…", "hash": "9f3…"}

A hash covers everything in its line but itself, `prev` included. So a line that is changed, taken out,
put in or moved breaks the chain at a place that can be named. What was cut off at the end is found by
the head: a small file beside the log that says which line was the last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

ROOT = "0" * 64
"""What the first line has for the hash of the one before."""
SUFFIX = ".jsonl"
TAIL = 65_536


@dataclass(frozen=True, slots=True)
class Head:
    """The last line of a log."""

    seq: int = 0
    hash: str = ROOT


@dataclass(slots=True)
class ChainReport:
    """The result of a verification."""

    lines: int = 0
    head: Head = Head()
    fault: str | None = None
    """The first thing that is wrong, with its file and line."""
    notes: list[str] = field(default_factory=list[str])
    signed: Head | None = None
    """The last line that a signature covers."""
    signature: tuple[float, str] | None = None
    """The last signature, with its time."""


def sealed(record: dict[str, Any], head: Head) -> tuple[str, Head]:
    """A record as the line that follows the head, and the head after it."""
    body = {"seq": head.seq + 1, **record, "prev": head.hash}
    digest = digest_of(body)
    return encoded({**body, "hash": digest}) + "\n", Head(head.seq + 1, digest)


def encoded(value: Any) -> str:
    """JSON in one line, in ASCII: nothing in it can look like the end of a line."""
    return json.dumps(value, separators=(",", ":"), default=repr)


def digest_of(body: dict[str, Any]) -> str:
    """The hash of a line, less the one that it carries."""
    told = {name: value for name, value in body.items() if name != "hash"}
    return hashlib.sha256(encoded(told).encode()).hexdigest()


def parsed(line: bytes) -> dict[str, Any] | None:
    """A line as a record; None if it is not one."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def files_of(path: Path) -> list[Path]:
    """The files of a log: rotated ones, oldest first, then the current one."""
    rotated = [
        other
        for other in path.parent.glob(f"{path.stem}-*{SUFFIX}")
        if other.stem.removeprefix(f"{path.stem}-").isdigit()
    ]
    rotated.sort(key=lambda other: int(other.stem.rpartition("-")[2]))
    return [*rotated, *([path] if path.exists() else [])]


def head_file(path: Path) -> Path:
    """Where the head of a log is noted."""
    return path.with_suffix(".head")


def read_head(path: Path) -> Head | None:
    """The stored head; None if there is none."""
    try:
        seq, _, digest = head_file(path).read_text(encoding="ascii").strip().partition(" ")
    except FileNotFoundError:
        return None
    return Head(int(seq), digest)


def last_line(path: Path) -> tuple[Head | None, int]:
    """The head by a file's last whole line, and how many bytes after it are a torn one."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        reach = TAIL
        while True:
            file.seek(max(size - reach, 0))
            data = file.read()
            end = data.rfind(b"\n")
            begin = data.rfind(b"\n", 0, max(end, 0))
            if begin >= 0 or reach >= size:
                break
            reach *= 4
    torn = len(data) - end - 1
    if end < 0:
        return None, torn
    record = parsed(data[begin + 1 : end])
    if record is None or not isinstance(record.get("seq"), int):
        raise ValueError(f"the last line of {path} is no record")
    return Head(record["seq"], str(record.get("hash"))), torn


def lines(path: Path) -> Iterator[tuple[Path, int, bytes]]:
    """Every line of a log with its file and number; one that is torn comes without its end."""
    for file in files_of(path):
        with file.open("rb") as opened:
            for number, line in enumerate(opened, start=1):
                yield file, number, line


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a log, oldest first; other lines are skipped."""
    for _, _, line in lines(path):
        record = parsed(line)
        if record is not None:
            yield record


def verify(path: Path, *, expected: str | None = None) -> ChainReport:
    """Go along the chain and stop at the first thing that is wrong.

    `expected` is a hash that was noted elsewhere: it must be in the chain.
    """
    report = ChainReport()
    noted, met = _noted(path, report), expected in (None, ROOT)
    if report.fault:
        return report
    anchored = noted is None or noted.seq == 0
    last = None
    unsigned: dict[int, str] = {}
    for file, number, line in lines(path):
        last = file
        where = f"{file}, line {number}"
        if not line.endswith(b"\n"):
            if file != path:
                report.fault = f"{where}: the line has no end"
                break
            report.notes.append(f"{where}: a line was torn while it was written; it counts for nothing")
            continue
        fault = _wrong(line, report.head)
        if fault:
            report.fault = f"{where}: {fault}"
            break
        record = cast("dict[str, Any]", parsed(line))
        report.head = Head(record["seq"], record["hash"])
        report.lines += 1
        unsigned[report.head.seq] = report.head.hash
        if record.get("kind") == "signature" and not _take_signature(record, unsigned, report):
            report.fault = f"{where}: it signs a line that is not in this log"
            break
        met = met or record["hash"] == expected
        anchored = anchored or report.head == noted
        if noted is not None and report.head.seq == noted.seq and report.head != noted:
            report.fault = f"{where}: the head says that this line was another one"
            break
    if report.fault is None:
        _check_end(path, last, report, noted, anchored=anchored, met=met, expected=expected)
    return report


def _take_signature(record: dict[str, Any], unsigned: dict[int, str], report: ChainReport) -> bool:
    """Note what a line signs, which must be an earlier line. Returns whether it is."""
    seq, digest, at, signature = (record.get(name) for name in ("signed", "head", "at", "signature"))
    if not isinstance(seq, int) or not isinstance(at, int | float) or not isinstance(signature, str):
        return False
    if report.signed is not None and seq < report.signed.seq:  # of two processes, one was slower
        return True
    if unsigned.get(seq) != digest or seq >= report.head.seq:
        return False
    report.signed, report.signature = Head(seq, str(digest)), (float(at), signature)
    for older in [number for number in unsigned if number < seq]:
        del unsigned[older]
    return True


def _noted(path: Path, report: ChainReport) -> Head | None:
    try:
        noted = read_head(path)
    except (OSError, ValueError) as error:
        report.fault = f"{head_file(path)} cannot be read: {error}"
        return None
    if noted is None and files_of(path):
        report.fault = f"{head_file(path)} is missing: nothing says where the log ended"
    return noted


def _wrong(line: bytes, head: Head) -> str | None:
    record = parsed(line)
    if record is None or not isinstance(record.get("seq"), int):
        return "this is no record"
    if record["seq"] != head.seq + 1:
        missing = f"number {record['seq']} follows number {head.seq}"
        return f"{missing}: lines are missing, or were put in or moved before it"
    if record.get("prev") != head.hash:
        return "it does not follow the line before: one of the two was changed"
    if record.get("hash") != digest_of(record):
        return "the line was changed"
    return None


def _check_end(
    path: Path,
    last: Path | None,
    report: ChainReport,
    noted: Head | None,
    *,
    anchored: bool,
    met: bool,
    expected: str | None,
) -> None:
    if noted is not None and not anchored:
        missing = noted.seq - report.head.seq
        place = last or path
        report.fault = f"{place}: {missing} line(s) at the end are missing; the last was {noted.seq}"
    elif not met:
        report.fault = f"no line has the hash {expected}: this is another log, or it was written anew"
    elif noted is not None and report.head.seq > noted.seq:
        more = report.head.seq - noted.seq
        report.notes.append(f"{more} line(s) after the noted head: a process ended while it wrote them")
