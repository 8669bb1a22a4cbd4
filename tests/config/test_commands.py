"""`hookline config` and the options of the root command, as a user meets them."""

import json
import subprocess
import sys

import pytest

from ..commandline import environment


class TestShow:
    def test_every_setting_has_its_place_and_secrets_are_hidden(self, hookline, write, tmp_path):
        path = write("user", 'model = "local"\n[providers.openai]\napi_key = "hunter2"\n')
        done = hookline("config", "show", HOOKLINE_LIMITS__STEPS="7")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert f'model = "local"  ({path})' in lines
        assert f'providers.openai.api_key = "***"  ({path})' in lines
        assert "limits.steps = 7  (environment HOOKLINE_LIMITS__STEPS)" in lines
        assert "limits.parallel_tools = 8  (default)" in lines
        assert "hunter2" not in done.stdout + done.stderr

    def test_one_section_as_json(self, hookline, write):
        path = write("project", "[limits]\nsteps = 7\n")
        told = json.loads(hookline("config", "show", "limits", "--json").stdout)
        assert told["profile"] == "default"
        assert told["settings"]["limits.steps"] == {"value": 7, "source": str(path)}
        assert "model" not in told["settings"]

    def test_what_is_wrong_is_told_beside_it(self, hookline, write):
        write("user", '[limit]\nsteps = 1\n[providers.openai]\nbase_ulr = "x"\n')
        done = hookline("config", "show")
        assert done.returncode == 0
        assert "!! " in done.stderr
        assert "unknown section 'limit'; did you mean 'limits'" in done.stderr
        assert "unknown setting 'base_ulr' of openai; did you mean 'base_url'" in done.stderr

    def test_doctor_tells_it_and_fails(self, hookline, write):
        write("user", "[limit]\nsteps = 1\n")
        done = hookline("doctor")
        assert done.returncode == 1
        assert "!!  config" in done.stdout
        assert "did you mean 'limits'" in done.stdout

    def test_an_unknown_section_is_refused(self, hookline):
        done = hookline("config", "show", "limit")
        assert done.returncode == 2
        assert done.stderr == "hookline: unknown section 'limit'; did you mean 'limits'?\n"


class TestSet:
    def test_a_value_is_set_in_the_users_file_and_takes_effect(self, hookline, tmp_path):
        done = hookline("config", "set", "limits.steps", "7")
        path = tmp_path / "home" / "config.toml"
        assert (done.returncode, done.stdout) == (0, f"limits.steps is set in {path}\n")
        assert path.read_text() == "[limits]\nsteps = 7\n"

    def test_comments_stay(self, hookline, write):
        path = write("user", "# mine\n[limits]\nsteps = 3  # few\n")
        hookline("config", "set", "limits.steps", "7")
        assert path.read_text() == "# mine\n[limits]\nsteps = 7  # few\n"

    def test_what_looks_like_a_number_is_a_text_where_a_text_is_meant(self, hookline, tmp_path):
        done = hookline("config", "set", "providers.openai.api_key_env", "7")
        assert done.returncode == 0, done.stderr
        assert 'api_key_env = "7"' in (tmp_path / "home" / "config.toml").read_text()

    def test_a_secret_is_not_repeated(self, hookline):
        done = hookline("config", "set", "providers.openai.api_key", "hunter2")
        assert "hunter2" not in done.stdout + done.stderr

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("modle", "x", "unknown setting 'modle'; did you mean 'model'"),
            ("limit.steps", "1", "unknown setting 'limit.steps'; did you mean 'limits'"),
            ("limits.stesp", "1", "limits.stesp: unknown key 'stesp'; did you mean 'steps'"),
            ("limits.steps", "many", "limits.steps: must be a valid integer"),
            ("limits", "3", "limits must be a table"),
            ("thinking", "hihg", "thinking must be one of off, low, medium, high; did you mean 'high'"),
            ("providers.opnai.api_key", "x", "unknown provider 'opnai'; did you mean 'openai'"),
            ("providers.openai.base_ulr", "x", "unknown setting 'base_ulr' of openai"),
            ("providers.openai.base_url", "nowhere", "the base URL of openai is invalid"),
            ("providers.openai", "3", "providers: 'openai' must be a table"),
            ("plugins.disabled", "x", "plugins.disabled: must be a valid list"),
            ("model", "opnai:gpt-5", "unknown model 'opnai:gpt-5'; did you mean 'openai"),
            ("model", "lcoal", "unknown model 'lcoal'; did you mean 'local'"),
            ("model", "openai", "unknown model 'openai'; name a model: openai:MODEL"),
            ("model", "scripted:none.toml", "there is no script file 'none.toml'"),
            ("agents", '{ tester = { model = "gorq:x" } }', "unknown model 'gorq:x'; did you mean"),
            ("agents.tester.model", "gorq:x", "unknown model 'gorq:x'; did you mean 'groq:x'"),
            (
                "policy.packs",
                '["read-onyl"]',
                "'read-onyl'; did you mean 'read-only'",
            ),
            ("policy", '{ packs = ["read-onyl"] }', "unknown policy pack 'read-onyl'"),
            ("policy.packs", '["./nowhere"]', "nowhere/pack.toml"),
            ("a..b", "x", "'a..b' is no name of a setting"),
        ],
    )
    def test_what_means_nothing_is_refused_and_nothing_is_written(
        self, hookline, tmp_path, key, value, message
    ):
        done = hookline("config", "set", key, value)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "home" / "config.toml").exists()

    def test_for_a_project_it_is_written_there_and_not_what_a_project_may_not_say(
        self, hookline, tmp_path
    ):
        assert hookline("config", "set", "--project", "limits.steps", "7").returncode == 0
        path = tmp_path / "workspace" / ".hookline" / "config.toml"
        assert path.read_text() == "[limits]\nsteps = 7\n"
        done = hookline("config", "set", "--project", "providers.openai.base_url", "http://h/v1")
        assert done.returncode == 2
        assert "cannot be set for a project: only your own settings" in done.stderr

    def test_what_is_set_below_another_place_says_so(self, hookline):
        done = hookline("config", "set", "model", "local", HOOKLINE_MODEL="openai:x")
        assert done.returncode == 0
        winner = "environment HOOKLINE_MODEL"
        assert done.stderr == f"it has no effect: {winner} sets it too, and comes later\n"

    def test_a_broken_value_can_be_mended(self, hookline, write):
        path = write("user", "[limits]\nsteps = 0\ndepth = 'x'\n")
        assert hookline("config", "set", "limits.steps", "5").returncode == 0
        assert path.read_text() == "[limits]\nsteps = 5\ndepth = 'x'\n"

    @pytest.mark.parametrize("name", ["openai:gpt-5-mini", "ollama:x", "any:mistral/large", "${MODEL}"])
    def test_a_model_without_its_key_or_server_can_be_set_up_later(self, hookline, name):
        assert hookline("config", "set", "model", name).returncode == 0

    def test_the_code_of_a_scripted_model_does_not_run_when_it_is_set(self, hookline, tmp_path):
        (tmp_path / "turns.py").write_text("raise SystemExit('it ran')")
        done = hookline("config", "set", "model", f"scripted:{tmp_path}/turns.py")
        assert (done.returncode, done.stderr) == (0, "")

    def test_packs_that_exist_are_accepted(self, hookline):
        assert hookline("config", "set", "policy.packs", '["read-only"]').returncode == 0
        assert hookline("config", "get", "policy.packs").stdout == '["read-only"]\n'


class TestGetAndUnset:
    def test_get_prints_one_value_and_nothing_else(self, hookline, write):
        write("user", '[limits]\nsteps = 7\n[providers.openai]\napi_key = "hunter2"\n')
        assert hookline("config", "get", "model").stdout == "local\n"
        assert hookline("config", "get", "limits.steps").stdout == "7\n"
        assert json.loads(hookline("config", "get", "limits").stdout)["steps"] == 7
        assert hookline("config", "get", "providers.openai.api_key").stdout == "***\n"

    def test_get_refuses_what_is_not_set(self, hookline):
        done = hookline("config", "get", "limit.steps")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "hookline: limit.steps is not set; did you mean 'limits'?\n"

    def test_unset_removes_the_setting_with_its_empty_table_and_keeps_the_rest(self, hookline, write):
        path = write("user", '# mine\nmodel = "local"  # small\n\n[limits]\nsteps = 7\n')
        done = hookline("config", "unset", "limits.steps")
        assert (done.returncode, done.stdout) == (0, f"limits.steps is no longer set in {path}\n")
        assert path.read_text().rstrip() == '# mine\nmodel = "local"  # small'
        assert hookline("config", "unset", "model").returncode == 0
        assert hookline("config", "get", "model").stdout == "local\n"

    def test_unset_says_where_else_it_is_set(self, hookline, write):
        write("project", "[limits]\nsteps = 7\n")
        done = hookline("config", "unset", "limits.steps")
        assert done.returncode == 2
        assert "limits.steps is not set in" in done.stderr
        assert "it is set in" in done.stderr
        assert hookline("config", "unset", "--project", "limits.steps").returncode == 0


class TestTheRoot:
    def test_a_profile_is_made_by_setting_something_and_then_used(self, hookline, tmp_path):
        done = hookline("--profile", "work", "config", "show")
        assert done.returncode == 2
        assert "unknown profile 'work'" in done.stderr
        assert "hookline config set --profile work model MODEL" in done.stderr
        assert hookline("config", "set", "--profile", "work", "model", "openai:w").returncode == 0
        for shown in (
            hookline("--profile", "work", "config", "show", "model"),
            hookline("--profile=work", "config", "show", "model"),
            hookline("config", "show", "model", HOOKLINE_PROFILE="work"),
        ):
            assert shown.stdout.startswith('model = "openai:w"')
        assert hookline("config", "show", "model").stdout == 'model = "local"  (default)\n'
        assert hookline("--profile", "work", "config", "set", "thinking", "low").returncode == 0
        assert 'thinking = "low"' in (tmp_path / "home/profiles/work/config.toml").read_text()

    def test_paths_are_told_in_order(self, hookline, write, tmp_path):
        path = write("project", "")
        lines = hookline("config", "path").stdout.splitlines()
        assert lines[0] == f"user     {tmp_path}/home/config.toml  (not there)"
        assert lines[1].startswith("profile  ")
        assert lines[2] == f"project  {path}"
        assert len(hookline("--no-project", "config", "path").stdout.splitlines()) == 2

    def test_the_project_is_ignored_on_request(self, hookline, write):
        write("project", "[limits]\nsteps = 7\n")
        assert "limits.steps = 7" in hookline("config", "show").stdout
        assert "limits.steps = 50" in hookline("--no-project", "config", "show").stdout

    def test_a_setting_for_this_once_wins(self, hookline):
        done = hookline("--set", "limits.steps=3", "--set=model=openai:x", "config", "show",
                        HOOKLINE_LIMITS__STEPS="9")  # fmt: skip
        assert "limits.steps = 3  (command line)" in done.stdout
        assert 'model = "openai:x"  (command line)' in done.stdout
        done = hookline("--set", "limits", "config", "show")
        assert (done.returncode, "--set takes KEY=VALUE" in done.stderr) == (2, True)

    def test_a_broken_file_is_one_line_and_exit_code_2(self, hookline, write):
        path = write("user", 'model = "a"\nx = = 1\n')
        for command in (["config", "show"], ["run", "hi"], ["models"], ["config", "set", "model", "b"]):
            done = hookline(*command)
            assert done.returncode == 2
            assert done.stderr == f"hookline: {path}, line 2: this is not TOML: Invalid value\n"
        assert path.read_text() == 'model = "a"\nx = = 1\n'


class TestARun:
    def test_model_limits_and_options_come_from_the_settings(self, hookline, write, tmp_path):
        script = tmp_path / "circles.toml"
        script.write_text('repeat = true\n[[turns]]\ntool_calls = [{ name = "list_files" }]\n')
        write("user", f'model = "scripted:{script}"\n[limits]\nsteps = 2\n')
        done = hookline("run", "hi")
        assert done.returncode == 1
        assert "stopped after 2 model turns" in done.stderr

    def test_a_wrong_limit_is_exit_code_2(self, hookline, write, answering):
        path = write("user", f'model = "{answering}"\n[limits]\nsteps = "x"\n')
        done = hookline("run", "hi")
        assert done.returncode == 2
        assert done.stderr == f"hookline: {path}: limits.steps: must be a valid integer\n"

    def test_the_workspaces_own_settings_count(self, hookline, write, tmp_path, answering):
        other = tmp_path / "other" / ".hookline"
        other.mkdir(parents=True)
        (other / "config.toml").write_text("[limits\n")
        done = hookline("run", "hi", "--model", answering, "--workspace", other.parent)
        assert done.returncode == 2
        assert f"{other / 'config.toml'}, line 1: this is not TOML" in done.stderr
        assert "`--no-project` leaves the project out" in done.stderr

    def test_a_providers_settings_reach_it_with_variables_filled_in(self, hookline, write):
        write("user", '[providers.openai]\napi_key = "${MY_KEY}"\nbase_url = "http://127.0.0.1:9/v1"\n')
        done = hookline("run", "hi", "--model", "openai:gpt")
        assert done.returncode == 2
        assert "the environment variable MY_KEY is not set" in done.stderr
        listed = hookline("models")
        assert listed.returncode == 0
        assert "MY_KEY is not set" in listed.stdout


def test_help_loads_nothing_that_only_settings_need(tmp_path):
    program = (
        "import sys; sys.argv = ['hookline', '--help']\n"
        "from hookline.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'pydantic', 'tomllib', 'tomlkit'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path,
        env=environment(tmp_path / "home"),
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


async def test_the_profiles_instructions_and_skills_reach_the_model(app, scripted):
    folder = app.home / "profiles" / "default"
    (folder / "skills" / "greet").mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Always answer in Finnish.")
    (folder / "skills" / "greet" / "SKILL.md").write_text(
        "---\nname: greet\ndescription: Greets people.\n---\n\nSay hello.\n"
    )
    (app.workspace / "AGENTS.md").write_text("Use tabs.")
    model = scripted("ok")
    async with app.running():
        await app.process({"content": "hi"})
    system = model.requests[0].system
    assert "greet: Greets people." in system
    assert system.index("Always answer in Finnish.") < system.index("Use tabs.")


def test_options_and_thinking_are_the_apps_defaults(app):
    app.home.mkdir()
    (app.home / "config.toml").write_text('thinking = "low"\n[options]\ntemperature = 0.1\n')
    assert app.options == {"temperature": 0.1, "thinking": "low"}
