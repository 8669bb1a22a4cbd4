"""The generated parts of the documentation: `python -m hookline.bridges.testing.pages docs`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .suite import matrix

Record = Mapping[str, Any]


def records(docs: Path) -> list[Record]:
    """What was recorded of each host."""
    return [json.loads(file.read_text("utf-8")) for file in sorted((docs / "bridges").glob("*.json"))]


def sections(docs: Path, plugin: Path) -> dict[str, str]:
    """The generated sections, by name."""
    found = [each for each in records(docs) if "verdicts" in each]
    shown = [each for each in records(docs) if each.get("transcript")]
    return {
        "matrix": matrix({each["host"]: each["verdicts"] for each in found}),
        "hosts": "\n".join(summary(each) for each in found),
        "guard": f"```python no-run\n{plugin.read_text('utf-8').strip()}\n```",
        "transcripts": "\n\n".join(
            "\n".join([f"### {each['host']}", "", "```text", *each["transcript"], "```"])
            for each in shown
        ),
    }


def summary(record: Record) -> str:
    """The versions of a host and what it does not carry."""
    missing = [
        f"{name} ({reason(verdict)})"
        for name, verdict in record["verdicts"].items()
        if verdict != "carried"
    ]
    told = f"not carried: {'; '.join(missing)}." if missing else "everything."
    return f"- **{record['host']}** ({record['versions']}): {told}"


def reason(verdict: str) -> str:
    """Why a scenario is not carried, without what to do about it."""
    why = verdict.partition(": ")[2]
    found = re.search(r"which have handlers: \w+: (.*?)\. Remove", why)
    return found[1] if found else why


def filled(page: str, parts: Mapping[str, str]) -> str:
    """A page with its generated sections renewed."""
    for name, text in parts.items():
        mark = f"<!-- generated: {name} -->"
        pattern = rf"({re.escape(mark)}\n).*?(\n<!-- end -->)"
        page = re.sub(pattern, lambda m, text=text: f"{m[1]}{text}{m[2]}", page, flags=re.DOTALL)
    return page


def main(docs: Path) -> None:
    """Renew the pages."""
    parts = sections(docs, docs.parent / "examples" / "guard.py")
    for page in sorted(docs.glob("*.md")):
        was = page.read_text("utf-8")
        if (now := filled(was, parts)) != was:
            page.write_text(now, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
