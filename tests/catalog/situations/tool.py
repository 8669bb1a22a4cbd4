"""Around tools and models, and the events of a tool call."""

from hookline.events import ImagePart
from hookline.models.script import Call, Turn
from hookline.tools import tool
from hookline.tools.registry import Registry

from . import Stage, situation

LOCAL = Registry()


@situation("bootstrap_files")
async def the_projects_notes_are_in_the_system_prompt(stage: Stage) -> None:
    (stage.folder / "AGENT-notes.md").write_text("Use tabs.")
    await stage.turn()
    assert "Use tabs." in stage.model.requests[0].system


@situation("before_tool_call")
async def a_relative_path_is_read_from_the_workspace(stage: Stage) -> None:
    assert await result_of(stage, fs_where, path="notes.md") == f"{stage.folder}/notes.md"


@situation("tool_call")
async def deleting_everything_is_refused_and_deleting_anything_is_asked_about(stage: Stage) -> None:
    asked: list[str] = []

    def reject(request: dict[str, str]) -> str:
        asked.append(request["question"])
        return "reject"

    stage.app.hooks.register("resolve_approval", reject)
    calls = [Call("shell", {"command": "rm -rf /"}), Call("shell", {"command": "rm notes.md"})]
    await stage.turn("tidy up", Turn(tool_calls=calls), "I may not.")
    results = [m["content"] for m in stage.model.requests[1].messages if m["role"] == "tool"]
    assert "this would delete everything" in results[0]
    assert len(asked) == 1
    assert "rm notes.md" in asked[0]


@situation("after_tool_call")
async def long_text_is_cut_before_the_model_reads_it(stage: Stage) -> None:
    seen = await result_of(stage, talk, words=10_000)
    assert seen.endswith("[talk: cut, 50000 characters in all]")
    assert len(seen) < 20_100


@situation("tool_result")
async def keys_are_blackened(stage: Stage) -> None:
    assert await result_of(stage, show, text="the key is sk-abcdefgh12") == "the key is [key]"


@situation("tool_result_persist")
async def the_tape_has_the_size_of_the_picture(stage: Stage) -> None:
    await result_of(stage, screenshot)
    async with stage.running():
        [entry] = await stage.app.store().entries("s", kinds={"tool_result"})
    assert entry.payload["content"] == "[a picture of 4 bytes]"


@situation("around_tool_call")
async def a_tool_that_timed_out_is_tried_once_more(stage: Stage) -> None:
    tries: list[int] = []

    @tool(side_effects="none", registry=Registry())
    def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise TimeoutError
        return "at last"

    assert await result_of(stage, flaky) == "at last"


@situation("around_model_call")
async def a_short_message_is_answered_by_a_small_model(stage: Stage) -> None:
    small = stage.script("Small.", repeat=True)
    large = stage.script("Large.", name="large", repeat=True)
    async with stage.running():
        assert (await stage.say("hi")).model_output == "Small."
        assert (await stage.say("a long question " * 10)).model_output == "Large."
    assert (len(small.requests), len(large.requests)) == (1, 1)


@situation("on_loop_warning")
async def an_agent_that_is_stuck_is_logged(stage: Stage) -> None:
    again = Turn(tool_calls=[Call("list_files")])
    await stage.turn("look", again, again, again, "Enough.")
    assert stage.logged()[0].startswith("s: list_files repeats")


@situation("on_turn_start")
@situation("on_turn_end")
async def the_turn_is_timed(stage: Stage) -> None:
    await stage.turn()
    assert stage.logged()[-1].startswith("main: 5 characters in 0.")
    assert stage.plugin.started == {}


@situation("tool_execution_start")
@situation("tool_execution_end")
async def the_call_is_timed_and_counted(stage: Stage) -> None:
    await result_of(stage, show, text="hi")
    assert stage.plugin.uses == {"show": 1}
    assert stage.logged()[0].startswith("show took 0.")


@situation("tool_execution_update")
async def the_person_sees_the_last_line_of_a_long_job(stage: Stage) -> None:
    @tool(side_effects="none", registry=Registry())
    def build():
        yield "compiling\nlinking"
        yield "done"

    await result_of(stage, build)
    assert "linking" in stage.channel.notes


@situation("tool_execution_failure")
async def what_breaks_is_counted(stage: Stage) -> None:
    @tool(side_effects="none", registry=Registry())
    def broken() -> str:
        raise ValueError("it broke")

    await result_of(stage, broken)
    assert stage.plugin.failures == {"broken": 1}


@tool(side_effects="none", registry=LOCAL)
def fs_where(path: str) -> str:
    return path


@tool(side_effects="none", registry=LOCAL)
def talk(words: int) -> str:
    return "word " * words


@tool(side_effects="none", registry=LOCAL)
def show(text: str) -> str:
    return text


@tool(side_effects="none", registry=LOCAL)
def screenshot() -> ImagePart:
    return ImagePart(b"\x89PNG", "image/png")


async def result_of(stage: Stage, used, **arguments: object) -> str:
    """Have the model call a tool, and return what the model reads of its result."""
    stage.app.tools.add(used)
    await stage.turn("go", Turn(tool_calls=[Call(used.name, arguments)]), "Done.")
    return stage.model.requests[1].messages[-1]["content"]
