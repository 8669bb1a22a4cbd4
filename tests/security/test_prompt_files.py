# ruff: noqa: E501 -- tables
"""Files that a project puts into the prompt cannot lead to secrets, or to anything but text."""

import os
import socket

import pytest

from hookline.ext.skills.instructions import instructions
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.runtime.app import Hookline

SECRET = "canary-7b1d90e2"
HEAD = f"---\nname: helper\ndescription: {SECRET}\n---\n{SECRET}\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A user's home with secrets, and a project within it."""
    home = tmp_path / "user"
    work = home / "project"
    for name in (
        ".ssh/id_ed25519", ".ssh/notes.md", "private.md", ".netrc", "project/.env", "project/.git/config",
        "project/.git/notes.md", "project/.hookline/hidden.md", "project/config/credentials",
        "project/.secret.md", "project/credentials.json", "project/secrets.txt", "project/id_rsa",
    ):  # fmt: skip
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CANARY", SECRET)
    return work


TARGETS = [
    ".env", "./.env", "config/../.env", ".git/config", ".git/notes.md", ".hookline/hidden.md", ".secret.md",
    "config/credentials", "credentials.json", "secrets.txt", "id_rsa", "../.ssh/id_ed25519",
    "../.ssh/notes.md", "../private.md", "../.netrc", "{home}/.ssh/id_ed25519", "{home}/private.md",
    "{work}/.env", "/proc/self/environ", "/proc/self/cmdline", "/etc/passwd", "/dev/zero", "/dev/tty", "/",
    ".", "..", "AGENTS.md", "missing", "one.md", "folder/.env", "folder/../private.md",
]  # fmt: skip
"""What a link leads to. `one.md` leads on to `.env`, and `folder` is the project itself."""


def link(path, target, work):
    path.parent.mkdir(parents=True, exist_ok=True)
    target = target.format(home=work.parent, work=work)
    path.symlink_to(target if path.parent == work or target.startswith("/") else work / target)


async def told(work, home, skills=("helper",)) -> str:
    """Everything that the model gets in a turn in which it asks for skills and their files."""
    app = Hookline(home=home, workspace=work)
    app.load_hooks(packages=False)
    asked = [Call("load_skill", {"name": name}) for name in skills]
    asked += [Call("read_skill_file", {"name": name, "path": "notes.md"}) for name in skills]
    model = ScriptedModel([Turn(tool_calls=asked), "Done."])
    app.models.add(model)
    app.model = model.name
    async with app.running():
        await app.process({"content": "go"})
    assert len(model.requests) == 2
    return "".join(f"{request.system}{request.messages}" for request in model.requests)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("workspace", [".", "sub"])
def test_instructions_that_are_a_link_to_something_else_are_left_out(place, target, workspace):
    (place / "sub").mkdir()
    link(place / "AGENTS.md", target, place)
    assert instructions(place / workspace) == []


@pytest.mark.parametrize("target", [".env", "{home}/.ssh/notes.md", "/proc/self/environ"])
async def test_a_turn_tells_the_model_nothing_of_them(place, tmp_path, target):
    link(place / "AGENTS.md", target, place)
    assert SECRET not in await told(place, tmp_path / "state")


@pytest.mark.parametrize("kind", ["SKILL.md", "notes.md", "folder"])
async def test_no_link_of_a_skill_puts_anything_into_the_prompt(place, tmp_path, kind):
    names = [f"s{number}" for number in range(len(TARGETS))]
    for name, target in zip(names, TARGETS, strict=True):
        skill = place / ".agents" / "skills" / name
        link(skill if kind == "folder" else skill / kind, target, place)
        if kind == "notes.md":
            (skill / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Helps.\n---\n")
    assert SECRET not in await told(place, tmp_path / "state", names)


@pytest.mark.parametrize("target", TARGETS)
async def test_no_link_in_the_place_of_the_skills_does(place, tmp_path, target):
    link(place / ".agents" / "skills", target, place)
    app = Hookline(home=tmp_path / "state", workspace=place)
    app.load_hooks(packages=False)
    async with app.running():
        assert SECRET not in f"{await app.hooks.call('system_prompt', prompt='', state={})}"


@pytest.mark.parametrize(
    "what", ["pipe", "socket", "folder", "huge", "loop", "not text", "NUL", "unreadable"]
)
@pytest.mark.parametrize("kind", ["AGENTS.md", "SKILL.md"])
async def test_a_special_file_holds_up_nothing(place, tmp_path, kind, what, monkeypatch):
    path = place / "AGENTS.md" if kind == "AGENTS.md" else place / ".agents/skills/helper/SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(path.parent)  # the name of a socket must be short
    if what == "pipe":
        os.mkfifo(path)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    elif what == "folder":
        path.mkdir()
    elif what == "loop":
        (path.parent / "b").symlink_to(path)
        path.symlink_to("b")
    elif what == "huge":
        with path.open("wb") as file:
            file.truncate(50_000_000_000)
    elif what == "not text":
        path.write_bytes(f"\xff\xfe{SECRET}".encode("latin-1"))
    elif what == "NUL":
        path.write_text(f"\0{SECRET}")
    else:
        path.symlink_to("/proc/self/mem")
    said = await told(place, tmp_path / "state")
    assert SECRET not in said


@pytest.mark.parametrize(
    "target", ["CLAUDE.md", "docs/agents.md", "./docs/../CLAUDE.md", "{work}/CLAUDE.md"]
)
async def test_a_link_to_another_markdown_file_of_the_project_counts(place, tmp_path, target):
    (place / "docs").mkdir()
    for name in ("CLAUDE.md", "docs/agents.md"):
        (place / name).write_text("Be brief.")
    (place / "AGENTS.md").symlink_to(target.format(work=place))
    assert "Be brief." in await told(place, tmp_path / "state")
