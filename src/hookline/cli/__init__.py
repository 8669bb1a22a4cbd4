"""The command line: a thin skin over the library.

Exit codes: 0 when all went well; 1 when a turn failed; 2 when the command cannot be carried out as
it was given; 130 when it was interrupted; 143 when it was asked to end (SIGTERM).
"""

from __future__ import annotations

import gc
import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

FAILED, REFUSED, INTERRUPTED, TERMINATED = 1, 2, 130, 143


def entered(app: Hookline) -> None:
    """Report which parts of the project are inactive, for every command that loads its files."""
    from .project import enter

    enter(app)


def beside(text: object) -> None:
    """Say something on standard error, without secrets."""
    from hookline.system.log_redaction import without_secrets

    print(f"hookline: {without_secrets(str(text))}", file=sys.stderr, flush=True)


def main() -> None:
    """Run `hookline`. An error that the user can fix is printed without a traceback."""
    if sys.argv[1:3] == ["hook", "--for"]:  # another agent waits: nothing else may be imported
        from hookline.system.hook_client import main as client

        sys.exit(client(sys.argv[3:]))
    gc.disable()  # loaded modules stay: searching them for garbage only costs time
    from hookline.system.children.own import settle

    settle()
    from .terminal import guarded

    with guarded(), ExitStack() as stack:
        execute(stack)


def execute(stack: ExitStack) -> None:
    """Run the command that the arguments name, and print errors while redaction is active."""
    from hookline.hooks import HooklineError
    from hookline.runtime.app import Hookline
    from hookline.system.log_redaction import without_secrets

    from .early import early
    from .json_output import is_reserved, print_json, reserved

    try:
        with reserved("--json" in sys.argv):  # plugins may print while they are imported
            app = Hookline(**early(sys.argv[1:]))
            stack.callback(app.safeguards.redact_logs())
            app.hook_files.entering = partial(entered, app)
            app.absences.say = beside
            app.load_hooks(only_cli=True)
            from .root import outlined

            command_line = outlined(app.create_cli_app())
        gc.freeze()
        gc.enable()
        command_line(prog_name="hookline")
    except HooklineError as error:
        beside(error)
        if is_reserved():
            print_json({"error": type(error).__name__, "message": without_secrets(str(error))})
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception:  # a mistake of ours or a plugin's
        from traceback import format_exc

        print(without_secrets(format_exc()), file=sys.stderr, end="")
        sys.exit(FAILED)
