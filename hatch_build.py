"""Puts the SBOM that `scripts/sbom` wrote into the wheel, under `.dist-info/sboms` (PEP 770)."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SBOM = "build/sbom/hookline.cdx.json"


class SBOMHook(BuildHookInterface):
    """Adds the SBOM where there is one: a build from a plain checkout needs no further tools."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the file before the wheel is built."""
        if (Path(self.root) / SBOM).is_file():
            build_data.setdefault("sbom_files", []).append(SBOM)
