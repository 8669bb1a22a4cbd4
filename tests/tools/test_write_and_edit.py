"""Writing and editing real files: whole or not at all, never over somebody else's change."""

import asyncio
import os
import stat

import pytest

from hookline.ext.tools import builtin_tools
from hookline.tools import Registry, ToolArgumentError, ToolError
from hookline.types import ImagePart

tools = Registry(builtin_tools())
read_file, write_file, edit_file = map(tools.get, ["read_file", "write_file", "edit_file"])


def touch_later(path, text):
    """Change a file as another program would, at another time."""
    path.write_text(text)
    about = path.stat()
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 5_000_000_000))


class TestWriting:
    async def test_a_new_file_is_made_with_its_folders(self, call, workspace):
        assert await call(write_file, path="a/b/c.txt", content="one\ntwo\n") == (
            "[a/b/c.txt is new: 8 bytes, 2 lines]"
        )
        assert (workspace / "a/b/c.txt").read_text() == "one\ntwo\n"
        assert os.listdir(workspace / "a/b") == ["c.txt"]  # noqa: PTH208

    async def test_what_changed_is_shown_and_permissions_stay(self, call, workspace):
        script = workspace / "run.sh"
        script.write_text("one\ntwo")
        script.chmod(0o751)
        shown = await call(write_file, path="run.sh", content="one\n2\n")
        assert shown == (
            "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+2"
        )
        assert stat.S_IMODE(script.stat().st_mode) == 0o751
        assert "already" in await call(write_file, path="run.sh", content="one\n2\n")

    async def test_nothing_is_written_outside_the_workspace(self, call, workspace):
        outside = workspace.parent / "outside"
        outside.mkdir()
        (workspace / "link").symlink_to(outside)
        (workspace / "link.txt").symlink_to(outside / "new.txt")
        for path in ("../outside/x", "link/x", "link.txt", str(outside / "x")):
            with pytest.raises(ToolError, match="outside the workspace"):
                await call(write_file, path=path, content="x")
        assert not [*outside.iterdir()]

    async def test_a_link_within_stays_a_link(self, call, workspace):
        (workspace / "real.txt").write_text("old")
        (workspace / "link.txt").symlink_to("real.txt")
        await call(write_file, path="link.txt", content="new")
        assert (workspace / "link.txt").is_symlink()
        assert (workspace / "real.txt").read_text() == "new"

    async def test_what_cannot_be_written_is_told_and_leaves_nothing(self, call, workspace):
        (workspace / "folder").mkdir()
        (workspace / "file").write_text("x")
        os.mkfifo(workspace / "pipe")
        for path, why in {
            "folder": "is a folder",
            "pipe": "not a regular file",
            "file/x": "cannot be written",
            "n" * 300: "cannot be",
        }.items():
            with pytest.raises(ToolError, match=why):
                await call(write_file, path=path, content="x")
        with pytest.raises(ToolError, match="a character that UTF-8 has not"):
            await call(write_file, path="odd", content="\ud800")
        assert {path.name for path in workspace.iterdir()} == {"folder", "file", "pipe"}

    async def test_a_file_that_changed_since_it_was_read_is_not_overwritten(self, call, workspace):
        (workspace / "a.txt").write_text("one")
        await call(read_file, path="a.txt")
        touch_later(workspace / "a.txt", "two")
        with pytest.raises(ToolError, match="changed on disk since it was last read"):
            await call(write_file, path="a.txt", content="three")
        assert (workspace / "a.txt").read_text() == "two"


class TestEditing:
    @pytest.fixture
    def file(self, workspace):
        path = workspace / "a.py"
        path.write_text("def one():\n    return 1\n\n\ndef two():\n    return 1\n")
        return path

    async def test_one_edit_shows_a_unified_diff(self, call, file):
        shown = await call(edit_file, path="a.py", edits=[{"old": "def two", "new": "def zwei"}])
        assert shown.startswith("--- a/a.py\n+++ b/a.py\n@@ ")
        assert "\n-def two():\n+def zwei():\n" in shown
        assert "def zwei():" in file.read_text()

    async def test_several_edits_are_made_in_order(self, call, file):
        edits = [
            {"old": "def one", "new": "def uno"},
            {"old": "uno():\n    return 1", "new": "uno(): ..."},
        ]
        await call(edit_file, path="a.py", edits=edits)
        assert file.read_text().startswith("def uno(): ...\n\n\n")

    async def test_if_one_edit_does_not_fit_none_is_made(self, call, file):
        before = file.read_text()
        edits = [{"old": "def one", "new": "def uno"}, {"old": "def three", "new": "x"}]
        with pytest.raises(ToolError, match=r"edit 2 of 2: the text is not in a\.py"):
            await call(edit_file, path="a.py", edits=edits)
        assert file.read_text() == before

    async def test_ambiguous_text_is_refused_unless_all_are_meant(self, call, file):
        edit = {"old": "return 1", "new": "return 2"}
        with pytest.raises(ToolError, match=r"in a\.py 2 times, at lines 2, 6; .* all=true"):
            await call(edit_file, path="a.py", edits=[edit])
        await call(edit_file, path="a.py", edits=[{**edit, "all": True}])
        assert file.read_text().count("return 2") == 2

    async def test_absent_text_names_the_nearest_line(self, call, file):
        with pytest.raises(ToolError, match=r"the nearest line is 5: 'def two\(\):'"):
            await call(edit_file, path="a.py", edits=[{"old": "def twoo():", "new": "x"}])
        with pytest.raises(ToolError, match=r"the nearest line is 2: '    return 1'"):
            await call(edit_file, path="a.py", edits=[{"old": "\treturn 1", "new": "x"}])

    async def test_a_file_that_changed_since_it_was_read_is_refused_until_read_again(self, call, file):
        await call(read_file, path="a.py")
        touch_later(file, file.read_text() + "# more\n")
        edit = {"old": "def one", "new": "def uno"}
        with pytest.raises(ToolError, match="read it again first"):
            await call(edit_file, path="a.py", edits=[edit])
        await call(read_file, path="a.py", start=1, end=1)
        await call(edit_file, path="a.py", edits=[edit])
        await call(edit_file, path="a.py", edits=[{"old": "def uno", "new": "def eins"}])
        assert "def eins" in file.read_text()

    async def test_stamps_are_plain_data_under_one_key(self, call, file, context):
        await call(read_file, path="a.py")
        about = file.stat()
        assert context.state == {"file_stamps": {str(file): [about.st_mtime_ns, about.st_size]}}

    async def test_line_ends_and_bytes_that_are_not_utf8_stay(self, call, workspace):
        path = workspace / "w.txt"
        path.write_bytes(b"one\r\ntwo caf\xe9\r\nthree\r\n")
        await call(edit_file, path="w.txt", edits=[{"old": "one\ntwo", "new": "1\n2"}])
        assert path.read_bytes() == b"1\r\n2 caf\xe9\r\nthree\r\n"

    async def test_edits_that_make_no_sense_are_refused(self, call, file, workspace):
        (workspace / "b.bin").write_bytes(b"\0\1\2" * 100)
        for path, edit, why in [
            ("a.py", {"old": "", "new": "x"}, "old is empty"),
            ("a.py", {"old": "one", "new": "one"}, "are the same"),
            ("b.bin", {"old": "one", "new": "two"}, "is not text: 300 bytes"),
            ("none.py", {"old": "one", "new": "two"}, "does not exist"),
            ("../x", {"old": "one", "new": "two"}, "outside the workspace"),
        ]:
            with pytest.raises(ToolError, match=why):
                await call(edit_file, path=path, edits=[edit])
        with pytest.raises(ToolArgumentError, match="edits"):
            await call(edit_file, path="a.py", edits=[])

    async def test_an_enormous_file_is_refused(self, call, workspace):
        with (workspace / "huge.txt").open("wb") as file:
            file.truncate(30_000_000)
        with pytest.raises(ToolError, match="too large to edit: 30,000,000 bytes"):
            await call(edit_file, path="huge.txt", edits=[{"old": "a", "new": "b"}])

    async def test_edits_of_one_file_at_the_same_time_are_all_made(self, call, workspace):
        (workspace / "n.txt").write_text("".join(f"line {n};\n" for n in range(20)))
        await call(read_file, path="n.txt")
        each = ({"old": f"line {n};", "new": f"LINE {n};"} for n in range(20))
        await asyncio.gather(*(call(edit_file, path="n.txt", edits=[edit]) for edit in each))
        assert (workspace / "n.txt").read_text() == "".join(f"LINE {n};\n" for n in range(20))

    async def test_a_long_file_is_edited_at_both_ends(self, call, workspace):
        (workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(200_000)))
        shown = await call(edit_file, path="long.txt", edits=[{"old": "line 150000\n", "new": "x\n"}])
        assert "-line 150000\n+x" in shown
        edits = [{"old": "line 1\n", "new": "y\n"}, {"old": "line 199998\n", "new": "z\n"}]
        assert "too many for a diff" in await call(edit_file, path="long.txt", edits=edits)


class TestPictures:
    @pytest.mark.parametrize(
        ("begin", "kind"),
        [
            (b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a", "image/gif"),
            (b"RIFF\0\0\0\0WEBP", "image/webp"),
        ],
    )
    async def test_a_picture_is_shown_as_one(self, call, workspace, begin, kind):
        data = begin + bytes(range(256)) * 100
        (workspace / "picture").write_bytes(data)
        assert await call(read_file, path="picture") == ImagePart(data, kind)

    async def test_an_enormous_picture_is_refused(self, call, workspace):
        (workspace / "big.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(10_000_000))
        with pytest.raises(ToolError, match="too large for a picture"):
            await call(read_file, path="big.png")
