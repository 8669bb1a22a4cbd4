"""`CLAUDE.md`: of the user, of a project and its folders, with the files that they import."""

import pytest

from hookline.ext.skills.instructions import instructions


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return folder


def put(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".md").write_text(text)


def texts(repository, workspace=None):
    home = repository.parent / "home"
    return [each.text for each in instructions(workspace or repository, home)]


def test_the_users_comes_first_and_the_nearest_last(repository):
    put(repository.parent, **{"home__.claude__CLAUDE": "mine"})
    put(
        repository, AGENTS="agents", CLAUDE="top", **{".claude__CLAUDE": "inner", "src__CLAUDE": "near"}
    )
    (repository / "CLAUDE.local.md").write_text("local")
    assert texts(repository, repository / "src") == ["mine", "agents", "top", "inner", "local", "near"]


def test_imports_follow_the_file_that_names_them_and_code_and_people_are_left_alone(repository):
    put(
        repository,
        CLAUDE="See @docs/a.md, and ask @maria.\n`@docs/b.md`\n```\n@docs/b.md\n```",
        docs__a="a needs @./c.md",
        docs__b="b",
        docs__c="c",
    )
    assert texts(repository)[1:] == ["a needs @./c.md", "c"]


def test_a_file_that_was_shown_is_not_shown_again(repository):
    put(repository, AGENTS="agents", CLAUDE="@AGENTS.md")
    assert texts(repository) == ["agents", "@AGENTS.md"]
    (repository / "CLAUDE.md").unlink()
    (repository / "CLAUDE.md").symlink_to("AGENTS.md")
    assert texts(repository) == ["agents"]


def test_a_circle_is_refused_with_its_file_and_line(repository, caplog):
    put(repository, CLAUDE="one\n@a.md", a="@b.md", b="\n@CLAUDE.md")
    assert len(texts(repository)) == 3
    assert f"{repository}/b.md:2" in caplog.text
    assert "imports itself in a circle" in caplog.text


def test_a_chain_of_imports_ends(repository, caplog):
    put(repository, CLAUDE="@n1.md", **{f"n{n}": f"@n{n + 1}.md" for n in range(1, 8)}, n8="end")
    assert texts(repository) == [f"@n{n}.md" for n in range(1, 6)]
    assert "more than 5 files import one another" in caplog.text


@pytest.mark.parametrize("name", ["../secret.md", "~/secret.md", ".env", "key.pem", ".ssh/notes.md"])
def test_what_leaves_the_repository_or_may_hold_secrets_is_not_imported(
    repository, caplog, monkeypatch, name
):
    monkeypatch.setenv("HOME", str(repository.parent))
    path = repository.parent / "secret.md" if "secret" in name else repository / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("hunter2")
    put(repository, CLAUDE=f"text\n\n@{name}")
    assert texts(repository) == [f"text\n\n@{name}"]
    assert f"{repository}/CLAUDE.md:3" in caplog.text


async def test_a_turn_shows_them_to_the_model(app, scripted):
    put(app.workspace, CLAUDE="Be brief. @style.md", style="No adverbs.")
    model = scripted("done")
    async with app.running():
        await app.process({"content": "hi"})
    assert "Be brief." in model.requests[0].system
    assert "No adverbs." in model.requests[0].system
