"""The prompt: keys, history and status line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    ThreadedCompleter,
    get_common_complete_suffix,
)
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.patch_stdout import StdoutProxy
from prompt_toolkit.styles import Style

from hookline.channel import Question
from hookline.errors import ChatInterrupted
from hookline.system.private_files import private_file, private_folder
from hookline.text.printable import is_unsafe, visible

from .history import ChatHistory
from .plain import forget_typed

if TYPE_CHECKING:
    from .screen import Screen

STYLE = Style.from_dict({"bottom-toolbar": "noreverse dim", "prompt": "bold ansicyan"})


class SpelledCharacters(dict[str, str]):
    r"""How characters are drawn: control characters as `^[`, others that cannot be seen as `\u202e`.

    prompt_toolkit only knows the former. Everything that it draws goes through this table: what is
    typed and pasted, completions, the status line.
    """

    def __contains__(self, sign: object) -> bool:
        return super().__contains__(sign) or (isinstance(sign, str) and is_unsafe(sign))

    def __missing__(self, sign: str) -> str:
        return visible(sign)


Char.display_mappings = SpelledCharacters(Char.display_mappings)


class Keyboard:
    """Reads messages from a terminal."""

    person = True

    def __init__(
        self, screen: Screen, history: ChatHistory, completer: Completer, status: Callable[[], str]
    ) -> None:
        self._screen = screen
        self._status = status
        self._session: PromptSession[str] = PromptSession(
            message=FormattedText([("class:prompt", "> ")]),
            history=history,
            completer=ThreadedCompleter(completer),
            complete_while_typing=True,
            multiline=True,
            prompt_continuation="  ",
            key_bindings=bindings(),
            bottom_toolbar=self._toolbar,
            style=STYLE,
            color_depth=color_depth(),
            enable_open_in_editor=True,
            reserve_space_for_menu=6,
        )
        self._asking: PromptSession[str] = PromptSession(
            key_bindings=bindings(question=True), color_depth=color_depth()
        )

    async def read(self) -> str:
        """The next message."""
        self._screen.prompting()
        with self._above():
            return await self._session.prompt_async()

    async def ask(self, question: Question) -> str:
        """Show a question and read a line. Anything typed before the question does not count as an
        answer.
        """
        self._screen.pause()
        try:
            self._screen.question(question)
            clear_typeahead(self._asking.input)
            forget_typed(self._asking.input.fileno())
            with self._above():
                return await self._asking.prompt_async(f"  {question.prompt} ")
        finally:
            self._screen.resume()

    @contextmanager
    def _above(self) -> Generator[None]:
        """Show what the screen shows meanwhile above the prompt."""
        with StdoutProxy(raw=True) as proxy, self._screen.writing_to(proxy):
            yield

    def _toolbar(self) -> FormattedText:
        return FormattedText([("class:bottom-toolbar", self._status())])


def bindings(*, question: bool = False) -> KeyBindings:
    """Enter sends; Alt-Enter, or a backslash before Enter, breaks the line; Ctrl-C wipes or leaves."""
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    @keys.add("<sigint>")
    def wipe(event: KeyPressEvent) -> None:
        if event.current_buffer.text and not question:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=ChatInterrupted(), style="class:aborting")

    @keys.add("tab")
    def complete(event: KeyPressEvent) -> None:
        complete_word(event.current_buffer)

    _ = send, new_line, wipe, complete
    return keys


def complete_word(buffer: Buffer) -> None:
    """Insert the unambiguous part; offer the rest."""
    state = buffer.complete_state
    if state is not None:
        offered = state.completions
    else:
        asked = CompleteEvent(completion_requested=True)
        offered = list(buffer.completer.get_completions(buffer.document, asked))
    if len(offered) == 1:
        buffer.cancel_completion()
        buffer.apply_completion(offered[0])
    elif state is not None:
        buffer.complete_next()
    elif offered:
        buffer.insert_text(get_common_complete_suffix(buffer.document, offered))
        buffer.start_completion()


def color_depth() -> ColorDepth | None:
    """Omit colours if they are turned off."""
    return ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None


def private(path: Path) -> Path:
    """A file that only its owner reads; what people type may be secret."""
    private_folder(path.parent)
    private_file(path)
    return path


@contextmanager
def unechoed() -> Generator[None]:
    """While an answer is shown, typed text waits for the next prompt instead of mixing in."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(fd, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
