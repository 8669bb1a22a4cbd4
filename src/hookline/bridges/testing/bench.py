"""`Bench`: runs agents of a host for a scenario; and the registry of scenarios."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hookline.channel import Channel, Question
from hookline.errors import Blocked, BridgeError
from hookline.hookspecs import Hooks

from .host import Host, HostRun
from .server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Sequence

PROMPT = "Tidy up in Rome."
REMOVE: Final = [("shell", {"command": "rm -r tmp"})]
LIST: Final = [("shell", {"command": "ls"})]


@dataclass(slots=True)
class ScenarioOutcome:
    """What came of one run."""

    text: str | None
    error: BaseException | None
    ran: list[str]
    """The commands that the tool was really run with."""
    server: ScriptedServer

    def answered(self, text: str) -> None:
        """Check that the run succeeded with this answer."""
        assert (self.text or "").strip() == text, (self.text, self.error)

    def denied(self, reason: str) -> None:
        """Check that nothing ran and that the model was told why."""
        assert self.error is None, f"the run failed: {self.error!r}"
        assert self.ran == [], f"the tool ran: {self.ran}"
        assert reason in self.server.said, "the model was not told the reason"

    def blocked(self) -> None:
        """Check that the run ended with `Blocked`."""
        found = self.error
        while found is not None and not isinstance(found, Blocked):
            found = found.__cause__ or found.__context__
        assert found is not None, f"the run was not blocked: {self.text!r}, {self.error!r}"


@dataclass(slots=True)
class Bench:
    """Runs agents of one host for a scenario."""

    host: Host
    hooks: Hooks = field(default_factory=lambda: Hooks(on_gate_error="deny"))

    def run(
        self,
        answers: Sequence[Any] = (REMOVE, "Done."),
        prompt: str = PROMPT,
        *,
        stream: bool = False,
        cancel: bool = False,
        subagent: bool = False,
        provider_tool: bool = False,
        **options: Any,
    ) -> ScenarioOutcome:
        """Run an agent whose model gives these answers."""
        ran: list[str] = []

        def shell(command: str) -> str:
            """Run a command.

            Args:
                command: The command line.

            """
            ran.append(command)
            if command == "fail":
                raise RuntimeError("the disk is full")
            return f"output of {command}, token=s3cr3t"

        def status() -> dict[str, Any]:
            """Report the status."""
            return {"state": "ok", "token": "s3cr3t"}

        with ScriptedServer(answers) as server:
            try:
                tools = [shell, status]
                asked = HostRun(
                    server.url,
                    self.hooks,
                    prompt,
                    tools,
                    options,
                    stream=stream,
                    cancel=server.waiting if cancel else None,
                    subagent=subagent,
                    provider_tool=provider_tool,
                )
                return ScenarioOutcome(self.host.run(asked), None, ran, server)
            except BridgeError:
                raise
            except Exception as error:
                return ScenarioOutcome(None, error, ran, server)


Scenario = Callable[[Bench], None]
SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(function: Scenario) -> Scenario:
    """Add a scenario under the name of its function."""
    SCENARIOS[function.__name__.replace("_", " ")] = function
    return function


async def recorded(tape: Any) -> set[str]:
    """The kinds of entries on a tape."""
    found: set[str] = set()
    for session in await tape.sessions():
        found |= {entry.kind for entry in await tape.entries(session.id)}
    return found


class Answering(Channel):
    """A person who gives the same answer to every question, after some seconds."""

    def __init__(self, answer: str, seconds: float = 0.0) -> None:
        self._answer, self._seconds = answer, seconds

    @property
    def asks(self) -> bool:
        """Whether there is someone to ask."""
        return True

    async def ask(self, question: Question) -> str | None:
        """Answer."""
        await asyncio.sleep(self._seconds)
        return self._answer
