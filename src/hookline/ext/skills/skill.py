"""`Skill`: a way of working, described by a folder or a plugin; and the error for an invalid one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .errors import SkillError
from .files import files_in, inside, read_text
from .frontmatter import FrontMatter, parse, split

if TYPE_CHECKING:
    from hookline.specs import SkillSpec

Source: TypeAlias = Literal["project", "user", "profile", "plugin", "package"]

FILE = "SKILL.md"
LARGEST = 1_000_000
MOST_FILES = 200


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A skill that was left out, and why."""

    source: Source
    place: str
    """The file or folder, or the plugin that gave it."""
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class UntrustedSkill(SkillProblem):
    """A skill that was left out because it has files that could run and is not trusted."""


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill. Its description is known; its text and files are read on demand."""

    name: str
    description: str
    source: Source
    path: Path | None = None
    """The folder; None for one that a plugin describes."""
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Not shown with the skill: a few lines of YAML can name a value a billion times."""
    allowed_tools: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Keys that the format does not know."""
    text: str = field(default="", repr=False)
    """The body of one that a plugin describes."""
    warnings: tuple[str, ...] = ()
    """Where its front matter departs from the format."""

    @classmethod
    def from_folder(cls, folder: Path, source: Source) -> Skill:
        """Load the skill in a folder; raises `SkillError` if it is malformed."""
        said: FrontMatter = parse(read_text(folder / FILE, folder, LARGEST), folder.name)
        return cls(
            name=said.name,
            description=said.description,
            source=source,
            path=folder,
            license=said.license,
            compatibility=said.compatibility,
            metadata=said.metadata,
            allowed_tools=said.allowed_tools,
            extra=said.extra,
            warnings=said.warnings,
        )

    @classmethod
    def from_spec(cls, spec: SkillSpec) -> Skill:
        """The skill that a plugin describes; one with a namespace is named `namespace.name`."""
        return cls(
            name=f"{spec.namespace}.{spec.name}" if spec.namespace else spec.name,
            description=spec.description.strip(),
            source="plugin",
            allowed_tools=tuple(spec.tools),
            metadata={"version": spec.version, "kind": spec.kind.value, "examples": spec.examples},
            text=spec.system_prompt.strip(),
        )

    @property
    def body(self) -> str:
        """The instructions, without the front matter, as they are now."""
        if self.path is None:
            return self.text
        return split(read_text(self.path / FILE, self.path, LARGEST))[1]

    @property
    def files(self) -> list[str]:
        """What else lies in the folder, as paths relative to it."""
        if self.path is None:
            return []
        return [name for name in files_in(self.path, MOST_FILES + 1) if name != FILE]

    def file(self, path: str) -> Path:
        """The real place of one of the files; a path that leaves the folder is refused."""
        if self.path is None:
            raise SkillError(f"the skill {self.name!r} has no files: a plugin describes it")
        return inside(self.path / path, self.path)
