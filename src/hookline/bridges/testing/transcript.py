"""The transcript of a run in which a plugin denies, rewrites, redacts and logs."""

from __future__ import annotations

import logging
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from .bench import Bench, ScenarioOutcome
from .host import Host

PROMPT: Final = "Tidy up."
COMMANDS: Final = ("sudo rm -r /var", "rm -r tmp")
ANSWER: Final = "Done: token=s3cr3t was in tmp."


def transcript(host: Host, plugin: Path) -> list[str]:
    """Run an agent of a host that a plugin guards; return what happens, line by line."""
    guard = SimpleNamespace(**runpy.run_path(str(plugin), run_name="guard"))
    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    log = logging.getLogger("guard")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        calls = [[("shell", {"command": command})] for command in COMMANDS]
        outcome = Bench(host).run([*calls, ANSWER], PROMPT, plugins=[guard])
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
    return [*lines(outcome), *(f"log      {line}" for line in logged)]


def lines(outcome: ScenarioOutcome) -> Iterator[str]:
    """What the user, the model and the tools saw."""
    if outcome.error is not None:
        raise outcome.error
    yield f"user     {PROMPT}"
    seen = results(outcome.server.requests[-1]["messages"])
    for asked, shown in zip(COMMANDS, seen, strict=True):
        yield f"model    shell: {asked}"
        yield from (f"ran      {command}" for command in outcome.ran if f"of {command}," in shown)
        yield f"result   {shown}"
    yield f"answer   {(outcome.text or '').strip()}"


def results(messages: list[dict[str, Any]]) -> list[str]:
    """The results of tools that a model was sent, in either format."""
    found: list[str] = []
    for message in messages:
        content: Any = message.get("content")
        if message["role"] == "tool":
            found.append(plain(content))
        elif isinstance(content, list):
            blocks = cast("list[dict[str, Any]]", content)
            found += [plain(b["content"]) for b in blocks if b.get("type") == "tool_result"]
    return found


def plain(content: Any) -> str:
    """The text of a result, without what the host adds for itself."""
    if isinstance(content, list):
        blocks = cast("list[dict[str, Any]]", content)
        texts = [str(block.get("text", "")) for block in blocks]
        content = "\n".join(text for text in texts if not text.startswith("<system-reminder>"))
    return str(content).strip()
