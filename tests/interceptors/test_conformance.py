"""The specification's own test kit, every vector on both surfaces, through a whole app."""

from importlib.metadata import version
from pathlib import Path

import pytest
from agent_hooks.ctk import load_vectors

from .conformance import Finding, profile_of, report, run
from .harness import SURFACES, Seen, streaming_faults

VECTORS = {vector["id"]: vector for vector in load_vectors()}
INCREMENTAL = {"AH-CTK-110", "AH-CTK-111", "AH-CTK-112", "AH-CTK-113"}
"""Need `incremental_output`."""
BUFFERED = {"AH-CTK-135"}
"""Expects a refusal that a surface with `incremental_output` gives for another reason."""
PROFILES = {
    "sequential/first_deny", "sequential/run_all", "parallel/strictest", "parallel/unanimous"
}  # fmt: skip


def cases():
    for surface in SURFACES:
        beyond = INCREMENTAL if surface == "buffered" else BUFFERED
        for name, vector in VECTORS.items():
            if name not in beyond:
                yield pytest.param(vector, surface, id=f"{name}-{surface}-{profile_of(vector)}")


@pytest.mark.parametrize(("vector", "surface"), list(cases()))
async def test_a_vector_passes(vector, surface):
    result = await run(vector, SURFACES[surface])
    assert (result.status, result.failures) == ("pass", []), result.detail


@pytest.mark.parametrize("name", sorted(INCREMENTAL))
async def test_a_buffered_surface_does_not_claim_to_release_by_segments(name):
    result = await run(VECTORS[name], SURFACES["buffered"])
    assert result.status == "skip"
    assert "incremental_output" in result.detail


async def test_an_incremental_surface_refuses_the_same_document_all_the_same():
    result = await run(VECTORS["AH-CTK-135"], SURFACES["incremental"])
    assert result.status == "fail"
    assert "declaration_error:inconsistent" in str(result.failures)


def test_both_surfaces_together_cover_all_vectors_and_profiles():
    assert version("agent-hooks-sdk") == "0.1.0b3"
    assert len(VECTORS) == 75
    assert not INCREMENTAL & BUFFERED
    assert {profile_of(vector) for vector in VECTORS.values()} == PROFILES


def test_a_vector_is_counted_once_whatever_the_surface():
    found = [
        Finding("AH-1", "buffered", "sequential/run_all", "core", "skip", "needs more"),
        Finding("AH-1", "incremental", "sequential/run_all", "core", "pass", ""),
    ]
    told = report(found)
    assert "passed on a declared surface: 1 of 1" in told
    assert "| AH-1 | sequential/run_all | core | skip | pass |" in told


def test_the_page_has_the_report():
    page = (Path(__file__).parents[2] / "docs/agent-hooks.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| AH-CTK")]
    told = {name: (profile, *states) for name, profile, _, *states in lines}
    assert told == {
        name: (
            profile_of(vector),
            "skip" if name in INCREMENTAL else "pass",
            "fail" if name in BUFFERED else "pass",
        )
        for name, vector in VECTORS.items()
    }
    assert "passed on a declared surface: 75 of 75" in page


class TestWhatTheKitDoesNotLookAt:
    """The harness itself must be able to find that something leaked."""

    vector = VECTORS["AH-CTK-111"]
    fine = "public part, "

    def test_all_is_well(self):
        seen = Seen([self.fine], [self.fine], "", [])
        assert streaming_faults(self.vector, seen) == []

    @pytest.mark.parametrize(
        "seen",
        [
            Seen([fine, "SECRET-PART"], [fine], "", []),
            Seen([fine], [fine, "SECRET-PART"], "", []),
            Seen([], [fine], "", []),
            Seen([fine], [fine], "SECRET-PART then a harmless tail", []),
            Seen([fine], [fine], "", ["public part, SECRET-PART then a harmless tail"]),
        ],
        ids=["stream", "update", "too little", "tape", "trace"],
    )
    def test_a_leak_is_found(self, seen):
        assert len(streaming_faults(self.vector, seen)) == 1

    def test_what_must_not_be_kept_is_looked_for_by_itself(self):
        vector = VECTORS["AH-CTK-113"]
        seen = Seen(["keep this, "], ["keep this, "], "… undelivered tail", [])
        assert "undelivered tail" in streaming_faults(vector, seen)[0]

    def test_an_answer_that_was_released_is_kept(self):
        vector = VECTORS["AH-CTK-110"]
        seen = Seen(["the quick brown fox"], ["the quick brown fox"], "", [])
        assert "has not the answer" in streaming_faults(vector, seen)[0]
