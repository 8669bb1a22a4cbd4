"""`python -m hookline.bridges.testing FILE`: run the scenarios in the host that a file defines."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

from .host import Host
from .suite import Verdicts, check, versions
from .transcript import transcript


def main(arguments: list[str]) -> int:
    """Run the scenarios; exit with status 1 if one fails."""
    if not arguments or arguments[0].startswith("-"):
        print(
            "usage: python -m hookline.bridges.testing FILE [RECORD.json [PLUGIN.py] [--write]]",
            file=sys.stderr,
        )
        return 2
    host = runpy.run_path(arguments[0]).get("HOST")
    if not isinstance(host, Host):
        print(f"{arguments[0]} defines no HOST", file=sys.stderr)
        return 2
    verdicts = check(host)
    for name, verdict in verdicts.items():
        kind, colon, why = verdict.partition(":")
        print(f"{kind:12} {name}{colon}{why}")
    failed = sum(verdict.startswith("FAILED") for verdict in verdicts.values())
    carried = sum(verdict == "carried" for verdict in verdicts.values())
    print(f"{host.name} ({versions(host)}): {carried} carried, {failed} failed")
    if len(arguments) > 1:
        failed += compare(host, verdicts, arguments)
    return 1 if failed else 0


def compare(host: Host, verdicts: Verdicts, arguments: list[str]) -> int:
    """Write the record of a host, or return how many differences there are to it."""
    recorded = Path(arguments[1])
    plugins = [Path(each) for each in arguments[2:] if not each.startswith("-")]
    said = [line for plugin in plugins for line in transcript(host, plugin)]
    if "--write" in arguments:
        found: dict[str, Any] = {"host": host.name, "versions": versions(host), "verdicts": verdicts}
        found["transcript"] = said
        recorded.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        return 0
    record = json.loads(recorded.read_text("utf-8"))
    changed = differences(verdicts, record["verdicts"])
    if said != record["transcript"]:
        print("\n".join(["the transcript differs from the record:", *said]))
        changed += 1
    return changed


def differences(now: Verdicts, recorded: Verdicts) -> int:
    """Print the scenarios whose verdict is not the recorded one; return how many there are."""
    changed = [n for n in now if now[n].partition(":")[0] != recorded.get(n, "").partition(":")[0]]
    for name in changed:
        was = recorded.get(name, "unknown")
        print(f"{name}: was {was!r}, is {now[name]!r}; run scripts/test-bridges --write")
    return len(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
