"""The command line: a thin skin over the library."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `hookline`; an error that a user can mend is one line and exit code 2."""
    from hookline.hooks import HooklineError

    from .root import create_app

    try:
        create_app()()
    except HooklineError as error:
        print(f"hookline: {error}", file=sys.stderr)
        sys.exit(2)
