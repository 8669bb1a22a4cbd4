"""What a release says of itself is the same everywhere."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_names_the_version_of_the_project():
    (version,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert version == PROJECT["version"]


def test_the_readme_and_the_workflow_name_the_supported_pythons():
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    readme = (ROOT / "README.md").read_text()
    assert f"Python {', '.join(named[:-1])} and {named[-1]} are tested" in readme
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert sorted(re.findall(r"^ +(3\.\d+)$", workflow, re.M)) == named
