"""A project's hooks: inert until trusted, and again when they change; seen by the commands."""

import json
import os

import pytest

from hookline.events import ToolCallEvent
from hookline.policy import Policy
from hookline.runtime.app import Hookline

from .. import forks


async def judged(app):
    async with app.running():
        event = ToolCallEvent("c1", "shell", {"command": "true"})
        return await app.hooks.call(event, app.context("s"))


def again(app, **more) -> Hookline:
    """A later start in the same place."""
    made = Hookline(home=app.home, workspace=app.workspace, policy=Policy(default="allow"), **more)
    made.load_hooks(packages=False)
    made.user_home = app.home.parent
    return made


def deny(places, path=None, command="echo project >&2; exit 2") -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    places.write(hooks, path or places.project)


class TestTrust:
    async def test_a_projects_hooks_do_nothing_until_they_are_trusted(self, app, places):
        deny(places, command=f"touch {places.folder}/ran; exit 2")
        assert (await judged(app)).allowed
        assert not (places.folder / "ran").exists()
        (item,) = app.hook_files.inert()
        assert (item.kind, item.name) == ("settings", ".claude/settings.json")
        assert item.runs == (f"touch {places.folder}/ran; exit 2",)

    async def test_trusted_they_run(self, app, places):
        deny(places)
        places.trust()
        assert (await judged(app)).reason == "project"
        assert app.hook_files.inert() == []

    async def test_a_changed_file_is_inert_again(self, app, places):
        deny(places)
        places.trust()
        deny(places, command="echo other >&2; exit 2")
        assert (await judged(app)).allowed
        assert len(app.hook_files.inert()) == 1

    async def test_a_changed_script_makes_it_inert_too(self, app, places):
        script = app.workspace / ".claude" / "hooks" / "check.sh"
        script.parent.mkdir(parents=True)
        script.write_text("echo script >&2; exit 2")
        deny(places, command='sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh')
        places.trust()
        assert (await judged(app)).reason == "script"
        script.write_text("touch stolen; exit 2")
        assert (await judged(again(app))).allowed
        assert not (app.workspace / "stolen").exists()

    async def test_a_script_elsewhere_in_the_project_counts_as_well(self, app, places):
        script = app.workspace / "tools" / "check.sh"
        script.parent.mkdir()
        script.write_text("exit 2")
        deny(places, command="sh ./tools/check.sh --strict")
        places.trust()
        assert (await judged(app)).denied
        script.write_text("exit 2 # changed")
        assert (await judged(again(app))).allowed

    async def test_local_settings_need_trust_as_well(self, app, places):
        deny(places, places.project.with_name("settings.local.json"))
        assert (await judged(app)).allowed
        places.trust()
        assert (await judged(again(app))).denied

    async def test_the_projects_configuration_needs_trust_as_well(self, app, places):
        path = app.workspace / ".hookline" / "config.toml"
        path.parent.mkdir()
        path.write_text(
            "[[hooks.commands.PreToolUse]]\n"
            'hooks = [{ type = "command", command = "echo toml >&2; exit 2" }]\n'
        )
        assert (await judged(app)).allowed
        places.trust()
        assert (await judged(again(app))).reason == "toml"

    async def test_a_project_cannot_turn_off_or_loosen_the_users_hooks(self, app, places):
        places.on("PreToolUse", "exit 1", on_failure="deny")
        path = app.workspace / ".hookline" / "config.toml"
        path.parent.mkdir()
        path.write_text('[hooks.commands]\nenabled = false\non_failure = "allow"\n')
        places.write({}, places.project, disableAllHooks=True)
        places.trust()
        assert (await judged(app)).denied

    async def test_without_the_project_its_hooks_are_ignored(self, app, places):
        deny(places)
        places.trust()
        left_out = again(app, project=False)
        assert (await judged(left_out)).allowed
        assert left_out.hook_files.items() == []

    async def test_a_link_that_leads_out_of_the_project_is_refused(self, app, places):
        outside = places.folder / "outside.json"
        deny(places, outside)
        places.project.parent.mkdir()
        places.project.symlink_to(outside)
        assert (await judged(app)).allowed
        assert "leads out of the project" in str(app.failures[0])

    async def test_in_the_users_home_the_settings_are_the_users(self, app, places):
        deny(places)
        app.user_home = app.workspace
        assert (await judged(app)).denied

    async def test_a_change_while_it_runs_keeps_what_was_trusted(self, app, places):
        deny(places)
        places.trust()
        async with app.running():
            deny(places, command="true")  # an agent that would rid itself of its guard
            await app.hook_files.reload()
            event = ToolCallEvent("c1", "shell", {"command": "true"})
            assert (await app.hooks.call(event, app.context("s"))).denied
            app.trust.revoke(app.workspace)
            await app.hook_files.reload()
            assert (await app.hooks.call(event, app.context("s"))).allowed


SCRIPT = """
[[turns]]
tool_calls = [{ name = "shell", arguments = { command = "touch made" } }]

[[turns]]
text = "That is all."
"""


class TestCommands:
    @pytest.fixture
    def hookline(self, tmp_path):
        workspace = tmp_path / "work"
        (workspace / ".claude").mkdir(parents=True)
        (tmp_path / "user").mkdir()
        (tmp_path / "script.toml").write_text(SCRIPT)
        environ = {**os.environ, "HOME": str(tmp_path / "user"), "NO_COLOR": "1", "COLUMNS": "200"}
        environ["HOOKLINE_HOME"] = str(tmp_path / "home")

        def run(*arguments, stdin=""):
            return forks.run(forks.MAIN, *arguments, stdin=stdin, cwd=workspace, env=environ)

        return run

    def settings(self, folder, command: str) -> None:
        hooks = {
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]
        }
        (folder / ".claude").mkdir(exist_ok=True)
        (folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))

    def test_run_obeys_the_users_hooks(self, hookline, tmp_path):
        say = json.dumps({"systemMessage": "watch out", "decision": "block", "reason": "not here"})
        self.settings(tmp_path / "user", f"echo '{say}'")
        done = hookline("run", "hi", "--yes", "--model", f"scripted:{tmp_path / 'script.toml'}")
        assert done.returncode == 0, done.stderr
        assert "✗ shell: not here" in done.stderr
        assert "hookline: watch out" in done.stderr
        assert not (tmp_path / "work" / "made").exists()

    def test_chat_obeys_a_projects_hooks_once_they_are_trusted(self, hookline, tmp_path):
        self.settings(tmp_path / "work", "echo not in this project >&2; exit 2")
        model = f"scripted:{tmp_path / 'script.toml'}"
        before = hookline("chat", "--model", model, stdin="hi\n")
        assert "1 thing of this project is inert" in before.stdout + before.stderr
        shown = hookline("trust", "--yes")
        assert "settings .claude/settings.json (new)" in shown.stdout
        assert "echo not in this project >&2; exit 2" in shown.stdout
        after = hookline("chat", "--model", model, stdin="hi\n")
        assert "inert" not in after.stdout + after.stderr
        assert "not in this project" in after.stdout + after.stderr
        assert not (tmp_path / "work" / "made").exists()

    def test_doctor_tells_what_is_wrong_with_a_settings_file(self, hookline, tmp_path):
        (tmp_path / "user" / ".claude").mkdir()
        (tmp_path / "user" / ".claude" / "settings.json").write_text('{"hooks": {"Stop": 5}}')
        done = hookline("doctor")
        assert done.returncode == 1
        assert "settings.json: hooks.Stop: must be a list" in done.stdout
