"""Front matter: the YAML between `---` at the top of a `SKILL.md`, checked, and the text behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from .errors import SkillError

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
_LARGEST = 32_000
_DEEPEST = 32

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = re.compile(r"[^\s,()]+(?:\([^()]*\))?")
_FIELD = re.compile(r"(?!(?:name|metadata):)([A-Za-z_][\w-]*):[ \t]+(\S.*)")
_NOT_PLAIN = re.compile(r"[\"']|[|>][-+0-9]*\s*(#.*)?$")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The metadata of a skill."""

    name: str
    description: str
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    allowed_tools: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    """Keys that the format does not know, as they came."""
    warnings: tuple[str, ...] = ()
    """Where it departs from the format; other agents accept these departures too."""


def parse(text: str, folder_name: str) -> FrontMatter:
    """The checked front matter of a skill that lies in a folder of that name."""
    fields, body = fields_of(text)
    warnings: list[str] = []
    return FrontMatter(
        name=_name(fields.pop("name", None), folder_name, warnings),
        description=_description(fields.pop("description", None), body, warnings),
        license=_text("license", fields.pop("license", None)),
        compatibility=_text("compatibility", fields.pop("compatibility", None)),
        metadata=_metadata(fields.pop("metadata", None)),
        allowed_tools=_tools(fields.pop("allowed-tools", None)),
        extra=fields,
        warnings=tuple(warnings),
    )


def fields_of(text: str) -> tuple[dict[str, Any], str]:
    """The front matter as a mapping, and the body."""
    source, body = split(text)
    return _mapping(source), body


def split(text: str) -> tuple[str, str]:
    """The front matter and the body."""
    first, _, rest = text.partition("\n")
    if first.rstrip() != "---":
        raise SkillError("the first line must be `---`, with name and description below it")
    end = re.search(r"^---[ \t]*$", rest, re.MULTILINE)
    if end is None:
        raise SkillError("the front matter has no end: a line `---` is missing")
    if end.start() > _LARGEST:
        raise SkillError(f"the front matter has more than {_LARGEST:,} characters")
    return rest[: end.start()], rest[end.end() :].strip("\n")


def _mapping(source: str) -> dict[str, Any]:
    try:
        loaded = _yaml(source)
    except SkillError:
        repaired = _quoted(source)
        if repaired == source:
            raise
        loaded = _yaml(repaired)
    if not isinstance(loaded, Mapping):
        raise SkillError("the front matter must be a list of `key: value` lines")
    return {str(key): value for key, value in cast("Mapping[Any, Any]", loaded).items()}


def _yaml(source: str) -> Any:
    import yaml

    try:
        _refuse_costly(source)
        return yaml.safe_load(source)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise SkillError(f"the front matter is not YAML: {error.problem}{line}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SkillError(f"the front matter is not YAML: {type(error).__name__}") from error


def _refuse_costly(source: str) -> None:
    """Refuse aliases, which multiply, and deep nesting, which PyYAML reads in quadratic time."""
    import yaml

    depth = 0
    for event in cast("Any", yaml).parse(source, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise SkillError("the front matter may not use aliases (`*name`): write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise SkillError(f"the front matter is nested more than {_DEEPEST} levels deep")


def _quoted(source: str) -> str:
    """Quote values that are not valid YAML, such as `description: Two parts: this, that`.

    Many published skills contain such values, and other agents accept them.
    """
    lines: list[str] = []
    open_value = False
    for line in source.splitlines():
        found = _FIELD.fullmatch(line.rstrip())
        if found and not _NOT_PLAIN.match(found[2]) and not _reads_alone(found[2]):
            value = found[2].replace("'", "''")
            lines.append(f"{found[1]}: '{value}'")
            open_value = True
        elif open_value and line[:1] in (" ", "\t") and line.strip():
            value = line.strip().replace("'", "''")
            lines[-1] = f"{lines[-1][:-1]} {value}'"
        else:
            lines.append(line)
            open_value = False
    return "\n".join(lines) + "\n" if lines else source


def _reads_alone(value: str) -> bool:
    try:
        return not isinstance(_yaml(value), dict) or value.startswith("{")
    except SkillError:
        return False


def _name(value: Any, folder_name: str, warnings: list[str]) -> str:
    if value is None:
        warnings.append(f"name is missing; the skill is called {folder_name!r}, as its folder")
        return folder_name
    name = " ".join(_text("name", value).split())
    if not name or not name.isprintable():
        raise SkillError(f"name {value!r} must be a word or a few, without control characters")
    if len(name) > LONGEST_NAME:
        warnings.append(f"name has {len(name)} characters; the format allows {LONGEST_NAME}")
    if not _NAME.fullmatch(name):
        warnings.append(f"name {name!r} should have only lower-case letters, digits and single hyphens")
    if name != folder_name:
        warnings.append(f"name {name!r} differs from the name of its folder, {folder_name!r}")
    return name


def _description(value: Any, body: str, warnings: list[str]) -> str:
    text = _text("description", value)
    if not text:
        text = _first_paragraph(body)
        if not text:
            raise SkillError("description is missing: say what the skill does and when to use it")
        warnings.append("description is missing; the first paragraph takes its place")
    if len(text) > LONGEST_DESCRIPTION:
        allowed = f"{LONGEST_DESCRIPTION:,}"
        warnings.append(f"description has {len(text):,} characters; the format allows {allowed}")
    return text


def _first_paragraph(body: str) -> str:
    paragraphs = (" ".join(each.split()) for each in re.split(r"\n\s*\n", body))
    return next((each for each in paragraphs if each and not each.startswith("#")), "")


def _text(key: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise SkillError(
            f"{key} must be text, not a {'mapping' if isinstance(value, dict) else 'list'}"
        )
    return str(value).strip()


def _metadata(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SkillError(f"metadata must be a mapping, not {type(value).__name__}")
    return {str(key): held for key, held in cast("dict[Any, Any]", value).items()}


def _tools(value: Any) -> tuple[str, ...]:
    """Tool names with their restrictions: `Read, Bash(git add:*)`, or a list of such names."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(_TOOL.findall(value))
    if isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value)):
        return tuple(item.strip() for item in cast("list[str]", value))
    raise SkillError("allowed-tools must be text or a list of texts")
