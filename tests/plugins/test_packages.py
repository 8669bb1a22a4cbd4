"""Plugins of packages: found, asked for a manifest, put in order, imported, left out whole."""

import os
import subprocess
import sys

import pytest

from hookline import hookimpl
from hookline.cli.plugins import show_plugin
from hookline.config import ConfigError
from hookline.errors import LoadFailed
from hookline.hooks import Answer, Family, chain, hookspec
from hookline.plugins.project import config_item
from hookline.plugins.sources import FileSource
from hookline.runtime.app import Hookline
from hookline.tools import tool

from .site import Site

pytestmark = pytest.mark.slow


def names(app):
    """The plugins that do not come with Hookline, in their order."""
    present = [name for name, plugin in app.hooks.pm.list_name_plugin() if plugin is not None]
    shipped = [state.name for state in app.plugins.states() if state.source == "hookline"]
    return [name for name in present if name not in shipped]


def told(app):
    return {failure.plugin: str(failure) for failure in app.failures}


CLASS = """class P:
  @hookimpl
  def system_prompt(self): return 'here'
"""


class TestFinding:
    @pytest.mark.parametrize(
        ("attribute", "source"),
        [
            ("", "@hookimpl\ndef system_prompt(): return 'here'"),
            (":plugin", f"{CLASS}plugin = P()"),
            (":P", CLASS),
            (":P", f"{CLASS}  def __init__(self, app): app.home"),
            (":make", f"{CLASS}def make(app): return P()"),
        ],
        ids=["module", "object", "class", "class with app", "factory"],
    )
    def test_a_value_may_be_a_module_an_object_a_class_or_a_factory(
        self, site, loaded, attribute, source
    ):
        site.install("shape", f"from hookline import hookimpl\n{source}", attribute=attribute)
        app = loaded()
        assert app.get_system_prompt("", {}).endswith("here")

    def test_the_plugin_is_not_imported_to_read_its_manifest(self, site, fresh):
        module = site.install("quiet", manifest="'provides': ['tool']")
        fresh.load_hooks(only_cli=True)
        assert site.imported == []
        fresh.plugins.finish()
        assert site.imported == [module, f"{module}.plugin"]
        assert names(fresh) == ["quiet"]

    def test_a_manifest_may_be_the_model_itself(self, site, loaded):
        module = site.install("typed", manifest="")
        (site.folder / module / "manifest.py").write_text(
            "from hookline.specs import PluginManifest\n"
            "def manifest(): return PluginManifest(name='typed', order=7, provides=['tool'])\n"
        )
        app = loaded()
        state = app.plugins.states()[-1]
        assert (state.name, state.order, state.provides, state.state) == (
            "typed",
            7,
            ["tool"],
            "loaded",
        )

    def test_of_two_copies_of_a_distribution_the_first_on_the_path_counts(
        self, site, loaded, tmp_path, monkeypatch
    ):
        first = site.install("twin")
        second = Site(tmp_path / "second")
        second.install("twin")
        monkeypatch.setattr(sys, "path", [*sys.path, str(second.folder)])
        app = loaded()
        assert app.failures == []
        assert app.get_system_prompt("", {}).endswith(f"{first}.plugin")


class TestOrder:
    def test_plugins_load_by_order_then_by_name_after_what_they_require(self, site, loaded):
        site.install("late", manifest="'order': 9000")
        site.install("b")
        site.install("a", manifest="'requires': ['late']")
        site.install("c", manifest="")
        site.install("early", manifest="'order': 10")
        assert names(loaded()) == ["early", "b", "c", "late", "a"]

    def test_many_plugins_run_in_the_declared_order(self, site, loaded):
        order = [(n * 7919) % 10_001 for n in range(30)]
        for n in order:
            site.install(
                f"p{n:05}",
                "from hookline import hookimpl\n@hookimpl\ndef before_tool_call(arguments):\n"
                f"    return {{'seen': [*arguments['seen'], {n}]}}\n",
                manifest=f"'order': {n}",
            )
        app = loaded()
        assert app.failures == []
        seen = app.hooks.run(
            "before_tool_call", tool_name="t", arguments={"seen": []}, agent_id="", session_id=""
        )
        assert seen == {"seen": sorted(order)}

    def test_plugins_that_the_command_line_needs_early_still_get_their_place(self, site, fresh):
        site.install("z", manifest="'order': 1, 'provides': ['tool']")
        module = site.install("a", manifest="'order': 2, 'provides': ['cli']")
        fresh.load_hooks(only_cli=True)
        assert names(fresh) == ["a"]
        fresh.plugins.finish()
        assert names(fresh) == ["z", "a"]
        assert fresh.hooks.report()["system_prompt"][:2] == ["a", "z"]  # the newest first
        assert site.imported.count(f"{module}.plugin") == 1

    def test_a_required_plugin_is_loaded_early_with_the_one_that_requires_it(self, site, fresh):
        site.install("base", manifest="'provides': ['tool']")
        site.install("other", manifest="'provides': ['tool']")
        site.install("commands", manifest="'provides': ['cli'], 'requires': ['base']")
        fresh.load_hooks(only_cli=True)
        assert names(fresh) == ["base", "commands"]

    def test_a_tie_is_resolved_by_name_and_warned(self, site, loaded, caplog):
        site.install("b", manifest="'order': 7")
        site.install("a", manifest="'order': 7")
        app = loaded()
        assert names(app) == ["a", "b"]
        [warning] = app.plugins.warnings
        assert warning.startswith("plugins 'a' and 'b' state the same order 7; they run by name")
        assert warning in caplog.text

    def test_the_settings_replace_the_order_of_a_manifest(self, site, fresh, capsys):
        fresh.home.mkdir()
        (fresh.home / "config.toml").write_text("[plugins.order]\nz = 1\nb = 9000\nmissing = 5\n")
        for name in ("a", "b", "z"):
            site.install(name, manifest="'order': 4000" if name == "z" else "")
        fresh.load_hooks()
        assert names(fresh) == ["z", "a", "b"]
        assert [state.order for state in fresh.plugins.states()[-3:]] == [1, 5000, 9000]
        show_plugin(fresh, "z")
        assert "order       1 (from [plugins.order])" in capsys.readouterr().out
        [warning] = fresh.plugins.warnings
        assert "[plugins.order] names 'missing'" in warning

    @pytest.mark.parametrize("order", ["-1", "10001", "1.5", "true", "'first'"])
    def test_an_order_in_the_settings_that_is_no_place_is_refused(self, site, fresh, order):
        fresh.home.mkdir()
        (fresh.home / "config.toml").write_text(f"[plugins]\norder.a = {order}\n")
        site.install("a")
        with pytest.raises(
            ConfigError, match=r"plugins\.order\.a must be a whole number from 0 to 10000"
        ):
            fresh.load_hooks()

    def test_a_project_has_no_say_in_the_order(self, site, fresh):
        path = fresh.workspace / ".hookline" / "config.toml"
        path.parent.mkdir()
        path.write_text("[plugins.order]\nb = 1\n")
        fresh.trust.grant([config_item(FileSource(path, path.read_bytes()), fresh.workspace)])
        site.install("a")
        site.install("b")
        fresh.load_hooks()
        assert names(fresh) == ["a", "b"]

    def test_leaving_the_order_open_is_no_tie(self, site, loaded):
        site.install("b", manifest="")
        site.install("a", manifest="")
        app = loaded()
        assert names(app) == ["a", "b"]
        assert app.plugins.warnings == []


BAD = [
    (
        "import nothing_of_this_name",
        None,
        "ModuleNotFoundError: No module named 'nothing_of_this_name'",
    ),
    ("def broken(:", None, "SyntaxError: invalid syntax"),
    ("raise RuntimeError('no license')", None, "RuntimeError: no license"),
    ("raise SystemExit(3)", None, "SystemExit: 3"),
    ("x = 1", None, "implements no hook; mark its methods with @hookimpl"),
    (
        "from hookline import hookimpl\n@hookimpl\ndef sistem_prompt(): pass",
        None,
        "unknown hook 'sistem_prompt'; did you mean 'system_prompt'",
    ),
    (
        "",
        "'api_version': '2.1'",
        "it is written for plugin api 2.1, and this is 1; install a version of",
    ),
    (
        "",
        "'order': 10001",
        "its manifest is wrong at order: Input should be less than or equal to 10000",
    ),
    ("", "'oder': 1", "its manifest is wrong at oder: Extra inputs are not permitted"),
    (
        "",
        "'name': 'else'",
        "its manifest says name 'else' and its entry point 'bad'; make them the same",
    ),
    ("", "**1", "cannot be read: TypeError: 'int' object is not a mapping"),
    (
        "",
        "'requires': ['goood']",
        "requires plugin 'goood', which is not installed; did you mean 'good'",
    ),
    ("", "'provides': ['telepathy']", "its manifest is wrong at provides.0: Input should be 'tool'"),
]


class TestBadInput:
    @pytest.mark.parametrize("early", [False, True], ids=["whole", "in two steps"])
    @pytest.mark.parametrize(("source", "manifest", "message"), BAD, ids=[b[2][:30] for b in BAD])
    def test_it_is_told_and_the_others_load(self, site, fresh, source, manifest, message, early):
        site.install("bad", source, manifest=manifest)
        site.install("good")
        fresh.load_hooks(only_cli=early)
        fresh.plugins.finish()
        assert names(fresh) == ["good"]
        assert message in told(fresh)["bad"]
        assert len(fresh.failures) == 1
        fresh.create_cli_app()

    def test_a_failing_import_is_told_with_its_line(self, site, loaded):
        module = site.install("bad", "\n\nimport nothing_of_this_name")
        [line] = told(loaded()).values()
        assert line.endswith(f"({site.folder / module / 'plugin.py'}:4)")

    def test_plugins_that_require_each_other_are_named(self, site, loaded):
        site.install("a", manifest="'requires': ['b']")
        site.install("b", manifest="'requires': ['c']")
        site.install("c", manifest="'requires': ['a']")
        site.install("hanger", manifest="'requires': ['a']")
        site.install("good")
        app = loaded()
        assert names(app) == ["good"]
        assert "plugins require each other in a circle: a → b → c → a; one of them" in told(app)["a"]
        assert "requires plugin 'a', which is held up by a circle: a → b → c → a" in told(app)["hanger"]

    @pytest.mark.parametrize(
        ("version", "requirement"),
        [
            ("1.2", "base"),
            ("1.2", "base>=1.2,<2"),
            ("1.3b1", "base >= 1.2, < 2"),
            ("1.2.post1", "base>=1.2"),
            ("1.2+local", "base==1.2"),
            ("2.0", "base~=2.0"),
            ("1.9", "base!=1.8"),
            ("0!1.2", "base==0!1.2"),
            ("", "base>=1.2"),  # the version of the distribution counts
        ],
    )
    def test_a_plugin_loads_with_a_version_that_it_accepts(self, site, loaded, version, requirement):
        site.install("base", manifest=f"'version': {version!r}" if version else None)
        site.install("user", manifest=f"'requires': [{requirement!r}, 'hookline>=0.0.1', 'builtin>=0']")
        app = loaded()
        assert app.failures == []
        assert names(app) == ["base", "user"]

    @pytest.mark.parametrize("early", [False, True])
    @pytest.mark.parametrize(
        ("version", "requirement", "message"),
        [
            ("1.1", "base>=1.2,<2", "it requires plugin 'base' >=1.2,<2, and version 1.1 is installed"),
            (
                "2.0",
                "base>=1.2,<2",
                "'base' >=1.2,<2, and version 2.0 is installed (hookline-base 1.2)",
            ),
            ("2.0rc1", "base>=2", "'base' >=2, and version 2.0rc1 is installed"),
            ("soon", "base>=1", "its version 'soon' cannot be compared: PEP 440 has no such version"),
            ("1.2", "bases>=1", "it requires plugin 'bases' >=1, which is not installed; did you mean"),
            ("1.2", "hookline>=999", "it requires plugin 'hookline' >=999, and version"),
            ("1.2", "builtin<0.0.1", "it requires plugin 'builtin' <0.0.1, and version"),
        ],
    )
    def test_a_version_that_will_not_do_is_told_before_anything_of_it_loads(
        self, site, fresh, version, requirement, message, early
    ):
        base = site.install("base", manifest=f"'version': {version!r}, 'provides': ['cli']")
        site.install("user", manifest=f"'requires': [{requirement!r}], 'provides': ['cli']")
        site.install("on_top", manifest="'requires': ['user'], 'provides': ['cli']")
        fresh.load_hooks(only_cli=early)
        fresh.plugins.finish()
        assert message in told(fresh)["user"]
        assert "it requires plugin 'user', which could not be loaded" in told(fresh)["on_top"]
        assert site.imported == [base, f"{base}.plugin"]

    def test_every_requirement_that_is_not_met_is_told(self, site, loaded):
        site.install("base", manifest="'version': '1.0'")
        site.install("user", manifest="'requires': ['base>=2', 'other', 'base<1']")
        said = told(loaded())["user"]
        assert "'base' >=2" in said
        assert "'other'" in said
        assert "'base' <1" in said

    @pytest.mark.parametrize(
        "requirement", [">=1", "", "base>", "base 1.2", "base[extra]", "base; python_version>'3'", "!"]
    )
    def test_what_is_no_requirement_is_refused_with_the_manifest(self, site, fresh, requirement):
        site.install("base")
        site.install("user", manifest=f"'requires': [{requirement!r}], 'provides': ['cli']")
        fresh.load_hooks(only_cli=True)
        assert names(fresh) == ["base"]
        fresh.plugins.finish()
        assert "its manifest is wrong at requires: " in told(fresh)["user"]
        assert "is no requirement; write the name of a plugin" in told(fresh)["user"]

    async def test_a_run_stops_before_it_goes_on_without_a_plugin_whose_requirement_is_not_met(
        self, site, loaded
    ):
        site.install("base", manifest="'version': '1.0'")
        site.install("user", manifest="'requires': ['base>=2']")
        app = loaded()
        with pytest.raises(LoadFailed, match=r"it requires plugin 'base' >=2, and version 1\.0"):
            async with app.running():
                pass

    def test_what_a_failed_plugin_was_required_for_fails_too(self, site, loaded):
        site.install("base", "1 / 0", manifest="")
        site.install("upper", manifest="'requires': ['base']")
        app = loaded()
        assert names(app) == []
        assert told(app)["upper"].endswith("it requires plugin 'base', which could not be loaded")

    def test_a_namespace_has_one_owner_and_a_clash_names_both(self, site, loaded):
        site.install("one", manifest="'namespaces': ['acme'], 'order': 1")
        site.install("two", manifest="'namespaces': ['other', 'acme'], 'order': 2")
        site.install("three", manifest="'requires': ['two']")
        app = loaded()
        assert names(app) == ["one"]
        clash = "namespace 'acme' belongs to plugin 'one', and 'two' claims it too"
        assert clash in told(app)["two"]
        assert [failure.error.plugin for failure in app.failures] == ["two", "three"]
        assert "requires plugin 'two', which" in told(app)["three"]

    def test_a_tool_in_a_strangers_namespace_is_refused(self, site, loaded):
        site.install("owner", manifest="'namespaces': ['acme']")
        site.install(
            "thief",
            "from hookline import hookimpl\nfrom hookline.specs import ToolSpec\n@hookimpl\n"
            "def register_tools(): return [ToolSpec(name='x', namespace='acme')]",
        )
        app = loaded()
        assert "acme.x" not in app.tools
        assert "namespace 'acme', which belongs to plugin 'owner'" in told(app)["thief"]

    def test_two_packages_with_one_name_are_both_told(self, site, loaded):
        site.install("same", distribution="first")
        site.install("same", distribution="second")
        app = loaded()
        assert names(app) == ["same"]
        assert "both first 1.2 and second 1.2 bring a plugin of this name" in told(app)["same"]

    def test_a_manifest_without_a_plugin_is_told(self, site, loaded):
        site.install("lost", manifest="")
        about = site.folder / "hookline_lost-1.2.dist-info" / "entry_points.txt"
        about.write_text("[hookline.manifest]\nlost = somewhere:manifest\n")
        [message] = told(loaded()).values()
        assert "has a manifest of this name, but no entry point in [hookline]" in message

    def test_commands_without_cli_in_the_manifest_are_warned_of(self, site, loaded):
        site.install(
            "shy",
            "from hookline import hookimpl\n@hookimpl\ndef register_cli_commands(app): pass",
            manifest="'provides': ['tool']",
        )
        [warning] = loaded().plugins.warnings
        assert "plugin 'shy' has commands for the command line" in warning


HALFWAY = """
from hookline import hookimpl
from hookline.runtime.absences import LoadFailed
from hookline.config import ConfigError
from hookline.hooks import Answer, Family, chain, hookspec
from hookline.tools import tool

@tool
def halfway_tool(): "A tool."

class Own(Family, name="own"):
    @hookspec(chain("value"))
    def own_hook(self, value: str) -> Answer[str]: "Change a value."

class Other:
    @hookimpl
    def system_prompt(self): return "other"

class Plugin:
    def __init__(self, app):
        app.hooks.declare(Own)
        app.hooks.register("own_hook", lambda value: value)
        app.hooks.register("agent_end", lambda event: None)
        app.hooks.register("around_tool_call", lambda call_next: call_next())
        app.hooks.scope("s").register("turn_end", lambda event: None)
        app.hooks.subscribe(lambda event: None)
        app.hooks.trace(lambda dispatch: None)
        app.hooks.add(Other(), name="helper")
        if {fail_early}:
            raise RuntimeError("no more")

    @hookimpl
    def system_prompt(self): return "halfway"

    @hookimpl
    def register_tools(self):
        from hookline.specs import ToolSpec
        return [ToolSpec(name="brought")]

    @hookimpl
    def register_skills(self): return [{{"name": "brought-skill"}}]

    @hookimpl
    def register_commands(self): return [{{"name": "brought", "handler": print}}]

    @hookimpl
    def register_packs(self): return [{{"id": "brought", "manifest_path": "pack.toml"}}]

    @hookimpl
    def hookline_startup(self, pm):
        pm._hooks.register("agent_start", late)
        raise RuntimeError("no more")

def late(event): "A handler of a later moment."
"""


class TestLeftOutWhole:
    def footprint(self, app):
        return (
            app.hooks.report(),
            list(app.hooks.catalog),
            [hook.count() for hook in map(app.hooks.__getitem__, app.hooks.catalog)],
            len(app.hooks.observers),
        )

    def test_a_plugin_that_fails_while_it_is_made_leaves_nothing(self, site, fresh):
        fresh.load_hooks(packages=False)
        before = self.footprint(fresh)
        site.install("half", HALFWAY.format(fail_early=True), attribute=":Plugin")
        fresh.plugins.load()
        assert "RuntimeError: no more" in told(fresh)["half"]
        assert self.footprint(fresh) == before
        assert not hasattr(fresh.hooks.pm.hook, "own_hook")

    async def test_a_plugin_that_fails_at_startup_takes_all_it_brought_along(self, site, fresh):
        fresh.absences.enforced = False  # nothing is gathered before it is asked for
        fresh.load_hooks(packages=False)
        fresh.plugins.load()
        async with fresh.running():  # the shipped hook files are there from now on
            pass
        before = self.footprint(fresh)
        site.install("half", HALFWAY.format(fail_early=False), attribute=":Plugin")
        fresh.plugins.load()
        assert "brought" in fresh.tools
        assert "halfway_tool" in fresh.tools
        skills = fresh.hooks.pm.get_plugin("skills").skills
        assert "brought-skill" in skills
        packs = fresh.plugins.pack_specs
        commands = fresh.plugins.gather("register_commands", dict, lambda c: c["name"], "command")
        assert [pack.id for pack in packs] == ["brought"]
        assert "own_hook" in fresh.hooks
        async with fresh.running():
            assert "brought" not in fresh.tools
            assert "halfway_tool" not in fresh.tools
        assert "brought-skill" not in skills
        assert packs == commands == []
        assert self.footprint(fresh) == before
        assert [failure.stage for failure in fresh.failures] == ["hookline_startup"]

    def test_a_hook_that_was_taken_back_can_be_declared_again(self, fresh):
        class Kitchen(Family, name="kitchen"):
            @hookspec(chain("recipe"))
            def season(self, recipe: str) -> Answer[str]:
                """Change a recipe."""

        class Salt:
            @hookimpl
            def season(self, recipe):
                return f"{recipe} with salt"

        for _ in range(2):
            fresh.hooks.declare(Kitchen)
            fresh.hooks.add(Salt())
            assert fresh.hooks.run("season", recipe="soup") == "soup with salt"
            assert fresh.hooks.pm.hook.season(recipe="soup") == ["soup with salt"]
            fresh.hooks.remove("Salt")
            fresh.hooks.undeclare(["season"])
            assert "season" not in fresh.hooks

    def test_the_commands_of_a_plugin_that_fails_to_add_them_are_not_there(self, app):
        class Half:
            @hookimpl
            def register_cli_commands(self, app):
                app.command("half")(lambda: None)
                raise RuntimeError("no more")

        app.hooks.add(Half(), name="half")
        cli = app.create_cli_app()
        assert "half" not in [command.name for command in cli.registered_commands]
        assert "run" in [command.name for command in cli.registered_commands]
        assert not app.hooks.pm.has_plugin("half")

    def test_an_async_register_cli_commands_is_skipped_and_the_plugin_stays(self, app, caplog):
        class Mail:
            @hookimpl
            async def register_cli_commands(self, app):
                app.command("mail")(lambda: None)

            @hookimpl
            def system_prompt(self):
                return "You may send mail."

        app.hooks.add(Mail(), name="mail")
        cli = app.create_cli_app()
        assert "run" in [command.name for command in cli.registered_commands]
        assert "mail" not in [command.name for command in cli.registered_commands]
        assert app.failures == []
        assert app.hooks.pm.has_plugin("mail")
        assert "You may send mail." in app.get_system_prompt("hi", {})
        assert "hook.async_not_supported hook=register_cli_commands adapter=mail" in caplog.text
        assert app.plugins.warnings == [
            "plugin 'mail' adds no commands: register_cli_commands must not be async"
        ]


TOOL = "from hookline import hookimpl, tool\n@tool\ndef find(): 'Find it.'\n"
HOOK = "from hookline import hookimpl\n@hookimpl\ndef system_prompt(): return 'x'\n"


class TestDeclaredTools:
    """A tool that a module declares with `@tool` is in apps that loaded its plugin, in no others."""

    @pytest.fixture
    def another(self, tmp_path):
        """Make further apps in this process."""

        def make(**options):
            app = Hookline(home=tmp_path / "home", workspace=tmp_path, **options)
            app.load_hooks(packages=options.pop("packages", True))
            return app

        return make

    @pytest.mark.parametrize(
        "source",
        [
            "from . import tools\n",
            "from .tools import find\n",
            "from .tools import unrelated\n",
            "import {module}.tools\n",
            "import {module}.tools as _\n",
            "def __getattr__(name): raise AttributeError\nfrom .deep import unrelated\n",
        ],
    )
    def test_it_comes_with_the_plugin_however_the_module_is_imported(self, site, another, source):
        module = site.install("finder")
        folder = site.folder / module
        (folder / "tools.py").write_text(f"{TOOL}unrelated = 1\n")
        (folder / "deep.py").write_text("from .tools import unrelated\n")
        (folder / "plugin.py").write_text(source.format(module=module) + HOOK)
        first, second = another(), another()  # the module is imported once
        assert "find" in first.tools
        assert "find" in second.tools
        assert first.plugins.tools_of("finder") == ["find"]
        bare = Hookline(home=first.home, workspace=first.workspace)
        bare.load_hooks(packages=False)
        assert "find" not in bare.tools
        assert "find" not in another(without=["finder"]).tools

    def test_a_library_with_tools_comes_with_each_plugin_that_uses_it(self, site, another):
        (site.folder / "a_library_of_tools.py").write_text(TOOL)
        site.install("one", f"import a_library_of_tools\n{HOOK}")
        site.install("two", f"from a_library_of_tools import find\n{HOOK}")
        site.install("three", HOOK)
        assert "find" in another(without=["two", "three"]).tools
        assert "find" in another(without=["one", "three"]).tools
        assert "find" not in another(without=["one", "two"]).tools

    def test_it_comes_with_a_plugin_object_that_is_added_by_hand(self, site, app):
        (site.folder / "handmade_plugin.py").write_text(f"{TOOL}class P:\n  {HOOK.split(chr(10))[1]}\n"
            "  def system_prompt(self): return 'x'\n")  # fmt: skip
        import handmade_plugin

        app.hooks.add(handmade_plugin.P(), name="handmade")
        assert "find" in app.tools

    def test_plugins_with_tools_of_one_name_work_in_different_apps(self, site, another):
        first = site.install("one", TOOL + HOOK)
        second = site.install("two", TOOL + HOOK)
        assert another(without=["two"]).tools.get("find").module == f"{first}.plugin"
        assert another(without=["one"]).tools.get("find").module == f"{second}.plugin"
        assert another(without=["two"]).tools.get("find").module == f"{first}.plugin"

    def test_in_one_app_the_later_one_is_left_out_and_both_are_named(self, site, loaded):
        first = site.install("one", TOOL + HOOK)
        second = site.install("two", TOOL + HOOK)
        app = loaded()
        assert app.tools.get("find").module == f"{first}.plugin"
        assert names(app) == ["one"]
        assert f"{first}.plugin" in told(app)["two"]
        assert f"{second}.plugin" in told(app)["two"]

    def test_a_plugin_cannot_take_the_place_of_a_builtin_tool(self, site, loaded):
        site.install("shelly", TOOL.replace("find", "shell") + HOOK)
        app = loaded()
        assert app.tools.get("shell").place.startswith("hookline.")
        assert "two tools are named 'shell'" in told(app)["shelly"]
        assert "builtin" in app.hooks.report()["system_prompt"]

    def test_one_in_a_strangers_namespace_is_refused(self, site, loaded):
        site.install("owner", manifest="'namespaces': ['acme']")
        site.install("thief", TOOL.replace("@tool", "@tool(namespace='acme')") + HOOK)
        app = loaded()
        assert "acme.find" not in app.tools
        assert "which belongs to plugin 'owner'" in told(app)["thief"]

    async def test_the_model_is_told_of_what_the_app_was_given_and_nothing_else(self, app, scripted):
        @tool
        def declared_in_a_script() -> str:
            return "x"

        model = scripted("one", "two")
        async with app.running():
            await app.process({"content": "hi"})
            app.tools.add(declared_in_a_script)
            await app.process({"content": "hi"})
        before, after = ({t["name"] for t in request.tools} for request in model.requests)
        assert after - before == {"declared_in_a_script"}


class TestRegistrations:
    def plugin(self, hook, given):
        return type("Brings", (), {hook: hookimpl(lambda self: given)})()

    def test_of_two_plugins_with_one_id_the_later_fails_and_both_are_named(self, app):
        pack = {"id": "rules", "manifest_path": "pack.toml"}
        app.hooks.add(self.plugin("register_packs", [pack]), name="first")
        app.hooks.add(self.plugin("register_packs", [{**pack, "id": "more"}, pack]), name="second")
        app.hooks.add(self.plugin("register_packs", [{**pack, "id": "more"}]), name="third")
        assert [spec.id for spec in app.plugins.pack_specs] == ["rules", "more"]
        assert told(app) == {
            "second": "second: register_packs failed: pack 'rules' is brought by plugin 'first' "
            "and by 'second'"
        }

    def test_two_plugins_cannot_bring_a_skill_of_one_name(self, app):
        for name in ("first", "second"):
            app.hooks.add(self.plugin("register_skills", [{"name": "review"}]), name=name)
        skills = app.hooks.pm.get_plugin("skills").skills
        assert [skill.name for skill in skills.list()] == ["review"]
        assert "skill 'review' is brought by plugin 'first' and by 'second'" in told(app)["second"]

    @pytest.mark.parametrize(
        "given", [7, [3], [{"ide": "x"}], [{"id": "bad id", "manifest_path": "x"}]]
    )
    def test_what_is_no_pack_leaves_the_plugin_out(self, app, given):
        app.hooks.add(self.plugin("register_packs", given), name="wrong")
        assert app.plugins.pack_specs == []
        assert [failure.plugin for failure in app.failures] == ["wrong"]
        assert not app.hooks.pm.has_plugin("wrong")


class TestTheCommandLine:
    def run(self, site, *arguments, **env):
        settings = {
            **os.environ,
            "PYTHONPATH": str(site.folder),
            "HOOKLINE_HOME": f"{site.folder}/home",
        }
        code = "from hookline.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**settings, **env},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_only_plugins_that_say_cli_are_imported_for_help(self, site):
        commands = (
            "from hookline import hookimpl\n@hookimpl\ndef register_cli_commands(app):\n"
            "    @app.command()\n    def greet():\n        'Say hello.'\n        print('hello')\n"
        )
        module = site.install("greeter", commands, manifest="'provides': ['cli']")
        site.install("worker", manifest="'provides': ['tool']")
        done = self.run(site, "--help")
        assert "greet" in done.stdout
        assert site.imported == [module, f"{module}.plugin"]
        assert self.run(site, "greet").stdout == "hello\n"

    def test_the_whole_start_is_traced_on_demand(self, site):
        site.install("worker", manifest="'provides': ['tool'], 'order': 3")
        site.install("broken", "1 / 0", manifest="")
        assert "plugins " not in self.run(site, "tape", "list").stderr
        traced = self.run(site, "tape", "list", HOOKLINE_TRACE_PLUGINS="1").stderr
        steps = [line.split(" ms ")[1].split()[:2] for line in traced.splitlines() if " ms " in line]
        for step in ("found", "manifest", "importing", "loaded"):
            assert [step, "worker"] in steps
        assert ["failed", "broken"] in steps

    def test_nothing_of_a_disabled_plugin_is_run(self, site):
        module = site.install("worker", manifest="")
        (site.folder / module / "manifest.py").write_text("raise SystemExit(9)")
        home = site.folder / "home"
        home.mkdir()
        (home / "config.toml").write_text("[plugins]\ndisabled = ['worker']\n")
        done = self.run(site, "tape", "list")
        assert (done.returncode, done.stderr) == (0, "")
        assert site.imported == []

    def test_help_is_shown_whatever_the_settings_are_like(self, site):
        site.install("worker", manifest="'provides': ['cli']")
        home = site.folder / "home"
        home.mkdir()
        (home / "config.toml").write_text("[plugins]\ndisabled = 'worker'\n")
        done = self.run(site, "--help")
        assert done.returncode == 0
        assert "Answer one message" in done.stdout
        assert site.imported == []
        done = self.run(site, "plugins", "list")
        assert done.returncode == 2
        assert "plugins.disabled must be a list of names" in done.stderr
        assert "Traceback" not in done.stderr
