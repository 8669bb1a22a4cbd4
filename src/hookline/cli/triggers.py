"""`hookline triggers`: shown, fired and filled from the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from hookline.channel import Channel
from hookline.errors import BadInput
from hookline.ext.triggers import Triggers
from hookline.text.foreign_json import parse_json

from . import beside
from .options import ApproveAll, Model, Workspace, configure
from .orphans import adopting
from .run import Printer, tell

if TYPE_CHECKING:
    from hookline.ext.triggers import Trigger
    from hookline.runtime.app import Hookline

T = TypeVar("T")
Name = Annotated[str, typer.Argument(help="The name in [triggers.<name>].")]


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline triggers`."""
    group = typer.Typer(help="Show and fire triggers; manage their queues.", no_args_is_help=True)
    cli.add_typer(group, name="triggers")

    @group.command("list")
    def list_() -> None:
        """List the triggers, with the number of events in each state."""
        list_triggers(app)

    @group.command()
    def fire(
        name: Name,
        payload: Annotated[str | None, typer.Argument(help="What it carries, as JSON.")] = None,
        message: Annotated[
            str | None, typer.Option(help="What to say, in place of the trigger's message.")
        ] = None,
        yes: ApproveAll = False,
        model: Model = None,
        workspace: Workspace = None,
    ) -> None:
        """Fire a trigger now, and print the answer."""
        configure(app, model, workspace)
        fire_trigger(app, name, payload, message, yes=yes)

    @group.command()
    def enqueue(
        name: Name,
        payload: Annotated[str, typer.Argument(help="What it carries, as JSON.")],
        event_id: Annotated[
            str | None, typer.Option("--id", help="The idempotency key; a new one by default.")
        ] = None,
    ) -> None:
        """Put an event into the queue of a trigger."""
        enqueue_event(app, name, payload, event_id)

    @group.command()
    def dead(
        name: Name,
        retry: Annotated[str | None, typer.Option(help="Try the event with this id again.")] = None,
    ) -> None:
        """Show the events that could not be processed."""
        show_dead_letters(app, name, retry)


def list_triggers(app: Hookline) -> None:
    """One line for each trigger, with how many of its events are in which state."""

    async def gathered(triggers: Triggers) -> list[tuple[Trigger[Any], dict[str, int]]]:
        return [(t, await triggers.ledger.counts(t.name)) for t in triggers.configured.values()]

    found = _with(app, gathered)
    if not found:
        typer.echo("no triggers are configured; [triggers.NAME] in config.toml adds one")
    for trigger, counts in found:
        settings = trigger.settings
        events = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
        typer.echo(f"{trigger.name:<20} {settings.type:<8} {events or 'no events yet'}")


def fire_trigger(
    app: Hookline, name: str, payload: str | None, message: str | None, *, yes: bool = False
) -> None:
    """Make a turn of a trigger now, and print the answer."""
    given = None if payload is None else _json(payload)
    printer = Printer(yes=yes)
    try:
        result = _with(app, lambda triggers: triggers.fire(name, given, message), printer)
    except Exception as error:
        raise typer.Exit(tell(error, as_json=False)) from None
    printer.end()
    if result.stopped is not None:
        beside(result.stopped)


def enqueue_event(app: Hookline, name: str, payload: str, event_id: str | None) -> None:
    """Put an event into a trigger's queue, and print its id."""
    given = _json(payload)
    known, new = _with(app, lambda triggers: triggers.enqueue(name, given, event_id))
    typer.echo(known if new else f"{known} (it is known already)")


def show_dead_letters(app: Hookline, name: str, retry: str | None) -> None:
    """Show the dead letters of a trigger, or let one wait again."""

    async def look(triggers: Triggers) -> list[Any]:
        triggers.trigger(name)
        if retry is not None:
            await triggers.revive(name, retry)
        return await triggers.ledger.dead(name)

    records = _with(app, look)
    if retry is not None:
        typer.echo(f"{retry} is tried again")
        return
    if not records:
        typer.echo(f"the trigger {name!r} has no dead letters")
    for record in records:
        event = record.event
        typer.echo(f"{event.id}  {record.tries} tries  {record.note}  {json.dumps(event.payload)}")


def _json(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise BadInput(f"{text!r} is not JSON: {error}") from None


def _with(
    app: Hookline, action: Callable[[Triggers], Awaitable[T]], channel: Channel | None = None
) -> T:
    """Do something with the triggers of the running app, without starting them."""
    app.plugins.check_loaded("triggers", "this command")

    async def run() -> T:
        triggers = Triggers(app)
        async with adopting(), app.running(channel):
            try:
                return await action(triggers)
            finally:
                await triggers.close()

    return asyncio.run(run())
