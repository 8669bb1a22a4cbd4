"""One exception tree: where errors are defined, and the exit code of each."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import hookline
from hookline import errors
from hookline.cli import run
from hookline.errors import LimitReached
from hookline.hooks.errors import HooklineError

from . import commandline

SOURCE = Path(hookline.__file__).parent
ROOT = SOURCE.parents[1]


def exception_classes() -> Iterator[tuple[str, str, Path]]:
    """Yield the name, the bases and the file of every class that looks like an exception."""
    known = {"HooklineError"}
    found = [
        (node.name, [ast.unparse(base) for base in node.bases], path)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    grew = True
    while grew:  # subclasses of subclasses, in whatever order the files come
        more = {
            name
            for name, bases, _ in found
            if any(
                base in known or re.fullmatch(r"\w*(Error|Exception|Warning)", base) for base in bases
            )
        }
        grew, known = not more <= known, known | more
    for name, bases, path in found:
        if name in known:
            yield name, ", ".join(bases), path


def tree() -> str:
    """Draw the errors of `hookline.errors`."""

    def draw(kind: type, depth: int) -> Iterator[str]:
        status = " (exit code 1)" if kind.__dict__.get("exit_code") == 1 else ""
        back = " (exit code 2)" if depth > 1 and kind.__dict__.get("exit_code") == 2 else ""
        yield f"{'  ' * depth}- {kind.__name__}{status}{back}"
        for child in own:
            if child.__bases__[0] is kind:
                yield from draw(child, depth + 1)

    own = [k for _, k in inspect.getmembers(errors, inspect.isclass) if k.__module__ == errors.__name__]
    own.sort(key=lambda kind: inspect.getsourcelines(kind)[1])
    return "\n".join(draw(HooklineError, 0))


def test_the_docstring_draws_the_tree_as_it_is() -> None:
    assert errors.__doc__ is not None
    assert tree() in errors.__doc__


def test_exceptions_are_defined_in_errors_modules_unless_they_stay_in_one_file() -> None:
    elsewhere = {(name, path) for name, _, path in exception_classes() if path.name != "errors.py"}
    for name, path in elsewhere:
        assert name.startswith("_"), f"{name} of {path} belongs in an errors.py"
        users = [f for f in SOURCE.rglob("*.py") if re.search(rf"\b{name}\b", f.read_text())]
        assert users == [path]


def test_only_the_kernel_the_parsers_the_core_and_extensions_have_an_errors_module() -> None:
    folders = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("errors.py")}
    assert {f for f in folders if not re.fullmatch(r"ext/\w+", f)} == {".", "hooks", "text"}


def every_error() -> list[type[HooklineError]]:
    for path in SOURCE.rglob("errors.py"):
        importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    found: list[type[HooklineError]] = []
    kinds = [HooklineError]
    while kinds:
        kind = kinds.pop()
        if kind.__module__.startswith("hookline."):
            found.append(kind)
            kinds += kind.__subclasses__()
    return found


def test_every_exit_code_is_in_the_table_of_the_command_line() -> None:
    section = (ROOT / "docs" / "cli.md").read_text().split("## Exit codes")[1].split("\n## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert documented == {0, 1, 2, 130, 143}
    assert {kind.exit_code for kind in every_error()} == {1, 2}


@pytest.mark.parametrize(
    ("arguments", "script", "code"),
    [
        (["run", "hi"], '[[turns]]\ntext = "hello"', 0),
        (["run", "hi"], '[[turns]]\nerror = "overloaded"', 1),
        (["run", ""], "", 2),
        (["run", "hi", "--model", "nonsense"], "", 2),
        (["tape", "show", "nonsense"], "", 2),
        (["policy", "test", "nonsense.toml"], "", 2),
    ],
)
def test_a_command_exits_with_the_code_of_its_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    script: str,
    code: int,
) -> None:
    (tmp_path / "script.toml").write_text(script)
    command = commandline.here(tmp_path / "home", tmp_path, monkeypatch, capsys)
    env = {"HOOKLINE_MODEL": f"scripted:{tmp_path / 'script.toml'}"} if script else {}
    ended = command(*arguments, **env)
    assert ended.returncode == code, ended.stderr
    assert (code == 0) == (not ended.stderr.startswith("hookline: "))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LimitReached("50 steps"), 1),
        (HooklineError("x"), 2),
        (OSError("y"), 1),
    ],
)
def test_a_turn_that_raises_exits_with_the_code_of_the_error(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.tell(error, as_json=False) == code
    assert str(error) in capsys.readouterr().err


def test_every_class_name_is_defined_once():
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        if "examples" not in path.parts
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_a_module_is_named_by_a_noun():
    verbs = {path.stem for path in SOURCE.rglob("*.py") if path.stem.endswith("ing")}
    assert verbs == {"ring"}
