"""A command that reads a whole folder is judged by the files in it, and holds nobody up."""

import asyncio
import threading

import pytest

from hookline.hooks import Decision
from hookline.policy import Policy, strictest
from hookline.policy import targets as places

from .test_shell_spellings import action

NO_ENV = Policy.load({"default": "allow", "floor": {"deny": {"paths": [".env"]}}})


@pytest.mark.parametrize("files", [3, 700])
async def test_a_secret_in_a_folder_is_found_however_many_files_there_are(tmp_path, files):
    for number in range(files):
        (tmp_path / f"f{number}").touch()
    assert strictest(await NO_ENV.explain(action("grep -r x .", tmp_path))) is Decision.ALLOW
    (tmp_path / ".env").touch()
    assert strictest(await NO_ENV.explain(action("grep -r x .", tmp_path))) is Decision.DENY


async def test_a_large_folder_is_looked_at_in_another_thread(tmp_path, monkeypatch):
    for number in range(700):
        (tmp_path / f"f{number}").touch()
    walked: dict[int, bool] = {}
    real = places.files_below

    def files_below(folders, most):
        walked[most] = threading.current_thread() is threading.main_thread()
        return real(folders, most)

    monkeypatch.setattr(places, "files_below", files_below)
    await asyncio.wait_for(NO_ENV.judge(action("grep -r x .", tmp_path)), 60)
    assert walked == {places.FEW_BELOW: True, places.MOST_BELOW: False}


async def test_a_folder_with_too_many_files_is_opaque(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "MOST_BELOW", 50)
    monkeypatch.setattr(places, "FEW_BELOW", 10)
    for number in range(60):
        (tmp_path / f"f{number}").touch()
    assert strictest(await NO_ENV.explain(action("grep -r x .", tmp_path))) is Decision.DENY
