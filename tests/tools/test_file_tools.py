"""Reading, listing and searching real files, inside the workspace only."""

import asyncio
import os
import subprocess
import time
import tracemalloc

import pytest

from hookline.ext.tools import builtin_tools
from hookline.tools import REGISTRY, Registry, ToolArgumentError, ToolError

tools = Registry(builtin_tools())
read_file, list_files, search_files = map(tools.get, ["read_file", "list_files", "search_files"])


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


def test_the_builtin_tools_have_plain_names_and_say_what_they_do():
    assert {tool.name: tool.spec.side_effects.value for tool in tools} == {
        "read_file": "read",
        "list_files": "read",
        "search_files": "read",
        "write_file": "write",
        "edit_file": "write",
        "shell": "external",
        "shell_output": "read",
        "shell_kill": "external",
        "shell_jobs": "read",
        "fetch_url": "external",
        "todo": "none",
        "read_output": "read",
        "tape_search": "read",
        "tape_read": "read",
        "tape_handoff": "none",
        "delegate": "none",
    }
    for schema in tools.schemas():
        assert schema["description"]
        assert "context" not in schema["parameters"]["properties"]
        for parameter in schema["parameters"]["properties"].values():
            assert parameter["description"]


def test_they_are_registered_only_where_somebody_asks_for_them():
    assert not set(tools.names()) & set(REGISTRY.names())


class TestReading:
    async def test_a_whole_file(self, call, workspace):
        (workspace / "a.txt").write_text("one\ntwo\nthree")
        assert await call(read_file, path="a.txt") == "one\ntwo\nthree"
        assert await call(read_file, path=str(workspace / "a.txt")) == "one\ntwo\nthree"

    @pytest.mark.parametrize(
        ("start", "end", "text"),
        [
            (2, 3, "two\nthree\n"),
            (3, 3, "three\n"),
            (4, None, "four"),
            (3, 99, "three\nfour"),
            (1, 1, "one\n"),
        ],
    )
    async def test_some_lines(self, call, workspace, start, end, text):
        (workspace / "a.txt").write_text("one\ntwo\nthree\nfour")
        assert await call(read_file, path="a.txt", start=start, end=end) == text

    async def test_a_start_past_the_end_says_how_many_lines_there_are(self, call, workspace):
        (workspace / "a.txt").write_text("one\ntwo")
        with pytest.raises(ToolError, match="has 2 lines; start is 9"):
            await call(read_file, path="a.txt", start=9)
        (workspace / "b.txt").write_text("one\ntwo\n")
        with pytest.raises(ToolError, match="has 2 lines"):
            await call(read_file, path="b.txt", start=9)

    async def test_an_empty_file_is_empty(self, call, workspace):
        (workspace / "a.txt").write_text("")
        assert await call(read_file, path="a.txt") == ""

    async def test_a_long_file_is_read_page_by_page(self, call, workspace):
        lines = [f"line {n:06}\n" for n in range(1, 20_001)]
        (workspace / "a.txt").write_text("".join(lines))
        text, start = "", 1
        for _ in range(10):
            page = await call(read_file, path="a.txt", start=start)
            assert len(page) <= 50_000
            body, found, note = page.partition("[lines ")
            text += body
            if not found:
                break
            start = int(note.rpartition("start=")[2].rstrip("]"))
        assert text == "".join(lines)

    async def test_a_line_longer_than_everything_is_cut_and_the_next_is_reached(self, call, workspace):
        (workspace / "a.txt").write_text("x" * 1_000_000 + "\nafter\n")
        page = await call(read_file, path="a.txt")
        assert len(page) < 51_000
        assert page.endswith("go on with start=2]")
        assert await call(read_file, path="a.txt", start=2) == "after\n"

    async def test_a_huge_file_costs_little_memory(self, call, workspace):
        with (workspace / "huge.txt").open("wb") as file:
            for _ in range(100):
                file.write(b"0123456789abcde\n" * 65536)
            file.write(b"the end\n")
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            assert "there is more" in await call(read_file, path="huge.txt")
            assert await call(read_file, path="huge.txt", start=6553601) == "the end\n"
            assert tracemalloc.get_traced_memory()[1] - before < 8_000_000
        finally:
            tracemalloc.stop()

    async def test_a_binary_file_is_refused_with_its_size(self, call, workspace):
        (workspace / "a.bin").write_bytes(bytes(range(256)) * 10)
        with pytest.raises(ToolError, match=r"a\.bin is not text: 2,560 bytes"):
            await call(read_file, path="a.bin")

    async def test_text_in_another_encoding_is_still_read(self, call, workspace):
        (workspace / "a.txt").write_bytes("ein schöner Tag in der Stadt".encode("latin-1"))
        assert await call(read_file, path="a.txt") == "ein sch\ufffdner Tag in der Stadt"
        (workspace / "b.txt").write_bytes("\ufeffüber".encode())
        assert await call(read_file, path="b.txt") == "über"

    async def test_what_cannot_be_read_is_told(self, call, workspace):
        (workspace / "notes.txt").write_text("x")
        (workspace / "folder").mkdir()
        os.mkfifo(workspace / "pipe")
        for path, why in {
            "note.txt": r"note\.txt does not exist; did you mean 'notes\.txt'",
            "folder": "folder is a folder; list_files",
            "pipe": "pipe is not a regular file",
            "notes.txt/x": "cannot be read: Not a directory",
            "a\0b": "is not a path",
            "n" * 5000: "cannot be",
        }.items():
            with pytest.raises(ToolError, match=why):
                await call(read_file, path=path)
        with pytest.raises(ToolError, match=r"end \(1\) comes before start \(2\)"):
            await call(read_file, path="notes.txt", start=2, end=1)
        with pytest.raises(ToolArgumentError, match="start: got 0, takes greater than or equal to 1"):
            await call(read_file, path="notes.txt", start=0)


class TestStayingInside:
    @pytest.fixture
    def secret(self, workspace):
        outside = workspace.parent / "secret"
        outside.mkdir()
        (outside / "key.txt").write_text("hunter2")
        return outside

    @pytest.mark.parametrize(
        "path", ["../secret/key.txt", "a/../../secret/key.txt", "/etc/passwd", "~/../.."]
    )
    async def test_no_path_leads_out(self, call, workspace, secret, path):
        (workspace / "a").mkdir()
        if path.startswith("~"):
            with pytest.raises(ToolError):
                await call(read_file, path=path)
            return
        with pytest.raises(ToolError, match="is outside the workspace"):
            await call(read_file, path=path)

    async def test_no_link_leads_out(self, call, workspace, secret):
        (workspace / "link").symlink_to(secret)
        (workspace / "link.txt").symlink_to(secret / "key.txt")
        for path in ("link/key.txt", "link.txt"):
            with pytest.raises(ToolError, match="is outside the workspace"):
                await call(read_file, path=path)
        for tool, arguments in ((list_files, {}), (search_files, {"pattern": "hunter"})):
            with pytest.raises(ToolError, match="is outside the workspace"):
                await call(tool, path="link", **arguments)
        with pytest.raises(ToolError, match="is outside the workspace"):
            await call(search_files, pattern="hunter", path="link.txt")
        assert "hunter2" not in await call(search_files, pattern="hunter")
        assert (await call(list_files)).split("\n") == ["link", "link.txt"]

    async def test_a_link_within_is_followed(self, call, workspace):
        (workspace / "real.txt").write_text("here")
        (workspace / "link.txt").symlink_to("real.txt")
        assert await call(read_file, path="link.txt") == "here"

    async def test_a_link_to_itself_is_told(self, call, workspace):
        (workspace / "loop").symlink_to("loop")
        with pytest.raises(ToolError, match=r"cannot be|does not exist"):
            await call(read_file, path="loop")

    async def test_a_workspace_that_is_a_link_itself(self, call, workspace, tmp_path):
        from hookline.tools import ToolContext

        (workspace / "a.txt").write_text("here")
        (tmp_path / "door").symlink_to(workspace)
        context = ToolContext(workspace=tmp_path / "door")
        assert await read_file._invoke(read_file.validate({"path": "a.txt"}), context, print) == "here"
        assert await list_files._invoke(list_files.validate({}), context, print) == "a.txt"

    async def test_an_allowed_place_can_be_reached(self, call, secret):
        path = str(secret / "key.txt")
        assert await call(read_file, path=path, _allowed=(secret,)) == "hunter2"
        assert await call(list_files, path=str(secret), _allowed=(secret,)) == path


class TestListing:
    @pytest.fixture
    def tree(self, workspace):
        for name in [
            "a.py",
            "b.txt",
            "src/c.py",
            "src/deep/d.py",
            "src/deep/e.ts",
            ".hidden",
            "out/x.py",
        ]:
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(name)
        return workspace

    @pytest.mark.parametrize(
        ("pattern", "names"),
        [
            (
                "**",
                [".hidden", "a.py", "b.txt", "out/x.py", "src/c.py", "src/deep/d.py", "src/deep/e.ts"],
            ),
            ("*.py", ["a.py", "out/x.py", "src/c.py", "src/deep/d.py"]),
            ("./*.txt", ["b.txt"]),
            ("src/*", ["src/c.py"]),
            ("src/**", ["src/c.py", "src/deep/d.py", "src/deep/e.ts"]),
            ("src/**/*.{py,ts}", ["src/c.py", "src/deep/d.py", "src/deep/e.ts"]),
            ("**/deep/*", ["src/deep/d.py", "src/deep/e.ts"]),
            ("[ab].*", ["a.py", "b.txt"]),
            ("[!a].py", ["out/x.py", "src/c.py", "src/deep/d.py"]),
            ("?.txt", ["b.txt"]),
        ],
    )
    async def test_globs(self, call, tree, pattern, names):
        assert (await call(list_files, pattern=pattern)).split("\n") == names

    async def test_nothing_found_is_told(self, call, tree):
        assert await call(list_files, pattern="*.rs") == "[no file matches *.rs]"

    @pytest.mark.parametrize(
        "pattern", ["[", "{a", "a}", "[]", "[]]", "[!]]", "\\\\", "**{", "[[]", "[a&&b]"]
    )
    async def test_odd_globs_match_nothing_and_break_nothing(self, call, tree, pattern):
        assert await call(list_files, pattern=pattern) == f"[no file matches {pattern}]"

    async def test_a_glob_that_is_too_long_is_refused(self, call, tree):
        with pytest.raises(ToolError, match="is not a glob: a pattern may have 4,000 characters"):
            await call(list_files, pattern="*a" * 2500)

    async def test_a_folder_and_a_limit(self, call, tree):
        listed = await call(list_files, path="src", limit=2)
        assert listed.split("\n") == ["src/c.py", "src/deep/d.py", "[1 more of 3; narrow the pattern]"]

    async def test_a_folder_that_is_none(self, call, tree):
        with pytest.raises(ToolError, match="sr does not exist; did you mean 'src'"):
            await call(list_files, path="sr")
        with pytest.raises(ToolError, match=r"a\.py is not a folder"):
            await call(list_files, path="a.py")

    async def test_what_git_ignores_is_left_out(self, call, tree):
        git(tree, "init", "-q")
        (tree / ".gitignore").write_text("out/\n.hidden\n")
        git(tree, "add", "a.py", "b.txt")
        (tree / "b.txt").unlink()  # deleted, and git still knows it
        listed = (await call(list_files)).split("\n")
        assert listed == [".gitignore", "a.py", "src/c.py", "src/deep/d.py", "src/deep/e.ts"]

    async def test_a_repository_in_a_repository(self, call, tree):
        git(tree, "init", "-q")
        git(tree / "src", "init", "-q")
        (tree / "src" / ".gitignore").write_text("*.ts\n")
        listed = (await call(list_files, pattern="src/**")).split("\n")
        assert listed == ["src/.gitignore", "src/c.py", "src/deep/d.py"]

    async def test_a_strangers_repository_starts_no_program(self, call, tree):
        git(tree, "init", "-q")
        git(tree, "config", "core.fsmonitor", f"touch {tree}/started; false")
        await call(list_files)
        assert not (tree / "started").exists()

    async def test_without_git_only_version_control_is_left_out(self, call, tree, monkeypatch):
        (tree / ".git").mkdir()
        (tree / ".git" / "config").write_text("x")
        monkeypatch.setenv("PATH", "")
        listed = (await call(list_files)).split("\n")
        assert ".git/config" not in listed
        assert len(listed) == 7

    async def test_a_name_that_is_not_utf8_does_not_break_the_list(self, call, workspace):
        with open(os.fsencode(workspace) + b"/caf\xe9.txt", "w"):  # noqa: PTH123
            pass
        from hookline.tools import model_content

        assert model_content(await call(list_files)) == "caf\ufffd.txt"


class TestSearching:
    @pytest.fixture
    def tree(self, workspace):
        (workspace / "src").mkdir()
        (workspace / "a.py").write_text("import os\n\ndef one():\n    return os\n")
        (workspace / "src" / "b.py").write_text("def two(): pass\r\nDEF = 1")
        (workspace / "c.bin").write_bytes(b"\0def binary")
        return workspace

    async def test_lines_with_their_place(self, call, tree):
        assert (await call(search_files, pattern=r"^def \w+")).split("\n") == [
            "a.py:3: def one():",
            "src/b.py:1: def two(): pass",
        ]

    async def test_case_glob_path_and_a_single_file(self, call, tree):
        found = await call(search_files, pattern="def", ignore_case=True, glob="src/*.py")
        assert found == "src/b.py:1: def two(): pass\nsrc/b.py:2: DEF = 1"
        assert await call(search_files, pattern="def", path="src") == "src/b.py:1: def two(): pass"
        assert (
            await call(search_files, pattern="os$", path="a.py")
            == "a.py:1: import os\na.py:4:     return os"
        )

    async def test_a_pattern_that_matches_nothing_or_everything(self, call, tree):
        assert await call(search_files, pattern="zzz") == "[nothing matches 'zzz' in 3 files]"
        assert len((await call(search_files, pattern="", path="a.py")).split("\n")) == 4
        assert len((await call(search_files, pattern="$", path="a.py")).split("\n")) == 4

    async def test_more_than_the_limit_is_told(self, call, tree):
        (tree / "many.txt").write_text("hit\n" * 1000)
        found = (await call(search_files, pattern="hit", limit=3)).split("\n")
        assert found[:3] == ["many.txt:1: hit", "many.txt:2: hit", "many.txt:3: hit"]
        assert found[3].startswith("[there are more than 3 lines")

    async def test_a_long_line_is_cut_and_a_huge_file_is_left_out(self, call, tree):
        (tree / "long.txt").write_text("needle" + "x" * 100_000)
        (tree / "huge.txt").write_text("needle\n" * 2_000_000)
        found = await call(search_files, pattern="needle")
        assert len(found) < 1000
        assert found.endswith("[1 files above 10 MB were not searched]")

    @pytest.mark.parametrize(
        ("pattern", "ignore_case", "names"),
        [
            ("function_one", False, ["kept.py", "nested/inner.py", "new.py"]),
            (r"function_\w+\(", False, ["kept.py", "nested/inner.py", "new.py"]),
            ("(?i)FUNCTION_one", False, ["kept.py", "nested/inner.py", "new.py"]),
            ("FUNCTION_ONE", True, ["kept.py", "nested/inner.py", "new.py"]),
            ("(function_one|no_such_thing)", False, ["kept.py", "nested/inner.py", "new.py"]),
            ("(?:no_such_thing)?function", False, ["kept.py", "nested/inner.py", "new.py"]),
            ("grün", False, ["kept.py"]),
            ("GRÜN", True, ["kept.py"]),
            ("mask", True, ["kept.py"]),  # the Kelvin sign is a k when case is ignored
            (r"[f]unct.on", False, ["kept.py", "nested/inner.py", "new.py"]),
            ("(?!no_such_thing)function", False, ["kept.py", "nested/inner.py", "new.py"]),
            ("ignored_text", False, []),
        ],
    )
    async def test_git_picks_no_fewer_files_than_a_full_search(
        self, call, workspace, pattern, ignore_case, names
    ):
        (workspace / "nested").mkdir()
        git(workspace, "init", "-q")
        git(workspace / "nested", "init", "-q")
        (workspace / ".gitignore").write_text("out.py\n")
        (workspace / "kept.py").write_text("def function_one(): 'grün'  # mas\u212a\n")
        (workspace / "gone.py").write_text("function_one")
        git(workspace, "add", "kept.py", "gone.py")
        (workspace / "gone.py").unlink()
        (workspace / "new.py").write_text("function_one()\n")
        (workspace / "out.py").write_text("function_one() ignored_text\n")
        (workspace / "nested" / "inner.py").write_text("function_one()\n")
        found = await call(search_files, pattern=pattern, ignore_case=ignore_case)
        lines = [] if found.startswith("[nothing matches") else found.split("\n")
        assert [line.partition(":")[0] for line in lines] == names
        inside = await call(search_files, pattern="function_one", path="nested")
        assert inside == "nested/inner.py:1: function_one()"

    async def test_what_is_no_regular_expression_is_told(self, call, tree):
        with pytest.raises(ToolError, match=r"'\(' is not a regular expression: missing \)"):
            await call(search_files, pattern="(")

    async def test_a_pipe_in_the_tree_does_not_hang_the_search(self, call, tree):
        os.mkfifo(tree / "pipe")
        assert "a.py:3" in await call(search_files, pattern="def")

    async def test_a_pattern_that_takes_for_ever_blocks_nothing_and_is_ended(self, call, tree):
        (tree / "trap.txt").write_text("a" * 40 + "!")
        task = asyncio.create_task(call(search_files, pattern="(a+)+$", path="trap.txt"))
        began = time.monotonic()
        await asyncio.sleep(0.3)
        assert time.monotonic() - began < 20  # the loop goes on
        assert children("search_worker")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not children("search_worker")


def children(text: str) -> list[str]:
    """The processes of this one with this in their command line."""
    command = ["ps", "-ww", "-o", "stat,args", "--ppid", str(os.getpid())]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in found if text in line and not line.startswith("Z")]
