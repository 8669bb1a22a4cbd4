"""Telegram: people talk with the agent through a bot, by text, pictures and voice.

It needs the extra `hookline[telegram]`, and is imported only where the channel is enabled.
"""

from importlib.util import find_spec

if find_spec("telegram") is None:
    raise ImportError("python-telegram-bot; pip install 'hookline[telegram]'", name="telegram")

from .channel import TelegramChannel
from .settings import TelegramSettings

__all__ = ["TelegramChannel", "TelegramSettings"]
