"""Change settings in a file, all or nothing; comments and layout are kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from hookline.errors import ConfigError
from hookline.system.private_files import private_folder

from .layers import merged, parse, read_file


def write(path: Path, changes: Mapping[str, Any]) -> None:
    """Merge tables into a file, creating it if needed; only its owner can read a new one."""
    _edit(path, lambda document: _put(document, changes), merged(read_file(path) or {}, changes))


def remove(path: Path, dotted: str) -> None:
    """Remove a setting from a file that has it."""
    after = read_file(path) or {}
    _drop(after, dotted)
    _edit(path, lambda document: _drop(document, dotted), after)


def _drop(table: Any, dotted: str) -> None:
    """Remove a setting, and tables that are empty without it."""
    name, _, rest = dotted.partition(".")
    if rest:
        _drop(table[name], rest)
    if not rest or not table[name]:
        del table[name]


def _edit(path: Path, change: Callable[[Any], None], expected: dict[str, Any]) -> None:
    """Change a file atomically, if the new text reads back as expected."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8-sig") if path.exists() else "")
        change(document)
        text = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigError(f"cannot change {path}: {error}; edit it by hand") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if parse(text, str(path)) != expected:
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
    real = path.resolve()  # keep a symbolic link: people store such files elsewhere
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
