"""`hookline run` as a user meets it, a process with its exit codes and messages; and its neighbours."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from .. import commandline
from ..processes import long_sleep, running

pytestmark = pytest.mark.slow

SCRIPT = """
[[turns]]
text = "Let me look."
tool_calls = [{ name = "list_files", arguments = {} }]

[[turns]]
text = "There is a file."
"""


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    return f"scripted:{path}"


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("hello")
    return folder


@pytest.fixture
def here(home, workspace, monkeypatch, capsys):
    """`hookline` in this process."""
    return commandline.here(home, workspace, monkeypatch, capsys)


@pytest.fixture
def hookline(home, workspace):
    """`hookline` in a process of its own."""

    def run(*arguments, stdin=b"", text=True):
        env = {**os.environ, "HOOKLINE_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "120"}
        done = subprocess.run(
            [sys.executable, "-m", "hookline", *map(str, arguments)],
            input=stdin, capture_output=True, cwd=workspace, env=env, check=False,
        )  # fmt: skip
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    return run


class TestRun:
    def test_the_answer_is_on_standard_output_and_the_rest_beside_it(self, hookline, script):
        done = hookline("run", "what is here?", "--model", script)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "Let me look.\nThere is a file.\n"
        assert "→ list_files {}" in done.stderr

    def test_without_streaming_only_the_answer_is_printed(self, here, script):
        done = here("run", "what is here?", "--model", script, "--no-stream")
        assert (done.stdout, done.stderr) == ("There is a file.\n", "")

    def test_json_is_one_object(self, here, script):
        done = here("run", "hi", "--model", script, "--json", "--session", "mine")
        told = json.loads(done.stdout)
        assert (told["session_id"], told["content"]) == ("mine", "There is a file.")

    def test_the_message_may_come_from_a_pipe(self, hookline, here, script):
        said = ("run", "--model", script, "--no-stream", "--session", "s")
        done = hookline(*said, stdin="Grüße".encode())
        assert done.returncode == 0
        assert "Grüße" in here("tape", "show", "s").stdout

    def test_channel_chat_and_sender_reach_the_envelope(self, here, script):
        here("run", "hi", "--model", script, "--channel", "c", "--chat-id", "7", "--sender-id", "ada")
        shown = here("tape", "show", "c:7", "--json").stdout.splitlines()
        assert json.loads(shown[0])["payload"]["envelope"]["sender_id"] == "ada"

    @pytest.mark.parametrize(
        ("arguments", "stdin", "message"),
        [
            (["run", "  "], b"", "the message is empty"),
            (["run"], b"", "the message is empty"),
            (["run"], b"\xff\xfe", "standard input is not UTF-8 text (byte 0)"),
            (["run", "hi", "--model", "scriptd:x"], b"", "unknown model 'scriptd:x'"),
            (["run", "hi", "--model", "scripted:none.toml"], b"", "none.toml"),
            (["run", "hi", "--workspace", "nowhere"], b"", "the workspace nowhere is not a folder"),
            (["run", "--resume"], b"", "there is no turn that was cut off"),
            (["run", "more", "--resume"], b"", "--resume continues a turn and takes no message"),
            (["tape", "show", "nobody"], b"", "no session 'nobody'"),
            (["tape", "import", "none.jsonl"], b"", "cannot read none.jsonl"),
        ],
    )
    def test_bad_input_is_one_line_and_exit_code_2(self, here, arguments, stdin, message):
        done = here(*arguments, stdin=stdin)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") <= 3
        assert done.stdout == ""

    def test_a_turn_that_fails_is_exit_code_1_and_the_tape_stays_valid(self, here, tmp_path):
        broken = tmp_path / "broken.toml"
        broken.write_text('[[turns]]\nerror = { message = "the model broke" }\n')
        done = here("run", "hi", "--model", f"scripted:{broken}", "--session", "s")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "hookline: the model broke\n"
        last = here("tape", "show", "s", "--json").stdout.splitlines()[-1]
        assert json.loads(last)["payload"]["status"] == "failed"

    def test_a_message_of_ten_megabytes_goes_through(self, hookline, script):
        done = hookline("run", "--model", script, "--no-stream", stdin=b"x" * 10_000_000)
        assert (done.returncode, done.stdout) == (0, "There is a file.\n")

    def test_being_asked_to_end_cancels_the_turn_and_leaves_nothing_running(self, home, tmp_path):
        script = tmp_path / "slow.toml"
        command = long_sleep()
        call = f'{{ name = "shell", arguments = {{ command = "echo > began; exec {command}" }} }}'
        script.write_text(f"[[turns]]\ntool_calls = [{call}]\n")
        process = subprocess.Popen(
            [sys.executable, "-m", "hookline", "run", "hi", "--yes", "--model", f"scripted:{script}"],
            env={**os.environ, "HOOKLINE_HOME": str(home)}, cwd=tmp_path, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while not (tmp_path / "began").exists():
            assert process.poll() is None
            time.sleep(0.01)
        assert running(command)
        process.terminate()
        assert process.wait(60) == 143
        assert running(command) == []

    def test_errors_are_json_too_where_json_was_asked_for(self, here):
        done = here("run", " ", "--json")
        assert done.returncode == 2
        assert json.loads(done.stdout)["message"].startswith("the message is empty")


class TestABadTape:
    def test_a_corrupt_file_is_named_with_what_to_do(self, here, home, script):
        home.mkdir()
        (home / "tape.db").write_bytes(b"this is not a database, whatever its name says" * 100)
        done = here("run", "hi", "--model", script)
        assert done.returncode == 2
        assert "tape.db" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_file_of_a_newer_version_is_left_alone(self, here, home, script):
        assert here("run", "hi", "--model", script).returncode == 0
        with closing(sqlite3.connect(home / "tape.db")) as db:
            db.execute("PRAGMA user_version = 999")
        before = (home / "tape.db").read_bytes()
        done = here("run", "again", "--model", script)
        assert done.returncode == 2
        assert "999" in done.stderr
        assert (home / "tape.db").read_bytes() == before

    def test_a_locked_file_is_waited_for_and_then_named(self, here, home, script):
        assert here("run", "hi", "--model", script).returncode == 0
        db = sqlite3.connect(home / "tape.db", isolation_level=None)
        db.execute("BEGIN EXCLUSIVE")
        done = here("run", "again", "--model", script)
        db.close()
        assert done.returncode == 2
        assert "locked" in done.stderr or "another process" in done.stderr


class TestTheLocalModel:
    def test_when_it_is_not_installed_three_lines_say_what_to_do(self, home, tmp_path):
        program = (
            "import sys; sys.modules['xllamacpp'] = None; sys.argv = ['hookline', 'run', 'hi']; "
            "from hookline.cli import main; main()"
        )
        env = {**os.environ, "HOOKLINE_HOME": str(home)}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False
        )
        assert done.returncode == 2
        assert "hookline[local]" in done.stderr
        assert 1 <= done.stderr.count("\n") <= 3
        assert "Traceback" not in done.stderr


class TestNeighbours:
    def test_doctor_tells_what_works(self, here):
        done = here("doctor")
        assert done.returncode == 0, done.stdout
        for part in ("plugins   builtin", "tools     read_file", "scripted:FILE", "tape.db"):
            assert part in done.stdout

    def test_models_tells_the_default_and_why_others_cannot_be_used(self, here):
        done = here("models")
        assert "local" in done.stdout
        assert "(default)" in done.stdout

    def test_a_hook_in_detail_says_who_is_attached(self, here):
        done = here("hooks", "run_model_stream")
        assert "attached   builtin" in done.stdout

    def test_tapes_are_listed_searched_exported_and_imported(self, here, script, tmp_path, home):
        here("run", "find the walrus", "--model", script, "--session", "s")
        assert "entries  s  find the walrus" in here("tape", "list").stdout
        assert "walrus" in here("tape", "search", "walrus").stdout
        kept = tmp_path / "kept.jsonl"
        assert here("tape", "export", kept).returncode == 0
        before = here("tape", "show", "s").stdout
        (home / "tape.db").rename(tmp_path / "old.db")
        assert "7 entries added" in here("tape", "import", kept).stdout
        shown = here("tape", "show", "s").stdout
        assert shown.startswith(before)
        assert shown.splitlines()[-1].endswith('import       {"entries": 7}')
        assert "0 entries added, 7 already there" in here("tape", "import", kept).stdout

    def test_a_session_is_exported_as_a_page(self, here, script, tmp_path):
        here("run", "find the <walrus>", "--model", script, "--session", "s")
        page = tmp_path / "page.html"
        assert here("tape", "export", page).returncode == 0
        assert "find the &lt;walrus&gt;" in page.read_text()
        same = here("tape", "export", "-", "--html", "--session", "s")
        assert same.stdout == page.read_text()

    def test_a_page_of_no_unknown_or_several_sessions_is_refused(self, here, script, tmp_path):
        page = tmp_path / "page.html"
        assert "there is none" in here("tape", "export", page).stderr
        here("run", "hello", "--model", script)
        for options, problem in (
            (["--session", "nobody"], "no session 'nobody'"),
            (["--session", "a", "--session", "b"], "2 were named"),
        ):
            done = here("tape", "export", page, *options)
            assert done.returncode != 0
            assert problem in done.stderr
            assert "Traceback" not in done.stderr
        assert not page.exists()

    def test_a_cut_off_turn_is_continued_from_the_command_line(self, here, tmp_path, script, home):
        crash = Path(__file__).parents[1] / "app" / "crashing.py"
        home.mkdir()
        subprocess.run([sys.executable, crash, home, "reads", "authorize_action"], check=False)
        rest = tmp_path / "rest.toml"
        rest.write_text('[[turns]]\ntext = "Continued."\n')
        done = here("run", "--resume", "--session", "s", "--model", f"scripted:{rest}")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "Continued.\n"
        assert "unknown tool 'count'" in done.stderr
