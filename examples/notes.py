"""A plugin that keeps notes in a store, with one tool that writes them and one that only reads."""

import asyncio
import tempfile
from pathlib import Path

from hookline import hookimpl
from hookline.ext.stores import DocStore, Stores
from hookline.models import Call, ScriptedModel, Turn
from hookline.runtime.app import Hookline
from hookline.specs import StoreProtocol, StoreSpec
from hookline.tools import ToolContext, tool


@tool(side_effects="write", permissions=["db.notes:write"], registry=None)
async def note(text: str, ctx: ToolContext) -> str:
    """Keep a note."""
    await Stores.of(ctx.app).get("notes", DocStore).add("notes", {"text": text})
    return "kept"


@tool(side_effects="read", permissions=["db.notes:read"], registry=None)
async def find(words: str, ctx: ToolContext) -> list[str]:
    """Find notes by their words."""
    found = await Stores.of(ctx.app).get("notes", DocStore).search(words)
    return [document.data["text"] for document in found]


@tool(side_effects="read", permissions=["db.notes:read"], registry=None)
async def tidy(ctx: ToolContext) -> str:
    """Delete notes, which nobody allowed."""
    await Stores.of(ctx.app).get("notes", DocStore).delete("notes", ["1"])
    return "tidied"


class Notes:
    @hookimpl
    def register_stores(self):
        return [StoreSpec(name="notes", provider="sqlite", protocol=StoreProtocol.doc)]

    @hookimpl
    def register_tools(self):
        return [note, find, tidy]


async def main(folder: Path):
    app = Hookline(home=folder / "home", workspace=folder)
    app.load_hooks(packages=False)
    app.hooks.add(Notes())
    app.hooks.register("resolve_approval", lambda request: "approve")  # a person would be asked
    model = ScriptedModel(
        [
            Turn(tool_calls=[Call("note", {"text": "Zoë likes green tea"})]),
            Turn(tool_calls=[Call("find", {"words": "TEA zoe"}), Call("tidy")]),
            "Done.",
        ]
    )
    app.models.add(model)
    app.model = model.name
    async with app.running():
        await app.process({"content": "Remember that Zoë likes green tea."})
    for message in model.requests[-1].messages:
        if message["role"] == "tool":
            print(message["content"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
