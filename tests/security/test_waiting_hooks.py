"""A command hook's next process waits in its sandbox, and is confined like one that starts later."""

import asyncio
import json
import os
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

from hookline.events import ToolCallEvent
from hookline.runtime.app import Hookline

SECRETS = (".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".local/share/keyrings/login")
MARK = "waiting-hook-of-a-test"
PROBE = f"readlink /proc/self/ns/mnt; cd; cat {' '.join(SECRETS)} 2>&1; : {MARK}"


class Hook:
    """An app with one hook, which blocks every call and reports what it sees."""

    def __init__(self, app: Hookline, user: Path) -> None:
        self.app = app
        self.user = user
        self.kept: list[IO[str]] = []

    async def run(self) -> str:
        """What one run of the hook reports."""
        event = ToolCallEvent("1", "shell", {"command": "x"})
        verdict = await self.app.hooks["tool_call"].fire(event, self.app.context("s"))
        assert verdict.denied
        return verdict.reason

    async def waiting(self) -> str:
        """The namespace of the process that waits for the next run, once it does."""
        async with asyncio.timeout(60):
            while not (found := waiting_processes()):
                await asyncio.sleep(0.01)
        self.kept.append((found[0] / "ns" / "mnt").open())  # else a later one may get its number
        return os.readlink(f"/proc/self/fd/{self.kept[-1].fileno()}")  # noqa: PTH115


def processes_with(text: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


def waiting_processes() -> list[Path]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            if command.startswith(b"/bin/sh\0-c\0read -r go ||") and MARK.encode() in command:
                found.append(folder)
    return found


@asynccontextmanager
async def running(tmp_path, **own):
    user, work = tmp_path / "user", tmp_path / "work"
    for folder in (user / ".claude", user / ".config", user / "elsewhere", work):
        folder.mkdir(parents=True)
    (user / ".netrc").write_text("OLD-SECRET")
    hook = {"type": "command", "command": f"({PROBE}) >&2; exit 2", **own}
    settings = {"hooks": {"PreToolUse": [{"matcher": "", "hooks": [hook]}]}}
    (user / ".claude" / "settings.json").write_text(json.dumps(settings))
    app = Hookline(home=tmp_path / "home", workspace=work)
    app.load_hooks(packages=False)
    app.hooks.pm.get_plugin("command-hooks").home = user
    if app.sandbox.name != "bubblewrap":
        pytest.skip("only namespaces are set up in advance")
    hooks = Hook(app, user)
    async with app.running():
        yield hooks
    for file in hooks.kept:
        file.close()


@pytest.fixture
async def hook(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    async with running(tmp_path) as made:
        yield made


async def test_the_process_that_waits_makes_the_next_run(hook):
    assert "SECRET" not in await hook.run()
    namespace = await hook.waiting()
    assert namespace in await hook.run()
    assert await hook.waiting() != namespace


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("SECRET")


def replace(user: Path) -> None:
    """Write a file as editors and tools do: under another name first."""
    write(user / "new")
    (user / "new").rename(user / ".netrc")


def link(user: Path) -> None:
    write(user / "elsewhere" / "credentials")
    (user / ".aws").symlink_to(user / "elsewhere")


def write_again(user: Path) -> None:
    (user / ".netrc").unlink()
    write(user / ".netrc")


CHANGES = {
    "a folder": lambda user: write(user / ".aws" / "credentials"),
    "a file in a folder that exists": lambda user: write(user / ".config" / "gh" / "hosts.yml"),
    "a file in folders that did not exist": lambda user: write(user / ".local/share/keyrings/login"),
    "a file that replaces another": replace,
    "a file in place of a deleted one": write_again,
    "a link": link,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_a_secret_that_appears_while_a_process_waits_is_hidden(hook, change):
    await hook.run()
    namespace = await hook.waiting()
    change(hook.user)
    said = await hook.run()
    assert namespace not in said
    assert "SECRET" not in said


async def test_a_subagent_gets_no_process_of_a_looser_profile(hook):
    await hook.run()
    namespace = await hook.waiting()
    with hook.app.sandbox.at_most("read-only"):
        assert namespace not in await hook.run()
    assert waiting_processes() == []


async def test_hooks_that_are_read_again_run_as_they_are_written_now(hook):
    await hook.run()
    await hook.waiting()
    settings = hook.user / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace(MARK, f"; echo changed {MARK}"))
    hook.app.hooks.pm.get_plugin("command-hooks").load()
    assert waiting_processes() == []
    assert "changed" in await hook.run()


async def test_a_hook_that_runs_during_a_reload_leaves_no_process_of_its_old_command(hook):
    """The new hook has the same place in the file, so the process would be taken for its own."""
    settings = hook.user / ".claude" / "settings.json"
    written, plugin = settings.read_text(), hook.app.hooks.pm.get_plugin("command-hooks")
    (hook.app.workspace / "gate").write_text("")
    settings.write_text(written.replace("cd;", "until [ ! -e gate ]; do sleep 0.01; done; cd;"))
    plugin.load()
    old = asyncio.create_task(hook.run())
    async with asyncio.timeout(60):
        while not processes_with("until [ ! -e gate ]"):
            await asyncio.sleep(0.01)
    settings.write_text(written.replace("cd;", "echo NEW; cd;"))
    plugin.load()
    (hook.app.workspace / "gate").unlink()
    assert "NEW" not in await old
    await asyncio.sleep(0.1)  # longer than it takes until a process is prepared
    assert "NEW" in await hook.run()


@pytest.mark.parametrize("name", [".config/guard.sh", ".local/share/guard.sh", "elsewhere/guard.sh"])
async def test_a_file_that_a_hook_names_opens_no_secret_beside_it(hook, name):
    for secret in SECRETS:
        write(hook.user / secret)
    (hook.user / name).write_text("echo the script ran")
    settings = hook.user / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace("cd;", f"sh {hook.user / name}; cd;"))
    hook.app.hooks.pm.get_plugin("command-hooks").load()
    for _ in range(2):
        said = await hook.run()
        assert "the script ran" in said
        assert "SECRET" not in said
        await asyncio.sleep(0.05)  # a process waits only once nothing changed for a moment
    namespace = await hook.waiting()
    said = await hook.run()
    assert namespace in said
    assert "SECRET" not in said


@pytest.mark.parametrize("own", [{"sandbox": "workspace"}, {"sandbox": "off"}])
async def test_nothing_waits_in_other_profiles(tmp_path, monkeypatch, own):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    async with running(tmp_path, **own) as hook:
        await hook.run()
        await asyncio.sleep(0.1)
        assert waiting_processes() == []


async def test_a_command_that_names_a_file_of_proc_does_not_see_other_processes(hook):
    settings = hook.user / ".claude" / "settings.json"
    look = "cat /proc/meminfo; echo there are /proc/[0-9]*"
    settings.write_text(settings.read_text().replace("cd;", f"{look}; cd;"))
    hook.app.hooks.pm.get_plugin("command-hooks").load()
    said = await hook.run()
    assert "MemTotal" in said
    assert f"/proc/{os.getpid()}" not in said


async def test_a_process_that_waits_ends_with_the_app(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    async with running(tmp_path) as hook:
        await hook.run()
        await hook.waiting()
    assert waiting_processes() == []
