"""A conformance suite for bridges: the same scenarios in every host, against a scripted model.

    python -m hookline.bridges.testing my_host.py

`my_host.py` defines `HOST`, a `Host` whose `run` makes one agent of the host, guarded by a bridge, and
runs it on a prompt. Every scenario is carried, or the bridge refuses its hooks with the reason.
"""

from .host import Host, HostRun
from .scenarios import SCENARIOS, Bench, ScenarioOutcome
from .server import ScriptedServer
from .suite import Verdicts, check, matrix

__all__ = [
    "SCENARIOS",
    "Bench",
    "Host",
    "HostRun",
    "ScenarioOutcome",
    "ScriptedServer",
    "Verdicts",
    "check",
    "matrix",
]
