"""Schedules where the clocks change: nothing twice, nothing lost."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest

from hookline.ext.triggers.errors import TriggerError
from hookline.ext.triggers.schedule import Schedule

from ..tables import each_row

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def moments(expression: str, zone: str, start: str, hours: float) -> list[str]:
    """The moments within some hours, as UTC."""
    begin, end = at(start), at(start) + hours * 3600
    found = takewhile(lambda moment: moment <= end, Schedule(expression, zone).after(begin))
    return [datetime.fromtimestamp(m, UTC).strftime("%d %H:%M") for m in found]


# In Berlin 02:00 became 03:00 on 29 March 2026, and 03:00 became 02:00 on 25 October (01:00 UTC); in
# New York 02:00 became 03:00 on 8 March (07:00 UTC), and 02:00 became 01:00 on 1 November (06:00 UTC).
TABLE = [
    # a skipped time runs right after the gap, once, and the days around it are as always
    ("30 2 * * *", BERLIN, "2026-03-28T00:00", 72, ["28 01:30", "29 01:00", "30 00:30"]),
    ("30 2 * * *", NEW_YORK, "2026-03-07T00:00", 72, ["07 07:30", "08 07:00", "09 06:30"]),
    # several skipped times are one moment, also with the first one after the gap
    ("0,30 2,3 * * *", BERLIN, "2026-03-29T00:00", 6, ["29 01:00", "29 01:30"]),
    # a repeated time runs at the first of the two
    ("30 2 * * *", BERLIN, "2026-10-24T00:00", 72, ["24 00:30", "25 00:30", "26 01:30"]),
    ("30 1 * * *", NEW_YORK, "2026-10-31T00:00", 72, ["31 05:30", "01 05:30", "02 06:30"]),
    # what runs every so often keeps to real time
    ("*/30 * * * *", BERLIN, "2026-03-29T00:15", 1.5, ["29 00:30", "29 01:00", "29 01:30"]),
    ("0 * * * *", BERLIN, "2026-10-24T23:30", 3, ["25 00:00", "25 01:00", "25 02:00"]),
    ("15 * * * *", NEW_YORK, "2026-11-01T05:00", 3, ["01 05:15", "01 06:15", "01 07:15"]),
    # a day of 23 or 25 hours has one noon
    ("0 12 * * *", BERLIN, "2026-03-28T00:00", 48, ["28 11:00", "29 10:00"]),
    ("0 12 * * *", NEW_YORK, "2026-10-31T00:00", 48, ["31 16:00", "01 17:00"]),
]


@each_row(("expression", "zone", "start", "hours", "expected"), TABLE)
def test_moments_where_the_clocks_change(expression, zone, start, hours, expected):
    assert moments(expression, zone, start, hours) == expected


@each_row(("expression", "zone", "start", "hours", "expected"), TABLE)
def test_it_does_not_matter_where_one_begins_to_look(expression, zone, start, hours, expected):
    schedule = Schedule(expression, zone)
    whole = list(takewhile(lambda m: m <= at(start) + hours * 3600, schedule.after(at(start))))
    for quarter in range(int(hours * 4)):
        now = at(start) + quarter * 900
        later = [m for m in whole if m > now]
        assert schedule.next(now) == (later[0] if later else schedule.next(whole[-1]))
        assert schedule.latest(at(start), now) == max((m for m in whole if m <= now), default=None)


def test_the_latest_moment_of_a_long_time_is_found_without_counting_them_all():
    minutely, yearly = Schedule("* * * * *"), Schedule("0 0 1 1 *")
    now = at("2026-06-15T12:34:56")
    long_ago = now - timedelta(days=3650).total_seconds()
    assert minutely.latest(long_ago, now) == at("2026-06-15T12:34")
    assert yearly.latest(long_ago, now) == at("2026-01-01T00:00")


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("61 * * * *", "bad minute"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("hourly", "five fields"),
        ("0 0 * * FOO", "bad day-of-week"),
    ],
)
def test_what_is_no_schedule_is_refused(expression, says):
    with pytest.raises(TriggerError, match=says):
        Schedule(expression)


def test_an_unknown_time_zone_is_refused():
    for zone in ("Europe/Berlinn", "../etc/passwd", ""):
        with pytest.raises(TriggerError, match="unknown: write it as in Europe/Berlin"):
            Schedule("0 0 * * *", zone)
