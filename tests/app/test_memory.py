"""What tools remember of a session, and what becomes of results that are too long."""

import asyncio
import gc
import sys
import weakref

from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.runtime.app import Hookline
from hookline.tools import tool
from hookline.tools.registry import Registry

from ..processes import long_sleep, running


async def test_a_todo_list_lasts_over_turns_and_restarts(app, scripted, tmp_path):
    scripted(
        Turn(tool_calls=[Call("todo", {"action": "add", "items": ["buy milk"]})]), "noted",
        Turn(tool_calls=[Call("todo")]), "shown",
    )  # fmt: skip
    async with app.running():
        await app.process({"content": "a"})
        await app.process({"content": "b"})
    again = Hookline(home=app.home, workspace=app.workspace)
    again.load_hooks(packages=False)
    model = ScriptedModel([Turn(tool_calls=[Call("todo")]), "shown again"])
    again.models.add(model)
    again.model = model.name
    async with again.running():
        await again.process({"content": "c"})
        results = await again.store().entries("default:default", kinds=["tool_result"])
        states = await again.store().entries("default:default", kinds=["state"])
    assert all("buy milk" in result.payload["content"] for result in results)
    assert len(results) == 3
    assert len(states) == 1, "what did not change is not written again"


async def test_a_long_result_is_cut_for_the_model_and_can_be_read_on(app, scripted):
    @tool(side_effects="none", registry=Registry())
    def novel() -> str:
        return "".join(f"line {n}\n" for n in range(20_000))

    app.tools.add(novel)
    model = scripted(Turn(tool_calls=[Call("novel")]), "long")
    async with app.running():
        await app.process({"content": "x"})
    told = model.requests[1].messages[-1]["content"]
    assert len(told) < 60_000
    assert "read_output" in told


async def test_background_commands_end_with_the_running_scope(app, scripted):
    command = long_sleep()
    call = Call("shell", {"command": f"echo > began; exec {command}", "background": True})
    scripted(Turn(tool_calls=[call]), "started")
    async with app.running():
        await app.process({"content": "x"})
        async with asyncio.timeout(30):
            while not (app.workspace / "began").exists():
                await asyncio.sleep(0.01)
        assert running(command)
    assert running(command) == []


async def test_nothing_of_an_app_stays_in_memory_after_it(tmp_path):
    folder = tmp_path / "home" / "profiles" / "default" / "hooks"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text("def mine(event): pass\nhooks = [('turn_end', mine)]\n")

    async def one() -> weakref.ref[Hookline]:
        app = Hookline(home=tmp_path / "home", workspace=tmp_path)
        app.load_hooks(packages=False)
        model = ScriptedModel(["Hello."])
        app.models.add(model)
        app.model = model.name
        async with app.running():
            await app.process({"content": "hi"})
        assert [name for name in sys.modules if name.endswith(".mine")]
        return weakref.ref(app)

    left = await one()
    gc.collect()
    assert left() is None
    assert [name for name in sys.modules if name.endswith(".mine")] == []
