"""No child of ours runs a stranger's code: one package starts them, away from the current folder."""

import ast
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest

import hookline
from hookline.ext.command_hooks.environment import environment as hook_environment
from hookline.ext.tools.search_files import _search
from hookline.models import weights
from hookline.sandbox import Sandbox
from hookline.system.children import own
from hookline.system.children.environment import environment, program, search_path
from hookline.system.children.process import DEVNULL, PIPE, popen, python, run, start
from hookline.tools import git
from hookline.tools.files import files_in
from hookline.tools.process import running

from ..tables import each_row

SOURCE = Path(hookline.__file__).parent
MODULES = {
    "subprocess", "multiprocessing", "pty", "webbrowser", "popen2", "commands", "_posixsubprocess",
    "concurrent.futures.process", "asyncio.subprocess", "anyio.to_process", "pexpect", "sh", "plumbum",
}  # fmt: skip
CALLS = re.compile(
    r"^(?:exec[lv]p?e?|spawn\w+|posix_spawnp?|fork|forkpty|system|popen|startfile|"
    r"create_subprocess_\w+|subprocess_exec|subprocess_shell|open_process|run_process|"
    r"ProcessPoolExecutor|get_context)$"
)
OWNERS = {"os", "posix", "asyncio", "anyio", "loop", "trio", "futures", "concurrent"}


RUNS_INSIDE = {
    "sandbox/relay.py": ["os.fork", "os.execvp"],
    "sandbox/landlock_child.py": ["os.fork", "os.execvpe"],
    "system/hook_client.py": ["posix.fork", "posix.fork", "posix.execv"],
}
"""Programs of ours: two run inside the sandbox and become the command there, and the client that other
agents start imports nothing of ours and starts a server of this same file."""


def starts_in(tree: ast.AST) -> list[str]:
    """Everything in a module by which a process could be started."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if is_module(name.name)]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            names = [name.name for name in node.names]
            if is_module(module) or any(is_module(f"{module}.{name}") for name in names):
                found.append(f"from {module} import {', '.join(names)}")
            elif module.partition(".")[0] in OWNERS:
                found += [f"from {module} import {name}" for name in names if CALLS.match(name)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            whole = ast.unparse(node)
            owner = whole.partition(".")[0]
            if (owner in OWNERS and CALLS.match(node.attr)) or whole == "asyncio.subprocess":
                found.append(whole)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("__import__", "import_module"):
            found += [
                ast.unparse(node)
                for arg in node.args[:1]
                if isinstance(arg, ast.Constant) and is_module(str(arg.value))
            ]
    return found


def is_module(name: str) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in MODULES)


@each_row(
    "path",
    [p for p in sorted(SOURCE.rglob("*.py")) if p.parent != SOURCE / "system" / "children"],
)
def test_only_the_children_package_starts_processes(path: Path):
    inside = RUNS_INSIDE.get(path.relative_to(SOURCE).as_posix(), [])
    assert starts_in(ast.parse(path.read_bytes())) == inside


@each_row(
    "code",
    [
        "import subprocess",
        "import subprocess as s",
        "from subprocess import Popen",
        "from subprocess import run as go",
        "import os\nos.fork()",
        "import os\nos.system('x')",
        "import os\nos.popen('x')",
        "import os\nos.execvp('x', [])",
        "import os\nos.execle('x')",
        "import os\nos.spawnlp(1, 'x')",
        "import os\nos.posix_spawn('x')",
        "from os import system",
        "from os import execv, getpid",
        "import os\ngo = os.posix_spawnp",
        "import posix\nposix.fork()",
        "import pty",
        "import multiprocessing",
        "from multiprocessing import get_context",
        "import multiprocessing.pool",
        "from concurrent.futures import ProcessPoolExecutor",
        "from concurrent.futures.process import ProcessPoolExecutor",
        "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()",
        "import asyncio\nasyncio.create_subprocess_exec('x')",
        "import asyncio\nasyncio.create_subprocess_shell('x')",
        "from asyncio import create_subprocess_exec",
        "import asyncio.subprocess",
        "from asyncio import subprocess",
        "import asyncio\nasyncio.subprocess.PIPE",
        "loop.subprocess_exec(x)",
        "import anyio\nanyio.open_process('x')",
        "from anyio import run_process",
        "import webbrowser",
        "def f():\n    import subprocess",
        "__import__('subprocess')",
        "import_module('multiprocessing.pool')",
        "import _posixsubprocess",
    ],
)
def test_the_check_sees_every_way_to_start_a_process(code: str):
    assert starts_in(ast.parse(code))


# --- a folder with one of each trick ----------------------------------------------------------------

SHADOWED = (
    "pip", "json", "re", "os", "site", "runpy", "encodings", "codecs", "stat", "types", "typing",
    "asyncio", "pickle", "webbrowser", "sitecustomize", "usercustomize", "hookline", "pydantic",
    "tomllib", "_posixsubprocess", "collections", "pluggy",
)  # fmt: skip
PROGRAMS = ("git", "sh", "pip", "pip3", "python", "python3", "bwrap", "sandlock", "sleep", "env")


@pytest.fixture(scope="module")
def mark(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("mark")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, mark: Path) -> Path:
    """A folder whose modules, programs, start-up files and libraries all leave a mark."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in SHADOWED:
        leave = f"open({str(mark / name)!r}, 'w').close()\n"
        (folder / f"{name}.py").write_text(leave)
        for package in (folder / name, folder / "bin" / name):
            if name not in PROGRAMS or package.parent == folder:
                package.mkdir(parents=True)
                (package / "__init__.py").write_text(leave)
                (package / "__main__.py").write_text(leave)
    (folder / "bin").mkdir(exist_ok=True)
    for place in (folder, folder / "bin"):
        for name in PROGRAMS:
            path = place / name
            if not path.exists():
                path.write_text(f"#!/bin/sh\n: > {mark / f'program-{name}'}\n")
                path.chmod(0o755)
    (folder / "startup.sh").write_text(f": > {mark / 'startup'}\n")
    (folder / "startup.py").write_text(f"open({str(mark / 'startup')!r}, 'w').close()\n")
    (folder / "evil.pth").write_text(f"import os; open({str(mark / 'pth')!r}, 'w').close()\n")
    info = folder / "hookline_evil-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[hookline]\nevil = json:evil\n")
    return folder


TRICKS = {
    "none": {},
    "PYTHONPATH=.": {"PYTHONPATH": "."},
    "PYTHONPATH absolute": {"PYTHONPATH": "{folder}"},
    "PYTHONHOME": {"PYTHONHOME": "{folder}"},
    "PYTHONSTARTUP": {"PYTHONSTARTUP": "{folder}/startup.py", "PYTHONINSPECT": "1"},
    "PYTHONUSERBASE": {"PYTHONUSERBASE": "{folder}"},
    "PYTHONPLATLIBDIR": {"PYTHONPLATLIBDIR": "{folder}"},
    "PYTHONBREAKPOINT": {"PYTHONBREAKPOINT": "json.evil"},
    "PYTHONWARNINGS": {"PYTHONWARNINGS": "error::json.Evil"},
    "PATH=.": {"PATH": ".:/usr/bin:/bin"},
    "PATH=bin": {"PATH": "bin:/usr/bin:/bin"},
    "PATH empty entry": {"PATH": ":/usr/bin:/bin"},
    "PATH empty last": {"PATH": "/usr/bin:/bin:"},
    "PATH absolute": {"PATH": "{folder}/bin:{folder}:/usr/bin:/bin"},
    "PATH with dots": {"PATH": "/usr/../{folder}/bin:/usr/bin:/bin"},
    "LD_PRELOAD": {"LD_PRELOAD": "{folder}/evil.so", "LD_AUDIT": "{folder}/evil.so"},
    "LD_LIBRARY_PATH": {"LD_LIBRARY_PATH": "{folder}"},
    "BASH_ENV": {"BASH_ENV": "{folder}/startup.sh", "ENV": "{folder}/startup.sh"},
    "exported function": {"BASH_FUNC_git%%": "() {{ : > {folder}/x; }}"},
    "GIT_EXTERNAL_DIFF": {"GIT_EXTERNAL_DIFF": "{folder}/git", "GIT_PAGER": "{folder}/git"},
    "GIT_EXEC_PATH": {"GIT_EXEC_PATH": "{folder}/bin"},
    "GIT_DIR": {"GIT_DIR": "{folder}", "GIT_CONFIG_GLOBAL": "{folder}/gitconfig"},
    "GIT_CONFIG_COUNT": {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "{folder}/git",
    },
    "NODE_OPTIONS": {"NODE_OPTIONS": "--require {folder}/evil.js"},
    "others": {"PERL5OPT": "-Mevil", "RUBYOPT": "-revil", "JAVA_TOOL_OPTIONS": "-javaagent:evil"},
    "relative HOME": {"HOME": ".", "TMPDIR": ".", "XDG_CONFIG_HOME": "."},
}


@pytest.fixture(params=TRICKS)
def inside(request, hostile: Path, mark: Path, monkeypatch) -> Path:
    """This process in the folder, with an environment that leads into it."""
    for left in mark.iterdir():
        left.unlink()
    monkeypatch.chdir(hostile)
    for name, value in TRICKS[request.param].items():
        monkeypatch.setenv(name, value.format(folder=hostile))
    return hostile


@pytest.fixture
def untouched(mark: Path):
    """Nothing of the folder has run."""
    yield
    assert [path.name for path in mark.iterdir()] == []


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("untouched")]

READS = "import json, pickle, typing, runpy; print(json.dumps('fine'))"


def test_a_python_worker_of_ours_imports_nothing_of_the_folder(inside):
    assert run(python("json.tool", "--help"), timeout=30).returncode == 0


def test_a_program_of_ours_is_not_found_in_the_folder(inside):
    for name in PROGRAMS:
        found = program(name, avoid=(str(inside),))
        assert found is None or not Path(found).resolve().is_relative_to(inside)


def test_git_runs_nothing_of_the_folder(inside, repository):
    assert "tracked" in files_in(repository)
    assert git.containing(repository, "needle", ignore_case=False) == {"tracked"}


async def test_the_search_worker_imports_nothing_of_the_folder(inside):
    order = {"pattern": "a", "literal": "a", "ignore_case": False, "limit": 9}
    found = await _search({**order, "folder": str(inside), "names": ["json.py"]}, None)
    assert "lines" in found


async def test_a_shell_command_meets_no_startup_file(inside):
    async with (
        running(["/bin/sh", "-c", "echo fine; /usr/bin/env"], cwd=inside, env=environment()) as child,
        aclosing(child.chunks()) as chunks,
    ):
        printed = b"".join([chunk async for chunk in chunks]).decode()
    assert printed.startswith("fine")
    assert not re.search(
        r"^(LD_|BASH_|ENV=|PYTHON|GIT_|NODE_OPTIONS|PERL|RUBY|JAVA_TOOL)", printed, re.M
    )


def test_a_users_hook_in_python_imports_nothing_of_the_folder(inside):
    env = hook_environment(str(inside))
    command = f"'{sys.executable}' -c \"{READS}\""
    done = run(["/bin/bash", "-c", command], cwd=inside, env=env, timeout=30)
    assert done.stdout.strip() == b'"fine"', done.stderr


def test_a_users_server_that_is_a_module_is_not_looked_for_in_the_folder(inside):
    done = run([sys.executable, "-c", READS], env=environment(), timeout=30)
    assert done.stdout.strip() == b'"fine"'


@pytest.mark.parametrize(
    "inside", ["none", "PYTHONPATH=.", "PYTHONUSERBASE", "PATH absolute"], indirect=True
)
def test_pip_is_never_the_folders(inside):
    command = weights.pip_command()
    done = run([*command, "--version"], timeout=60)
    assert done.stdout.startswith(b"pip ")
    assert str(inside).encode() not in done.stdout


@pytest.mark.parametrize("start_with", [["-m", "hookline"], ["-m", "hookline.cli"]])
@pytest.mark.parametrize("trick", ["none", "PATH=.", "PATH absolute", "BASH_ENV"])
def test_our_own_process_imports_nothing_of_the_folder(
    hostile, tmp_path, mark, start_with, trick, own_names
):
    """What Python itself imports for `-m`, before any of our code, is not for us to decide."""
    more = {name: value.format(folder=hostile) for name, value in TRICKS[trick].items()}
    env = {**environment(), "HOOKLINE_HOME": str(tmp_path), **more}
    done = subprocess.run(
        [sys.executable, *start_with, "--version"],
        cwd=own_names,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "hookline" in done.stdout


@pytest.fixture
def own_names(tmp_path_factory, mark) -> Path:
    """A folder with modules that our start imports, and a plugin that would be found."""
    folder = tmp_path_factory.mktemp("own")
    for left in mark.iterdir():
        left.unlink()
    for name in (
        "json",
        "typer",
        "click",
        "pluggy",
        "tomllib",
        "typing",
        "pydantic",
        "hookline_evil",
        "gc",
    ):
        (folder / f"{name}.py").write_text(f"open({str(mark / name)!r}, 'w').close()\n")
    info = folder / "hookline_evil-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[hookline]\nevil = hookline_evil:evil\n")
    return folder


# --- a repository that names programs ---------------------------------------------------------------


@pytest.fixture
def repository(tmp_path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q")
    (folder / "tracked").write_text("needle")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "noise.log").write_text("needle")
    _git(folder, "add", ".")
    return folder


def _git(folder: Path, *arguments: str) -> None:
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, env=clean)


CONFIGS = {
    "core.fsmonitor": "[core]\n\tfsmonitor = {run}",
    "core.hooksPath": "[core]\n\thooksPath = {folder}/hooks",
    "config hook": '[hook "evil"]\n\tevent = post-index-change\n\tcommand = {run}',
    "filter clean": '[filter "evil"]\n\tclean = {run}\n\tsmudge = {run}\n\trequired = true',
    "filter process": '[filter "evil"]\n\tprocess = {run}\n\trequired = true',
    "textconv": '[diff "evil"]\n\ttextconv = {run}\n\tcommand = {run}',
    "diff.external": "[diff]\n\texternal = {run}",
    "merge driver": '[merge "evil"]\n\tdriver = {run}',
    "alias": "[alias]\n\tls-files = !{run}\n\tgrep = !{run}",
    "pager": "[core]\n\tpager = {run}\n[pager]\n\tls-files = {run}\n\tgrep = {run}",
    "editor": "[core]\n\teditor = {run}\n[sequence]\n\teditor = {run}",
    "sshCommand": "[core]\n\tsshCommand = {run}\n\tgitProxy = {run}\n\taskPass = {run}",
    "gpg": "[gpg]\n\tprogram = {run}\n[commit]\n\tgpgsign = true",
    "credential": "[credential]\n\thelper = !{run}",
    "include": "[include]\n\tpath = {folder}/included",
    "includeIf": '[includeIf "gitdir:{folder}/"]\n\tpath = {folder}/included',
    "promisor ext": (
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
        '[remote "origin"]\n\turl = ext::{run}\n\tpromisor = true\n[protocol]\n\tallow = always'
    ),
    "promisor uploadpack": (
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
        '[remote "origin"]\n\turl = {folder}\n\tuploadpack = {run}\n\tpromisor = true'
    ),
    "submodule": '[submodule]\n\trecurse = true\n[submodule "x"]\n\tupdate = !{run}\n\turl = .',
    "worktree": "[core]\n\tworktree = /",
    "bare": "[core]\n\tbare = true",
    "trace": "[trace2]\n\teventTarget = {folder}/trace\n\tnormalTarget = {folder}/trace",
    "web": "[web]\n\tbrowser = {run}\n[help]\n\tbrowser = {run}\n[man]\n\tviewer = {run}",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_repositorys_configuration_starts_nothing(name, repository, tmp_path):
    ran = tmp_path / "ran"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\n: > {ran}\ncat\n")
    script.chmod(0o755)
    hooks = repository / "hooks"
    hooks.mkdir()
    for each in ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman"):
        (hooks / each).write_text(f"#!/bin/sh\n: > {ran}\n")
        (hooks / each).chmod(0o755)
        (repository / ".git" / "hooks" / each).write_text(f"#!/bin/sh\n: > {ran}\n")
        (repository / ".git" / "hooks" / each).chmod(0o755)
    (repository / "included").write_text(f"[core]\n\tfsmonitor = {script}\n")
    (repository / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    with (repository / ".git" / "config").open("a") as config:
        config.write(CONFIGS[name].format(run=script, folder=repository) + "\n")
    listed = files_in(repository)
    assert "tracked" in listed
    assert "noise.log" not in listed
    assert "tracked" in (git.containing(repository, "needle", ignore_case=True) or ())
    assert not ran.exists()
    assert not (repository / "trace").exists()


@pytest.mark.parametrize("where", ["linked", "submodule", "sha256", "subfolder", "excluded"])
def test_git_still_knows_the_files_of(where, repository, tmp_path):
    _git(repository, "commit", "-qm", "one")
    folder, expected = repository, {"tracked", ".gitignore"}
    if where == "linked":
        folder = tmp_path / "linked"
        _git(repository, "worktree", "add", "-q", str(folder))
    elif where == "submodule":
        folder = tmp_path / "super"
        folder.mkdir()
        _git(folder, "init", "-q")
        local = ["-c", "protocol.file.allow=always"]
        _git(folder, *local, "submodule", "--quiet", "add", str(repository), "sub")
        expected = {"sub/tracked", "sub/.gitignore", ".gitmodules"}
        (folder / "sub" / "x.log").write_text("ignored")
    elif where == "sha256":
        folder = tmp_path / "new"
        folder.mkdir()
        _git(folder, "init", "-q", "--object-format=sha256")
        (folder / "tracked").write_text("x")
        _git(folder, "add", ".")
        expected = {"tracked"}
    elif where == "subfolder":
        folder = repository / "deep" / "er"
        folder.mkdir(parents=True)
        (folder / "x.log").write_text("ignored")
        (folder / "new").write_text("x")
        expected = {"new"}
    else:
        (repository / ".git" / "info" / "exclude").write_text("secret\n")
        (repository / "secret").write_text("x")
    assert set(files_in(folder)) == expected


def test_a_repository_within_a_bare_repository_is_only_files(tmp_path):
    """An embedded bare repository is a folder like any other: its configuration is never read."""
    ran = tmp_path / "ran"
    bare = tmp_path / "work" / "bare"
    bare.mkdir(parents=True)
    _git(bare, "init", "-q", "--bare")
    with (bare / "config").open("a") as config:
        config.write(f"[core]\n\tbare = false\n\tworktree = {bare}\n\tfsmonitor = : > {ran};\n")
    assert "HEAD" in files_in(bare)
    assert not ran.exists()


@pytest.mark.parametrize("kind", ["fifo", "garbage", "loop", "folder as index", "nowhere"])
def test_a_broken_git_folder_is_a_folder_without_git(kind, tmp_path):
    (tmp_path / "file").write_text("x")
    own_git = tmp_path / ".git"
    if kind == "fifo":
        os.mkfifo(own_git)
    elif kind == "garbage":
        own_git.write_bytes(b"\0" * 10_000)
    elif kind == "loop":
        own_git.symlink_to(".git")
    elif kind == "folder as index":
        (own_git / "index").mkdir(parents=True)
    else:
        own_git.write_text("gitdir: /nowhere/at/all\n")
    assert "file" in files_in(tmp_path)


# --- the environment and the search path ------------------------------------------------------------

SECRETS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN", "HOOKLINE_GATEWAY__TOKEN", "HOOKLINE_HOME", "HOOKLINE_TELEGRAM__TOKEN",
    "DATABASE_URL", "PGPASSWORD", "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "NPM_TOKEN", "PIP_INDEX_URL",
    "DBUS_SESSION_BUS_ADDRESS", "MY_SECRET", "KUBECONFIG", "SLACK_BOT_TOKEN", "SUDO_ASKPASS",
)  # fmt: skip
RUNNING = (
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONHOME",
    "PYTHONSTARTUP", "PYTHONUSERBASE", "BASH_ENV", "ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "PS4",
    "PROMPT_COMMAND", "GIT_DIR", "GIT_EXEC_PATH", "GIT_SSH_COMMAND", "GIT_EDITOR", "NODE_OPTIONS",
    "NODE_PATH", "PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "CLASSPATH",
    "LESSOPEN", "EDITOR", "VISUAL", "BROWSER", "MANPAGER", "IFS", "CDPATH", "GCONV_PATH",
    "MAKEFLAGS", "TAR_OPTIONS", "RIPGREP_CONFIG_PATH", "GREP_OPTIONS",
)  # fmt: skip


@pytest.mark.parametrize("name", [*SECRETS, *RUNNING])
def test_a_child_does_not_inherit(name, monkeypatch):
    monkeypatch.setenv(name, "/evil")
    assert name not in environment()
    assert name not in hook_environment("/work") or name == "PYTHONSAFEPATH"
    done = run(["/usr/bin/env"], timeout=10)
    assert name.encode() + b"=" not in done.stdout


def test_the_user_allows_more_by_name_or_pattern(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/x")
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    found = environment(keep=["AWS_*", "SSH_AUTH_SOCK"])
    assert found["AWS_PROFILE"] == "work"
    assert found["SSH_AUTH_SOCK"] == "/x"
    assert "GITHUB_TOKEN" not in found


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_with_a_password_is_a_secret(name, monkeypatch):
    monkeypatch.setenv(name, "http://proxy:3128")
    assert environment()[name] == "http://proxy:3128"
    monkeypatch.setenv(name, "http://me:secret@proxy:3128")
    assert name not in environment()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".:/usr/bin", "/usr/bin"),
        (":/usr/bin", "/usr/bin"),
        ("/usr/bin:", "/usr/bin"),
        ("/usr/bin::/bin", "/usr/bin:/bin"),
        ("bin:../bin:~/bin:/bin", "/bin"),
        ("./node_modules/.bin:/bin", "/bin"),
        ("/work/repo/bin:/bin", "/bin"),
        ("/work/repo:/bin", "/bin"),
        ("/work/repo/../repo/bin:/bin", "/bin"),
        ("/work/repository/bin:/bin", "/work/repository/bin:/bin"),
        ("/bin:/bin:/usr/bin", "/bin:/usr/bin"),
    ],
)
def test_a_search_path_is_absolute_and_outside_the_workspace(path, expected):
    assert search_path(path, avoid=["/work/repo"]) == expected


@pytest.mark.parametrize("path", [None, "", ".", "bin", ":"])
def test_a_search_path_without_a_usable_entry_is_the_systems(path):
    assert search_path(path, avoid=["/"]).startswith("/usr")


def test_a_link_into_the_workspace_is_not_searched(tmp_path):
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    (tmp_path / "innocent").symlink_to(work / "bin")
    assert search_path(f"{tmp_path}/innocent:/bin", avoid=[str(work)]) == "/bin"


@pytest.mark.parametrize(
    ("path", "environ", "expected"),
    [
        (["", "/lib"], {}, ["/lib"]),
        ([".", "/lib"], {}, ["/lib"]),
        (["src", "/lib"], {}, ["/lib"]),
        (["{here}", "/lib"], {}, ["/lib"]),
        (["/venv/bin", "{here}", "/lib"], {"PYTHONPATH": "."}, ["/venv/bin", "/lib"]),
        (["/venv/bin", "{here}/src", "/lib"], {"PYTHONPATH": "src"}, ["/venv/bin", "/lib"]),
        (["/venv/bin", "{here}", "/lib"], {"PYTHONPATH": ":/x"}, ["/venv/bin", "/lib"]),
        (["/venv/bin", "/lib", "{here}"], {}, ["/venv/bin", "/lib", "{here}"]),
        (["{here}", "/lib", "{here}"], {}, ["/lib", "{here}"]),
    ],
    ids=["empty", "dot", "relative", "-m", "PYTHONPATH=.", "src", "colon", "editable", "both"],
)
def test_the_import_path_has_nothing_of_the_current_folder(
    path, environ, expected, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    filled = [entry.format(here=tmp_path) for entry in path]
    assert own.import_path(filled, environ) == [entry.format(here=tmp_path) for entry in expected]


# --- the end ----------------------------------------------------------------------------------------


def test_a_child_has_a_session_of_its_own_and_closed_input():
    script = "import os, sys; print(os.getsid(0) == os.getpid(), sys.stdin.read() == '', os.getcwd())"
    assert run([sys.executable, "-I", "-c", script], timeout=10).stdout.split() == [
        b"True", b"True", b"/",
    ]  # fmt: skip


def test_a_child_gets_no_open_files_of_ours(tmp_path):
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        done = run(["/bin/sh", "-c", "ls -l /proc/self/fd"], timeout=10)
    assert b"secret" not in done.stdout


def test_a_child_that_takes_too_long_is_killed_with_what_it_started(tmp_path):
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run(["/bin/sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; wait"], timeout=0.5)
    assert time.monotonic() - began < 20
    assert_gone(int((tmp_path / "pid").read_text()))


KILLED = """
import asyncio, sys, time
from hookline.system.children.process import popen, start

popen(["/bin/sh", "-c", "trap '' TERM; echo $$ > $0/one; sleep 60", sys.argv[1]])

async def main():
    await start(["/bin/sh", "-c", "sleep 60 & echo $! > $0/two; wait", sys.argv[1]])
    print("started", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_survives_its_parent(tmp_path, number):
    parent = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"started\n"
    pids = [wait_for(tmp_path / name) for name in ("one", "two")]
    parent.send_signal(number)
    parent.communicate()
    for pid in pids:
        assert_gone(pid)


def wait_for(path: Path) -> int:
    for _ in range(1000):
        if path.exists() and (text := path.read_text().strip()):
            return int(text)
        time.sleep(0.01)
    raise AssertionError(f"{path} was not written")


def assert_gone(pid: int) -> None:
    for _ in range(1000):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} still runs")


async def test_a_working_directory_is_absolute():
    with pytest.raises(ValueError, match="must be absolute"):
        popen(["/bin/true"], cwd="relative")
    with pytest.raises(ValueError, match="must be absolute"):
        await start(["/bin/true"], cwd=".", stdin=DEVNULL, stdout=PIPE)


@pytest.mark.skipif(
    not Sandbox(workspace=Path("/tmp"), home=Path("/nonexistent")).active, reason="no sandbox"
)
async def test_in_the_sandbox_not_even_a_daemon_survives(tmp_path):
    sandbox = Sandbox(workspace=tmp_path, home=tmp_path.parent / "none")
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 6543' &"
    command = f"{daemon} until [ -s {tmp_path}/pid ]; do :; done; exit 3"
    async with (
        running(
            ["/bin/sh", "-c", command], cwd=tmp_path, env=environment(), sandbox=sandbox, kind="shell"
        ) as child,
        aclosing(child.chunks()) as chunks,
    ):
        async for _ in chunks:
            pass
    assert child.process.returncode == 3
    assert (tmp_path / "pid").exists()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert b"sleep\x006543" not in entry.read_bytes()
        except OSError:
            continue
