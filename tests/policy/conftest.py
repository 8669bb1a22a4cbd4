from copy import deepcopy
from pathlib import Path

import pytest

from hookline.policy import Policy
from hookline.tools import tool
from hookline.tools.registry import Registry
from hookline.tools.tool import Tool


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
    from hookline.tools.runner import Requested, ToolCaller
    from hookline.types import Identity

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
        identity = Identity.of(said or {"channel": "terminal", "sender_id": "ada"})
        ctx = app.context("s", identity)
        caller = ToolCaller(ctx, kept, app.workspace, source=source, identity=identity)
        outcome = await app.runner.run(Requested("c1", name, arguments), caller)
        return outcome, kept.rulings

    return make


@pytest.fixture
def nested(app):
    """A tool that keeps what it was given and then changes it, as written and from a spec."""
    seen = []

    def act(words: list, more: dict) -> str:
        seen.append(deepcopy((words, more)))
        words.append("by the tool")
        more["by"] = "the tool"
        return "acted"

    made = tool(side_effects="none", registry=Registry(), name="typed")(act)
    app.tools.add(made)
    app.tools.add(Tool.from_spec(made.spec.model_copy(update={"name": "raw"}), act))
    return seen


def write_pack(folder: Path, cedar: str, manifest: str = 'id = "mine"\nversion = "1.0"\n') -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pack.toml").write_text(manifest)
    (folder / "rules.cedar").write_text(cedar)
    return folder
