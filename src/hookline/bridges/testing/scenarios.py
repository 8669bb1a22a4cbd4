"""The scenarios: what a hook does in an agent of a host, checked by its effects."""

from . import tool_scenarios, text_scenarios, run_scenarios, input_scenarios  # isort: skip  # in their order
from .bench import SCENARIOS, Bench, ScenarioOutcome

__all__ = [
    "SCENARIOS",
    "Bench",
    "ScenarioOutcome",
    "input_scenarios",
    "run_scenarios",
    "text_scenarios",
    "tool_scenarios",
]
