import pytest

from hookline.hooks import Hooks

from .sample import shop


@pytest.fixture
def hooks() -> Hooks:
    return shop()
