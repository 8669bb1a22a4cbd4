# ruff: noqa: E501 -- tables of attacks read best in long lines
"""Trust covers what really runs: whatever a project's command reaches is hashed, or it is not run."""

import json
import os
import time

import pytest

from hookline.errors import TrustError
from hookline.plugins.project import config_items, is_document, project_items, skill_item
from hookline.plugins.reach import ProjectCommand, Reach
from hookline.plugins.settingsfiles import settings_items
from hookline.plugins.trust import Trust
from hookline.runtime.app import Hookline

from ..tables import each_row

FILES = {
    "tools/check.sh": "#!/bin/sh\n. ./tools/lib.sh\n",
    "tools/lib.sh": "echo hi\n",
    "tools/data.txt": "x",
    "a b/x y.sh": "exit 2\n",
    "server.py": "import helper\nfrom pack import part\n",
    "helper.py": "import deep\n",
    "deep.py": "X = 1\n",
    "pack/__init__.py": "",
    "pack/part.py": "X = 1\n",
    "app.js": "const x = require('./lib');\n",
    "lib.js": "module.exports = require('./more/other.js');\n",
    "more/other.js": "",
    "plain": "#!/bin/bash\nsource lib2\n",
    "lib2": "echo 2\n",
    ".claude/hooks/run": "exit 0\n",
    "outer.sh": "cd tools && ./check.sh\n",
}


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return folder


COVERED = [
    ("sh ./tools/check.sh --strict", "tools/check.sh tools/lib.sh tools/data.txt"),
    ('"$CLAUDE_PROJECT_DIR"/tools/check.sh', "tools/check.sh tools/lib.sh"),
    ("$HOOKLINE_PROJECT_DIR/tools/check.sh", "tools/check.sh tools/lib.sh"),
    ("${HOOKLINE_PROJECT_DIR}/tools/check.sh", "tools/check.sh tools/lib.sh"),
    ("cd tools && ./check.sh", "tools/check.sh tools/lib.sh"),
    ("cd tools; sh check.sh", "tools/check.sh tools/lib.sh"),
    ("(cd tools && exec ./check.sh)", "tools/check.sh tools/lib.sh"),
    ("if true; then tools/check.sh; fi", "tools/check.sh tools/lib.sh"),
    ("echo x | tools/check.sh", "tools/check.sh tools/lib.sh"),
    ("! tools/check.sh", "tools/check.sh"),
    ("tools/../tools/./check.sh", "tools/check.sh"),
    ("tools//check.sh", "tools/check.sh"),
    ("t'ool's/check.sh", "tools/check.sh"),
    ("tools\\/check.sh", "tools/check.sh"),
    ("'a b/x y.sh'", "a b/x y.sh"),
    ("a\\ b/x\\ y.sh", "a b/x y.sh"),
    ('"${CLAUDE_PROJECT_DIR}/a b/x y.sh"', "a b/x y.sh"),
    ('cd "a b" && ./"x y.sh"', "a b/x y.sh"),
    ("python server.py", "server.py helper.py deep.py pack/__init__.py pack/part.py"),
    ("python3 -u ./server.py", "server.py helper.py deep.py"),
    ("/usr/bin/python3 server.py", "server.py helper.py deep.py"),
    ("node app.js", "app.js lib.js more/other.js"),
    ("./plain", "plain lib2"),
    ("bash -eu plain", "plain lib2"),
    (". ./plain", "plain lib2"),
    ("source plain", "plain lib2"),
    ("sh outer.sh", "outer.sh tools/check.sh tools/lib.sh"),
    (".claude/hooks/run", ".claude/hooks/run"),
    ("cat < tools/data.txt", "tools/data.txt"),
    ("f() { tools/check.sh; }; f", "tools/check.sh"),
    ("for i in 1 2; do tools/check.sh; done", "tools/check.sh"),
    ("case x in x) tools/check.sh;; esac", "tools/check.sh"),
    ("true && false || tools/check.sh", "tools/check.sh"),
    ("tools/check.sh &", "tools/check.sh"),
    ("{ tools/check.sh; }", "tools/check.sh"),
    ("it=tools/check.sh; sh $it", "tools/check.sh tools/lib.sh"),
    ('input=$(cat); echo "$input" | tools/check.sh', "tools/check.sh tools/lib.sh"),
    ("while read -r line; do tools/check.sh; done < tools/data.txt", "tools/check.sh tools/data.txt"),
    ("cat <<'E' | tools/check.sh\nx\nE", "tools/check.sh"),
    ("ls tools/*.sh; cat tools/chec?.sh", "tools/check.sh tools/lib.sh"),
]


@pytest.mark.parametrize(("line", "files"), COVERED, ids=[line for line, _ in COVERED])
def test_a_command_whose_files_can_be_told_covers_all_of_them(project, line, files):
    reach = Reach(project)
    assert reach.follow(ProjectCommand("x", line=line)) == ""
    covered = {os.path.relpath(path, reach.project) for path in reach.snapshot.files}
    wanted = [name for name in FILES if name in files]
    assert covered >= set(wanted)
    for name in wanted:
        before = reach.snapshot.changed()
        (project / name).write_text(FILES[name] + "# changed\n")
        assert (before, reach.snapshot.changed() != "") == ("", True), name
        (project / name).write_text(FILES[name])


@pytest.mark.parametrize("name", ["a b", "a*", "$x", "a;b", "~"])
@pytest.mark.parametrize("variable", ["CLAUDE_PROJECT_DIR", "HOOKLINE_PROJECT_DIR"])
def test_a_project_folder_with_blanks_or_wildcards_is_known_only_within_quotes(
    tmp_path, name, variable
):
    project = tmp_path / name
    project.mkdir()
    (project / "check.sh").write_text("echo hi\n")
    quoted, bare = Reach(project), Reach(project)
    assert quoted.follow(ProjectCommand("x", line=f'sh "${variable}"/check.sh')) == ""
    assert quoted.project / "check.sh" in quoted.snapshot.files
    assert bare.follow(ProjectCommand("x", line=f"sh ${variable}/check.sh")) != ""


UNCLEAR = [
    "/bin/sh -c ./plain", "/usr/bin/env ./plain", "/usr/bin/make", "make", "make -C tools", "npm run x", "npx tool", "yarn", "uvx tool", "cargo run", "pytest", "git status",
    "find . -exec sh {} +", "ls | xargs sh", 'bash -c "$(cat plain)"', "bash -c './plain'", "eval ./plain",
    "sh", "sh -", "cat plain | sh", "sh < plain", "bash <<E\n./plain\nE", "python -c 'import server'",
    "python -m server", "python3 -m pack.part", "python .", "python pack", "node -r ./lib.js app.js",
    "node -e 'require(\"./lib\")'", "$CMD", "${X:-./plain}", "`echo ./plain`", "$(echo ./plain)",
    "tools/*.sh", "sh tools/*.sh", "sh tools/chec?.sh", "sh tools/[c]heck.sh", "sh tools/{check,lib}.sh",
    "cd $X && ./plain", "cd tools/* && ./check.sh", "PATH=. plain", "PYTHONPATH=pack python server.py",
    "LD_PRELOAD=./x.so ls", "env ./plain", "env -S './plain'", "time ./plain", "sudo ./plain", "xargs ./plain",
    "timeout 5 ./plain", "nice ./plain", "setsid ./plain", "busybox sh plain", "awk -f plain", "sed -f plain x",
    "perl -I. x.pl", "perl x.pl", "ruby -r./x y", "/tmp/elsewhere.sh", "~/elsewhere.sh", "../elsewhere.sh",
    "sh /tmp/elsewhere.sh", "plain", "absent", "./absent", "sh absent.sh", "sh $HOME/x", "if x; then", "'", "((",
    "trap ./plain EXIT; source $X", ". $X", "parallel sh ::: plain", "docker run x", "ssh host ./plain",
    "alias x=./plain; x", "BASH_ENV=plain bash x", "export PATH=.; plain", "ENV=plain sh plain",
    'export "PATH=."; plain', "read PATH < plain; ls", "mapfile PATH < plain; ls", "unset PATH; plain",
    "make; make() { :; }", "(make() { :; }); make", "if false; then npm() { :; }; fi; npm run x", "eval() { :; }; eval ./plain",
    "sort --compress-program=./plain tools/data.txt", "curl -K plain", "jq -L . x", "bash -o posix plain",
    "CLAUDE_PROJECT_DIR=/tmp; $CLAUDE_PROJECT_DIR/x.sh", "read HOOKLINE_PROJECT_DIR; sh $HOOKLINE_PROJECT_DIR/plain",
    "for CLAUDE_PROJECT_DIR in /tmp; do sh $CLAUDE_PROJECT_DIR/plain; done", "exec -a x ./plain", "trap ./plain EXIT",
    "echo $'./plain' | sh", "while read -r line; do $line; done < plain", "x=./plain; x=$y; $x", "printf -v PATH .; ls",
    "just x", "tox", "poetry run x", "hatch run x", "bundle exec x", "gradle x", "./node_modules/.bin/x",
]  # fmt: skip


@each_row("line", UNCLEAR)
def test_a_command_whose_files_cannot_be_told_is_unclear(project, line):
    assert Reach(project).follow(ProjectCommand("x", line=line)) != ""


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess", "import importlib", "__import__('x')", "exec(open('x').read())", "eval('x')",
        "import runpy", "import sys\nsys.path.insert(0, 'x')", "from ctypes import CDLL", "import pickle",
        "import os\nos.system('x')", "import os\nos.execv('x', [])", "import os\nos.spawnl(0, 'x')",
    ],
)  # fmt: skip
def test_a_script_that_computes_what_it_runs_is_unclear(project, text):
    (project / "server.py").write_text(text)
    assert "decides at run time" in Reach(project).follow(
        ProjectCommand("x", words=("python", "server.py"))
    )


@pytest.mark.parametrize(
    "text",
    ["eval x", "$X", "make", ". $LIB", "source <(curl x)", "python -m x", "sh *.sh", "bad syntax ((("],
)
def test_a_shell_script_that_does_is_unclear(project, text):
    (project / "tools" / "lib.sh").write_text(text)
    assert Reach(project).follow(ProjectCommand("x", line="sh tools/check.sh")) != ""


SHARED = {
    "the same command": ["sh a.sh", "sh a.sh"],
    "other arguments": ["sh a.sh", "sh a.sh --more"],
    "another script that runs it": ["sh a.sh", "sh b.sh"],
    "one that it runs in turn": ["sh b.sh", "sh a.sh"],
    "a cycle, entered elsewhere": ["sh c.sh", "sh b.sh", "sh a.sh", "sh c.sh"],
    "another interpreter": ["python a.sh", "sh a.sh"],
    "named first": ["cat a.sh", "sh a.sh"],
}


@pytest.mark.parametrize("lines", SHARED.values(), ids=SHARED)
def test_every_command_that_runs_an_unclear_script_is_unclear(tmp_path, lines):
    (tmp_path / "a.sh").write_text("$1\nsh b.sh\n")
    (tmp_path / "b.sh").write_text("sh c.sh\n")
    (tmp_path / "c.sh").write_text("sh a.sh\n")
    reach = Reach(tmp_path)
    found = [reach.follow(ProjectCommand(f"x[{n}]", line=line)) for n, line in enumerate(lines)]
    first = 1 if lines[0].startswith(("cat", "python")) else 0
    assert all(found[first:]), found


def test_a_program_that_is_no_text_and_an_unknown_interpreter_are_unclear(project):
    (project / "tools" / "check.sh").write_bytes(b"\x7fELF\0\0")
    assert Reach(project).follow(ProjectCommand("x", line="tools/check.sh")) != ""
    for first in ("#!./evil", "#!/usr/bin/make -f", "#!/tmp/python", "#!"):
        (project / "plain").write_text(f"{first}\n")
        assert Reach(project).follow(ProjectCommand("x", line="./plain")) != "", first


@pytest.mark.parametrize(
    "name", ["PATH", "PYTHONPATH", "LD_PRELOAD", "NODE_OPTIONS", "BASH_ENV", "GIT_SSH_COMMAND"]
)
def test_an_environment_that_steers_the_program_is_unclear(project, name):
    command = ProjectCommand("x", words=("python", "server.py"), env={name: "x"})
    assert name in Reach(project).follow(command)


@pytest.mark.parametrize(
    ("files", "clear"),
    [(("tools",), True), (("tools/check.sh", "server.py"), True), ((), True), (("/etc/passwd",), False),
     (("../x",), False), (("absent",), False), (("link",), False), (("~/x",), False)],
)  # fmt: skip
def test_what_a_command_lists_is_covered_and_must_be_in_the_project(project, files, clear):
    (project / "link").symlink_to("/etc/passwd")
    reach = Reach(project)
    assert (reach.follow(ProjectCommand("x", line="make check", files=files)) == "") is clear
    if files == ("tools",):
        (project / "tools" / "new.sh").write_text("evil")
        assert reach.snapshot.changed() == "tools/"


@pytest.mark.parametrize(
    "name", ["tools/json.py", "tools/.hidden", "tools/deep/er.sh", "tools/sitecustomize.py"]
)
def test_a_file_that_is_added_beside_a_script_counts_as_a_change(project, name):
    reach = Reach(project)
    reach.follow(ProjectCommand("x", line="sh tools/check.sh"))
    assert reach.snapshot.changed() == ""
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("evil")
    assert reach.snapshot.changed() == "tools/"


@pytest.mark.parametrize("name", ["json.py", "re.pyc", "os.so", "typing/__init__.py"])
def test_a_module_that_is_added_beside_a_python_script_counts_as_a_change(project, name):
    reach = Reach(project)
    reach.follow(ProjectCommand("x", words=("python", "server.py")))
    assert reach.snapshot.changed() == ""
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("evil")
    assert reach.snapshot.changed() != ""


def test_a_link_that_is_turned_elsewhere_counts_as_a_change(project):
    (project / "now").symlink_to(project / "tools")
    reach = Reach(project)
    reach.follow(ProjectCommand("x", line="sh now/check.sh"))
    other = project / "other"
    other.mkdir()
    (other / "check.sh").write_text(FILES["tools/check.sh"])
    (project / "now").unlink()
    (project / "now").symlink_to(other)
    assert reach.snapshot.changed() != ""


def test_a_change_that_keeps_size_and_time_is_seen(project):
    path = project / "tools" / "lib.sh"
    reach = Reach(project)
    reach.follow(ProjectCommand("x", line="sh tools/check.sh"))
    about = path.stat()
    path.write_text("echo HI\n")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert reach.snapshot.changed() == "tools/lib.sh"


@pytest.mark.parametrize("size", [10_000, 400_000])
def test_a_command_built_to_hang_the_reader_is_read_in_time(project, size):
    for line in ("(" * size, "sh " * (size // 3), "a." * (size // 2), "$(" * (size // 2), "'" * size):
        began = time.monotonic()
        Reach(project).follow(ProjectCommand("x", line=line))
        assert time.monotonic() - began < 20


# --- skills ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("notes.md", True), ("image.png", True), ("LICENSE", True), ("README", True), ("data.txt", True),
        ("Makefile", False), ("run", False), ("Dockerfile", False), ("Justfile", False), ("package.json", False),
        ("tasks.toml", False), ("a.py", False), ("a.PY", False), ("a.sh", False), ("a.wasm", False), (".envrc", False),
        (".hidden.md", False), ("a.md.sh", False), ("a", False), ("conf.yaml", False), ("x.so", False), ("x.jar", False),
    ],
)  # fmt: skip
def test_a_file_of_a_skill_is_a_document_only_by_a_known_name(tmp_path, name, document):
    path = tmp_path / name
    path.write_text("x")
    path.chmod(0o644)
    assert is_document(path) is document


@pytest.mark.parametrize("how", ["executable", "shebang", "link", "fifo"])
def test_a_document_that_could_be_started_is_none(tmp_path, how):
    path = tmp_path / "notes.md"
    if how == "link":
        path.symlink_to("/bin/sh")
    elif how == "fifo":
        os.mkfifo(path)
    else:
        path.write_text("#!/bin/sh\n" if how == "shebang" else "x")
        path.chmod(0o755 if how == "executable" else 0o644)
    assert not is_document(path)


def test_every_file_of_a_skill_counts_and_too_many_are_never_trusted(tmp_path):
    skill = tmp_path / "skill"
    skill.mkdir()
    (skill / "run").write_text("x")
    before = skill_item(skill, tmp_path)
    (skill / "notes.md").write_text("x")
    assert skill_item(skill, tmp_path).sha256 != before.sha256
    for number in range(600):
        (skill / f"{number}.txt").write_text("x")
    assert skill_item(skill, tmp_path).sha256 != skill_item(skill, tmp_path).sha256


# --- the record -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o666, 0o622, 0o602, 0o660])
def test_a_record_that_others_can_write_counts_for_nothing(project, tmp_path, mode):
    (project / ".hookline" / "hooks").mkdir(parents=True)
    (project / ".hookline" / "hooks" / "a.py").write_text("hooks = []")
    trust = Trust(tmp_path / "home")
    trust.grant(project_items(project))
    (item,) = project_items(project)
    assert trust.has(item.path, item.sha256)
    (tmp_path / "home" / "trust.json").chmod(mode)
    assert not Trust(tmp_path / "home").has(item.path, item.sha256)
    with pytest.raises(TrustError, match="somebody else could have written it"):
        Trust(tmp_path / "home").projects()


def test_another_project_at_the_same_path_is_not_trusted(project, tmp_path):
    settings = project / ".claude" / "settings.json"
    hook = {"type": "command", "command": "sh tools/check.sh"}
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    trust = Trust(tmp_path / "home")
    trust.grant(settings_items(project))
    (item,) = settings_items(project)
    assert trust.covers(item)
    project.rename(tmp_path / "moved")
    (moved,) = settings_items(tmp_path / "moved")
    assert not trust.covers(moved)
    (tmp_path / "moved" / "tools" / "lib.sh").write_text("evil")
    (tmp_path / "moved").rename(project)
    (replaced,) = settings_items(project)
    assert not trust.covers(replaced)


@pytest.mark.parametrize("name", ["link", "x/../project", "./project", "PROJECT"])
def test_a_project_is_known_by_its_real_path(project, tmp_path, name):
    (project / ".hookline").mkdir()
    (project / ".hookline" / "config.toml").write_text('[agents.x]\nmodel = "openai:gpt"\n')
    (tmp_path / "link").symlink_to(project)
    (tmp_path / "x").mkdir()
    trust = Trust(tmp_path / "home")
    trust.grant(config_items(project, {}))
    other = tmp_path / name
    (item,) = config_items(other, {}) or [None] if other.exists() else [None]
    assert (item is not None and trust.covers(item)) is other.exists()


# --- while it runs --------------------------------------------------------------------------------


@pytest.fixture
def app(project, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    made = Hookline(home=tmp_path / "home", workspace=project)
    made.load_hooks(packages=False)
    return made


async def test_a_folder_that_is_discovered_by_a_link_out_of_the_project_is_refused(
    app, project, tmp_path
):
    from hookline.events import ResourcesDiscoverResult

    outside = tmp_path / "outside"
    (outside / "skill").mkdir(parents=True)
    (outside / "skill" / "SKILL.md").write_text("---\nname: skill\ndescription: x\n---\n")
    (outside / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nhooks = []\n")
    (project / "further").symlink_to(outside)
    found = ResourcesDiscoverResult(hook_paths=["further"], skill_paths=["further"])
    app.hooks.register("resources_discover", lambda event: found)
    async with app.running():
        assert "skill" not in app.hooks.pm.get_plugin("skills").skills
    assert not (tmp_path / "ran").exists()
    assert any("leads out of the project" in str(failure) for failure in app.failures)


async def test_a_reload_drops_settings_that_changed_and_says_so(app, project):
    path = project / ".hookline" / "config.toml"
    path.parent.mkdir()
    path.write_text('[agents.x]\nmodel = "openai:gpt"\n')
    app.trust.grant(project_items(project))
    app.config.reload()
    async with app.running():
        assert "x" in app.subagents.roles
        path.write_text('[agents.x]\nmodel = "openai:other"\n')
        done = await app.hook_files.reload()
        assert app.subagents.roles == {}
        assert "dropped, because it changed since it was trusted: .hookline/config.toml" in str(done)
