"""`[compaction]` reaches the agent."""

import pytest

from hookline.config import ConfigError


def test_the_settings_are_taken(app):
    app.home.mkdir(parents=True)
    (app.home / "config.toml").write_text("[compaction]\nwindow = 1000\nkeep = 10\n")
    assert (app.limits.compacting.window, app.limits.compacting.keep) == (1000, 10)
    assert app.limits.compacting.enabled


def test_a_wrong_one_is_named(app):
    app.home.mkdir(parents=True)
    (app.home / "config.toml").write_text("[compaction]\nkeeps = 10\n")
    with pytest.raises(ConfigError, match=r"compaction\.keeps.*did you mean 'keep'"):
        _ = app.limits
