"""The users of a gateway: whose token is whose, and which sessions each may reach.

An operator sees and does everything. A user reaches the sessions of their own namespace and nothing
else: the session that user `ada` calls `web:garden` is `user:ada:web:garden` for everyone else. No
name that a client can send leads out of the namespace, so no check can be forgotten.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Role: TypeAlias = Literal["user", "operator"]

NAME: Final = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
"""What a user may be called. Without colons, two namespaces cannot overlap."""
OWNER: Final = "owner"
"""The user who has `[gateway] token`, or the token that was generated."""


@dataclass(frozen=True, slots=True)
class User:
    """Someone who presented a token, or who connects over the Unix socket."""

    name: str
    role: Role = "user"
    approves: bool = True
    """Whether a `user` may answer the questions of their own sessions."""

    @property
    def is_operator(self) -> bool:
        """Whether every session and every command is theirs."""
        return self.role == "operator"

    @property
    def namespace(self) -> str:
        """The prefix of their sessions; an operator has none."""
        return "" if self.is_operator else f"user:{self.name}:"

    def session(self, name: str) -> str:
        """The session that they mean by a name."""
        return f"{self.namespace}{name}"

    def shown(self, session_id: str) -> str:
        """A session of theirs as they call it."""
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
        """The user who has a token. Takes the same time whichever token is nearly right."""
        sent = given.encode("utf-8", "surrogatepass")
        found = [user for user, token in self._tokens if hmac.compare_digest(token, sent)]
        return found[0] if found else None
