"""The programs of the page `Start here` print what stands below them."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from .. import forks
from ..openai_server import OpenAIServer

PAGE = (Path(__file__).parents[2] / "docs" / "start.md").read_text()
SHOWN = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.S)
WEATHER = ("weather", {"city": "Rome"})
PLAYED = {
    "no_sudo": [WEATHER, "It is sunny in Rome."],
    "capital of France": ["Paris."],
    "two sentences": ["Rain falls softly. The garden drinks it.", "Rain falls."],
    "days ahead": [WEATHER, "It is sunny in Rome."],
    "researcher": [
        ("researcher", {"prompt": "Why is the sky blue?"}),
        "Rayleigh scattering; Lord Rayleigh, 1871.",
        "Air scatters blue light the most, so the sky looks blue.",
    ],
    "only_reading": [
        ("shell", {"command": "find . -type f | wc -l"}),
        ("shell", {"command": "ls"}),
        "There are two files.",
    ],
    "Invoice": ['{"number": "17", "total": 12.5, "paid": false}'],
}
"""What the model says in each program, by a word of it."""
TARGET = """
agent = Agent("openai:gpt-5", instructions="Be brief.", tools=[weather])

@agent.on.tool_call(when="shell")
def no_sudo(event):
    if "sudo" in event.input["command"]:
        return event.deny("not as root")

print(agent.run_sync("What is the weather in Rome?").text)
"""


def test_every_program_is_shown_with_its_output():
    assert len(SHOWN) == PAGE.count("```python") == len(PLAYED) + 1


def test_the_first_program_is_as_short_as_it_can_be():
    assert SHOWN[0][0].startswith("from hookline import Agent\n")
    assert SHOWN[0][0].endswith(TARGET)


@pytest.mark.parametrize("word", PLAYED)
def test_a_program_prints_what_stands_below_it(word, tmp_path):
    [(source, printed)] = [each for each in SHOWN if word in each[0]]
    (tmp_path / "one").touch()
    (tmp_path / "two").touch()
    with OpenAIServer(PLAYED[word]) as server:
        done = forks.run(source, env=server.environment, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")
    assert len(server.requests) == len(PLAYED[word])


def test_the_service_prints_its_address(tmp_path):
    [(source, printed)] = [each for each in SHOWN if "agent.serve(" in each[0]]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    env = {"OPENAI_API_KEY": "test", "HOOKLINE_HOME": str(tmp_path / "home")}
    program = source.replace("port=8765", "port=0")
    with forks.start(program, stdin=nothing, stdout=nothing, stderr=pipe, env=env) as process:
        line = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    shown = re.escape(printed).replace("8765", r"\d+").replace("…", r"\S+")
    assert re.fullmatch(shown, line)
