"""The other sandboxes: sandlock with real processes, Seatbelt by the text of its profile."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline.sandbox import Sandbox, SandboxSettings, seatbelt
from hookline.sandbox.landlock import granted, installed
from hookline.sandbox.view import FileView

from .confined import finished


def landlock_is_missing() -> bool:
    """Whether sandlock is not installed, or the kernel does not have what it needs."""
    if not installed():
        return True
    import sandlock  # pyright: ignore[reportMissingTypeStubs]

    return sandlock.landlock_abi_version() < sandlock.min_landlock_abi()


needs_sandlock = pytest.mark.skipif(landlock_is_missing(), reason="needs sandlock and Landlock")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a key and a workspace."""
    home = tmp_path / "user"
    for name in (".ssh/key", "notes", "code/project/file", ".hookline/config.toml"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("t0p-s3cret" if "project" not in name else "hello\n")
    monkeypatch.setenv("HOME", str(home))
    return home


def run(home: Path, command: str, profile: Any = "workspace") -> subprocess.CompletedProcess[bytes]:
    sandbox = Sandbox(workspace=home / "code/project", home=home / ".hookline")
    sandbox.__dict__["_found"] = ("sandlock", "")
    environ = {**os.environ, "OPENAI_API_KEY": "t0p-s3cret"}
    cwd = home / "code/project"
    with sandbox.launch(["/bin/sh", "-c", command], cwd=cwd, env=environ, profile=profile) as launch:
        done = finished(launch, timeout=60)
    sandbox.close()
    return done


ATTACKS = [
    "cat ~/.ssh/key",
    "cat ../../.ssh/key",
    "cat ~/notes",
    "cat ~/.hookline/config.toml",
    "cat /etc/shadow",
    "ln -s ~/.ssh/key k && cat k",
    "ln ~/.ssh/key l",
    "cat /proc/self/root$HOME/.ssh/key",
    "echo x > ~/planted",
    "echo x > ../planted",
    "echo x > /etc/planted",
    "echo x > /tmp/planted-by-sandlock",
    "mv file ../planted",
    "printenv OPENAI_API_KEY",
    "kill -0 $PPID",
    "kill -0 1",
    "cat /proc/1/environ | grep -a .",
    "python3 -c 'import socket; socket.socket().connect((\"127.0.0.1\", 22))'",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
    "unshare -U true",
    "mount -t tmpfs none /mnt",
]


@needs_sandlock
def test_sandlock_holds(places: Path) -> None:
    lines = [f"({attack}) && echo 'got through:' {shlex.quote(attack)}" for attack in ATTACKS]
    done = run(places, "\n".join([*lines, "echo end"]))
    assert done.stdout.decode().splitlines()[-1:] == ["end"], done.stderr
    assert b"got through" not in done.stdout, done.stdout
    assert b"t0p-s3cret" not in done.stdout
    assert not list(places.rglob("planted*"))


@needs_sandlock
def test_sandlock_lets_work_go_on_and_leaves_nothing_behind(places: Path) -> None:
    done = run(
        places, "cat file; echo new > made; mkdir a; echo t > $TMPDIR/x; (setsid sleep 300 &); ls"
    )
    assert done.stdout.split() == [b"hello", b"a", b"file", b"made"], done.stderr
    assert run(places, "exit 7").returncode == 7
    assert run(places, "echo x > file", "read-only").returncode != 0


def test_a_folder_with_a_secret_is_granted_by_its_other_entries(tmp_path: Path) -> None:
    for name in ("a/secret", "a/open", "b/x"):
        (tmp_path / name).mkdir(parents=True)
    found = list(granted(tmp_path, [tmp_path / "a" / "secret"]))
    assert found == [tmp_path / "a" / "open", tmp_path / "b"]


def test_a_profile_for_macos_denies_after_it_allows() -> None:
    view = FileView(
        "workspace",
        emptied=[Path("/Users")],
        readable=[Path("/Users/ada/.pyenv")],
        writable=[Path("/Users/ada/project")],
        readonly=[Path("/Users/ada/project/.git/hooks")],
        masked=[Path('/Users/ada/project/odd "name')],
    )
    lines = seatbelt.profile(view, Path("/private/tmp/x"), network=False).splitlines()
    order = [
        "(deny default)",
        '(deny file-read* file-write* (subpath "/Users"))',
        '(allow file-read* (subpath "/Users/ada/.pyenv"))',
        '(allow file-write* (subpath "/Users/ada/project"))',
        '(deny file-write* (subpath "/Users/ada/project/.git/hooks"))',
        '(deny file-read* file-write* (subpath "/Users/ada/project/odd \\"name"))',
        "(deny network*)",
    ]
    positions = [lines.index(line) for line in order]
    assert positions == sorted(positions)
    assert "(allow network*)" in seatbelt.profile(view, Path("/t"), network=True)


def test_without_a_sandbox_it_says_so_and_still_filters_the_environment(tmp_path: Path) -> None:
    sandbox = Sandbox(
        workspace=tmp_path, home=tmp_path / "home", settings=SandboxSettings(enabled=False)
    )
    assert (sandbox.name, sandbox.active) == ("none", False)
    assert "enabled = false" in sandbox.reason
    env = {"PATH": "/bin", "OPENAI_API_KEY": "x"}
    launch = sandbox.launch(["true"], cwd=tmp_path, env=env, secrets={"MINE": "y"})
    assert (launch.argv, launch.env) == (["true"], {"PATH": "/bin", "MINE": "y"})
