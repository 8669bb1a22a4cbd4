"""What Hookline keeps is closed to other users of the machine, whatever the umask."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from hookline import Hookline
from hookline.config.writer import write
from hookline.errors import ConfigError
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.policy.approvals import Approvals
from hookline.policy.audit import AuditLog
from hookline.system.file_lock import Lock
from hookline.system.private_files import (
    check_home,
    prepare_home,
    private_file,
    private_folder,
    replaced,
    tighten,
)
from hookline.tape import SQLiteStore
from hookline.tape.settings import home_id

from ..commandline import here

UMASKS = [0o000, 0o002, 0o022, 0o077]


@pytest.fixture(params=UMASKS, ids=[f"{each:03o}" for each in UMASKS])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path) -> int:
    return stat.S_IMODE(Path(path).lstat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    """What others may reach below a folder, itself included."""
    found = [folder, *folder.rglob("*")]
    return [f"{path} {mode(path):04o}" for path in found if mode(path) & 0o077]


# --- one file at a time ---------------------------------------------------------------------------


def tape(home):
    return SQLiteStore(home / "tape.db")


def lock(home):
    held = Lock(home / "gateway.lock")
    assert held.acquire()
    return held


def approvals(home):
    made = Approvals(home / "approvals.db")
    made.ask({"tool": "t", "arguments": {}, "session_id": "s", "call_id": "c", "workspace": "w"})


def audit(home):
    AuditLog(home / "audit/audit.jsonl").append([{"kind": "x"}])


def identity(home):
    home_id(home)


def settings(home):
    write(home / "config.toml", {"model": "x"})


def trust(home):
    from hookline.plugins.trust import Trust

    Trust(home)._write({})


def history(home):
    from hookline.cli.chat.keys import private

    private(home / "chat/history")


def outputs(home):
    from hookline.tools.spool import _create

    _create(home / "outputs" / "one").close()


KEPT = [tape, lock, approvals, audit, identity, settings, trust, history, outputs]


@pytest.mark.parametrize("keep", KEPT)
def test_every_file_of_a_home_is_the_owners_alone(tmp_path, umask, keep):
    home = tmp_path / "deep/home"
    private_folder(home)
    held = keep(home)
    assert [*home.rglob("*")]
    assert open_to_others(home) == []
    del held


@pytest.mark.parametrize("keep", [tape, approvals, lock])
@pytest.mark.parametrize("before", [0o644, 0o664, 0o666, 0o640])
def test_a_file_that_was_open_is_closed_when_it_is_used(tmp_path, keep, before):
    held = keep(tmp_path)
    if hasattr(held, "release"):
        held.release()
    for path in tmp_path.iterdir():
        path.chmod(before)
    held = keep(tmp_path)
    assert {mode(path) & 0o077 for path in tmp_path.iterdir() if path.suffix in (".db", ".lock")} == {0}
    del held


def test_what_sqlite_writes_beside_a_tape_has_its_mode(tmp_path, umask):
    store = SQLiteStore(tmp_path / "tape.db")
    assert {path.name for path in tmp_path.iterdir()} >= {"tape.db", "tape.db-wal"}
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}
    del store


def test_closing_a_file_leaves_the_locks_of_this_process_in_place(tmp_path):
    """An open and close of a SQLite file would release the locks that the process has on it."""
    held = Lock(tmp_path / "x.lock")
    assert held.acquire()
    private_file(tmp_path / "x.lock")
    child = os.fork()
    if child == 0:
        db = sqlite3.connect(tmp_path / "x.lock", timeout=0, isolation_level=None)
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


# --- a whole turn ---------------------------------------------------------------------------------


async def test_a_turn_with_everything_on_leaves_nothing_open(tmp_path, umask):
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    workspace.mkdir()
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    (home / "config.toml").write_text(
        '[audit]\nenabled = true\n[trace]\nlevel = "full"\n[policy]\ndefault = "allow"\n'
    )
    app = Hookline(home=home, workspace=workspace)
    app.load_hooks(packages=False)
    model = ScriptedModel([Turn(tool_calls=[Call("shell", {"command": "seq 99999"})]), "done"])
    app.models.add(model)
    app.model = model.name
    async with app.running():
        await app.process({"content": "go"})
        assert [name for name in open_to_others(home) if "config.toml" not in name] == []
    assert mode(home) == 0o700
    assert (home / "tape.db").exists()
    assert (home / "audit/audit.jsonl").exists()


@pytest.mark.parametrize("before", [0o755, 0o750, 0o775, 0o711, 0o770])
async def test_a_home_that_others_could_enter_is_closed_at_the_start(tmp_path, before):
    home = tmp_path / "home"
    home.mkdir()
    (home / "tape.db").touch()
    (home / "tape.db").chmod(0o644)
    home.chmod(before)
    app = Hookline(home=home, workspace=tmp_path)
    app.load_hooks(packages=False)
    async with app.running():
        assert mode(home) == 0o700
        assert mode(home / "tape.db") == 0o600


# --- a home that is not the user's ----------------------------------------------------------------


@pytest.mark.parametrize("before", [0o777, 0o1777, 0o757, 0o702, 0o703])
def test_a_home_that_everyone_can_write_is_refused(tmp_path, before):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(before)
    with pytest.raises(ConfigError, match="chmod 700"):
        check_home(home)
    with pytest.raises(ConfigError):
        _ = Hookline(home=home, workspace=tmp_path).config
    assert mode(home) == before


@pytest.fixture
def foreign_home(tmp_path):
    """The home of another user."""
    if os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("this is not TOML")
    os.chown(home, 12345, 12345)
    return home


@pytest.mark.parametrize("through", ["itself", "a link"])
def test_a_home_of_another_user_is_refused_before_its_settings_are_read(
    foreign_home, tmp_path, monkeypatch, through
):
    if through == "a link":
        (tmp_path / "link").symlink_to(foreign_home)
        foreign_home = tmp_path / "link"
    monkeypatch.setattr(os, "geteuid", lambda: 23456)
    with pytest.raises(ConfigError, match="another user"):
        _ = Hookline(home=foreign_home, workspace=tmp_path).config


def test_an_ordinary_user_does_not_use_a_home_of_root(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(ConfigError, match="another user"):
        check_home(tmp_path)


def test_root_uses_a_volume_that_an_ordinary_user_owns(foreign_home):
    check_home(foreign_home)
    foreign_home.chmod(0o755)
    assert prepare_home(foreign_home)[0] == foreign_home
    assert mode(foreign_home) == 0o700
    assert foreign_home.stat().st_uid == 12345


def test_root_refuses_a_volume_that_everyone_can_write(foreign_home):
    foreign_home.chmod(0o777)
    with pytest.raises(ConfigError, match="chmod 700"):
        check_home(foreign_home)


def test_a_home_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "home").touch()
    with pytest.raises(ConfigError, match="not a folder"):
        check_home(tmp_path / "home")


@pytest.mark.parametrize(
    "command",
    [
        ("doctor",),
        ("run", "hi"),
        ("tape", "list"),
        ("config", "show"),
        ("plugins", "list"),
        ("models",),
    ],
    ids=" ".join,
)
def test_every_command_refuses_an_unsafe_home(tmp_path, monkeypatch, capsys, command):
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    home.chmod(0o777)
    ended = here(home, workspace, monkeypatch, capsys)(*command)
    assert ended.returncode == 2
    assert "every user can write to the home" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert [*home.iterdir()] == []


def test_doctor_closes_a_home_and_says_so(tmp_path, monkeypatch, capsys):
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    (home / "tape.db").touch()
    (home / "tape.db").chmod(0o644)
    home.chmod(0o755)
    run = here(home, workspace, monkeypatch, capsys)
    first = run("doctor")
    assert "closed to other users now" in first.stdout
    assert "0700" in first.stdout
    assert mode(home) == 0o700
    assert "closed to other users" not in run("doctor").stdout


# --- links and files elsewhere --------------------------------------------------------------------


def test_an_export_does_not_follow_a_link_that_was_planted_beside_it(tmp_path):
    from hookline.cli.tape import write_whole

    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "out.jsonl.part").symlink_to(victim)
    (tmp_path / "out.jsonl").symlink_to(victim)
    write_whole(tmp_path / "out.jsonl", "exported")
    assert victim.read_text() == "precious"
    assert (tmp_path / "out.jsonl").read_text() == "exported"
    assert not (tmp_path / "out.jsonl").is_symlink()


def test_an_export_is_the_owners_alone(tmp_path, umask):
    from hookline.cli.tape import write_whole

    write_whole(tmp_path / "out.jsonl", "said")
    assert mode(tmp_path / "out.jsonl") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    (tmp_path / "out").write_text("before")

    def fail() -> None:
        with replaced(tmp_path / "out") as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "out").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_folders_that_exist_are_left_as_they_are(tmp_path, umask):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    private_folder(shared / "a/b")
    assert (mode(shared), mode(shared / "a"), mode(shared / "a/b")) == (0o755, 0o700, 0o700)


def test_a_link_is_not_followed_to_close_what_it_names(tmp_path):
    target = tmp_path / "target"
    target.touch()
    target.chmod(0o644)
    (tmp_path / "link").symlink_to(target)
    assert not tighten(tmp_path / "link")
    assert mode(target) == 0o644


def test_a_home_that_is_closed_is_not_walked(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "script.sh").touch()
    (home / "script.sh").chmod(0o755)
    assert prepare_home(home) == []
    assert mode(home / "script.sh") == 0o755


def test_long_outputs_outside_of_a_home_are_in_a_private_folder(umask):
    from hookline.tools.spool import _temporary

    assert mode(_temporary()) == 0o700


def test_commands_of_the_agent_keep_the_users_umask(tmp_path):
    before = os.umask(0o022)
    try:
        prepare_home(tmp_path)
        (tmp_path / "x").touch()
        assert mode(tmp_path / "x") == 0o644
    finally:
        os.umask(before)
