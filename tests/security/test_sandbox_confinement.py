"""Which shell calls are asked about because of the sandbox, and what doctor says of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline.runtime.app import Hookline
from hookline.runtime.confinement import Confinement
from hookline.runtime.subagent_task import Role
from hookline.sandbox import Sandbox
from hookline.sandbox.explain import explain
from hookline.sandbox.sandbox import probe
from hookline.tools.threads import in_thread

from ..tables import each_row

needs_bubblewrap = pytest.mark.skipif(
    probe()[0] != "bubblewrap", reason=f"needs bubblewrap: {probe()[1]}"
)


def app_of(folder: Path, **overrides: Any) -> Hookline:
    return Hookline(home=folder / "home", workspace=folder, project=False, overrides=overrides)


async def ruled(app: Hookline, source: str = "model", channel: str = "", **arguments: Any) -> str:
    """What a call of `shell` comes to before a person answers."""
    action = {
        "kind": "tool.call",
        "tool": "shell",
        "name": "shell",
        "namespace": "",
        "arguments": {"command": "make", **arguments},
        "call_id": "c",
        "session_id": "s",
        "agent_id": "main",
        "depth": 0,
        "source": source,
        "channel": channel,
        "user": "",
        "side_effects": "external",
        "permissions": [],
        "workspace": str(app.workspace),
        "authorized": None,
    }
    rulings = await Confinement(app).judge(action)
    return max(each.decision for each in rulings).name.lower()


CASES = [
    # policy default, [sandbox], arguments, expected
    ("allow", {}, {}, "allow"),
    ("auto", {}, {}, "ask"),
    ("ask", {}, {}, "ask"),
    ("deny", {}, {}, "deny"),
    ("allow", {"enabled": False}, {}, "ask"),
    ("allow", {"enabled": False, "required": False}, {}, "allow"),
    ("allow", {"shell": "off"}, {}, "ask"),
    ("allow", {"shell": "off", "required": False}, {}, "allow"),
    ("allow", {"jobs": "off"}, {"background": True}, "ask"),
    ("allow", {"jobs": "off"}, {}, "allow"),
    ("deny", {"enabled": False, "required": False}, {}, "deny"),
    ("allow", {}, {"outside_sandbox": True}, "ask"),
    ("auto", {}, {"outside_sandbox": True}, "ask"),
    ("allow", {"outside": "allow"}, {"outside_sandbox": True}, "allow"),
    ("allow", {"outside": "deny"}, {"outside_sandbox": True}, "deny"),
    ("auto", {"outside": "allow"}, {"outside_sandbox": True}, "ask"),
    ("deny", {"outside": "allow"}, {"outside_sandbox": True}, "deny"),
    ("auto", {"auto_approve": True}, {}, "allow"),
    ("auto", {"auto_approve": True}, {"background": True}, "allow"),
    ("ask", {"auto_approve": True}, {}, "ask"),
    ("deny", {"auto_approve": True}, {}, "deny"),
    ("auto", {"auto_approve": True}, {"outside_sandbox": True}, "ask"),
    ("auto", {"auto_approve": True, "enabled": False}, {}, "ask"),
    ("auto", {"auto_approve": True, "shell": "off"}, {}, "ask"),
    ("allow", {}, {"outside_sandbox": False}, "allow"),
]


@needs_bubblewrap
@pytest.mark.parametrize(("default", "sandbox", "arguments", "expected"), CASES)
async def test_the_sandbox_has_a_say_in_a_shell_call(
    tmp_path: Path, default: str, sandbox: Any, arguments: Any, expected: str
) -> None:
    app = app_of(tmp_path, policy={"default": default}, sandbox=sandbox)
    assert await ruled(app, **arguments) == expected


@needs_bubblewrap
@pytest.mark.parametrize(
    ("source", "channel", "expected"),
    [
        ("shell", "terminal", "allow"),
        ("shell", "telegram", "ask"),
        ("shell", "", "ask"),
        ("model", "terminal", "ask"),
        ("trigger", "terminal", "ask"),
    ],
)
async def test_only_what_a_person_typed_at_the_terminal_needs_no_sandbox(
    tmp_path: Path, source: str, channel: str, expected: str
) -> None:
    app = app_of(tmp_path, policy={"default": "allow"}, sandbox={"enabled": False})
    assert await ruled(app, source, channel) == expected


@needs_bubblewrap
async def test_packs_still_judge_a_command_that_the_sandbox_approves(tmp_path: Path) -> None:
    app = app_of(
        tmp_path,
        policy={"default": "auto", "packs": ["destructive-shell"]},
        sandbox={"auto_approve": True},
    )
    assert await ruled(app, command="ls") == "allow"
    assert await ruled(app, command="rm -rf /") == "deny"


@pytest.mark.parametrize("loosest", ["read-only", "workspace", "open"])
@pytest.mark.parametrize("wanted", ["read-only", "workspace", "open", "off", None])
async def test_a_subagent_starts_no_child_in_a_looser_profile(
    tmp_path: Path, loosest: Any, wanted: Any
) -> None:
    order = ["read-only", "workspace", "open", "off"]
    sandbox = Sandbox(workspace=tmp_path, home=tmp_path / "home")

    async def chosen() -> list[str]:
        here = sandbox.profile_of("shell", wanted)
        return [here, await in_thread(lambda: sandbox.profile_of("shell", wanted))]

    with sandbox.at_most(loosest):
        found = [*await asyncio.create_task(chosen())]
        with sandbox.at_most("open"):  # a subagent of the subagent
            found += await chosen()
    assert all(order.index(each) <= order.index(loosest) for each in found)
    assert sandbox.profile_of("shell", "off") == "off"


async def test_a_role_confines_its_subagent(app: Hookline, scripted: Any) -> None:
    scripted("done")
    app.subagents.define(Role(name="reader", sandbox="read-only"))
    seen: list[str] = []
    app.hooks.register("agent_start", lambda event: seen.append(app.sandbox.profile_of("shell")))
    async with app.running():
        await app.subagents.run("look around", parent="s", role="reader")
    assert seen == ["read-only"]


@each_row(
    ("output", "profile", "part"),
    [
        ("touch: cannot touch 'x': Read-only file system", "workspace", "writes are limited"),
        ("OSError: [Errno 30] Read-only file system: '/etc/x'", "read-only", "nothing may be written"),
        ("mv: cannot move '.git' to 'g': Device or resource busy", "workspace", ".git/hooks"),
        ("curl: (6) Could not resolve host: example.org", "workspace", "network"),
        ("connect: Network is unreachable", "workspace", "network"),
        ("403 Forbidden by Hookline", "open", "network"),
        ("Temporary failure in name resolution", "read-only", "network"),
        ("cat: /etc/shadow: Permission denied", "workspace", "hidden"),
        ("all tests passed", "workspace", ""),
        ("", "workspace", ""),
    ],
)
def test_a_failure_because_of_the_sandbox_is_explained(output: str, profile: Any, part: str) -> None:
    line = explain(output, profile)
    assert part in line
    assert bool(line) == bool(part)
    assert "\n" not in line
