"""The full names of models that people write as they know them: `gpt-5`, `anthropic:claude-4`."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

FAMILIES: Final = {
    r"gpt-oss|llama|qwen|phi|gemma": "ollama:",
    r"gpt|chatgpt|codex|o[0-9]": "openai:",
    r"claude": "anthropic:",
    r"gemini": "any:gemini/",
    r"(open-)?mi[sx]tral|codestral|ministral|magistral|devstral|pixtral": "any:mistral/",
    r"grok": "any:xai/",
    r"command": "any:cohere/",
    r"deepseek": "deepseek:",
}
"""How the models of a vendor begin, and what stands before them in a full name."""
THROUGH_ANY: Final = (
    "anthropic", "azure", "azureopenai", "bedrock", "cerebras", "cohere", "databricks", "fireworks",
    "gemini", "huggingface", "mistral", "moonshot", "nebius", "perplexity", "sambanova", "together",
    "vertexai", "xai", "zai",
)  # fmt: skip
"""Vendors that any-llm-sdk reaches."""
ALIASES: Final = {"google": "gemini", "claude": "anthropic", "grok": "xai", "vertex": "vertexai"}


def full_name(name: str, providers: Collection[str]) -> str:
    """The name that is probably meant by one without a known provider; empty if nothing is near."""
    prefix, _, model = re.sub(r"^([\w-]+)/", r"\1:", name).partition(":")
    vendor = ALIASES.get(prefix.lower(), prefix.lower())
    if vendor in providers and model:
        return f"{vendor}:{model}"
    if vendor in THROUGH_ANY:
        return f"any:{vendor}/{model or 'MODEL'}"
    for family, before in FAMILIES.items():
        if re.match(rf"({family})", name, re.IGNORECASE):
            return before + name
    return ""
