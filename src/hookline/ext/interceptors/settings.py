"""`[agent_hooks]` of the settings, and the host declaration that it stands for."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

FACTORY = "hookline.factory"
"""The kind of a binding whose interceptor is made by a function: `{"factory": "module:function"}`."""
RESOLVER = "hookline"
"""The approval resolver that asks through `resolve_approval`."""

Profile: TypeAlias = Literal[
    "sequential/first_deny", "sequential/run_all", "parallel/strictest", "parallel/unanimous"
]
KNOBS = ("on_approval", "on_disagreement", "on_transform_conflict")


class AgentHooksSettings(BaseModel):
    """The interceptors to run, and how to combine their verdicts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    interceptors: list[str] = Field(default_factory=list)
    """`module:factory`, called without arguments; the order is the order of the list."""
    declaration: str | None = None
    """The file of a host declaration, which says all of this in the specification's own form."""
    mode: Literal["enforce", "evaluate_only"] = "enforce"
    profile: Profile = "sequential/first_deny"
    on_approval: Literal["stop", "resume"] | None = None
    on_disagreement: Literal["deny", "approval"] | None = None
    on_transform_conflict: Literal["deny", "approval"] | None = None
    timeout: float = Field(default=5.0, gt=0)
    """Seconds that an interceptor may take."""
    approval_timeout: float = Field(default=600.0, gt=0)
    """Seconds that a person may take."""

    @model_validator(mode="after")
    def _one_of_the_two(self) -> AgentHooksSettings:
        beside = sorted(self.model_fields_set - {"declaration"})
        if self.declaration is not None and beside:
            raise ValueError(f"a declaration says everything; take out {', '.join(beside)}")
        return self

    def document(self) -> dict[str, Any]:
        """The host declaration of these settings; the surface is the host's own."""
        from agent_hooks import DECLARATION_VERSION

        knobs = {name: value for name in KNOBS if (value := getattr(self, name)) is not None}
        return {
            "declaration": DECLARATION_VERSION,
            "host": {"name": "hookline"},
            "configuration": {
                "mode": self.mode,
                "composition": {"profile": self.profile, **knobs},
                "approval": {"resolver": RESOLVER},
                "timeouts": {
                    "interceptor_ms": round(self.timeout * 1000),
                    "approval_resolver_ms": round(self.approval_timeout * 1000),
                },
            },
            "bindings": [
                {"id": binding_id(name, index), "kind": FACTORY, "config": {"factory": name}}
                for index, name in enumerate(self.interceptors)
            ],
        }


def binding_id(name: str, index: int) -> str:
    """An interceptor's name in records: its position in the list and its own name."""
    plain = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")
    return f"i{index}-{plain}"[:64].rstrip("-")
