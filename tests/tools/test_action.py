"""The copy of a call's arguments that gates and policies get."""

from datetime import date

from hookline.tools.action import copied


def test_a_copy_shares_nothing_that_can_be_changed():
    given = {"path": "a", "parts": [1, {"deep": [None, True, 0.5]}], "days": {date(2026, 1, 31)}}
    copy = copied(given)
    assert copy == given
    copy["parts"][1]["deep"].append("more")
    copy["days"].clear()
    assert given == {
        "path": "a", "parts": [1, {"deep": [None, True, 0.5]}], "days": {date(2026, 1, 31)},
    }  # fmt: skip


def test_arguments_that_contain_themselves_are_copied_as_well():
    given = {"word": "x"}
    given["self"] = given
    copy = copied(given)
    assert copy["self"]["self"]["word"] == "x"
    assert copy["self"] is not given
