"""Cron triggers: one turn for each moment, whatever clocks and processes do."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookline.config import ConfigError
from hookline.ext.triggers import Triggers
from hookline.testing import VirtualClock

from .. import forks
from .conftest import said

HOUR = 3600.0
NOON = datetime(2026, 6, 15, 12, 0, tzinfo=UTC).timestamp()

HOURLY = """
[triggers.hourly]
type = "cron"
schedule = "0 * * * *"
message = "It is {time}."
"""


@pytest.fixture
def clock():
    return VirtualClock(NOON - 60)


@pytest.fixture
def model(scripted):
    return scripted("ok", repeat=True)


@pytest.fixture
def hourly(settings):
    settings(HOURLY)


@pytest.mark.usefixtures("hourly")
async def test_each_moment_makes_a_turn_in_the_triggers_session(app, model, clock, serving):
    async with serving(clock=clock) as triggers:
        await clock.asleep()
        assert said(model) == []
        for _ in range(2):
            await clock.advance(HOUR)
        await triggers.drained()
        sessions = [info.id for info in await app.store().sessions()]
    assert said(model) == ["It is 2026-06-15T12:00:00+00:00.", "It is 2026-06-15T13:00:00+00:00."]
    assert sessions == ["trigger:hourly"]


@pytest.mark.usefixtures("hourly")
async def test_what_was_missed_while_nothing_ran_is_one_turn(model, clock, serving):
    async with serving(clock=clock):
        await clock.asleep()
    clock = VirtualClock(NOON + 5 * HOUR + 1800)
    async with serving(clock=clock) as triggers:
        await clock.asleep()
        await triggers.drained()
        assert said(model) == ["It is 2026-06-15T17:00:00+00:00."]
        await clock.advance(1800)
        await triggers.drained()
    assert said(model)[1:] == ["It is 2026-06-15T18:00:00+00:00."]


async def test_what_was_missed_may_be_skipped(settings, model, clock, serving):
    settings(HOURLY + 'missed = "skip"\n')
    async with serving(clock=clock):
        await clock.asleep()
    clock = VirtualClock(NOON + 5 * HOUR + 1800)
    async with serving(clock=clock) as triggers:
        await clock.asleep()
        assert said(model) == []
        await clock.advance(1800)
        await triggers.drained()
    assert said(model) == ["It is 2026-06-15T18:00:00+00:00."]


@pytest.mark.usefixtures("hourly")
async def test_before_its_first_start_a_trigger_has_missed_nothing(model, serving):
    clock = VirtualClock(NOON + 5)
    async with serving(clock=clock) as triggers:
        await clock.asleep()
        await triggers.drained()
    assert said(model) == []


@pytest.mark.usefixtures("hourly")
async def test_a_clock_that_jumps_forward_makes_one_turn(model, clock, serving):
    async with serving(clock=clock) as triggers:
        await clock.asleep()
        await clock.jump(NOON + 3 * HOUR + 30)
        await triggers.drained()
    assert said(model) == ["It is 2026-06-15T15:00:00+00:00."]


@pytest.mark.parametrize("back", [0.5 * HOUR, 2 * HOUR, 30 * HOUR])
@pytest.mark.usefixtures("hourly")
async def test_a_clock_that_goes_back_makes_no_moment_twice(model, clock, serving, back):
    async with serving(clock=clock) as triggers:
        await clock.asleep()
        for hour in range(3):
            await clock.jump(NOON + hour * HOUR)
        await triggers.drained()
        await clock.jump(clock.now() - back)
        while clock.now() < NOON + 3 * HOUR:
            await clock.advance(600)
        await triggers.drained()
    heard = said(model)
    assert len(heard) == len(set(heard))
    assert {f"It is 2026-06-15T{hour}:00:00+00:00." for hour in (12, 13, 14, 15)} <= set(heard)


@pytest.mark.usefixtures("hourly")
async def test_a_clock_that_was_years_ahead_does_not_silence_the_trigger(model, clock, serving):
    async with serving(clock=clock) as triggers:
        await clock.asleep()
        await clock.jump(NOON + 20 * 365 * 24 * HOUR)
        await clock.jump(NOON - 60)
        await clock.advance(60)
        await triggers.drained()
    assert said(model)[1:] == ["It is 2026-06-15T12:00:00+00:00."]


async def test_a_day_on_which_the_clocks_change_has_one_turn(settings, model, serving):
    settings(
        '[triggers.early]\ntype = "cron"\nschedule = "30 2 * * *"\n'
        'timezone = "Europe/Berlin"\nmessage = "{time}"\n'
    )
    clock = VirtualClock(datetime(2026, 10, 24, 12, tzinfo=UTC).timestamp())
    async with serving(clock=clock) as triggers:
        await clock.asleep()
        for _ in range(4 * 36):
            await clock.advance(900)
        await triggers.drained()
    assert said(model) == ["2026-10-25T02:30:00+02:00"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ('schedule = "61 * * * *"', "[triggers.bad] schedule '61 * * * *' cannot be read: bad minute"),
        ('schedule = "0 0 * * *"\ntimezone = "Mars/Base"', "[triggers.bad] timezone 'Mars/Base'"),
        ('schedule = "0 0 * * *"\nmessage = "{dat}"', "[triggers.bad] the payload has no field 'dat'"),
        ('schedule = "0 0 * * *"\nmissed = "twice"', "triggers.bad.missed: must be 'once' or 'skip'"),
        ('shedule = "0 0 * * *"', "unknown key 'shedule'; did you mean 'schedule'?"),
        ("", "triggers.bad.schedule: "),
    ],
)
def test_a_wrong_section_is_refused_by_name(app, settings, wrong, says):
    settings(f'[triggers.bad]\ntype = "cron"\n{wrong}\n')
    with pytest.raises(ConfigError) as refused:
        Triggers(app)
    assert says in str(refused.value)
    assert not (app.home / "triggers.db").exists()


def racing(home: Path) -> forks.Forked:
    """A process that is ready for twenty moments."""
    return forks.start(
        Path(__file__).with_name("racing.py").read_text(), home, NOON - 60,
        imports=["hookline.testing", "hookline.ext.triggers", "croniter"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.usefixtures("hourly")
def test_of_two_processes_one_fires_a_moment(tmp_path):
    home = tmp_path / "home"
    processes = [racing(home) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all wake at once: twenty moments, one after the other
        process.stdin.write("go\n")
        process.stdin.flush()
    fired = [line for p in processes for line in p.communicate()[0].splitlines()]
    assert [p.returncode for p in processes] == [0, 0, 0]
    assert sorted(fired) == sorted(set(fired))
    assert len(fired) == 20
