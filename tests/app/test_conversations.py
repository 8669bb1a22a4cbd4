"""What a model is sent when hooks and other processes change a conversation between turns."""

import pytest

from hookline import Agent
from hookline.runtime import sessions
from hookline.tape import SQLiteStore, Tape
from tests.openai_server import OpenAIServer


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def server(monkeypatch):
    def answer(body):
        return ("add", {"a": 1, "b": 2}) if body["messages"][-1]["role"] == "user" else "three"

    with OpenAIServer([answer]) as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
async def store(tmp_path):
    made = SQLiteStore(tmp_path / "tape.db")
    yield made
    await made.close()


def texts(body):
    return [message["content"] for message in body["messages"] if message["role"] == "user"]


async def test_a_handler_that_changes_messages_in_place_changes_that_turn_only(server, store):
    turns = iter(range(100))

    async with Agent("openai:gpt-x", tools=[add], tape=store) as agent:

        @agent.on.before_agent_start
        def count(event):
            state["turn"] = next(turns)

        @agent.on.context
        def rewrite(event):
            if state["turn"] % 2 and len(event.messages) > 3:
                event.messages[0]["content"] = "changed in place"
                event.messages[1]["tool_calls"][0]["arguments"] = '{"changed": 1}'
                event.messages[2] = {**event.messages[2], "content": "replaced"}

        state = {}
        for turn in range(6):
            server.requests.clear()
            await agent.run(f"question {turn}", session="s")
            for body in server.requests:
                changed = bool(turn % 2)
                first, call, result = body["messages"][:3] if turn else ({}, {}, {})
                if not turn:
                    continue
                assert first["content"] == ("changed in place" if changed else "question 0")
                arguments = call["tool_calls"][0]["function"]["arguments"]
                assert (arguments == '{"changed": 1}') is changed
                assert result["content"] == ("replaced" if changed else "3")
                assert texts(body)[1:] == [f"question {n}" for n in range(1, turn + 1)]


async def test_what_another_process_did_to_the_session_is_sent(server, store):
    other = SQLiteStore(store.path)
    async with Agent("openai:gpt-x", tools=[add], tape=store) as agent:

        async def asked(question):
            server.requests.clear()
            await agent.run(question, session="s")
            return texts(server.requests[-1])

        await asked("one")
        assert await asked("two") == ["one", "two"]
        tape = await Tape.open(other, "s")
        await tape.append("message", {"message": {"role": "user", "content": "from elsewhere"}})
        assert await asked("three") == ["one", "two", "from elsewhere", "three"]

        await (tape := await Tape.open(other, "s")).switch((await tape.branch())[1].id)
        assert await asked("four") == ["one", "four"]

        await (tape := await Tape.open(other, "s")).anchor("compaction", summary="so far")
        said = await asked("five")
        assert [text.endswith("so far") for text in said] == [True, False]

        await (tape := await Tape.open(other, "s")).handoff("next", state={"step": 6})
        said = await asked("six")
        assert ('"step": 6' in said[0], said[1:]) == (True, ["six"])
    await other.close()


async def test_conversations_of_other_sessions_do_not_mix(server, store, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_KEPT", 2)
    async with Agent("openai:gpt-x", tools=[add], tape=store) as agent:
        for turn in range(3):
            for session in "abc":  # one more than are kept
                server.requests.clear()
                await agent.run(f"{session}{turn}", session=session)
                expected = [f"{session}{n}" for n in range(turn + 1)]
                assert [texts(body) for body in server.requests] == [expected, expected]
        app = await agent._app()
        assert len(app.sessions._conversations) == 2
        await app.sessions.close("c")
        assert "c" not in app.sessions._conversations
