"""The script of a scripted model: its turns, and how they are read from a file.

A TOML file:

    repeat = false

    [[turns]]
    text = "Let me look."
    chunk = 4
    tool_calls = [{ name = "shell", arguments = { command = "ls" } }]

    [[turns]]
    match = "weather"
    error = { message = "overloaded", transient = true }

A Python file has the same as module variables: `turns = [Turn("Hello."), ...]`. It is code, and it
is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias, cast

from hookline.errors import ScriptError
from hookline.hooks.errors import error_text, suggestion
from hookline.text.errors import PatternError
from hookline.text.patterns import Pattern
from hookline.text.untrusted import load_toml


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a script. `arguments` is a dict, or text that is sent as it is, valid or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str = ""

    def __post_init__(self) -> None:
        _check("name", self.name, str)
        _check("arguments", self.arguments, (Mapping, str))
        _check("id", self.id, str)
        try:
            _ = self.written
        except (TypeError, ValueError) as error:
            raise _Wrong("arguments", f"not JSON: {error}") from None

    @property
    def written(self) -> str:
        """The arguments as the model writes them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in a script: raised after this many pieces of the answer, first if `after` is 0."""

    message: str
    transient: bool = False
    after: int = 0
    kind: str = "failed"

    def __post_init__(self) -> None:
        _check("message", self.message, str)
        _check("transient", self.transient, bool)
        _check_number("after", self.after, int)
        if self.kind not in KINDS:
            raise _Wrong("kind", f"expected one of {', '.join(KINDS)}, got {self.kind!r}")


KINDS = ("failed", "unavailable", "overflow")


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of a scripted model: reasoning, text, tool calls, in this order, then the end.

    `chunk` cuts text and reasoning into pieces of so many characters (0: one piece); `pieces` is a text
    in pieces of your own, in place of `text`. `wait` is the pause before the first piece and `delay`
    the one before every piece, in seconds. `match` makes the turn answer only a user message in which
    the expression is found. `cut_off` ends the stream without its `final`.
    """

    text: str = ""
    tool_calls: Sequence[Call | Mapping[str, Any]] = ()
    reasoning: str = ""
    usage: Mapping[str, float] | None = None
    finish_reason: str = ""
    error: Fault | Mapping[str, Any] | str | None = None
    cut_off: bool = False
    wait: float = 0.0
    delay: float = 0.0
    chunk: int = 0
    pieces: Sequence[str] = ()
    match: str = ""

    def __post_init__(self) -> None:
        for name in ("text", "reasoning", "finish_reason", "match"):
            _check(name, getattr(self, name), str)
        _check("cut_off", self.cut_off, bool)
        _check_number("chunk", self.chunk, int)
        _check_number("wait", self.wait, (int, float))
        _check_number("delay", self.delay, (int, float))
        _check_usage(self.usage)
        _check("pieces", self.pieces, (list, tuple))
        for piece in self.pieces:
            _check("pieces", piece, str)
        if self.pieces and self.text:
            raise _Wrong("pieces", "stands in place of 'text'; write one of them")
        try:
            Pattern(self.match)
        except PatternError as error:
            raise _Wrong("match", f"not a regular expression: {error}") from None
        _check("tool_calls", self.tool_calls, (list, tuple))
        calls = tuple(
            call if isinstance(call, Call) else _build(Call, call, f"tool_calls[{index}]")
            for index, call in enumerate(self.tool_calls)
        )
        object.__setattr__(self, "tool_calls", calls)
        if isinstance(self.error, str):
            object.__setattr__(self, "error", Fault(self.error))
        elif self.error is not None and not isinstance(self.error, Fault):
            object.__setattr__(self, "error", _build(Fault, self.error, "error"))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls, read."""
        return cast("tuple[Call, ...]", self.tool_calls)

    @property
    def fault(self) -> Fault | None:
        """The error, read."""
        return cast("Fault | None", self.error)


TurnLike: TypeAlias = Turn | Mapping[str, Any] | str
"""A turn, its fields, or just its text."""


@dataclass(frozen=True, slots=True)
class Script:
    """The turns of a scripted model and how they are played."""

    turns: tuple[Turn, ...]
    repeat: bool = False
    context_window: int | None = None


def read_turns(turns: Iterable[TurnLike], source: str = "") -> tuple[Turn, ...]:
    """Turn what was written into `Turn`s, or say which field of which turn is wrong."""
    return tuple(_read_turn(raw, number, source) for number, raw in enumerate(turns, 1))


def read_script(path: Path) -> Script:
    """Read a script file: TOML, or Python when its name ends in `.py`."""
    try:
        values = _run(path) if path.suffix == ".py" else _parse(path)
    except FileNotFoundError:
        raise ScriptError(
            f"there is no script file {str(path)!r}; write one with [[turns]] in it"
        ) from None
    except OSError as error:
        raise ScriptError(f"cannot read the script file {str(path)!r}: {error.strerror}") from error
    return _read_values(values, str(path))


def _run(path: Path) -> dict[str, Any]:
    from runpy import run_path

    if not path.is_file():
        raise FileNotFoundError(path)
    try:
        module = run_path(str(path), run_name="hookline_script")
    except Exception as error:
        raise ScriptError(f"{path}: the script raised {error_text(error)}") from error
    return {name: module[name] for name in _SCRIPT_FIELDS if name in module}


def _parse(path: Path) -> dict[str, Any]:
    try:
        return load_toml(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ScriptError(f"{path}: not a text file in UTF-8") from None
    except ValueError as error:
        raise ScriptError(f"{path}: not valid TOML: {error}") from None


def _read_values(values: dict[str, Any], source: str) -> Script:
    turns: object = values.get("turns", [])
    if not isinstance(turns, list | tuple):
        raise ScriptError(f"{source}: 'turns' must be a list of turns, got {_shown(turns)}")
    for name in values:
        if name not in _SCRIPT_FIELDS:
            raise ScriptError(f"{source}: unknown field {name!r}{suggestion(name, _SCRIPT_FIELDS)}")
    read = read_turns(cast("Sequence[TurnLike]", turns), source)
    if not read:
        raise ScriptError(f"{source}: no turns; write at least one [[turns]] with a text")
    try:
        _check("repeat", repeat := values.get("repeat", False), bool)
        window = values.get("context_window")
        if window is not None:
            _check_number("context_window", window, int)
    except _Wrong as wrong:
        raise ScriptError(f"{source}, field {wrong.field!r}: {wrong.problem}") from None
    return Script(read, repeat, window)


def _read_turn(raw: object, number: int, source: str) -> Turn:
    if isinstance(raw, Turn):
        return raw
    if isinstance(raw, str):
        return Turn(raw)
    try:
        return _build(Turn, raw, "")
    except _Wrong as wrong:
        where = f"{source}, turn {number}" if source else f"turn {number}"
        at = f", field {wrong.field!r}" if wrong.field else ""
        raise ScriptError(f"{where}{at}: {wrong.problem}") from None


_SCRIPT_FIELDS = ("turns", "repeat", "context_window")


class _Wrong(ScriptError):
    """A field with a value that it cannot have; who reads the file adds where."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"field {field!r}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


def _build(kind: type[Any], raw: object, at: str) -> Any:
    if not isinstance(raw, Mapping):
        raise _Wrong(at, f"expected a table of fields, got {_shown(raw)}")
    values = dict(cast("Mapping[str, Any]", raw))
    names = [each.name for each in fields(kind)]
    prefix = f"{at}." if at else ""
    for name in values:
        if name not in names:
            near = suggestion(str(name), names) or f"; there is {', '.join(names)}"
            raise _Wrong(f"{prefix}{name}", f"unknown field{near}")
    required = next(iter(names)) if kind is not Turn else None
    if required and required not in values:
        raise _Wrong(f"{prefix}{required}", "missing")
    try:
        return kind(**values)
    except _Wrong as wrong:
        raise _Wrong(f"{prefix}{wrong.field}", wrong.problem) from None


def _check(field: str, value: object, kinds: type | tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        every = kinds if isinstance(kinds, tuple) else (kinds,)
        expected = " or ".join(dict.fromkeys(_WORDS[kind] for kind in every))
        raise _Wrong(field, f"expected {expected}, got {_shown(value)}")


def _check_number(field: str, value: object, kinds: type | tuple[type, ...]) -> None:
    if isinstance(value, bool) or not isinstance(value, kinds) or not cast("float", value) >= 0:
        word = "a whole number" if kinds is int else "a number"
        raise _Wrong(field, f"expected {word} of at least 0, got {_shown(value)}")


def _check_usage(usage: object) -> None:
    if usage is None:
        return
    _check("usage", usage, Mapping)
    for name, count in cast("Mapping[str, object]", usage).items():
        _check_number(f"usage.{name}", count, (int, float) if name == "cost" else int)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_WORDS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    Mapping: "a table",
    list: "a list",
    tuple: "a list",
}
