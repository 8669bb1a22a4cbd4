"""Compact JSON for short values, such as entries of a tape and messages to a model."""

from __future__ import annotations

from collections.abc import Callable
from json import JSONEncoder, encoder
from typing import Any


def compact_encoder(*, ascii_only: bool = False, allow_nan: bool = False) -> Callable[[Any], str]:
    """Make a function that writes a value as compact JSON, by default with other than ASCII unescaped.

    `JSONEncoder.encode` makes a new encoder for every value, which costs more than a short value.
    """
    make: Any = getattr(encoder, "c_make_encoder", None)
    plain = JSONEncoder(ensure_ascii=ascii_only, allow_nan=allow_nan, separators=(",", ":"))
    if make is None:  # a Python without the module written in C
        return plain.encode
    text = encoder.encode_basestring_ascii if ascii_only else encoder.encode_basestring
    chunks = make(None, plain.default, text, None, ":", ",", False, False, allow_nan)
    return lambda value: "".join(chunks(value, 0))
