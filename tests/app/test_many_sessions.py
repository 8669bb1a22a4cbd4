"""Hundreds of sessions with a turn in flight at once, in one process."""

import asyncio

from hookline.models.script import Call, Turn
from hookline.tools import tool
from hookline.tools.registry import Registry

from ..effort import EFFORT

SESSIONS = 400 * EFFORT


async def test_no_entry_is_lost_or_crossed(app, scripted):
    everybody_here = asyncio.Event()
    waiting = 0

    @tool(side_effects="none", registry=Registry())
    async def meet(name: str) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == SESSIONS:
            everybody_here.set()
        await everybody_here.wait()  # nobody goes on before all turns are in flight
        return f"met {name}"

    app.tools.add(meet)
    scripted(
        *(Turn(tool_calls=[Call("meet", {"name": f"n{n}"})], match=f"^n{n}$") for n in range(SESSIONS)),
        Turn("done"),
        record=False,
    )
    async with app.running():
        results = await asyncio.gather(
            *(app.process({"content": f"n{n}", "chat_id": n}) for n in range(SESSIONS))
        )
        assert [r.model_output for r in results] == ["done"] * SESSIONS
        store = app.store()
        assert len(await store.sessions()) == SESSIONS
        for n in range(0, SESSIONS, 97):
            entries = await store.entries(f"default:{n}")
            assert [e.kind for e in entries] == [
                "turn", "message", "message", "tool_call", "tool_result", "message", "turn",
            ]  # fmt: skip
            assert entries[1].payload["message"]["content"] == f"n{n}"
            assert entries[4].payload["content"] == f"met n{n}"
            assert [e.parent_id for e in entries[1:]] == [e.id for e in entries[:-1]]
