import gc
import os
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from hookline.cli import main
from hookline.config import Config

PLACES = {
    "user": "home/config.toml",
    "default": "home/profiles/default/config.toml",
    "work": "home/profiles/work/config.toml",
    "project": "workspace/.hookline/config.toml",
}


@pytest.fixture
def write(tmp_path) -> Callable[[str, str], Path]:
    """Write a file of settings: `write("user", 'model = "a"')`."""
    (tmp_path / "workspace").mkdir(exist_ok=True)

    def write(place: str, text: str) -> Path:
        path = tmp_path / PLACES[place]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def load(tmp_path) -> Callable[..., Config]:
    """Load the settings; keywords that are variables stand for the environment."""

    def load(**given) -> Config:
        environ = {name: given.pop(name) for name in list(given) if name.isupper()}
        given = {"workspace": tmp_path / "workspace", **given}
        return Config.load(tmp_path / "home", environ=environ, **given)

    return load


def environment(tmp_path, **more) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HOOKLINE_")}
    return {**kept, "HOOKLINE_HOME": str(tmp_path / "home"), "NO_COLOR": "1", "COLUMNS": "120", **more}


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    """Run the command line in the workspace, with standard input that is no terminal.

    It runs in this process, from its entry point to its exit code: a new one each time would take
    longer than everything else.
    """
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)

    def run(*arguments, stdin="", **env):
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("HOOKLINE_")]:
                patch.delenv(name)
            for name, value in environment(tmp_path, **env).items():
                patch.setenv(name, value)
            patch.chdir(workspace)
            patch.setattr(sys, "argv", ["hookline", *map(str, arguments)])
            patch.setattr(sys, "stdin", StringIO(stdin))
            capsys.readouterr()
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = ended.code or 0
            finally:
                gc.unfreeze()
                gc.enable()
        said = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err)

    return run


@pytest.fixture
def answering(tmp_path) -> str:
    """The name of a model that answers every request."""
    path = tmp_path / "answers.toml"
    path.write_text('repeat = true\n\n[[turns]]\ntext = "ok"\n')
    return f"scripted:{path}"
