"""Servers on this machine are asked whether they answer; unknown models get the name that works."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hookline.models import Models, UnknownModel

from ..commandline import here


@pytest.fixture
def hookline(tmp_path, monkeypatch, capsys):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return here(tmp_path / "home", workspace, monkeypatch, capsys)


@pytest.fixture
def server():
    """A server that has two models, unless `status` says that it refuses."""

    class Answers(BaseHTTPRequestHandler):
        status = 200
        asked: list[str] = []

        def do_GET(self):
            self.asked.append(self.path)
            body = json.dumps({"data": [{"id": "llama3.2:latest"}, {"id": "qwen3:8b"}]}).encode()
            self.send_response(self.status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield Answers, f"http://127.0.0.1:{made.server_port}/v1"
    made.shutdown()
    thread.join()
    made.server_close()


def of(provider, printed):
    lines = printed.splitlines()
    at = next(n for n, line in enumerate(lines) if line.split()[1] == provider)
    return "\n".join(lines[at : at + 2])


@pytest.mark.parametrize("provider", ["ollama", "vllm", "llamacpp", "lmstudio", "openai-compatible"])
def test_a_server_that_answers_is_ok_and_one_that_does_not_is_not(hookline, server, provider):
    answers, url = server
    there = hookline("--set", f"providers.{provider}.base_url={url}", "models").stdout
    assert of(provider, there).startswith(f"ok  {provider}")
    assert "/v1/models" in answers.asked
    gone = hookline("--set", f"providers.{provider}.base_url=http://127.0.0.1:9/v1", "models").stdout
    assert of(provider, gone).startswith(f"--  {provider}")
    assert "nothing answers at http://127.0.0.1:9/v1" in of(provider, gone)
    assert f"set base_url in the settings of {provider}" in of(provider, gone)


@pytest.mark.parametrize(
    ("model", "status", "said"),
    [
        ("llama3.2", 200, ""),
        ("qwen3:8b", 200, ""),
        ("mistral", 200, "it has no model 'mistral'; it has llama3.2:latest, qwen3:8b"),
        ("llama3.2", 401, "refuses the key: set api_key in the settings of ollama"),
        ("llama3.2", 404, ""),
    ],
)
def test_doctor_asks_for_the_model_that_is_chosen(hookline, server, model, status, said):
    answers, url = server
    answers.status = status
    done = hookline(
        "--set", f"providers.ollama.base_url={url}", "--set", f"model=ollama:{model}", "doctor"
    )
    (line,) = [line for line in done.stdout.splitlines() if " ollama: " in line]
    assert line.endswith("(default)")
    assert line.startswith("!!" if said else "ok")
    assert said in line
    assert done.returncode == (1 if said else 0)


@pytest.mark.parametrize(
    ("written", "works"),
    [
        ("gpt-5", "openai:gpt-5"),
        ("o3-mini", "openai:o3-mini"),
        ("openai/gpt-5", "openai:gpt-5"),
        ("OpenAI:gpt-5", "openai:gpt-5"),
        ("antropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("gemini:gemini-3-pro", "google:gemini-3-pro"),
        ("google/gemini-3-pro", "google:gemini-3-pro"),
        ("googel:gemini-3-pro", "google:gemini-3-pro"),
        ("openai-response:gpt-5", "openai-responses:gpt-5"),
        ("mistral-large", "any:mistral/mistral-large"),
        ("deepseek-chat", "deepseek:deepseek-chat"),
        ("qwen3:8b", "ollama:qwen3:8b"),
        ("gpt-oss:20b", "ollama:gpt-oss:20b"),
        ("turns.toml", "scripted:turns.toml"),
        ("opnai:gpt-5", "openai:gpt-5"),
    ],
)
def test_an_unknown_model_is_told_with_the_name_that_works(hookline, written, works):
    with pytest.raises(UnknownModel, match=f"unknown model '{written}'; did you mean '{works}'"):
        Models().get(written)
    done = hookline("run", "hi", "--model", written)
    assert (done.returncode, f"did you mean '{works}'" in done.stderr) == (2, True)


def test_a_name_is_only_suggested_with_a_provider_that_is_there():
    with pytest.raises(UnknownModel) as caught:
        Models(builtin=False).get("gpt-5")
    assert "did you mean" not in str(caught.value)
