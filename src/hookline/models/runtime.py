"""The one place that touches the local model's runtime, which is optional and has no types."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hookline.errors import ModelUnavailable

INSTALL = "pip install 'hookline[local]'"

# A prompt is read in batches, and only between two of them can reading be stopped: with this size
# that is every 0.4 s on one slow core, and no slower than reading all at once.
BATCH = 64


def runtime_installed() -> bool:
    """Whether the runtime can be imported; it is not imported to find out."""
    return find_spec("xllamacpp") is not None


class Runtime:
    """A loaded model. Its calls block, and let other threads run meanwhile."""

    def __init__(self, path: Path, *, context: int, threads: int, cache_mib: int) -> None:
        # Waiting threads must sleep, not spin: next to a busy core spinning costs 20 times.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        try:
            xllamacpp: Any = import_module("xllamacpp")
        except ImportError as error:
            raise ModelUnavailable(
                f"the local model's runtime is not installed.\nInstall it: {INSTALL}\n"
                "or choose another model with --model."
            ) from error
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_batch = params.n_ubatch = BATCH
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.cache_ram_mib = cache_mib
        params.warmup = False
        params.verbosity = -1
        # The runtime opens a port on the loopback device, which nothing here uses: no page, no
        # state, and a key that nobody has.
        params.ui = params.endpoint_slots = False
        params.api_keys = [secrets.token_hex(32)]
        self._server = xllamacpp.Server(params)

    def chat(self, body: dict[str, Any], each: Callable[[dict[str, Any]], bool]) -> None:
        """Answer in the form of OpenAI's streaming chunks; `each` returns True to stop.

        An error comes as a chunk with `error`, or, for a schema that cannot be followed, as a
        `ValueError`.
        """
        self._server.handle_chat_completions(body, each)
