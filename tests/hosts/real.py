"""Runs a real host against a scripted model, with `guard.py` installed, and checks what came of it.

python tests/hosts/real.py .hosts/node_modules claude-code [docs/hosts/claude-code.json [--write]]
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from hookline.tape.open import open_store
from tests.hosts.model_server import ModelServer

HERE = Path(__file__).parent
SECONDS = 240
PATCH = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-first\n+second\n*** End Patch\n"


@dataclass
class Host:
    """How a host is run without a person, and what its tools are called."""

    name: str
    package: str
    command: Callable[["Trial"], list[str]]
    shell: Callable[[str], tuple[str, Any]]
    read: Callable[[str], tuple[str, Any]]
    edit: Callable[[str], tuple[str, Any]]
    prepare: Callable[["Trial"], None] = lambda _: None
    env: Callable[["Trial"], dict[str, str]] = lambda _: {}
    refuses_stop: bool = True


@dataclass
class Trial:
    """One run of a host in folders of its own."""

    host: Host
    packages: Path
    folder: Path
    url: str = ""
    prompt: str = "Tidy up."
    blocks: bool = False
    is_closed: bool = False

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def user(self) -> Path:
        return self.folder / "user"

    @property
    def home(self) -> Path:
        return self.folder / "hookline"

    def binary(self, name: str) -> str:
        return str(self.packages / ".bin" / name)


def bash(command: str) -> tuple[str, Any]:
    return "Bash", {"command": command, "description": "run it"}


def claude_env(trial: Trial) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": trial.url,
        "ANTHROPIC_API_KEY": "sk-ant-none",
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


def codex_config(trial: Trial) -> None:
    folder = trial.user / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        f'model = "gpt-5.5"\nmodel_provider = "loop"\n'
        f'[model_providers.loop]\nname = "loop"\nbase_url = "{trial.url}/v1"\nwire_api = "responses"\n'
        f'env_key = "LOOP_KEY"\n[projects."{trial.work}"]\ntrust_level = "trusted"\n'
    )


def opencode_config(trial: Trial) -> None:
    config = {
        "$schema": "https://opencode.ai/config.json",
        "model": "loop/scripted",
        "small_model": "loop/scripted",
        "autoupdate": False,
        "provider": {
            "loop": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "loop",
                "options": {"baseURL": f"{trial.url}/v1", "apiKey": "none"},
                "models": {"scripted": {"name": "scripted", "tool_call": True}},
            }
        },
        "permission": {"edit": "allow", "bash": "allow"},
    }
    (trial.work / "opencode.json").write_text(json.dumps(config))


def pi_config(trial: Trial) -> None:
    folder = trial.user / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    model = {
        "id": "scripted", "name": "scripted", "reasoning": False, "input": ["text"],
        "contextWindow": 100000, "maxTokens": 1000,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }  # fmt: skip
    provider = {
        "baseUrl": f"{trial.url}/v1", "apiKey": "none", "api": "openai-completions", "models": [model]
    }  # fmt: skip
    (folder / "models.json").write_text(json.dumps({"providers": {"loop": provider}}))


def gemini_config(trial: Trial) -> None:
    folder = trial.user / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    (folder / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")


HOSTS: Mapping[str, Host] = {
    host.name: host
    for host in (
        Host(
            "claude-code",
            "@anthropic-ai/claude-code",
            lambda t: [t.binary("claude"), "-p", t.prompt, "--permission-mode", "bypassPermissions"],
            bash,
            lambda path: ("Read", {"file_path": path}),
            lambda path: (
                "Edit",
                {"file_path": path, "old_string": "first", "new_string": "second"},
            ),
            env=claude_env,
        ),
        Host(
            "codex",
            "@openai/codex",
            lambda t: [
                t.binary("codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
                "--dangerously-bypass-approvals-and-sandbox", t.prompt,
            ],
            lambda command: ("exec_command", {"cmd": command}),
            lambda path: ("exec_command", {"cmd": f"cat {path}"}),
            lambda path: ("apply_patch", PATCH),
            prepare=codex_config,
            env=lambda _: {"LOOP_KEY": "none"},
        ),
        Host(
            "gemini",
            "@google/gemini-cli",
            lambda t: [t.binary("gemini"), "-p", t.prompt, "--yolo", "-m", "gemini-2.5-pro"],
            lambda command: ("run_shell_command", {"command": command}),
            lambda path: ("read_file", {"file_path": path}),
            lambda path: (
                "replace",
                {
                    "file_path": path, "old_string": "first", "new_string": "second",
                    "instruction": "change it",
                },
            ),
            prepare=gemini_config,
            env=lambda t: {"GOOGLE_GEMINI_BASE_URL": t.url, "GEMINI_API_KEY": "none"},
        ),
        Host(
            "opencode",
            "opencode-ai",
            lambda t: [t.binary("opencode"), "run", "--model", "loop/scripted", t.prompt],
            lambda command: ("bash", {"command": command, "description": "run it"}),
            lambda path: ("read", {"filePath": path}),
            lambda path: ("edit", {"filePath": path, "oldString": "first", "newString": "second"}),
            prepare=opencode_config,
            refuses_stop=False,
        ),
        Host(
            "pi",
            "@earendil-works/pi-coding-agent",
            lambda t: [t.binary("pi"), "-p", "--provider", "loop", "--model", "scripted", t.prompt],
            lambda command: ("bash", {"command": command}),
            lambda path: ("read", {"path": path}),
            lambda path: (
                "edit",
                {"path": path, "edits": [{"oldText": "first", "newText": "second"}]},
            ),
            prepare=pi_config,
        ),
    )
}  # fmt: skip


def script_of(trial: Trial) -> list[Any]:
    host, work = trial.host, trial.work
    return [
        [host.read(str(work / "notes.txt"))],
        [host.edit(str(work / "notes.txt"))],
        [host.shell("sudo id > denied.txt")],
        [host.shell("echo original > rewritten.txt")],
        [host.shell("cat secret.txt")],
        [host.shell("echo crash > crashed.txt")],
        "All done.",
        "All done, and checked.",
    ]


def run(trial: Trial) -> tuple[ModelServer, subprocess.CompletedProcess[str]]:
    """Install the hooks, run the host, and uninstall them."""
    hooks = trial.home / "profiles" / "default" / "hooks"
    for folder in (trial.work, trial.user, hooks):
        folder.mkdir(parents=True)
    trial.home.chmod(0o700)
    shutil.copy(HERE / "guard.py", hooks)
    (trial.work / "notes.txt").write_text("first\n")
    (trial.work / "secret.txt").write_text("SECRET-1234\n")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    env = {**kept, "HOME": str(trial.user), "NO_COLOR": "1", "TERM": "dumb"}
    own = {**env, "HOOKLINE_HOME": str(trial.home)}
    with ModelServer(script_of(trial)) as server:
        trial.url = server.url
        trial.host.prepare(trial)
        before = files(trial.user)
        hookline(own, trial, "install", "--for", trial.host.name, "--yes")
        node = str(trial.packages / ".bin")
        env = {**env, "PATH": f"{node}:{env['PATH']}", **trial.host.env(trial)}

        def start() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                trial.host.command(trial), cwd=trial.work, env=env, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip

        try:
            ended = start()
            requests = server.scripted
            trial.prompt = "a forbidden thing"
            start()
            trial.blocks = server.scripted == requests
            trial.prompt = "Tidy up."
            (hooks / "broken.py").write_text("def")
            start()
            trial.is_closed = server.scripted == requests
        finally:
            (hooks / "broken.py").unlink(missing_ok=True)
            hookline(own, trial, "stop")
            hookline(own, trial, "uninstall", "--for", trial.host.name, "--yes")
    for path, text in before.items():
        assert path.read_text() == text, f"{path} is not as it was before the hooks were installed"
    return server, ended


def files(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in folder.rglob("settings*.json")}


def hookline(env: dict[str, str], trial: Trial, *arguments: str) -> None:
    command = [sys.executable, "-m", "hookline", "hook", *arguments]
    subprocess.run(command, cwd=trial.work, env=env, check=True, capture_output=True, text=True)


def checks(trial: Trial, server: ModelServer, ended: Any) -> dict[str, bool]:
    """What holds, by name."""
    work, seen = trial.work, server.seen
    log = trial.home / "profiles" / "default" / "hooks" / "calls.log"
    calls = log.read_text().split() if log.exists() else []
    tape = subprocess.run(
        [sys.executable, "-m", "hookline", "tape", "list"],
        env={**os.environ, "HOOKLINE_HOME": str(trial.home)},
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    rewritten = work / "rewritten.txt"
    found = {
        "a read is unchanged": "first" in seen,
        "an edit is unchanged": (work / "notes.txt").read_text() == "second\n",
        "a command is denied": "not as root" in seen and not (work / "denied.txt").exists(),
        "a command is rewritten": rewritten.exists() and rewritten.read_text() == "changed\n",
        "a result is withheld": "it holds a secret" in seen and "SECRET-1234" not in seen,
        "a guard that raises denies": not (work / "crashed.txt").exists(),
        "a prompt is blocked": trial.blocks,
        "nothing runs while a hook file is broken": trial.is_closed,
        "calls are logged": len(calls) >= 5,
        "the conversation is on the tape": trial.host.name in tape,
        "the agent ends": ended.returncode == 0,
    }
    found["an agent may not stop yet"] = "Check your work first" in seen
    return found


async def told(trial: Trial) -> list[str]:
    """The conversation as the tape has it, one line for each entry."""
    store = await open_store(trial.home, None)
    lines: list[str] = []
    try:
        for info in await store.sessions():
            for entry in await store.entries(info.id):
                lines += line_of(entry.kind, entry.payload)
    finally:
        await store.close()
    return [line.replace(f"{trial.work}/", "").replace(str(trial.work), ".") for line in lines]


def line_of(kind: str, payload: dict[str, Any]) -> list[str]:
    if kind == "message":
        message = payload["message"]
        return [f"{message['role']}: {message['content']}"]
    if kind == "tool_call":
        changed = payload["arguments"] != payload["requested"]
        note = f"   (asked for {short(payload['requested'])})" if changed else ""
        return [f"call: {payload['name']} {short(payload['arguments'])}{note}"]
    if kind == "tool_result":
        return [f"result: {short(payload['content'])}" + ("" if payload["ran"] else "   (not run)")]
    return []


def short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else json.dumps(value)).split())
    return text if len(text) <= 90 else f"{text[:89]}…"


def main() -> int:
    packages, name, *rest = sys.argv[1:]
    host = HOSTS[name]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hookline-host-") as folder:
        trial = Trial(host, Path(packages).resolve(), Path(folder).resolve())
        server, ended = run(trial)
        found = checks(trial, server, ended)
        transcript = asyncio.run(told(trial))
    about = json.loads((trial.packages / host.package / "package.json").read_text())
    record = {"host": name, "package": host.package, "version": about["version"], "carried": found}
    record["transcript"] = transcript
    for text, held in found.items():
        print(f"{'yes' if held else 'NO '}  {text}")
    print(f"{name} {about['version']}, {time.monotonic() - started:.0f} s")
    if "--debug" in rest:
        print(ended.stdout[-3000:], ended.stderr[-3000:], file=sys.stderr)
        for request in server.requests:
            print(json.dumps(request)[-1500:], "\n", file=sys.stderr)
    paths = [Path(each) for each in rest if not each.startswith("--")]
    if paths and "--write" in rest:
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        paths[0].write_text(json.dumps(record, indent=2) + "\n")
    elif paths:
        kept = json.loads(paths[0].read_text())["carried"]
        lost = [text for text, held in kept.items() if held and not found.get(text)]
        if lost:
            print(f"not carried any more: {', '.join(lost)}")
            print(ended.stdout[-2000:], ended.stderr[-2000:])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
