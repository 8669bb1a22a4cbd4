"""What can go wrong with a tape. Each message is one line: what, with which tape, what to do."""

from __future__ import annotations

from hookline.hooks.errors import HooklineError


class TapeError(HooklineError):
    """The root of every error of the tape."""


# --- What was asked for ---


class BadEntry(TapeError, ValueError):
    """An entry that cannot be stored as it is."""


class DuplicateEntry(TapeError, ValueError):
    """An entry whose id is on the tape already."""

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"entry {entry_id!r} is on the tape already; nothing was appended")


class UnknownEntry(TapeError, LookupError):
    """An id that no entry has, or none of the session asked."""

    def __init__(self, entry_id: str, session_id: str | None = None) -> None:
        where = "no tape of this store" if session_id is None else f"another tape than {session_id!r}'s"
        super().__init__(
            f"entry {entry_id!r} is on {where}; `hookline tape show SESSION` lists the ids"
        )


class UnknownParent(TapeError, LookupError):
    """An entry whose parent is on no tape."""

    def __init__(self, entry_id: str, parent_id: str) -> None:
        super().__init__(
            f"entry {entry_id!r} has the parent {parent_id!r}, which is on no tape; append that first"
        )


class ForeignEntry(TapeError, ValueError):
    """An entry of another session, where one of this session's own branches is needed."""


class SessionExists(TapeError, ValueError):
    """A new session was to have the id of one that exists."""


class TapeConflict(TapeError, RuntimeError):
    """Another writer appended to the session in the meantime."""

    def __init__(self, session_id: str, expected: str | None, leaf: str | None) -> None:
        super().__init__(
            f"session {session_id!r} was appended to by another writer (its leaf is {leaf!r}, not "
            f"{expected!r}); nothing was appended: refresh the tape and try again"
        )
        self.session_id = session_id


class BadLine(TapeError, ValueError):
    """A line of a JSON Lines file that cannot be imported."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"line {number}: {problem}; nothing was imported")
        self.number = number


# --- Where it is kept ---


class TapeClosed(TapeError, RuntimeError):
    """The store was closed."""

    def __init__(self) -> None:
        super().__init__("the tape store was closed; open a new one")


class TapeUnavailable(TapeError, OSError):
    """The file cannot be opened or read."""


class TapeReadOnly(TapeError, PermissionError):
    """The file cannot be written."""


class TapeFull(TapeError, OSError):
    """There is no room for what was to be written."""


class TapeLocked(TapeError, TimeoutError):
    """Another process held the file for too long."""


class TapeCorrupt(TapeError, ValueError):
    """The file is damaged."""


class NotATape(TapeError, ValueError):
    """The file is something else."""


class TapeTooNew(TapeError, ValueError):
    """The file was written by a newer version."""


class TapeTooOld(TapeError, ValueError):
    """The database was made by an older version, and nobody allowed bringing it up to date."""


class TapeDenied(TapeError, PermissionError):
    """The database does not let this user in, or not do this."""


class TapeUncertain(TapeUnavailable):
    """The database went away during an append: whether the entries were kept is not known."""


class BadSchema(TapeError, ValueError):
    """A name that a schema of a database cannot have."""

    def __init__(self, schema: str) -> None:
        super().__init__(
            f"{schema!r} cannot be the schema of a tape; use small letters, digits and underscores, "
            "such as 'hookline'"
        )


class ForeignHome(TapeError, ValueError):
    """The database keeps the tapes of another home."""
