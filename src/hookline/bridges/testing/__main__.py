"""`python -m hookline.bridges.testing FILE`: run the scenarios in the host that a file defines."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

from .host import Host
from .suite import Verdicts, check, versions


def main(arguments: list[str]) -> int:
    """Run the scenarios; exit with status 1 if one fails."""
    if not arguments or arguments[0].startswith("-"):
        print("usage: python -m hookline.bridges.testing FILE [RESULT.json [--write]]", file=sys.stderr)
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
        recorded = Path(arguments[1])
        if "--write" in arguments:
            found = {"host": host.name, "versions": versions(host), "verdicts": verdicts}
            recorded.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        else:
            failed += differences(verdicts, json.loads(recorded.read_text("utf-8"))["verdicts"])
    return 1 if failed else 0


def differences(now: Verdicts, recorded: Verdicts) -> int:
    """Print the scenarios whose verdict is not the recorded one; return how many there are."""
    changed = [n for n in now if now[n].partition(":")[0] != recorded.get(n, "").partition(":")[0]]
    for name in changed:
        was = recorded.get(name, "unknown")
        print(f"{name}: was {was!r}, is {now[name]!r}; run scripts/test-bridges --write")
    return len(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
