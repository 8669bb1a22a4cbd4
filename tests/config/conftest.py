import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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
def hookline(tmp_path):
    """Run the command line in the workspace, with standard input that is no terminal."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)

    def run(*arguments, stdin="", **env):
        return subprocess.run(
            [sys.executable, "-m", "hookline", *map(str, arguments)],
            input=stdin, capture_output=True, text=True, cwd=workspace, check=False,
            env=environment(tmp_path, **env),
        )  # fmt: skip

    return run


@pytest.fixture
def answering(tmp_path) -> str:
    """The name of a model that answers every request."""
    path = tmp_path / "answers.toml"
    path.write_text('repeat = true\n\n[[turns]]\ntext = "ok"\n')
    return f"scripted:{path}"
