"""Attempts to get out of the sandbox, with real processes.

One sandboxed process tries a whole table of them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hookline.sandbox import Sandbox, SandboxSettings
from hookline.sandbox.sandbox import probe
from hookline.sandbox.secrets import HOME_NAMES

from ..tables import each_row
from .confined import finished, started
from .sandbox_probe import SECRET

pytestmark = pytest.mark.skipif(probe()[0] != "bubblewrap", reason=f"needs bubblewrap: {probe()[1]}")
PROBE = Path(__file__).with_name("sandbox_probe.py")
SECRETS = [
    name
    for name in HOME_NAMES
    if "*" not in name and not name.startswith("Library") and name not in ("snap", ".var", ".cache/git")
]
"""Places of a home, each of which gets a secret in these tests."""


def _is_file(name: str) -> bool:
    last = name.rpartition("/")[2]
    known = ("credentials", "token", "stored_tokens", "_history", "rc", ".json", ".xml", ".cnf", "pass")
    return last.endswith(known) and last not in (".mutt",)


class World:
    """A person's machine in a folder: a home with secrets, a workspace in it, listeners outside."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.workspace = self.home / "code" / "project"
        self.own = self.home / ".hookline"
        self.other = base / "elsewhere"
        self.sockets = base / "sockets"
        self.secret: dict[str, Path] = {}
        for folder in (self.workspace, self.own, self.other, self.sockets):
            folder.mkdir(parents=True)
        for name in SECRETS:
            path = self.home / name
            if not _is_file(name):
                path.mkdir(parents=True, exist_ok=True)
                path = path / "secret"
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(SECRET)
            self.secret[name] = path
        (self.own / "config.toml").write_text(SECRET)
        (self.own / "tape.db").write_text(SECRET)
        (self.home / "notes.txt").write_text(SECRET)
        (self.home / "Documents").mkdir()
        (self.home / "Documents" / "taxes.txt").write_text(SECRET)
        (self.home / "code" / "other").mkdir()
        (self.home / "code" / "other" / "main.py").write_text(SECRET)
        (self.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
        self._fill_workspace()

    def _fill_workspace(self) -> None:
        work = self.workspace
        git = {**os.environ, "HOME": str(self.home)}
        subprocess.run(["git", "init", "-q", "-b", "main", work], check=True, env=git)
        (work / "README").write_text("hello")
        (work / ".envrc").write_text("export A=1")
        (work / ".husky").mkdir()
        (work / ".husky" / "pre-commit").write_text("true")
        (work / "link-home").symlink_to(self.home)
        (work / "link-ssh").symlink_to(self.home / ".ssh")
        (work / "link-key").symlink_to(self.secret[".ssh"])
        (work / "link-root").symlink_to("/")
        (work / "link-shadow").symlink_to("/etc/shadow")
        (work / "link-up").symlink_to("../../..")
        (work / "link-other").symlink_to(self.other)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    # not in /tmp, which is private anyway
    base = Path(tempfile.mkdtemp(prefix=".sandbox-", dir=Path(__file__).resolve().parents[2]))
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(base / "home")
    try:
        yield World(base)
    finally:
        if before is not None:
            os.environ["HOME"] = before
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def listeners(world: World) -> Iterator[dict[str, Any]]:
    """Sockets outside that would answer."""
    made: list[socket.socket] = []
    tcp = socket.create_server(("127.0.0.1", 0))
    made.append(tcp)
    found: dict[str, Any] = {"port": tcp.getsockname()[1]}
    try:
        six = socket.create_server(("::1", 0), family=socket.AF_INET6)
        made.append(six)
        found["port6"] = six.getsockname()[1]
    except OSError:
        found["port6"] = found["port"]
    abstract = f"hookline-test-{os.getpid()}"
    named = socket.socket(socket.AF_UNIX)
    named.bind("\0" + abstract)
    named.listen()
    made.append(named)
    found["abstract"] = abstract
    yield found
    for each in made:
        each.close()


def attempt(
    world: World,
    attempts: dict[str, str],
    *,
    profile: Any = "workspace",
    settings: SandboxSettings | None = None,
    env: dict[str, str] | None = None,
) -> dict[str, list[Any]]:
    sandbox = Sandbox(workspace=world.workspace, home=world.own, settings=settings)
    environ = {**os.environ, "HOME": str(world.home), **(env or {})}
    line = [sys.executable, "-I", str(PROBE)]
    try:
        with sandbox.launch(
            line, cwd=world.workspace, env=environ, profile=profile, read=[PROBE]
        ) as launch:
            done = finished(launch, given=json.dumps(attempts).encode())
    finally:
        sandbox.close()
    assert done.stdout, done.stderr.decode()
    return json.loads(done.stdout)


# --- reads ----------------------------------------------------------------------------------------

SPELLINGS = {
    "direct": "read({path!r})",
    "two slashes": "read({path!r}.replace('/', '//'))",
    "dots": "read({folder!r} + '/./../' + {last!r} + '/' + {name!r})",
    "the root of a process": "read('/proc/self/root' + {path!r})",
    "the first process's root": "read('/proc/1/root' + {path!r})",
    "the working directory": "read('/proc/self/cwd/link-home/' + {relative!r})",
    "a descriptor": "fd_read({path!r})",
    "a new link": "linked({path!r}, 'fresh-link')",
    "a new hard link": "hard_linked({path!r}, 'fresh-hard-link')",
    "a link in the workspace": "read('link-home/' + {relative!r})",
    "a link to the root": "read('link-root' + {path!r})",
    "from its folder": "chdir_read({folder!r}, {name!r})",
    "cat": "shown('cat ' + {path!r})",
    "a glob": "shown('cat ' + {folder!r}[:-1] + '*/' + {name!r})",
    "tar": "shown('tar cf - ' + {path!r})",
    "the tilde": "shown('cat ~/' + {relative!r})",
}
SPELLED = (".ssh", ".aws", ".netrc")
PROFILES = ("read-only", "workspace", "open")


def read_attempts(world: World) -> dict[str, str]:
    found = {f"read {name}": f"read({str(path)!r})" for name, path in world.secret.items()}
    for name in SPELLED:
        path = world.secret[name]
        facts = {
            "path": str(path),
            "folder": str(path.parent),
            "last": path.parent.name,
            "name": path.name,
            "relative": str(path.relative_to(world.home)),
        }
        for how, code in SPELLINGS.items():
            found[f"{name} by {how}"] = code.format(**facts)
    for name in ("config.toml", "tape.db"):
        found[f"Hookline's {name}"] = f"read({str(world.own / name)!r})"
    found["link to ssh"] = "read('link-ssh/secret')"
    found["link to a key"] = "read('link-key')"
    found["copy of a home"] = "shown('cp -r ~/.ssh /tmp/copy && cat /tmp/copy/*')"
    for path in ("/etc/shadow", "/etc/gshadow", "/etc/shadow-"):
        found[f"read {path}"] = f"bool(open({path!r}).read())"
        found[f"read {path} by a link"] = f"bool(open('link-root{path}').read())"
    found["shadow by a link"] = "bool(open('link-shadow').read())"
    found["list ssh"] = f"lists({str(world.home / '.ssh')!r}, 'secret')"
    return found


READ_NAMES = [
    *(f"read {name}" for name in SECRETS),
    *(f"{name} by {how}" for name in SPELLED for how in SPELLINGS),
    "Hookline's config.toml",
    "Hookline's tape.db",
    "link to ssh",
    "link to a key",
    "copy of a home",
    *(f"read {path}" for path in ("/etc/shadow", "/etc/gshadow", "/etc/shadow-")),
    *(f"read {path} by a link" for path in ("/etc/shadow", "/etc/gshadow", "/etc/shadow-")),
    "shadow by a link",
    "list ssh",
]


@pytest.fixture(scope="module", params=PROFILES)
def reads(request: pytest.FixtureRequest, world: World) -> dict[str, list[Any]]:
    return attempt(world, read_attempts(world), profile=request.param)


@each_row("name", READ_NAMES)
def test_a_secret_cannot_be_read(reads: dict[str, list[Any]], name: str) -> None:
    escaped, how = reads[name]
    assert not escaped, how


@pytest.fixture(scope="module")
def home_reads(world: World) -> dict[str, list[Any]]:
    home = str(world.home)
    return attempt(
        world,
        {
            "a note in the home": f"read('{home}/notes.txt')",
            "a document": f"read('{home}/Documents/taxes.txt')",
            "another project": f"read('{home}/code/other/main.py')",
            "another project from here": "read('../other/main.py')",
            "a note through a link": "read('link-home/notes.txt')",
            "a note from above": "read('../../notes.txt')",
            "a note by a linked parent": "read('link-up/home/notes.txt')",
            "the names in the home": f"lists({home!r}, 'notes.txt')",
            "the names beside the workspace": f"lists('{home}/code', 'other')",
            "the names in /home": "any(os.listdir('/home'))",
            "shell history": "bool(open(os.path.expanduser('~/.bash_history')).read())",
            "root's home": "bool(open('/root/.bashrc').read()) or bool(open('/root/.profile').read())",
        },
    )


@each_row(
    "name",
    [
        "a note in the home",
        "a document",
        "another project",
        "another project from here",
        "a note through a link",
        "a note from above",
        "a note by a linked parent",
        "the names in the home",
        "the names beside the workspace",
        "the names in /home",
        "shell history",
        "root's home",
    ],
)
def test_a_home_is_hidden_but_for_the_workspace(home_reads: dict[str, list[Any]], name: str) -> None:
    escaped, how = home_reads[name]
    assert not escaped, how


# --- writes ---------------------------------------------------------------------------------------

WRITES = {
    "the home": "write('{home}/planted')",
    "a new file of the shell": "write('{home}/.bashrc')",
    "authorized keys": "write('{home}/.ssh/authorized_keys')",
    "another project": "write('{home}/code/other/planted')",
    "beside the workspace": "write('../planted')",
    "elsewhere": "write('{other}/planted')",
    "elsewhere through a link": "write('link-other/planted')",
    "elsewhere by root": "write('/proc/self/root{other}/planted')",
    "elsewhere by a new link": "os.symlink('{other}', 'l2') or write('l2/planted')",
    "elsewhere by renaming": "write('x1') and (os.rename('x1', '{other}/planted') or True)",
    "elsewhere by a hard link": "write('x2') and (os.link('x2', '{other}/planted') or True)",
    "elsewhere by cp": "works('cp README {other}/planted')",
    "elsewhere by mkdir": "os.mkdir('{other}/planted') or True",
    "elsewhere by mknod": "os.mknod('{other}/planted') or True",
    "elsewhere by truncation": "os.truncate('{other}/existing', 0) or True",
    "elsewhere by removal": "os.unlink('{other}/existing') or True",
    "elsewhere by chmod": "os.chmod('{other}/existing', 0o777) or True",
    "elsewhere by utime": "os.utime('{other}/existing') or True",
    "elsewhere by setxattr": "os.setxattr('{other}/existing', 'user.a', b'x') or True",
    "etc": "write('/etc/planted')",
    "the hosts": "write('/etc/hosts')",
    "passwords": "write('/etc/passwd')",
    "cron": "write('/etc/cron.d/planted')",
    "usr": "write('/usr/local/bin/planted')",
    "the root": "write('/planted')",
    "run": "write('/run/planted')",
    "sys": "write('/sys/kernel/planted')",
    "a core pattern": "write('/proc/sys/kernel/core_pattern')",
    "modprobe": "write('/proc/sys/kernel/modprobe')",
    "sysrq": "write('/proc/sysrq-trigger', 'h')",
    "hostname": "write('/proc/sys/kernel/hostname')",
    "Hookline's settings": "write('{own}/config.toml')",
    "a hook of Hookline": "write('{own}/hooks/planted.py')",
    "the interpreter": "write(sys.executable)",
    "site-packages": "write(os.path.join(sys.prefix, 'planted.pth'))",
    "the git configuration of the person": "write('{home}/.gitconfig')",
    "git hooks": "write('.git/hooks/pre-commit')",
    "git hooks by rename": "write('h') and (os.rename('h', '.git/hooks/pre-commit') or True)",
    "git configuration": "write('.git/config')",
    "git configuration by git": "works('git config core.fsmonitor evil')",
    "git configuration by rename": "write('c') and (os.rename('c', '.git/config') or True)",
    "git configuration removed": "os.unlink('.git/config') or True",
    "git elsewhere": "write('.git/commondir', '../evil')",
    "git elsewhere replaced": "write('d') and (os.rename('d', '.git/commondir') or True)",
    "git moved away": "os.rename('.git', 'g') or True",
    "git exchanged": "works('mkdir g2 && mv -T --exchange g2 .git')",
    "git removed": "shutil.rmtree('.git/hooks') or True",
    "Hookline in the project": "os.makedirs('.hookline/hooks') or True",
    "Hookline in the project as a file": "write('.hookline')",
    "Hookline's hooks in the project": "write('.hookline/hooks.py')",
    "Claude's settings": "write('.claude/settings.json')",
    "editor tasks": "write('.vscode/tasks.json')",
    "editor runs": "write('.idea/workspace.xml')",
    "editor replaced": "os.rmdir('.vscode') or True",
    "editor moved": "os.rename('.vscode', 'v') or True",
    "direnv": "write('.envrc')",
    "direnv replaced": "write('e') and (os.rename('e', '.envrc') or True)",
    "husky": "write('.husky/pre-commit')",
}


@pytest.fixture(scope="module")
def writes(world: World) -> dict[str, list[Any]]:
    (world.other / "existing").write_text("kept")
    facts = {"home": world.home, "other": world.other, "own": world.own}
    return attempt(world, {name: code.format(**facts) for name, code in WRITES.items()})


@each_row("name", WRITES)
def test_nothing_outside_and_nothing_that_runs_later_is_written(
    writes: dict[str, list[Any]], name: str
) -> None:
    escaped, how = writes[name]
    assert not escaped, how


def test_after_all_attempts_nothing_is_planted(world: World, writes: dict[str, list[Any]]) -> None:
    assert writes
    assert [path.name for path in world.other.iterdir()] == ["existing"]
    assert (world.other / "existing").read_text() == "kept"
    assert not list(world.base.rglob("planted*"))
    assert not (world.home / ".bashrc").exists()
    for name in (".hookline", ".claude", ".vscode", ".idea", ".git/commondir"):
        assert not (world.workspace / name).exists(), name
    assert "evil" not in (world.workspace / ".git" / "config").read_text()


def test_in_read_only_the_workspace_cannot_be_written(world: World) -> None:
    tried = attempt(
        world,
        {"file": "write('x')", "git": "write('.git/index')", "folder": "os.mkdir('y') or True"},
        profile="read-only",
    )
    assert not any(escaped for escaped, _ in tried.values()), tried


def test_what_work_needs_still_works(world: World) -> None:
    tried = attempt(
        world,
        {
            "write": "write('made')",
            "folder": "os.makedirs('a/b') or True",
            "temporary": "write('/tmp/made') and write('/var/tmp/made2') and write('/dev/shm/made')",
            "null": "write('/dev/null')",
            "random": "bool(os.urandom(4)) and bool(open('/dev/urandom', 'rb').read(4))",
            "git status": "works('git status')",
            "git commit": "works('git add README && git commit -m first')",
            "git branch": "works('git checkout -b topic')",
            "who": "works('id') and works('git config user.name')",
            "pipes": "sh('echo a | tr a b').strip() == 'b'",
            "threads": "works('true & wait')",
            "loopback inside": "socket.create_server(('127.0.0.1', 0)).close() is None",
            "terminals": "bool(os.openpty())",
            "interpreter": "works(sys.executable + ' -c pass')",
        },
    )
    assert {name: how for name, (worked, how) in tried.items() if not worked} == {}


# --- network ----------------------------------------------------------------------------------------

NETWORK = {
    "loopback": "connects(socket.AF_INET, ('127.0.0.1', {port}))",
    "loopback by name": "connects(socket.AF_INET, ('localhost', {port}))",
    "loopback by another address": "connects(socket.AF_INET, ('127.0.0.2', {port}))",
    "any address": "connects(socket.AF_INET, ('0.0.0.0', {port}))",
    "loopback of version 6": "connects(socket.AF_INET6, ('::1', {port6}))",
    "mapped loopback": "connects(socket.AF_INET6, ('::ffff:127.0.0.1', {port}))",
    "metadata": "connects(socket.AF_INET, ('169.254.169.254', 80))",
    "metadata of version 6": "connects(socket.AF_INET6, ('fd00:ec2::254', 80))",
    "a private network": "connects(socket.AF_INET, ('10.0.0.1', 80))",
    "another private network": "connects(socket.AF_INET, ('192.168.1.1', 80))",
    "the internet": "connects(socket.AF_INET, ('1.1.1.1', 443))",
    "the internet of version 6": "connects(socket.AF_INET6, ('2606:4700:4700::1111', 443))",
    "a name server": "sends(('8.8.8.8', 53))",
    "a local name server": "bool(socket.getaddrinfo('example.org', 80))",
    "broadcast": "sends(('255.255.255.255', 9))",
    "multicast": "sends(('224.0.0.251', 5353))",
    "raw sockets": "opens(socket.AF_INET, socket.SOCK_RAW, 1)",
    "packet sockets": "opens(socket.AF_PACKET, socket.SOCK_RAW, 3)",
    "ping": "works('ping -c 1 -W 1 127.0.0.1') and works('ping -c 1 -W 1 1.1.1.1')",
    "vsock": "opens(40, socket.SOCK_STREAM)",
    "bluetooth": "opens(31, socket.SOCK_RAW, 1)",
    "can": "opens(29, socket.SOCK_RAW, 1)",
    "crypto": "opens(38, socket.SOCK_SEQPACKET)",
    "tipc": "opens(30, socket.SOCK_STREAM)",
    "rds": "opens(21, socket.SOCK_SEQPACKET)",
    "key": "opens(15, socket.SOCK_RAW, 2)",
    "an abstract socket": "connects(socket.AF_UNIX, '\\0{abstract}')",
    "docker": "connects(socket.AF_UNIX, '/var/run/docker.sock')",
    "containerd": "connects(socket.AF_UNIX, '/run/containerd/containerd.sock')",
    "the system bus": "connects(socket.AF_UNIX, '/run/dbus/system_bus_socket')",
    "the journal": "connects(socket.AF_UNIX, '/run/systemd/journal/stdout')",
    "systemd": "connects(socket.AF_UNIX, '/run/systemd/private')",
    "X11": "connects(socket.AF_UNIX, '/tmp/.X11-unix/X0')",
    "abstract X11": "connects(socket.AF_UNIX, '\\0/tmp/.X11-unix/X0')",
    "postgres": "connects(socket.AF_UNIX, '/var/run/postgresql/.s.PGSQL.5432')",
    "the gateway": "connects(socket.AF_UNIX, '{own}/gateway.sock')",
    "an agent": "connects(socket.AF_UNIX, '{sockets}/agent')",
    "an agent by its variable": "connects(socket.AF_UNIX, os.environ['SSH_AUTH_SOCK'])",
    "the session bus": "connects(socket.AF_UNIX, '/run/user/%d/bus' % os.getuid())",
    "curl": "works('curl -s -m 2 http://127.0.0.1:{port}/ || curl -s -m 2 telnet://127.0.0.1:{port}')",
    "bash's own": "works(\"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'\")",
    "a route": "works('ip route add default dev lo')",
    "an address": "works('ip addr add 10.9.9.9/24 dev lo')",
    "an interface": "works('ip link add d0 type dummy')",
    "other interfaces": "any(n != 'lo' for _, n in socket.if_nameindex())",
    "io_uring": "system_call(425, 8, ctypes.create_string_buffer(240))",
}


@pytest.fixture(scope="module")
def network(world: World, listeners: dict[str, Any]) -> Iterator[dict[str, list[Any]]]:
    made: list[socket.socket] = []
    for path in (world.own / "gateway.sock", world.sockets / "agent"):
        each = socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket must be short
        each.bind(path.name)
        os.chdir(here)
        each.listen()
        made.append(each)
    os.environ["SSH_AUTH_SOCK"] = str(world.sockets / "agent")
    facts = {**listeners, "own": world.own, "sockets": world.sockets}
    try:
        yield attempt(world, {name: code.format(**facts) for name, code in NETWORK.items()})
    finally:
        del os.environ["SSH_AUTH_SOCK"]
        for each in made:
            each.close()


@each_row("name", NETWORK)
def test_nothing_is_reached(network: dict[str, list[Any]], name: str) -> None:
    escaped, how = network[name]
    assert not escaped, how


# --- processes, privileges, the kernel --------------------------------------------------------------

PROCESSES = {
    "see the parent": "alive({parent})",
    "see others": "len(processes()) > 12",
    "read the parent's environment": "'{mark}' in open('/proc/{parent}/environ').read()",
    "read the first process's memory": "bool(open('/proc/1/mem', 'rb').read(1))",
    "signal everything": "os.kill(-1, 0) is None and '{mark}' in sh('ps aux')",
    "kill the parent's group": "os.killpg({parent}, 0) or True",
    "a secret variable": "'{mark}' in ' '.join(os.environ.values())",
    "a secret variable of the first process": "'{mark}' in open('/proc/1/environ').read()",
    "an API key": "any('API_KEY' in name or 'TOKEN' in name for name in os.environ)",
    "a preloaded library": "'LD_PRELOAD' in os.environ",
    "inherited descriptors": "inherited('{base}')",
    "capabilities": "any(int(status(n), 16) for n in ('CapEff', 'CapPrm', 'CapBnd'))",
    "ambient capabilities": "int(status('CapAmb'), 16) or int(status('CapInh'), 16)",
    "new privileges": "status('NoNewPrivs') != '1'",
    "no filter": "status('Seccomp') != '2'",
    "setuid programs": "works('su -c true') or works('sudo -n true') or works('mount /tmp')",
    "setuid": "os.setuid(12345) or True",
    "setgroups": "os.setgroups([0, 1]) or True",
    "a setuid file": "shutil.copy('/bin/sh', '/tmp/s') and (os.chmod('/tmp/s', 0o4755) or False)",
    "own a file": "write('owned') and (os.chown('owned', 12345, 12345) or True)",
    "a user namespace": "works('unshare -U true') or works('unshare -Ur true')",
    "a mount namespace": "works('unshare -m true')",
    "another namespace": "works('nsenter -t 1 -m true')",
    "mount": "works('mount -t tmpfs none /mnt')",
    "bind mount": "works('mount --bind /tmp .git')",
    "remount": "works('mount -o remount,rw /')",
    "unmount": "works('umount .git/hooks') or works('umount -l /proc')",
    "pivot": "system_call(155, b'/tmp', b'/tmp')",
    "chroot": "os.chroot('/tmp') or True",
    "a device": "os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0)) or True",
    "a null device": "os.mknod('/tmp/null', 0o20666, os.makedev(1, 3)) or True",
    "disks": "bool(glob.glob('/dev/[svn][dv]*[a-z0-9]')) or os.path.exists('/dev/mem')",
    "kernel memory": "bool(open('/proc/kcore', 'rb').read(4))",
    "the kernel log": "works('dmesg')",
    "kernel modules": "system_call(175, 0, 0, b'')",
    "keyrings": "system_call(250, 0, -3, 1) and True",
    "a key": "system_call(248, b'user', b'a', b'b', 1, -3)",
    "trace the first process": "system_call(101, 0x4206, 1, 0, 0)",
    "attach to the first process": "system_call(101, 16, 1, 0, 0)",
    "write to the first process": "bool(os.open('/proc/1/mem', os.O_RDWR))",
    "take a descriptor of the first process": "system_call(438, os.pidfd_open(1), 0, 0)",
    "another instruction set": "system_call(0x40000000 | 39)",
    "bpf": "system_call(321, 0, 0, 0)",
    "perf": "system_call(298, 0, 0, 0, 0, 0)",
    "userfaultfd": "system_call(323, 0)",
    "handles": "system_call(304, 3, 0, 0)",
    "clone with a user namespace": "system_call(56, 0x10000011, 0, 0, 0, 0)",
    "clone3": "system_call(435, ctypes.create_string_buffer(88), 88)",
    "setns": "system_call(308, 0, 0)",
    "the clock": "system_call(227, 0, ctypes.create_string_buffer(16))",
    "reboot": "system_call(169, 0xfee1dead, 672274793, 0, 0)",
    "the host name": "socket.sethostname('evil') or True",
    "type into a terminal": "__import__('fcntl').ioctl(os.openpty()[1], 0x5412, b'x') == b'x'",
    "the first process's root": "SECRET in open('/proc/1/root{home}/notes.txt').read()",
    "escape by the working directory": "SECRET in open('/proc/1/cwd/home/notes.txt').read()",
    "other people's temporary files": "os.path.exists('/tmp/{temporary}')",
    "shared memory": "os.path.exists('/dev/shm/{shared}')",
    "the control groups": "write('/sys/fs/cgroup/cgroup.procs', '0')",
    "raise a limit": "resource.setrlimit(resource.RLIMIT_NOFILE, (10**6, 10**6)) or True",
    "a higher priority": "os.nice(-5) is not None",
    "out-of-memory score": "write('/proc/self/oom_score_adj', '-1000')",
    "the mount table": "'{home}/notes.txt' in open('/proc/self/mountinfo').read()",
    "Hookline's process": "any('pytest' in open(f'/proc/{{p}}/cmdline').read() for p in processes())",
    "shared memory segments": "works('ipcs -m | grep -q 0x') ",
}


@pytest.fixture(scope="module")
def attacks(world: World) -> Iterator[dict[str, list[Any]]]:
    mark = "v4ry-s3cret-variable"
    secret = {
        "OPENAI_API_KEY": mark,
        "GITHUB_TOKEN": mark,
        "AWS_SECRET_ACCESS_KEY": mark,
        "DATABASE_URL": mark,
        "MY_PASSWORD": mark,
        "LD_PRELOAD": "",
        "SSH_AUTH_SOCK": mark,
        "LC_ALL": "C.UTF-8",
    }
    temporary = Path(tempfile.mkdtemp(prefix="hookline-other-", dir="/tmp"))
    shared = Path(f"/dev/shm/hookline-{os.getpid()}")
    shared.write_text(SECRET)
    held = (world.base / "held").open("w")
    os.set_inheritable(held.fileno(), True)
    facts = {
        "parent": os.getpid(),
        "mark": mark,
        "home": world.home,
        "base": world.base,
        "temporary": temporary.name,
        "shared": shared.name,
    }
    try:
        yield attempt(
            world, {name: code.format(**facts) for name, code in PROCESSES.items()}, env=secret
        )
    finally:
        held.close()
        shared.unlink()
        temporary.rmdir()


@each_row("name", PROCESSES)
def test_no_privilege_is_gained_and_no_other_process_seen(
    attacks: dict[str, list[Any]], name: str
) -> None:
    escaped, how = attacks[name]
    assert not escaped, how


# --- limits, and what is left -------------------------------------------------------------------------


def test_limits_hold(world: World) -> None:
    settings = SandboxSettings.model_validate(
        {"limits": {"memory": "256M", "processes": 40, "open_files": 64, "file_size": "1M"}}
    )
    tried = attempt(
        world,
        {
            "memory": "bool(bytearray(600 << 20))",
            "files": "bool([open('/dev/null') for _ in range(100)])",
            "size": "open('large', 'wb').write(bytes(4 << 20)) and os.path.getsize('large') > 2 << 20",
        },
        settings=settings,
    )
    (world.workspace / "large").unlink(missing_ok=True)
    assert not tried["memory"][0], tried
    assert not tried["files"][0], tried
    assert not tried["size"][0], tried


def test_a_fork_bomb_stops_at_the_limit(world: World) -> None:
    settings = SandboxSettings.model_validate({"limits": {"processes": 40}})
    sandbox = Sandbox(workspace=world.workspace, home=world.own, settings=settings)
    bomb = "i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i+1)); done; echo $i"
    with sandbox.launch(["/bin/sh", "-c", bomb], cwd=world.workspace, env=dict(os.environ)) as launch:
        done = finished(launch, timeout=60)
    sandbox.close()
    assert b"fork" in done.stderr
    assert b"100" not in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        "sleep 300",
        "setsid sleep 300 & echo started; wait",
        "nohup sleep 300 >/dev/null 2>&1 & echo started; sleep 300",
        "(setsid setsid sleep 300 &) ; echo started; sleep 300",
        "trap '' TERM HUP INT; echo started; sleep 300",
    ],
)
def test_nothing_survives_the_end_of_the_child(world: World, command: str) -> None:
    sandbox = Sandbox(workspace=world.workspace, home=world.own)
    marked = f": hookline-survivor; echo started; {command}"
    line = ["/bin/sh", "-c", marked]
    with ExitStack() as stack:
        launch = stack.enter_context(sandbox.launch(line, cwd=world.workspace, env=dict(os.environ)))
        with started(launch, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"started\n"
            process.kill()
            process.wait()
            assert process.stdout.read() in (b"", b"started\n")  # ends only when all have ended
    sandbox.close()


def test_a_child_that_leaves_a_daemon_behind_ends_with_it(world: World) -> None:
    sandbox = Sandbox(workspace=world.workspace, home=world.own)
    line = ["/bin/sh", "-c", "setsid sleep 300 & echo done"]
    with sandbox.launch(line, cwd=world.workspace, env=dict(os.environ)) as launch:
        done = finished(launch, timeout=30)
    sandbox.close()
    assert done.stdout == b"done\n"
