"""Files that a message names go to the model with it, and what the model saw stays on the tape."""

import json
import os
import struct
import zlib
from base64 import b64encode

import pytest

from hookline.errors import BadInput
from hookline.models import Call, Turn
from hookline.runtime.attachments import LARGEST_IMAGE, LARGEST_TEXT, MOST, attachments, mentions
from hookline.types import ImagePart

from .. import commandline


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    + chunk(b"IEND", b"")
)


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    place.mkdir(exist_ok=True)
    (place / "notes.txt").write_text("milk\nbread\nsalt\n")
    (place / "my notes.txt").write_text("mine")
    (place / "dot.png").write_bytes(PNG)
    (place / "src").mkdir()
    (place / "src" / "a.py").write_text("```\nfenced\n````\n")
    return place


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see @notes.txt.", ["notes.txt"]),
        ("@notes.txt, @dot.png", ["notes.txt", "dot.png"]),
        ("@notes.txt @notes.txt", ["notes.txt", "notes.txt"]),
        ('@"my notes.txt" too', ["my notes.txt"]),
        ("in @src and @src/", ["src", "src/"]),
        ("thanks @alice, mail me@example.org", []),
        ("`@missing.py` is code, and\n```\n@missing.py\n```", []),
        ("@pytest.fixture and @app.get('/x')", []),
        ("a line\n@notes.txt", ["notes.txt"]),
    ],
)
def test_a_mention_is_a_path_after_an_at_sign(workspace, text, paths):
    assert [mention.path for mention in mentions(text, workspace)] == paths


def test_text_is_fenced_under_its_path_and_each_file_comes_once(workspace):
    [notes, code] = attachments("@notes.txt and @src/a.py and @notes.txt", workspace)
    assert notes.text == "notes.txt:\n```\nmilk\nbread\nsalt\n```"
    assert code.text == "src/a.py:\n`````\n```\nfenced\n````\n`````"


def test_some_lines_and_the_names_of_a_folder(workspace):
    lines, one, folder = attachments('@notes.txt:2-3, @"notes.txt":1 @src/', workspace)
    assert lines.text == "notes.txt, lines 2 to 3:\n```\nbread\nsalt\n```"
    assert one.text == "notes.txt, lines 1 to 1:\n```\nmilk\n```"
    assert folder.text == "src/:\n```\na.py\n```"


def test_a_picture_is_a_picture_whatever_its_name(workspace):
    (workspace / "dot.txt").write_bytes(PNG)
    assert attachments("@dot.txt", workspace) == [ImagePart(PNG, "image/png")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("@missing.txt", "@missing.txt cannot be attached: .*does not exist.*where no file is meant"),
        ("@src/b.py", "does not exist"),
        ("@../secret.txt", "outside the workspace"),
        ("@/etc/passwd", "outside the workspace"),
        ("@link.txt", "outside the workspace"),
        ("@binary.bin", "not text: 400 bytes of binary data"),
        ("@large.txt", "too large: 300,000 bytes, of 200,000 at most; name some of its lines"),
        ("@large.png", "too large for a picture: 5,000,001 bytes, of 5,000,000 at most"),
        ("@pipe.txt", "not a regular file"),
        ("@notes.txt:9", "it ends at line 3"),
        ("@notes.txt:3-2", "the smaller first"),
        ("@half.txt @other.txt", "too large together: @other.txt"),
        (" ".join(f"@many{n}.txt" for n in range(MOST + 1)), f"takes {MOST} files; @many{MOST}.txt"),
    ],
)
def test_what_cannot_go_along_is_told(workspace, text, problem):
    (workspace.parent / "secret.txt").write_text("secret")
    (workspace / "link.txt").symlink_to(workspace.parent / "secret.txt")
    (workspace / "binary.bin").write_bytes(bytes(range(200)) * 2)
    (workspace / "large.txt").write_text("word\n" * 60_000)
    (workspace / "large.png").write_bytes(PNG.ljust(LARGEST_IMAGE + 1, b"\0"))
    os.mkfifo(workspace / "pipe.txt")
    for name in ("half", "other"):
        (workspace / f"{name}.txt").write_text("x" * (LARGEST_TEXT * 2 // 3))
    for number in range(MOST + 1):
        (workspace / f"many{number}.txt").write_text("x")
    with pytest.raises(BadInput, match=problem):
        attachments(text, workspace)


def pictures(request):
    """The pictures in what a model was asked, as the data behind them."""
    found = []
    for message in request.messages:
        content = message["content"]
        for part in [] if isinstance(content, str) else content:
            data = part.get("data") if isinstance(part, dict) else getattr(part, "data", None)
            if data:
                found.append(data if isinstance(data, str) else b64encode(data).decode())
    return found


async def test_a_picture_is_still_seen_in_the_next_turn_and_by_another_process(
    app, scripted, workspace
):
    model = scripted("A red dot.", "Still red.")
    parts = attachments("What is @dot.png", workspace)
    async with app.running():
        await app.process({"content": "What is @dot.png", "attachments": parts})
    async with app.running():  # the messages are read from the tape again
        await app.process({"content": "And now?"})
        assert await app.store().search("IHDR") == []  # data is no words
    encoded = b64encode(PNG).decode()
    assert pictures(model.requests[0]) == pictures(model.requests[1]) == [encoded]
    first = model.requests[1].messages[0]["content"]
    assert first[0] == {"type": "text", "text": "What is @dot.png"}


async def test_a_picture_that_a_tool_gave_is_kept_and_one_too_large_is_named(app, scripted, workspace):
    large = PNG.ljust(5_000_001, b"\0")
    (workspace / "large.png").write_bytes(large)
    looks = [Call("read_file", {"path": "dot.png"}), Call("read_file", {"path": "large.png"})]
    model = scripted(Turn(tool_calls=looks), "Seen.", "Again.")
    async with app.running():
        await app.process({"content": "look"})
        await app.process({"content": "again"})
    encoded = b64encode(PNG).decode()
    assert pictures(model.requests[1]) == [encoded, b64encode(large).decode()]
    assert pictures(model.requests[2]) == [encoded]
    assert "[image, image/png, 5,000,001 bytes: too large to be kept]" in json.dumps(
        model.requests[2].messages
    )


async def test_a_gate_that_rewrites_the_text_leaves_the_files(app, scripted, workspace):
    from hookline.events import InputEventResult

    app.hooks.register("input", lambda event: InputEventResult(action="transform", text="redacted"))
    model = scripted("ok")
    parts = attachments("@notes.txt", workspace)
    async with app.running():
        await app.process({"content": "my secret @notes.txt", "attachments": parts})
    said = [part.text for part in model.requests[0].messages[0]["content"]]
    assert said == ["redacted", "notes.txt:\n```\nmilk\nbread\nsalt\n```"]


SCRIPT = """
repeat = true
[[turns]]
match = '(?s)notes\\.txt:\\n```\\nmilk'
text = "Milk."
[[turns]]
text = "No file."
"""


@pytest.mark.parametrize(
    ("arguments", "typed", "code", "told"),
    [
        (["what is in @notes.txt?"], "", 0, "Milk."),
        ([], "what is in @notes.txt and @missing.txt?", 0, "No file."),
        (["what is in @missing.txt?"], "", 2, "@missing.txt cannot be attached"),
    ],
)
def test_run_sends_the_files_that_its_argument_names(
    workspace, monkeypatch, capsys, arguments, typed, code, told
):
    (workspace.parent / "turns.toml").write_text(SCRIPT)
    hookline = commandline.here(workspace.parent / "home", workspace, monkeypatch, capsys)
    done = hookline("run", *arguments, "--model", "scripted:../turns.toml", stdin=typed)
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", [".env", ".git/config", "sub/.secret", "./sub/../.env", "link"])
def test_a_link_to_a_hidden_file_is_attached_only_by_its_own_name(tmp_path, target):
    for name in (".env", ".git/config", "sub/.secret"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("SECRET=1")
    (tmp_path / "link").symlink_to(".env")
    (tmp_path / "README.md").symlink_to(target)
    with pytest.raises(BadInput, match=r"is a link to .*; name that file if you mean it"):
        attachments("see @README.md", tmp_path)
    (part,) = attachments("see @.env", tmp_path)
    assert "SECRET=1" in part.text
