"""Packages that are installed, as far as Hookline can tell: files on the path and their metadata."""

from itertools import count
from pathlib import Path
from textwrap import dedent

_numbers = count(1)


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def install(self, name, plugin="", *, manifest=None, distribution=None, attribute=""):
        """A distribution with one plugin; `manifest` is the body of a mapping, or None for none.

        The package's own `__init__` and its plugin leave a line in `imported.txt` when they are run.
        """
        module = f"installed_{next(_numbers)}"
        package = self.folder / module
        package.mkdir(exist_ok=True)
        noted = str(self.folder / "imported.txt")
        note = f"with open({noted!r}, 'a') as noted: noted.write(__name__ + '\\n')\n"
        (package / "__init__.py").write_text(note)
        (package / "plugin.py").write_text(note + dedent(plugin or PLUGIN))
        lines = ["[hookline]", f"{name} = {module}.plugin{attribute}"]
        if manifest is not None:
            body = f"def manifest():\n    return {{'name': {name!r}, {manifest}}}\n"
            (package / "manifest.py").write_text(body)
            lines += ["[hookline.manifest]", f"{name} = {module}.manifest:manifest"]
        stem = (distribution or f"hookline-{name}").replace("-", "_")
        about = self.folder / f"{stem}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {stem}\nVersion: 1.2\n")
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        return module

    @property
    def imported(self) -> list[str]:
        """The modules that were run, in order."""
        path = self.folder / "imported.txt"
        return path.read_text().split() if path.exists() else []


PLUGIN = """
from hookline import hookimpl

@hookimpl
def system_prompt():
    return __name__
"""
