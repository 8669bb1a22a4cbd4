"""Several machines on one PostgreSQL database: gateways accept messages, workers run their turns.

The engine is procrastinate. It keeps the order of each session, gives every job to one worker and
detects dead workers. What a turn has done is on the tape, so another worker can continue it.
"""

from .items import Bundle
from .queue import Queue, Queued
from .relay import Parcel, Relay
from .schema import prepare

__all__ = ["Bundle", "Parcel", "Queue", "Queued", "Relay", "prepare"]
