"""One retry policy for everything that is tried again, and the `retry` tables that change it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

import hookline
from hookline.config.project import admitted
from hookline.config.schema import LimitsSettings, RetrySettings
from hookline.ext.mcp.settings import ServerSettings
from hookline.ext.telegram.settings import TelegramSettings
from hookline.ext.triggers.queue import QueueSettings
from hookline.runtime.app import Hookline
from hookline.serve.settings import WorkerSettings
from hookline.system.retry import RetryPolicy
from hookline.tape.settings import TapeSettings

FORMS = {
    LimitsSettings: {},
    ServerSettings: {"command": "server"},
    TapeSettings: {},
    TelegramSettings: {"token": "1:a"},
    QueueSettings: {"type": "queue"},
    WorkerSettings: {},
}


def test_delays_grow_by_the_factor_up_to_the_limit() -> None:
    policy = RetryPolicy(first=1, factor=3, max=20, jitter=0)
    assert [policy.delay(failures) for failures in range(6)] == [0, 1, 3, 9, 20, 20]
    assert policy.delay(10**9) == 20


def test_jitter_shortens_a_delay_by_a_random_part() -> None:
    delays = {RetryPolicy(first=8, jitter=0.25).delay(1) for _ in range(100)}
    assert len(delays) > 1
    assert all(6 <= delay <= 8 for delay in delays)


def test_attempts_are_counted_if_there_is_a_limit() -> None:
    assert [RetryPolicy(attempts=2).gives_up(failures) for failures in range(4)] == [
        False,
        False,
        True,
        True,
    ]
    assert not RetryPolicy().gives_up(10**9)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_retry_table_changes_single_values_of_the_sections_policy(form: type[RetrySettings]) -> None:
    default = form(**FORMS[form]).retry
    changed = form(**FORMS[form], retry={"max": 7, "jitter": 0.125}).retry
    assert changed == default.changed({"max": 7, "jitter": 0.125})
    assert (changed.attempts, changed.first) == (default.attempts, default.first)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"attempt": 3}, "unknown key 'attempt'"),
        ({"attempts": 0}, "attempts must be a whole number from 1 on"),
        ({"attempts": True}, "attempts must be a whole number"),
        ({"first": -1}, "first must be a number from 0 to 86400"),
        ({"first": "1"}, "first must be a number"),
        ({"factor": 0.5}, "factor must be a number from 1"),
        ({"max": float("nan")}, "max must be a number"),
        ({"max": float("inf")}, "max must be a number"),
        ({"jitter": 2}, "jitter must be a number from 0 to 1"),
        (3, "RetryPolicy"),
    ],
)
def test_a_wrong_retry_table_is_refused_with_its_key(
    form: type[RetrySettings], table: object, problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem) as raised:
        form(**FORMS[form], retry=table)
    assert raised.value.errors()[0]["loc"][0] == "retry"


def test_settings_change_how_model_calls_are_retried(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[limits.retry]\nattempts = 2\nfirst = 0.25\n")
    limits = Hookline(home=tmp_path, workspace=tmp_path).limits
    assert limits.retry == RetryPolicy(attempts=2, first=0.25)


@pytest.mark.parametrize(
    ("own", "written", "counts"),
    [
        ({}, {"attempts": 2}, True),
        ({}, {"attempts": 5}, False),
        ({"attempts": 2}, {"attempts": 3}, False),
        ({"attempts": 9}, {"attempts": 8}, True),
        ({}, {"first": 0.0}, False),
        ({}, {"max": 1.0}, False),
    ],
)
def test_an_untrusted_project_can_only_lower_the_attempts(
    own: dict[str, float], written: dict[str, float], counts: bool
) -> None:
    found, ignored = admitted({"limits": {"retry": written}}, {"limits": {"retry": own}})
    assert bool(found) == counts
    assert bool(ignored) != counts


def test_no_other_code_computes_a_backoff() -> None:
    source = Path(hookline.__file__).parent
    by_hand = re.compile(
        r"min\(\s*2 \* |\bpause = min|random\.uniform|2 \*\* \(?\w*(tries|attempt|fail)"
    )
    found = [path.name for path in source.rglob("*.py") if by_hand.search(path.read_text())]
    assert found == ["retry.py"]
