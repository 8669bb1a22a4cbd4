"""What holds for all tests."""

import pytest
from hypothesis import HealthCheck, settings

# Timings never decide a test: the machine may be busy, and a first call loads what it needs.
settings.register_profile("hookline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hookline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with tests that are slow go first: one that starts last would keep a worker alone."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
