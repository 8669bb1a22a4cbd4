"""Trust: a project's code does nothing until exactly these bytes were trusted."""

import hashlib
import json
import stat
import tomllib
from pathlib import Path

import pytest

from hookline.errors import TrustError
from hookline.events import AgentEndEvent, ResourcesDiscoverResult
from hookline.ext.skills import SkillError
from hookline.plugins.project import config_commands, project_items
from hookline.plugins.trust import Trust, TrustItem

from .seen import SEEN
from .test_hookfiles import failures, says


@pytest.fixture(autouse=True)
def seen():
    SEEN.clear()
    return SEEN


@pytest.fixture
def project(app) -> Path:
    folder = app.workspace / ".hookline" / "hooks"
    folder.mkdir(parents=True)
    return folder


def skill(app, name: str, script: str | None = None, place: str = ".agents") -> Path:
    folder = app.workspace / place / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Do it.\n---\nText.")
    if script is not None:
        (folder / script).write_text("print('hi')")
    return folder


def grant(app) -> None:
    app.trust.grant(project_items(app.workspace))


def names(items: list[TrustItem]) -> list[str]:
    return [item.name for item in items]


class TestTheRecord:
    def test_bytes_are_allowed_as_they_were_granted_and_not_otherwise(self, tmp_path):
        file = tmp_path / "project" / ".hookline" / "hooks" / "a.py"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"hooks = []")
        trust = Trust(tmp_path / "home")
        assert not trust.allows(file)
        trust.grant(project_items(tmp_path / "project"))
        assert trust.allows(file)
        assert trust.allows(file, b"hooks = []")
        assert not trust.allows(file, b"hooks = [] ")
        assert not trust.allows(file.with_name("b.py"), b"hooks = []")
        file.write_bytes(b"hooks = [1]")
        assert not trust.allows(file)
        file.unlink()
        assert not trust.allows(file)

    def test_it_is_one_file_that_only_the_user_reads(self, tmp_path):
        project, home = tmp_path / "project", tmp_path / "home"
        (project / ".hookline" / "hooks").mkdir(parents=True)
        (project / ".hookline" / "hooks" / "a.py").write_bytes(b"x")
        Trust(home).grant(project_items(project))
        assert [p.name for p in home.iterdir()] == ["trust.json"]
        assert stat.S_IMODE((home / "trust.json").stat().st_mode) == 0o600
        assert json.loads((home / "trust.json").read_text()) == {
            "version": 1,
            "projects": {str(project): {".hookline/hooks/a.py": hashlib.sha256(b"x").hexdigest()}},
        }

    def test_the_same_file_in_another_project_is_another_matter(self, tmp_path):
        for name in ("one", "two"):
            folder = tmp_path / name / ".hookline" / "hooks"
            folder.mkdir(parents=True)
            (folder / "a.py").write_bytes(b"hooks = []")
        trust = Trust(tmp_path / "home")
        trust.grant(project_items(tmp_path / "one"))
        assert trust.allows(tmp_path / "one" / ".hookline" / "hooks" / "a.py")
        assert not trust.allows(tmp_path / "two" / ".hookline" / "hooks" / "a.py")

    def test_what_one_process_grants_another_sees(self, tmp_path):
        file = tmp_path / ".hookline" / "hooks" / "a.py"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"hooks = []")
        first, second = Trust(tmp_path / "home"), Trust(tmp_path / "home")
        assert not second.allows(file)
        first.grant(project_items(tmp_path))
        assert second.allows(file)
        assert first.revoke(tmp_path) == [".hookline/hooks/a.py"]
        assert not second.allows(file)
        assert first.revoke(tmp_path) == []

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("{", "it is not JSON"),
            ("[]", "it has no projects"),
            ('{"version": 2, "projects": {}}', "its version is not 1"),
            ('{"version": 1, "projects": {"/x": ["a"]}}', "not a list of hashes"),
        ],
    )
    def test_a_record_that_cannot_be_used_allows_nothing_and_is_not_overwritten(
        self, tmp_path, content, reason
    ):
        file = tmp_path / ".hookline" / "hooks" / "a.py"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"hooks = []")
        record = tmp_path / "trust.json"
        record.write_text(content)
        trust = Trust(tmp_path)
        assert not trust.allows(file)
        with pytest.raises(TrustError, match=reason):
            trust.grant(project_items(tmp_path))
        assert record.read_text() == content

    async def test_an_app_says_so_and_goes_on(self, app, project, scripted):
        (project / "a.py").write_text(says("a"))
        app.home.mkdir()
        (app.home / "trust.json").write_text("{")
        scripted("ok")
        async with app.running():
            assert (await app.process({"content": "hi"})).model_output == "ok"
        assert "delete it and run `hookline trust` again" in failures(app)["trust"]
        assert (SEEN, names(app.hook_files.inert())) == ([], [".hookline/hooks/a.py"])


class TestHookFiles:
    async def test_they_are_inert_until_trusted_and_again_once_changed(self, app, project):
        (project / "a.py").write_text(says("a"))
        async with app.running():
            await app.hooks.emit(AgentEndEvent())
            assert (SEEN, app.failures) == ([], [])
            assert names(app.hook_files.inert()) == [".hookline/hooks/a.py"]
            grant(app)
            await app.hook_files.reload()
            await app.hooks.emit(AgentEndEvent())
            assert SEEN == ["a"]
            (project / "a.py").write_text(says("changed"))
            done = await app.hook_files.reload()
            await app.hooks.emit(AgentEndEvent())
            assert SEEN == ["a"], "what changed is dropped"
            assert (done.inert, done.dropped) == (1, ["project/a.py"])
            assert "dropped, because it changed since it was trusted: project/a.py" in str(done)
            assert "1 thing of this project is inert" in str(done)
            app.trust.revoke(app.workspace)
            await app.hook_files.reload()
            await app.hooks.emit(AgentEndEvent())
            assert SEEN == ["a"]

    async def test_a_changed_file_is_not_loaded_by_the_next_process(self, app, project):
        from hookline.runtime.app import Hookline

        (project / "a.py").write_text(says("a"))
        grant(app)
        (project / "a.py").write_text(says("changed"))
        other = Hookline(home=app.home, workspace=app.workspace)
        other.load_hooks(packages=False)
        other.hook_files.load()
        assert all(file.name.startswith("builtin/") for file in other.hook_files.files)

    async def test_what_it_imports_must_be_trusted_too(self, app, project):
        (project / "_shared.py").write_text("WORD = 'harmless'")
        (project / "a.py").write_text(
            "from ._shared import WORD\nfrom tests.plugins.seen import SEEN\n"
            "hooks = [('agent_end', lambda event: SEEN.append(WORD))]"
        )
        (project / "b.py").write_text(says("b"))
        grant(app)
        (project / "_shared.py").write_text("WORD = 'evil'")
        app.absences.on_load_error = "continue"
        async with app.running():
            await app.hooks.emit(AgentEndEvent())
        assert SEEN == ["b"]
        told = failures(app)["project/a.py"]
        assert told.startswith(f"{project / 'a.py'}:1: ImportError: ")
        assert "_shared.py is not trusted; `hookline trust` shows it and asks" in told

    async def test_a_file_swapped_between_check_and_load_does_not_run(self, app, project):
        (project / "_shared.py").write_text("WORD = 'shared as checked'")
        (project / "a.py").write_text(
            says("as checked") + "from ._shared import WORD\nSEEN.append(WORD)"
        )
        grant(app)

        class Swapping(Trust):
            """Replaces every file the moment it has been judged."""

            def allows(self, path, content=None):
                allowed = super().allows(path, content)
                for file in project.iterdir():
                    file.write_text(says("swapped") + "SEEN.append('swapped')\nWORD = 'swapped'")
                return allowed

        app.__dict__["trust"] = Swapping(app.home)
        app.hook_files.load()
        await app.hooks.emit(AgentEndEvent())
        assert SEEN == ["shared as checked", "as checked"]

    async def test_a_late_import_gets_what_was_checked(self, app, project):
        (project / "_late.py").write_text("WORD = 'as checked'")
        (project / "a.py").write_text(
            "from tests.plugins.seen import SEEN\n"
            "def say(event):\n    from . import _late\n    SEEN.append(_late.WORD)\n"
            "hooks = [('agent_end', say)]"
        )
        grant(app)
        app.hook_files.load()
        (project / "_late.py").write_text("WORD = 'swapped'")
        await app.hooks.emit(AgentEndEvent())
        assert SEEN == ["as checked"]

    async def test_compiled_files_that_a_project_ships_are_not_used(self, app, project):
        import py_compile

        evil = project / "evil.txt"
        evil.write_text("from tests.plugins.seen import SEEN\nSEEN.append('evil')\nWORD = 1")
        (project / "_shared.py").write_text("WORD = 1")
        (project / "a.py").write_text("from ._shared import WORD\nhooks = []")
        grant(app)
        cache = project / "__pycache__"
        cache.mkdir()
        for name in ("_shared", "a"):
            for place in (cache / f"{name}.cpython-311.pyc", project / f"{name}.pyc"):
                py_compile.compile(
                    str(evil), str(place),
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )  # fmt: skip
        app.hook_files.load()
        assert SEEN == []
        assert "project/a.py" in [file.name for file in app.hook_files.files]

    @pytest.mark.parametrize("link", ["file", "folder", "hidden folder"])
    async def test_links_out_of_the_project_are_refused(self, app, tmp_path, link):
        outside = tmp_path / "outside"
        (outside / "hooks").mkdir(parents=True)
        (outside / "hooks" / "a.py").write_text(says("outside"))
        hidden = app.workspace / ".hookline"
        if link == "hidden folder":
            hidden.symlink_to(outside)
        else:
            hidden.mkdir()
            if link == "folder":
                (hidden / "hooks").symlink_to(outside / "hooks")
            else:
                (hidden / "hooks").mkdir()
                (hidden / "hooks" / "a.py").symlink_to(outside / "hooks" / "a.py")
                (hidden / "hooks" / "b.py").write_text(says("b"))
        grant(app)
        async with app.running():
            await app.hooks.emit(AgentEndEvent())
        [(name, told)] = failures(app).items()
        assert name.startswith("project")
        assert "leads out of the project to" in told
        assert (["b"] if link == "file" else []) == SEEN

    async def test_a_link_within_the_project_is_followed(self, app, project):
        (app.workspace / "shared.py").write_text(says("shared"))
        (project / "a.py").symlink_to(app.workspace / "shared.py")
        grant(app)
        app.hook_files.load()
        await app.hooks.emit(AgentEndEvent())
        assert SEEN == ["shared"]


class TestSkills:
    @pytest.mark.parametrize("place", [".agents", ".claude"])
    async def test_a_skill_with_scripts_is_inert_and_one_of_text_is_not(self, app, scripted, place):
        skill(app, "text", place=place)
        folder = skill(app, "scripted", "run.py", place)
        model = scripted("one", "two")
        async with app.running():
            await app.process({"content": "hi"})
            assert names(app.hook_files.inert()) == [f"{place}/skills/scripted"]
            grant(app)
            await app.hook_files.reload()
            await app.process({"content": "hi"})
        first, second = (request.system for request in model.requests)
        assert ("- text: Do it." in first, "- scripted: Do it." in first) == (True, False)
        assert "- scripted: Do it." in second
        skills = app.hooks.pm.get_plugin("skills").skills
        assert "Text." in skills.load("scripted")
        (folder / "data.txt").write_text("a script may read this")
        with pytest.raises(SkillError, match=r"has files that could run \(run.py\) and is not trusted"):
            skills.load("scripted")

    @pytest.mark.parametrize("script", ["run.sh", "run.js", "deep/run.py", "run", ".hidden.sh"])
    def test_scripts_are_known_by_name_or_by_being_executable(self, app, script):
        folder = skill(app, "one")
        (folder / script).parent.mkdir(exist_ok=True)
        (folder / script).write_text("#!/bin/sh")
        (folder / script).chmod(0o755 if script == "run" else 0o644)
        [item] = project_items(app.workspace)
        assert (item.kind, item.runs) == ("skill", (script,))

    def test_every_file_of_the_folder_counts(self, app):
        folder = skill(app, "one", "run.py")
        grant(app)
        (folder / ".secret").write_text("x")
        assert names(app.hook_files.inert()) == [".agents/skills/one"]

    async def test_scripts_of_the_user_need_no_trust(self, app, tmp_path):
        own = tmp_path / ".agents" / "skills" / "own"
        own.mkdir(parents=True)
        (own / "SKILL.md").write_text("---\nname: own\ndescription: Mine.\n---\nText.")
        (own / "run.py").write_text("print()")
        assert "own" in app.hooks.pm.get_plugin("skills").skills

    async def test_a_discovered_folder_in_the_project_is_no_way_around(self, app):
        folder = app.workspace / "more" / "one"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\nname: one\ndescription: Do it.\n---\nText.")
        (folder / "run.py").write_text("print()")
        result = ResourcesDiscoverResult(skill_paths=["more"])
        app.hooks.register("resources_discover", lambda event: result)
        async with app.running():
            skills = app.hooks.pm.get_plugin("skills").skills
            assert "one" not in skills
            assert names(app.hook_files.inert()) == ["more/one"]
            app.trust.grant(app.hook_files.inert())
            await app.hook_files.reload()
            assert "one" in skills
            assert "load_skill" in app.tools

    def test_without_the_project_there_are_none(self, app):
        skill(app, "text")
        (app.workspace / "AGENTS.md").write_text("Obey.")
        app.project = False
        plugin = app.hooks.pm.get_plugin("skills")
        assert len(plugin.skills) == 0
        assert plugin.bootstrap_files() == []


class TestConfig:
    CONFIG = """
model = "local"

[mcp.servers.time]
command = "uvx"
args = ["mcp-server-time", "--utc"]

[mcp.servers.far]
url = "https://example.org/mcp"

[[hooks.commands.Stop]]
hooks = [{ type = "command", command = "make clean" }]
"""

    def test_what_a_configuration_runs_is_found(self):
        tables = tomllib.loads(self.CONFIG)
        assert [(command.place, str(command)) for command in config_commands(tables)] == [
            ("hooks.commands.Stop[1].hooks[1]", "make clean"),
            ("mcp.servers.time", "uvx mcp-server-time --utc"),
            ("mcp.servers.far", "https://example.org/mcp"),
        ]

    def test_one_that_runs_something_needs_trust(self, app):
        file = app.workspace / ".hookline" / "config.toml"
        file.parent.mkdir()
        file.write_text('model = "local"')
        assert project_items(app.workspace) == []
        file.write_text(self.CONFIG)
        [item] = project_items(app.workspace)
        assert (item.kind, len(item.runs)) == ("config", 3)
        assert not app.trust.covers(item)
        app.trust.grant([item])
        assert app.trust.covers(item)
