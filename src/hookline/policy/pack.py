"""Packs: folders of rules, with a manifest.

my-pack/
    pack.toml            id, version, and optionally description and requires
    *.cedar              the policies
    schema.cedarschema   only where the policies look at arguments of other tools
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from hookline.errors import PolicyError
from hookline.hooks.errors import suggestion
from hookline.text.untrusted import load_toml

from .rule import Rule, cedar, read_rules

SHIPPED = Path(__file__).parent / "packs"
SCHEMA = Path(__file__).parent / "schema.cedarschema"
MANIFEST = "pack.toml"
FIELDS = {"id": str, "version": str, "description": str, "requires": list}


@dataclass(frozen=True, slots=True)
class Pack:
    """One pack, read and parsed."""

    id: str
    version: str
    folder: Path
    rules: list[Rule]
    description: str = ""
    requires: list[str] = field(default_factory=list[str])

    @property
    def schema(self) -> Path:
        """What its policies are checked against."""
        own = self.folder / SCHEMA.name
        return own if own.is_file() else SCHEMA


def shipped_packs() -> list[str]:
    """The names of the packs that come with Hookline."""
    return sorted(manifest.parent.name for manifest in SHIPPED.glob(f"*/{MANIFEST}"))


def find_pack(name: str, base: Path, registered: Mapping[str, Path]) -> Path:
    """The folder of a pack that a configuration names: shipped, of a plugin, or a folder."""
    if name in registered:
        return registered[name]
    if name in shipped_packs():
        return SHIPPED / name
    if "/" not in name and not name.startswith(("~", ".")):
        names = sorted([*shipped_packs(), *registered])
        hint = suggestion(name, names) or f"; there are: {', '.join(names)}"
        raise PolicyError(f"unknown policy pack {name!r}{hint} (a folder is written as './my-pack')")
    return base / Path(name).expanduser()


def load_pack(folder: Path) -> Pack:
    """Read a pack. Errors name its file and, if possible, the line."""
    folder = folder.parent if folder.name == MANIFEST else folder
    said = read_manifest(folder / MANIFEST)
    files = sorted(folder.glob("*.cedar"))
    if not files:
        raise PolicyError(f"{folder}: the pack has no policies (no file *.cedar)")
    rules = [rule for file in files for rule in read_rules(file, said["id"])]
    places: dict[str, Rule] = {}
    for rule in rules:
        if rule.name in places:
            first = places[rule.name].place
            raise PolicyError(f"{rule.place}: the id {rule.name!r} is taken by the policy at {first}")
        places[rule.name] = rule
    return Pack(
        said["id"],
        said["version"],
        folder,
        rules,
        said.get("description", ""),
        said.get("requires", []),
    )


def read_manifest(file: Path) -> dict[str, Any]:
    """The fields of a manifest, checked."""
    try:
        said = load_toml(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PolicyError(f"{file}: not TOML: {error}") from None
    except OSError as error:
        raise PolicyError(
            f"{file}: the pack's manifest cannot be read: {error.strerror}; "
            "a pack is a folder with pack.toml and *.cedar files"
        ) from None
    for name, value in said.items():
        if name not in FIELDS:
            known = ", ".join(FIELDS)
            raise PolicyError(
                f"{file}: unknown field {name!r}{suggestion(name, FIELDS) or f'; there are {known}'}"
            )
        if not isinstance(value, FIELDS[name]) or (
            name == "requires" and not all(isinstance(item, str) for item in cast("list[Any]", value))
        ):
            kind = "a list of texts" if name == "requires" else "a text"
            raise PolicyError(f"{file}: {name} must be {kind}, got {value!r}")
    for name in ("id", "version"):
        if not said.get(name):
            raise PolicyError(f"{file}: {name} is missing")
    if "/" in said["id"] or said["id"] == "floor":
        raise PolicyError(f"{file}: {said['id']!r} cannot be a pack's id")
    return said


def check_together(packs: Sequence[Pack]) -> None:
    """Reject packs with the same id, and packs without their requirements."""
    known: dict[str, Pack] = {}
    for pack in packs:
        if pack.id in known:
            raise PolicyError(
                f"two packs have the id {pack.id!r}: {known[pack.id].folder} and {pack.folder}"
            )
        known[pack.id] = pack
    for pack in packs:
        for requirement in pack.requires:
            check_requirement(requirement, pack, {name: p.version for name, p in known.items()})


def check_requirement(written: str, pack: Pack, present: Mapping[str, str]) -> None:
    """Refuse a pack whose requirement is not met: `hookline>=0.1`, or another pack."""
    from importlib.metadata import version

    from packaging.requirements import InvalidRequirement, Requirement

    where = f"{pack.folder / MANIFEST}: requires {written!r}"
    try:
        requirement = Requirement(written)
    except InvalidRequirement as error:
        raise PolicyError(f"{where}: not a requirement such as 'hookline>=0.1': {error}") from None
    name = requirement.name
    found = version("hookline") if name == "hookline" else present.get(name)
    if found is None:
        raise PolicyError(f"{where}, and the pack {name!r} is not in use; add it to [policy] packs")
    if not requirement.specifier.contains(found, prereleases=True):
        raise PolicyError(f"{where}, and {name} is version {found}")


def schema_faults(rules: Iterable[Rule], schema: Path) -> list[str]:
    """What rules ask for that the schema does not have, each with its place."""
    engine = cedar()
    try:
        known = engine.Schema.from_str(schema.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        return [f"{schema}: not a schema: {error}"]
    found: list[str] = []
    for rule in rules:
        faults = [fault.error for fault in engine.validate_policies(rule.text, known).errors]
        found += [f"{rule.place}: {told.replace('for policy `policy0`, ', '')}" for told in faults]
    return found
