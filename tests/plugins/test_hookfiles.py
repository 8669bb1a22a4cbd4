"""Hook files: loaded in order, judged one by one, reloaded in the middle of a conversation."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hookline import hookimpl
from hookline.events import AgentEndEvent, ResourcesDiscoverResult, TurnEndEvent
from hookline.models import Call, Turn
from hookline.plugins.hook_files import get_builtins_hooks_dir
from hookline.plugins.project import project_items
from hookline.tools.registry import REGISTRY

from .seen import SEEN

SAYS = """
from tests.plugins.seen import SEEN

def say(event):
    SEEN.append({word!r})

hooks = [({event!r}, say)]
"""


@pytest.fixture(autouse=True)
def seen():
    SEEN.clear()
    return SEEN


@pytest.fixture
def profile(app) -> Path:
    folder = app.home / "profiles" / "default" / "hooks"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def project(app) -> Path:
    folder = app.workspace / ".hookline" / "hooks"
    folder.mkdir(parents=True)
    return folder


def trust_everything(app) -> None:
    app.trust.grant(project_items(app.workspace))


def says(word: str, event: str = "agent_end") -> str:
    return SAYS.format(word=word, event=event)


def attached(app, hook: str = "agent_end") -> list[str]:
    return [impl.name for impl in app.hooks[hook].run_order()]


def failures(app) -> dict[str, str]:
    return {failure.plugin: str(failure.error) for failure in app.failures}


class TestTheExamplesOfTheirOrigin:
    LOGGING = """
async def on_agent_end(event):
    print(f"Done: {len(event.messages)} messages")

async def on_tool_execution_end(event):
    print(f"Tool '{event.tool_result.name}' finished")

hooks = [
    ('agent_end', on_agent_end),
    ('tool_execution_end', on_tool_execution_end),
]
"""

    @pytest.mark.parametrize("place", ["profile", "project"])
    async def test_logging_prints_what_happened(self, app, scripted, request, place, capsys):
        folder = request.getfixturevalue(place)
        (folder / "logging.py").write_text(self.LOGGING)
        trust_everything(app)
        scripted(Turn(tool_calls=[Call("list_files")]), "Nothing there.")
        async with app.running():
            await app.process({"content": "look"})
        assert capsys.readouterr().out == "Tool 'list_files' finished\nDone: 4 messages\n"

    async def test_every_kind_of_result_works_from_a_file(self, app, scripted, profile):
        (profile / "rules.py").write_text("""
from hookline.events import (
    BeforeAgentStartEventResult,
    ContextEventResult,
    InputEventResult,
    ToolCallEvent,
    ToolCallEventResult,
    ToolResultEventResult,
)

def shout(event):
    return InputEventResult(action="transform", text=event.text.upper())

def prompt(event):
    return BeforeAgentStartEventResult(system_prompt="Be brief.")

async def forget(event):
    return ContextEventResult(messages=event.messages[-1:])

def no_shell(event, ctx):
    if event.tool_name == "shell":
        return ToolCallEventResult(block=True, reason=f"not in {ctx.session_id}")

def tidy(event):
    return ToolResultEventResult(content="tidied: " + event.content)

hooks = [
    ("input", shout),
    ("before_agent_start", prompt),
    ("context", forget),
    (ToolCallEvent, no_shell),
    ("tool_result", tidy),
]
""")
        model = scripted(Turn(tool_calls=[Call("shell", {"command": "ls"})]), "ok")
        async with app.running():
            await app.process({"content": "hi", "session_id": "s"})
        assert not app.failures
        first, second = model.requests
        assert first.system == "Be brief."
        assert first.messages[-1]["content"] == "HI"
        assert [m["role"] for m in second.messages] == ["tool"]
        assert second.messages[0]["content"] == "tidied: not in s"


class TestWhereTheyComeFrom:
    def test_the_shipped_folder_exists_and_loads_without_a_fault(self, app):
        assert get_builtins_hooks_dir().is_dir()
        app.hook_files.load()
        assert not app.failures

    async def test_packages_come_before_profile_project_and_what_was_discovered(
        self, app, profile, project, tmp_path
    ):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (profile / "b.py").write_text(says("b"))
        (profile / "a.py").write_text(says("a"))
        (project / "a.py").write_text(says("project"))
        (elsewhere / "a.py").write_text(says("extra"))
        trust_everything(app)

        class Package:
            @hookimpl
            def agent_end(self):
                SEEN.append("package")

            @hookimpl
            def resources_discover(self, event):
                SEEN.append((event.cwd, event.reason))
                return ResourcesDiscoverResult(hook_paths=[str(elsewhere)])

        app.hooks.add(Package())
        async with app.running():
            await app.hooks.emit(AgentEndEvent())
        where = (str(app.workspace), "startup")
        assert [where, "package", "a", "b", "project", "extra"] == SEEN

    async def test_a_later_file_beats_an_earlier_one_where_the_newest_does(self, app, profile, project):
        for folder, name in ((profile, "profile"), (project, "project")):
            (folder / "x.py").write_text(
                f"hooks = [('build_prompt', lambda: '{name} 1'), ('build_prompt', lambda: '{name} 2')]"
            )
        trust_everything(app)
        app.hook_files.load()
        prompt = await app.hooks.call("build_prompt", message={}, session_id="s", state={})
        assert prompt == "project 2"
        assert attached(app, "build_prompt")[:3] == ["project/x.py"] * 2 + ["profile/x.py"]

    async def test_a_discovered_path_may_be_one_file(self, app, tmp_path):
        (tmp_path / "one.py").write_text(says("one"))
        (tmp_path / "two.py").write_text(says("two"))
        path = str(tmp_path / "one.py")
        app.hooks.register(
            "resources_discover", lambda event: ResourcesDiscoverResult(hook_paths=[path])
        )
        async with app.running():
            await app.hooks.emit(AgentEndEvent())
        assert SEEN == ["one"]

    async def test_a_discovered_path_in_the_project_needs_trust(self, app):
        folder = app.workspace / "tools" / "hooks"
        folder.mkdir(parents=True)
        (folder / "own.py").write_text("from . import _beside\n" + says("own"))
        (folder / "_beside.py").write_text("")
        app.hooks.register(
            "resources_discover", lambda event: ResourcesDiscoverResult(hook_paths=["tools/hooks"])
        )
        async with app.running():
            await app.hooks.emit(AgentEndEvent())
            inert = [item.name for item in app.hook_files.inert()]
            assert (SEEN, inert) == ([], ["tools/hooks/_beside.py", "tools/hooks/own.py"])
            app.trust.grant(app.hook_files.inert())
            await app.hook_files.reload()
            await app.hooks.emit(AgentEndEvent())
        assert (SEEN, app.hook_files.inert()) == (["own"], [])

    async def test_discovered_skills_are_listed_below_those_of_the_user(self, app, scripted, tmp_path):
        for place, text in (
            (tmp_path / ".agents" / "skills", "the user's"),
            (tmp_path / "more", "more"),
        ):
            for name in ("both", "mine") if text == "the user's" else ("both", "other"):
                (place / name).mkdir(parents=True)
                (place / name / "SKILL.md").write_text(
                    f"---\nname: {name}\ndescription: {text}\n---\nText."
                )
        more = str(tmp_path / "more")
        app.hooks.register(
            "resources_discover", lambda event: ResourcesDiscoverResult(skill_paths=[more])
        )
        model = scripted("ok")
        async with app.running():
            await app.process({"content": "hi"})
        assert "- both: the user's\n- mine: the user's\n- other: more" in model.requests[0].system

    async def test_without_the_project_its_files_are_not_even_looked_at(self, app, project):
        (project / "a.py").write_text(says("project"))
        trust_everything(app)
        app.project = False
        async with app.running():
            await app.hooks.emit(AgentEndEvent())
        assert (SEEN, app.hook_files.items()) == ([], [])

    def test_an_app_that_was_not_asked_to_load_hooks_loads_none(self, app, profile):
        from hookline.runtime.app import Hookline

        (profile / "a.py").write_text(says("a"))
        bare = Hookline(home=app.home, workspace=app.workspace)
        bare.hook_files.load()
        assert bare.hook_files.files == []


class TestWhatAnEntryMayBe:
    async def test_options_stand_in_the_third_place(self, app, profile):
        (profile / "x.py").write_text("""
from tests.plugins.seen import SEEN
from hookline.events import TurnEndEvent

def once(event): SEEN.append("once")
def last(event): SEEN.append("last")
def then(event): SEEN.append("then")
def early(event): SEEN.append("early")

hooks = (
    (TurnEndEvent, last, {"trylast": True}),
    ["turn_end", then],
    ("turn_end", once, {"once": True}),
    ("turn_end", early, {"order": -1}),
)
""")
        app.hook_files.load()
        await app.hooks.emit(TurnEndEvent())
        await app.hooks.emit(TurnEndEvent())
        assert SEEN == ["early", "then", "once", "last", "early", "then", "last"]

    def test_function_shaped_hooks_take_the_parameters_they_name(self, app, profile):
        (profile / "x.py").write_text(
            "def fn(tool_name, arguments): return {**arguments, 'by': tool_name}\n"
            "hooks = [('before_tool_call', fn)]"
        )
        app.hook_files.load()
        assert app.hooks.run("before_tool_call", tool_name="t", arguments={}) == {"by": "t"}

    async def test_siblings_and_folders_are_imported_relatively_and_stay_private(
        self, app, profile, project
    ):
        for folder, word in ((profile, "one"), (project, "two")):
            (folder / "_shared.py").write_text(f"WORD = {word!r}")
            (folder / "lib").mkdir()
            (folder / "lib" / "deep.py").write_text("from .. import _shared\nWORD = _shared.WORD * 2")
            (folder / "x.py").write_text(
                "from tests.plugins.seen import SEEN\n"
                "from ._shared import WORD\n"
                "from .lib import deep\n"
                "hooks = [('agent_end', lambda event: SEEN.append((WORD, deep.WORD)))]"
            )
        trust_everything(app)
        path, names = list(sys.path), set(sys.modules)
        app.hook_files.load()
        await app.hooks.emit(AgentEndEvent())
        assert SEEN == [("one", "oneone"), ("two", "twotwo")]
        assert sys.path == path
        assert all(name.startswith("hookline") for name in set(sys.modules) - names)

    def test_a_file_named_like_a_library_hides_it_from_nobody(self, app, profile):
        (profile / "json.py").write_text("hooks = []")
        (profile / "user.py").write_text("import json\njson.dumps({})\nhooks = []")
        app.hook_files.load()
        assert not app.failures


BROKEN = {
    "syntax": ("def f(:\n", "bad.py:1: invalid syntax"),
    "nul": ("x = 1\n\0", "bad.py"),
    "not utf-8": (b"x = '\xff\xfe'\nhooks = []", "bad.py"),
    "import": ("\nimport nothing_of_this_name\n", "bad.py:2: ModuleNotFoundError: No module named"),
    "absolute sibling": ("import good", "imported with `from . import good`"),
    "raises": ("def f():\n    1 / 0\nf()\n", "bad.py:2: ZeroDivisionError: division by zero"),
    "exits": ("import sys\nsys.exit(3)\n", "bad.py:2: it ends the program"),
    "no hooks": ("x = 1", "has no `hooks`; export hooks = [(event_type, handler), …]"),
    "a mapping": ("\nhooks = {'agent_end': print}", "bad.py:2: `hooks` must be a list of"),
    "a bare function": ("hooks = [print]", "entry 1 of `hooks` must be (event_type, handler)"),
    "four parts": ("hooks = [('agent_end', print, {}, 1)]", "entry 1 of `hooks` must be"),
    "a text": ("hooks = [('agent_end', 'print')]", "the handler must be callable, not 'print'"),
    "unknown event": (
        "f = lambda event: None\nhooks = [('agent_end', f), ('agent_ended', f)]",
        "bad.py:2: entry 2 of `hooks`: unknown hook 'agent_ended'; did you mean 'agent_end'",
    ),
    "unknown class": ("hooks = [(int, print)]", "bad.py:1: entry 1 of `hooks`: unknown hook 'int'"),
    "unhashable": ("hooks = [([], print)]", "unknown hook '[]'"),
    "bad signature": (
        "\n\ndef f(event, contxt): ...\nhooks = [('agent_end', f)]",
        "bad.py:3: bad.f on hook 'agent_end' asks for 'contxt'; its parameters are: event, ctx",
    ),
    "unknown option": (
        "hooks = [('agent_end', print, {'one': 1})]",
        "unknown option 'one'; did you mean",
    ),
    "options of a wrong kind": ("hooks = [('agent_end', print, 'shell')]", "options must be a mapping"),
    "two that exclude each other": (
        "hooks = [('run_model', lambda: ''), ('run_model_stream', lambda: None)]",
        "keep one",
    ),
    "too early": ("hooks = [('register_cli_commands', print)]", "a package can do it"),
}


class TestBrokenFiles:
    @pytest.mark.parametrize("kind", BROKEN)
    async def test_a_broken_file_is_told_with_its_place_and_the_rest_works(self, app, profile, kind):
        content, message = BROKEN[kind]
        file = profile / "bad.py"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        (profile / "good.py").write_text(says("good"))
        app.hook_files.load()
        assert list(failures(app)) == ["profile/bad.py"]
        told = failures(app)["profile/bad.py"]
        assert told.startswith(str(file))
        assert message in told
        assert "\n" not in told
        await app.hooks.emit(AgentEndEvent())
        assert SEEN == ["good"]

    @pytest.mark.parametrize("what", ["folder", "pipe", "dangling", "large"])
    async def test_what_cannot_be_read_is_told_and_the_rest_works(self, app, profile, what):
        bad = profile / "bad.py"
        if what == "folder":
            (profile / "elsewhere").mkdir()
            bad.symlink_to(profile / "elsewhere")
        elif what == "pipe":
            os.mkfifo(bad)
        elif what == "dangling":
            bad.symlink_to(profile / "gone")
        else:
            bad.write_text("#" * 1_000_001)
        (profile / "good.py").write_text(says("good"))
        app.hook_files.load()
        assert str(bad) in failures(app)["profile/bad.py"]
        await app.hooks.emit(AgentEndEvent())
        assert SEEN == ["good"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_a_file_without_permission_is_told(self, app, profile):
        (profile / "bad.py").write_text("hooks = []")
        (profile / "bad.py").chmod(0)
        app.hook_files.load()
        assert "cannot be read: Permission denied" in failures(app)["profile/bad.py"]

    def test_a_discovered_path_that_is_not_there_is_told(self, app):
        result = ResourcesDiscoverResult(hook_paths=["nowhere"])
        app.hooks.register("resources_discover", lambda event: result)
        asyncio.run(app.hook_files.start())
        assert (
            "nowhere does not exist; resources_discover named it"
            in failures(app)[str(app.workspace / "nowhere")]
        )


class TestReload:
    async def test_old_handlers_go_new_ones_come_and_the_conversation_stays(
        self, app, scripted, profile, fired
    ):
        begins = "\nhooks.append(('session_start', lambda event: SEEN.append(event.reason)))"
        (profile / "a.py").write_text(says("old") + begins)
        model = scripted("one", "two")
        async with app.running():
            await app.process({"content": "first"})
            (profile / "a.py").write_text(says("new") + begins)
            done = await app.hook_files.reload()
            await app.process({"content": "second"})
        assert SEEN == ["startup", "old", "reload", "new"]
        assert [m["content"] for m in model.requests[1].messages] == ["first", "one", "second"]
        assert str(done) == "3 hook files, 4 handlers"  # with those that are shipped
        assert fired.count("session_start") == 2

    async def test_handlers_keep_their_place(self, app, profile):
        app.hooks.register("agent_end", lambda event: SEEN.append("before"))
        for name in "abc":
            (profile / f"{name}.py").write_text(says(name))
        async with app.running():
            app.hooks.register("agent_end", lambda event: SEEN.append("after"))
            (profile / "a.py").write_text(says("A"))
            (profile / "aa.py").write_text(says("AA"))
            (profile / "c.py").unlink()
            await app.hook_files.reload()
            await app.hooks.emit(AgentEndEvent())
        assert SEEN == ["before", "A", "AA", "b", "after"]

    async def test_a_broken_file_is_told_its_last_version_stays_and_the_rest_is_new(self, app, profile):
        (profile / "a.py").write_text(says("a"))
        (profile / "b.py").write_text(says("b"))
        async with app.running():
            (profile / "a.py").write_text("def f(")
            (profile / "b.py").write_text(says("B"))
            told = str(await app.hook_files.reload())
            await app.hooks.emit(AgentEndEvent())
            assert SEEN == ["a", "B"]
            assert "a.py:1: '(' was never closed; its last working version stays" in told
            (profile / "a.py").write_text(says("A"))
            assert str(await app.hook_files.reload()) == "4 hook files, 4 handlers"
            assert not app.failures
            await app.hooks.emit(AgentEndEvent())
            assert SEEN[2:] == ["A", "B"]
            (profile / "a.py").unlink()
            await app.hook_files.reload()
            await app.hooks.emit(AgentEndEvent())
            assert SEEN[4:] == ["B"]

    async def test_a_dispatch_under_way_finishes_with_what_it_began_with(self, app, profile):
        (profile / "a.py").write_text("""
from tests.plugins.seen import SEEN

async def wait(event, ctx):
    SEEN.append("old")
    ctx["begun"].set()
    await ctx["go"].wait()

def then(event):
    SEEN.append("old then")

hooks = [("agent_end", wait), ("agent_end", then)]
""")
        ctx = {"begun": asyncio.Event(), "go": asyncio.Event()}
        async with app.running():
            running = asyncio.create_task(app.hooks.emit(AgentEndEvent(), ctx))
            await ctx["begun"].wait()
            (profile / "a.py").write_text(says("new"))
            await app.hook_files.reload()
            ctx["go"].set()
            await running
            assert SEEN == ["old", "old then"]
            await app.hooks.emit(AgentEndEvent())
        assert SEEN[2:] == ["new"]

    async def test_tools_of_a_file_come_and_go_with_it(self, app, profile):
        declared = (
            "from hookline import tool\n"
            "@tool\ndef {name}() -> str:\n    '''Say it.'''\n    return 'x'\n"
            "@tool(registry=None)\ndef {name}_given() -> str:\n    '''Say it.'''\n    return 'x'\n"
            "hooks = [('register_tools', lambda: [{name}_given])]"
        )
        file = profile / "a.py"
        file.write_text(declared.format(name="one"))
        async with app.running():
            assert {"one", "one_given"} <= set(app.tools.names())
            file.write_text(declared.format(name="two"))
            await app.hook_files.reload()
            names = set(app.tools.names())
            assert {"two", "two_given"} <= names
            assert not {"one", "one_given"} & names
            await app.hook_files.reload()
            assert {"two", "two_given"} <= set(app.tools.names())
            file.unlink()
            await app.hook_files.reload()
            assert not {"two", "two_given"} & set(app.tools.names())
        assert not {"one", "two"} & set(REGISTRY.names())
        assert not app.failures

    async def test_a_file_may_have_nothing_but_tools(self, app, profile):
        (profile / "a.py").write_text(
            "from hookline import tool\n@tool\ndef shine() -> str:\n    'Shine.'\n    return 'x'\n"
        )
        async with app.running():
            assert "shine" in app.tools.names()
        assert not app.failures

    async def test_a_file_whose_tool_has_a_taken_name_is_left_out_whole(self, app, profile):
        app.absences.on_load_error = "continue"
        (profile / "a.py").write_text(
            says("a") + "\nfrom hookline import tool\n@tool\ndef shell() -> str:\n    '''Mine.'''\n"
        )
        async with app.running():
            assert app.tools.get("shell").place.startswith("hookline.ext.tools")
            await app.hooks.emit(AgentEndEvent())
        assert SEEN == []
        assert "two tools are named 'shell'" in failures(app)["profile/a.py"]

    async def test_the_modules_of_old_versions_are_forgotten(self, app, profile):
        (profile / "a.py").write_text(says("a"))
        async with app.running():
            for _ in range(3):
                await app.hook_files.reload()
            ours = [name for name in sys.modules if name.startswith("hookline_hook_files_")]
            mine = [
                n for n in ours if getattr(sys.modules[n], "__file__", None) == str(profile / "a.py")
            ]
        assert len(mine) == 1

    async def test_reload_asks_again_where_to_look(self, app):
        reasons = []
        app.hooks.register("resources_discover", lambda event: reasons.append(event.reason))
        async with app.running():
            await app.hook_files.reload()
        assert reasons == ["startup", "reload"]

    async def test_a_changed_file_is_noticed_and_so_is_a_folder_that_appears(self, app, project):
        profile = app.home / "profiles" / "default" / "hooks"
        told: asyncio.Queue[str] = asyncio.Queue()
        (project / "a.py").write_text(says("a"))
        trust_everything(app)
        async with app.running(), app.hook_files.watching(told.put_nowait):
            profile.mkdir(parents=True)
            (profile / "b.py").write_text(says("b"))
            while "4 hook files" not in await asyncio.wait_for(told.get(), 30):
                pass
            (profile / "b.py").write_text("nothing")
            while "NameError" not in await asyncio.wait_for(told.get(), 30):
                pass
            (profile / "b.py").unlink()
            while "3 hook files," not in await asyncio.wait_for(told.get(), 30):
                pass
