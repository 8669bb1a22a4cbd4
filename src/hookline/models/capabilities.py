"""What the client of each provider passes on: the source of the table in `docs/models.md`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class Capabilities:
    """How a provider's client supports each feature, in a word or two; empty: not at all.

    A particular model may do less than its API. Media that a client does not pass on are replaced by
    a note that the model reads.
    """

    streaming: str = "yes"
    tools: str = "yes"
    parallel_tools: str = "yes"
    images: str = ""
    audio: str = ""
    files: str = ""
    typed_output: str = "a tool call"
    thinking: str = ""
    caching: str = ""
    usage: str = "yes"
    cost: str = "with `prices`"


CAPABILITIES: Final = {
    "openai": Capabilities(
        images="yes", audio="yes", files="yes", typed_output="a JSON schema", thinking="an effort",
        caching="by the service",
    ),
    "openai-responses": Capabilities(
        images="yes", files="yes", typed_output="a JSON schema",
        thinking="an effort; reasoning is sent back", caching="by the service",
    ),
    "anthropic": Capabilities(
        images="yes", files="PDF", typed_output="a JSON schema; a tool call before Claude 4.5",
        thinking="an effort, or a budget before Claude 4.6; thoughts are sent back", caching="marked",
    ),
    "google": Capabilities(
        images="yes", audio="yes", files="yes",
        typed_output="a JSON schema; a tool call if tools are offered before Gemini 3",
        thinking="a level, or a budget before Gemini 3; signatures are sent back",
        caching="by the service",
    ),
    "local": Capabilities(
        tools="if `offer_tools` is set", parallel_tools="", typed_output="a grammar",
        caching="its own", cost="",
    ),
    "any": Capabilities(
        images="as the provider does", audio="as the provider does", files="as the provider does",
        thinking="an effort", caching="marked for Anthropic",
    ),
}  # fmt: skip


def capability_table() -> str:
    """The table as Markdown, one column per provider."""
    names = list(CAPABILITIES)
    lines = [f"| | {' | '.join(f'`{name}`' for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for each in fields(Capabilities):
        cells = [getattr(CAPABILITIES[name], each.name) or "no" for name in names]
        lines.append(f"| {each.name.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
