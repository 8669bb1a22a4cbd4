from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from hookline.specs import (
    PackSpec,
    PluginManifest,
    ReplayPolicy,
    SideEffects,
    SkillSpec,
    StoreProtocol,
    StoreSpec,
    ToolSpec,
)

from ..tables import each_row


def test_the_example_of_the_hookspec_catalog_constructs_unchanged():
    spec = ToolSpec(
        name="search",
        namespace="acme",
        version="1.0.0",
        description="Search the Acme corpus.",
        input_schema={
            "type": "object",
            "properties": {"q": {"type": "string"}},
            "required": ["q"],
        },
        output_schema={"type": "object"},
        side_effects=SideEffects.read,
    )
    assert spec.qualified_name == "acme.search"
    assert spec.side_effects is SideEffects.read


def test_a_tool_that_says_nothing_is_taken_for_the_most_careful_kind():
    spec = ToolSpec(name="x")
    assert spec.side_effects is SideEffects.external
    assert spec.replay_policy is ReplayPolicy.recorded_result
    assert spec.qualified_name == "x"
    assert spec.input_schema == {"type": "object", "properties": {}}


def test_every_field_of_the_catalogue_is_there():
    assert set(ToolSpec.model_fields) == {
        "name", "namespace", "version", "description", "input_schema", "output_schema", "side_effects",
        "replay_policy", "permissions", "idempotency_key", "cost_estimate", "examples", "tags",
        "deprecated",
    }  # fmt: skip
    assert set(SkillSpec.model_fields) == {
        "name", "namespace", "version", "description", "kind", "tools", "examples", "system_prompt",
    }  # fmt: skip
    assert set(StoreSpec.model_fields) == {
        "name", "provider", "protocol", "config", "config_schema", "capabilities",
    }  # fmt: skip
    assert set(PackSpec.model_fields) == {"id", "version", "manifest_path"}
    assert set(PluginManifest.model_fields) == {
        "name", "version", "api_version", "namespaces", "provides", "requires", "required", "order",
        "settings",
    }  # fmt: skip


def test_words_become_members_and_go_back_to_words():
    spec = ToolSpec.model_validate(
        {"name": "x", "side_effects": "none", "replay_policy": "must-stub", "cost_estimate": "0.10"}
    )
    assert spec.cost_estimate == Decimal("0.10")
    dumped = spec.model_dump(mode="json")
    assert (dumped["side_effects"], dumped["replay_policy"]) == ("none", "must-stub")
    assert ToolSpec.model_validate(dumped) == spec


def test_skills_stores_packs_and_manifests_construct():
    assert SkillSpec(name="review", kind="agent").kind == "agent"
    assert StoreSpec(name="m", provider="sqlite", protocol="memory").protocol is StoreProtocol.memory
    assert PackSpec(id="p", manifest_path="packs/p.toml").manifest_path == Path("packs/p.toml")
    manifest = PluginManifest(name="acme", provides=["tool", "cli"])
    assert (manifest.order, manifest.api_version) == (5000, "1")


@each_row(
    ("make", "field"),
    [
        (lambda: ToolSpec(name="x", colour="red"), "colour"),
        (lambda: ToolSpec(name=""), "name"),
        (lambda: ToolSpec(name="two words"), "name"),
        (lambda: ToolSpec(name="x", side_effects="some"), "side_effects"),
        (lambda: ToolSpec(name="x", input_schema={"type": "array"}), "input_schema"),
        (lambda: ToolSpec(name="x", cost_estimate=Decimal(-1)), "cost_estimate"),
        (lambda: ToolSpec(name="x", cost_estimate=Decimal("NaN")), "cost_estimate"),
        (lambda: StoreSpec(name="x", provider="y", protocol="sql"), "protocol"),
        (lambda: PluginManifest(name="x", order=10001), "order"),
        (lambda: PluginManifest(name="x", order=-1), "order"),
        (lambda: PluginManifest(name="x", api_version="one"), "api_version"),
        (lambda: PluginManifest(name="x", provides=["magic"]), "provides"),
    ],
)
def test_a_wrong_field_is_refused_by_name(make, field):
    with pytest.raises(ValidationError, match=field):
        make()


def test_a_spec_cannot_be_changed_afterwards():
    spec = ToolSpec(name="x")
    with pytest.raises(ValidationError, match="frozen"):
        spec.name = "y"
