"""Who answers where nobody can be asked: `run`, with and without `--yes`."""

from __future__ import annotations

from typing import Any

import typer

from .chat.view import clean, exact


def approve(request: Any) -> str:
    """Yes to everything that is asked, as `--yes` said."""
    return "approve"


def tell_how(request: Any) -> None:
    """Leave the question open, which denies, and say what could be done."""
    call = clean(exact(request["tool"], request["arguments"]))
    typer.echo(
        f"hookline: not run, since nobody is here to approve it: {call}\n"
        f"  {clean(request['question'])}\n"
        "  `hookline run --yes` approves, `hookline chat` asks, and [policy] of the settings decides",
        err=True,
    )
