from pathlib import Path

import pytest

from hookline.models.script import Call, Turn
from hookline.observe.replay import ReplayApp, WhatIf, replay
from hookline.tools import tool
from hookline.tools.registry import Registry

HERE = "default:default"


class Tools:
    """Tools that count how often they ran."""

    def __init__(self) -> None:
        self.runs: list[str] = []

        @tool(side_effects="none", registry=Registry(), name="act")
        def act(word: str = "") -> str:
            self.runs.append(word)
            return f"acted {word}"

        @tool(side_effects="none", registry=Registry(), name="stubbed", replay_policy="must-stub")
        def stubbed() -> str:
            self.runs.append("stubbed")
            return "the real thing"

        @tool(side_effects="none", registry=Registry(), name="loud", replay_policy="fail-loud")
        def loud() -> str:
            self.runs.append("loud")
            return "the real thing"

        @tool(side_effects="none", registry=Registry(), name="broken")
        def broken() -> str:
            self.runs.append("broken")
            raise ValueError("no luck")

        self.all = [act, stubbed, loud, broken]


@pytest.fixture
def tools(app) -> Tools:
    made = Tools()
    for one in made.all:
        app.tools.add(one)
    return made


@pytest.fixture
def record(app, scripted, tools):
    """Have a conversation and keep it: messages in, the model's turns as scripted."""

    async def make(*messages, turns):
        scripted(*turns)
        async with app.running():
            for message in messages:
                await app.process({"content": message})
            entries = await app.store().entries(HERE)
        tools.runs.clear()
        return entries

    return make


@pytest.fixture
def replaying(app, tools, tmp_path: Path):
    """Replay what was recorded, in an app like the one of the test; `hooks` are today's handlers."""

    def make(hooks=(), with_tools=True, **options):
        def made() -> ReplayApp:
            fresh = ReplayApp.like(app, **options)
            fresh.load_hooks(packages=False)
            fresh.user_home = tmp_path
            if with_tools:
                for one in tools.all:
                    fresh.tools.add(one)
            for name, handler, *more in hooks:
                fresh.hooks.register(name, handler, **(more[0] if more else {}))
            return fresh

        return made

    async def run(hooks=(), *, session=HERE, with_tools=True, plugins=(), packs=(), **what_if):
        made = make(hooks, with_tools, plugins=plugins, packs=packs)
        async with app.running():
            return await replay(app.store(), session, made, WhatIf(**what_if))

    run.make = make
    return run


@pytest.fixture
def entries(app):
    """The entries of a session."""

    async def read(session=HERE):
        async with app.running():
            return await app.store().entries(session)

    return read


def calling(*words) -> Turn:
    return Turn(tool_calls=[Call("act", {"word": word}) for word in words])
