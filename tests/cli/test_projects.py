"""Each project folder has its own conversations, whichever way they are started."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from hookline.runtime.app import Hookline

from .. import commandline, forks

pytestmark = pytest.mark.slow

HOOK = """
import json
from pathlib import Path


def heard(event):
    said = [m["content"] for m in event.messages if m["role"] == "user"]
    Path({file!r}).write_text(json.dumps(said))


hooks = [("context", heard)]
"""
"""Writes down what the model is told of the conversation."""


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    """Two projects with the same name that share a home."""
    (tmp_path / "model.toml").write_text('repeat = true\n[[turns]]\ntext = "ok"\n')
    home, said = tmp_path / "home", tmp_path / "heard"
    hooks = home / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "heard.py").write_text(HOOK.format(file=str(said)))
    first, second = tmp_path / "a" / "garden", tmp_path / "b" / "garden"
    first.mkdir(parents=True)
    second.mkdir(parents=True)
    model = ("--model", f"scripted:{tmp_path / 'model.toml'}")

    def hookline(folder, command, *arguments, stdin=""):
        run = commandline.here(home, folder, monkeypatch, capsys)
        given = model if command in ("run", "chat") else ()
        return run(command, *arguments, *given, stdin=stdin)

    def chat(folder, text, *arguments):
        env = commandline.environment(home, TERM="dumb", COLUMNS="300")
        return forks.run(
            forks.MAIN, "chat", *arguments, *model, stdin=text, env=env, cwd=folder
        )  # fmt: skip

    def heard():
        return json.loads(said.read_text())

    return SimpleNamespace(
        first=first, second=second, hookline=hookline, chat=chat, home=home, heard=heard
    )


def session_of(done):
    return json.loads(done.stdout)["session_id"]


class TestRun:
    def test_a_run_starts_a_session_of_its_own(self, place):
        for folder in (place.first, place.first, place.second):
            done = place.hookline(folder, "run", "the secret is walrus")
            assert (done.stdout, done.stderr) == ("ok\n", "")
            assert place.heard() == ["the secret is walrus"]
        listed = place.hookline(place.first, "tape", "list").stdout.splitlines()
        assert len(listed) == 3

    def test_continue_goes_on_in_the_same_folder_and_says_with_what(self, place):
        started = session_of(place.hookline(place.first, "run", "walrus", "--json"))
        place.hookline(place.second, "run", "otter")
        done = place.hookline(place.first, "run", "again", "--continue")
        assert place.heard() == ["walrus", "again"]
        assert f"hookline: continuing session {started}: 2 messages, last used 20" in done.stderr
        assert "another project" not in done.stderr

    def test_json_stays_json_when_a_session_continues(self, place):
        place.hookline(place.first, "run", "walrus")
        done = place.hookline(place.first, "run", "again", "--continue", "--json")
        assert json.loads(done.stdout)["content"] == "ok"
        assert place.heard() == ["walrus", "again"]
        assert "continuing session" in done.stderr

    @pytest.mark.parametrize("command", ["run", "chat"])
    def test_continue_in_a_folder_without_a_session_is_refused(self, place, command):
        place.hookline(place.first, "run", "walrus")
        inner = place.first / "vendor"
        inner.mkdir()
        for folder in (place.second, place.first.parent, inner):
            words = ["again"] if command == "run" else []
            done = place.hookline(folder, command, *words, "--continue")
            assert done.returncode == 2
            assert f"there is no session to continue in {folder}" in done.stderr
            assert "--session" in done.stderr
            assert done.stdout == ""

    def test_a_session_of_another_project_can_be_named_and_is_said(self, place):
        place.hookline(place.first, "run", "walrus", "--session", "notes")
        done = place.hookline(place.second, "run", "again", "--session", "notes")
        assert place.heard() == ["walrus", "again"]
        assert "continuing session notes: 2 messages, last used" in done.stderr
        assert f"from another project: {place.first}" in done.stderr
        # It stays a session of the project that it began in.
        assert place.hookline(place.second, "run", "more", "--continue").returncode == 2
        done = place.hookline(place.first, "run", "more", "--continue")
        assert place.heard() == ["walrus", "again", "more"]

    def test_a_link_to_a_folder_is_that_folder(self, place, tmp_path):
        (tmp_path / "link").symlink_to(place.first)
        place.hookline(place.first, "run", "walrus")
        place.hookline(tmp_path / "link", "run", "again", "--continue")
        assert place.heard() == ["walrus", "again"]
        place.hookline(place.second, "run", "more", "--continue", "--workspace", tmp_path / "link")
        assert place.heard() == ["walrus", "again", "more"]

    def test_a_renamed_folder_starts_afresh_and_its_old_session_can_be_named(self, place):
        started = session_of(place.hookline(place.first, "run", "walrus", "--json"))
        moved = place.first.rename(place.first.with_name("orchard"))
        assert place.hookline(moved, "run", "again", "--continue").returncode == 2
        done = place.hookline(moved, "run", "again", "--session", started)
        assert place.heard() == ["walrus", "again"]
        assert f"from another project: {place.first}" in done.stderr

    @pytest.mark.parametrize("name", ["Übung", "a:b#c", "user:ada", "...", "x" * 200, "naïve/\udcff"])
    def test_a_folder_may_have_any_name(self, place, name):
        folder = place.first / name
        folder.mkdir(parents=True)
        started = session_of(place.hookline(folder, "run", "walrus", "--json"))
        place.hookline(folder, "run", "again", "--continue")
        assert place.heard() == ["walrus", "again"]
        channel, _, rest = started.partition(":")
        assert (channel, rest.count("#"), rest.isascii(), "/" in rest) == ("terminal", 1, True, False)
        assert len(rest) < 50

    def test_a_chat_that_is_named_goes_on(self, place):
        place.hookline(place.first, "run", "walrus", "--channel", "c", "--chat-id", "7")
        done = place.hookline(place.first, "run", "again", "--channel", "c", "--chat-id", "7")
        assert place.heard() == ["walrus", "again"]
        assert "continuing session c:7: 2 messages" in done.stderr

    def test_sessions_of_another_channel_are_not_continued(self, place):
        place.hookline(place.first, "run", "walrus", "--channel", "telegram", "--chat-id", "7")
        assert place.hookline(place.first, "run", "again", "--continue").returncode == 2

    @pytest.mark.parametrize(
        "options",
        [
            ["--session", "a", "--continue"],
            ["--session", "a", "--chat-id", "7"],
            ["--chat-id", "7", "--continue"],
            ["--session", " "],
        ],
    )
    def test_options_that_contradict_each_other_are_refused(self, place, options):
        done = place.hookline(place.first, "run", "again", *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert options[0] in done.stderr

    def test_only_a_turn_of_this_project_is_resumed(self, place, tmp_path):
        app = Hookline(home=place.home, workspace=place.first)
        app.load_hooks(packages=False)

        async def cut_off():
            async with app.running():
                tape = await app.tape("mine")
                await tape.append_many(
                    [
                        ("turn", {"status": "started", "turn_id": "t", "workspace": str(place.first)}),
                        ("message", {"message": {"role": "user", "content": "walrus"}}),
                    ]
                )

        asyncio.run(cut_off())
        done = place.hookline(place.second, "run", "--resume")
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is no turn that was cut off" in done.stderr
        done = place.hookline(place.first, "run", "--resume")
        assert (done.returncode, place.heard()) == (0, ["walrus"])
        assert "continuing session mine: 1 message, last used" in done.stderr


def test_the_sessions_of_this_project_are_listed_first(place):
    place.hookline(place.first, "run", "walrus", "--session", "notes")
    place.hookline(place.second, "run", "otter", "--session", "other")
    notes, other = place.hookline(place.first, "sessions").stdout.splitlines()
    assert notes.endswith("entries  notes  walrus")
    assert other.endswith(f"entries  other  [{place.second}]  otter")


class TestChat:
    def test_a_folder_has_one_session_that_goes_on(self, place):
        assert place.chat(place.first, "walrus\n").stdout == "ok\n"
        done = place.chat(place.second, "otter\n")
        assert (place.heard(), "continuing" in done.stderr) == (["otter"], False)
        done = place.chat(place.first, "again\n")
        assert place.heard() == ["walrus", "again"]
        assert "continuing session terminal:garden-" in done.stderr
        assert ": 2 messages, last used" in done.stderr
        assert "/new starts another" in done.stderr

    def test_the_sessions_of_this_project_are_listed_first(self, place):
        place.hookline(place.first, "run", "walrus", "--session", "notes")
        place.hookline(place.second, "run", "otter", "--session", "other")
        done = place.chat(place.first, "/fork\n/switch notes\n/resume\n", "--session", "notes")
        fork, notes, other = [line for line in done.stdout.splitlines() if " entries" in line]
        assert fork.startswith("  notes#")
        assert notes.startswith("→ notes ")
        assert "[" not in fork + notes
        assert other.startswith("  other ")
        assert other.endswith(f"[{place.second}] otter")

    def test_a_listed_name_can_be_switched_to(self, place):
        place.hookline(place.first, "run", "walrus")
        listed = place.chat(place.first, "/resume\n").stdout
        name = listed.split()[0]
        assert name.startswith("#")
        done = place.chat(place.first, f"/resume {name}\nagain\n")
        assert (place.heard(), "another project" in done.stdout) == (["walrus", "again"], False)

    def test_a_switch_to_another_projects_session_is_said(self, place):
        place.hookline(place.first, "run", "walrus", "--session", "notes")
        done = place.chat(place.second, "/resume notes\nagain\n")
        assert "session notes: 2 messages, last used" in done.stdout
        assert f"from another project: {place.first}" in done.stdout
