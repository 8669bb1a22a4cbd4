"""`hookline triggers`: its commands, with their work in `triggers.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Name = Annotated[str, typer.Argument(help="The name in [triggers.<name>].")]


def add_triggers(cli: typer.Typer, app: Hookline) -> None:
    """`hookline triggers`."""
    group = typer.Typer(help="Show and fire triggers; look after their queues.", no_args_is_help=True)
    cli.add_typer(group, name="triggers")

    @group.command("list")
    def list_() -> None:
        """List the triggers, with the number of events in each state."""
        from .triggers import list_triggers

        list_triggers(app)

    @group.command()
    def fire(
        name: Name,
        payload: Annotated[str | None, typer.Argument(help="What it carries, as JSON.")] = None,
        message: Annotated[
            str | None, typer.Option(help="What to say, in place of the trigger's message.")
        ] = None,
        yes: Annotated[
            bool, typer.Option("--yes", "-y", help="Approve every call that would be asked about.")
        ] = False,
        model: Annotated[str | None, typer.Option(help="The model that answers.")] = None,
        workspace: Annotated[Path | None, typer.Option(help="The folder that tools work in.")] = None,
    ) -> None:
        """Fire a trigger now, and print the answer."""
        from .commands import configure
        from .triggers import fire

        configure(app, model, workspace)
        fire(app, name, payload, message, yes=yes)

    @group.command()
    def enqueue(
        name: Name,
        payload: Annotated[str, typer.Argument(help="What it carries, as JSON.")],
        event_id: Annotated[
            str | None, typer.Option("--id", help="The idempotency key; a new one by default.")
        ] = None,
    ) -> None:
        """Put an event into the queue of a trigger."""
        from .triggers import enqueue

        enqueue(app, name, payload, event_id)

    @group.command()
    def dead(
        name: Name,
        retry: Annotated[str | None, typer.Option(help="Try the event with this id again.")] = None,
    ) -> None:
        """Show the events that could not be processed."""
        from .triggers import dead

        dead(app, name, retry)
