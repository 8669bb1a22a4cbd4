"""Fixtures for tests of plugins: installed packages, and an app that loads them."""

import pytest

from hookline.runtime.app import Hookline

from .site import Site


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Installed packages, on the path of this process."""
    made = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(made.folder)
    return made


@pytest.fixture
def fresh(tmp_path):
    """An app with nothing loaded yet."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Hookline(home=tmp_path / "home", workspace=workspace)


@pytest.fixture
def loaded(fresh):
    """Load everything, and give the app."""

    def load():
        fresh.load_hooks()
        return fresh

    return load
