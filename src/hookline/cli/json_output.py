"""`--json`: standard output has JSON alone, whatever hooks, plugins and child processes print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import UnsupportedOperation
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from .terminal import GuardedStream, unguarded


class ReservedStream(GuardedStream):
    """Standard output while it is reserved for JSON: other output goes to standard error."""

    def __init__(self, errors: TextIO, output: TextIO) -> None:
        super().__init__(errors)
        self.json = GuardedStream(output)


def is_reserved() -> bool:
    """Tell whether standard output is reserved for JSON."""
    return isinstance(sys.stdout, ReservedStream)


def print_json(data: Any, *, indent: int | None = None) -> None:
    """Print JSON on standard output."""
    import json

    out: Any = sys.stdout.json if isinstance(sys.stdout, ReservedStream) else sys.stdout
    print(json.dumps(data, indent=indent, default=str), file=out, flush=True)


def reserve() -> Callable[[], None]:
    """Reserve standard output for `print_json`; return a function that undoes it.

    File descriptor 1 becomes standard error, too: child processes, C libraries and loggers that opened
    it before write there.
    """
    before = sys.stdout
    if before is None or isinstance(before, ReservedStream):
        return lambda: None
    before.flush()
    errors = unguarded(sys.stderr)
    if errors is None:  # closed; its descriptor may be any other file's by now
        errors = Path(os.devnull).open("w")  # noqa: SIM115
    output, real = unguarded(before), None
    if _descriptor(output) == 1:
        real = os.dup(1)
        os.dup2(errors.fileno(), 1)
        output = os.fdopen(real, "w", encoding=output.encoding, errors=output.errors)
    sys.stdout = ReservedStream(errors, output)

    def undo() -> None:
        sys.stdout.flush()
        sys.stdout = before
        if real is not None:
            os.dup2(real, 1)
            output.close()

    return undo


@contextmanager
def reserved(wanted: bool = True) -> Generator[None]:
    """Reserve standard output for a while."""
    undo = reserve() if wanted else lambda: None
    try:
        yield
    finally:
        undo()


def _descriptor(stream: Any) -> int | None:
    try:
        return stream.fileno()
    except (AttributeError, UnsupportedOperation, ValueError):
        return None  # not a file, as in tests


def _chosen(value: bool) -> bool:
    # Not undone at the end: output while the process exits is not JSON either.
    if value:
        reserve()
    return value


def for_output(file: Path | None) -> Path | None:
    """Reserve standard output if JSON is to be written there."""
    _chosen(str(file) == "-")
    return file


def json_option(text: str) -> Any:
    """Return the option `--json` of a command that prints its result with `print_json`."""
    return typer.Option("--json", help=text, callback=_chosen)


Json = Annotated[bool, json_option("Print JSON.")]
