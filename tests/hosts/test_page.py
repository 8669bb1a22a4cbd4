"""The page about other agents says what was recorded."""

from .page import PAGE, rendered


def test_the_page_has_the_recorded_results():
    assert PAGE.read_text() == rendered(), "run `python tests/hosts/page.py`"
