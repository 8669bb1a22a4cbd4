"""The pages that show programs of several frameworks; `./scripts/test-bridges` runs the programs."""

from . import side_by_side
from .side_by_side import COMPARED, NAMES, PORTED, PROGRAMS, ROOT, code_lines, source


def test_our_programs_run_against_the_endpoint_that_plays_the_model():
    assert side_by_side.main("hookline") == ""


def test_the_pages_show_the_programs_and_count_their_lines():
    remedy = "run `python -m tests.bridges.side_by_side --write`"
    assert COMPARED.read_text() == side_by_side.comparison(), remedy
    assert PORTED.read_text() == side_by_side.port(), remedy


def test_ours_is_the_shortest():
    lines = {name: code_lines(source(f"with_{name}")) for name in NAMES}
    assert min(lines, key=lines.__getitem__) == "hookline"
    assert code_lines(source("ported_to_hookline")) < code_lines(source("ported_from_pydantic_ai"))


def test_every_program_of_another_framework_is_run_in_its_environment():
    hosts = {
        path.stem.removesuffix("_host") for path in (ROOT / "tests/bridges/hosts").glob("*_host.py")
    }
    named = {path.stem.removeprefix("with_") for path in PROGRAMS.glob("with_*.py")}
    assert named == {*NAMES}
    assert named - {"hookline"} <= hosts
    assert "tests.bridges.side_by_side" in (ROOT / "scripts" / "test-bridges").read_text()


def test_the_endpoint_does_not_answer_a_program_without_its_guard(tmp_path):
    text = source("with_hookline")
    lax = tmp_path / "lax.py"
    lax.write_text(text.replace('!= "Rome"', '== "nowhere"'))
    assert "the guard did not refuse Paris" in side_by_side.faults(
        lax, side_by_side.forecaster, "Rome 21\n"
    )
    untyped = tmp_path / "untyped.py"
    untyped.write_text(text.replace(", output=Forecast", ""))
    assert "no typed answer" in side_by_side.faults(untyped, side_by_side.forecaster, "Rome 21\n")
