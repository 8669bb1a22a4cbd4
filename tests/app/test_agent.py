"""`Agent`: embedded in a program, on the pipeline of the runtime."""

import asyncio
import gc
import signal
import threading
import weakref
from typing import Any

import pytest

from hookline import Agent, tool
from hookline.errors import AgentUsage, Blocked
from hookline.events import InputEvent, InputEventResult, ToolCallEvent, ToolCallEventResult
from hookline.hooks import hookimpl
from hookline.hooks.errors import HooklineError
from hookline.models import Call, ScriptedModel, Turn
from hookline.runtime import agent as agent_module
from hookline.tape.memory import MemoryTapeStore
from hookline.types import HookContext, TextPart

from .. import forks
from ..openai_server import OpenAIServer


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


def says(*texts: str) -> ScriptedModel:
    return ScriptedModel([Turn(text) for text in texts], repeat=True)


def calls(called: str, arguments: dict[str, Any], then: str = "done", **more: Any) -> ScriptedModel:
    return ScriptedModel([Turn(tool_calls=[Call(called, arguments)]), Turn(then)], repeat=True, **more)


# --- one run ----------------------------------------------------------------------------------------


async def test_a_run_answers_with_everything_that_belongs_to_it():
    agent = Agent(calls("weather", {"city": "Rome"}, "It is sunny."), tools=[weather])
    result = await agent.run("What is the weather in Rome?")
    assert (result.text, result.output, str(result)) == ("It is sunny.",) * 3
    assert [m["role"] for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    [call] = result.tool_calls
    assert (call.name, call.arguments, call.result) == ("weather", {"city": "Rome"}, "sunny in Rome")
    assert result.decisions == []
    assert result.cost is None


async def test_usage_and_cost_are_those_of_all_model_calls():
    turns = [
        Turn(tool_calls=[Call("weather", {"city": "Rome"})], usage={"input_tokens": 5, "cost": 0.5}),
        Turn("sunny", usage={"input_tokens": 7, "output_tokens": 2, "cost": 0.25}),
    ]
    result = await Agent(ScriptedModel(turns), tools=[weather]).run("hi")
    assert result.usage == {"input_tokens": 12, "output_tokens": 2, "cost": 0.75}
    assert result.cost == 0.75


async def test_the_model_sees_the_instructions_and_the_given_tools_and_nothing_else():
    model = says("hello")
    await Agent(model, instructions="Be brief.", tools=[weather]).run("hi")
    [request] = model.requests
    assert request.system == "Be brief."
    assert [each["name"] for each in request.tools] == ["weather"]
    assert request.messages[0] == {"role": "user", "content": "hi"}


async def test_an_agent_without_instructions_or_tools_sends_the_prompt_alone():
    model = says("hello")
    await Agent(model).run("read @pyproject.toml")
    [request] = model.requests
    assert (request.system, request.tools) == ("", [])
    assert request.messages[0]["content"] == "read @pyproject.toml"


async def test_a_prompt_can_have_parts():
    model = says("a cat")
    assert (await Agent(model).run([TextPart("what is this?")])).text == "a cat"
    assert model.requests[0].messages[0]["content"] == [TextPart("what is this?")]


async def test_every_run_is_a_new_conversation():
    model = says("hello")
    agent = Agent(model)
    first, second = await agent.run("one"), await agent.run("two")
    assert first.session != second.session
    assert [m["content"] for m in model.requests[1].messages[:1]] == ["two"]


async def test_a_session_continues_by_its_name_or_by_the_result_of_an_earlier_run():
    model = says("hello")
    agent = Agent(model)
    await agent.run("one", session="garden")
    await agent.run("two", session="garden")
    first = await agent.run("three")
    await agent.run("four", session=first.session)
    said = [[m["content"] for m in r.messages if m["role"] == "user"] for r in model.requests]
    assert said == [["one"], ["one", "two"], ["three"], ["three", "four"]]


async def test_conversations_without_a_name_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(agent_module, "REMEMBERED", 3)
    store = MemoryTapeStore()
    agent = Agent(says("hello"), tape=store)
    await agent.run("kept", session="garden")
    for number in range(10):
        await agent.run(str(number))
    names = [info.id for info in await store.sessions()]
    assert len(names) == 4
    assert "garden" in names
    [(_, scope)] = agent._scopes.items()
    assert len(scope.app.sessions._open) == 1


async def test_runs_of_one_agent_go_on_at_the_same_time():
    inside, both = 0, asyncio.Event()

    async def meet() -> str:
        """Wait for the other one."""
        nonlocal inside
        inside += 1
        if inside == 2:
            both.set()
        await both.wait()
        return "met"

    turns = [Turn(tool_calls=[Call("meet")])] * 2 + [Turn("done")]
    agent = Agent(ScriptedModel(turns, repeat=True), tools=[meet])
    results = await asyncio.gather(agent.run("a"), agent.run("b"))
    assert [result.text for result in results] == ["done", "done"]


# --- synchronous code -------------------------------------------------------------------------------


def test_run_sync_answers_and_a_later_call_uses_the_same_loop():
    loops = set()

    async def where() -> str:
        """Say where."""
        loops.add(asyncio.get_running_loop())
        return "here"

    agent = Agent(calls("where", {}), tools=[where])
    assert agent.run_sync("hi").text == agent.run_sync("hi").text == "done"
    assert len(loops) == 1


async def test_run_sync_works_where_a_loop_runs_and_between_awaited_runs():
    agent = Agent(says("hello"))
    assert (await agent.run("a")).text == "hello"
    assert agent.run_sync("b").text == "hello"
    assert (await agent.run("c")).text == "hello"


async def test_a_session_goes_on_from_synchronous_to_asynchronous_code():
    model = says("hello")
    agent = Agent(model)
    agent.run_sync("one", session="garden")
    await agent.run("two", session="garden")
    agent.run_sync("three", session="garden")
    assert [m["content"] for m in model.requests[-1].messages if m["role"] == "user"] == [
        "one", "two", "three",
    ]  # fmt: skip


def test_run_sync_from_several_threads():
    agent, texts = Agent(says("hello")), []
    threads = [
        threading.Thread(target=lambda: texts.append(agent.run_sync("hi").text)) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["hello"] * 5


def test_an_error_of_the_run_is_raised_by_run_sync():
    with pytest.raises(HooklineError, match="overloaded"):
        Agent(ScriptedModel([Turn(error="overloaded")])).run_sync("hi")


@pytest.mark.parametrize("awaited", [True, False], ids=["run", "run_sync"])
def test_run_sync_in_a_handler_of_the_same_agent_says_what_to_do(awaited):
    agent, errors = Agent(says("hello")), []

    @agent.hooks.on(InputEvent)
    def again(event: InputEvent) -> None:
        try:
            agent.run_sync("again")
        except AgentUsage as error:
            errors.append(str(error))

    if awaited:
        asyncio.run(agent.run("hi"))
    else:
        agent.run_sync("hi")
    [error] = errors
    assert "await agent.run(" in error


def test_a_tool_in_a_thread_may_call_run_sync_of_another_agent():
    inner = Agent(says("from inside"))

    def ask(question: str) -> str:
        """Ask the other one."""
        return inner.run_sync(question).text

    result = Agent(calls("ask", {"question": "?"}), tools=[ask]).run_sync("hi")
    assert result.tool_calls[0].result == "from inside"


# --- the end ----------------------------------------------------------------------------------------


class Life:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @hookimpl
    def hookline_startup(self) -> None:
        self.seen.append("startup")

    @hookimpl
    def session_shutdown(self, event: Any) -> None:
        self.seen.append(event.reason)

    @hookimpl
    def hookline_shutdown(self) -> None:
        self.seen.append("shutdown")


def test_the_end_of_the_event_loop_closes_the_agent_cleanly():
    life = Life()
    agent = Agent(says("hello"), plugins=[life])

    async def main() -> None:
        await agent.run("a", session="garden")
        await agent.run("b")
        assert life.seen == ["startup", "completed"]

    asyncio.run(main())
    assert life.seen == ["startup", "completed", "completed", "shutdown"]
    asyncio.run(agent.run("c"))
    assert life.seen[4:] == ["startup", "completed", "shutdown"]


async def test_close_closes_it_at_once_and_for_good():
    life = Life()
    async with Agent(says("hello"), plugins=[life]) as agent:
        await agent.run("a")
    assert life.seen[-1] == "shutdown"
    with pytest.raises(AgentUsage, match="closed; make a new one"):
        await agent.run("b")
    with pytest.raises(AgentUsage, match="closed; make a new one"):
        agent.run_sync("b")


async def test_a_model_that_agents_share_is_closed_with_the_last_of_them():
    closed = []

    class Shared(ScriptedModel):
        async def close(self) -> None:
            closed.append(1)

    model = Shared([Turn("hello")], repeat=True)
    first, second, unused = Agent(model), Agent(model), Agent(model)
    await first.run("a")
    await second.run("b")
    await first.close()
    assert closed == []
    await second.close()
    assert closed == [1]
    await unused.close()
    assert closed == [1]


async def test_close_reaches_the_background_loop():
    life = Life()
    agent = Agent(says("hello"), plugins=[life])
    agent.run_sync("a")
    await agent.close()
    assert life.seen == ["startup", "completed", "shutdown"]


async def test_an_agent_that_no_one_uses_any_more_is_closed_and_freed():
    life = Life()
    agent = Agent(says("hello"), plugins=[life])
    await agent.run("a")
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None
    for _ in range(100):
        await asyncio.sleep(0)
    assert life.seen[-1] == "shutdown"


def test_a_program_ends_without_a_word_and_its_plugins_are_closed():
    source = """
from hookline import Agent, hookimpl
from hookline.models import ScriptedModel, Turn

class Life:
    @hookimpl
    def hookline_shutdown(self):
        print("closed")

agent = Agent(ScriptedModel([Turn("hello")]), plugins=[Life()])
print(agent.run_sync("hi"))
"""
    done = forks.run(source)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\nclosed\n", "")


# --- embedded ---------------------------------------------------------------------------------------


def test_nothing_is_read_from_or_written_to_disk(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, home / "hooks", project / ".hookline" / "hooks"):
        folder.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text("this is = no settings file")
    (home / "hooks" / "own.py").write_text("raise SystemExit('loaded')")
    (project / ".hookline" / "config.toml").write_text("neither = is this")
    (project / ".hookline" / "hooks" / "own.py").write_text("raise SystemExit('loaded')")
    source = f"""
import os, sys
sys.dont_write_bytecode = True
os.chdir({str(project)!r})
from hookline import Agent
from hookline.models import Call, ScriptedModel, Turn

def long() -> str:
    "Say much."
    return "x" * 300_000

def turns():
    return ScriptedModel([Turn(tool_calls=[Call("long")]), Turn("hello")], repeat=True)

Agent(turns(), tools=[long]).run_sync("warm up the imports")
opened = []
sys.addaudithook(lambda event, args: opened.append((event, args)) if event in (
    "open", "os.mkdir", "os.listdir", "os.scandir", "sqlite3.connect", "os.rename") else None)
agent = Agent(turns(), tools=[long], policy="ask")

@agent.hooks.on("resolve_approval")
def yes(request):
    return "approve"

result = agent.run_sync("hi", session="named")
assert len(result.tool_calls[0].result) < 100_000
def harmless(event, args):
    imported = str(args[0]).endswith((".pyc", ".py", ".so")) and {str(tmp_path)!r} not in str(args[0])
    return event == "sqlite3.connect" and args == (":memory:",) or event == "open" and imported

print([each for each in opened if not harmless(*each)])
"""
    done = forks.run(source, env={"HOOKLINE_HOME": str(home), "HOOKLINE_MODEL": "none:such"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[]\n"
    assert sorted(p.name for p in home.iterdir()) == ["config.toml", "hooks"]


# --- hooks and policy -------------------------------------------------------------------------------


async def test_an_exception_in_the_handler_of_a_gate_denies():
    agent = Agent(calls("weather", {"city": "Rome"}), tools=[weather])

    @agent.hooks.on(ToolCallEvent)
    def broken(event: ToolCallEvent) -> None:
        raise KeyError("city")

    [call] = (await agent.run("hi")).tool_calls
    assert call.is_error
    assert "KeyError" in call.result


async def test_decisions_and_why_name_who_decided_what():
    agent = Agent(calls("weather", {"city": "Rome"}), tools=[weather])

    @agent.hooks.on(ToolCallEvent)
    def not_rome(event: ToolCallEvent) -> ToolCallEventResult:
        return ToolCallEventResult(block=True, reason="not Rome")

    @agent.hooks.on(InputEvent)
    def louder(event: InputEvent) -> InputEventResult:
        return InputEventResult(action="transform", text=event.text.upper())

    result = await agent.run("hi")
    assert [(d.on, d.decision, d.reason) for d in result.decisions] == [
        ("input", "allow", None),
        ("weather", "deny", "not Rome"),
    ]
    assert "not_rome denied weather: not Rome" in result.why()
    assert "louder rewrote input (text)" in result.why()


async def test_a_blocked_prompt_is_an_error_and_a_handled_one_an_answer():
    agent = Agent(says("hello"))

    @agent.hooks.on(InputEvent)
    def judge(event: InputEvent) -> InputEventResult:
        action = "handled" if event.text == "time" else "block"
        return InputEventResult(action=action, reason="it is noon")

    result = await agent.run("time")
    assert (result.text, result.messages[-1]["content"]) == ("it is noon", "it is noon")
    with pytest.raises(Blocked, match=r"the prompt was blocked by .*judge: it is noon"):
        await agent.run("anything else")


async def test_handlers_can_be_given_with_the_agent():
    seen: list[Any] = []

    def first(event: ToolCallEvent, ctx: HookContext) -> None:
        seen.append((event.tool_name, ctx.agent_id))

    agent = Agent(
        calls("weather", {"city": "Rome"}),
        tools=[weather],
        hooks=[first, ("agent_end", lambda event: seen.append(event.type))],
        name="clerk",
    )
    await agent.run("hi")
    assert seen == [("weather", "clerk"), "agent_end"]


@pytest.mark.parametrize(
    ("policy", "runs"),
    [(None, True), ("allow", True), ("deny", False), ("ask", False), ({"default": "deny"}, False)],
)
async def test_a_policy_decides_which_tools_run(policy, runs):
    agent = Agent(calls("weather", {"city": "Rome"}), tools=[weather], policy=policy)
    [call] = (await agent.run("hi")).tool_calls
    assert call.is_error is not runs


async def test_a_budget_of_the_policy_counts_what_a_session_spends():
    turns = [Turn(tool_calls=[Call("weather", {"city": "Rome"})])] * 3 + [Turn("done")]
    policy = {"default": "allow", "packs": ["budgets"], "budgets": {"calls": 2}}
    agent = Agent(ScriptedModel(turns), tools=[weather], policy=policy)
    result = await agent.run("hi")
    assert [call.is_error for call in result.tool_calls] == [False, False, True]


async def test_the_hooks_of_a_turn_under_the_command_line_fire_in_an_agent(app):
    """The same plugin sees the same hooks, in the same order."""
    seen: dict[str, list[str]] = {}

    def watch(hooks: Any, name: str) -> None:
        seen[name] = []
        hooks.trace(lambda dispatch: seen[name].append(dispatch.hook))

    app.tools.add(tool(weather, name="weather"))
    app.models.add(calls("weather", {"city": "Rome"}))
    app.model = "scripted"
    app.passive = True
    watch(app.hooks, "app")
    async with app.running():
        await app.process({"content": "hi"})
    agent = Agent(calls("weather", {"city": "Rome"}), tools=[weather])
    watch(agent.hooks, "agent")
    await agent.run("hi")
    await agent.close()
    only_app = {"resolve_session", "resources_discover", "resources_loaded"}
    only_app |= {"register_skills", "register_stores", "register_cli_commands"}
    missing = [name for name in seen["app"] if name not in seen["agent"]]
    assert set(missing) <= only_app
    assert "tool_call" in seen["agent"]


# --- agents as tools --------------------------------------------------------------------------------


def shell(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


def nested(command: str, **options: Any) -> tuple[Agent[str], Agent[str]]:
    child = Agent(calls("shell", {"command": command}), tools=[shell], name="worker", **options)
    parent = Agent(calls("worker", {"prompt": "do it"}, "all done", name="outer"), tools=[child])
    return parent, child


async def test_an_agent_is_a_tool_with_its_name_and_one_argument():
    parent, child = nested("ls")
    made = child.as_tool()
    assert made.name == "worker"
    assert list(made.parameters["properties"]) == ["prompt"]
    [call] = (await parent.run("hi")).tool_calls
    assert (call.name, call.result) == ("worker", "done")


async def test_the_guards_of_the_parent_hold_in_the_child():
    parent, child = nested("sudo rm")
    ran = []

    @parent.hooks.on(ToolCallEvent, when="shell")
    def no_sudo(event: ToolCallEvent, ctx: HookContext) -> ToolCallEventResult:
        ran.append((ctx.depth, ctx.agent_id))
        return ToolCallEventResult(block=True, reason="not as root")

    result = await parent.run("hi")
    assert ran == [(1, "worker")]
    assert any(d.on == "shell" and d.reason == "not as root" for d in result.decisions)
    alone = await child.run("hi")  # on its own it has only its own guards
    assert alone.tool_calls[0].result == "ran sudo rm"
    assert ran == [(1, "worker")]


@pytest.mark.parametrize("kind", ["policy", "authorize", "scoped", "rewrite"])
async def test_whatever_the_parent_guards_with_holds_in_the_child(kind):
    child = Agent(calls("shell", {"command": "ls"}), tools=[shell], name="worker")
    outer = calls("worker", {"prompt": "do it"}, name="outer")
    results = []
    child.hooks.on("after_tool_call")(lambda result: results.append(result))
    policy = {"floor": {"deny": {"tools": ["shell"]}}} if kind == "policy" else None
    parent = Agent(outer, tools=[child], policy=policy)
    if kind == "authorize":
        parent.hooks.on("authorize_action")(lambda action: action["tool"] != "shell")
    if kind == "scoped":
        deny = ToolCallEventResult(block=True)
        parent.hooks.scope("garden").register(ToolCallEvent, lambda event: deny, when="shell")
    if kind == "rewrite":
        changed = ToolCallEventResult(input={"command": "true"})
        parent.hooks.register(ToolCallEvent, lambda event: changed, when="shell")
    await parent.run("hi", session="garden")
    assert results == (["ran true"] if kind == "rewrite" else [])


async def test_guards_hold_through_two_generations_and_in_a_run_that_a_tool_starts_itself():
    inner = Agent(calls("shell", {"command": "ls"}), tools=[shell], name="inner")

    async def delegate(task: str) -> str:
        """Give it to another agent."""
        return (await inner.run(task)).text

    middle = Agent(calls("delegate", {"task": "x"}, name="m"), tools=[delegate], name="middle")
    outer = Agent(calls("middle", {"prompt": "x"}, name="o"), tools=[middle])
    seen = []

    @outer.hooks.on(ToolCallEvent)
    def watch(event: ToolCallEvent, ctx: HookContext) -> None:
        seen.append((event.tool_name, ctx.depth))

    await outer.run("hi")
    assert seen == [("middle", 0), ("delegate", 1), ("shell", 2)]


async def test_a_session_that_waits_for_its_own_tool_call_says_so():
    agents: list[Agent[str]] = []

    async def again(question: str) -> str:
        """Ask in the same conversation."""
        return (await agents[0].run(question, session="garden")).text

    agents.append(Agent(calls("again", {"question": "?"}), tools=[again]))
    [call] = (await agents[0].run("hi", session="garden")).tool_calls
    assert "waits for the tool call that would continue it" in call.result


async def test_a_named_session_under_two_parents_has_the_guards_of_each_in_turn():
    started, ran = asyncio.Event(), []

    async def shell(command: str) -> str:
        """Run a command."""
        started.set()
        await asyncio.sleep(0)
        ran.append(command)
        return "ok"

    child = Agent(calls("shell", {"command": "ls"}), tools=[shell], name="child")

    async def delegate(task: str) -> str:
        """Delegate."""
        return (await child.run(task, session="shared")).text

    def parent(name: str) -> Agent[str]:
        return Agent(calls("delegate", {"task": "x"}, name=name), tools=[delegate])

    loose, strict = parent("a"), parent("b")

    @strict.on.tool_call(when="shell")
    def never(event: ToolCallEvent) -> ToolCallEventResult:
        return event.deny("never")

    first = asyncio.create_task(loose.run("hi"))
    await started.wait()
    result = await strict.run("hi")
    await first
    assert ran == ["ls"]
    assert any(decision.reason == "never" for decision in result.decisions)


async def test_the_usage_of_a_child_counts_for_its_parent():
    child = Agent(ScriptedModel([Turn("x", usage={"output_tokens": 7})]), name="worker")
    turns = [Turn(tool_calls=[Call("worker", {"prompt": "?"})]), Turn("y", usage={"output_tokens": 1})]
    parent = Agent(ScriptedModel(turns, name="outer"), tools=[child])
    assert (await parent.run("hi")).usage == {"output_tokens": 8}


async def test_agents_that_call_each_other_without_end_stop():
    agents: list[Agent[str]] = []

    async def again(question: str) -> str:
        """Ask once more."""
        return (await agents[0].run(question)).text

    agents.append(Agent(calls("again", {"question": "?"}), tools=[again]))
    turns = [Turn(tool_calls=[Call("again", {"question": "?"})])] * 4 + [Turn("done")]
    agents[0] = Agent(ScriptedModel(turns, repeat=True), tools=[again])
    result = await agents[0].run("hi")
    assert result.text == "done"


# --- from here on: a home, the terminal, a gateway ------------------------------------------------


async def test_an_agent_with_a_home_has_what_the_user_configured(tmp_path):
    home = tmp_path / "home"
    (home / "profiles" / "default" / "hooks").mkdir(parents=True)
    (home / "config.toml").write_text('model = "scripted:turns.py"\n[policy]\ndefault = "deny"\n')
    (home / "profiles" / "default" / "hooks" / "mark.py").write_text(
        "hooks = [('system_prompt', lambda: 'From a hook file.')]"
    )
    model = calls("read_file", {"path": "x"})
    agent = Agent.from_home(
        model, home=home, workspace=tmp_path, tools=[weather], instructions="Brief."
    )
    result = await agent.run("hi")
    assert "From a hook file." in model.requests[0].system
    assert "Brief." in model.requests[0].system
    assert {"weather", "read_file"} <= {each["name"] for each in model.requests[0].tools}
    assert "denied" in result.tool_calls[0].result
    assert [d.decision for d in result.decisions] == ["deny"]
    await agent.close()
    assert (home / "tape.db").exists() or any(home.glob("*.db"))


def test_an_agent_with_a_home_runs_again_in_another_loop_but_not_in_two_at_once(tmp_path):
    agent = Agent.from_home(says("hello"), home=tmp_path / "home", workspace=tmp_path)
    assert asyncio.run(agent.run("a")).text == asyncio.run(agent.run("b")).text == "hello"

    async def both() -> None:
        await agent.run("c")
        agent.run_sync("d")

    with pytest.raises(AgentUsage, match="one event loop at a time"):
        asyncio.run(both())


SERVED = """
from hookline import Agent
from hookline.models import ScriptedModel, Turn

agent = Agent(ScriptedModel([Turn("hello")], repeat=True))

@agent.on.input
def noon(event):
    if event.text == "time?":
        return event.handled("noon")
    if event.text == "secret":
        return event.deny("not here")

"""


def test_chat_talks_in_the_terminal_with_the_hooks_of_the_agent(tmp_path):
    env = {"HOOKLINE_HOME": str(tmp_path / "home"), "TERM": "dumb"}
    done = forks.run(f"{SERVED}agent.chat()", stdin="hi\ntime?\nsecret\n", env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in ("hello", "noon", "not here"):
        assert said in done.stdout + done.stderr
    assert [*tmp_path.iterdir()] == []


async def test_serve_is_a_gateway_with_the_hooks_of_the_agent(tmp_path):
    aiohttp = pytest.importorskip("aiohttp")
    pytest.importorskip("starlette")
    env = {"HOOKLINE_HOME": str(tmp_path / "home")}
    process = forks.start(
        f"{SERVED}agent.serve(port=0, token='a-token-for-this-test')",
        stdin=forks.subprocess.DEVNULL,
        stdout=forks.subprocess.DEVNULL,
        stderr=forks.subprocess.PIPE,
        env=env,
        cwd=tmp_path,
    )
    try:
        line = await asyncio.to_thread(process.stderr.readline)
        address = line.split()[-1].partition("#")[0].rstrip("/")
        headers = {"Authorization": "Bearer a-token-for-this-test"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for asked, answer in (("hi", "hello"), ("time?", "noon")):
                body = {"model": "hookline", "messages": [{"role": "user", "content": asked}]}
                async with session.post(f"{address}/v1/chat/completions", json=body) as reply:
                    found = await reply.json()
                assert found["choices"][0]["message"]["content"] == answer
    finally:
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 20) == 0
        process.stderr.close()
    assert [*tmp_path.iterdir()] == []


async def test_commands_are_refused_where_a_loop_runs():
    with pytest.raises(AgentUsage, match="call it from synchronous code"):
        Agent(says("x")).serve()


# --- streams ----------------------------------------------------------------------------------------


async def test_a_stream_shows_the_answer_as_it_comes_and_has_its_result():
    agent = Agent(ScriptedModel([Turn("hello world", chunk=4)]))
    async with agent.stream("hi") as stream:
        events = [event async for event in stream]
        result = await stream.result()
    assert [e.data["delta"] for e in events if e.kind == "text"] == ["hell", "o wo", "rld"]
    assert events[-1].kind == "final"
    assert result.text == "hello world"


async def test_leaving_a_stream_early_cancels_the_run():
    cancelled = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    agent = Agent(calls("wait", {}), tools=[wait])
    async with agent.stream("hi") as stream:
        async for _ in stream:
            break
    assert cancelled.is_set() or stream._task.cancelled()
    assert (await Agent(says("ok")).run("hi")).text == "ok"


async def test_an_error_of_a_stream_that_no_one_reads_is_not_reported_later():
    async with Agent(ScriptedModel([Turn(error="overloaded")])).stream("hi") as stream:
        await asyncio.wait([stream._task])
    gc.collect()


async def test_an_error_reaches_the_reader_of_a_stream():
    async with Agent(ScriptedModel([Turn(error="overloaded")])).stream("hi") as stream:
        with pytest.raises(HooklineError, match="overloaded"):
            async for _ in stream:
                pass


# --- what is wrong is said in one line ------------------------------------------------------------


def plain(city):
    return city


async def coroutine(city: str) -> str:
    return city


def for_nothing(event: "NoSuchEvent"): ...  # noqa: F821


def for_no_event(event: HookContext): ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": [plain]}, r"'plain' has a parameter without a type, 'city'.*write `city: str`"),
        ({"tools": [weather, tool(plain, name="weather")]}, r"two tools are named 'weather'"),
        ({"tools": ["weather"]}, r"a tool is a function, not 'weather'"),
        ({"tools": "weather"}, r"tools= takes a list of functions, not str"),
        ({"hooks": [plain]}, r"cannot tell which event plain handles.*ToolCallEvent"),
        ({"plugins": ["mine"]}, r"plugins= takes plugin objects, not 'mine'.*from_home"),
        ({"tools": [Agent("local")]}, r"an agent needs a name to be a tool"),
        ({"hooks": [("tool_cal", plain)]}, r"unknown hook 'tool_cal'; did you mean 'tool_call'"),
        ({"hooks": [(dict, plain)]}, r"unknown hook 'dict'"),
        ({"hooks": [for_nothing]}, r"for_nothing handles: its annotations name 'NoSuchEvent', which"),
        ({"hooks": [for_no_event]}, r"cannot tell which event for_no_event handles: annotate"),
        ({"output": object()}, r"has no JSON schema.*use a dataclass"),
    ],
)
def test_what_cannot_be_part_of_an_agent_is_refused_at_once(options, message):
    with pytest.raises(HooklineError, match=message):
        Agent("local", **options)


def test_a_coroutine_in_the_place_of_a_function_is_named():
    with pytest.raises(AgentUsage, match=r"pass `coroutine`, not `coroutine\(...\)`"):
        Agent("local", tools=[coroutine("Rome")])
    with pytest.raises(AgentUsage, match=r"pass `coroutine`, not `coroutine\(...\)`"):
        Agent("local", hooks=[coroutine("Rome")])


def test_a_coroutine_in_the_place_of_a_handler_is_named():
    with pytest.raises(HooklineError, match=r"pass `coroutine`, not `coroutine\(...\)`"):
        Agent("local").on.tool_call(coroutine("Rome"))  # type: ignore[call-overload]


@pytest.mark.parametrize("attach", [lambda on: on.tool_cal, lambda on: on("tool_cal")(plain)])
def test_a_handler_for_an_event_that_does_not_exist_is_told_the_nearest_name(attach):
    with pytest.raises((HooklineError, AttributeError), match="'tool_cal'; did you mean 'tool_call'"):
        attach(Agent("local").on)


def test_a_closed_agent_neither_chats_nor_serves():
    agent = Agent(says("hello"))
    asyncio.run(agent.close())
    for use in (agent.chat, agent.serve):
        with pytest.raises(AgentUsage, match="closed; make a new one"):
            use()


@pytest.mark.parametrize("model", ["", " ", 5, None, ScriptedModel])
def test_what_is_no_model_is_refused_at_once(model):
    with pytest.raises(AgentUsage, match="an agent needs a model: a name such as 'openai:gpt-5'"):
        Agent(model)


def test_an_unknown_policy_is_named_with_the_nearest_one():
    with pytest.raises(AgentUsage, match="did you mean 'allow'"):
        Agent("local", policy="alow")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("gpt-5", "did you mean 'openai:gpt-5'"),
        ("opnai:gpt-5", "did you mean 'openai:gpt-5'"),
        ("claude-opus-4-5", "did you mean 'anthropic:claude-opus-4-5'"),
        ("gemini-2.5-pro", "did you mean 'google:gemini-2.5-pro'"),
        ("openai:", "name a model: openai:MODEL"),
        ("anthropic:claude-opus-4-5", "anthropic needs a key: set ANTHROPIC_API_KEY"),
        ("google:gemini-2.5-pro", "google needs a key: set GOOGLE_API_KEY"),
        ("openai:gpt-5", "openai needs a key: set OPENAI_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_asked_is_explained(model, message, monkeypatch):
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    with pytest.raises(HooklineError, match=message):
        Agent(model).run_sync("hi")


def test_a_wrong_key_is_explained_without_showing_it(monkeypatch):
    with OpenAIServer(["hello"]) as server:
        for name, value in {**server.environment, "OPENAI_API_KEY": "sk-wrong-key"}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(HooklineError, match="OPENAI_API_KEY") as raised:
            Agent("openai:gpt-5").run_sync("hi")
    assert "sk-wrong-key" not in str(raised.value)


def test_a_prompt_of_another_kind_is_refused():
    with pytest.raises(AgentUsage, match="a prompt is text or a list of parts, not dict"):
        Agent(says("x")).run_sync({"content": "hi"})  # type: ignore[arg-type]
