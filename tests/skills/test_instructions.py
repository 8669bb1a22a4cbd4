"""`AGENTS.md`: from the top of the repository down to the workspace."""

import os

import pytest

from hookline.ext.skills.instructions import instructions, render


@pytest.fixture
def tree(tmp_path):
    """A repository `repo` with the workspace `repo/src/part`, below a folder with a file of its own."""
    workspace = tmp_path / "repo" / "src" / "part"
    workspace.mkdir(parents=True)
    (tmp_path / "repo/.git").mkdir()
    (tmp_path / "AGENTS.md").write_text("outside")
    (tmp_path / "repo/AGENTS.md").write_text("top\r\n")
    (workspace / "AGENTS.md").write_text("\ufeffnear")
    return tmp_path


def texts(workspace, **options):
    return [each.text for each in instructions(workspace, **options)]


def test_from_the_repositorys_root_to_the_workspace_the_nearest_last(tree):
    assert texts(tree / "repo/src/part") == ["top", "near"]
    assert texts(tree / "repo/src") == ["top"]


def test_each_is_shown_with_the_folder_it_holds_for(tree):
    shown = render(instructions(tree / "repo/src"))
    assert shown == [f"Instructions for {tree}/repo, from AGENTS.md:\n\ntop"]


def test_without_a_repository_up_to_the_home(tree):
    (tree / "repo/.git").rmdir()
    assert texts(tree / "repo/src/part", home=tree / "repo") == ["top", "near"]
    assert texts(tree / "repo/src/part", home=tree / "elsewhere")[-3:] == ["outside", "top", "near"]


def test_a_long_file_is_cut(tree):
    (tree / "repo/AGENTS.md").write_text("x" * 50)
    assert texts(tree / "repo", limit=10) == ["x" * 10 + "\n[cut: 40 more characters in the file]"]


def test_a_link_within_the_repository_is_followed_and_one_that_leaves_it_is_not(tree, caplog):
    (tree / "secret").write_text("secret")
    (tree / "repo/src/AGENTS.md").symlink_to(tree / "secret")
    (tree / "repo/src/part/AGENTS.md").unlink()
    (tree / "repo/src/part/AGENTS.md").symlink_to("../../AGENTS.md")
    assert texts(tree / "repo/src/part") == ["top"]  # once, for it is the same file
    assert "leads out of" in caplog.text


def test_what_cannot_be_read_is_left_out(tree, caplog):
    (tree / "repo/AGENTS.md").write_bytes(b"\xff\xfe")
    assert texts(tree / "repo/src/part") == ["near"]
    assert "is not UTF-8" in caplog.text


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_above_the_workspace_is_left_out(tree, caplog):
    os.chown(tree / "repo/AGENTS.md", 12345, -1)
    assert texts(tree / "repo/src/part") == ["near"]
    assert "another user" in caplog.text
    os.chown(tree / "repo/src/part", 12345, -1)  # unless the workspace is that user's too
    assert texts(tree / "repo/src/part") == ["top", "near"]


def test_an_empty_workspace_has_none(tmp_path):
    (tmp_path / ".git").mkdir()
    assert instructions(tmp_path) == []
