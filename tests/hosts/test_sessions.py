"""One conversation over many processes: the tape, budgets, approvals and hook files hold."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hookline.bridges.hosts.desk import HookDesk
from hookline.bridges.hosts.install import settings_of
from hookline.bridges.hosts.moment import HookOutput
from hookline.bridges.hosts.server import HookServer, peer
from hookline.ext.command_hooks.files import Files
from hookline.policy.approvals import Approvals
from hookline.runtime.app import Hookline
from hookline.system import hook_client
from hookline.system.processes import ancestors, hookline_above
from hookline.tape.open import open_store
from tests.commandline import here

from .test_answers import GUARD, bash, claude, home, out, run, seen

__all__ = ["home"]


async def judged(desk: HookDesk, payload: dict[str, Any], host: str = "claude-code") -> HookOutput:
    given = {"cwd": str(desk.home.parent / "work"), **payload}
    return await desk.answer(host, json.dumps(given).encode(), 20)


async def in_turn(home: Path, *payloads: dict[str, Any]) -> list[HookOutput]:
    """Each payload in a desk of its own, as in a process of its own."""
    told: list[HookOutput] = []
    for payload in payloads:
        desk = HookDesk(home)
        told.append(await judged(desk, payload))
        await desk.close()
    return told


async def entries(home: Path, session: str) -> list[tuple[str, Any]]:
    store = await open_store(home, None)
    try:
        return [(entry.kind, entry.payload) for entry in await store.entries(session)]
    finally:
        await store.close()


async def test_processes_share_one_turn(home: Path):
    told = await in_turn(
        home,
        claude("SessionStart", source="startup"),
        claude("UserPromptSubmit", prompt="hello"),
        bash("PreToolUse", "rewrite", "t1"),
        bash("PostToolUse", "echo changed", "t1", tool_response=out("a SECRET")),
        claude("Stop", last_assistant_message="done"),
        claude("Stop", last_assistant_message="checked", stop_hook_active=True),
        claude("SessionEnd", reason="exit"),
    )
    assert [output.code for output in told] == [0] * 7, told
    assert seen(home).count("session_start") == 1
    assert seen(home)[-1] == "session_shutdown"
    kept = await entries(home, "claude-code-s1")
    turns = [payload["status"] for kind, payload in kept if kind == "turn"]
    assert turns == ["started", "completed"]
    calls = [payload for kind, payload in kept if kind == "tool_call"]
    assert [(call["id"], call["arguments"]) for call in calls] == [("t1", {"command": "echo changed"})]
    results = [payload["content"] for kind, payload in kept if kind == "tool_result"]
    assert results == ["[withheld: a secret]"]
    said = [payload["message"]["content"] for kind, payload in kept if kind == "message"]
    assert said == ["hello", "done", "check first", "checked"]


def test_why_explains_the_calls_of_another_agent(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    asyncio.run(
        in_turn(
            home,
            claude("UserPromptSubmit", prompt="hello"),
            bash("PreToolUse", "sudo ls", "t1"),
            bash("PreToolUse", "rewrite", "t2"),
            bash("PostToolUse", "echo changed", "t2", tool_response=out("fine")),
            claude("Stop", last_assistant_message="checked"),
        )
    )
    hookline = here(home, home.parent / "work", monkeypatch, capsys)
    said = hookline("why", "claude-code-s1").stdout
    assert 'shell {"command": "sudo ls"}: denied (t1)' in said
    assert 'shell {"command": "rewrite"}: ran (t2)' in said
    assert "the trace has nothing" not in said
    assert "guard.py:" in said, "the trace has the line of the handler"


async def test_an_agent_is_not_sent_back_for_ever(home: Path):
    stop = claude("Stop", last_assistant_message="done", stop_hook_active=True)
    told = await in_turn(home, claude("UserPromptSubmit", prompt="hello"), *[stop] * 4)
    assert ["block" in output.stdout for output in told] == [False, True, True, True, False]


async def test_a_budget_counts_over_processes(home: Path):
    (home / "config.toml").write_text('[policy]\npacks = ["budgets"]\n[policy.budgets]\ncalls = 1\n')
    told = await in_turn(
        home,
        bash("PreToolUse", "ls", "t1"),
        bash("PostToolUse", "ls", "t1", tool_response=out("")),
        bash("PreToolUse", "ls", "t2"),
    )
    assert told[0].stdout == ""
    assert "deny" in told[2].stdout, told


async def test_calls_at_the_same_time_are_kept_apart(home: Path):
    desk = HookDesk(home)
    commands = ["ls", "sudo ls", "rewrite", "sudo id", "ls -a"]
    calls = [judged(desk, bash("PreToolUse", each, f"t{n}")) for n, each in enumerate(commands)]
    told = [output.stdout for output in await asyncio.gather(*calls)]
    assert ["deny" in text for text in told] == [False, True, False, True, False]
    assert "echo changed" in told[2]
    await desk.close()


async def test_a_new_prompt_ends_a_turn_that_was_interrupted(home: Path):
    await in_turn(
        home,
        claude("UserPromptSubmit", prompt="one"),
        bash("PreToolUse", "ls", "t1"),
        claude("UserPromptSubmit", prompt="two"),
        claude("Stop", last_assistant_message="checked"),
    )
    kept = await entries(home, "claude-code-s1")
    turns = [payload["status"] for kind, payload in kept if kind == "turn"]
    assert turns == ["started", "cancelled", "started", "completed"]


@pytest.mark.parametrize("answer", ["approve", "reject", None])
async def test_a_host_that_cannot_ask_waits_for_an_answer(answer: str | None, home: Path):
    desk = HookDesk(home)
    limit = 20 if answer else 2
    payload = {"cwd": str(home), **run("tool_call", "ask", "t1")}
    call = asyncio.create_task(desk.answer("opencode", json.dumps(payload).encode(), limit))
    if answer is not None:
        approvals = Approvals(home / "approvals.db")
        while not (waiting := approvals.pending()):
            await asyncio.sleep(0.02)
        approvals.answer(waiting[0].id, answer, by="ada")
        approvals.close()
    told = json.loads((await call).stdout)
    assert ("deny" in told) == (answer != "approve"), told
    await desk.close()


async def test_a_changed_hook_file_counts_from_the_next_event(home: Path):
    desk = HookDesk(home)
    guard = home / "profiles" / "default" / "hooks" / "guard.py"
    before = await judged(desk, bash("PreToolUse", "ls", "t1"))
    guard.write_text(GUARD.replace('"sudo"', '"ls"'))
    after = await judged(desk, bash("PreToolUse", "ls", "t2"))
    (home / "config.toml").write_text('[policy.floor.deny]\ntools = ["Other"]\n')
    ruled = await judged(desk, {**bash("PreToolUse", "id", "t3"), "tool_name": "Other"})
    assert before.stdout == ""
    assert "not as root" in after.stdout
    assert "deny" in ruled.stdout, ruled
    await desk.close()


async def test_another_process_waits_for_a_session(home: Path):
    one, two = HookDesk(home), HookDesk(home)
    assert (await judged(one, bash("PreToolUse", "ls", "t1"))).code == 0
    payload = json.dumps({"cwd": str(home), **bash("PreToolUse", "ls", "t2")}).encode()
    refused = await two.answer("claude-code", payload, 1)
    assert refused.code == 2
    await one.close()
    assert (await two.answer("claude-code", payload, 20)).code == 0
    await two.close()


async def test_the_hooks_of_the_host_itself_run_in_the_host_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(home.parent))
    settings = settings_of("claude-code", "user", home)
    other = {"hooks": [{"type": "command", "command": "exit 2"}]}
    settings.path.parent.mkdir()
    settings.path.write_text(settings.with_hooks(json.dumps({"hooks": {"PreToolUse": [other]}})))
    desk = HookDesk(home)
    assert (await judged(desk, bash("PreToolUse", "ls", "t1"))).stdout == ""
    await desk.close()
    app = Hookline(home=home, workspace=home.parent / "work")
    [file] = Files(app, home.parent).read()
    assert [hook.command for hook in file.table.hooks] == ["exit 2"], "ours would ask itself"


# --- the server -------------------------------------------------------------------------------------


class Served:
    """A server in this process, and clients of it in threads."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self._patch = home, monkeypatch

    async def ask(self, payload: dict[str, Any], limit: float = 20) -> tuple[int, bytes, bytes] | None:
        body = json.dumps({"cwd": str(self.home.parent / "work"), **payload}).encode()
        environ = {b"HOOKLINE_HOME": bytes(self.home)}
        self._patch.setattr(hook_client.posix, "environ", environ)
        self._patch.setattr(hook_client, "start_server", lambda: False)
        return await asyncio.to_thread(hook_client.ask_server, "claude-code", body, limit)


async def serving(home: Path, monkeypatch: pytest.MonkeyPatch, **options: Any):
    for name in [name for name in os.environ if name.startswith("HOOKLINE_")]:
        monkeypatch.delenv(name)
    server = HookServer(home, **options)
    task = asyncio.create_task(server.run())
    while not server.path.exists():
        await asyncio.sleep(0.01)
    return server, task, Served(home, monkeypatch)


async def test_a_server_answers_clients_and_ends_when_idle(home: Path, monkeypatch: pytest.MonkeyPatch):
    server, task, client = await serving(home, monkeypatch, idle=0.5)
    assert server.path.stat().st_mode & 0o777 == 0o600
    assert server.path.parent.stat().st_mode & 0o777 == 0o700
    assert await HookServer(home).run() is False, "there is one server for a home"
    answer = await client.ask(bash("PreToolUse", "sudo", "t1"))
    assert answer is not None
    assert b"not as root" in answer[1]
    assert await task is True
    assert not server.path.exists()
    assert await client.ask(bash("PreToolUse", "sudo", "t1")) is None, "the client does the work itself"


async def test_a_server_does_not_speak_for_another_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOOKLINE_MODEL", "other")
    server = HookServer(home, idle=0.5)
    monkeypatch.delenv("HOOKLINE_MODEL")
    task = asyncio.create_task(server.run())
    while not server.path.exists():
        await asyncio.sleep(0.01)
    assert await Served(home, monkeypatch).ask(bash("PreToolUse", "ls", "t1")) is None
    await task


def fake_server(home: Path, reply: Callable[[socket.socket], None]):
    (home / "hook").mkdir(mode=0o700)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(home / "hook" / "socket"))
    server.listen()

    async def serve() -> None:
        connection, _ = await asyncio.to_thread(server.accept)
        await asyncio.to_thread(reply, connection)
        connection.close()
        server.close()

    return serve


@pytest.mark.parametrize(
    "answer", [b"", b"0", b"0 5 0\n", b"0 5 0\nabc", b"0 1 1\nabcd", b"0 1\na", b"x y z\n"]
)
async def test_a_server_that_breaks_off_denies(
    answer: bytes, home: Path, monkeypatch: pytest.MonkeyPatch
):
    serve = fake_server(home, lambda connection: connection.sendall(answer))
    client = Served(home, monkeypatch)
    asked = client.ask(bash("PreToolUse", "ls", "t1"))
    error, _ = await asyncio.gather(asked, serve(), return_exceptions=True)
    assert isinstance(error, RuntimeError | ValueError)


async def test_a_server_that_hangs_denies(home: Path, monkeypatch: pytest.MonkeyPatch):
    over = Event()
    serve = asyncio.create_task(fake_server(home, lambda connection: over.wait(20))())
    with pytest.raises(RuntimeError, match=r"within 0\.2 s"):
        await Served(home, monkeypatch).ask(bash("PreToolUse", "ls", "t1"), 0.2)
    over.set()
    await serve


async def test_only_processes_of_the_user_may_connect(home: Path, monkeypatch: pytest.MonkeyPatch):
    _, task, client = await serving(home, monkeypatch, idle=0.5)
    monkeypatch.setattr("hookline.bridges.hosts.server.peer", lambda _: (1, os.geteuid() + 1))
    with pytest.raises(RuntimeError, match="broke off"):
        await client.ask(bash("PreToolUse", "ls", "t1"))
    await task
    one, two = socket.socketpair()
    with one, two:
        assert peer(one) == (os.getpid(), os.geteuid())


async def test_what_runs_below_another_agent_cannot_answer_questions(home: Path):
    body = json.dumps({"cwd": str(home), **bash("PreToolUse", "ls", "t1")}).encode()
    desk = HookDesk(home)
    await desk.answer("codex", body, 20, client=os.getpid())  # this process is the client
    await desk.close()
    assert hookline_above(home) in {*ancestors(os.getpid())}
    assert hookline_above(home / "other") is None
    [note] = (home / "hook" / "agents").iterdir()
    note.rename(note.with_name(f"{note.name.partition('-')[0]}-1"))  # an earlier process of this id
    assert hookline_above(home) is None


async def test_clients_that_send_nonsense_do_not_stop_a_server(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    server, task, client = await serving(home, monkeypatch, idle=1.0)
    for nonsense in (b"", b"\n", b"x y\n", b"5 5\nab", b"99999999999 1\n", b"-1 -1\n", b"4 0\nabcd"):
        _, writer = await asyncio.open_unix_connection(server.path)
        writer.write(nonsense)
        writer.close()
    answer = await client.ask(bash("PreToolUse", "sudo", "t1"))
    assert answer is not None
    assert b"not as root" in answer[1]
    await task


# --- the client -------------------------------------------------------------------------------------


async def client(home: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None):
    command = [sys.executable, "-I", "-S", hook_client.__file__, *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=-1, stdout=-1, stderr=-1,
        env={"HOOKLINE_HOME": str(home), "HOME": str(home)} if env is None else env,
    )  # fmt: skip
    stdout, stderr = await process.communicate(stdin)
    return process.returncode, stdout, stderr


async def test_the_client_does_the_work_itself(home: Path):
    body = json.dumps({"cwd": str(home), **bash("PreToolUse", "sudo", "t1")}).encode()
    code, stdout, stderr = await client(home, "claude-code", "--alone", stdin=body)
    assert code == 0, stderr
    assert b"not as root" in stdout


async def test_the_client_starts_a_server_that_stays(home: Path):
    (home / "config.toml").write_text("[hook]\nidle = 2\n")
    body = json.dumps({"cwd": str(home), **bash("PreToolUse", "sudo", "t1")}).encode()
    code, stdout, stderr = await client(home, "claude-code", stdin=body)
    assert code == 0, stderr
    assert b"not as root" in stdout
    path = home / "hook" / "socket"
    assert path.exists()
    code, stdout, stderr = await client(home, "claude-code", stdin=body.replace(b"t1", b"t2"))
    assert b"not as root" in stdout
    for _ in range(500):
        if not path.exists():
            return
        await asyncio.sleep(0.05)
    pytest.fail("the server does not end")


async def test_a_client_without_arguments_or_home_denies(home: Path):
    for arguments, env in (((), None), (("claude-code",), {})):
        code, stdout, stderr = await client(home, *arguments, stdin=b"{}", env=env)
        assert (code, stdout) == (2, b"")
        assert stderr.startswith(b"hookline: ")
