import pytest

from hookline.hooks import HookRegistry

from .sample import shop


@pytest.fixture
def hooks() -> HookRegistry:
    return shop()
