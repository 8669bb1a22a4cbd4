"""Evaluations: cases that an agent is run on, pass rates, and what a change makes of them.

    from hookline import Agent, Case

    cases = [Case("What is the capital of France?", contains="Paris")]
    print(Agent("openai:gpt-5").evaluate_sync(cases, runs=5))

| module | what it holds |
|---|---|
| `case` | `Case`: an input and what is expected |
| `evaluation` | running the cases |
| `report` | `EvalReport`: pass rates with intervals, cost and time |
| `comparison` | `EvalComparison`: two reports over the same cases |
| `file` | reading cases from a file |
"""

from .case import Case
from .comparison import CaseChange, EvalComparison
from .evaluation import evaluate
from .report import CaseResult, EvalReport, EvalRun

__all__ = [
    "Case",
    "CaseChange",
    "CaseResult",
    "EvalComparison",
    "EvalReport",
    "EvalRun",
    "evaluate",
]
