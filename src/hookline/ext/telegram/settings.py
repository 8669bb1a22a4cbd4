"""`[channels.telegram]`: the bot, who may talk with it, and how it is reached."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Literal

from pydantic import ConfigDict, Field, SecretStr, field_validator, model_validator

from hookline.config.schema import RetrySettings
from hookline.system.retry import RetryPolicy

SECTION = "channels.telegram"

_TOKEN = r"\d+:[A-Za-z0-9_-]+"
_SECRET = r"[A-Za-z0-9_-]{1,256}"
_ADDRESS = r"https?://[^\s/?#]+[^\s?#]*"


class TelegramSettings(RetrySettings):
    """What `[channels.telegram]` says."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = True
    token: SecretStr = Field(default=SecretStr(""), validate_default=True)
    """The bot's, from @BotFather."""
    allow: list[int | Literal["*"]] = Field(default_factory=list[int | Literal["*"]])
    """The ids of the people and groups allowed to talk to the agent; `*` allows everyone."""
    operators: list[int] = Field(default_factory=list[int])
    """The ids of the people who may use every command, such as `/model`. They must be allowed as well.
    """
    refuse: bool = True
    """Whether to tell people who are not allowed so, once. Otherwise the bot stays silent."""
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str | None = None
    """The public URL of the gateway, such as `https://agent.example`."""
    secret: SecretStr | None = None
    """The secret that Telegram sends with each webhook call; derived from the token if unset."""
    stream: bool = True
    """Whether an answer is shown while it comes, by edits of a message."""
    edit_seconds: float = Field(default=1.5, ge=0)
    """The least time between two edits of an answer."""
    patience: float = Field(default=600.0, ge=0)
    """Seconds for which an answer is tried again while Telegram is out of reach."""
    retry: RetryPolicy = RetryPolicy(first=0.5, max=15.0)
    """The delays between attempts to reach Telegram; they are not counted."""
    poll_seconds: int = Field(default=30, ge=0, le=50)
    """How long Telegram holds a request for news open."""
    timeout: float = Field(default=20.0, gt=0)
    """Seconds that Telegram has for any other request."""
    max_file: int = Field(default=20_000_000, ge=1)
    """Bytes of a recording or picture that is fetched; Telegram gives out no more than 20 MB."""
    api: str = "https://api.telegram.org"
    """The Bot API; a server of your own may take its place."""

    @field_validator("token")
    @classmethod
    def _is_token(cls, token: SecretStr) -> SecretStr:
        said = token.get_secret_value()
        if not said:
            raise ValueError('is missing: set token = "${TELEGRAM_TOKEN}"; @BotFather gives one out')
        if not re.fullmatch(_TOKEN, said):
            raise ValueError("is no bot's token, which looks like 123456:ABC…; ask @BotFather")
        return token

    @field_validator("secret")
    @classmethod
    def _is_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not re.fullmatch(_SECRET, secret.get_secret_value()):
            raise ValueError("must be 1 to 256 letters, digits, _ and -")
        return secret

    @field_validator("api", "webhook_url")
    @classmethod
    def _is_address(cls, address: str | None) -> str | None:
        if address is not None and not re.fullmatch(_ADDRESS, address):
            raise ValueError("must be an address such as https://agent.example")
        return address and address.rstrip("/")

    @model_validator(mode="after")
    def _can_be_reached(self) -> TelegramSettings:
        if self.mode == "webhook" and self.webhook_url is None:
            raise ValueError(
                "mode webhook needs webhook_url, the address at which Telegram reaches the gateway"
            )
        return self

    def webhook_secret(self) -> str:
        """What the webhook's calls must carry."""
        if self.secret is not None:
            return self.secret.get_secret_value()
        token = self.token.get_secret_value().encode()
        return hmac.new(token, b"hookline telegram webhook", hashlib.sha256).hexdigest()

    def allows(self, *ids: int | None) -> bool:
        """Whether one of these, a person or a chat, may talk with the agent."""
        return "*" in self.allow or any(each in self.allow for each in ids if each is not None)
