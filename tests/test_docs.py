"""Every Python example in the documentation runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import forks

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").glob("*.md")) if p.name != "hooks.md")]
EXAMPLES = [
    pytest.param(source, id=f"{page.name}-{number}")
    for page in PAGES
    for number, source in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S), start=1)
]


@pytest.mark.parametrize("source", EXAMPLES)
def test_the_example_runs(source):
    done = forks.run(source)
    assert done.returncode == 0, done.stderr


def test_the_readme_example_prints_the_verdict():
    source = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[0]
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "DENY not as root __main__.no_sudo\n"


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
