"""The commands that come with Hookline, each with its work in a module of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .authoring import add_hooks, add_plugins, add_why
from .bench import add_bench
from .configuring import add_config, add_models
from .database import add_db
from .json_output import Json, json_option
from .replaying import add_replay
from .triggering import add_triggers

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

Model = Annotated[str | None, typer.Option(help="The model that answers: provider:model.")]
Workspace = Annotated[Path | None, typer.Option(help="The folder that tools work in.")]
ServerName = Annotated[str | None, typer.Argument(help="Only this server.")]


def register(cli: typer.Typer, app: Hookline) -> None:
    """Add the builtin commands; their modules are imported when they run."""

    @cli.command()
    def run(
        message: Annotated[
            str | None, typer.Argument(help="What to say; read from standard input when left out.")
        ] = None,
        channel: Annotated[str, typer.Option(help="The channel it comes from.")] = "terminal",
        chat_id: Annotated[
            str | None, typer.Option(help="The chat within the channel, and so its session.")
        ] = None,
        sender_id: Annotated[str, typer.Option(help="Who says it.")] = "human",
        session_id: Annotated[
            str | None, typer.Option("--session", help="The session; a new one by default.")
        ] = None,
        model: Model = None,
        workspace: Workspace = None,
        tool: Annotated[
            str | None, typer.Option(help="Make the model call this tool first ('any' for its choice).")
        ] = None,
        as_json: Annotated[bool, json_option("Print the result as JSON.")] = False,
        stream: Annotated[bool, typer.Option(help="Show the answer as it comes.")] = True,
        resume: Annotated[
            bool, typer.Option("--resume", help="Continue a turn that was cut off.")
        ] = False,
        yes: Annotated[
            bool, typer.Option("--yes", "-y", help="Approve every call that would be asked about.")
        ] = False,
        latest: Annotated[
            bool, typer.Option("--continue", help="Continue the latest session of this folder.")
        ] = False,
        raw: Annotated[
            bool,
            typer.Option("--raw", help="Write the answer as it is, with its control characters."),
        ] = False,
    ) -> None:
        """Answer one message."""
        from .run import RunOptions, run_once

        order = RunOptions(
            message,
            channel,
            chat_id,
            sender_id,
            session_id,
            as_json=as_json,
            stream=stream,
            resume=resume,
            latest=latest,
            raw=raw,
            yes=yes,
        )
        configure(app, model, workspace, tool, ask=True)
        run_once(app, order)

    @cli.command()
    def chat(
        model: Model = None,
        workspace: Workspace = None,
        session_id: Annotated[
            str | None, typer.Option("--session", help="The session; by default this folder's own.")
        ] = None,
        latest: Annotated[
            bool, typer.Option("--continue", help="Continue the latest session of this folder.")
        ] = False,
    ) -> None:
        """Talk with the agent in the terminal."""
        from .chat import start

        configure(app, model, workspace, ask=True)
        start(app, session_id, latest=latest)

    @cli.command()
    def gateway(
        enable_channel: Annotated[
            list[str] | None, typer.Option(help="Run this channel, and only those named so.")
        ] = None,
        host: Annotated[
            str | None, typer.Option(help="Where to listen; by default this machine alone reaches it.")
        ] = None,
        port: Annotated[int | None, typer.Option(help="The port; 0 for any free one.")] = None,
        token: Annotated[
            str | None,
            typer.Option(help="What requests must carry; better in HOOKLINE_GATEWAY__TOKEN."),
        ] = None,
        reload: Annotated[
            bool, typer.Option("--reload", help="Load hook files anew when they change.")
        ] = False,
        log_json: Annotated[bool, typer.Option("--log-json", help="Log as JSON Lines.")] = False,
        print_token: Annotated[
            bool, typer.Option("--print-token", help="Print the link with the token, and end.")
        ] = False,
        rotate_token: Annotated[
            bool, typer.Option("--rotate-token", help="Make a new token, print its link, and end.")
        ] = False,
        model: Model = None,
        workspace: Workspace = None,
    ) -> None:
        """Serve channels: web page, API, OpenAI, Telegram, stdio."""
        from .gateway import GatewayOptions, run_gateway, show_token

        if print_token or rotate_token:
            show_token(app, host, port, rotate=rotate_token)
            return
        configure(app, model, workspace, ask=True)
        run_gateway(app, GatewayOptions(enable_channel, host, port, token, reload, log_json))

    @cli.command()
    def worker(
        concurrency: Annotated[
            int | None, typer.Option(min=1, help="How many sessions to process at the same time.")
        ] = None,
        log_json: Annotated[bool, typer.Option("--log-json", help="Log as JSON Lines.")] = False,
        model: Model = None,
        workspace: Workspace = None,
    ) -> None:
        """Process the messages that gateways accept, on any machine."""
        from .worker import run_worker

        configure(app, model, workspace)
        run_worker(app, concurrency, log_json=log_json)

    @cli.command()
    def inspect(
        port: Annotated[
            int | None,
            typer.Option(min=0, max=65535, help="The port, 8766 by default; 0 for any free one."),
        ] = None,
        show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
        workspace: Workspace = None,
    ) -> None:
        """Look at sessions, turns, hooks and decisions in a browser."""
        from .inspect import run_inspector

        configure(app, None, workspace)
        run_inspector(app, port, show=show)

    @cli.command()
    def doctor(
        coverage: Annotated[
            bool, typer.Option("--coverage", help="Check that every hook is called and can run.")
        ] = False,
        as_json: Annotated[bool, json_option("With --coverage: print JSON.")] = False,
    ) -> None:
        """Check the installation: plugins, models, tools and the tape."""
        from .doctor import examine

        if coverage:
            from .why import show_coverage

            app.hook_files.load()
            show_coverage(app, as_json=as_json)
        else:
            examine(app)

    @cli.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
    def sandbox(
        command: Annotated[list[str], typer.Argument(help="The command and its arguments.")],
        profile: Annotated[
            str | None, typer.Option(help="read-only, workspace or open; by default the shell's.")
        ] = None,
        host: Annotated[
            list[str] | None, typer.Option(help="A host that it may reach; can be repeated.")
        ] = None,
        workspace: Workspace = None,
    ) -> None:
        """Run a command in the sandbox, the way the agent's commands run."""
        from hookline.sandbox.settings import PROFILES

        from .sandbox import run_confined

        if profile is not None and profile not in PROFILES[:3]:
            raise typer.BadParameter(f"{profile!r} is not one of {', '.join(PROFILES[:3])}")
        configure(app, None, workspace)
        run_confined(app, command, profile, host or [])

    @cli.command()
    def onboard(
        model: Model = None,
        base_url: Annotated[str | None, typer.Option(help="Where the provider is.")] = None,
        key_env: Annotated[
            str | None, typer.Option(help="The environment variable that holds the key.")
        ] = None,
        thinking: Annotated[
            str | None, typer.Option(help="How long the model thinks: off, low, medium, high.")
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
        test: Annotated[bool, typer.Option(help="Try the model with a tiny request.")] = True,
    ) -> None:
        """Set up the model, and the settings that plugins need."""
        from .onboard import Answers, onboard

        onboard(app, Answers(model, base_url, key_env, thinking, yes, test))

    add_config(cli, app)

    @cli.command()
    def trust(
        path: Annotated[
            Path | None, typer.Argument(help="The project; by default the current folder.")
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust without asking.")] = False,
        full: Annotated[
            bool, typer.Option("--full", help="Show everything, with hashes and covered files.")
        ] = False,
        list_: Annotated[bool, typer.Option("--list", help="Show what is trusted.")] = False,
        revoke: Annotated[bool, typer.Option("--revoke", help="No longer trust the project.")] = False,
    ) -> None:
        """Show what this project would run, and trust it."""
        from .trust import list_trusted, revoke_trust, trust_project

        if list_:
            list_trusted(app, path)
        elif revoke:
            revoke_trust(app, path)
        else:
            trust_project(app, path, yes=yes, full=full)

    add_hooks(cli, app)
    add_why(cli, app)
    add_plugins(cli, app)
    add_models(cli, app)
    add_tape(cli, app)
    add_replay(cli, app)
    add_db(cli, app)
    add_bench(cli, app)
    add_policy(cli, app)
    add_audit(cli, app)
    for name, add in {"triggers": add_triggers, "mcp": add_mcp, "voice": add_voice}.items():
        if name not in app.plugins.missing:
            add(cli, app)


def configure(
    app: Hookline,
    model: str | None,
    workspace: Path | None,
    tool: str | None = None,
    *,
    ask: bool = False,
) -> None:
    """Set what the command line chose, and enter the project; with `ask`, a person may trust it."""
    from .project import enter
    from .run import check_workspace

    if model is not None:
        app.model = model
    if workspace is not None:
        app.workspace = check_workspace(workspace)
        app.config.reload(app.workspace)
    if tool is not None:
        app.tool_choice = "required" if tool == "any" else {"name": tool}
    enter(app, ask=ask)
    app.hook_files.load()


def add_tape(cli: typer.Typer, app: Hookline) -> None:
    """`hookline tape` and `hookline sessions`."""
    group = typer.Typer(help="Look at what was recorded.", no_args_is_help=True)
    cli.add_typer(group, name="tape")

    @cli.command()
    def sessions() -> None:
        """List the sessions, this project's first."""
        from .tape import list_sessions

        list_sessions(app)

    @group.command("list")
    def list_() -> None:
        """List the sessions; `hookline sessions` does the same."""
        from .tape import list_sessions

        list_sessions(app)

    @group.command()
    def show(
        session_id: Annotated[str, typer.Argument(help="The session.")],
        as_json: Annotated[bool, json_option("Print JSON Lines.")] = False,
    ) -> None:
        """Show a session, entry by entry."""
        from .tape import show_session

        show_session(app, session_id, as_json=as_json)

    @group.command()
    def search(
        text: Annotated[str, typer.Argument(help="Words to look for.")],
        session_id: Annotated[
            str | None, typer.Option("--session", help="Only in this session.")
        ] = None,
    ) -> None:
        """Find entries by their words."""
        from .tape import search_tape

        search_tape(app, text, session_id)

    @group.command()
    def export(
        file: Annotated[Path, typer.Argument(help="Where to write; '-' for standard output.")],
        session_id: Annotated[
            list[str] | None,
            typer.Option("--session", help="Only these sessions, with what they were forked from."),
        ] = None,
        html: Annotated[
            bool, typer.Option("--html", help="Write one session as a page; so does a name in .html.")
        ] = False,
    ) -> None:
        """Write sessions as JSON Lines, or one session as an HTML page."""
        from .tape import export_tape

        export_tape(app, file, session_id, html=html)

    @group.command("import")
    def import_(file: Annotated[Path, typer.Argument(help="A file that `export` wrote.")]) -> None:
        """Read sessions that `export` wrote; what is there already stays."""
        from .tape import import_tape

        import_tape(app, file)


def add_mcp(cli: typer.Typer, app: Hookline) -> None:
    """`hookline mcp`."""
    group = typer.Typer(help="Show and check MCP servers.", no_args_is_help=True)
    cli.add_typer(group, name="mcp")

    @group.command("list")
    def list_(as_json: Json = False) -> None:
        """List the servers that are configured; none is started."""
        from .mcp import list_servers

        list_servers(app, as_json=as_json)

    @group.command()
    def tools(name: ServerName = None, as_json: Json = False) -> None:
        """Connect, and list the tools."""
        from .mcp import list_tools

        list_tools(app, name, as_json=as_json)

    @group.command()
    def check(name: ServerName = None) -> None:
        """Connect, and say how each server is."""
        from .mcp import check_servers

        check_servers(app, name)


def add_voice(cli: typer.Typer, app: Hookline) -> None:
    """`hookline voice`."""
    group = typer.Typer(help="Try speech synthesis and recognition.", no_args_is_help=True)
    cli.add_typer(group, name="voice")

    @group.command()
    def say(
        text: Annotated[str, typer.Argument(help="What to say; Markdown is read as people would.")],
        file: Annotated[Path, typer.Argument(help="Where to write: .wav, .ogg or .mp3.")],
    ) -> None:
        """Speak a text into a file, as [tts] says."""
        from .voice import say

        say(app, text, file)

    @group.command()
    def hear(file: Annotated[Path, typer.Argument(help="A recording.")]) -> None:
        """Print what is said in a recording, as [stt] says."""
        from .voice import hear

        hear(app, file)


def add_policy(cli: typer.Typer, app: Hookline) -> None:
    """`hookline policy`."""
    group = typer.Typer(
        help="Check, test and explain policies; answer approvals.", no_args_is_help=True
    )
    cli.add_typer(group, name="policy")

    @group.command()
    def check(
        packs: Annotated[
            list[str] | None, typer.Argument(help="Packs or folders; by default those in use.")
        ] = None,
        workspace: Workspace = None,
    ) -> None:
        """Parse the policies and check them against their schema."""
        from .policy import check_policy

        configure(app, None, workspace)
        check_policy(app, packs)

    @group.command()
    def test(
        file: Annotated[Path, typer.Argument(help="A table of cases, TOML or YAML.")],
        pack: Annotated[
            list[str] | None, typer.Option(help="Judge by these packs, beside those in use.")
        ] = None,
        workspace: Workspace = None,
    ) -> None:
        """Judge a table of calls and compare with what is expected."""
        from .policy import test_policy

        configure(app, None, workspace)
        test_policy(app, file, pack or [])

    @group.command()
    def explain(
        tool: Annotated[str | None, typer.Argument(help="The tool.")] = None,
        arguments: Annotated[str, typer.Argument(help="Its arguments as JSON.")] = "{}",
        session: Annotated[str | None, typer.Option(help="The session that calls.")] = None,
        call: Annotated[
            str | None, typer.Option(help="A call of the session that was recorded.")
        ] = None,
        user: Annotated[str | None, typer.Option(help="The user on whose behalf.")] = None,
        channel: Annotated[str | None, typer.Option(help="The channel of that user.")] = None,
        workspace: Workspace = None,
        as_json: Json = False,
    ) -> None:
        """Say how a call would be decided, or was, and by whom."""
        from .policy import explain_call, explain_recorded

        configure(app, None, workspace)
        if call is not None:
            explain_recorded(app, session, call, user, channel, as_json=as_json)
        else:
            explain_call(app, tool, arguments, session, user, channel, as_json=as_json)

    @group.command()
    def approvals(
        revoke: Annotated[str | None, typer.Option(help="Take this approval back.")] = None,
        answer: Annotated[
            tuple[str, str] | None,
            typer.Option(
                help="Answer a question that waits: its id, and yes, session, '10 minutes' or no."
            ),
        ] = None,
        everything: Annotated[
            bool, typer.Option("--all", help="Also what is used, expired or revoked.")
        ] = False,
        as_json: Json = False,
    ) -> None:
        """Show, answer and revoke approvals."""
        from .approval import answer_question, list_approvals, revoke_approval

        if revoke is not None:
            revoke_approval(app, revoke)
        elif answer is not None:
            answer_question(app, *answer)
        else:
            list_approvals(app, everything=everything, as_json=as_json)


def add_audit(cli: typer.Typer, app: Hookline) -> None:
    """`hookline audit`."""
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
        from .audit import show_decisions

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
        from .audit import verify_log

        verify_log(app, head, key, witness, complete=complete)
