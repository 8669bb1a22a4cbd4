"""Files of an evaluation: Python that defines `agent` and `cases`, or cases as TOML, YAML or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from hookline.errors import EvalError, HookFileError
from hookline.hooks.errors import error_text, suggestion
from hookline.text.foreign_json import parse_json
from hookline.text.untrusted import load_toml, read_regular_file

from .case import Case, check_cases

if TYPE_CHECKING:
    from hookline.hookspecs import Hooks
    from hookline.plugins.trust import Trust
    from hookline.runtime.agent import Agent

LARGEST: Final = 64_000_000
"""Bytes of a file of cases."""
FIELDS: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "input": ("text", (str,)),
    "expected": ("text", (str,)),
    "contains": ("text or a list of texts", (str, list)),
    "called": ("the name of a tool or a list of names", (str, list)),
    "denied": ("the name of a tool or a list of names", (str, list)),
    "name": ("text", (str,)),
    "at_least": ("a number from 0 to 1", (int, float)),
}
OPTIONS: Final[dict[str, type]] = {"runs": int, "concurrency": int, "at_least": float}
"""What a file can set beside its cases."""


@dataclass(frozen=True, slots=True)
class EvalFile:
    """What a file holds."""

    cases: list[Case[Any]]
    agent: Agent[Any] | None = None
    """None in a file of data: then the agent is the one of the settings."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def only(self, names: list[str]) -> list[Case[Any]]:
        """The cases of these names; all, if there are none."""
        known = {case.name: case for case in self.cases}
        for name in names:
            if name not in known:
                raise EvalError(f"no case is named {name!r}{suggestion(name, known)}")
        return [known[name] for name in names] if names else self.cases


def read_file(path: Path, hooks: Hooks, trust: Trust) -> EvalFile:
    """Read a file. Python is run; a file in a project's `.hookline` folder must be trusted first."""
    if not path.is_file():
        raise EvalError(f"{path}: there is no such file")
    try:
        if path.suffix == ".py":
            return python_file(path, hooks, trust)
        return data_file(path)
    except EvalError as error:
        text = str(error)
        raise EvalError(text if text.startswith(f"{path}") else f"{path}: {text}") from None


# --- Python ---------------------------------------------------------------------------------------


def python_file(path: Path, hooks: Hooks, trust: Trust) -> EvalFile:
    """Run a Python file and take what it defines."""
    from hookline.runtime.agent import Agent

    values = run_python(path, hooks, trust)
    agent, cases = values.get("agent"), values.get("cases")
    if not isinstance(agent, Agent):
        found = "no `agent`" if agent is None else f"an `agent` that is a {type(agent).__name__}"
        raise EvalError(f"{path} defines {found}; write agent = Agent(...)")
    if cases is None:
        raise EvalError(f"{path} defines no `cases`; write cases = [Case(input, expected), ...]")
    options = {name: values[name] for name in OPTIONS if name in values}
    return EvalFile(check_cases(cases), cast("Agent[Any]", agent), check_options(options))


def run_python(path: Path, hooks: Hooks, trust: Trust) -> Mapping[str, Any]:
    """The names that a file defines. It imports what is beside it, as `python FILE` lets it."""
    from hookline.plugins.check import is_of_project, opened
    from hookline.plugins.hook_files import imported

    if is_of_project(path, trust):
        return vars(imported(opened(path, hooks, trust)))
    folder = str(path.resolve().parent)
    name = "__hookline_eval__"
    values: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    sys.path.insert(0, folder)
    try:
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), values)
    except SyntaxError as error:
        raise HookFileError(f"{error.filename or path}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        text = "it ends the program" if isinstance(error, SystemExit) else error_text(error)
        raise HookFileError(f"{place_in(path, error)}: {text}") from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    return values


def place_in(path: Path, error: BaseException) -> str:
    """The last line of a file that an error went through."""
    from traceback import extract_tb

    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)


# --- data -----------------------------------------------------------------------------------------


def data_file(path: Path) -> EvalFile:
    """Read the cases of a TOML, YAML, JSON or JSON Lines file."""
    try:
        text = read_regular_file(path, LARGEST).decode()
    except OSError as error:
        raise EvalError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise EvalError(f"{path} is not UTF-8") from None
    data = parsed(path, text)
    options: dict[str, Any] = {}
    if isinstance(data, dict):
        table = cast("dict[str, Any]", data)
        options = {name: value for name, value in table.items() if name != "cases"}
        data = table.get("cases", [])
    if not isinstance(data, list):
        raise EvalError(f"`cases` is a list of tables, not {type(data).__name__}")
    rows = cast("list[Any]", data)
    cases = [case_of(row, number) for number, row in enumerate(rows, 1)]
    return EvalFile(check_cases(cases), None, check_options(options))


def parsed(path: Path, text: str) -> Any:
    """The data of a file."""
    try:
        match path.suffix.lower():
            case ".toml":
                return load_toml(text)
            case ".json":
                return parse_json(text)
            case ".jsonl":
                return [
                    parse_line(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()
                ]
            case ".yaml" | ".yml":
                import yaml

                return yaml.safe_load(text)
            case suffix:
                known = ".py, .toml, .jsonl, .json or .yaml"
                raise EvalError(f"cases are in a file that ends in {known}, not {suffix or 'nothing'}")
    except EvalError:
        raise
    except Exception as error:  # also those of the YAML reader, which have no common class with others
        raise EvalError(f"{path}: {' '.join(str(error).split())}") from None


def parse_line(number: int, line: str) -> Any:
    """A line of JSON Lines."""
    try:
        return parse_json(line)
    except ValueError as error:
        raise EvalError(f"line {number}: {error}") from None


def case_of(row: Any, number: int) -> Case[Any]:
    """A table as a case."""
    if not isinstance(row, dict):
        raise EvalError(f"case {number} is a table with `input`, not {json.dumps(row, default=str)}")
    table = cast("dict[str, Any]", row)
    where = f"case {table.get('name') or number!r}"
    for name, value in table.items():
        if name not in FIELDS:
            raise EvalError(f"{where}: unknown field {name!r}{suggestion(name, FIELDS)}")
        what, kinds = FIELDS[name]
        is_list = isinstance(value, list) and any(
            not isinstance(e, str) for e in cast("list[Any]", value)
        )
        if not isinstance(value, kinds) or isinstance(value, bool) or is_list:
            raise EvalError(f"{where}: {name} is {what}, not {json.dumps(value, default=str)}")
    if "input" not in table:
        raise EvalError(f"{where} has no `input`")
    return Case(**table)


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file beside its cases."""
    for name, value in options.items():
        if name not in OPTIONS:
            known = {**OPTIONS, "cases": list}
            raise EvalError(f"unknown field {name!r}{suggestion(name, known)}")
        kinds = (int, float) if OPTIONS[name] is float else (int,)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise EvalError(f"{name} is a number, not {value!r}")
    return options
