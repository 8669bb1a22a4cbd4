"""`hookline onboard`: in a real pseudo-terminal, and without one."""

import tomllib

import pexpect
import pytest

from .. import forks
from ..cli.test_chat import Child
from ..commandline import environment

PLUGGED = """
import sys
from hookline.runtime.app import Hookline

app = Hookline()
app.load_hooks(packages=False)
{}
from hookline.hooks import HooklineError
try:
    app.create_cli_app()(sys.argv[1:])
except HooklineError as error:
    print(f"hookline: {{error}}", file=sys.stderr)
    sys.exit(2)
"""

MAIL = """
from hookline.hooks import hookimpl

class Mail:
    @hookimpl
    def onboard_config(self, current_config):
        assert current_config["model"].startswith("scripted:")
        return {"mail": {"host": "localhost", "port": 25}}

app.hooks.add(Mail(), name="mail")
"""

# The whole question, up to where the answer goes: what is typed before a key is asked for is dropped.
MODEL = r"Model \[.*\]: "
URL = r"Base URL \(.*\).*: "
KEY = r"API key, not shown \(.*\): "
LEVEL = r"Thinking: .*\(.*\).*: "
GATES = r"Deny a call if a hook that judges it fails\? \[Y/n\]: "
DENY = {"on_gate_error": "deny"}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "home" / "config.toml"


@pytest.fixture
def spawn(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    children = []

    def spawn(*arguments, plugin=None):
        child = Child(
            forks.MAIN if plugin is None else PLUGGED.format(plugin), "onboard", *arguments,
            cwd=workspace, env=environment(tmp_path / "home", TERM="dumb"), dimensions=(24, 80),
        )  # fmt: skip
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.close(force=True)


def ended(child):
    child.expect(pexpect.EOF)
    said = child.before
    child.close()
    return said, child.exitstatus


class TestInATerminal:
    def test_it_asks_tests_and_writes(self, spawn, file, answering):
        child = spawn()
        child.expect("Ready:")
        child.expect("local ")
        child.expect("After you set them up:")
        child.expect("openai +openai needs a key: set OPENAI_API_KEY")
        child.expect(r"Model \[local\]: ")
        child.sendline(answering)
        child.expect("Thinking: off, low, medium, high .*: ")
        child.sendline("low")
        child.expect(GATES)
        child.sendline("n")
        said, code = ended(child)
        assert code == 0, said
        assert f"ok {answering} answers: 'ok'" in said.replace("\r\n", "")
        assert tomllib.loads(file.read_text()) == {
            "model": answering, "thinking": "low", "hooks": {"on_gate_error": "allow"},
        }  # fmt: skip

    def test_a_key_is_hidden_and_an_answer_that_means_nothing_is_asked_again(self, spawn, file):
        child = spawn("--no-test")
        child.expect(MODEL)
        child.sendline("opnai:gpt")
        child.expect(URL)
        child.sendline("")
        child.expect(KEY)
        child.sendline("")
        child.expect(LEVEL)
        child.sendline("")
        child.expect(GATES)
        child.sendline("")
        child.expect("unknown model 'opnai:gpt'; did you mean 'openai:gpt'")
        child.expect(MODEL)
        child.sendline("openai:gpt")
        child.expect(URL)
        child.sendline("http://127.0.0.1:9/v1")
        child.expect(KEY)
        child.sendline("hunter2")
        child.expect(LEVEL)
        said = child.before
        child.sendline("")
        child.expect(GATES)
        child.sendline("")
        rest, code = ended(child)
        assert code == 0
        assert "hunter2" not in said + rest
        assert tomllib.loads(file.read_text()) == {
            "model": "openai:gpt",
            "providers": {"openai": {"base_url": "http://127.0.0.1:9/v1", "api_key": "hunter2"}},
            "hooks": DENY,
        }

    def test_a_model_that_does_not_answer_is_told_and_the_person_decides(self, spawn, file):
        child = spawn("--model", "openai-compatible:http://127.0.0.1:9/v1#m")
        for question in (MODEL, URL, KEY, LEVEL, GATES):
            child.expect(question)
            child.sendline("")
        child.expect("does not answer: ")
        child.expect(r"Write the settings all the same\? \[Y/n\]: ")
        child.sendline("n")
        said, code = ended(child)
        assert code == 130
        assert "nothing was written" in said
        assert not file.exists()

    @pytest.mark.parametrize("key", ["\x03", "\x04"])
    def test_interrupted_nothing_is_written(self, spawn, file, answering, key):
        child = spawn()
        child.expect(MODEL)
        child.sendline(answering)
        child.expect(LEVEL)
        child.send(key)
        said, code = ended(child)
        assert code == 130
        assert "nothing was written" in said
        assert not file.exists()

    def test_what_is_there_is_offered_and_its_comments_stay(self, spawn, write, file, answering):
        rest = '[hooks]\non_gate_error = "allow"  # for now\n'
        write("user", f'# mine\nmodel = "{answering}"  # scripted\nthinking = "high"\n{rest}')
        child = spawn()
        child.expect(r"Model \[scripted:")
        child.sendline("")
        child.expect(r"Thinking.*\[high\]: ")
        child.sendline("low")
        assert ended(child)[1] == 0
        said = file.read_text()
        assert said == f'# mine\nmodel = "{answering}"  # scripted\nthinking = "low"\n{rest}'

    def test_what_a_plugin_contributes_is_written(self, spawn, file, answering):
        child = spawn(plugin=MAIL)
        child.expect(MODEL)
        child.sendline(answering)
        child.expect(LEVEL)
        child.sendline("")
        child.expect(GATES)
        child.sendline("")
        assert ended(child)[1] == 0
        assert tomllib.loads(file.read_text())["mail"] == {"host": "localhost", "port": 25}


class TestWithoutATerminal:
    def test_it_says_what_to_do_instead_of_asking(self, hookline, file):
        done = hookline("onboard", stdin="local\n")
        assert (done.returncode, done.stdout) == (2, "")
        assert "standard input is no terminal: say --yes, with --model" in done.stderr
        assert not file.exists()

    def test_with_options_it_asks_nothing(self, hookline, file, answering):
        done = hookline("onboard", "--yes", "--model", answering, "--thinking", "off")
        assert done.returncode == 0, done.stderr
        assert f"ok {answering} answers: 'ok'" in done.stdout
        assert tomllib.loads(file.read_text()) == {
            "model": answering, "thinking": "off", "hooks": DENY,
        }  # fmt: skip

    def test_a_key_stays_in_the_environment(self, hookline, file):
        done = hookline(
            "onboard", "-y", "--model", "groq:m", "--key-env", "MY_KEY", "--no-test", MY_KEY="k"
        )
        assert done.returncode == 0, done.stderr
        assert tomllib.loads(file.read_text())["providers"] == {"groq": {"api_key": "${MY_KEY}"}}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--model", "opnai:x"], "unknown model 'opnai:x'; did you mean 'openai:x'"),
            (["--model", "openai"], "name a model: openai:MODEL"),
            (["--thinking", "hihg"], "thinking must be one of off, low, medium, high"),
            (["--model", "openai:x", "--base-url", "nowhere"], "the base URL of openai is invalid"),
            (["--model", "groq:x", "--key-env", "NOT_THERE"], "NOT_THERE is not set"),
        ],
    )
    def test_bad_options_are_one_message_and_nothing_is_written(self, hookline, file, options, message):
        done = hookline("onboard", "--yes", "--no-test", *options)
        assert done.returncode == 2, done.stdout
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert not file.exists()

    def test_a_model_that_does_not_answer_is_exit_code_1_and_the_settings_are_kept(
        self, hookline, file
    ):
        url = "openai-compatible:http://127.0.0.1:9/v1#m"
        done = hookline("onboard", "--yes", "--model", url)
        assert done.returncode == 1
        assert f"!! {url} does not answer: " in done.stderr
        assert tomllib.loads(file.read_text()) == {"model": url, "hooks": DENY}

    @pytest.mark.parametrize(
        ("given", "message"),
        [("['not a dict']", "mail"), ("{'top': 1}", "a plugin proposes 'top', which is no setting")],
    )
    def test_a_plugins_bad_fragment_is_told_and_nothing_is_written(
        self, tmp_path, spawn, file, answering, given, message
    ):
        plugin = (
            "from hookline.hooks import hookimpl\n"
            "class Mail:\n    @hookimpl\n"
            f"    def onboard_config(self, current_config):\n        return {given}\n"
            "app.hooks.add(Mail(), name='mail')"
        )
        said, code = ended(spawn("--yes", "--model", answering, plugin=plugin))
        assert code == 2, said
        assert message in said
        assert not file.exists()

    def test_under_a_profile_its_file_is_written(self, hookline, tmp_path, answering):
        hookline("config", "set", "--profile", "work", "thinking", "low")
        done = hookline("--profile", "work", "onboard", "--yes", "--model", answering)
        assert done.returncode == 0, done.stderr
        told = tomllib.loads((tmp_path / "home/profiles/work/config.toml").read_text())
        assert told == {"model": answering, "thinking": "low", "hooks": DENY}
