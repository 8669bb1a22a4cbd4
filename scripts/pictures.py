"""Makes the pictures of the documentation from what the commands really print.

.venv/bin/python scripts/pictures.py
"""

import os
import subprocess
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PICTURES = {"hooks.svg": (["hooks", "--family", "tool"], 132)}


def without_web_fonts(template: str) -> str:
    """A picture must not fetch anything: drop the font declarations that rich puts in."""
    start, end = template.index("    @font-face"), template.index("    .{unique_id}-matrix")
    return template[:start] + template[end:]


def picture(arguments: list[str], width: int) -> str:
    """Run a command in colour and draw its output."""
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(width - 2), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "hookline", *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=width, file=nowhere, force_terminal=True)
        lines = "\n".join(line.rstrip() for line in printed.splitlines())
        console.print(Text.from_ansi(f"$ hookline {' '.join(arguments)}\n{lines}"))
        svg = console.export_svg(title="hookline", code_format=without_web_fonts(CONSOLE_SVG_FORMAT))
    return svg.replace("Fira Code", "DejaVu Sans Mono")


if __name__ == "__main__":
    for name, (arguments, width) in PICTURES.items():
        (IMAGES / name).write_text(picture(arguments, width))
        print(IMAGES / name)
