from collections.abc import Callable
from pathlib import Path

import pytest

from hookline.config import Config

from .. import commandline

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


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    """Run the command line in the workspace, with standard input that is no terminal."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    return commandline.here(tmp_path / "home", workspace, monkeypatch, capsys)


@pytest.fixture
def answering(tmp_path) -> str:
    """The name of a model that answers every request."""
    path = tmp_path / "answers.toml"
    path.write_text('repeat = true\n\n[[turns]]\ntext = "ok"\n')
    return f"scripted:{path}"
