"""The audit log: what is in it, what it cannot hide, and what happens when it cannot be written."""

import json
import os
import signal
import subprocess
import sys

import pytest

from hookline.cli.audit import show_decisions, when
from hookline.errors import AuditError
from hookline.events import InputEventResult, ToolCallEventResult, ToolResultEventResult
from hookline.models import Call, ScriptedModel, Turn
from hookline.policy import Policy
from hookline.policy.approvals import call_hash
from hookline.policy.audit import AuditLog
from hookline.policy.hash_chain import ROOT, files_of, head_file, records, verify
from hookline.runtime.app import Hookline

from .. import forks

WRITER = """
import sys
from pathlib import Path
from hookline.policy.audit import AuditLog

log = AuditLog(Path(sys.argv[1]), largest=int(sys.argv[3]))
for number in range(int(sys.argv[2])):
    log.append([{"kind": "decision", "by": sys.argv[4], "number": number}])
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit" / "audit.jsonl"


@pytest.fixture
def log(path):
    log = AuditLog(path)
    for number in range(6):
        log.append([{"kind": "decision", "number": number}])
    return log


def settings(tmp_path, text):
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return home


def app_with(tmp_path, config, turns, **kwargs):
    home = settings(tmp_path, config)
    workspace = tmp_path / "work"
    workspace.mkdir(exist_ok=True)
    app = Hookline(home=home, workspace=workspace, **kwargs)
    app.load_hooks(packages=False)
    model = ScriptedModel(turns)
    app.models.add(model)
    app.model = model.name
    return app


def wrote(path, content="x"):
    return Turn(tool_calls=[Call("write_file", {"path": path, "content": content})])


async def say(app, text="go"):
    async with app.running():
        return await app.process({"content": text, "session_id": "s", "sender_id": "ada"})


# --- the chain ------------------------------------------------------------------------------------


def test_every_line_carries_the_hash_of_the_one_before(log, path):
    found = list(records(path))
    assert [record["seq"] for record in found] == [1, 2, 3, 4, 5, 6]
    assert [record["prev"] for record in found] == [ROOT, *(r["hash"] for r in found[:-1])]
    assert verify(path).fault is None
    assert path.stat().st_mode & 0o777 == 0o600


def lines_of(path):
    return path.read_text().splitlines(keepends=True)


def changed(lines):
    lines[2] = lines[2].replace('"number":2', '"number":9')


def changed_with_its_hash(lines):
    from hookline.policy.hash_chain import digest_of, encoded

    record = json.loads(lines[2])
    record["number"] = 9
    lines[2] = encoded({**record, "hash": digest_of(record)}) + "\n"


def deleted(lines):
    del lines[2]


def inserted(lines):
    lines.insert(2, lines[1])


def swapped(lines):
    lines[2], lines[3] = lines[3], lines[2]


def nonsense(lines):
    lines[2] = "null\n"


@pytest.mark.parametrize(
    ("tamper", "line"),
    [
        (changed, 3),
        (changed_with_its_hash, 4),
        (deleted, 3),
        (inserted, 3),
        (swapped, 3),
        (nonsense, 3),
    ],
)
def test_verify_names_the_first_line_that_does_not_hold(log, path, tamper, line):
    lines = lines_of(path)
    tamper(lines)
    path.write_text("".join(lines))
    report = verify(path)
    assert report.fault is not None
    assert f"{path}, line {line}:" in report.fault
    assert report.lines == line - 1


def test_what_is_cut_off_at_the_end_is_missed(log, path):
    path.write_text("".join(lines_of(path)[:4]))
    assert "2 line(s) at the end are missing; the last was 6" in verify(path).fault
    with pytest.raises(AuditError, match="lines are missing"):  # going on would hide it
        AuditLog(path).append([{"kind": "decision"}])
    assert len(lines_of(path)) == 4


def test_a_whole_log_or_its_head_that_is_gone_is_missed(log, path):
    kept = path.read_bytes()
    path.unlink()
    assert "6 line(s) at the end are missing" in verify(path).fault
    path.write_bytes(kept)
    head_file(path).unlink()
    assert "is missing: nothing says where the log ended" in verify(path).fault
    with pytest.raises(AuditError, match="is missing"):
        AuditLog(path).append([{"kind": "decision"}])


def test_a_log_that_was_written_anew_lacks_a_hash_noted_elsewhere(log, path):
    noted = verify(path).head.hash
    assert verify(path, expected=noted).fault is None
    log.append([{"kind": "decision"}])
    assert verify(path, expected=noted).fault is None
    path.unlink()
    head_file(path).unlink()
    AuditLog(path).append([{"kind": "decision"}] * 7)
    assert verify(path).fault is None
    assert "another log, or it was written anew" in verify(path, expected=noted).fault


def test_a_torn_last_line_counts_for_nothing_and_the_log_goes_on(log, path):
    with path.open("ab") as file:
        file.write(b'{"seq":7,"kind":"dec')
    report = verify(path)
    assert report.fault is None
    assert "was torn" in report.notes[0]
    AuditLog(path).append([{"kind": "decision", "number": "next"}])
    assert verify(path).lines == 7
    assert verify(path).notes == []


def test_a_process_that_ended_before_it_noted_the_head_left_a_log_that_holds(log, path):
    before = head_file(path).read_bytes()
    log.append([{"kind": "decision"}])
    head_file(path).write_bytes(before)
    report = verify(path)
    assert (report.fault, report.lines) == (None, 7)
    assert "1 line(s) after the noted head" in report.notes[0]
    AuditLog(path).append([{"kind": "decision"}])
    assert verify(path).notes == []


def test_rotation_keeps_the_chain_and_a_file_that_is_gone_is_missed(path):
    log = AuditLog(path, largest=400)
    for number in range(12):
        log.append([{"kind": "decision", "number": number}])
    files = files_of(path)
    assert len(files) > 3
    assert verify(path).lines == 12
    assert [record["number"] for record in records(path)] == list(range(12))
    files[1].unlink()
    fault = verify(path).fault
    assert f"{files[2]}, line 1:" in fault
    assert "lines are missing" in fault


def test_two_processes_write_one_chain(path, tmp_path):
    arguments = [sys.executable, "-c", WRITER, str(path), "60", "4000"]
    writers = [subprocess.Popen([*arguments, name], stdout=subprocess.DEVNULL) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    report = verify(path)
    assert (report.fault, report.lines) == (None, 120)
    found = list(records(path))
    for name in "ab":
        assert [r["number"] for r in found if r["by"] == name] == list(range(60))


def test_a_process_killed_while_it_writes_leaves_what_it_wrote(path):
    arguments = [sys.executable, "-c", WRITER, str(path), "1000000", "100000", "a"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as writer:
        told = [int(writer.stdout.readline()) for _ in range(30)]
        os.kill(writer.pid, signal.SIGKILL)
    report = verify(path)
    assert report.fault is None
    assert report.lines >= told[-1] + 1  # what was told to be written is there
    AuditLog(path).append([{"kind": "decision"}])
    assert verify(path).fault is None


# --- what an app writes ---------------------------------------------------------------------------

ON = '[audit]\nenabled = true\n[policy]\ndefault = "allow"\n'


async def test_a_call_is_one_line_with_who_decided_and_no_payload(tmp_path):
    app = app_with(tmp_path, ON, [wrote("secret-name.txt", "secret text"), "Done."])
    await say(app)
    [record] = records(app.safeguards.audit_path)
    assert record["outcome"] == "allowed"
    assert record["tool"] == "write_file"
    assert (record["session_id"], record["user"], record["source"]) == ("s", "ada", "model")
    arguments = {"path": "secret-name.txt", "content": "secret text"}
    assert record["call_hash"] == call_hash("write_file", arguments)
    assert record["rulings"] == [{"by": "default allow", "decision": "allow"}]
    assert "secret" not in app.safeguards.audit_path.read_text()


async def test_payloads_are_written_where_they_are_asked_for(tmp_path):
    config = ON.replace("enabled = true\n", "enabled = true\npayloads = true\n")
    config += '[policy.floor.deny]\npaths = ["*.pem"]\n'
    app = app_with(tmp_path, config, [wrote("a.pem"), "Done."])
    await say(app)
    [record] = records(app.safeguards.audit_path)
    assert record["arguments"] == {"path": "a.pem", "content": "x"}
    assert "a.pem" in record["rulings"][-1]["reason"]


async def test_denials_rewrites_and_withheld_results_are_there(tmp_path):
    turns = [wrote("denied.txt"), wrote("rewritten.txt"), "Done."]
    app = app_with(tmp_path, ON, turns)

    def gate(event):
        if event.input["path"] == "denied.txt":
            return ToolCallEventResult(block=True, reason="no")
        return ToolCallEventResult(input={**event.input, "content": "other"})

    def withhold(event):
        return ToolResultEventResult(content="changed") if event.ran else None

    app.hooks.register("tool_call", gate)
    app.hooks.register("tool_result", withhold)
    await say(app)
    found = [(r["kind"], r["outcome"]) for r in records(app.safeguards.audit_path)]
    assert found == [("decision", "denied"), ("decision", "allowed"), ("result", "rewritten")]
    rewritten = list(records(app.safeguards.audit_path))[1]
    assert rewritten["rulings"][0]["changed"] == ["input"]
    asked_for = {"path": "rewritten.txt", "content": "x"}
    assert rewritten["requested_hash"] == call_hash("write_file", asked_for)


async def test_other_gates_are_there_where_they_objected(tmp_path):
    app = app_with(tmp_path, ON, ["Done."])
    app.hooks.register(
        "input", lambda e: InputEventResult(action="block") if "wrong" in e.text else None
    )
    await say(app, "good")
    await say(app, "wrong")
    [record] = records(app.safeguards.audit_path)
    assert (record["kind"], record["hook"], record["outcome"]) == ("gate", "input", "denied")
    assert record["session_id"] == "s"
    assert "wrong" not in json.dumps(record)  # a word that no hash can contain


async def test_a_call_to_a_tool_that_is_not_there_is_recorded(tmp_path):
    app = app_with(tmp_path, ON, [Turn(tool_calls=[Call("nope", {})]), "Done."])
    await say(app)
    [record] = records(app.safeguards.audit_path)
    assert (record["tool"], record["outcome"]) == ("nope", "denied")


async def test_what_cannot_be_recorded_does_not_run(tmp_path):
    app = app_with(tmp_path, ON, [wrote("a.txt"), "Done."])
    app.safeguards.audit_path.parent.parent.mkdir(exist_ok=True)
    app.safeguards.audit_path.parent.write_text("a file where the folder should be")
    async with app.running():
        await app.process({"content": "go", "session_id": "s"})
        result = (await app.store().entries("s", kinds=["tool_result"]))[0]
    assert not (app.workspace / "a.txt").exists()
    assert "could not be recorded" in result.payload["content"]
    assert result.meta["rulings"][-1]["by"] == "audit"


async def test_a_log_that_was_cut_stops_the_calls(tmp_path):
    app = app_with(tmp_path, ON, [wrote("a.txt"), "Done.", wrote("b.txt"), "Done."])
    await say(app)
    path = app.safeguards.audit_path
    path.write_text("")
    again = app_with(tmp_path, ON, [wrote("b.txt"), "Done."])
    await say(again)
    assert (app.workspace / "a.txt").exists()
    assert not (app.workspace / "b.txt").exists()


async def test_nothing_is_written_unless_it_is_on(tmp_path):
    app = app_with(tmp_path, "", [wrote("a.txt"), "Done."], policy=Policy(default="allow"))
    await say(app)
    assert (app.workspace / "a.txt").exists()
    assert not app.safeguards.audit_path.parent.exists()


# --- the command line -----------------------------------------------------------------------------


def hookline(home, *arguments, **env):
    environment = {**os.environ, "HOOKLINE_HOME": str(home), **env}
    return forks.run(forks.MAIN, *arguments, env=environment, cwd=home)


async def test_show_and_verify(tmp_path, capsys):
    app = app_with(tmp_path, ON, [wrote("a.txt"), "Done."])
    await say(app)
    path = app.safeguards.audit_path
    done = hookline(app.home, "audit", "verify")
    assert (done.returncode, done.stdout.split(",")[0]) == (0, "1 line(s)")
    show_decisions(app, "s", "1h")
    assert "write_file" in capsys.readouterr().out
    show_decisions(app, "other", None, as_json=True)
    assert capsys.readouterr().out == ""
    show_decisions(app, None, None, as_json=True)
    assert json.loads(capsys.readouterr().out)["tool"] == "write_file"
    path.write_text(path.read_text().replace("write_file", "read_file"))
    done = hookline(app.home, "audit", "verify")
    assert done.returncode == 1
    assert f"{path}, line 1: the line was changed" in done.stderr
    assert "Traceback" not in done.stderr


def test_since_takes_times_and_spans():
    assert when("2026-01-31T12:00") > when("2026-01-31")
    assert when("2h") < when("30m")
    with pytest.raises(ValueError, match="--since 'soon' is no time"):
        when("soon")


def test_a_project_cannot_turn_it_off_or_elsewhere(tmp_path):
    home = settings(tmp_path, ON)
    project = tmp_path / "project" / ".hookline"
    project.mkdir(parents=True)
    (project / "config.toml").write_text('[audit]\nenabled = false\npath = "/tmp/elsewhere"\n')
    app = Hookline(home=home, workspace=project.parent)
    assert app.safeguards.auditor is not None
    assert app.safeguards.audit_path == home / "audit" / "audit.jsonl"
