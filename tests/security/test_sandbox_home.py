"""A home in unusual places: confined children start, and still see nothing of it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.sandbox import Sandbox

from .confined import finished

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")


@pytest.fixture(params=["/tmp", "/var/tmp", "/opt"])
def user_home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a key, below a folder that children get as a private one or as it is."""
    try:
        home = Path(tempfile.mkdtemp(dir=request.param))
    except OSError:
        pytest.skip(f"cannot write to {request.param}")
    (home / ".ssh").mkdir()
    (home / ".ssh/key").write_text("t0p-s3cret")
    (home / "work").mkdir()
    monkeypatch.setenv("HOME", str(home))
    yield home
    shutil.rmtree(home)


@needs_bubblewrap
@pytest.mark.parametrize("profile", ["read-only", "workspace", "open"])
def test_a_child_starts_and_sees_no_key(user_home: Path, profile: str) -> None:
    sandbox = Sandbox(workspace=user_home / "work", home=user_home / ".hookline")
    command = f"echo began; cat {user_home}/.ssh/key; ls -a {user_home}"
    with sandbox.launch(
        ["/bin/sh", "-c", command],
        cwd=user_home / "work",
        env={"PATH": "/usr/bin:/bin"},
        profile=profile,  # pyright: ignore[reportArgumentType]
    ) as launch:
        ended = finished(launch)
    assert b"began" in ended.stdout
    assert b"t0p-s3cret" not in ended.stdout + ended.stderr
