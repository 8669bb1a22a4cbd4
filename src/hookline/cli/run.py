"""`hookline run`: one message in, one answer out."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookline.channel import Channel, Note, Question, SignedAnswer
from hookline.errors import BadInput
from hookline.events import SessionStartEvent
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.runtime.attachments import attachments
from hookline.system.log_redaction import without_secrets
from hookline.text.printable import visible
from hookline.types import Envelope, HookContext, Part, StreamEvent, TextPart, field_of

from . import FAILED, TERMINATED
from .json_output import json_option, print_json
from .models import DownloadProgress
from .options import ApproveAll, Latest, Model, Workspace, configure
from .orphans import adopting
from .terminal import direct, diverted, style, unguarded

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline, TurnResult

    from .chat.plain import LineReader


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline run`."""

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
        yes: ApproveAll = False,
        latest: Latest = False,
        raw: Annotated[
            bool,
            typer.Option("--raw", help="Write the answer as it is, with its control characters."),
        ] = False,
    ) -> None:
        """Answer one message."""
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


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of the command line."""

    message: str | None
    channel: str
    chat_id: str | None
    sender_id: str
    session_id: str | None
    as_json: bool = False
    stream: bool = True
    resume: bool = False
    latest: bool = False
    raw: bool = False
    yes: bool = False
    """Approve everything: no one is there to ask."""


def run_once(app: Hookline, order: RunOptions) -> None:
    """Make one turn and leave with its exit code."""
    printer = Printer(as_json=order.as_json, stream=order.stream, raw=order.raw, yes=order.yes)
    try:
        check_order(order)
        message = None if order.resume else envelope_of(order, app.workspace)
        result = asyncio.run(turn(app, order, message, printer))
    except Exception as error:
        printer.end()
        raise typer.Exit(tell(error, as_json=order.as_json)) from None
    except asyncio.CancelledError:
        printer.end()
        raise typer.Exit(TERMINATED) from None
    printer.end()
    if order.as_json:
        print_json(as_data(result))
    elif result.stopped is not None:
        typer.echo(f"hookline: {without_secrets(result.stopped)}", err=True)


async def turn(app: Hookline, order: RunOptions, message: Any, printer: Printer) -> TurnResult:
    """One turn inside a running scope; being asked to end cancels it, and its tools with it."""
    end_when_asked()

    async def started(event: SessionStartEvent, ctx: HookContext) -> None:
        await tell_history(app, ctx.session_id)

    app.hooks.register("session_start", started)
    shown = nullcontext() if order.as_json else diverted(printer.printed)
    with shown:
        return await answered(app, order, message, printer)


async def answered(app: Hookline, order: RunOptions, message: Any, printer: Printer) -> TurnResult:
    """Answer the message, or continue a turn that was cut off."""
    async with adopting(), app.running(printer):
        if message is not None:
            name = await session_of(app, order)
            message = {**message, "session_id": name} if name else message
            return await app.process(message, printer)
        session_id = order.session_id or await app.sessions.cut_off()
        result = await app.resume(session_id, printer) if session_id else None
        if result is None:
            where = f"session {order.session_id!r} has" if order.session_id else "there is"
            raise BadInput(f"{where} no turn that was cut off; nothing to resume")
        return result


async def session_of(app: Hookline, order: RunOptions) -> str | None:
    """Return the session of the message; None if it follows from the chat."""
    if order.latest:
        return await latest_session(app, order.channel)
    if order.session_id or order.chat_id:
        return order.session_id
    return app.sessions.fresh(app.sessions.project_session(order.channel))


async def latest_session(app: Hookline, channel: str) -> str:
    """Return the session that `--continue` means."""
    found = await app.sessions.latest(channel)
    if found is None:
        raise BadInput(
            f"there is no session to continue in {app.workspace}: leave --continue out, or name a "
            "session with --session (`hookline tape list` shows them)"
        )
    return found


async def tell_history(app: Hookline, session_id: str) -> None:
    """Say which session continues, and how long it is; a subagent's is part of its parent's."""
    if "/" not in session_id and (history := await app.sessions.history(session_id)):
        beside(f"hookline: continuing session {session_id}: {history}")


def end_when_asked() -> None:
    """Let SIGTERM cancel the turn in good order."""
    task = asyncio.current_task()
    if task is not None and hasattr(signal, "SIGTERM") and sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


class Printer(Channel):
    """Prints the answer to standard output, and everything else to standard error."""

    def __init__(
        self, *, as_json: bool = False, stream: bool = True, raw: bool = False, yes: bool = False
    ) -> None:
        self.quiet = as_json or not stream
        self._as_json = as_json
        self._yes = yes
        self._out = unguarded(sys.stdout) if raw else direct(sys.stdout)
        """With `raw`, the answer is written unchanged; a terminal would interpret escape codes in it.
        """
        self._progress = DownloadProgress()
        self._terminal: LineReader | None = None
        self.said = ""
        self.open_line = False

    def stream(self, event: StreamEvent) -> None:
        """Show one piece of the stream."""
        if event.kind == "progress":
            self._progress(**event.data)
        if self.quiet:
            return
        if event.kind == "text":
            self._print(event.data["delta"], end="")
            self.said += event.data["delta"]
            self.open_line = not event.data["delta"].endswith("\n")
        elif event.kind == "tool_call":
            self.end()
            self.said = ""
            beside(f"→ {event.data['name']} {event.data['arguments']}")
        elif event.kind == "tool_result" and event.data["is_error"]:
            beside(f"✗ {event.data['name']}: {event.data['content']}")

    async def send(self, message: Envelope) -> bool:
        """Print a message that was not shown already as it came; parts that are no text are named."""
        if self._as_json:  # it is in the result
            return True
        parts: list[Part] = field_of(message, "parts") or []
        content = field_of(message, "content", "")
        if content != self.said and (content or not parts):
            self.end()
            self._print(content)
        for part in parts:
            self.end()
            self._print(part.text if isinstance(part, TextPart) else f"[{part.type}]")
        return True

    def printed(self, line: str, is_error: bool) -> None:
        """Print a line that a hook printed, on a line of its own."""
        self.end()
        print(line, file=direct(sys.stderr) if is_error else self._out, flush=True)

    def notify(self, note: Note) -> None:
        """Print a note."""
        self.end()
        beside(f"hookline: {note.text}")

    async def ask(self, question: Question) -> str | None:
        """Ask on the terminal, if there is one; with `--yes`, approve."""
        from .chat.plain import LineReader

        self.end()
        if question.is_approval and self._yes:
            return SignedAnswer("approve", "--yes")
        out = direct(sys.stderr)
        if not (LineReader.is_terminal() and out.isatty()):
            beside(f"hookline: {question.unanswered}")
            if question.is_approval:
                beside(f"  {visible(question.text)}\n  {HOW_TO_APPROVE}")
            return None
        self._terminal = self._terminal or LineReader(out)
        try:
            return await self._terminal.answer(question)
        except EOFError:
            return question.default

    def end(self) -> None:
        """Finish the line that was streamed."""
        if self.open_line:
            self._print("")
        self.open_line = False

    def _print(self, text: str, end: str = "\n") -> None:
        print(text, end=end, file=self._out, flush=True)


HOW_TO_APPROVE = (
    "`hookline run --yes` approves, a terminal or `hookline chat` asks, and [policy] of the settings "
    "decides"
)


def beside(text: str) -> None:
    """Say on standard error what happens, without secrets."""
    print(style(without_secrets(text), "dim", err=True), file=direct(sys.stderr), flush=True)


def check_order(order: RunOptions) -> None:
    """Refuse options that contradict each other."""
    if order.session_id is not None and not order.session_id.strip():
        raise BadInput("--session needs the name of a session")
    if order.resume and order.message is not None:
        raise BadInput("--resume continues a turn and takes no message")
    chosen = {
        "--session": order.session_id, "--chat-id": order.chat_id,
        "--continue": order.latest, "--resume": order.resume and not order.session_id,
    }  # fmt: skip
    given = [option for option, value in chosen.items() if value]
    if len(given) > 1:
        raise BadInput(f"{' and '.join(given)} each choose the session: give one of them")


def envelope_of(order: RunOptions, workspace: Path) -> dict[str, Any]:
    """The inbound message, from the argument, with the files that it names, or standard input."""
    content = order.message if order.message is not None else read_input()
    if not content.strip():
        raise BadInput('the message is empty: hookline run "your question"')
    envelope: dict[str, Any] = {
        "content": content,
        "channel": order.channel,
        "chat_id": order.chat_id or "local",
        "sender_id": order.sender_id,
    }
    # Piped text was not written here: an @ in it names no local file.
    if order.message is not None and (parts := attachments(content, workspace)):
        envelope["attachments"] = parts
    return envelope


def read_input() -> str:
    """The message from a pipe; a terminal is not waited for."""
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInput('no message: hookline run "your question", or pipe one in')
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"standard input is not UTF-8 text (byte {error.start}): convert it first"
        ) from None


def tell(error: Exception, *, as_json: bool) -> int:
    """Tell an error in a line or two, and give the exit code for it."""
    text = without_secrets(str(error) if isinstance(error, HooklineError) else error_text(error))
    if as_json:
        print_json({"error": type(error).__name__, "message": text})
    else:
        typer.echo(f"hookline: {text}", err=True)
    return error.exit_code if isinstance(error, HooklineError) else FAILED


def as_data(result: TurnResult) -> dict[str, Any]:
    """A turn's result as JSON, with the parts that handlers added to the answer."""
    from hookline.agent.journal import plain_part

    return {
        "session_id": result.session_id,
        "content": result.model_output,
        "outbounds": [
            {"content": field_of(o, "content", ""), "channel": field_of(o, "channel")}
            for o in result.outbounds
        ],
        "parts": [plain_part(part) for part in result.parts],
        "usage": result.usage,
        "stopped": result.stopped,
    }
