"""The command line in the process of the test: a new one each time would take longer than the rest."""

import gc
import logging
import os
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace

import pytest

from hookline.cli import main


def environment(home: Path, **more: str) -> dict[str, str]:
    """That of the tests with another home, and without the settings of who runs them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOOKLINE_")}
    return {**kept, "HOOKLINE_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "120", **more}


def here(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., SimpleNamespace]:
    """Runs `hookline` in a workspace, from its entry point to its exit code.

    Standard input is no terminal.
    """

    def run(*arguments: object, stdin: str | bytes = b"", **env: str) -> SimpleNamespace:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("HOOKLINE_")]:
                patch.delenv(name)
            for name, value in environment(home, **env).items():
                patch.setenv(name, value)
            patch.chdir(workspace)
            patch.setattr(gc, "freeze", lambda: None)  # what this run makes is garbage after it
            patch.setattr(sys, "argv", ["hookline", *map(str, arguments)])
            given = stdin.encode() if isinstance(stdin, str) else stdin
            patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(given), encoding="utf-8"))
            capsys.readouterr()
            logs = [logging.getLogger(name) for name in (None, "hookline")]
            handlers = [[*log.handlers] for log in logs]
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = ended.code or 0
            finally:
                for log, before in zip(logs, handlers, strict=True):
                    log.handlers[:] = before  # others write to a stream of this run
                gc.enable()
        said = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err)

    return run
