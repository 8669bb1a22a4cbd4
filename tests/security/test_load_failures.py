"""A guard that cannot be loaded stops the run: it does not vanish."""

import asyncio
import logging
import shutil
import sys
from textwrap import dedent

import pytest

from hookline.errors import LoadFailed
from hookline.hooks import hookimpl
from hookline.plugins.lockfile import LOCK
from hookline.runtime.app import Hookline

from .. import commandline
from ..plugins.site import Site

pytestmark = pytest.mark.slow

GUARD = """
from hookline import hookimpl

@hookimpl
def tool_call(event):
    return None
"""

BROKEN = {
    "a syntax error": "def (:\n",
    "a null byte": "x = 1\0\n",
    "bytes that are no text": b"\xff\xfe\xff",
    "a failing import": "import there_is_no_such_module\n",
    "an exception": "1 / 0\n",
    "an exit": "raise SystemExit(0)\n",
    "no hooks": "x = 1\n",
    "hooks that are no list": "hooks = 3\n",
    "an unknown hook": "hooks = [('tool_cal', lambda event: None)]\n",
    "a handler that cannot be called": "hooks = [('tool_call', 3)]\n",
    "an unknown option": "hooks = [('tool_call', lambda event: None, {'gard': True})]\n",
    "an entry that is no pair": "hooks = ['tool_call']\n",
    "a parameter that the hook lacks": "hooks = [('tool_call', lambda event, nothing: None)]\n",
    "a guard that goes after one call": (
        "hooks = [('tool_call', lambda event: None, {'guard': True, 'once': True})]\n"
    ),
}

PLUGINS = {
    "a syntax error": ("def (:\n", None),
    "a failing import": ("import there_is_no_such_module\n", None),
    "an exception": ("1 / 0\n", None),
    "an exit": ("raise SystemExit(0)\n", None),
    "a hook of the wrong form": (
        "from hookline import hookimpl\n@hookimpl\ndef tool_call(event, nothing): ...\n",
        None,
    ),
    "a manifest for another api": (GUARD, "'api_version': '99.0'"),
    "a wrong manifest": (GUARD, "'order': 'first'"),
    "a manifest that raises": (GUARD, "'order': 1 / 0"),
    "a plugin that it requires": (GUARD, "'requires': ['absent']"),
    "tools that are no list": (
        "from hookline import hookimpl\n@hookimpl\ndef register_tools(): return 3\n",
        None,
    ),
    "packs that raise": (
        "from hookline import hookimpl\n@hookimpl\ndef register_packs(): return 1 / 0\n",
        None,
    ),
    "commands of the wrong form": (
        "from hookline import hookimpl\n@hookimpl\ndef register_commands(): return [3]\n",
        None,
    ),
    "a startup that raises": (
        "from hookline import hookimpl\n@hookimpl\ndef hookline_startup(pm): 1 / 0\n",
        None,
    ),
}

SETTINGS = {
    "no JSON": '{"hooks": ',
    "no object": "[]",
    "hooks that are no table": '{"hooks": 3}',
    "an event that is no list": '{"hooks": {"PreToolUse": 3}}',
    "a hook without a command": '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}',
}

DOORS = {
    "run": (("run", "--no-stream", "hello"), ""),
    "run --json": (("run", "--json", "hello"), ""),
    "chat": (("chat",), "hello\n"),
    "gateway": (("gateway", "--enable-channel", "stdio", "--port", "0"), ""),
    "worker": (("worker",), ""),
    "triggers": (("triggers", "list"), ""),
}

REPAIRS = [
    ("doctor",),
    ("plugins", "list"),
    ("hooks",),
    ("config", "show"),
    ("trust", "--list"),
    ("tape", "list"),
    ("--help",),
    ("--version",),
]


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    (tmp_path / "person" / ".claude").mkdir(parents=True)
    (tmp_path / "home" / "hooks").mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "script.toml").write_text('[[turns]]\ntext = "answered"\n')
    return tmp_path


@pytest.fixture
def site(places, monkeypatch):
    monkeypatch.syspath_prepend(places / "site")
    yield Site(places / "site")
    for name in [name for name in sys.modules if name.startswith("installed_")]:
        del sys.modules[name]


@pytest.fixture
def hook_file(places):
    path = hooks_of(places) / "guard.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def hooks_of(places):
    return app_in(places).config.profiled.hooks_dir


def app_in(places, **options):
    return Hookline(home=places / "home", workspace=places / "workspace", **options)


@pytest.fixture
def command_line(places, monkeypatch, capsys):
    for logger in (logging.getLogger(), logging.getLogger("hookline")):  # a gateway sets them up
        monkeypatch.setattr(logger, "handlers", [*logger.handlers])
        monkeypatch.setattr(logger, "propagate", logger.propagate)
        monkeypatch.setattr(logger, "level", logger.level)
    return commandline.here(places / "home", places / "workspace", monkeypatch, capsys)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def uninstall(places, module, distribution):
    """What pip does."""
    shutil.rmtree(places / "site" / module)
    shutil.rmtree(places / "site" / f"{distribution}-1.2.dist-info")
    for name in [name for name in sys.modules if name.startswith("installed_")]:
        del sys.modules[name]


async def started(places, **options):
    app = app_in(places, **options)
    app.load_hooks()
    async with app.running():
        return app


async def refused(places, **options):
    with pytest.raises(LoadFailed) as raised:
        await started(places, **options)
    return str(raised.value)


def continuing(places, text="on_load_error = 'continue'"):
    (places / "home" / "config.toml").write_text(f"[plugins]\n{text}\n")


class TestHookFiles:
    @pytest.mark.parametrize("broken", BROKEN.values(), ids=[*BROKEN])
    async def test_one_that_cannot_be_loaded_stops_the_run(self, places, hook_file, broken):
        write(hook_file, broken)
        told = await refused(places)
        assert str(hook_file) in told
        assert "--without profile/guard.py" in told
        assert 'on_load_error = "continue"' in told

    @pytest.mark.parametrize("broken", BROKEN.values(), ids=[*BROKEN])
    async def test_without_leaves_it_out(self, places, hook_file, broken, caplog):
        write(hook_file, broken)
        with caplog.at_level(logging.WARNING, "hookline"):
            app = await started(places, without=["profile/guard.py"])
        assert app.failures == []
        assert caplog.text.count("profile/guard.py takes no part: --without") == 1

    @pytest.mark.parametrize("broken", BROKEN.values(), ids=[*BROKEN])
    async def test_continue_goes_on_and_says_so(self, places, hook_file, broken, caplog):
        write(hook_file, broken)
        continuing(places)
        with caplog.at_level(logging.WARNING, "hookline"):
            app = await started(places)
        assert [failure.plugin for failure in app.failures] == ["profile/guard.py"]
        assert caplog.text.count("going on although profile/guard.py") == 1

    @pytest.mark.parametrize("broken", BROKEN.values(), ids=[*BROKEN])
    @pytest.mark.parametrize(
        "way", [{"without": ["profile/guard.py"]}, {}], ids=["without", "continue"]
    )
    async def test_a_required_one_has_no_way_around(self, places, hook_file, broken, way):
        write(hook_file, broken)
        continuing(places, "on_load_error = 'continue'\nrequired = ['profile/guard.py']")
        assert "'profile/guard.py' is required" in await refused(places, **way)

    async def test_a_required_one_that_was_deleted_stops_the_run(self, places, hook_file):
        continuing(places, "required = ['profile/guard.py']")
        assert "it is not installed" in await refused(places)
        write(hook_file, "hooks = [('tool_call', lambda event: None)]\n")
        await started(places)

    async def test_a_syntax_error_is_named_with_its_line(self, places, hook_file):
        write(hook_file, "x = 1\ny = 2\ndef (:\n")
        assert f"{hook_file}:3:" in await refused(places)

    async def test_a_healthy_one_can_be_left_out_too(self, places, hook_file):
        write(hook_file, "hooks = [('tool_call', lambda event: None)]\n")
        app = await started(places, without=["profile/guard.py"])
        assert "profile/guard.py" not in [file.name for file in app.hook_files.files]

    async def test_a_name_that_nothing_has_is_refused(self, places, hook_file):
        write(hook_file, "hooks = [('tool_call', lambda event: None)]\n")
        told = await refused(places, without=["profile/gaurd.py"])
        assert "no plugin and no hook file has this name" in told
        assert "profile/guard.py" in told

    async def test_an_untrusted_project_cannot_stop_a_run(self, places):
        folder = places / "workspace" / ".hookline" / "hooks"
        folder.mkdir(parents=True)
        (folder / "broken.py").write_text("def (:\n")
        (folder / "away.py").symlink_to("/etc/passwd")
        (places / "workspace" / ".claude").symlink_to("/etc")
        await started(places)

    async def test_a_trusted_file_of_a_project_stops_it(self, places):
        folder = places / "workspace" / ".hookline" / "hooks"
        folder.mkdir(parents=True)
        (folder / "broken.py").write_text("def (:\n")
        app = app_in(places)
        app.trust.grant(app.hook_files.items())
        assert "--without project/broken.py" in await refused(places)

    async def test_a_project_cannot_let_the_run_go_on(self, places, hook_file):
        write(hook_file, "def (:\n")
        config = places / "workspace" / ".hookline" / "config.toml"
        config.parent.mkdir()
        config.write_text("[plugins]\non_load_error = 'continue'\n")
        app = app_in(places)
        app.trust.grant(app.hook_files.items())
        await refused(places)

    async def test_a_reload_that_fails_keeps_the_version_that_ran(self, places, hook_file):
        write(hook_file, "hooks = [('tool_call', lambda event: None)]\n")
        app = app_in(places)
        app.load_hooks()
        async with app.running():
            write(hook_file, "def (:\n")
            told = str(await app.hook_files.reload())
            assert "its last working version stays" in told
            assert "profile/guard.py" in [file.name for file in app.hook_files.files]
            assert app.absences.failures == []

    async def test_a_guard_that_is_dropped_at_a_reload_is_named(self, places):
        folder = places / "workspace" / ".hookline" / "hooks"
        folder.mkdir(parents=True)
        guard = folder / "guard.py"
        guard.write_text("hooks = [('tool_call', lambda event: None, {'guard': True})]\n")
        app = app_in(places)
        app.trust.grant(app.hook_files.items())
        app.load_hooks()
        async with app.running():
            guard.write_text("hooks = []\n")
            told = str(await app.hook_files.reload())
        assert "dropped, because it changed since it was trusted: project/guard.py" in told
        assert "nothing guards tool_call in its place" in told


class TestPlugins:
    @pytest.mark.parametrize(("code", "manifest"), PLUGINS.values(), ids=[*PLUGINS])
    async def test_one_that_cannot_be_loaded_stops_the_run(self, places, site, code, manifest):
        site.install("mail", code, manifest=manifest)
        assert "--without mail" in await refused(places)

    @pytest.mark.parametrize(("code", "manifest"), PLUGINS.values(), ids=[*PLUGINS])
    async def test_without_leaves_it_out(self, places, site, code, manifest):
        site.install("mail", code, manifest=manifest)
        app = await started(places, without=["mail"])
        assert app.failures == []
        assert not app.hooks.pm.has_plugin("mail")
        assert not [name for name in site.imported if name.endswith(".plugin")]

    @pytest.mark.parametrize(("code", "manifest"), PLUGINS.values(), ids=[*PLUGINS])
    async def test_continue_goes_on_and_says_so(self, places, site, code, manifest, caplog):
        site.install("mail", code, manifest=manifest)
        with caplog.at_level(logging.WARNING, "hookline"):
            await started(places, on_load_error="continue")
        assert caplog.text.count("going on although mail: ") == 1

    @pytest.mark.parametrize(("code", "manifest"), PLUGINS.values(), ids=[*PLUGINS])
    @pytest.mark.parametrize("way", [{"without": ["mail"]}, {}], ids=["without", "continue"])
    async def test_a_required_one_has_no_way_around(self, places, site, code, manifest, way):
        site.install("mail", code, manifest=manifest)
        continuing(places, "on_load_error = 'continue'\nrequired = ['mail']")
        assert "'mail' is required" in await refused(places, **way)

    @pytest.mark.parametrize("way", [{"without": ["mail"]}, {"on_load_error": "continue"}])
    async def test_one_that_its_manifest_requires_has_no_way_around(self, places, site, way):
        site.install("mail", "1 / 0\n", manifest="'required': True")
        assert "marked as required by its manifest" in await refused(places, **way)

    @pytest.mark.parametrize("way", [{"without": ["mail"]}, {"on_load_error": "continue"}])
    async def test_nor_once_it_was_changed_and_its_manifest_is_not_asked(self, places, site, way):
        module = site.install("mail", GUARD, manifest="'required': True")
        await started(places)
        package = places / "site" / module
        (package / "manifest.py").write_text(
            f"open({str(places / 'ran')!r}, 'w')\ndef manifest():\n    return {{'name': 'mail'}}\n"
        )
        for name in [name for name in sys.modules if name.startswith("installed_")]:
            del sys.modules[name]
        assert "marked as required by its manifest" in await refused(places, **way)
        assert not (places / "ran").exists()

    @pytest.mark.parametrize(
        "way",
        [{}, {"without": ["mail"]}, {"on_load_error": "continue"}],
        ids=["", "without", "continue"],
    )
    @pytest.mark.parametrize("others", [False, True])
    async def test_nor_once_it_was_uninstalled(self, places, site, way, others):
        module = site.install("mail", GUARD, manifest="'required': True")
        if others:
            site.install("other", GUARD)
        await started(places)
        uninstall(places, module, "hookline_mail")
        for _ in range(2):  # it is not forgotten
            said = await refused(places, **way)
            assert "'mail' is marked as required by its manifest" in said
            assert "hookline-mail 1.2, which brings it, is not installed" in said
            assert "`hookline plugins lock hookline-mail`" in said

    def test_one_that_was_uninstalled_may_be_installed_again_or_given_up(
        self, places, site, command_line
    ):
        module = site.install("mail", GUARD, manifest="'required': True")
        asyncio.run(started(places))
        uninstall(places, module, "hookline_mail")
        done = command_line("run", "--model", f"scripted:{places / 'script.toml'}", "hi")
        assert done.returncode == 2
        assert "'mail' is marked as required" in done.stderr
        assert "mail: finding failed" in command_line("doctor").stdout
        assert "hookline-mail 1.2, which brings it" in command_line("plugins", "list").stdout
        site.install("mail", GUARD, manifest="'required': True", distribution="other-mail")
        asyncio.run(started(places))
        (places / "site" / "other_mail-1.2.dist-info" / "entry_points.txt").unlink()
        asyncio.run(refused(places))
        assert command_line("plugins", "lock", "--yes").returncode == 0
        asyncio.run(started(places))

    async def test_one_that_was_disabled_before_may_be_uninstalled(self, places, site):
        module = site.install("mail", GUARD, manifest="'required': True")
        await started(places)
        continuing(places, "disabled = ['mail']")
        uninstall(places, module, "hookline_mail")
        await started(places)

    async def test_an_app_without_packages_does_not_ask_for_them(self, places, site):
        module = site.install("mail", GUARD, manifest="'required': True")
        await started(places)
        uninstall(places, module, "hookline_mail")
        app = app_in(places)
        app.load_hooks(packages=False)
        async with app.running():
            pass

    async def test_a_healthy_required_one_cannot_be_left_out(self, places, site):
        site.install("mail", GUARD, manifest="'required': True")
        assert "--without cannot leave it out" in await refused(places, without=["mail"])

    async def test_the_settings_can_disable_what_only_its_manifest_requires(self, places, site):
        site.install("mail", "1 / 0\n", manifest="'required': True")
        continuing(places, "disabled = ['mail']")
        await started(places)

    async def test_the_operators_list_holds_against_disabled(self, places, site):
        site.install("mail", GUARD)
        continuing(places, "disabled = ['mail']\nrequired = ['mail']")
        assert "plugins.disabled leaves it out" in await refused(places)

    async def test_a_required_one_that_is_not_installed_stops_the_run(self, places):
        continuing(places, "required = ['mail']")
        assert "it is not installed" in await refused(places)

    async def test_one_that_changed_since_it_was_pinned_stops_the_run(self, places, site):
        module = site.install("mail", GUARD)
        await started(places)
        (places / "site" / module / "plugin.py").write_text(GUARD + "x = 1\n")
        for name in [name for name in sys.modules if name.startswith("installed_")]:
            del sys.modules[name]
        assert f"is not what {places / 'home' / LOCK} says" in await refused(places)
        await started(places, without=["mail"])

    async def test_one_that_is_not_pinned_stops_the_run_where_that_is_required(self, places, site):
        site.install("mail", GUARD)
        continuing(places, "require_lock = true")
        assert "require_lock is set" in await refused(places)

    async def test_a_plugin_that_the_code_added_counts_as_well(self, places):
        class Broken:
            @hookimpl
            def hookline_startup(self, pm):
                raise OSError("no such server")

        app = app_in(places)
        app.load_hooks()
        app.hooks.add(Broken(), name="broken")
        with pytest.raises(LoadFailed, match="broken: hookline_startup failed"):
            async with app.running():
                raise AssertionError("it ran")


class TestCommandHooks:
    NAME = "~/.claude/settings.json"

    @pytest.fixture(params=SETTINGS.values(), ids=[*SETTINGS])
    def settings(self, places, request):
        path = places / "person" / ".claude" / "settings.json"
        path.write_text(request.param)
        return path

    async def test_a_file_that_cannot_be_used_stops_the_run(self, places, settings):
        told = await refused(places)
        assert str(settings) in told
        assert f"--without {self.NAME}" in told

    async def test_without_leaves_it_out(self, places, settings):
        await started(places, without=[self.NAME])
        await started(places, without=[str(settings)])  # as a shell writes it

    async def test_continue_goes_on(self, places, settings):
        app = await started(places, on_load_error="continue")
        assert {failure.plugin for failure in app.failures} == {self.NAME}

    @pytest.mark.parametrize("way", [{"without": [NAME]}, {}], ids=["without", "continue"])
    async def test_a_required_one_has_no_way_around(self, places, settings, way):
        continuing(places, f"on_load_error = 'continue'\nrequired = ['{self.NAME}']")
        assert "is required" in await refused(places, **way)


class TestDoors:
    """Every door that runs the agent stops; every command that repairs still works."""

    def through(self, command_line, places, door, *options):
        words, stdin = DOORS[door]
        model = f"model=scripted:{places / 'script.toml'}"
        return command_line("--set", model, *options, *words, stdin=stdin)

    @pytest.mark.parametrize("door", DOORS)
    @pytest.mark.parametrize("broken", ["hook file", "plugin", "command hooks", "changed plugin"])
    def test_a_door_ends_with_2_and_names_the_ways_on(
        self, places, site, hook_file, command_line, door, broken
    ):
        name = self.broken(places, site, hook_file, command_line, broken)
        done = self.through(command_line, places, door)
        told = done.stdout + done.stderr
        assert done.returncode == 2, told
        assert f"--without {name}" in told
        assert "on_load_error" in told
        assert "answered" not in told
        assert "Traceback" not in told

    @pytest.mark.parametrize("broken", ["hook file", "plugin", "command hooks", "changed plugin"])
    @pytest.mark.parametrize("door", ["run", "chat", "triggers"])
    @pytest.mark.parametrize("way", ["without", "continue"])
    def test_a_door_goes_on_when_told_to(
        self, places, site, hook_file, command_line, door, broken, way
    ):
        name = self.broken(places, site, hook_file, command_line, broken)
        options = ["--without", name] if way == "without" else []
        if way == "continue":
            continuing(places)
        done = self.through(command_line, places, door, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr.count("going on although") == 1
        assert name in done.stderr

    @pytest.mark.parametrize("door", DOORS)
    def test_a_required_one_stops_every_door_whatever_is_said(
        self, places, hook_file, command_line, door
    ):
        write(hook_file, "def (:\n")
        continuing(places, "on_load_error = 'continue'\nrequired = ['profile/guard.py']")
        done = self.through(command_line, places, door, "--without", "profile/guard.py")
        assert done.returncode == 2
        assert "is required" in done.stdout + done.stderr

    @pytest.mark.parametrize("command", REPAIRS, ids=" ".join)
    def test_a_command_that_repairs_works(self, places, hook_file, site, command_line, command):
        write(hook_file, "def (:\n")
        site.install("mail", "1 / 0\n")
        done = command_line(*command)
        assert done.returncode in (0, 1), done.stderr  # doctor has something to say
        assert "nothing runs, because" not in done.stderr

    def test_doctor_and_why_name_what_takes_no_part(self, places, hook_file, command_line):
        write(hook_file, "def (:\n")
        continuing(places)
        assert self.through(command_line, places, "run").returncode == 0
        assert 'says on_load_error = "continue"' in command_line("doctor").stdout
        session = command_line("tape", "list").stdout.split(" entries  ")[1].split()[0]
        assert "profile/guard.py: loading failed" in command_line("why", session).stdout

    def test_why_names_what_was_missing_when_the_turn_was_made(self, places, hook_file, command_line):
        """Not what is missing while it is asked."""
        continuing(places)
        write(hook_file, "def (:\n")
        run = ("--set", f"model=scripted:{places / 'script.toml'}", "run", "--session", "s")
        command_line(*run, "then")
        write(hook_file, "hooks = []\n")
        command_line(*run, "now")
        write(hook_file, "1 / 0\n")
        then, now = (command_line("why", "s", "turn", number).stdout for number in (1, 2))
        assert "this turn was made although profile/guard.py: loading failed" in then
        assert "ZeroDivisionError" not in then
        assert "profile/guard.py" not in now
        assert "this turn was made although" in command_line("why", "s", "turn", 1, "--json").stdout

    def broken(self, places, site, hook_file, command_line, kind):
        if kind == "hook file":
            write(hook_file, "def (:\n")
            return "profile/guard.py"
        if kind == "command hooks":
            (places / "person" / ".claude" / "settings.json").write_text("{")
            return "~/.claude/settings.json"
        module = site.install("mail", "1 / 0\n" if kind == "plugin" else dedent(GUARD))
        if kind == "changed plugin":
            command_line("plugins", "list")
            (places / "site" / module / "plugin.py").write_text(GUARD + "x = 1\n")
            for name in [name for name in sys.modules if name.startswith("installed_")]:
                del sys.modules[name]
        return "mail"
