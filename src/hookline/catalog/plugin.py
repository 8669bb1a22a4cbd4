"""What plugins bring, and the two questions asked of them. Lowest `manifest.order` first."""

from functools import partial
from typing import Any, Literal, TypeAlias

from hookline.hooks import (
    CAPTURE,
    DENY,
    OLDEST,
    Answer,
    Family,
    PluginManager,
    first,
    hookspec,
    outcomes,
)

API_VERSION = "1"
"""The plugin interface of this release; a manifest of another major version is not loaded."""

Approval: TypeAlias = Literal["approve", "reject"]

lifecycle = partial(hookspec, outcomes, order=OLDEST, errors=CAPTURE)
"""One outcome for each plugin: whoever fails is reported, the others go on."""
bootstrap = partial(lifecycle, sync=True)


class PluginHooks(Family, name="plugin"):
    """Start and end of a plugin's life, its registrations, and what it may permit."""

    @bootstrap(fires="once, when the tool registry is built")
    def register_tools(self) -> list[Any] | None:
        """Provide tools, as decorated functions or as specs."""

    @bootstrap(fires="once, when the skill registry is built")
    def register_skills(self) -> list[Any] | None:
        """Provide skills."""

    @bootstrap(fires="once, when the store registry is built")
    def register_stores(self) -> list[Any] | None:
        """Provide named stores; `${VAR}` in their configuration is filled in and checked."""

    @bootstrap(fires="once, when the policy packs are gathered")
    def register_packs(self) -> list[Any] | None:
        """Provide policy packs."""

    @bootstrap(fires="once, when the slash commands are gathered")
    def register_commands(self) -> list[Any] | None:
        """Provide slash commands for chat and channels."""

    @lifecycle(fires="once, after all plugins are registered")
    def hookline_startup(self, pm: PluginManager) -> Answer[None]:
        """Open what the plugin needs while it runs."""

    @hookspec(
        first,
        order=OLDEST,
        errors=DENY,
        timeout=30,
        fires="before every action, with its final arguments",
    )
    def authorize_action(self, action: dict[str, Any]) -> Answer[bool]:
        """Allow or deny an action; None leaves it to the next. Policy still has the last word."""

    @hookspec(
        first(deny="reject"),
        order=OLDEST,
        errors=DENY,
        timeout=600,
        fires="whenever something asked for approval",
    )
    def resolve_approval(self, request: Any) -> Answer[Approval]:
        """Answer a request for approval; no answer in time is a rejection."""

    @lifecycle(fires="once, on graceful shutdown, also after a failed run")
    def hookline_shutdown(self, pm: PluginManager) -> Answer[None]:
        """Flush and close what startup opened."""
