"""The process that judges some sessions of a backtest: an order as its input, frames as its output.

    python -m hookline.observe.replay.share

The order is a pickle, and so is each frame: how far the work is, and in the end the report or a
message that says what went wrong.
"""

from __future__ import annotations

import os
import pickle
import sys
from functools import partial
from typing import IO, Any

from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text

_LENGTH = 8


def write_frame(file: IO[bytes], value: Any) -> None:
    """Send a value."""
    data = pickle.dumps(value)
    file.write(len(data).to_bytes(_LENGTH, "big") + data)
    file.flush()


def read_frame(file: IO[bytes]) -> Any:
    """Return the next value; `EOFError` if there is none."""
    length = int.from_bytes(file.read(_LENGTH) or b"", "big")
    data = file.read(length) if length else b""
    if not data or len(data) < length:
        raise EOFError
    return pickle.loads(data)


def main() -> None:
    """Judge what the order names."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # a plugin's output must not end up between the frames
        try:
            from .parallel import judge_share

            setup, opens, sessions, since = read_frame(sys.stdin.buffer)
            report: Any = judge_share(setup, opens, sessions, since, partial(write_frame, out))
        except HooklineError as error:
            report = str(error)
        except BaseException as error:
            report = error_text(error)
        write_frame(out, report)


if __name__ == "__main__":
    main()
