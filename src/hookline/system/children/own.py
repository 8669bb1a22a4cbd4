# ruff: noqa: PTH100, PTH109, PTH120
"""Protect this process: nothing is imported or started because of the folder it runs in.

The module imports only what every interpreter has loaded already: it must run before anything else.
"""

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def settle() -> None:
    """Take the current folder out of the import path, and relative entries out of `PATH`.

    `python -m hookline` puts the current folder on the import path, and so does `PYTHONPATH=.`: a
    `json.py` there would be imported. An entry stays if Hookline itself is installed there.
    """
    sys.path[:] = import_path(sys.path, os.environ)
    path = os.environ.get("PATH", os.defpath)
    absolute = os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    if absolute != path:
        os.environ["PATH"] = absolute or "/usr/bin:/bin"


def import_path(path: "Sequence[str]", environ: "Mapping[str, str]") -> "list[str]":
    """Return an import path without the entries that depend on the current folder."""
    try:
        here = os.getcwd()
    except OSError:  # it was deleted
        here = "/"
    unwanted: list[str] = []
    if environ.get("PYTHONPATH"):
        entries = environ["PYTHONPATH"].split(os.pathsep)
        # `site` has made them absolute
        unwanted = [os.path.abspath(entry) for entry in entries if not entry.startswith("/")]
    if path and path[0] == here:  # put there by `python -m`; an editable install adds its entry later
        unwanted.append(here)
    installed = os.path.dirname(
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    )
    found: list[str] = []
    for entry in path:
        if entry in unwanted and entry != installed:
            unwanted.remove(entry)
        elif entry.startswith("/"):
            found.append(entry)
    return found
