from collections.abc import Callable
from pathlib import Path

import pytest

from hookline.ext.skills import Skills

Write = Callable[..., Path]


@pytest.fixture
def places(tmp_path, monkeypatch) -> Path:
    """A folder with a workspace, a home, a profile and packages; the home is the user's."""
    for name in ("workspace", "home", "profile", "packages"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


FOLDERS = {
    "project": "workspace/.agents/skills",
    "user": "home/.agents/skills",
    "profile": "profile/skills",
    "package": "packages/skills",
}


@pytest.fixture
def write(places) -> Write:
    """Write a skill: `write("review")`, or with the whole text of its file."""

    def write(name: str, text: str | bytes | None = None, *, source: str = "project") -> Path:
        folder = places / FOLDERS[source] / name
        folder.mkdir(parents=True)
        if text is None:
            text = f"---\nname: {name}\ndescription: The {source}'s {name}.\n---\n\nDo {name}.\n"
        data = text.encode() if isinstance(text, str) else text
        (folder / "SKILL.md").write_bytes(data)
        return folder

    return write


@pytest.fixture
def discover(places) -> Callable[..., Skills]:
    def discover(specs=()) -> Skills:
        return Skills.discover(
            places / "workspace",
            places / "home",
            specs=specs,
            profile=places / "profile",
            packages=[str(places / "packages")],
        )

    return discover
