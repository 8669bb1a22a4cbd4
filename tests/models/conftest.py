"""The local model's weights, fetched once and kept between runs."""

import os
from pathlib import Path

import pytest

from hookline.models import LocalModel, ModelUnavailable
from hookline.models.weights import install


@pytest.fixture(scope="session")
def models_home() -> Path:
    """A home with the weights in it."""
    pytest.importorskip(
        "xllamacpp", reason="the local model's runtime (extra 'local') is not installed"
    )
    home = Path(os.environ.get("HOOKLINE_TEST_MODELS") or Path.home() / ".cache" / "hookline-tests")
    try:
        install(home)
    except ModelUnavailable as error:
        pytest.skip(f"the weights cannot be fetched: {error}")
    return home


@pytest.fixture(scope="session")
def shared_model(models_home: Path) -> LocalModel:
    """One loaded model for the tests that do not look at loading."""
    return LocalModel(home=models_home)
