"""Replay and backtest: re-run recorded sessions and judge recorded calls with today's hooks.

`replay` plays a session and compares; `backtest` judges the recorded tool calls of many.
"""

from hookline.errors import Diverged, ReplayError, ReplayStopped, UnknownRecording

from .app import ReplayApp, Setup
from .backtest import backtest
from .comparison import Comparison, Difference, Pair
from .replayer import MARK, WhatIf, replay
from .report import BacktestReport, DecisionChange

__all__ = [
    "MARK",
    "BacktestReport",
    "Comparison",
    "DecisionChange",
    "Difference",
    "Diverged",
    "Pair",
    "ReplayApp",
    "ReplayError",
    "ReplayStopped",
    "Setup",
    "UnknownRecording",
    "WhatIf",
    "backtest",
    "replay",
]
