"""The programs in `examples/` run and print what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

PRINTS = {
    "redactor.py": """\
kept:   write to [e-mail]
broken: [withheld: Redactor failed: AttributeError: 'NoneType' object has no attribute 'sub']
""",
    "watch.py": """\
tool_call in session-1
    __main__.stay_here rewrote (input)
    __main__.working_hours asked
ASK {'path': './etc/hosts'} write wants to run
""",
    "own_catalogue.py": """\
ALLOW 9.0
DENY empty basket
10 % off for three or more
tea, milk, sugar
""",
    "guard.py": "",  # a plugin; tests/bridges runs it in every host
    "notes.py": """\
kept
["Zoë likes green tea"]
delete on the store 'notes' needs 'db.notes:write', which the tool 'tidy' was not granted; list it in \
the tool's permissions
""",
}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_the_example_prints_what_it_promises(name):
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, check=True)
    assert done.stdout == PRINTS[name]
