"""Runs the scenarios in a host, and makes the matrix of hosts and scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from threading import Thread
from typing import Final, TypeAlias

from hookline.errors import BridgeError

from .bench import Scenario
from .host import Host
from .scenarios import SCENARIOS, Bench

Verdicts: TypeAlias = dict[str, str]
"""For each scenario: `carried`, `impossible: …`, or `FAILED: …`."""


LIMIT: Final = 60.0
"""Seconds that a scenario may take."""


def check(host: Host) -> Verdicts:
    """Run every scenario in a host."""
    return {name: check_one(host, name) for name in SCENARIOS}


def check_one(host: Host, name: str) -> str:
    """Run one scenario in a host."""
    try:
        in_time(SCENARIOS[name], Bench(host))
    except BridgeError as refusal:
        return f"impossible: {refusal}"
    except Exception as error:
        if name in host.excused:
            return f"impossible: {host.excused[name]}"
        return f"FAILED: {type(error).__name__}: {error}"
    if name in host.excused:
        return f"FAILED: it is carried, although the host is excused: {host.excused[name]}"
    return "carried"


def in_time(scenario: Scenario, bench: Bench) -> None:
    """Run a scenario; one that hangs is left behind."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            scenario(bench)
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    if thread.is_alive():
        raise TimeoutError(f"it did not end within {LIMIT:.0f} seconds")
    if failed:
        raise failed[0]


def versions(host: Host) -> str:
    """The versions of a host's packages."""
    return ", ".join(f"{package} {version(package)}" for package in host.packages)


def matrix(results: Mapping[str, Verdicts]) -> str:
    """A Markdown table of scenarios and hosts."""
    hosts = list(results)
    lines = [f"| | {' | '.join(hosts)} |", f"|---|{'---|' * len(hosts)}"]
    marks = {"carried": "yes"}
    for name in SCENARIOS:
        cells = [marks.get(results[host].get(name, ""), "no") for host in hosts]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
