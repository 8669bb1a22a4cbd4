"""Skills and instructions in a running agent."""

import subprocess
import sys

import pytest

from hookline import hookimpl
from hookline.ext.skills.plugin import SkillsPlugin
from hookline.models.script import Call, Turn
from hookline.plugins.project import project_items
from hookline.runtime.app import Hookline
from hookline.specs import SkillSpec


@pytest.fixture
def app(places) -> Hookline:
    made = Hookline(home=places / "state", workspace=places / "workspace")
    made.load_hooks(packages=False)
    return made


async def turn(app):
    async with app.running():
        return await app.process({"content": "go"})


async def calls(app, scripted, *wanted):
    """What the tools answered."""
    model = scripted(Turn(tool_calls=list(wanted)), "Done.")
    await turn(app)
    return [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]


async def test_without_skills_nothing_is_added(app, scripted):
    model = scripted("Hello.")
    await turn(app)
    assert "skill" not in model.requests[0].system
    assert "load_skill" not in app.tools


async def test_the_model_is_told_of_skills_and_instructions(app, scripted, write, places):
    write("review")
    (places / "workspace/AGENTS.md").write_text("Be brief.")
    model = scripted("Hello.")
    await turn(app)
    system = model.requests[0].system
    assert "- review: The project's review." in system
    assert system.endswith("from AGENTS.md:\n\nBe brief.")
    assert "Do review." not in system


async def test_instructions_are_read_anew_for_each_turn(app, scripted, places):
    model = scripted("One.", "Two.")
    await turn(app)
    (places / "workspace/AGENTS.md").write_text("Be brief.")
    await turn(app)
    assert ["Be brief." in request.system for request in model.requests] == [False, True]


async def test_the_model_loads_a_skill_and_reads_its_files(app, scripted, write):
    folder = write("review")
    (folder / "rules.md").write_text("rule\n")
    (folder / "large.md").write_text("a line of text\n" * 5000)
    body, rules, page, rest = await calls(
        app,
        scripted,
        Call("load_skill", {"name": "review"}),
        Call("read_skill_file", {"name": "review", "path": "rules.md"}),
        Call("read_skill_file", {"name": "review", "path": "large.md"}),
        Call("read_skill_file", {"name": "review", "path": "large.md", "start": 4999}),
    )
    assert body.endswith("Do review.")
    assert rules == "rule\n"
    assert page.endswith("[there is more: go on with start=2667]")
    assert rest == "a line of text\n" * 2


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("load_skill", {"name": "revue"}, "unknown skill 'revue'; did you mean 'review'?"),
        ("read_skill_file", {"name": "review", "path": "../../../secret"}, "leads out of"),
        ("read_skill_file", {"name": "review", "path": "/etc/passwd"}, "leads out of"),
        ("read_skill_file", {"name": "review", "path": "link"}, "leads out of"),
        ("read_skill_file", {"name": "review", "path": "a\0b"}, "cannot be followed"),
        ("read_skill_file", {"name": "review", "path": "."}, "is a folder"),
        ("read_skill_file", {"name": "review", "path": "rule.md"}, "did you mean 'rules.md'?"),
        ("read_skill_file", {"name": "review", "path": "rules.md", "start": 9}, "the file has 1 lines"),
        ("read_skill_file", {"name": "described", "path": "x"}, "has no files"),
    ],
)
async def test_what_cannot_be_done_is_told(app, scripted, write, places, tool, arguments, message):
    folder = write("review", source="user")
    (places / "secret").write_text("secret")
    (folder / "link").symlink_to(places / "secret")
    (folder / "rules.md").write_text("rule")
    app.hooks.register("register_skills", lambda: [SkillSpec(name="described")])
    [answer] = await calls(app, scripted, Call(tool, arguments))
    assert message in answer


async def test_a_projects_skill_with_a_link_out_of_the_project_is_never_loaded(
    app, scripted, write, places
):
    folder = write("review")
    (places / "secret").write_text("secret")
    (folder / "link").symlink_to(places / "secret")
    app.trust.grant(project_items(app.workspace))
    [answer] = await calls(app, scripted, Call("load_skill", {"name": "review"}))
    assert answer.startswith("unknown tool 'load_skill'")  # there is no skill at all


def plugin_with(skills):
    return type("Brings", (), {"register_skills": hookimpl(lambda self: skills())})()


async def test_plugins_bring_skills_as_specs_or_as_mappings(app, scripted):
    app.hooks.add(plugin_with(lambda: [SkillSpec(name="a"), {"name": "b", "kind": "agent"}]))
    app.hooks.add(plugin_with(lambda: None), name="silent")
    model = scripted("Hello.")
    await turn(app)
    assert model.requests[0].system.endswith("\n- a\n- b")


async def test_a_plugin_that_fails_is_told_and_the_others_skills_stay(app, scripted, caplog):
    app.hooks.add(plugin_with(lambda: 1 / 0), name="broken")
    app.hooks.add(plugin_with(lambda: [{"name": "fine"}, {"nome": "bad"}, 3]), name="half")
    app.hooks.add(plugin_with(lambda: [{"name": "good"}]), name="whole")
    app.absences.on_load_error = "continue"
    scripted("Hello.")
    await turn(app)
    skills = app.hooks.pm.get_plugin("skills").skills
    assert [skill.name for skill in skills.list()] == ["good"]
    assert [failure.plugin for failure in app.failures] == ["broken", "half"]
    assert "division by zero" in caplog.text


async def test_the_registry_of_skills_is_built_once(app, scripted, fired):
    scripted("One.", "Two.")
    await turn(app)
    await turn(app)
    assert fired.count("register_skills") == 1


def test_a_profile_brings_its_own(app, write, places):
    write("own", source="profile")
    app.config.profiled.dir = places / "profile"
    assert SkillsPlugin(app).skills.get("own").source == "profile"


def test_the_command_line_starts_without_yaml_and_pydantic():
    probe = (
        "import sys; sys.argv = ['hookline', '--help']\n"
        "from hookline.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('yaml', 'pydantic', 'hookline.ext.skills.skills') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
