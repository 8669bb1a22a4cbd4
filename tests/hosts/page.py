"""Writes what the hosts carried, and their transcripts, into `docs/hosts.md`.

python tests/hosts/page.py
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hosts.md"
HEADING = "## What was tried\n"
TITLES = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "opencode": "opencode",
    "pi": "pi",
}


def rendered() -> str:
    """The page with the recorded results at its end."""
    before, heading, _ = PAGE.read_text().partition(HEADING)
    records = {
        name: json.loads((ROOT / "docs" / "hosts" / f"{name}.json").read_text()) for name in TITLES
    }
    lines = [
        "",
        "Recorded by `./scripts/test-hosts --write`: it installs each agent from npm and the hooks of",
        "`tests/hosts/guard.py` in it, and runs it against a scripted model on loopback.",
        "",
        f"| | {' | '.join(TITLES.values())} |",
        f"|---|{'---|' * len(TITLES)}",
    ]
    for text in records["claude-code"]["carried"]:
        cells = ["yes" if record["carried"][text] else "no" for record in records.values()]
        lines.append(f"| {text} | {' | '.join(cells)} |")
    lines += ["", "The tape of each run, one line for each entry:"]
    for name, record in records.items():
        about = f"({record['package']} {record['version']})"
        lines += ["", f"**{TITLES[name]}** {about}", "", "```text", *record["transcript"], "```"]
    return before + heading + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(rendered())
