"""The providers that the contracts are tested with. Another one joins here."""

import subprocess
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hookline.ext.stores import Stores
from hookline.specs import StoreSpec

from .. import forks

PROVIDERS: dict[str, dict[str, dict[str, Any]]] = {
    "doc": {"sqlite": {}},
    "memory": {"sqlite": {}},
    "fact": {"sqlite": {}},
    "vector": {"sqlite-vec": {"dimensions": 3}},
    "graph": {"ladybug": {}},
}
EACH = [(protocol, provider) for protocol, them in PROVIDERS.items() for provider in them]

Reopen = Callable[[], Any]


def spec(protocol: str, provider: str, name: str = "s", **config: Any) -> StoreSpec:
    settings = {**PROVIDERS[protocol][provider], **config}
    return StoreSpec.model_validate(
        {"name": name, "provider": provider, "protocol": protocol, "config": settings}
    )


def stores_in(folder: Path, protocol: str, provider: str, **config: Any) -> Stores:
    stores = Stores(folder)
    stores.add([spec(protocol, provider, **config)], owner="test")
    return stores


def providers(protocol: str) -> Any:
    """A contract's fixture: the store of each provider of a protocol."""

    @pytest.fixture(params=PROVIDERS[protocol])
    async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
        stores = stores_in(tmp_path, protocol, request.param)
        yield stores.get("s")
        await stores.close()

    return store


def run(code: str, *arguments: object) -> forks.Forked:
    """Run Python code in another process."""
    return forks.start(
        textwrap.dedent(code), *arguments, imports=["tests.stores.test_every_store"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
