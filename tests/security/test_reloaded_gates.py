"""A reload applies changed settings of the policy and the sandbox; invalid ones change nothing."""

import pytest

from hookline.events import ToolCallEvent
from hookline.models import Call, Turn
from hookline.models.scripted import ScriptedModel
from hookline.runtime.app import Hookline

WRITE = Call("write_file", {"path": "a.txt", "content": "a"})


@pytest.fixture
def started(tmp_path):
    """An app with a home whose settings a test writes, and a model that wants to write a file."""
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir(mode=0o700)
    workspace.mkdir()

    def settings(text: str) -> None:
        (home / "config.toml").write_text(text)

    def start() -> Hookline:
        app = Hookline(home=home, workspace=workspace)
        app.load_hooks(packages=False)
        model = ScriptedModel([Turn(tool_calls=[WRITE]), "Done."] * 3)
        app.models.add(model)
        app.model = model.name
        return app

    return settings, start


async def turn(app: Hookline) -> bool:
    """Run a turn, and say whether its call ran."""
    (app.workspace / "a.txt").unlink(missing_ok=True)
    await app.process({"content": "write", "session_id": "s"})
    return (app.workspace / "a.txt").exists()


async def test_a_stricter_policy_counts_after_a_reload(started):
    settings, start = started
    settings('[policy]\ndefault = "allow"\n')
    app = start()
    async with app.running():
        assert await turn(app)
        settings('[policy]\ndefault = "deny"\n')
        assert (await app.hook_files.reload()).problems == []
        assert not await turn(app)


async def test_an_invalid_policy_is_reported_and_the_old_one_stays(started):
    settings, start = started
    settings('[policy]\ndefault = "deny"\n')
    app = start()
    async with app.running():
        assert not await turn(app)
        for invalid in ('[policy]\ndefault = "perhaps"\n', '[policy]\npacks = ["nonexistent"]\n'):
            settings(invalid)
            assert (await app.hook_files.reload()).problems
            assert not await turn(app)


async def test_a_stricter_sandbox_counts_after_a_reload(started):
    settings, start = started
    settings('[sandbox]\nshell = "open"\n')
    app = start()
    async with app.running():
        assert app.sandbox.profile_of("shell") == "open"
        settings('[sandbox]\nshell = "read-only"\n')
        await app.hook_files.reload()
        assert app.sandbox.profile_of("shell") == "read-only"
        settings('[sandbox]\nshell = "perhaps"\n')
        assert (await app.hook_files.reload()).problems
        assert app.sandbox.profile_of("shell") == "read-only"


async def test_a_budget_counts_after_a_reload(started):
    settings, start = started
    settings('[policy]\ndefault = "allow"\n')
    app = start()
    async with app.running():
        assert await turn(app)
        settings('[policy]\ndefault = "allow"\npacks = ["budgets"]\n[policy.budgets]\ncalls = 1\n')
        assert (await app.hook_files.reload()).problems == []
        assert not await turn(app)


async def test_failing_handlers_of_gates_deny_after_a_reload(started):
    settings, start = started
    settings('[policy]\ndefault = "allow"\n')
    app = start()

    def broken(event: ToolCallEvent):
        raise RuntimeError("no")

    app.hooks.register("tool_call", broken)
    async with app.running():
        assert await turn(app)
        settings('[policy]\ndefault = "allow"\n[hooks]\non_gate_error = "deny"\n')
        await app.hook_files.reload()
        assert not await turn(app)
