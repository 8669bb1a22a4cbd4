"""What starts a sandbox runs outside of it, and what children share lets none of them reach another."""

import os
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from hookline.sandbox import Sandbox, SandboxSettings, limits, secrets
from hookline.system.children.process import popen, run, signal_group

from .confined import started
from .test_sandbox_others import needs_sandlock

LOADED = {
    "LD_PRELOAD": "/work/evil.so",
    "LD_AUDIT": "/work/evil.so",
    "LD_LIBRARY_PATH": "/work",
    "GCONV_PATH": "/work",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "BASH_ENV": "/work/evil.sh",
    "ENV": "/work/evil.sh",
    "BASH_FUNC_read%%": "() { id; }",
    "IFS": "x",
    "PYTHONHOME": "/work",
    "ODD": "a=b\n--bind / /",
}
"""Variables that make a shell, a loader or Python run something."""


@pytest.fixture
def sandbox(tmp_path, monkeypatch):
    user, work = tmp_path / "user", tmp_path / "work"
    user.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(user))
    made = Sandbox(workspace=work, home=tmp_path / "home")
    if made.name != "bubblewrap":
        pytest.skip("needs bubblewrap")
    yield made
    made.close()


def outside(pid: int) -> list[Path]:
    """A process and its descendants that are in our own mount namespace."""
    found, here = [], os.readlink("/proc/self/ns/mnt")  # noqa: PTH115
    todo = [pid]
    while todo:
        folder = Path("/proc", str(todo.pop()))
        children = (folder / "task" / folder.name / "children").read_text()
        todo += map(int, children.split())
        if os.readlink(folder / "ns" / "mnt") == here:  # noqa: PTH115
            found.append(folder)
    return found


def test_variables_of_a_command_do_not_reach_what_sets_its_sandbox_up(sandbox):
    line = ["/bin/sh", "-c", "echo started; exec cat"]
    work = sandbox.places.workspace
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    env = {name: value for name, value in LOADED.items() if not name.startswith("LD_")}
    with popen(line, cwd=work, env=env, sandbox=sandbox, **pipes) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"started\n"
        for folder in outside(child.pid):
            assert b"work" not in (folder / "environ").read_bytes()
        signal_group(child.pid, signal.SIGKILL)


@pytest.mark.parametrize("name", ["bubblewrap", pytest.param("sandlock", marks=needs_sandlock)])
def test_a_command_gets_its_variables_inside(sandbox, name):
    sandbox.__dict__["_found"] = (name, "")
    work = sandbox.places.workspace
    with sandbox.launch(["/usr/bin/env", "-0"], cwd=work, env={}, secrets=LOADED) as launch:
        assert not LOADED.keys() & launch.env.keys()
        assert not any("evil" in word for word in launch.argv)
    harmless = {key: value for key, value in LOADED.items() if not key.startswith(("LD_", "GLIBC"))}
    done = run(["/usr/bin/env", "-0"], cwd=work, env=harmless, sandbox=sandbox, timeout=60)
    got = dict(each.split("=", 1) for each in done.stdout.decode().split("\0") if each)
    assert harmless.items() <= got.items()


@pytest.mark.parametrize(
    "variable",
    [("A\0--bind", "x"), ("A", "x\0--bind\0/\0/"), ("", "x"), ("A=B", "x")],
    ids=["a NUL in the name", "a NUL in the value", "no name", "an equals sign"],
)
def test_a_variable_cannot_add_an_option_of_the_sandbox(sandbox, variable):
    with pytest.raises(ValueError, match="environment variable"):
        run(["/bin/true"], cwd=Path("/"), env=dict([variable]), sandbox=sandbox, timeout=60)


@pytest.mark.parametrize("kind", ["command_hooks", "mcp", "shell"])
def test_a_projects_child_and_the_users_own_do_not_share_a_temporary_folder(sandbox, kind):
    def said(command: str, **wanted) -> bytes:
        line = ["/bin/sh", "-c", command]
        return run(
            line, cwd=sandbox.places.workspace, sandbox=sandbox, timeout=60, kind=kind, **wanted
        ).stdout

    said("echo planted > /tmp/x; ln -s /etc /var/tmp/link", project=True)
    assert said("cat /tmp/x", project=True) == b"planted\n"
    assert said("cat /tmp/x; ls -d /tmp/x /var/tmp/link") == b""


@pytest.mark.skipif(bool(limits.missing()), reason="processes are not limited here")
def test_a_command_that_uses_up_its_processes_does_not_keep_a_hook_from_starting(tmp_path):
    settings = SandboxSettings.model_validate({"limits": {"processes": 30}})
    sandbox = Sandbox(workspace=tmp_path, home=tmp_path / "home", settings=settings)
    if sandbox.name != "bubblewrap":
        pytest.skip("needs bubblewrap")
    bomb = "i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null"
    line = ["/bin/sh", "-c", f"({bomb}); echo full; exec sleep 60"]
    with ExitStack() as stack:
        launch = stack.enter_context(sandbox.launch(line, cwd=tmp_path, env={}))
        process = stack.enter_context(started(launch, stdout=subprocess.PIPE))
        stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == b"full\n"
        wanted = {"kind": "command_hooks", "profile": "workspace"}
        hook = run(["/bin/true"], cwd=tmp_path, sandbox=sandbox, timeout=60, **wanted)
        assert (hook.returncode, hook.stderr) == (0, b"")
    sandbox.close()


def test_no_folder_on_the_way_to_a_secret_can_be_renamed(sandbox):
    """Else the next child would read it under its new name, where nothing hides it."""
    user = Path(os.environ["HOME"])
    names = [name for name in secrets.HOME_NAMES if "/" in name and "*" not in name]
    for name in names:
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        if not (user / name).exists():
            (user / name).write_text("SECRET")
    above = {str(each) for name in names for each in Path(name).parents} - {"."}
    commands = "; ".join(f"mv '{each}' 'moved {each.replace('/', ' ')}'" for each in sorted(above))
    wanted = {"cwd": user, "sandbox": sandbox, "profile": "open", "timeout": 60}
    run(["/bin/sh", "-c", f"cd; {commands}"], **wanted)
    found = run(["/bin/sh", "-c", "cd; grep -rs SECRET ."], **wanted)
    assert found.stdout == b""


@pytest.mark.parametrize("profile", ["open", "workspace"])
def test_the_workspace_cannot_be_made_to_lead_to_a_secret(tmp_path, monkeypatch, profile):
    user = tmp_path / "user"
    work = user / "code" / "deep" / "work"
    work.mkdir(parents=True)
    (user / ".ssh").mkdir()
    (user / ".ssh" / "key").write_text("SECRET")
    monkeypatch.setenv("HOME", str(user))
    sandbox = Sandbox(workspace=work, home=tmp_path / "home")
    if sandbox.name != "bubblewrap":
        pytest.skip("needs bubblewrap")
    for folder in ("code", "code/deep", "code/deep/work"):
        command = f"cd; mv {folder} away && mkdir -p code/deep; ln -s ../../.ssh code/deep/work"
        run(["/bin/sh", "-c", command], cwd=user, sandbox=sandbox, profile="open", timeout=60)
    assert work.resolve() == work
    seen = run(["/bin/cat", "key"], cwd=work, sandbox=sandbox, profile=profile, timeout=60)
    assert b"SECRET" not in seen.stdout
    sandbox.close()


@pytest.mark.parametrize("profile", ["open", "workspace", "read-only"])
@pytest.mark.parametrize(
    ("given", "secret"),
    [
        (".config", ".config/gh/hosts.yml"),
        (".config", ".config/pip/pip.conf"),
        (".cargo", ".cargo/credentials.toml"),
        (".", ".ssh/id_ed25519"),
        (".local", ".local/share/keyrings/login"),
        (".aws", ".aws/credentials"),
        (".aws/credentials", ".aws/credentials"),
    ],
)
def test_a_folder_that_a_child_may_read_keeps_its_secrets_hidden(sandbox, given, secret, profile):
    user = Path(os.environ["HOME"])
    (user / secret).parent.mkdir(parents=True)
    (user / secret).write_text("SECRET")
    found = run(
        ["/bin/cat", str(user / secret)],
        cwd=sandbox.places.workspace,
        sandbox=sandbox,
        profile=profile,
        read=[user / given],
        timeout=60,
    )
    assert found.returncode != 0
    assert found.stdout == b""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may read these")
def test_a_system_folder_that_a_child_may_read_keeps_its_secrets_hidden(sandbox):
    line = ["/bin/sh", "-c", "cat /etc/shadow /etc/gshadow"]
    given = [Path("/etc")]
    work = sandbox.places.workspace
    found = run(line, cwd=work, sandbox=sandbox, profile="open", read=given, timeout=60)
    assert found.stdout == b""


SOCKETS = {
    "SSH_AUTH_SOCK": "{}",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path={},guid=1",
    "DOCKER_HOST": "unix://{}",
    "CONTAINER_HOST": "unix://{}",
    "GPG_AGENT_INFO": "{}:1:1",
    "KITTY_LISTEN_ON": "unix:{}",
    "TMUX": "{},1,0",
}
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('CONNECTED')"


@pytest.mark.parametrize("variable", SOCKETS)
def test_a_socket_that_the_environment_names_cannot_be_reached(sandbox, monkeypatch, variable):
    user = Path(os.environ["HOME"])
    monkeypatch.chdir(user)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")  # the whole path may be too long
        server.listen()
        monkeypatch.setenv(variable, SOCKETS[variable].format(user / "s"))
        line = ["/usr/bin/env", "python3", "-c", CONNECT, "s"]
        found = run(line, cwd=user, sandbox=sandbox, profile="open", timeout=60)
    assert found.stdout == b"", variable


@pytest.mark.parametrize("folder", [".colima/default", ".rd", ".orbstack/run", ".lima/vm/sock"])
def test_the_socket_of_a_container_engine_in_the_home_cannot_be_reached(sandbox, monkeypatch, folder):
    place = Path(os.environ["HOME"]) / folder
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        line = ["/bin/sh", "-c", f'cd "$1"; python3 -c "{CONNECT}" s', "sh", str(place)]
        found = run(line, cwd=place.parents[1], sandbox=sandbox, profile="open", timeout=60)
    assert found.stdout == b""


async def test_a_command_behind_the_proxy_ends_when_its_reader_does(sandbox):
    """Python ignores SIGPIPE, and a command would inherit that."""
    sandbox.start()
    line = ["/bin/sh", "-c", "grep SigIgn /proc/self/status"]
    work = sandbox.places.workspace
    found = run(line, cwd=work, sandbox=sandbox, network=["example.com"], timeout=60)
    assert int(found.stdout.split()[1], 16) == 0
