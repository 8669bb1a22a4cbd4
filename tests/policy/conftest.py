from pathlib import Path

import pytest

from hookline.policy import Policy
from hookline.tools import tool
from hookline.tools.registry import Registry


class Counted:
    """Tools that count how often they ran: denied means not run."""

    def __init__(self) -> None:
        self.runs: list[str] = []

        @tool(side_effects="external", registry=Registry(), name="sh")
        def sh(command: str) -> str:
            self.runs.append(command)
            return "ran"

        @tool(side_effects="write", registry=Registry(), name="put")
        def put(path: str, content: str = "") -> str:
            self.runs.append(path)
            return "ran"

        @tool(side_effects="read", registry=Registry(), name="get")
        def get(path: str) -> str:
            self.runs.append(path)
            return "ran"

        self.tools = [sh, put, get]


@pytest.fixture
def counted(app) -> Counted:
    made = Counted()
    for one in made.tools:
        app.tools.add(one)
    return made


@pytest.fixture
def call(app, counted):
    """Call a tool through the app's one runner, on behalf of a model, under a policy."""
    from hookline.tools.runner import Caller, Requested

    class Kept:
        def __init__(self) -> None:
            self.rulings = []

        async def tool_call(self, call, requested, rulings) -> None:
            self.rulings = list(rulings)

        async def tool_result(self, result, *, ran, terminate, rulings) -> None:
            self.rulings = list(rulings)

    async def make(name, policy: Policy | None = None, *, said=None, source="model", **arguments):
        kept = Kept()
        if policy is not None:
            app.runner.judge = policy.judge
        state = {"message": said or {"channel": "terminal", "sender_id": "ada"}}
        caller = Caller(app.context("s"), kept, app.workspace, state, source=source)
        outcome = await app.runner.run(Requested("c1", name, arguments), caller)
        return outcome, kept.rulings

    return make


def write_pack(folder: Path, cedar: str, manifest: str = 'id = "mine"\nversion = "1.0"\n') -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pack.toml").write_text(manifest)
    (folder / "rules.cedar").write_text(cedar)
    return folder
