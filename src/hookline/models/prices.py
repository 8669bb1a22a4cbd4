"""What an answer costs, from the prices that are configured.

    {"some-model": {"input": 2.5, "cached_input": 1.25, "cache_write": 3.0, "output": 10.0}}

Prices are for a million tokens. None are shipped: they change more often than this program.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeAlias, cast

from hookline.errors import BadSetting

Prices: TypeAlias = Mapping[str, float]

KINDS = ("input", "cached_input", "cache_write", "output")
_MILLION = 1_000_000


def check_prices(values: object, where: str) -> dict[str, dict[str, float]]:
    """The prices by model, or an error that names the wrong one."""
    if not isinstance(values, Mapping):
        raise BadSetting(f"'prices' of {where} must be a table of models, got {values!r}")
    found: dict[str, dict[str, float]] = {}
    for model, prices in cast("Mapping[str, Any]", values).items():
        if not isinstance(prices, Mapping):
            raise BadSetting(
                f"the prices of {model!r} of {where} must be a table with "
                f"{', '.join(KINDS)}, got {prices!r}"
            )
        table = cast("Mapping[str, Any]", prices)
        for kind, price in table.items():
            if kind not in KINDS:
                raise BadSetting(
                    f"unknown price {kind!r} of {model!r} of {where}; there is {', '.join(KINDS)}"
                )
            if type(price) not in (int, float) or not isfinite(price) or price < 0:
                raise BadSetting(
                    f"the price {kind!r} of {model!r} of {where} must be a number of at least 0, "
                    f"got {price!r}"
                )
        found[model] = dict(table)
    return found


def cost(usage: Mapping[str, Any], prices: Prices) -> float:
    """What the counted tokens cost. Cached ones are part of the input, at their own price if known."""
    total = usage.get("input_tokens", 0)
    full = prices.get("input", 0.0)
    read = min(usage.get("cached_tokens", 0), total)
    written = min(usage.get("cache_write_tokens", 0), total - read)
    asked = (total - read - written) * full
    asked += read * prices.get("cached_input", full) + written * prices.get("cache_write", full)
    return (asked + usage.get("output_tokens", 0) * prices.get("output", 0.0)) / _MILLION
