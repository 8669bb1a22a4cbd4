"""Writing: settings into a file, with its comments and layout kept, all or nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hookline.private import private_folder

from .errors import ConfigError
from .layers import merged, parse, read_file


def write(path: Path, changes: Mapping[str, Any]) -> None:
    """Merge tables into a file, which is made if it is not there.

    The new text is read back and compared before it takes the file's place in one step. A file with
    secrets in it is nobody else's: a new one can be read by its owner alone.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    before = read_file(path) or {}
    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8-sig") if path.exists() else "")
        _put(document, changes)
        text = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigError(f"cannot change {path}: {error}; edit it by hand") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if parse(text, str(path)) != merged(before, changes):
        raise ConfigError(f"cannot change {path} without changing more than was asked: edit it by hand")
    _replace(path, text)


def _put(table: Any, changes: Mapping[str, Any]) -> None:
    import tomlkit

    for name, value in changes.items():
        if not isinstance(value, Mapping):
            table[name] = value
            continue
        within = cast("Mapping[str, Any]", value)
        if not isinstance(table.get(name), dict):
            # `[providers.openai]` needs no `[providers]` above it.
            above = bool(within) and all(isinstance(each, Mapping) for each in within.values())
            table[name] = tomlkit.table(is_super_table=above)
        _put(table[name], within)


def _replace(path: Path, text: str) -> None:
    real = path.resolve()  # a link stays one: people keep such files elsewhere
    part = ""
    try:
        private_folder(real.parent)
        mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
        handle, part = tempfile.mkstemp(prefix=".config-", suffix=".part", dir=real.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(part).chmod(mode)
        Path(part).replace(real)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    finally:
        if part:
            Path(part).unlink(missing_ok=True)
