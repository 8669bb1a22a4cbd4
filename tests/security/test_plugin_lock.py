"""Plugins are pinned by hash: what changed after it was pinned does not run."""

import importlib.util
import json
import marshal
import os
import sys
import time
from pathlib import Path

import pytest

from hookline.plugins.lockfile import LOCK, STAMPS, PluginLock
from hookline.plugins.packages import entries
from hookline.runtime.app import Hookline

from .. import commandline
from ..plugins.site import PLUGIN, Site

pytestmark = pytest.mark.slow

EVIL = "import os\nopen(os.environ['EVIL'], 'a').write('ran')\n"


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A file that hostile code writes."""
    path = tmp_path / "evil"
    monkeypatch.setenv("EVIL", str(path))
    return path


@pytest.fixture
def site(tmp_path, monkeypatch):
    made = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(made.folder)
    return made


class Place:
    """A home, and apps that start in it."""

    def __init__(self, folder):
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.workspace.mkdir()

    def start(self, **plugins):
        for name in [name for name in sys.modules if name.startswith(("installed_", "space_"))]:
            del sys.modules[name]
        importlib.invalidate_caches()
        app = Hookline(home=self.home, workspace=self.workspace, overrides={"plugins": plugins})
        app.load_hooks()
        return app

    def works(self, name="mail", **plugins):
        app = self.start(**plugins)
        assert not app.failures, app.failures
        return app.hooks.pm.has_plugin(name)

    def refused(self, name="mail", **plugins):
        app = self.start(**plugins)
        assert not app.hooks.pm.has_plugin(name)
        (failure,) = [each for each in app.failures if each.plugin == name]
        return str(failure)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_a_plugin_is_pinned_and_announced_when_it_is_first_seen(place, site):
    site.install("mail")
    app = place.start()
    (news,) = app.plugins.news
    assert "hookline-mail 1.2 brings a new plugin" in news
    assert str(place.home / LOCK) in news
    assert (place.home / LOCK).stat().st_mode & 0o777 == 0o600
    assert place.start().plugins.news == []


def test_an_unchanged_plugin_is_not_read_again(place, site, monkeypatch):
    site.install("mail")
    place.start()
    monkeypatch.setattr("hookline.plugins.contents.contents_of", None)
    assert place.works()


def rewrite(path, text, *, keep_time=False):
    about = path.stat() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if keep_time and about is not None:
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


CHANGES = {
    "the plugin": lambda package, _: rewrite(package / "plugin.py", EVIL),
    "the plugin, at the same time": lambda package, _: rewrite(
        package / "plugin.py", EVIL, keep_time=True
    ),
    "the plugin, same size and time": lambda package, _: rewrite(
        package / "plugin.py",
        EVIL + "#" * (package.joinpath("plugin.py").stat().st_size - len(EVIL)),
        keep_time=True,
    ),
    "the package": lambda package, _: rewrite(package / "__init__.py", EVIL),
    "the manifest": lambda package, _: rewrite(package / "manifest.py", EVIL),
    "a new module": lambda package, _: rewrite(package / "extra.py", EVIL),
    "a new module in a new folder": lambda package, _: rewrite(package / "sub" / "extra.py", EVIL),
    "a new extension module": lambda package, _: rewrite(package / "plugin.abi3.so", EVIL),
    "a module without source": lambda package, _: rewrite(package / "extra.pyc", EVIL),
    "a data file": lambda package, _: rewrite(package / "rules.json", "{}"),
    "a removed module": lambda package, _: (package / "manifest.py").unlink(),
    "a link in the place of a module": lambda package, _: (
        (package / "plugin.py").rename(package.parent / "moved.txt"),
        rewrite(package.parent / "other.txt", EVIL),
        (package / "plugin.py").symlink_to(package.parent / "other.txt"),
    ),
    "a link to a folder": lambda package, _: (
        rewrite(package.parent / "elsewhere" / "__init__.py", EVIL),
        (package / "linked").symlink_to(package.parent / "elsewhere"),
    ),
    "another entry point": lambda _, about: rewrite(
        about / "entry_points.txt", "[hookline]\nmail = os\n"
    ),
    "one entry point more": lambda package, about: rewrite(
        about / "entry_points.txt",
        (about / "entry_points.txt").read_text() + f"[hookline.manifest]\nmail = {package.name}:x\n",
    ),
    "the metadata": lambda _, about: rewrite(about / "METADATA", "Name: hookline-mail\nVersion: 1.2\n"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("strict", [False, True])
def test_a_plugin_that_changed_is_not_loaded(place, site, evil, change, strict):
    package = site.folder / site.install("mail", manifest="'order': 3")
    place.start()
    CHANGES[change](package, site.folder / "hookline_mail-1.2.dist-info")
    told = place.refused(require_lock=strict)
    assert "checking the lock file" in told
    assert "hookline plugins lock hookline-mail" in told
    assert not evil.exists()


NAMES = ["Hookline_Mail", "HOOKLINE-MAIL", "hookline.mail", "hookline__mail", "hookline-_.mail"]


@pytest.mark.parametrize("folder", [*NAMES, "hookline_mail", "hookline_mail_and_more"])
@pytest.mark.parametrize("name", ["hookline-mail", *NAMES])
def test_an_update_that_spells_its_name_differently_is_not_new(place, site, evil, name, folder):
    package = site.folder / site.install("mail")
    place.start()
    rewrite(package / "plugin.py", EVIL)
    about = site.folder / "hookline_mail-1.2.dist-info"
    rewrite(about / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    about.rename(site.folder / f"{folder}-2.0.dist-info")
    assert "hookline plugins lock hookline-mail" in place.refused()
    assert not evil.exists()


@pytest.mark.parametrize("stamps", ["missing", "damaged", "a list", "deep", "of another plugin"])
def test_stamps_that_are_no_use_only_make_the_start_slower(place, site, stamps, evil):
    package = site.folder / site.install("mail")
    place.start()
    path = place.home / STAMPS
    if stamps == "missing":
        path.unlink()
    else:
        text = {"damaged": "{", "a list": "[]", "deep": "[" * 100_000, "of another plugin": "{}"}
        path.write_text(text[stamps])
    assert place.works()
    rewrite(package / "plugin.py", EVIL)
    assert "plugin.py changed" in place.refused()
    assert not evil.exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"version": 2, "plugins": {}}', '{"version": 1, "plugins": {"a": {}}}'],
)
def test_a_lock_file_that_cannot_be_read_loads_no_plugin(place, site, text):
    site.install("mail")
    place.home.mkdir()
    (place.home / LOCK).write_text(text)
    with pytest.raises(ValueError, match=r"plugins\.lock is damaged"):
        place.start()


def test_with_require_lock_a_plugin_that_is_not_pinned_is_refused(place, site):
    site.install("mail")
    assert "is not in" in place.refused(require_lock=True)
    assert not (place.home / LOCK).exists()


def test_a_plugin_under_development_may_be_left_unpinned(place, site):
    package = site.folder / site.install("mail")
    assert place.works(unpinned=["mail"], require_lock=True)
    rewrite(package / "extra.py", "")
    assert place.works(unpinned=["mail"])
    assert not (place.home / LOCK).exists()


@pytest.mark.parametrize("key", ["require_lock = false", 'unpinned = ["mail"]'])
def test_a_project_has_no_say(place, site, key):
    package = site.folder / site.install("mail")
    place.start()
    (place.workspace / ".hookline").mkdir()
    (place.workspace / ".hookline" / "config.toml").write_text(f"[plugins]\n{key}\n")
    rewrite(package / "plugin.py", EVIL)
    assert "plugin.py changed" in place.refused()


# --- bytecode ---


def bytecode(source, flags):
    """A `.pyc` of hostile code that Python takes for the one of this source file."""
    code = compile(EVIL, str(source), "exec")
    about = source.stat()
    if flags:
        header = flags.to_bytes(4, "little") + importlib.util.source_hash(source.read_bytes())
    else:
        stamp = int(about.st_mtime).to_bytes(4, "little") + about.st_size.to_bytes(4, "little")
        header = bytes(4) + stamp
    return importlib.util.MAGIC_NUMBER + header + marshal.dumps(code)


@pytest.mark.parametrize("flags", [0, 0b01, 0b11], ids=["time", "unchecked hash", "checked hash"])
@pytest.mark.parametrize("module", ["__init__", "plugin", "manifest"])
@pytest.mark.parametrize("when", ["before it is pinned", "afterwards"])
def test_bytecode_beside_the_source_is_never_run(place, site, evil, flags, module, when):
    package = site.folder / site.install("mail", manifest="'order': 3")
    source = package / f"{module}.py"

    def plant():
        cached = package / "__pycache__" / Path(importlib.util.cache_from_source(source)).name
        cached.parent.mkdir(exist_ok=True)
        cached.write_bytes(bytecode(source, flags))

    if when == "before it is pinned":
        plant()
    place.start()
    plant()
    assert place.works()
    assert not evil.exists()


def test_bytecode_of_plugins_is_kept_in_the_home(place, site, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    package = site.folder / site.install("mail")
    assert place.works()
    assert not (package / "__pycache__").exists()
    assert [*(place.home / "pycache").rglob("plugin.*.pyc")]


# --- the race between the check and the import ---


@pytest.mark.parametrize("module", ["__init__", "plugin"])
def test_bytes_that_change_between_the_check_and_the_import_do_not_run(
    place, site, evil, module, monkeypatch
):
    package = site.folder / site.install("mail")
    check = PluginLock.check

    def checked(lock, found):
        refused = check(lock, found)
        time.sleep(0.01)  # so that the time of the file is another one
        rewrite(package / f"{module}.py", EVIL)
        return refused

    monkeypatch.setattr(PluginLock, "check", checked)
    assert "was changed since it was pinned" in place.refused()
    assert not evil.exists()


def test_a_module_that_appears_later_cannot_be_imported(place, site, evil):
    package = site.folder / site.install("mail")
    assert place.works()
    rewrite(package / "late.py", EVIL)
    importlib.invalidate_caches()
    with pytest.raises(ImportError, match="is not pinned"):
        importlib.import_module(f"{package.name}.late")
    assert not evil.exists()


@pytest.mark.parametrize("form", ["package", "module", "submodule"])
def test_a_folder_that_is_put_first_on_the_path_does_not_take_over(
    place, site, evil, tmp_path, monkeypatch, form
):
    module = site.install("mail")
    place.start()
    first = tmp_path / "first"
    file = {"package": f"{module}/__init__.py", "module": f"{module}.py"}.get(
        form, f"{module}/plugin.py"
    )
    rewrite(first / file, EVIL)
    monkeypatch.syspath_prepend(first)
    app = place.start()
    assert form == "submodule" or not app.hooks.pm.has_plugin("mail")
    assert not evil.exists()


# --- kinds of installations ---


def test_an_editable_install_is_hashed_where_its_source_is(place, tmp_path, monkeypatch, evil):
    source, site = tmp_path / "checkout" / "src", tmp_path / "site"
    rewrite(source / "space_edit" / "__init__.py", "")
    rewrite(source / "space_edit" / "plugin.py", PLUGIN)
    about = site / "hookline_edit-0.1.dist-info"
    rewrite(about / "entry_points.txt", "[hookline]\nedit = space_edit.plugin\n")
    rewrite(about / "METADATA", "Name: hookline-edit\n")
    rewrite(about / "RECORD", "_edit.pth,,\n")
    rewrite(about / "direct_url.json", '{"dir_info": {"editable": true}, "url": "file:///checkout"}')
    rewrite(site / "_edit.pth", str(source))
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(source)
    assert place.works("edit")
    pinned = json.loads((place.home / LOCK).read_text())["plugins"]["hookline-edit"]["files"]
    assert {"space_edit/plugin.py", "_edit.pth", "dist-info/direct_url.json"} <= set(pinned)
    rewrite(source / "space_edit" / "plugin.py", EVIL)
    assert "space_edit/plugin.py changed" in place.refused("edit")
    assert not evil.exists()


def test_a_namespace_is_shared_with_others(place, tmp_path, monkeypatch):
    site = tmp_path / "site"
    for name in ("one", "two"):
        rewrite(site / "space_shared" / name / "__init__.py", "")
        rewrite(site / "space_shared" / name / "plugin.py", PLUGIN)
        about = site / f"hookline_{name}-1.0.dist-info"
        rewrite(about / "entry_points.txt", f"[hookline]\n{name} = space_shared.{name}.plugin\n")
        rewrite(about / "METADATA", f"Name: hookline-{name}\n")
    monkeypatch.syspath_prepend(site)
    assert place.works("one")
    rewrite(site / "space_shared" / "two" / "plugin.py", "x = 2\n")
    app = place.start()
    assert app.hooks.pm.has_plugin("one")
    assert not app.hooks.pm.has_plugin("two")


def test_a_dependency_with_another_version_is_a_change(place, site):
    site.install("mail")
    about = site.folder / "hookline_mail-1.2.dist-info" / "METADATA"
    about.write_text(about.read_text() + "Requires-Dist: leftpad>=1\n")
    needed = site.folder / "leftpad-1.0.dist-info"
    rewrite(needed / "METADATA", "Name: leftpad\nVersion: 1.0\n")
    rewrite(needed / "RECORD", "leftpad.py,sha256=AAAA,1\n")
    place.start()
    needed.rename(site.folder / "leftpad-1.1.dist-info")
    assert "dependency leftpad changed from 1.0 to 1.1" in place.refused()


# --- the commands ---


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys, site):
    home = tmp_path / "home"
    home.mkdir()
    return commandline.here(home, tmp_path, monkeypatch, capsys)


def test_verify_names_the_files_and_exits_with_1(hookline, site):
    package = site.folder / site.install("mail")
    assert hookline("plugins", "list").returncode == 0
    assert "ok  hookline-mail 1.2" in hookline("plugins", "verify").stdout
    rewrite(package / "plugin.py", "x = 2\n")
    rewrite(package / "more.py", "x = 3\n")
    found = hookline("plugins", "verify")
    assert found.returncode == 1
    assert f"file {package.name}/plugin.py changed" in found.stdout
    assert f"file {package.name}/more.py is new" in found.stdout


def test_lock_shows_what_changed_before_it_is_accepted(hookline, site, tmp_path):
    package = site.folder / site.install("mail")
    hookline("plugins", "list")
    hook = "from hookline import hookimpl\n@hookimpl\ndef tool_call():\n    pass\n"
    rewrite(package / "plugin.py", hook)
    before = (tmp_path / "home" / LOCK).read_text()
    asked = hookline("plugins", "lock", "mail", input="n\n")
    assert asked.returncode == 1
    assert "hook tool_call is new" in asked.stdout
    assert "hook system_prompt is gone" in asked.stdout
    assert f"file {package.name}/plugin.py changed" in asked.stdout
    assert (tmp_path / "home" / LOCK).read_text() == before
    assert hookline("plugins", "lock", "mail", "--yes").returncode == 0
    assert hookline("plugins", "verify").returncode == 0
    assert "is up to date" in hookline("plugins", "lock").stdout


def test_a_file_that_is_not_what_record_says_is_reported(hookline, site):
    package = site.folder / site.install("mail")
    record = f"{package.name}/plugin.py,sha256=AAAA,3\n"
    rewrite(site.folder / "hookline_mail-1.2.dist-info" / "RECORD", record)
    hookline("plugins", "list")
    found = hookline("plugins", "verify")
    assert found.returncode == 1
    assert f"{package.name}/plugin.py is not what RECORD says" in found.stdout


def test_an_unknown_plugin_is_told(hookline):
    found = hookline("plugins", "verify", "nothing")
    assert (found.returncode, "no installed package brings a plugin 'nothing'" in found.stderr) == (
        2,
        True,
    )


def test_a_name_with_escapes_does_not_reach_the_terminal(hookline, site):
    package = site.folder / site.install("mail")
    hookline("plugins", "list")
    rewrite(package / "\x1b[2Jx.py", "x = 1\n")
    shown = hookline("plugins", "lock", "--yes").stdout
    assert "\x1b" not in shown


def test_the_lock_file_is_the_same_on_another_machine(site, tmp_path, monkeypatch, place):
    module = site.install("mail")
    place.start()
    first = (place.home / LOCK).read_text()
    other = tmp_path / "elsewhere"
    site.folder.rename(other)
    site.folder.mkdir()  # for the notes of what was imported
    monkeypatch.syspath_prepend(other)
    assert entries()
    (place.home / STAMPS).unlink()
    assert place.works(require_lock=True)
    assert (place.home / LOCK).read_text() == first
    assert module in first
