"""`[tape]`: where the tapes are kept."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from pydantic import ConfigDict, Field, SecretStr, field_validator

from hookline.config.schema import RetrySettings
from hookline.errors import TapeFull, TapeUnavailable
from hookline.system.private_files import private_file, private_folder
from hookline.system.retry import RetryPolicy

from .entry import new_id

SCHEMES = ("postgresql://", "postgres://")


class TapeSettings(RetrySettings):
    """What `[tape]` says. Without a `url`, the tapes are in one SQLite file in the home."""

    model_config = ConfigDict(extra="forbid")

    url: SecretStr | None = None
    """`postgresql://user:${PASSWORD}@host/database`."""
    schema_: str = Field(default="hookline", alias="schema")
    """The schema of the database that the tables are in."""
    home: str | None = Field(default=None, min_length=1)
    """The name of the home that the sessions belong to: the same on all machines that share them."""
    pool_size: int = Field(default=10, ge=1)
    """How many connections one process has at most."""
    timeout: float = Field(default=10.0, gt=0)
    """How many seconds calls wait for a database that cannot be reached."""
    statement_timeout: float = Field(default=60.0, gt=0)
    """How many seconds one call may take."""
    retry: RetryPolicy = RetryPolicy(first=0.02, max=1.0)
    """The delays between attempts to reach the database, within `timeout`."""
    migrate: bool = False
    """Whether older tables are brought up to date at the start, without `hookline db migrate`."""

    @field_validator("url")
    @classmethod
    def _is_postgres(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(SCHEMES):
            raise ValueError("must be postgresql://user:password@host:port/database")
        return url


def home_id(home: Path) -> str:
    """The id of a home, made when it is first asked for."""
    file = home / "home-id"
    try:
        private_folder(home)
        part = home / f"home-id.{new_id()}"
        if not file.exists():
            try:
                private_file(part)
                part.write_text(new_id() + "\n", encoding="utf-8")
                os.link(part, file)  # complete or not there, and the first of several processes wins
            except FileExistsError:
                pass
            finally:
                part.unlink(missing_ok=True)
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise (TapeFull if full else TapeUnavailable)(
            f"cannot read or make {file} ({error.strerror}); "
            f"{'make room' if full else 'check the permissions'}, or name the home in [tape] home"
        ) from error
