"""The places that settings come from: which wins over which, and what is wrong with one."""

from itertools import pairwise

import pytest

from hookline.config import Config, ConfigError

ORDER = ["user", "work", "project", "environment", "command line"]


@pytest.fixture
def saying(write, load):
    """Load settings of which each of these places says its own name."""

    def saying(*places: str) -> Config:
        given: dict[str, object] = {}
        write("work", "")
        for place in places:
            if place == "environment":
                given["HOOKLINE_STT__SAID"] = place
            elif place == "command line":
                given["overrides"] = {"stt": {"said": place}}
            else:
                write(place, f'[stt]\nsaid = "{place}"\n{place} = true\n')
        return load(profile="work", trusts=lambda path, content: True, **given)

    return saying


@pytest.mark.parametrize(("earlier", "later"), list(pairwise(ORDER)))
def test_the_later_of_two_places_wins(saying, earlier, later):
    assert saying(earlier, later).get("stt.said") == later


def test_the_last_of_all_places_wins_and_tables_are_merged(saying):
    config = saying(*ORDER)
    assert config.section("stt") == {
        "said": "command line",
        "user": True,
        "work": True,
        "project": True,
    }


def test_each_setting_is_traced_to_its_place(saying, tmp_path):
    config = saying("user", "project", "environment")
    assert config.source("stt.said") == "environment HOOKLINE_STT__SAID"
    assert config.source("stt.user") == str(tmp_path / "home" / "config.toml")
    assert config.source("stt.project") == str(tmp_path / "workspace" / ".hookline" / "config.toml")
    assert config.source("stt.none") is None
    assert saying("command line").source("stt.said") == "command line"


def test_a_value_takes_the_place_of_a_table_and_the_other_way_round(write, load):
    write("user", "[options]\na = { b = 1 }\nc = 1\n")
    write("work", "[options]\na = 1\nc = { d = 1 }\n")
    assert load(profile="work").section("options") == {"a": 1, "c": {"d": 1}}


def test_without_any_file_there_is_nothing_and_nothing_is_made(load, tmp_path):
    config = load()
    assert (config.section("limits"), config.get("model"), config.problems()) == ({}, None, [])
    assert not (tmp_path / "home").exists()


def test_what_is_handed_out_can_be_changed_without_changing_the_settings(write, load):
    write("user", "[options]\nlist = [1]\n")
    config = load()
    config.section("options")["list"].append(2)
    config.get("options")["more"] = 1
    assert config.section("options") == {"list": [1]}


def test_what_the_user_says_is_told_apart_from_what_the_project_says(write, load):
    write("user", '[policy]\ndefault = "deny"\n')
    write("default", "[policy]\nstrict = true\n")
    write("project", '[policy]\ndefault = "deny"\n')
    config = load(HOOKLINE_POLICY__DEFAULT="ask")
    assert config.section("policy") == {"default": "ask", "strict": True}
    assert config.of_user("policy") == {"default": "deny", "strict": True}
    assert config.of_project("policy") == {"default": "deny"}
    assert config.of_user("gateway") == {}


def test_without_the_project_its_file_is_not_read(write, load):
    write("project", "this is = = no TOML")
    config = load(project=False)
    assert config.project_dir is None
    assert config.of_project("policy") == {}


def test_in_the_folder_above_the_home_the_users_file_is_not_also_the_projects(tmp_path):
    home = tmp_path / ".hookline"
    home.mkdir()
    (home / "config.toml").write_text('[providers.openai]\napi_key = "k"\n')
    config = Config.load(home, workspace=tmp_path, environ={})
    assert config.project_dir is None
    assert config.section("providers.openai") == {"api_key": "k"}


class TestAProject:
    def test_it_cannot_say_where_keys_go(self, write, load):
        path = write("project", '[providers.openai]\nbase_url = "http://evil.example/v1"\n')
        config = load()
        assert config.section("providers") == {}
        assert config.expanded("providers") == {}
        assert config.source("providers.openai.base_url") is None
        assert config.of_project("providers") == {}
        assert config.written_in_project("providers") == {
            "openai": {"base_url": "http://evil.example/v1"}
        }
        (line,) = config.inert_lines()
        assert line.startswith(f"{path}: providers.openai.base_url is inert: only your own settings")

    def test_it_cannot_leave_out_a_plugin(self, write, load):
        write("user", '[plugins]\ndisabled = ["noisy"]\n')
        write("project", '[plugins]\ndisabled = ["guard"]\n')
        assert load().disabled_plugins() == ["noisy"]


class TestTheEnvironment:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("deny", "deny"),
            ("5", 5),
            ("2.5", 2.5),
            ("true", True),
            ("True", "True"),
            ('"5"', "5"),
            ('["a", "b"]', ["a", "b"]),
            ("{ a = 1 }", {"a": 1}),
            ("2026-01-01", "2026-01-01"),
            ("1\nb = 2", "1\nb = 2"),
            ("", ""),
            ("[" * 5000, "[" * 5000),
        ],
    )
    def test_a_value_is_toml_where_it_is_toml_and_else_a_text(self, load, text, value):
        assert load(HOOKLINE_POLICY__DEFAULT=text).get("policy.default") == value

    def test_names_and_secrets_are_always_texts(self, load):
        config = load(HOOKLINE_MODEL="7", HOOKLINE_PROVIDERS__OPENAI__API_KEY="123456")
        assert config.get("model") == "7"
        assert config.get("providers.openai.api_key") == "123456"

    def test_a_number_of_tokens_is_no_secret(self, load):
        assert load(HOOKLINE_LIMITS__TOKENS="900").get("limits.tokens") == 900

    def test_the_variables_that_are_no_settings_are_left_alone(self, load):
        config = load(HOOKLINE_HOME="/x", HOOKLINE_TRACE_PLUGINS="1", HOOKLINE___X="1", HOOKLINE_="1")
        assert config.shown() == {}
        assert config.problems() == []

    def test_a_hyphen_and_a_capital_in_a_file_are_found_by_the_variable(self, write, load):
        write("user", '[mcp.servers.My-Server]\ncommand = "a"\n')
        config = load(HOOKLINE_MCP__SERVERS__MY_SERVER__COMMAND="b")
        assert config.section("mcp") == {"servers": {"My-Server": {"command": "b"}}}

    def test_the_provider_with_a_hyphen_needs_no_file(self, load):
        config = load(HOOKLINE_PROVIDERS__OPENAI_COMPATIBLE__BASE_URL="http://localhost/v1")
        assert config.get("providers.openai-compatible.base_url") == "http://localhost/v1"

    def test_a_variable_that_is_somebody_elses_is_told_and_stops_nothing(self, load):
        config = load(HOOKLINE_MODLE="x")
        (problem,) = config.problems()
        assert problem.startswith(
            "environment HOOKLINE_MODLE: unknown setting 'modle'; did you mean 'model'"
        )

    def test_two_variables_that_contradict_each_other_are_named(self, load):
        with pytest.raises(
            ConfigError, match="HOOKLINE_POLICY and HOOKLINE_POLICY__DEFAULT contradict"
        ):
            load(HOOKLINE_POLICY="x", HOOKLINE_POLICY__DEFAULT="y")

    def test_a_value_for_a_table_is_named_by_its_variable(self, load):
        with pytest.raises(ConfigError, match="environment HOOKLINE_LIMITS: limits must be a table"):
            load(HOOKLINE_LIMITS="5")


class TestABadFile:
    @pytest.mark.parametrize(
        ("text", "line", "what"),
        [
            ('model = "a"\n\nx = = 1\n', 3, "Invalid value"),
            ('model = "a"\nmodel = "b"\n', 2, "Cannot overwrite a value"),
            ("[limits\n", 1, "Expected"),
            ('model = "', 1, "Unterminated string"),
        ],
    )
    def test_it_is_named_with_the_line(self, write, load, text, line, what):
        path = write("user", text)
        with pytest.raises(ConfigError) as told:
            load()
        assert str(told.value).startswith(f"{path}, line {line}: this is not TOML: {what}")

    def test_one_that_cannot_be_read_is_named(self, tmp_path, load):
        (tmp_path / "home" / "config.toml").mkdir(parents=True)
        with pytest.raises(ConfigError, match=r"cannot read .*home/config.toml: Is a directory"):
            load()

    def test_one_that_is_not_text_is_named(self, write, load):
        write("user", "").write_bytes(b'model = "\xff"')
        with pytest.raises(ConfigError, match=r"config.toml is not UTF-8 text \(byte 9\)"):
            load()

    def test_one_that_is_far_too_long_is_named(self, write, load):
        write("user", "#" * 1_000_001)
        with pytest.raises(ConfigError, match="more than 1,000,000 bytes"):
            load()

    def test_tables_nested_beyond_reason_are_named(self, write, load):
        write("user", "a = " + "[" * 100_000)
        with pytest.raises(ConfigError, match=r"config\.toml"):
            load()

    def test_a_reload_of_one_changes_nothing(self, write, load):
        path = write("user", 'model = "a"\n')
        config = load()
        path.write_text("model = ")
        with pytest.raises(ConfigError):
            config.reload()
        assert config.get("model") == "a"
        path.write_text('model = "b"\n')
        config.reload()
        assert config.get("model") == "b"


class TestProfiles:
    def test_the_default_one_need_not_exist(self, load, tmp_path):
        config = load()
        assert (config.profile, config.profile_dir) == ("default", tmp_path / "home/profiles/default")

    def test_it_is_chosen_by_argument_or_variable(self, write, load, tmp_path):
        write("work", 'model = "w"\n')
        for config in (load(profile="work"), load(HOOKLINE_PROFILE="work")):
            assert (config.profile, config.get("model")) == ("work", "w")
        assert load(profile="default", HOOKLINE_PROFILE="work").profile == "default"
        assert load(profile="work").profile_dir == tmp_path / "home" / "profiles" / "work"

    def test_an_unknown_one_is_an_error_that_says_which_there_are_and_how_to_make_it(self, write, load):
        write("work", "")
        with pytest.raises(ConfigError) as told:
            load(profile="wrok")
        assert "unknown profile 'wrok'; did you mean 'work'?" in str(told.value)
        assert "hookline config set --profile wrok model MODEL" in str(told.value)

    @pytest.mark.parametrize("name", ["../other", "a/b", ".hidden", "", "x" * 65])
    def test_a_name_that_leads_elsewhere_is_refused(self, load, name):
        with pytest.raises(ConfigError, match="cannot be the name of a profile"):
            load(profile=name or " ")
