"""`[sandbox]`: what it accepts, and that a project can only tighten it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.sandbox import Sandbox, SandboxError
from hookline.sandbox.settings import KINDS, PROFILES, layered, read_settings, strictest

from ..tables import each_row


def test_the_defaults_confine_what_the_model_starts() -> None:
    settings = read_settings({})
    assert settings.enabled
    assert settings.required
    assert not settings.auto_approve
    assert settings.outside == "ask"
    profiles = {kind: settings.profile_of(kind) for kind in KINDS}
    assert profiles["shell"] == profiles["jobs"] == "workspace"
    assert profiles["search"] == "read-only"
    assert profiles["command_hooks"] == profiles["mcp"] == "open"


@each_row("kind", KINDS)
@each_row("profile", PROFILES)
def test_what_a_project_brings_is_never_looser_than_workspace(kind: Any, profile: Any) -> None:
    chosen = read_settings({kind: profile}).profile_of(kind, project=True)
    assert PROFILES.index(chosen) <= PROFILES.index("workspace")


@each_row("kind", KINDS)
@each_row("own", PROFILES)
@each_row("project", PROFILES)
def test_a_project_cannot_loosen_a_profile(kind: Any, own: Any, project: Any) -> None:
    settings = layered({kind: own}, {kind: project})
    assert settings.profile_of(kind) == strictest(own, project)


@each_row(
    ("own", "project", "name", "expected"),
    [
        ({}, {"enabled": False}, "enabled", True),
        ({"enabled": False}, {"enabled": True}, "enabled", True),
        ({}, {"required": False}, "required", True),
        ({"required": False}, {"required": True}, "required", True),
        ({}, {"auto_approve": True}, "auto_approve", False),
        ({"auto_approve": True}, {"auto_approve": True}, "auto_approve", True),
        ({"auto_approve": True}, {"auto_approve": False}, "auto_approve", False),
        ({"auto_approve": True}, {"profile": "workspace"}, "auto_approve", True),
        ({}, {"outside": "allow"}, "outside", "ask"),
        ({"outside": "allow"}, {"outside": "ask"}, "outside", "ask"),
        ({"outside": "allow"}, {"outside": "deny"}, "outside", "deny"),
        ({"outside": "deny"}, {"outside": "allow"}, "outside", "deny"),
        ({}, {"read": ["/srv"]}, "read", []),
        ({"read": ["/srv"]}, {"read": []}, "read", ["/srv"]),
        ({}, {"write": ["/srv"]}, "write", []),
        ({}, {"environment": ["*"]}, "environment", []),
        ({"environment": ["A"]}, {"environment": ["B"]}, "environment", ["A"]),
        ({}, {"protect": ["Makefile"]}, "protect", ["Makefile"]),
        ({"protect": ["a"]}, {"protect": ["b"]}, "protect", ["a", "b"]),
        ({}, {"subagents": "read-only"}, "subagents", "read-only"),
        ({"subagents": "read-only"}, {"subagents": "open"}, "subagents", "read-only"),
    ],
)
def test_a_project_only_tightens(own: Any, project: Any, name: str, expected: Any) -> None:
    assert getattr(layered(own, project), name) == expected


@pytest.mark.parametrize(
    ("own", "project", "expected"),
    [
        ([], ["evil.example"], []),
        ([], {"shell": ["*"]}, []),
        (["a.example"], ["a.example", "evil.example"], ["a.example"]),
        (["a.example", "b.example"], [], []),
        ({"shell": ["a.example"]}, ["*"], []),
        (["*"], ["a.example"], []),
    ],
)
def test_a_project_opens_no_host(own: Any, project: Any, expected: list[str]) -> None:
    assert layered({"network": own}, {"network": project}).hosts_of("shell") == expected


@pytest.mark.parametrize(
    ("own", "project", "name", "expected"),
    [
        ({}, {"processes": 10}, "processes", 10),
        ({"processes": 10}, {"processes": 20}, "processes", 10),
        ({"memory": "1G"}, {"memory": "4G"}, "memory", 1 << 30),
        ({"memory": "4G"}, {"memory": "512M"}, "memory", 512 << 20),
        ({"cpu_seconds": 5}, {"processes": 10}, "cpu_seconds", 5),
        ({}, {"cpu_seconds": 5}, "cpu_seconds", 5),
        ({"open_files": 64}, {"memory": "1G"}, "open_files", 64),
    ],
)
def test_a_project_only_lowers_limits(own: Any, project: Any, name: str, expected: int) -> None:
    settings = layered({"limits": own}, {"limits": project})
    assert getattr(settings.limits, name) == expected


@each_row(
    ("values", "named"),
    [
        ({"profil": "open"}, "profil"),
        ({"profile": "loose"}, "profile"),
        ({"shell": "none"}, "shell"),
        ({"network": "packages.example"}, "network"),
        ({"network": {"shel": []}}, "network"),
        ({"limits": {"memory": "lots"}}, "limits.memory"),
        ({"limits": {"processes": 0}}, "limits.processes"),
        ({"limits": {"speed": 1}}, "limits.speed"),
        ({"outside": "sometimes"}, "outside"),
        ({"enabled": "perhaps"}, "enabled"),
        ({"read": "/srv"}, "read"),
        ({"environment": [1]}, "environment"),
    ],
)
def test_a_wrong_setting_is_named(values: Any, named: str) -> None:
    with pytest.raises(SandboxError, match=rf"\[sandbox\]: {named}"):
        read_settings(values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("512M", 512 << 20), ("4G", 4 << 30), ("4GiB", 4 << 30), ("10kb", 10 << 10), ("7", 7), (9, 9)],
)
def test_a_size_is_read_with_its_unit(text: Any, expected: int) -> None:
    assert read_settings({"limits": {"memory": text}}).limits.memory == expected


@pytest.mark.parametrize("own", PROFILES)
@pytest.mark.parametrize("wanted", [None, *PROFILES])
@pytest.mark.parametrize("project", [False, True])
def test_one_server_or_hook_has_its_own_profile_and_a_projects_only_a_stricter_one(
    tmp_path: Path, own: Any, wanted: Any, project: bool
) -> None:
    settings = read_settings({"mcp": own})
    sandbox = Sandbox(workspace=tmp_path, home=tmp_path / "home", settings=settings)
    chosen = sandbox.profile_of("mcp", wanted, project=project)
    if project:
        assert chosen == strictest(wanted or own, own, "workspace")
    else:
        assert chosen == (wanted or own)


@pytest.mark.parametrize(
    ("wanted", "project", "expected"),
    [
        (None, False, ("a.example",)),
        ([], False, ()),
        (["b.example"], False, ("b.example",)),
        (["b.example"], True, ()),
        (["*"], True, ()),
        (["a.example", "b.example"], True, ("a.example",)),
    ],
)
def test_one_server_or_hook_has_its_own_hosts_and_a_projects_only_the_users(
    tmp_path: Path, wanted: Any, project: bool, expected: Any
) -> None:
    settings = read_settings({"network": ["a.example"]})
    sandbox = Sandbox(workspace=tmp_path, home=tmp_path / "home", settings=settings)
    assert sandbox.hosts_of("mcp", "open", wanted, project=project) == expected
