"""The inbox: messages that were accepted, kept until their turns are over.

A message is in the inbox before its sender is told that it was accepted, and stays there until its
outcome is known. So no process that dies takes one with it: the next start finds it, and the tape says
how far its turn came.
"""

from .codec import packed, unpacked
from .fate import Fate, fates_of
from .inbox import Accepted, Inbox, QueuedMessage, key_of, keys_of

__all__ = [
    "Accepted",
    "Fate",
    "Inbox",
    "QueuedMessage",
    "fates_of",
    "key_of",
    "keys_of",
    "packed",
    "unpacked",
]
