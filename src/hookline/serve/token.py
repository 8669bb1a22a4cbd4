"""The token of a server: generated at its first start, and readable only by its owner."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from hookline.errors import ConfigError

SHORTEST: Final = 16
"""The minimum length of a token; shorter ones can be guessed."""
LONGEST: Final = 512


def check_token(token: str) -> str:
    """Return a valid token, or raise an error that says what is wrong with it."""
    if not token.strip():
        raise ConfigError(
            "the token is empty, which would let anyone in; set one, or leave the setting out. "
            "Is the variable that it comes from set?"
        )
    if len(token) < SHORTEST:
        raise ConfigError(
            f"the token has {len(token)} characters and needs at least {SHORTEST}; "
            "`openssl rand -hex 32` makes one"
        )
    if len(token) > LONGEST or not token.isascii() or not token.isprintable() or token != token.strip():
        raise ConfigError(
            f"a token has at most {LONGEST} printable ASCII characters and no space at its ends; "
            "`openssl rand -hex 32` makes one"
        )
    return token


def token_file(home: Path, server: str = "gateway") -> Path:
    """The file of the generated token of a server."""
    return home / f"{server}.token"


def read_token(home: Path, server: str = "gateway") -> str | None:
    """The generated token, or None if there is none yet."""
    path = token_file(home, server)
    remedy = "remove it, and a new one is generated"
    if server == "gateway":
        remedy = "`hookline gateway --rotate-token` makes a new one"
    try:
        about = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
        raise ConfigError(f"{path} is not a file of yours; remove it, and a new token is generated")
    if hasattr(os, "getuid") and about.st_mode & 0o077:
        raise ConfigError(f"{path} can be read by others, who may know the token; {remedy}")
    try:
        return check_token(path.read_text("ascii").strip())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}; {remedy}") from None


def make_token(home: Path, server: str = "gateway") -> str:
    """Generate a token, replacing any other."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    token, path = secrets.token_urlsafe(32), token_file(home, server)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{token}\n")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ConfigError(f"the token cannot be kept in {path}: {error.strerror or error}") from None
    return token


def own_token(home: Path, server: str = "gateway") -> tuple[str, bool]:
    """The generated token, and whether it is new."""
    known = read_token(home, server)
    return (known, False) if known is not None else (make_token(home, server), True)
