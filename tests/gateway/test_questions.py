"""Notes and questions of hooks at the doors of the gateway, but for the page and Telegram."""

import asyncio
import json

import pytest

from .conftest import bearer, frames_until
from .test_process import QUICK, embedded


def asking(app, *choices, name="agent_end", **options):
    """Have a hook tell a note and ask a question; gives the answers."""
    answers = []

    async def talk(event, ctx):
        ctx.notify("x\u202e")
        answers.append(await ctx.ask("Proceed?", choices, **options))

    app.hooks.register(name, talk)
    return answers


def reply(asked, answer):
    return json.dumps({"type": "answer", "id": asked["id"], "hash": asked["hash"], "answer": answer})


class TestWebSocket:
    @pytest.mark.parametrize("name", ["message:receive", "input", "agent_end", "settled"])
    async def test_the_sender_sees_the_note_and_answers_the_question(self, served, scripted, app, name):
        scripted("Hello.")
        answers = asking(app, "yes", "no", name=name)
        async with served() as at, at.ws() as socket:
            await socket.send('{"type": "message", "id": "a", "text": "hi"}')
            frames = await frames_until(socket, "question")
            assert {"type": "note", "text": "x\u202e"} in frames
            asked = frames[-1]
            assert asked["question"] == "Proceed?"
            assert asked["choices"] == [{"answer": w, "label": w} for w in ("yes", "no")]
            await socket.send(reply(asked, "maybe"))
            wrong = (await frames_until(socket, "error"))[-1]
            assert "must be one of: yes, no" in wrong["message"]
            await socket.send(reply(asked, "yes"))
            done = (await frames_until(socket, "answered"))[-1]
        assert done == {"type": "answered", "id": asked["id"], "answer": "yes"}
        assert answers == ["yes"]

    async def test_an_answer_is_bound_to_what_was_shown(self, served, scripted, app):
        scripted("Hello.")
        answers = asking(app, "yes", "no")
        async with served() as at, at.ws() as socket:
            await socket.send('{"type": "message", "id": "a", "text": "hi"}')
            asked = (await frames_until(socket, "question"))[-1]
            await socket.send(reply({**asked, "hash": "0" * 64}, "yes"))
            assert "another call" in (await frames_until(socket, "error"))[-1]["message"]
            await socket.send(reply(asked, "no"))
            await frames_until(socket, "end")
        assert answers == ["no"]

    async def test_a_page_that_is_loaded_again_shows_the_question_again(self, served, scripted, app):
        scripted("Hello.")
        answers = asking(app, "yes", "no")
        async with served() as at:
            async with at.ws() as socket:
                await socket.send('{"type": "message", "id": "a", "text": "hi"}')
                asked = (await frames_until(socket, "question"))[-1]
            async with at.ws() as socket:
                again = (await frames_until(socket, "question"))[-1]
                assert again["id"] == asked["id"]
                await socket.send(reply(again, "yes"))
                await frames_until(socket, "end")
        assert answers == ["yes"]


class TestHTTP:
    async def test_a_question_is_listed_and_answered_by_those_who_may(self, served, scripted, app):
        scripted("Hello.")
        answers = asking(app)
        users = {
            "ada": {"token": "t-of-ada-0123456789", "role": "user"},
            "bob": {"token": "t-of-bob-0123456789", "role": "user", "approves": False},
        }
        async with served(users=users) as at:
            for name, allowed in (("bob", False), ("ada", True)):
                head = {"headers": bearer(users[name]["token"])}
                url = f"{at.url}api/sessions/web:x/messages"
                waiting = asyncio.ensure_future(at.http.post(url, json={"text": "hi"}, **head))
                listed = []
                while not listed:
                    async with at.http.get(f"{at.url}api/approvals", **head) as response:
                        listed = await response.json()
                [asked] = listed
                assert (asked["type"], asked["question"], asked["choices"]) == (
                    "question",
                    "Proceed?",
                    [],
                )
                body = {"answer": "in Paris", "hash": asked["hash"]}
                answer = f"{at.url}api/approvals/{asked['id']}"
                async with at.http.post(answer, json=body, **head) as response:
                    assert response.status == (200 if allowed else 403)
                if not allowed:
                    async with at.http.post(answer, json=body) as response:  # the operator
                        assert response.status == 200
                (await waiting).close()
        assert answers == ["in Paris", "in Paris"]

    async def test_the_openai_endpoint_takes_the_default(self, served, scripted, app):
        scripted("Hello.")
        answers = asking(app, "yes", "no", default="no")
        async with served() as at:
            body = {"model": "hookline", "messages": [{"role": "user", "content": "hi"}]}
            async with at.http.post(f"{at.url}v1/chat/completions", json=body) as response:
                assert (await response.json())["choices"][0]["message"]["content"] == "Hello."
        assert answers == ["no"]


HOOKS = """
async def talk(event, ctx):
    ctx.notify("x")
    ctx.notify("the answer is " + await ctx.ask("Proceed?", ["yes", "no"], default="no"))
hooks = [("agent_end", talk)]
"""


@pytest.mark.parametrize("ends", [False, True])
def test_stdio_sends_notes_and_questions_and_takes_the_default_when_its_input_ends(tmp_path, ends):
    hooks = tmp_path / "home" / "profiles" / "default" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "talk.py").write_text(HOOKS)
    with embedded(tmp_path, QUICK) as agent:
        agent.write(type="message", id="m1", text="go")
        frames = agent.until("question")
        assert {"type": "note", "text": "x"} in frames
        if ends:
            agent.process.stdin.close()
        else:
            agent.write(type="answer", id=frames[-1]["id"], answer="yes", hash=frames[-1]["hash"])
        rest = agent.until("end")
    said = "no" if ends else "yes"
    assert {"type": "note", "text": f"the answer is {said}"} in rest
