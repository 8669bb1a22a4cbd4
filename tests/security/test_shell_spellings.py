"""However a command is spelled, the gates see what it runs, or say that they cannot tell."""

# ruff: noqa: E501 - tables

import time
from pathlib import Path

import pytest

from hookline.ext.command_hooks.matcher import ToolCondition
from hookline.hooks import Decision
from hookline.policy import Policy, strictest
from hookline.policy.facts import Facts
from hookline.text.shell.reader import commands_of

from ..tables import each_row
from .spellings import DESTROY, OTHER, PUSH, PUSH_LINES, SECRET, UNREADABLE

NO_PUSH = Policy.load({"default": "allow", "floor": {"deny": {"commands": ["git push *"]}}})
ASK_PUSH = Policy.load({"default": "allow", "floor": {"ask": {"commands": ["git push *"]}}})
NO_ENV = Policy.load({"default": "allow", "floor": {"deny": {"paths": [".env"]}}})
PACKS = Policy.load({"default": "allow", "packs": ["protected-paths"]})
DESTRUCTIVE = Policy.load({"default": "allow", "packs": ["destructive-shell"]})


def action(command: object, workspace: Path | str = "/work/x") -> dict[str, object]:
    return {
        "tool": "shell", "name": "shell", "namespace": "", "side_effects": "external",
        "arguments": {"command": command}, "permissions": [], "session_id": "s", "agent_id": "main",
        "depth": 0, "source": "model", "channel": "terminal", "user": "ada", "authorized": None,
        "workspace": str(workspace),
    }  # fmt: skip


async def decided(policy: Policy, command: object, workspace: Path | str = "/work/x") -> Decision:
    return strictest(await policy.explain(action(command, workspace)))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("spelled").resolve() / "ws"
    (folder / "sub").mkdir(parents=True)
    (folder / ".env").write_text("KEY=1")
    (folder / "link").symlink_to(".env")
    return folder


@each_row("command", [*PUSH, *PUSH_LINES])
async def test_a_denied_command_is_denied_however_it_is_written(command):
    assert await decided(NO_PUSH, command) is Decision.DENY
    assert await decided(ASK_PUSH, command) is Decision.ASK


@each_row("command", [*PUSH, *PUSH_LINES])
def test_a_hook_on_a_command_fires_however_it_is_written(command):
    subjects, tool_input = ("Bash",), {"command": command}
    assert ToolCondition("Bash(git push *)").holds(subjects, tool_input, "/work/x")
    assert ToolCondition("Bash(git push:*)").holds(subjects, tool_input, "/work/x")
    assert ToolCondition("Bash(git *)").holds(subjects, tool_input, "/work/x")


@each_row("command", OTHER)
async def test_other_commands_are_not_taken_for_it(command):
    assert await decided(NO_PUSH, command) is Decision.ALLOW
    assert not ToolCondition("Bash(git push *)").holds(("Bash",), {"command": command}, "/work/x")


@each_row("command", UNREADABLE)
async def test_what_cannot_be_understood_is_opaque_and_never_allowed(command):
    found = commands_of(command)
    assert found.opaque
    assert all(found.unclear)
    assert await decided(NO_PUSH, command) is Decision.DENY
    assert await decided(DESTRUCTIVE, command) is not Decision.ALLOW
    assert ToolCondition("Bash(terraform *)").holds(("Bash",), {"command": command}, "/work/x")


@each_row("command", SECRET)
async def test_a_secret_is_protected_however_it_is_named(command, workspace):
    assert await decided(PACKS, command, workspace) is not Decision.ALLOW


@each_row("command", DESTROY)
async def test_destruction_is_asked_about_however_it_is_written(command, workspace):
    assert await decided(DESTRUCTIVE, command, workspace) is not Decision.ALLOW


@each_row(
    "command",
    [
        "cat .env", "cat .e*", "cat .[[:alpha:]]nv", "cat ./sub/../.env", "cat {.env,x}", "cat < .env",
        "cat link", "grep -r . .",
        "grep -r --include='*' x .", "grep -r --include=.* x .", "grep -r --include='.e[n]v' x .",
        "grep -r --include=*.py --exclude=x y .", "grep -r --include=*.py x .; grep -r x .",
        "grep -r --include='*env' x .", "grep -r --include=*.py --include=$y x .", "cp -a . /tmp/x", "tar c .", "git show :.env", "cat $X", "cat .ENV",
    ],
)  # fmt: skip
async def test_the_floor_protects_a_path_however_it_is_named(command, workspace):
    assert await decided(NO_ENV, command, workspace) is Decision.DENY


@each_row(
    "command",
    [
        "cat README.md",
        "ls",
        "ls *.md",
        "cat *.py",
        "grep -r x sub",
        "cat sub/*",
        "ls -la sub",
        "cp a b",
        "grep -r --include='*.py' x .",
        "grep -rn --include=*.py --include=*.md x .",
    ],
)
async def test_other_files_are_not_taken_for_a_secret(command, workspace):
    assert await decided(NO_ENV, command, workspace) is Decision.ALLOW
    assert await decided(PACKS, command, workspace) is Decision.ALLOW


@each_row(
    ("pattern", "command"),
    [
        ("terraform destroy *", "terraform -chdir=x destroy"),
        ("kubectl delete *", "kubectl -n x delete pod y"),
        ("kubectl delete *", "kubectl --context=a --namespace x delete pod y"),
        ("npm publish *", "npm --prefix x publish"),
        ("npm publish *", "npm publish"),
        ("aws s3 rm *", "aws --profile x s3 rm s3://y"),
        ("aws s3 rm *", "aws s3 --region x rm s3://y"),
        ("pip install *", "pip --isolated install x"),
        ("pip install *", "python3 -m pip install x"),
        ("pip install *", "pip3.11 install x"),
        ("systemctl stop *", "systemctl --user stop x"),
        ("docker push *", "docker --context x push y"),
        ("cargo publish *", "cargo +nightly publish"),
        ("rm -rf *", "rm -fr x"),
        ("rm -rf *", "rm -r -f x"),
        ("rm -rf *", "rm --recursive --force x"),
        ("rm -rf *", "rm --recur --fo x"),
        ("rm -r *", "rm -rf x"),
        ("rm -rf *", "rm x -r y -f"),
        ("git push --force *", "git push origin main -f"),
        ("git push --force *", "git push --forc origin"),
        ("make *", "make"),
        ("./deploy.sh *", "sh ./deploy.sh"),
        ("./deploy.sh *", "scripts/deploy.sh prod"),
        ("unknowntool sub *", "unknowntool --flag value sub x"),
        ("unknowntool sub *", "unknowntool --flag sub x"),
        ("*curl*", "ls; curl http://x"),
        ("git push", "git -C . push"),
    ],
)
async def test_a_pattern_knows_options_subcommands_and_abbreviations(pattern, command):
    policy = Policy.load({"default": "allow", "floor": {"deny": {"commands": [pattern]}}})
    assert await decided(policy, command) is Decision.DENY


@each_row(
    ("pattern", "command"),
    [
        ("rm -rf *", "rm -r x"),
        ("rm -rf *", "rm x"),
        ("git push --force *", "git push origin"),
        ("git push", "git push origin"),
        ("terraform destroy *", "terraform plan"),
        ("kubectl delete *", "kubectl get pods"),
        ("pip install *", "pip list"),
        ("make *", "cmake ."),
    ],
)
async def test_a_pattern_leaves_other_commands_alone(pattern, command):
    policy = Policy.load({"default": "allow", "floor": {"deny": {"commands": [pattern]}}})
    assert await decided(policy, command) is Decision.ALLOW


async def test_a_question_says_what_is_unclear():
    for policy in (NO_PUSH, DESTRUCTIVE):
        steps = await policy.explain(action("python3 -c 'print(1)'"))
        assert any("python runs a program in another language" in (s.reason or "") for s in steps)


@pytest.mark.parametrize(
    "unit",
    [
        "sudo ", "(", "$(", "'", '"', "a|", "a | ", "[[:", "{a,b}", "`", "<<a ", "<<a\n", "case a in ", "if ",
        "\n", "\\\n", "a", "${a:-", "((", "[[ ", "a=(", "<(", "! ", "{ ", "f()", "a&&", "a b;", "$((",
        "{1..", "function f {", "@(", "while ", "a>b ", ">", "a=b ", '"$(', "$a", "*", "\\", "a[", "?(",
        "é", "find -exec ", "xargs ", "-- ", "eval ", "a=1;", "((a));", "[ a ];", "env -S ", "cd a;", "#\n",
        "sh -c ", "timeout 1 ", "git ", "cat *;", "[a-z]", "../", "a/../",
    ],
)  # fmt: skip
def test_the_worst_text_is_read_in_time(unit, tmp_path):
    for size in (1_000, 8_000, 99_000, 1_000_000):
        text = (unit * (size // len(unit) + 1))[:size]
        began = time.process_time()
        facts = Facts(action(text, tmp_path))
        assert isinstance(facts.opaque, bool)
        assert isinstance(facts.paths, list)
        assert ToolCondition("Bash(git push *)").holds(("Bash",), {"command": text}, "/") in (
            True,
            False,
        )
        assert time.process_time() - began < 3  # 0.3 s here; a reader that is not linear takes minutes
