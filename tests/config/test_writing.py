"""Writing a file of settings: what was there stays, and all of it or none."""

import stat
import tomllib

import pytest

from hookline.config import ConfigError
from hookline.config.writer import write

COMMENTED = """\
# My settings.
model = "local"  # the small one

[limits]
# Not too many.
steps = 10

[providers.openai]  # at work
api_key = "k"
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(COMMENTED)
    return path


def test_comments_and_layout_survive(path):
    write(path, {"limits": {"steps": 20}})
    assert path.read_text() == COMMENTED.replace("steps = 10", "steps = 20")


def holds(read, wanted):
    if not isinstance(wanted, dict):
        return read == wanted
    return all(name in read and holds(read[name], value) for name, value in wanted.items())


@pytest.mark.parametrize(
    "changes",
    [
        {"thinking": "high"},
        {"limits": {"tool_seconds": 2.5}},
        {"providers": {"groq": {"api_key": "g"}}},
        {"mcp": {"servers": {"time": {"command": "uvx", "args": ["a", "b"]}}}},
        {"plugins": {"disabled": ["x"]}},
        {"options": {"empty": {}}},
        {"model": 'with "quotes" and \\ and \n lines'},
        {"providers": {"with-hyphen and space": {"a.b": 1}}},
    ],
)
def test_what_is_added_is_read_back_and_every_old_line_is_still_there(path, changes):
    write(path, changes)
    text = path.read_text()
    for line in COMMENTED.splitlines():
        assert "model" in changes or line in text
    assert holds(tomllib.loads(text), changes)
    assert holds(tomllib.loads(text), {**tomllib.loads(COMMENTED), **changes})


@pytest.mark.parametrize(
    "text",
    [
        "limits.steps = 1\nlimits.depth = 2\n",
        "limits = { steps = 1, depth = 2 }\n",
        "[limits]\nsteps = 1\ndepth = 2",
        "[a]\nx = 1\n[limits]\nsteps = 1\ndepth = 2\n[a.b]\ny = 1\n",
        "[limits]\r\nsteps = 1\r\ndepth = 2\r\n",
    ],
)
def test_a_table_is_changed_however_it_is_written(path, text):
    path.write_bytes(text.encode())
    write(path, {"limits": {"steps": 5}})
    assert tomllib.loads(path.read_bytes().decode())["limits"] == {"steps": 5, "depth": 2}


def test_a_new_file_is_the_owners_alone_and_an_old_one_keeps_its_mode(path, tmp_path):
    new = tmp_path / "deep" / "down" / "config.toml"
    write(new, {"model": "a"})
    assert new.read_text() == 'model = "a"\n'
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    path.chmod(0o640)
    write(path, {"model": "a"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    write(link, {"model": "a"})
    assert link.is_symlink()
    assert 'model = "a"' in path.read_text()


def test_a_broken_file_is_left_as_it_is(path):
    path.write_text("model = = 1")
    with pytest.raises(ConfigError, match="line 1: this is not TOML"):
        write(path, {"model": "a"})
    assert path.read_text() == "model = = 1"


def test_where_nothing_can_be_written_the_file_is_named_and_nothing_is_left_behind(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write .*file/config\.toml: "):
        write(tmp_path / "file" / "config.toml", {"model": "a"})
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_value_that_toml_cannot_say_changes_nothing(path):
    with pytest.raises(ConfigError, match="cannot change"):
        write(path, {"model": None})
    assert path.read_text() == COMMENTED
