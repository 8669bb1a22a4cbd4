"""The command line as it runs: outlines of all commands, and the whole of the one that is named."""

from collections.abc import Callable

import pytest
import typer

from hookline.cli.root import add_root_options, outlined
from hookline.hooks import hookimpl
from hookline.runtime.app import Hookline


class Commands:
    """A plugin with a command, a group, and commands that stand beside those of the root."""

    @hookimpl
    def register_cli_commands(self, app: typer.Typer) -> None:
        @app.command()
        def greet_all(name: str, *, loud: bool = False) -> None:
            """Greet somebody."""
            typer.echo(f"hello {name}{'!' if loud else ''}")

        @app.command(hidden=True)
        def secret() -> None:
            """Be found by those who know."""
            typer.echo("found")

        group = typer.Typer(help="Count things.")
        app.add_typer(group, name="count")

        @group.command()
        def up(to: int = 3) -> None:
            """Count to a number."""
            typer.echo(" ".join(map(str, range(1, to + 1))))

        @group.command()
        def down() -> None:
            """Count back."""

        beside = typer.Typer()
        app.add_typer(beside)

        @beside.command()
        def aside(word: str = "psst") -> None:
            """Say something aside."""
            typer.echo(word)


@pytest.fixture
def cli(tmp_path) -> typer.Typer:
    app = Hookline(home=tmp_path, workspace=tmp_path)
    app.load_hooks(packages=False)
    app.hooks.add(Commands(), name="commands")
    return app.create_cli_app()


def said(command: Callable[..., None], capsys: pytest.CaptureFixture[str], words: str) -> str:
    """What a command line says, and its exit code."""
    with pytest.raises(SystemExit) as left:
        command(words.split(), prog_name="hookline")
    seen = capsys.readouterr()
    return f"{seen.out}{seen.err}{left.value.code or 0}"


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "run --help",
        "policy --help",
        "policy explain --help",
        "greet-all --help",
        "greet-all",
        "greet-all Ann --loud",
        "greet-all Ann --quietly",
        "count --help",
        "count up --to 4",
        "count up --to many",
        "aside --word hush",
        "secret",
        "no-such-command",
        "polcy check",
        "policy chek",
    ],
)
def test_it_says_and_does_what_was_declared(cli, capsys, words):
    assert said(outlined(cli), capsys, words) == said(cli, capsys, words)


def test_commands_that_are_not_named_are_not_looked_into(capsys):
    cli = typer.Typer(add_completion=False, rich_markup_mode=None)
    add_root_options(cli, lambda: None)

    @cli.command()
    def broken(value: "Nowhere") -> None:  # noqa: F821  # pyright: ignore
        """Cannot be read."""

    @cli.command()
    def sound() -> None:
        """Can be read."""
        typer.echo("heard")

    assert "Cannot be read." in said(outlined(cli), capsys, "--help")
    assert said(outlined(cli), capsys, "sound") == "heard\n0"
    with pytest.raises(NameError):
        outlined(cli)(["broken", "1"])
