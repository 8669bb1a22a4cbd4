"""`.claude/agents`: files of the user and the project as roles that `delegate` gives tasks to."""

from pathlib import Path

import pytest

from hookline.models import Call, Turn


def put(root: Path, name: str, fields: str, body: str = "You review.") -> Path:
    path = root / ".claude" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{fields}\n---\n\n{body}\n")
    return path


async def roles(app):
    async with app.running():
        return dict(app.subagents.roles)


async def test_the_model_is_told_of_a_file_and_delegates_to_it_with_its_tools_alone(app, scripted):
    fields = "name: reviewer\ndescription: Reviews code.\ntools: Read, Bash\ndisallowedTools: Bash"
    put(app.workspace, "reviewer", fields, "You look for faults.")
    call = Call("delegate", {"tasks": ["look at a.py"], "role": "reviewer"})
    write = Call("write_file", {"path": "made", "content": "x"})
    model = scripted(Turn(tool_calls=[call]), Turn(tool_calls=[write]), "fine", "done")
    async with app.running():
        await app.process({"content": "hi"})
    first, second, third, *_ = model.requests
    assert "- reviewer: Reviews code." in first.system
    assert "You look for faults." in second.system
    assert "read_file" in str(second.tools)
    assert "write_file" not in str(second.tools)
    assert "'shell'" not in str(second.tools)
    assert "not among the tools of reviewer" in str(third.messages[-1]["content"])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("name: x", "description is missing"),
        ("name: x\ndescription: d\nmetadata: {", "is not YAML"),
        ("name: x\ndescription: d\nmaxTurns: 0", "maxTurns: "),
        ("name: x\ndescription: d\ntools: 3", "tools must be a list"),
        ("name: x\ndescription: d\npermissionMode: plan", "permissionMode 'plan' cannot be kept"),
        ("name: x\ndescription: d\ndisallowedTools: mcp__db", "'mcp__db' must name one tool"),
    ],
)
async def test_a_bad_file_is_named_with_its_reason_and_the_rest_loads(app, fields, reason):
    path = put(app.workspace, "bad", fields)
    put(app.workspace, "good", "name: good\ndescription: d")
    assert set(await roles(app)) == {"good"}
    [warning] = app.plugins.warnings
    assert warning.startswith(f"{path} is left out: ")
    assert reason in warning


async def test_what_is_not_used_is_reported_and_grants_nothing(app):
    put(
        app.workspace,
        "a",
        "name: a\ndescription: d\ntools: Read, WebSearch, Bash(git:*)\nmodel: opus\n"
        "permissionMode: bypassPermissions\nhooks: {}\nmaxTurns: 3",
    )
    role = (await roles(app))["a"]
    assert (role.tools, role.model, role.steps) == (("read_file",), None, 3)
    told = "\n".join(app.plugins.warnings)
    for field in ("'WebSearch'", "'Bash(git:*)'", "'opus'", "bypassPermissions", "hooks is not used"):
        assert field in told


async def test_the_users_agent_keeps_its_name_and_a_link_out_of_the_project_is_refused(app, tmp_path):
    app.user_home = tmp_path / "home of the user"
    put(app.user_home, "a", "name: a\ndescription: mine")
    put(app.workspace, "a", "name: a\ndescription: theirs")
    secret = put(tmp_path / "elsewhere", "s", "name: s\ndescription: d")
    (app.workspace / ".claude/agents/s.md").symlink_to(secret)
    found = await roles(app)
    assert {name: role.description for name, role in found.items()} == {"a": "mine"}
    told = "\n".join(app.plugins.warnings)
    assert "has an agent named 'a'" in told
    assert "leads out of" in told


async def test_a_reload_drops_the_role_of_a_file_that_is_gone(app):
    path = put(app.workspace, "a", "name: a\ndescription: d")
    async with app.running():
        assert "a" in app.subagents.roles
        path.unlink()
        await app.hook_files.reload()
        assert "a" not in app.subagents.roles
