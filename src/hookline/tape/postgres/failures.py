"""What errors of PostgreSQL mean, and what to do about them."""

from __future__ import annotations

import re
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from hookline.errors import (
    TapeCorrupt,
    TapeDenied,
    TapeError,
    TapeFull,
    TapeLocked,
    TapeReadOnly,
    TapeUnavailable,
    TapeVersionMismatch,
)

_STRANGE = "has other tables than this Hookline knows; `hookline db status` compares the versions"

_NO_PRIMARY: Final = "no primary"
"""No code of PostgreSQL's: the url asks for a server that can be written, and none of its hosts is."""

READ_ONLY: Final = "is read-only, as a replica is; name the primary in [tape] url"

_MEANINGS: Final[dict[str, tuple[type[TapeError], str]]] = {
    "25006": (TapeReadOnly, READ_ONLY),
    "28000": (TapeDenied, "does not let this user in; check the user in [tape] url and pg_hba.conf"),
    "28P01": (TapeDenied, "refused the password; check the one in [tape] url"),
    "3D000": (TapeUnavailable, "has no such database; make it with `createdb`, or correct [tape] url"),
    "3F000": (TapeVersionMismatch, _STRANGE),
    "40P01": (TapeLocked, "had other writers in the way; try again"),
    "42501": (
        TapeDenied,
        "does not let this role do that; the owner admits a role by `hookline db grant ROLE`",
    ),
    "42703": (TapeVersionMismatch, _STRANGE),
    "42P01": (TapeVersionMismatch, _STRANGE),
    "53100": (TapeFull, "cannot grow, its disk is full; make room and try again"),
    "53300": (
        TapeUnavailable,
        "has no connection left; lower [tape] pool_size, or raise max_connections of the server",
    ),
    "57014": (TapeLocked, "took too long; wait for other writers, or raise [tape] statement_timeout"),
    "55P03": (TapeLocked, "is in use by another process; wait for it, or end it"),
    _NO_PRIMARY: (
        TapeUnavailable,
        "has no server that can be written; check that the primary runs, and that [tape] url names it",
    ),
    "XX001": (TapeCorrupt, "is damaged; restore a copy"),
    "XX002": (TapeCorrupt, "has a damaged index; run REINDEX, or restore a copy"),
}

# When a connection is refused, the library knows the server's words but not its code.
_WORDS: Final = (
    (r"password authentication failed|no password supplied", "28P01"),
    (r"role \".*\" does not exist|no pg_hba\.conf entry|not permitted to log in", "28000"),
    (r"database \".*\" does not exist", "3D000"),
    (r"session is read-only|server is in hot standby mode", _NO_PRIMARY),
    (r"too many (clients|connections)|connection slots", "53300"),
)

_UNREACHABLE = "cannot be reached; check that the server runs, and the host and port in [tape] url"


def place_of(url: str) -> str:
    """The address of a database without the password, safe to show."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "PostgreSQL"
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host') or ''}{port}/{parts.get('dbname') or ''}"


def told(error: Exception, place: str, doing: str) -> TapeError:
    """Explain an error of the database in one line, with what to do."""
    said = " ".join(str(error).split())
    kind, advice = _MEANINGS.get(code_of(error), (TapeError, "failed; run `hookline doctor`"))
    if kind is TapeError and isinstance(error, psycopg.OperationalError):
        kind, advice = TapeUnavailable, _UNREACHABLE
    return kind(f"cannot {doing} the tape: {place} {advice} (PostgreSQL: {said})")


def code_of(error: Exception) -> str:
    """The code of an error, or the one that its words stand for."""
    code = getattr(error, "sqlstate", None)
    if code is None and isinstance(error, psycopg.OperationalError):
        said = str(error)
        code = next((code for words, code in _WORDS if re.search(words, said)), None)
    return code or ""


def is_final(error: Exception) -> bool:
    """Whether reconnecting cannot help because someone has to act first."""
    return code_of(error) in ("28000", "28P01", "3D000")
