"""`hookline triggers` on the command line."""

import pytest

from .. import commandline

SETTINGS = """
model = "scripted:{script}"

[triggers.nightly]
type = "cron"
schedule = "0 3 * * *"
message = "Report of {{date}}"

[triggers.jobs]
type = "queue"
message = "Do {{task}}"
"""


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    script = tmp_path / "script.toml"
    script.write_text('[[turns]]\ntext = "All done."\n')
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(SETTINGS.format(script=script))

    here = commandline.here(home, tmp_path, monkeypatch, capsys)

    def run(*arguments):
        return here("triggers", *arguments)

    return run


def test_a_trigger_is_fired_by_hand_and_its_answer_printed(hookline):
    for arguments in (["nightly"], ["jobs", '{"task": "this"}'], ["jobs", "--message", "Do that"]):
        fired = hookline("fire", *arguments)
        assert (fired.returncode, fired.stdout) == (0, "All done.\n"), fired.stderr
    listed = hookline("list").stdout.splitlines()
    assert [line.split() for line in listed] == [
        ["nightly", "cron", "1", "done"], ["jobs", "queue", "2", "done"],
    ]  # fmt: skip


def test_an_event_is_put_into_a_queue_once(hookline):
    assert hookline("enqueue", "jobs", '{"task": 1}', "--id", "one").stdout == "one\n"
    assert "known already" in hookline("enqueue", "jobs", '{"task": 1}', "--id", "one").stdout
    assert "1 queued" in hookline("list").stdout
    assert hookline("dead", "jobs").stdout == "the trigger 'jobs' has no dead letters\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fire", "nigthly"], "unknown trigger 'nigthly'; did you mean 'nightly'?"),
        (["fire", "jobs"], "the payload has no field 'task'"),
        (["enqueue", "jobs", "{"], "'{' is not JSON"),
        (["enqueue", "nightly", "{}"], "which has no queue"),
        (["dead", "jobs", "--retry", "x"], "no dead letter 'x'"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(hookline, arguments, says):
    done = hookline(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
