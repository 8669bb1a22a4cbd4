"""The sandbox of unusual workspaces: what they may do, and what they must not open."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline.sandbox import Sandbox, SandboxError
from hookline.sandbox.sandbox import probe
from hookline.system.children.process import run

from ..tables import each_row
from .sandbox_probe import SECRET

pytestmark = pytest.mark.skipif(probe()[0] != "bubblewrap", reason=f"needs bubblewrap: {probe()[1]}")


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A home outside of /tmp, with a key and git's identity."""
    folder = Path(tempfile.mkdtemp(prefix=".sandbox-", dir=Path(__file__).resolve().parents[2]))
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "key").write_text(SECRET)
    (home / ".hookline").mkdir()
    (home / ".hookline" / "config.toml").write_text(SECRET)
    (home / "notes").write_text(SECRET)
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(home)
    yield home
    if before is not None:
        os.environ["HOME"] = before
    shutil.rmtree(folder, ignore_errors=True)


def git(folder: Path, *arguments: str) -> None:
    line = ["git", "-c", "protocol.file.allow=always", *arguments]
    subprocess.run(line, cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "file").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def shell(workspace: Path, command: str, cwd: Path | None = None, **wanted: Any) -> tuple[int, str]:
    """Run a command in the sandbox of a workspace: its exit code, and what it prints."""
    sandbox = Sandbox(workspace=workspace, home=Path(os.environ["HOME"]) / ".hookline")
    try:
        done = run(
            ["/bin/sh", "-c", command],
            cwd=cwd or workspace.resolve(),
            env={"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"]},
            sandbox=sandbox,
            timeout=60,
            **wanted,
        )
    finally:
        sandbox.close()
    return done.returncode, (done.stdout + done.stderr).decode()


PLANT = (
    "echo x > {git}/hooks/pre-commit && echo planted;"
    "echo x >> {git}/config && echo planted;"
    "git config core.fsmonitor evil && echo planted;"
    "mv {git} {git}.away && echo planted;"
    "rm -rf {git}/hooks && echo planted;"
    "cat ~/.ssh/key ~/.hookline/config.toml ~/notes; true"
)


def holds(workspace: Path, folder: Path) -> None:
    """Committing works in a workspace; planting in its git folder, and reading secrets, does not."""
    code, said = shell(
        workspace, "echo two >> new && git add new && git commit -q -m second && git log -1 --format=%s"
    )
    assert (code, said.splitlines()[-1:]) == (0, ["second"]), said
    code, said = shell(workspace, PLANT.format(git=f"'{folder}'"))
    assert "planted" not in said
    assert SECRET not in said


@each_row(
    "name",
    [
        "a b",
        "new\nline",
        "-rf",
        "--",
        "ümläut-日本",
        "quote'\"s",
        "dollar$HOME",
        "back\\slash",
        "*",
        "#x",
    ],
)
def test_a_workspace_with_an_odd_name(base: Path, name: str) -> None:
    work = repository(base / "odd" / name)
    assert shell(work, "echo x > made && cat made ~/.ssh/key 2>&1 | head -1") == (0, "x\n")
    assert (work / "made").read_text() == "x\n"
    assert shell(work, "echo x > .git/config")[0] != 0


def test_a_folder_of_a_repository(base: Path) -> None:
    top = repository(base / "code" / "mono")
    work = top / "packages" / "one"
    work.mkdir(parents=True)
    (work / "code").write_text("x")
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "package")
    holds(work, top / ".git")
    assert shell(work, "git status --porcelain")[1] == ""  # files above are not seen as deleted
    assert shell(work, f"echo x > '{top}/file'")[0] != 0
    assert shell(work, "git commit --allow-empty -m x", profile="read-only")[0] != 0


def test_a_folder_in_a_repository_of_the_home(base: Path) -> None:
    """The home itself is a repository of dot files: it does not become readable."""
    git(base, "init", "-q")
    try:
        work = base / "plain" / "folder"
        work.mkdir(parents=True)
        code, said = shell(work, "cat ~/notes ~/.ssh/key; echo x > ~/.git/config; echo x > made")
        assert code == 0, said
        assert SECRET not in said
        assert "[core]" in (base / ".git" / "config").read_text()
    finally:
        shutil.rmtree(base / ".git")


def test_a_linked_work_tree_and_a_folder_of_it(base: Path) -> None:
    top = repository(base / "code" / "main")
    work = base / "code" / "linked"
    git(top, "worktree", "add", "-q", "-b", "topic", str(work))
    holds(work, top / ".git")
    (work / "sub").mkdir()
    holds(work / "sub", top / ".git")
    assert shell(work, "echo x > .git")[0] != 0
    assert shell(work, f"echo x > '{top}/.git/worktrees/linked/gitdir'")[0] != 0


def test_a_submodule(base: Path) -> None:
    inner = repository(base / "code" / "library")
    top = repository(base / "code" / "super")
    git(top, "submodule", "add", "-q", str(inner), "lib")
    git(top, "commit", "-q", "-m", "submodule")
    holds(top / "lib", top / ".git" / "modules" / "lib")
    assert shell(top, "echo x > .git/modules/lib/config")[0] != 0
    assert shell(top, "echo x > .git/modules/lib/hooks/post-checkout")[0] != 0


def test_a_git_file_that_points_elsewhere_opens_nothing(base: Path) -> None:
    victim = repository(base / "code" / "victim")
    work = base / "code" / "pointing"
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {victim}/.git\n")
    assert shell(work, f"echo x > '{victim}/.git/description'")[0] != 0
    assert shell(work, f"cat '{victim}/file'")[0] != 0


def test_the_home_as_workspace(base: Path) -> None:
    (base / "projects").mkdir(exist_ok=True)
    code, said = shell(base, "echo x > projects/made && cat .ssh/key .hookline/config.toml; ls -a .ssh")
    assert (base / "projects" / "made").exists(), said
    assert SECRET not in said, code
    for target in (".bashrc", ".ssh/authorized_keys", ".hookline/config.toml", ".gitconfig"):
        assert shell(base, f"echo x > {target}")[0] != 0, target


@pytest.mark.parametrize("home", [True, False])
def test_the_whole_disk_as_workspace(base: Path, home: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not home:
        monkeypatch.setattr("hookline.sandbox.secrets.user_homes", list)
    target = base.parent / "planted"
    code, said = shell(
        Path("/"),
        f"echo x > '{target}'; echo x > /etc/planted; echo x > /planted;"
        "cat ~/.hookline/config.toml /etc/shadow | grep .",
    )
    assert not target.exists(), code
    assert SECRET not in said
    assert "root:" not in said


@pytest.mark.parametrize("folder", ["/proc", "/sys", "/dev", "/proc/self", "/sys/kernel"])
def test_a_folder_of_the_kernel_is_no_workspace(base: Path, folder: str) -> None:
    with pytest.raises(SandboxError, match="cannot be a workspace"):
        shell(Path(folder), "true")


def test_a_workspace_that_contains_hooklines_home(base: Path) -> None:
    work = base / "inside"
    (work / "state").mkdir(parents=True)
    (work / "state" / "config.toml").write_text(SECRET)
    sandbox = Sandbox(workspace=work, home=work / "state")
    command = "cat state/*; echo x > state/config.toml; mv state s; rm -rf state; echo x > made"
    done = run(["/bin/sh", "-c", command], cwd=work, sandbox=sandbox, timeout=60)
    sandbox.close()
    assert done.returncode == 0
    assert SECRET.encode() not in done.stdout
    assert (work / "state" / "config.toml").read_text() == SECRET
    assert (work / "made").exists()


def test_a_linked_workspace(base: Path) -> None:
    work = repository(base / "real")
    link = base / "link"
    link.symlink_to(work)
    assert shell(link, "echo x > made && cat ~/notes")[1].count(SECRET) == 0
    assert (work / "made").exists()
    assert shell(link, "echo x > .git/hooks/pre-commit")[0] != 0


def test_a_workspace_in_the_temporary_folder() -> None:
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as name,
        tempfile.NamedTemporaryFile(dir="/tmp") as other,
    ):
        other.write(SECRET.encode())
        other.flush()
        work = repository(Path(name) / "work")
        code, said = shell(
            work, f"echo x > made && ls /tmp; cat {other.name} ../*; echo x > ../planted"
        )
        assert (work / "made").exists(), (code, said)
        assert not (work.parent / "planted").exists()
        assert SECRET not in said
        assert Path(other.name).name not in said.splitlines()
