"""A Telegram bot as a channel: text, pictures and voice messages.

It needs the extra `hookline[telegram]`, which is imported only when the channel is enabled.
"""

from typing import TYPE_CHECKING

from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .channel import TelegramChannel
    from .settings import TelegramSettings
else:
    __getattr__ = lazy_names(__name__, "settings channel")

__all__ = ["TelegramChannel", "TelegramSettings"]
