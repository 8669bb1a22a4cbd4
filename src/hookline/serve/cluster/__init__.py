"""Several machines on one PostgreSQL: gateways accept messages, workers make their turns.

The engine is procrastinate: it keeps the order of each session, gives every job to one worker, and
notices workers that die. What a turn has done is on the tape, so another goes on with it.
"""

from .items import Bundle
from .queue import Queue, Queued
from .relay import Parcel, Relay
from .schema import prepare

__all__ = ["Bundle", "Parcel", "Queue", "Queued", "Relay", "prepare"]
