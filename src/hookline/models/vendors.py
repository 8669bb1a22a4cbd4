"""The full names of models that people write as they know them: `gpt-5`, `anthropic:claude-4`."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from .http.services import SERVICES

FAMILIES: Final = {
    r"(open-)?mi[sx]tral|codestral|ministral|magistral|devstral|pixtral": "any:mistral/",
    r"grok": "any:xai/",
    r"command": "any:cohere/",
}
"""How the models of other vendors begin, and what stands before them in a full name."""
THROUGH_ANY: Final = (
    "azure", "azureopenai", "bedrock", "cerebras", "cohere", "databricks", "fireworks",
    "huggingface", "mistral", "moonshot", "nebius", "perplexity", "sambanova", "together",
    "vertexai", "xai", "zai",
)  # fmt: skip
"""Vendors that any-llm-sdk reaches."""
ALIASES: Final = {"gemini": "google", "claude": "anthropic", "grok": "xai", "vertex": "vertexai"}


def full_name(name: str, providers: Collection[str]) -> str:
    """The name that is probably meant by one without a known provider; empty if nothing is near."""
    prefix, _, model = re.sub(r"^([\w-]+)/", r"\1:", name).partition(":")
    vendor = ALIASES.get(prefix.lower(), prefix.lower())
    if vendor in providers and model:
        return f"{vendor}:{model}"
    if vendor in THROUGH_ANY:
        return f"any:{vendor}/{model or 'MODEL'}"
    families = {facts["family"]: f"{each}:" for each, facts in SERVICES.items() if "family" in facts}
    # `gpt-oss` is longer than `gpt`: the local servers' families come first.
    for family, before in [*reversed(families.items()), *FAMILIES.items()]:
        if re.match(rf"({family})", name, re.IGNORECASE):
            return before + name
    return ""
