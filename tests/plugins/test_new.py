"""`hookline plugins`: listing, switching, and a new plugin that works as soon as it is installed."""

import json
import os
import subprocess
import sys

import pytest

from hookline.errors import PluginError
from hookline.plugins.new import new_plugin

from .. import forks


@pytest.fixture
def hookline(tmp_path, site):
    """The command, with the packages of this test."""

    def run(*arguments):
        env = {**os.environ, "HOOKLINE_HOME": str(tmp_path / "home"), "COLUMNS": "200"}
        code = f"import sys; sys.path.insert(1, {str(site.folder)!r}); {forks.MAIN}"
        return forks.run(code, *arguments, env=env, cwd=tmp_path)

    return run


def test_a_new_plugin_is_installed_shows_and_changes_an_answer(hookline, site, tmp_path):
    made = hookline("plugins", "new", "word-count")
    folder = tmp_path / "hookline-word-count"
    assert made.stdout.startswith(f"wrote {folder}\n")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--disable-pip-version-check", "--target", site.folder, folder],
        check=True,
    )
    attached = json.loads(hookline("hooks", "output", "--json").stdout)[0]["attached"]
    assert attached == ["word-count"]
    script = tmp_path / "script.toml"
    script.write_text('[[turns]]\ntext = "Hello."\n')
    answer = hookline("run", "hi", "--model", f"scripted:{script}")
    assert answer.stdout == "Hello. (seen by word-count)\n"
    shown = hookline("plugins", "show", "word-count").stdout
    assert "word_count.count_words" in shown
    assert "hookline_word_count.plugin:WordCount" in shown

    assert "is disabled" in hookline("plugins", "disable", "word-count").stdout
    assert hookline("run", "hi", "--model", f"scripted:{script}").stdout == "Hello.\n"
    states = json.loads(hookline("plugins", "list", "--json").stdout)
    assert {s["name"]: s["state"] for s in states if s["name"] == "word-count"} == {
        "word-count": "disabled"
    }
    assert "is enabled" in hookline("plugins", "enable", "word-count").stdout
    assert hookline("hooks", "check", folder / "src/hookline_word_count/plugin.py").returncode == 0


def test_a_new_plugin_passes_its_own_tests(tmp_path):
    folder = new_plugin("word-count", tmp_path / "made")
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error"],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


@pytest.mark.parametrize(
    "name", ["", "Word", "word_count", "1st", "a--b", "a/b", "../up", "x" * 61, "ü"]
)
def test_a_bad_name_is_refused_and_nothing_is_written(name, tmp_path):
    with pytest.raises(PluginError, match="is no name for a plugin: write small letters"):
        new_plugin(name, tmp_path / "made")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "message"), [("builtin", "is taken"), ("class", "means something")])
def test_a_name_that_means_something_already_is_refused(name, message, tmp_path):
    with pytest.raises(PluginError, match=message):
        new_plugin(name, tmp_path / "made")


def test_a_folder_that_is_there_is_left_alone(hookline, tmp_path):
    (tmp_path / "there").mkdir()
    done = hookline("plugins", "new", "tidy", "there")
    assert done.returncode == 2
    assert (
        done.stderr == f"hookline: {tmp_path / 'there'} is there already; name a folder that is not\n"
    )
    assert list((tmp_path / "there").iterdir()) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PluginError, match="cannot write"):
        new_plugin("tidy", tmp_path / "file" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_list_tells_the_state_of_each_and_why(hookline, site):
    site.install("good", manifest="'order': 7, 'provides': ['tool', 'skill'], 'version': '3.1'")
    site.install("broken", "1 / 0")
    done = hookline("plugins", "list")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["plugin", "version", "order", "provides", "state", "from"]
    assert ["builtin", "-", "-", "-", "loaded", "hookline"] in lines
    assert ["good", "3.1", "7", "tool,", "skill", "loaded", "hookline-good", "1.2"] in lines
    assert ["broken", "1.2", "5000", "-", "failed", "hookline-broken", "1.2"] in lines
    assert "    loading failed: ZeroDivisionError: division by zero (" in done.stdout


def test_hook_files_are_listed_too(hookline, tmp_path):
    folder = tmp_path / "home/profiles/default/hooks"
    folder.mkdir(parents=True)
    (folder / "tidy.py").write_text("hooks = [('agent_end', lambda event: None)]\n")
    listed = json.loads(hookline("plugins", "list", "--json").stdout)
    assert [(s["state"], s["source"]) for s in listed if "tidy" in s["name"]] == [
        ("loaded", str(folder / "tidy.py"))
    ]


def test_switching_keeps_comments_and_other_settings(hookline, site, tmp_path):
    site.install("one")
    config = tmp_path / "home/config.toml"
    config.parent.mkdir()
    config.write_text('# mine\nmodel = "local"  # small\n')
    hookline("plugins", "disable", "one")
    assert config.read_text().startswith('# mine\nmodel = "local"  # small\n')
    before = site.imported
    assert hookline("plugins", "disable", "one").stdout == "one is disabled already\n"
    assert site.imported == before  # it is not imported any more


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "onne"), "no plugin 'onne'; did you mean 'one'"),
        (("disable", "onne"), "no plugin 'onne'; did you mean 'one'? (there are: "),
        (("disable", "builtin"), "plugin 'builtin' comes with Hookline and cannot be switched off"),
    ],
)
def test_an_unknown_plugin_is_told_with_the_nearest_name(hookline, site, arguments, message):
    site.install("one")
    done = hookline("plugins", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
