"""Replay and backtest: what was recorded, once more, through the hooks of today.

`replay` plays a session and compares; `backtest` judges the recorded tool calls of many.
"""

from .app import ReplayApp, Setup
from .backtest import backtest
from .comparison import Comparison, Difference, Pair
from .errors import Diverged, ReplayError, ReplayStopped, UnknownRecording
from .replaying import MARK, WhatIf, replay
from .report import Change, Report

__all__ = [
    "MARK",
    "Change",
    "Comparison",
    "Difference",
    "Diverged",
    "Pair",
    "ReplayApp",
    "ReplayError",
    "ReplayStopped",
    "Report",
    "Setup",
    "UnknownRecording",
    "WhatIf",
    "backtest",
    "replay",
]
