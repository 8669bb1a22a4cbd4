"""What is read before a project is trusted is bounded: no size, depth or number delays a start."""

import json
import os
import time

import pytest

from hookline.ext.skills.discovery import in_project
from hookline.plugins.project import project_items
from hookline.sandbox.repository import guard

SECONDS = 8.0
"""A bound on CPU time that work which grows with the input would break."""


def settings(folder, *lines, **more):
    (folder / ".claude").mkdir()
    hooks = [{"type": "command", "command": line, **more} for line in lines]
    text = json.dumps({"hooks": {"PreToolUse": [{"hooks": hooks}]}})
    (folder / ".claude" / "settings.json").write_text(text)


def sparse(path, size):
    with path.open("wb") as file:
        file.truncate(size)


def many_names(folder):
    for number in range(8):
        lines = [f"import n{number}_{each}" for each in range(20_000)]
        (folder / f"m{number}.py").write_text("\n".join([f"import m{number + 1}", *lines]))
    settings(folder, "python m0.py")


def many_existing_names(folder):
    (folder / "deep" / "er").mkdir(parents=True)
    text = "\n".join(f"deep/er/{each}" for each in range(20_000))
    for number in range(10):
        (folder / f"s{number}.sh").write_text(f"sh s{number + 1}.sh\n: {text}\n")
    settings(folder, "sh s0.sh")


def large_files(folder):
    (folder / "s").mkdir()
    (folder / "s" / "a.py").write_text("x = 1")
    for number in range(400):
        sparse(folder / "s" / f"{number}.bin", 19_000_000)
    settings(folder, "python s/a.py")


def large_hook_files(folder):
    (folder / ".hookline" / "hooks").mkdir(parents=True)
    for number in range(3000):
        sparse(folder / ".hookline" / "hooks" / f"a{number}.py", 990_000)


def large_skills(folder):
    for number in range(30):
        skill = folder / ".agents" / "skills" / f"s{number}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\n")
        for each in range(40):
            sparse(skill / f"{each}.md", 19_000_000)
        sparse(skill / "run", 5)


def many_skills(folder):
    for number in range(3000):
        skill = folder / ".agents" / "skills" / f"s{number:04}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: s{number:04}\ndescription: d\n---\n")


def deep_folders(folder):
    place = folder / ".hookline" / "hooks"
    place.mkdir(parents=True)
    here = os.open(place, os.O_RDONLY)
    for _ in range(450):
        os.mkdir("a" * 10, dir_fd=here)
        inner = os.open("a" * 10, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def many_folders(folder):
    for first in range(150):
        for second in range(150):
            (folder / ".hookline" / "hooks" / str(first) / str(second)).mkdir(parents=True)


BUILDERS = [
    many_names, many_existing_names, large_files, large_hook_files, large_skills, many_skills,
    deep_folders, many_folders,
]  # fmt: skip
LINES = {
    "wildcards over the disk": ["ls /*/*/*/*/*/*"],
    "wildcards over processes": ["cat /proc/*/task/*/fd/*"],
    "wildcards upward": ["cat ../../../../../*/*/*/*"],
    "a long line": ["a;" * 400_000],
    "a deep line": ["$(" * 50_000],
    "nested quotes": ["\"$(echo '" * 5_000],
    "many commands": ["sh a.sh"] * 20_000,
    "half of a pair": ["echo \ud800"],
    "another half": ["sh \udfff.sh"],
    "a NUL": ["sh a\0b"],
    "a long name": ["sh " + "a" * 5_000],
    "many words": ["cat " + "a/b " * 100_000],
    "many folders entered": ["cd a && " * 5_000 + "sh x"],
    "itself": ["sh .claude/settings.json"],
}


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_a_huge_project_is_looked_at_in_bounded_time(build, tmp_path):
    build(tmp_path)
    began = time.process_time()
    project_items(tmp_path)
    [*in_project(tmp_path)]
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_a_strange_command_is_looked_at_in_bounded_time(lines, tmp_path):
    settings(tmp_path, *lines)
    began = time.process_time()
    (item,) = project_items(tmp_path)
    assert time.process_time() - began < SECONDS
    assert item.runs


@pytest.mark.parametrize(
    "lines", [["a;" * 400_000], ["echo \ud800"], ["sh a.sh"] * 300, ["$(" * 50_000]], ids=range(4)
)
def test_what_was_not_read_is_unclear(lines, tmp_path):
    (tmp_path / "a.sh").write_text("echo\n")
    settings(tmp_path, *lines)
    (item,) = project_items(tmp_path)
    assert f"hooks.PreToolUse[1].hooks[{len(lines)}]" in item.unclear


def test_files_that_are_too_large_to_be_hashed_make_a_command_unclear(tmp_path):
    large_files(tmp_path)
    (item,) = project_items(tmp_path)
    assert "is too large" in item.unclear["hooks.PreToolUse[1].hooks[1]"]


@pytest.mark.parametrize("kind", ["pipe", "huge", "link out"])
def test_a_file_that_cannot_be_read_beside_a_script_makes_the_command_unclear(kind, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a.sh").write_text("echo\n")
    settings(tmp_path, "sh s/a.sh")
    (item,) = project_items(tmp_path)
    assert item.unclear == {}
    other = tmp_path / "s" / "other"
    if kind == "pipe":
        os.mkfifo(other)
    elif kind == "huge":
        sparse(other, 20_000_001)
    else:
        other.symlink_to("/etc/passwd")
    (item,) = project_items(tmp_path)
    assert item.unclear


def test_a_skill_that_is_too_large_is_never_trusted(tmp_path):
    large_skills(tmp_path)
    first, again = project_items(tmp_path), project_items(tmp_path)
    assert len(first) == 30
    assert not {item.sha256 for item in first} & {item.sha256 for item in again}


# --- changes that trust must see ------------------------------------------------------------------


def changed_by(tmp_path, line, files, change) -> bool:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    settings(tmp_path, line)
    (before,) = project_items(tmp_path)
    for name, text in change.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (after,) = project_items(tmp_path)
    seen_again = before.snapshot.changed() != ""
    assert (before.sha256 != after.sha256) == seen_again
    return seen_again


IMPORTS = [
    "from foo import bar", "import foo.bar", "import foo.bar as b", "import os, foo.bar",
    "from  foo  import  bar",
    "from foo import (bar)", "if 1: from foo import bar", "import os; from foo import bar",
    "from foo.bar import x",
    "from \\\n foo import bar", "try:\n    import foo.bar\nexcept ImportError:\n    pass",
]  # fmt: skip


@pytest.mark.parametrize("line", IMPORTS)
def test_a_package_without_an_init_is_covered(line, tmp_path):
    files = {"server.py": f"{line}\n", "foo/bar.py": "x = 1\n"}
    assert changed_by(tmp_path, "python server.py", files, {"foo/bar.py": "x = 2\n"})


@pytest.mark.parametrize("line", IMPORTS)
def test_a_package_that_comes_later_is_a_change(line, tmp_path):
    files = {"server.py": f"{line}\n"}
    assert changed_by(tmp_path, "python server.py", files, {"foo/bar.py": "x = 2\n"})


@pytest.mark.parametrize("at", ["node_modules/foo/index.js", "a/node_modules/foo/index.js"])
def test_node_modules_that_come_later_are_a_change(at, tmp_path):
    files = {"a/b/server.js": "try { require('foo') } catch (e) {}\n"}
    assert changed_by(tmp_path, "node a/b/server.js", files, {at: "evil()\n"})


STEERING = [
    "read PATH < f; ls", "for PATH in .; do ls; done", "printf -v PATH .; ls", "printf -vPATH .; ls",
    "select PATH in .; do ls; done", ": ${PATH:=.}; ls", ": ${LD_PRELOAD=./x}; ls", "read $x < f; ls",
    "PATH=. ls", "export PATH=.; ls", "declare PATH=.; ls", "read -r a PATH < f; ls",
    "IFS=x; ls", "read BASH_ENV < f; bash a.sh", "local PATH=.; ls", "readonly PATH=.; ls",
    "typeset PATH=.; ls",
]  # fmt: skip


@pytest.mark.parametrize("line", STEERING)
def test_a_line_that_sets_what_is_found_later_is_unclear(line, tmp_path):
    (tmp_path / "a.sh").write_text("echo\n")
    settings(tmp_path, line)
    (item,) = project_items(tmp_path)
    assert item.unclear


@pytest.mark.parametrize("line", ["printf %s PATH", "read -r line < f; echo $line", "echo $PATH"])
def test_a_line_that_only_mentions_it_is_clear(line, tmp_path):
    settings(tmp_path, line)
    (item,) = project_items(tmp_path)
    assert item.unclear == {}


def test_the_command_is_shown_even_if_the_entry_has_an_address_too(tmp_path):
    settings(tmp_path, "touch /tmp/evil", url="https://docs.example.org/")
    (item,) = project_items(tmp_path)
    assert item.runs == ("touch /tmp/evil",)


@pytest.mark.parametrize("name", [".git/config", ".git/HEAD", ".git", ".git/commondir", ".hookline"])
def test_a_pipe_in_the_repository_does_not_hold_up_the_sandbox(name, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    path = tmp_path / name
    if path.is_dir():
        (path / "HEAD").unlink()
        path.rmdir()
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    guard(tmp_path)
