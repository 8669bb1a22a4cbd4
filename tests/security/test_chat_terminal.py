"""Nothing hostile steers the terminal of a person who chats: in a pseudo-terminal, byte by byte."""

import json
import os
import re
import time
from types import SimpleNamespace
from unicodedata import category

import pytest

from .. import forks
from ..cli.test_chat import Terminal

PAYLOAD = (
    "x\x1b]52;c;ZXZpbA==\x07\x1bP+q544e\x1b\\\x1b]0;owned\x07\x1b[8m\x1b[?1049h\x1bc\x1b(0\x0e\x9d0;z\x9c\x9b2J"
    "\u202egnp\u2066a\u2069\u200bb\u200f\u2028\ufeff\u00ad\U000e0041\u3164y"
)
TITLE = "title" + PAYLOAD
NAME = PAYLOAD.replace("/", "")
TOML = '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in PAYLOAD) + '"'
OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78=>]|\r|\x08")
"""What the chat itself sends: styles, moves of the cursor, modes of the terminal."""
MODES = re.compile(r"\x1b\[\?(?:1049|47|1047|100[0-6])[hl]|\x1b\[(?:[0-9;]*;)?8m")
SCRIPT = f"""
from hookline.models.script import Call, Turn
bad = {PAYLOAD!r}
turns = [
    Turn("**" + bad + "**\\n\\n```\\n" + bad + "\\n```\\n| " + bad + " |\\n|---|\\n| " + bad + " |\\n",
         match="hello", reasoning=bad, chunk=7,
         tool_calls=[Call("shell", {{"command": "printf '%s' " + repr(bad)}}), Call(bad, {{bad: bad}}),
                     Call("read_file", {{"path": bad}})]),
    Turn("[" + bad + "](http://" + bad + ") `" + bad + "` # " + bad + " finished", match="hello"),
    Turn("again " + bad, match="."),
]
repeat = True
"""
HOOKS = f"""
bad = {PAYLOAD!r}

def turn_end(event, ctx):
    ctx.notify(bad)
    raise RuntimeError(bad)

def tool_call(event, ctx):
    from hookline.events import ToolCallEventResult
    if event.tool_name == "read_file":
        return ToolCallEventResult(block=True, reason=bad)

hooks = [("turn_end", turn_end), ("tool_call", tool_call)]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chat")
    home, workspace = folder / "home", folder / "work\x1b]52;c;Q\x07\u202e"
    workspace.mkdir()
    for name in ("abc", "abd"):
        (workspace / f"{name}{NAME}").write_text(PAYLOAD)
        (workspace / f"{name}{NAME}.d").mkdir()
    (home / "hooks").mkdir(parents=True)
    (home / "hooks/evil.py").write_text(HOOKS)
    (home / "skills/evil").mkdir(parents=True)
    (home / "skills/evil/SKILL.md").write_text(
        f"---\nname: evil\ndescription: {json.dumps(PAYLOAD)}\n---\n{PAYLOAD}\n"
    )
    script = folder / "script\x1b]52;c;Q\x07\u202e.py"
    script.write_text(SCRIPT)
    (home / "config.toml").write_text(
        '[policy]\ndefault = "allow"\n[sandbox]\nenabled = false\nrequired = false\n'
        f"[agents.helper]\ndescription = {TOML}\ninstructions = {TOML}\n"
    )
    found = SimpleNamespace(workspace=workspace, home=home, model=f"scripted:{script}", app="")
    env = {**os.environ, "HOOKLINE_HOME": str(home)}
    for session in ("one", f"two{NAME}"):
        done = forks.run(
            forks.MAIN, "run", TITLE, "--session", session, "--yes", "--model", found.model,
            cwd=workspace, env=env,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
    return found


def hostile(raw: str) -> list[str]:
    """What a terminal would act on that is not ours."""
    kept = OURS.sub("", raw)
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    found = [c for c in kept if c not in "\n\t" and category(c) in kinds]
    return [*found, *MODES.findall(raw)]


UNSEEN = "\u202egnp\u2066a\u2069\u200bb\U000e0041"
"""What can be pasted into a prompt."""
COMMANDS = {
    "hello": "finished",
    "/resume": "two",
    f"/name title{UNSEEN}": "is called",
    "/session": "messages",
    f"/label {UNSEEN}": "labelled",
    "/label": "gnp",
    "/tree": r"1  ",
    "/help": "/resume",
    f"/no{UNSEEN}": "again|no",
    f"/resume {UNSEEN}": "no session|there is",
    f"/model nobody:{UNSEEN}": "nobody",
    "/tools": "read_file",
    "/show": "gnp",
    f"look @{UNSEEN}.txt ": "attached|again",
    f"!echo {UNSEEN}": "gnp",
}
TYPED = ["/", "/re", "/resume ", "/model ", "@", "@ab", "look @abc"]


def test_a_chat_shows_hostile_text_and_obeys_none_of_it(place):
    chat = Terminal(place, columns=150, rows=60)
    try:
        chat.see("tokens · ")
        for command, expected in COMMANDS.items():
            before = len(chat.raw)
            chat.type(f"{command}\r")
            end = time.monotonic() + 30
            while not re.search(expected, OURS.sub("", chat.raw[before + len(command) :])):
                assert time.monotonic() < end, (command, chat.text)
                chat.pump(1)
            chat.see(r"(?m)^>\s*$")
            assert hostile(chat.raw[before:]) == [], command
        for typed in TYPED:
            before = len(chat.raw)
            chat.type(f"{typed}\t")
            for _ in range(3):
                chat.pump(0.1)
            chat.type("\t")
            for _ in range(3):
                chat.pump(0.1)
            assert hostile(chat.raw[before:]) == [], typed
            chat.type("\x03")
        assert hostile(chat.raw) == []
    finally:
        chat.child.close(force=True)
