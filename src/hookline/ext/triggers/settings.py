"""`[triggers.<name>]`: what all triggers have in common, and which kinds there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hookline.config import ConfigError
from hookline.hooks.errors import suggestion
from hookline.system.retry import RetryPolicy

from .template import Template

if TYPE_CHECKING:
    from hookline.config import Config

    from .trigger import Trigger

KINDS: Mapping[str, str] = {
    "cron": "hookline.ext.triggers.cron:CronTrigger",
    "webhook": "hookline.ext.triggers.webhook:WebhookTrigger",
    "queue": "hookline.ext.triggers.queue:QueueTrigger",
    "watch": "hookline.ext.triggers.watch:WatchTrigger",
}
"""The triggers that come with Hookline, by the `type` of their section."""


def _readable(text: str) -> str:
    Template(text)
    return text


TemplateText = Annotated[str, Field(min_length=1), AfterValidator(_readable)]
"""A text with `{fields}` of the payload."""


class TriggerSettings(BaseModel):
    """What every trigger names: the message, the session, and the channel for the answer."""

    model_config = ConfigDict(extra="forbid")

    type: str = ""
    enabled: bool = True
    message: TemplateText = "{.}"
    """The message to the agent."""
    session: TemplateText | None = None
    """The session of the turn; by default the trigger has one of its own."""
    channel: str | None = None
    """Where the answer goes; without one it is only on the tape."""
    chat: TemplateText = "default"
    """The chat within the channel."""

    def retry_policy(self) -> RetryPolicy:
        """How a turn that fails is tried again."""
        return RetryPolicy(attempts=1)

    def check(self) -> None:
        """Refuse, with `ValueError`, what the fields together cannot mean."""


def configured(config: Config) -> Iterator[Trigger[Any]]:
    """The triggers that the settings name and do not disable; a wrong section is an error."""
    for name in config.section("triggers"):
        at = f"triggers.{name}"
        table = config.section(at)
        kind = table.get("type")
        where = f"{config.source(at) or 'the settings'}: [{at}]"
        if not isinstance(kind, str) or kind not in KINDS:
            said = "has no type" if kind is None else f"has the unknown type {kind!r}"
            near = suggestion(kind, KINDS) if isinstance(kind, str) else ""
            raise ConfigError(f"{where} {said}{near}: there are {', '.join(KINDS)}")
        module, _, made = KINDS[kind].partition(":")
        trigger: type[Trigger[Any]] = getattr(import_module(module), made)
        config.declare(at, trigger.form)
        settings = config.settings(at, trigger.form)
        try:
            settings.check()
        except ValueError as error:
            raise ConfigError(f"{where} {error}") from error
        if settings.enabled:
            yield trigger(name, settings)
