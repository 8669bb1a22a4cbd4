"""`hookline voice`: try by hand what speaks and what listens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from hookline.errors import BadInput
from hookline.system.private_files import replaced
from hookline.types import AudioPart

if TYPE_CHECKING:
    from hookline.ext.voice import Voice
    from hookline.ext.voice.engine import SpokenFormat
    from hookline.runtime.app import Hookline


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline voice`."""
    group = typer.Typer(help="Try speech synthesis and recognition.", no_args_is_help=True)
    cli.add_typer(group, name="voice")

    @group.command()
    def say(
        text: Annotated[str, typer.Argument(help="What to say; Markdown is read as people would.")],
        file: Annotated[Path, typer.Argument(help="Where to write: .wav, .ogg or .mp3.")],
    ) -> None:
        """Speak a text into a file, as [tts] says."""
        speak(app, text, file)

    @group.command()
    def hear(file: Annotated[Path, typer.Argument(help="A recording.")]) -> None:
        """Print what is said in a recording, as [stt] says."""
        transcribe(app, file)


def speak(app: Hookline, text: str, file: Path) -> None:
    """Write the sound of a text; a file appears only when it is complete."""
    asyncio.run(_speak(app, text, file))


def transcribe(app: Hookline, file: Path) -> None:
    """Print what is said in a recording."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}") from None
    typer.echo(asyncio.run(_transcribe(app, AudioPart(data))))


async def _speak(app: Hookline, text: str, file: Path) -> None:
    voice = _voice(app)
    try:
        part = await voice.say(text, form=_form(file))
    finally:
        await voice.close()
    if part is None:
        raise BadInput("there is nothing to say aloud in the text")
    try:
        with replaced(file) as unfinished:
            unfinished.write_bytes(part.data)
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from None
    typer.echo(f"written to {file} ({part.mime_type}, {len(part.data)} bytes)")


async def _transcribe(app: Hookline, audio: AudioPart) -> str:
    voice = _voice(app)
    try:
        return await voice.hear(audio)
    finally:
        await voice.close()


def _voice(app: Hookline) -> Voice:
    app.plugins.check_loaded("voice", "this command")
    from hookline.ext.voice import Voice

    return Voice.of(app)


def _form(file: Path) -> SpokenFormat:
    """The format that a file's name asks for."""
    from hookline.ext.voice.sound import SPOKEN

    form = file.suffix.removeprefix(".").lower()
    if form not in SPOKEN:
        raise BadInput(f"{file} must end in {', '.join(f'.{each}' for each in SPOKEN)}")
    return cast("SpokenFormat", form)
