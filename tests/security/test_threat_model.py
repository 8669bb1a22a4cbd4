"""The threat model names a test for every boundary, and each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from ..tables import each_row

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "threat-model.md").read_text()
BOUNDARIES = TEXT.partition("## Boundaries")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in BOUNDARIES.splitlines()
    if line.startswith("|")
][2:]


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text())
    return {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_there_are_boundaries():
    assert len(ROWS) >= 30


@each_row("row", ROWS, ids=lambda row: row[0])
def test_every_boundary_names_a_test_that_exists(row):
    boundary, holds, test = row
    assert boundary
    assert holds
    for each in test.split("<br>"):
        found = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", each)
        assert found, f"{boundary}: {each} names no test"
        assert (ROOT / found[1]).is_file(), found[1]
        assert found[2] in names_in(found[1]), f"{found[1]} has no {found[2]}"


PAGES = ["SECURITY.md", "docs/threat-model.md", "docs/operators.md"]


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_security_pages_lead_somewhere(page):
    place = (ROOT / page).parent
    for target in re.findall(r"\]\((?!https?:)([^)#]*)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        assert not target or (place / target).exists(), f"{page} links to {target}"
