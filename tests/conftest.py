"""What holds for all tests."""

import gc
import sys
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from .proxy import Proxy

# Timings never decide a test: the machine may be busy, and a first call loads what it needs.
settings.register_profile("hookline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hookline")


def pytest_sessionstart() -> None:
    """Of what is imported and collected nothing becomes garbage: to look for it takes a second."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on there is garbage, and only among what is new. A test makes much of it."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with tests that are slow go first: one that starts last would keep a worker alone."""
    moving = [item.nodeid for item in items if " at 0x" in item.nodeid]
    assert not moving, f"the names of these tests differ between processes: {moving[:3]}"
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def _no_declared_tool_stays() -> Iterator[None]:
    """What a test declares with `@tool` is forgotten after it, as if its process had ended."""
    module = sys.modules.get("hookline.tools.registry")
    if module is None:
        yield
        return
    registry = module.REGISTRY
    declared, own = [*registry.declared], {**registry._own}
    yield
    if registry.declared != declared:
        registry.declared, registry._own, registry._told = declared, own, None


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy in front of PostgreSQL."""
    from . import postgres

    async with Proxy(postgres.socket_path()) as running:
        yield running
        running.forward.set()
        running.backward.set()
