"""The commands that come with Hookline, each with its work in a module of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hookline.app import Hookline

Model = Annotated[str | None, typer.Option(help="The model that answers: provider:model.")]
Workspace = Annotated[Path | None, typer.Option(help="The folder that tools work in.")]


def register(cli: typer.Typer, app: Hookline) -> None:
    """Attach the builtin commands; what a command needs is imported when it runs."""

    @cli.command()
    def run(
        message: Annotated[
            str | None, typer.Argument(help="What to say; read from standard input when left out.")
        ] = None,
        channel: Annotated[str, typer.Option(help="The channel it comes from.")] = "terminal",
        chat_id: Annotated[str, typer.Option(help="The chat within the channel.")] = "local",
        sender_id: Annotated[str, typer.Option(help="Who says it.")] = "human",
        session_id: Annotated[
            str | None, typer.Option(help="The session; by default the chat's.")
        ] = None,
        model: Model = None,
        workspace: Workspace = None,
        tool: Annotated[
            str | None, typer.Option(help="Make the model call this tool first ('any' for its choice).")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
        stream: Annotated[bool, typer.Option(help="Show the answer as it comes.")] = True,
        resume: Annotated[
            bool, typer.Option("--resume", help="Continue a turn that was cut off.")
        ] = False,
    ) -> None:
        """Answer one message."""
        from .run import Order, run_once

        order = Order(
            message,
            channel,
            chat_id,
            sender_id,
            session_id,
            as_json=as_json,
            stream=stream,
            resume=resume,
        )
        configure(app, model, workspace, tool)
        run_once(app, order)

    @cli.command()
    def chat(
        model: Model = None,
        workspace: Workspace = None,
        session_id: Annotated[
            str | None, typer.Option(help="The session; 'terminal:chat' unless said.")
        ] = None,
    ) -> None:
        """Talk with the agent in the terminal."""
        from .chat import start

        configure(app, model, workspace)
        start(app, session_id)

    @cli.command()
    def hooks(
        name: Annotated[str | None, typer.Argument(help="Show this hook in detail.")] = None,
        family: Annotated[str | None, typer.Option(help="Only the hooks of this family.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
        as_markdown: Annotated[
            bool, typer.Option("--markdown", help="Print the whole reference.")
        ] = False,
        turn: Annotated[bool, typer.Option("--turn", help="Show one turn, hook by hook.")] = False,
    ) -> None:
        """Show every hook: what becomes of results, who runs first, what an error does."""
        from .hooks import show

        show(app.hooks, name, family, as_json=as_json, as_markdown=as_markdown, turn=turn)

    @cli.command()
    def doctor() -> None:
        """Check the installation: plugins, models, tools and the tape."""
        from .doctor import examine

        examine(app)

    add_models(cli, app)
    add_tape(cli, app)


def configure(
    app: Hookline, model: str | None, workspace: Path | None, tool: str | None = None
) -> None:
    """Set what the command line chose."""
    from .run import check_workspace

    if model is not None:
        app.model = model
    if workspace is not None:
        app.workspace = check_workspace(workspace)
    if tool is not None:
        app.tool_choice = "required" if tool == "any" else {"name": tool}


def add_models(cli: typer.Typer, app: Hookline) -> None:
    """`hookline models`."""
    group = typer.Typer(help="Show the models within reach.", invoke_without_command=True)
    cli.add_typer(group, name="models")

    @group.callback()
    def models(context: typer.Context) -> None:
        """Show the models within reach."""
        if context.invoked_subcommand is None:
            from .models import show

            show(app)

    @group.command()
    def install() -> None:
        """Fetch the weights of the local model."""
        from .models import install

        install(app)


def add_tape(cli: typer.Typer, app: Hookline) -> None:
    """`hookline tape`."""
    group = typer.Typer(help="Look at what was recorded.", no_args_is_help=True)
    cli.add_typer(group, name="tape")

    @group.command("list")
    def list_() -> None:
        """List the sessions."""
        from .tape import list_sessions

        list_sessions(app)

    @group.command()
    def show(
        session_id: Annotated[str, typer.Argument(help="The session.")],
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON Lines.")] = False,
    ) -> None:
        """Show a session, entry by entry."""
        from .tape import show_session

        show_session(app, session_id, as_json=as_json)

    @group.command()
    def search(
        text: Annotated[str, typer.Argument(help="Words to look for.")],
        session_id: Annotated[str | None, typer.Option(help="Only in this session.")] = None,
    ) -> None:
        """Find entries by their words."""
        from .tape import search_tape

        search_tape(app, text, session_id)

    @group.command()
    def export(
        file: Annotated[Path, typer.Argument(help="Where to write; '-' for standard output.")],
        session_id: Annotated[
            list[str] | None, typer.Option(help="Only these sessions, with what they were forked from.")
        ] = None,
    ) -> None:
        """Write sessions as JSON Lines."""
        from .tape import export_tape

        export_tape(app, file, session_id)

    @group.command("import")
    def import_(file: Annotated[Path, typer.Argument(help="A file that `export` wrote.")]) -> None:
        """Read sessions that `export` wrote; what is there already stays."""
        from .tape import import_tape

        import_tape(app, file)
