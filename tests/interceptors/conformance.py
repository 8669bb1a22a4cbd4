"""The report of the specification's test kit: `python -m tests.interceptors.conformance`.

Every vector is run against both surfaces. No surface can pass all of them: the vectors of
`streaming/incremental` need `incremental_output`, and AH-CTK-135 refuses it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from agent_hooks.ctk import VectorResult, load_vectors, run_vector

from hookline.agent.segments import Streaming

from .harness import SURFACES, HooklineHarness, streaming_faults

DEFAULT = "sequential/first_deny"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one vector came to on one surface."""

    id: str
    surface: str
    profile: str
    part: str
    status: str
    detail: str


def profile_of(vector: Mapping[str, Any]) -> str:
    """The composition profile that a vector is about."""
    declared: Mapping[str, Any] = vector.get("host_declaration", {}).get("configuration", {})
    composition: Mapping[str, Any] = vector.get("composition") or declared.get("composition") or {}
    return str(composition.get("profile", DEFAULT))


async def run(vector: dict[str, Any], streaming: Streaming) -> VectorResult:
    """Run one vector; what went out and was kept counts as well as what the kit looks at."""
    harness = HooklineHarness(vector, streaming)
    result = await run_vector(harness, vector)
    if result.status == "pass" and (faults := streaming_faults(vector, harness.seen)):
        result.status, result.failures = "fail", faults
    return result


async def findings(vectors: Sequence[dict[str, Any]]) -> list[Finding]:
    """Every vector on every surface."""
    found: list[Finding] = []
    for surface, streaming in SURFACES.items():
        for vector in vectors:
            result = await run(vector, streaming)
            detail = result.detail or "; ".join(result.failures)
            part = str(vector.get("part", "core"))
            finding = Finding(
                result.id, surface, profile_of(vector), part, result.status, " ".join(detail.split())
            )
            found.append(finding)
    return found


def report(found: Sequence[Finding]) -> str:
    """The findings as a page."""
    ids = sorted({finding.id for finding in found})
    passed = {finding.id for finding in found if finding.status == "pass"}
    lines = [f"agent-hooks-sdk {version('agent-hooks-sdk')}, {len(ids)} vectors", ""]
    lines += ["| surface | pass | fail | skip |", "|---|---|---|---|"]
    for surface in SURFACES:
        own = [finding.status for finding in found if finding.surface == surface]
        counts = " | ".join(str(own.count(status)) for status in ("pass", "fail", "skip"))
        lines.append(f"| {surface} | {counts} |")
    lines += ["", "| profile | vectors | passed |", "|---|---|---|"]
    for profile in sorted({finding.profile for finding in found}):
        about = {finding.id for finding in found if finding.profile == profile}
        lines.append(f"| {profile} | {len(about)} | {len(about & passed)} |")
    lines += ["", "| vector | profile | part | buffered | incremental |", "|---|---|---|---|---|"]
    by_place = {(finding.id, finding.surface): finding for finding in found}
    for name in ids:
        one = by_place[name, "buffered"]
        states = " | ".join(by_place[name, surface].status for surface in SURFACES)
        lines.append(f"| {name} | {one.profile} | {one.part} | {states} |")
    other = [finding for finding in found if finding.status == "fail"]
    lines += ["", *(f"{finding.id} on {finding.surface}: {finding.detail}" for finding in other)]
    lines += ["", f"passed on a declared surface: {len(passed)} of {len(ids)}"]
    return "\n".join(lines)


def main() -> int:
    """Print the report; 0 where every vector passed on a surface."""
    found = asyncio.run(findings(load_vectors()))
    sys.stdout.write(report(found) + "\n")
    passed = {finding.id for finding in found if finding.status == "pass"}
    return 0 if passed == {finding.id for finding in found} else 1


if __name__ == "__main__":
    sys.exit(main())
