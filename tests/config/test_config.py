"""Sections as models: what is known, what is wrong with it, and what is never shown."""

import subprocess
import sys

import pytest
from pydantic import BaseModel, Field, SecretStr

from hookline.config import ConfigError, expand, is_secret, masked
from hookline.config.schema import LimitsSettings


class Server(BaseModel):
    host: str
    port: int = Field(default=25, ge=1)
    login: SecretStr | None = None


class Mail(BaseModel):
    subject: str = "hi"
    server: Server | None = None
    servers: dict[str, Server] = {}


class TestSettings:
    def test_a_section_becomes_a_model_once(self, write, load):
        write("user", '[mail]\nsubject = "hello"\n[mail.server]\nhost = "h"\n')
        config = load()
        mail = config.settings("mail", Mail)
        assert (mail.subject, mail.server.host, mail.server.port) == ("hello", "h", 25)
        assert config.settings("mail", Mail) is mail
        config.reload()
        assert config.settings("mail", Mail) is not mail

    def test_a_section_that_is_absent_has_the_defaults(self, load):
        assert load().settings("mail", Mail) == Mail()

    def test_a_wrong_kind_is_told_with_file_and_key(self, write, load):
        path = write("user", '[limits]\nsteps = "many"\n')
        with pytest.raises(ConfigError) as told:
            load().settings("limits", LimitsSettings)
        assert str(told.value) == f"{path}: limits.steps: must be a valid integer"

    def test_a_wrong_kind_in_the_environment_is_told_with_the_variable(self, load):
        with pytest.raises(
            ConfigError, match=r"environment HOOKLINE_LIMITS__STEPS: limits\.steps: must be"
        ):
            load(HOOKLINE_LIMITS__STEPS="0").settings("limits", LimitsSettings)

    def test_an_unknown_key_is_told_with_the_nearest_one(self, write, load):
        path = write("user", "[limits]\nstesp = 3\n")
        with pytest.raises(ConfigError) as told:
            load().settings("limits", LimitsSettings)
        assert str(told.value).startswith(
            f"{path}: limits.stesp: unknown key 'stesp'; did you mean 'steps'"
        )

    def test_every_fault_is_told_in_a_line_of_its_own(self, write, load):
        write("user", "[limits]\nsteps = 0\nparallel_tools = 0\n")
        with pytest.raises(ConfigError) as told:
            load().settings("limits", LimitsSettings)
        assert len(str(told.value).splitlines()) == 2

    def test_unknown_keys_are_found_in_tables_within_and_by_models_that_ignore_them(self, write, load):
        write("user", '[mail.servers.a]\nhost = "h"\nprot = 1\n[mail.server]\nhots = "h"\nhost = "h"\n')
        with pytest.raises(ConfigError) as told:
            load().settings("mail", Mail)
        assert "mail.servers.a.prot: unknown key 'prot'; did you mean 'port'" in str(told.value)
        assert "mail.server.hots: unknown key 'hots'; did you mean 'host'" in str(told.value)

    def test_a_section_that_is_no_table_is_told(self, write, load):
        path = write("user", "limits = 3\n")
        with pytest.raises(ConfigError, match=f"{path}: limits must be a table"):
            load()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("model = 3", "model must be a text, the model that answers"),
            ('model = " "', "model must be a text"),
            (
                'thinking = "hihg"',
                "thinking must be one of off, low, medium, high; did you mean 'high'",
            ),
            ('modle = "x"', "unknown setting 'modle'; did you mean 'model'"),
        ],
    )
    def test_what_stands_above_all_tables_is_checked_at_once(self, write, load, text, message):
        path = write("user", text)
        with pytest.raises(ConfigError) as told:
            load()
        assert str(told.value).startswith(f"{path}: {message}")


class TestProblems:
    def test_a_section_that_nobody_declares_is_told_and_stops_nothing(self, write, load):
        path = write("user", "[limit]\nsteps = 3\n[mail]\nport = 1\n")
        config = load()
        limit, mail = config.problems()
        assert limit.startswith(f"{path}: unknown section 'limit'; did you mean 'limits'")
        assert mail.startswith(f"{path}: unknown section 'mail'")

    def test_a_declared_section_is_known_and_checked(self, write, load):
        path = write("user", '[mail]\nsubjct = "x"\n')
        config = load()
        config.declare("mail", Mail)
        (problem,) = config.problems()
        assert problem.startswith(f"{path}: mail.subjct: unknown key 'subjct'; did you mean 'subject'")

    def test_a_plugins_own_section_is_known_once_it_is_declared_or_the_plugin_loaded(self, write, load):
        write("user", '[plugins.mail]\nsubject = "x"\n[plugins.other]\nx = 1\n')
        config = load()
        assert len(config.problems()) == 2
        config.declare("plugins.mail", Mail)
        (problem,) = config.problems()
        assert "plugins.other: no plugin 'other' is loaded" in problem
        assert config.problems(["other"]) == []
        assert config.settings("plugins.mail", Mail).subject == "x"

    def test_what_is_wrong_with_core_sections_is_told(self, write, load):
        write("user", '[plugins]\ndisbled = ["a"]\n[providers]\nopenai = 3\n[limits]\nsteps = "x"\n')
        told = "\n".join(load().problems())
        assert "unknown key 'disbled'" in told
        assert "'openai' must be a table" in told
        assert "limits.steps: must be a valid integer" in told

    def test_a_variable_that_is_missing_is_told(self, write, load):
        write("user", '[providers.openai]\napi_key = "${NOT_THERE}"\n')
        (problem,) = load().problems()
        assert "NOT_THERE" in problem
        assert "providers.openai.api_key" in problem


class TestExpand:
    def test_variables_are_filled_in_wherever_they_stand(self):
        environ = {"HOST": "h", "PORT": "1"}
        value = {
            "url": "http://${HOST}:${PORT}/",
            "list": ["${HOST}", 3],
            "cost": "$$5 or $6",
            "n": None,
        }
        assert expand(value, environ) == {
            "url": "http://h:1/",
            "list": ["h", 3],
            "cost": "$5 or $6",
            "n": None,
        }

    def test_what_a_variable_holds_is_not_looked_into(self):
        assert expand("${A}", {"A": "${B} $$"}) == "${B} $$"

    def test_a_missing_variable_is_named_with_its_place(self):
        with pytest.raises(ConfigError, match=r"variable KEY is not set.*\(stores\.a\.key\)"):
            expand({"a": {"key": "${KEY}"}}, {}, where="stores")

    @pytest.mark.parametrize("text", ["${", "${}", "${a b}", "${A-}", "x${UNCLOSED"])
    def test_a_reference_that_is_none_is_refused(self, text):
        with pytest.raises(ConfigError, match=r"is written \$\{NAME\}"):
            expand(text, {"A": "1"})

    def test_settings_are_filled_in_when_they_are_used_and_sections_never(self, write, load):
        write("user", '[mail]\nsubject = "${WHAT}"\n')
        assert load(WHAT="now").settings("mail", Mail).subject == "now"
        config = load()
        assert config.section("mail") == {"subject": "${WHAT}"}
        with pytest.raises(ConfigError, match="WHAT"):
            config.settings("mail", Mail)

    def test_a_table_that_nobody_reads_needs_no_variable(self, write, load):
        write("user", '[providers.a]\nkey = "${ONE}"\n[providers.b]\nkey = "${TWO}"\n')
        tables = load(ONE="1").expanded("providers")
        assert dict(tables["a"]) == {"key": "1"}
        with pytest.raises(ConfigError, match="TWO"):
            dict(tables["b"])


class TestSecrets:
    @pytest.mark.parametrize(
        "name",
        [
            "providers.openai.api_key", "channels.telegram.token", "a.client_secret", "a.PASSWORD",
            "mcp.servers.x.env.ANYTHING", "providers.openai.headers.X-Whatever", "a.Authorization",
        ],
    )  # fmt: skip
    def test_some_are_secret_by_their_name(self, name):
        assert is_secret(name)
        assert masked("hunter2", name) == "***"

    @pytest.mark.parametrize("name", ["model", "options.max_tokens", "limits.tokens", "a.api_key_env"])
    def test_others_are_not(self, name):
        assert not is_secret(name)

    def test_a_reference_says_no_secret_and_is_shown(self):
        assert masked({"api_key": "${KEY}", "token": "x${KEY}"}) == {
            "api_key": "${KEY}",
            "token": "***",
        }

    def test_a_password_in_an_address_is_hidden(self):
        assert masked({"dsn": "postgres://ada:hunter2@db/x"}) == {"dsn": "postgres://ada:***@db/x"}

    def test_what_a_plugin_declares_secret_is_hidden_whatever_its_name(self, write, load):
        write(
            "user",
            '[mail.server]\nhost = "h"\nlogin = "hunter2"\n[mail.servers.a]\nlogin = "hunter2"\n',
        )
        config = load()
        config.declare("mail", Mail)
        assert config.shown() == {
            "mail.server.host": "h",
            "mail.server.login": "***",
            "mail.servers.a.login": "***",
        }

    def test_neither_the_settings_nor_what_is_wrong_with_them_say_a_secret(self, write, load):
        write("user", '[limits]\nsteps = "hunter2"\n[providers.openai]\napi_key = ["hunter2"]\n')
        config = load(HOOKLINE_CHANNELS__X__TOKEN="hunter2")
        with pytest.raises(ConfigError) as told:
            config.settings("limits", LimitsSettings)
        assert "hunter2" not in str(told.value)
        assert "hunter2" not in "\n".join(config.problems())
        assert "hunter2" not in repr(config)
        shown = config.shown()
        assert (shown["providers.openai.api_key"], shown["channels.x.token"]) == ("***", "***")


def test_reading_no_configuration_loads_neither_pydantic_nor_a_toml_reader(tmp_path):
    program = (
        "import sys; from pathlib import Path; from hookline.config import Config; "
        f"Config.load(Path({str(tmp_path)!r}), workspace=Path({str(tmp_path)!r}), environ={{}}); "
        "print(sorted({'pydantic', 'tomllib', 'tomlkit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
