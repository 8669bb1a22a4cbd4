"""Where skills are found, which of two counts, and what is refused."""

import os
import sys
from pathlib import Path

import pytest

from hookline.ext.skills import Skills, UnknownSkill
from hookline.specs import SkillSpec

SPEC = SkillSpec(name="review", description="The plugin's review.", system_prompt="Do it.")


def test_a_higher_place_shadows_a_lower_one_and_both_are_known(write, discover):
    order = ["project", "user", "profile", "package"]
    for source in order:
        write("review", source=source)
        write(f"only-{source}", source=source)
    skills = discover([SPEC])
    assert skills.get("review").source == "project"
    shadowed = [(low.source, high.source) for low, high in skills.shadowed]
    assert shadowed == [(low, "project") for low in ["user", "profile", "plugin", "package"]]
    assert {skill.name for skill in skills.list()} == {"review", *(f"only-{s}" for s in order)}


def test_what_was_discovered_stands_between_plugins_and_packages(write, places):
    for name in ("review", "other"):
        write(name, source="package")
    more = places / "more"
    for name in ("review", "other"):
        (more / name).mkdir(parents=True)
        (more / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Discovered.\n---\n")
    packages = [str(places / "packages")]
    skills = Skills.discover(places / "workspace", None, [SPEC], packages=packages, paths=[more])
    assert skills.get("review").description == "The plugin's review."
    assert skills.get("other").description == "Discovered."
    assert [low.source for low, _ in skills.shadowed] == ["plugin", "package", "package"]


def test_a_broken_skill_shadows_nothing(write, discover):
    write("review", "broken")
    write("review", source="user")
    skills = discover()
    assert skills.get("review").source == "user"
    assert len(skills.problems) == 1


def test_a_plugins_skill_beats_a_packages(write, discover):
    write("review", source="package")
    assert discover([SPEC]).get("review").body == "Do it."


def test_a_plugins_namespace_belongs_to_the_name(discover):
    spec = SkillSpec(name="review", namespace="acme", tools=["diff"], system_prompt="Look.")
    skills = discover([spec])
    assert skills.load("acme.review") == "# Skill: acme.review\nTools: diff\n\nLook."
    assert skills.get("acme.review").files == []


def test_packages_are_looked_for_on_the_path_of_python(write, places, monkeypatch):
    write("shipped", source="package")
    (places / "workspace" / "skills" / "mine").mkdir(parents=True)
    (places / "workspace/skills/mine/SKILL.md").write_text("---\nname: mine\ndescription: d\n---")
    entries = ["", "/nowhere", str(places / "workspace"), *[str(places / "packages")] * 2]
    monkeypatch.setattr(sys, "path", entries)
    skills = Skills.discover(places / "workspace", None)
    assert [(skill.name, skill.source) for skill in skills.list()] == [("shipped", "package")]
    assert not skills.shadowed


def test_a_workspace_that_is_the_home_is_read_once(write, places):
    write("review", source="user")
    skills = Skills.discover(places / "home", places / "home", packages=())
    assert [skill.source for skill in skills.list()] == ["project"]
    assert not skills.shadowed


def test_no_folders_no_skills(places):
    skills = Skills.discover(places / "gone", places / "gone too", packages=())
    assert (skills.list(), skills.problems, skills.brief()) == ([], [], "")


def test_what_is_no_skill_is_passed_over(write, places, discover):
    folder = write("good").parent
    (folder / "README.md").write_text("about")
    (folder / "empty").mkdir()
    skills = discover()
    assert len(skills) == 1
    assert not skills.problems


class TestLinks:
    def test_a_skill_that_is_a_link_out_of_the_folder_is_refused(self, write, places, discover):
        folder = write("good").parent
        elsewhere = write("bad", source="profile")
        (folder / "bad").symlink_to(elsewhere)
        skills = discover()
        assert [str(p) for p in skills.problems if "leads out of" in str(p)]
        assert skills.get("bad").source == "profile"

    def test_a_file_that_is_a_link_out_of_the_folder_is_refused(self, write, places, discover):
        secret = places / "secret"
        secret.write_text("---\nname: bad\ndescription: secret\n---\n")
        folder = write("bad")
        (folder / "SKILL.md").unlink()
        (folder / "SKILL.md").symlink_to(secret)
        skills = discover()
        assert "bad" not in skills
        assert "leads out of" in skills.problems[0].reason

    def test_a_projects_folder_may_not_lie_elsewhere(self, write, places, discover):
        write("review", source="profile")
        (places / "workspace/.agents").mkdir()
        (places / "workspace/.agents/skills").symlink_to(places / "profile/skills")
        skills = discover()
        assert skills.get("review").source == "profile"
        assert "leads out of" in skills.problems[0].reason

    def test_a_link_that_stays_inside_is_followed(self, write, discover):
        folder = write("good")
        (folder / "SKILL.md").rename(folder / "text.md")
        (folder / "SKILL.md").symlink_to("text.md")
        assert discover().get("good").body == "Do good."

    def test_a_loop_of_links_is_a_problem(self, write, discover):
        folder = write("loop")
        (folder / "SKILL.md").unlink()
        (folder / "SKILL.md").symlink_to("SKILL.md")
        assert len(discover().problems) == 1


def test_a_pipe_in_place_of_the_file_does_not_hold_up_anything(write, discover):
    folder = write("pipe")
    (folder / "SKILL.md").unlink()
    os.mkfifo(folder / "SKILL.md")
    assert "is not a regular file" in discover().problems[0].reason


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_a_problem(write, discover):
    (write("secret") / "SKILL.md").chmod(0)
    assert "cannot be read" in discover().problems[0].reason


def test_nothing_is_run_at_discovery_or_when_a_skill_is_loaded(write, places, discover):
    folder = write("scripted")
    (folder / "scripts").mkdir()
    script = folder / "scripts" / "run.py"
    script.write_text(f"open({str(places / 'ran')!r}, 'w')")
    script.chmod(0o755)
    (folder / "__init__.py").write_text(script.read_text())
    assert "scripts/run.py" in discover().load("scripted")
    assert not (places / "ran").exists()


def test_an_unknown_name_offers_the_nearest(write, discover):
    write("code-review")
    with pytest.raises(UnknownSkill, match="did you mean 'code-review'"):
        discover().load("code-reviews")


def test_the_body_is_read_when_it_is_asked_for(write, discover):
    folder = write("review")
    skill = discover().get("review")
    (folder / "SKILL.md").write_text("---\nname: review\ndescription: d\n---\nNew text")
    assert skill.body == "New text"


def test_loading_tells_the_folder_and_the_files(write, discover):
    folder = write("review")
    (folder / "references").mkdir()
    (folder / "references/rules.md").write_text("rules")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_text("")
    (folder / "out").symlink_to("/etc/passwd")
    assert discover().load("review") == (
        f"# Skill: review\nFolder: {folder}\nFiles, for read_skill_file, relative to the folder:\n"
        "- references/rules.md\n\nDo review."
    )


class TestTheBriefList:
    def test_a_line_for_each(self, write, discover):
        write("b", "---\nname: b\ndescription: |\n  Two\n  lines\n---\n")
        write("a", source="user")
        assert discover().brief().splitlines()[2:] == ["- b: Two lines", "- a: The user's a."]

    def test_descriptions_are_shortened_and_then_skills_left_out(self):
        specs = [SkillSpec(name=f"skill-{n:03}", description="word " * 100) for n in range(200)]
        many = Skills.discover(Path("/nowhere"), None, specs, packages=())
        brief = many.brief()
        assert len(brief) <= 12_000
        assert "skill-199" in brief
        few = many.brief(limit=1_000)
        assert len(few) <= 1_000
        assert few.endswith(" more")


@pytest.mark.parametrize("place", ["workspace", "home"])
def test_skills_of_a_claude_folder_are_found_beside_the_others(places, write, discover, place):
    folder = places / place / ".claude" / "skills" / "brought"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: brought\ndescription: d\n---\nText")
    write("other")
    assert {skill.name for skill in discover().list()} == {"brought", "other"}
