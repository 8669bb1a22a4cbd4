"""The users of a gateway: their tokens, and the sessions each may reach.

An operator sees and does everything. A user reaches only the sessions of their own namespace: the
session that user `ada` calls `web:garden` is `user:ada:web:garden` for everyone else. No name that a
client can send leads out of the namespace, so no check can be forgotten.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from hookline.errors import TokenRevoked

Role: TypeAlias = Literal["user", "operator"]

NAME: Final = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
"""The pattern of user names. Without colons, two namespaces cannot overlap."""
OWNER: Final = "owner"
"""The user of `[gateway] token`, or of the generated token."""


@dataclass(frozen=True, slots=True)
class User:
    """Someone who sent a token, or who connects over the Unix socket."""

    name: str
    role: Role = "user"
    approves: bool = True
    """Whether a `user` may answer the questions of their own sessions."""

    @property
    def is_operator(self) -> bool:
        """Whether every session and command is theirs."""
        return self.role == "operator"

    @property
    def namespace(self) -> str:
        """The prefix of their sessions; an operator has none."""
        return "" if self.is_operator else f"user:{self.name}:"

    def session(self, name: str) -> str:
        """The full name of a session that they name."""
        return f"{self.namespace}{name}"

    def shown(self, session_id: str) -> str:
        """The name of a session as they know it."""
        return session_id.removeprefix(self.namespace)

    def reaches(self, session_id: str) -> bool:
        """Whether a session is theirs."""
        return self.is_operator or session_id.startswith(self.namespace)


OWNER_USER: Final = User(OWNER, "operator")


class Users:
    """The tokens of a gateway."""

    def __init__(self, tokens: Iterable[tuple[User, str]]) -> None:
        self._tokens = [(user, token.encode()) for user, token in tokens]
        if not self._tokens or any(not token.strip() for _, token in self._tokens):
            raise ValueError("every user needs a token, and there must be at least one user")

    def find(self, given: str) -> User | None:
        """The user of a token. Takes the same time however similar a wrong token is."""
        sent = given.encode("utf-8", "surrogatepass")
        found = [user for user, token in self._tokens if hmac.compare_digest(token, sent)]
        return found[0] if found else None


class Admissions:
    """The requests and connections that a token opened, while they last."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Task[Any], tuple[User, str]] = {}

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def of(self, user: User | None, token: str) -> Generator[None]:
        """Run what a user's token opened; raises `TokenRevoked` in it if the token is revoked."""
        task = asyncio.current_task()
        if user is None or not token or task is None:
            yield
            return
        self._open[task] = user, token
        try:
            yield
        except asyncio.CancelledError:
            if task in self._open:
                raise
            raise TokenRevoked from None
        finally:
            self._open.pop(task, None)

    def revoke(self, users: Users) -> None:
        """End what was opened with a token that is no longer valid, or has other rights now."""
        for task, (user, token) in [*self._open.items()]:
            if users.find(token) != user:
                del self._open[task]
                task.cancel()
