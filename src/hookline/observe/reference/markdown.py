"""The reference of the catalogue: what documentation, command line and inspector show of a hook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from hookline.hooks import DENY, REDUCERS, Catalog, Errors, HookSpec
from hookline.hooks.annotations import type_name
from hookline.hooks.reducers import Reducer

from .lifecycle import walk

FAMILIES = {
    "turn": "The turn pipeline",
    "plugin": "Plugins, authorisation and approval",
    "tool": "Tools",
    "session": "Sessions",
    "agent": "The agent",
    "message": "Model turns and messages",
    "model": "Models",
    "subagent": "Subagents",
    "gateway": "Gateway and channels",
    "misc": "Everything else",
    "trigger": "Triggers",
}

ERRORS = {
    Errors.RAISE: "stops the dispatch and reaches the caller, with hook and plugin named in its notes",
    Errors.SKIP: "is logged with its traceback and left out; the rest run",
    Errors.DENY: "counts as a deny, with the error as its reason: it fails closed",
    Errors.CAPTURE: "becomes a failed outcome; the rest run",
}


def describe(spec: HookSpec) -> dict[str, Any]:
    """One hook as plain data."""
    return {
        "name": spec.name,
        "family": spec.family,
        "doc": spec.doc,
        "fires": spec.fires,
        "signature": signature(spec),
        "reduce": str(spec.reducer),
        "order": spec.order.value,
        "errors": spec.errors.value,
        "mode": "sync" if spec.sync else "async",
        "result": type_name(spec.result),
        "params": list(spec.params),
        "payload": [f"{f.name}: {annotation_of(f)}" for f in payload(spec)],
        "timeout": spec.timeout,
        "scope": spec.scope,
        "match": spec.match,
        "excludes": list(spec.excludes),
    }


def example_source(spec: HookSpec) -> str:
    """Return an implementation to copy: the shipped example, or a plugin's own signature."""
    from . import examples

    if spec.name in examples.EXAMPLES:
        return examples.example_source(spec.name).rstrip()
    if spec.event is not None:
        event, result = spec.event.__name__, type_name(spec.result)
        result = result if spec.result is None else f"{result} | None"
        head = f"@hookimpl({event})\ndef {spec.name.replace(':', '_')}(self, event: {event})"
        return f"{head} -> {result}:\n    ..."
    parameters = ", ".join(("self", *spec.params))
    return f"@hookimpl\ndef {spec.name}({parameters}):\n    ..."


def signature(spec: HookSpec) -> str:
    """The hook as a plugin author writes it."""
    if spec.event is None:
        return spec.signature()
    return f"{spec.name}(event: {spec.event.__name__}, ctx: HookContext) -> {type_name(spec.result)}"


def payload(spec: HookSpec) -> tuple[Field[Any], ...]:
    """The fields of an event, its type aside."""
    if spec.event is None:
        return ()
    return tuple(f for f in fields(spec.event) if f.name != "type")


def lifecycle(catalog: Catalog) -> str:
    """One turn as an indented diagram: the calls, and the use of their results."""
    steps = [("    " * depth + name, catalog.get(name)) for depth, name in walk(catalog)]
    names = max(len(name) for name, _ in steps)
    reducers = max(len(str(spec.reducer)) for _, spec in steps if spec)
    return "\n".join(
        f"{name:<{names}}  {spec.reducer!s:<{reducers}}  {spec.doc}" if spec else f"{name}:"
        for name, spec in steps
    )


def markdown(catalog: Catalog) -> str:
    """The whole reference, as the page `docs/hooks.md`."""
    return "\n".join(page(catalog)).rstrip() + "\n"


def page(catalog: Catalog) -> Iterator[str]:
    """The lines of the page."""
    yield "# Hook reference"
    yield ""
    yield "<!-- Made by `scripts/declared_hooks.py`; a test fails when it is stale. -->"
    yield ""
    yield f"Every hook that Hookline declares: {len(catalog)} of them. [How hooks work](kernel.md)"
    yield "explains the terms; `hookline hooks NAME` shows one hook in the terminal."
    yield ""
    yield "## One turn"
    yield ""
    yield "```"
    yield lifecycle(catalog)
    yield "```"
    yield ""
    yield from rules()
    yield "## Contents"
    yield ""
    for family, specs in catalog.families().items():
        names = ", ".join(f"[`{s.name}`](#{anchor(s.name)})" for s in specs)
        yield f"- **{FAMILIES.get(family, family)}**: {names}"
    yield ""
    for family, specs in catalog.families().items():
        yield f"## {FAMILIES.get(family, family)}"
        yield ""
        for spec in specs:
            yield from entry(spec)


def rules() -> Iterator[str]:
    """What reducers, orders and error policies mean, and which of them go together."""
    yield "## How results are combined"
    yield ""
    yield "| reducer | a call returns | stops early | error policies | guards | wrappers |"
    yield "|---|---|---|---|---|---|"
    for reducer in REDUCERS:
        yield reducer_row(reducer)
    yield ""
    yield "Other combinations are refused when a hook is declared. DENY on `first` needs a result type"
    yield "of bool, or `first(deny=...)`."
    yield ""
    yield "## Which handler runs first"
    yield ""
    yield "- **newest**: the most recently registered runs first, so that yours wins over the builtin."
    yield "- **oldest**: in the order of registration."
    yield "- `tryfirst` goes before and `trylast` after the rest under both. Within each of the three"
    yield "  groups a lower `order=` runs first; the hook's own order decides among equals. Guards run"
    yield "  after all others on gate, patch and chain: what they judge is final."
    yield ""
    yield "## What an error does"
    yield ""
    yield "| policy | an implementation that raises |"
    yield "|---|---|"
    for policy, meaning in ERRORS.items():
        yield f"| {policy.value} | {meaning} |"
    yield ""
    yield "A guard's failure is a deny whatever the policy; on a patch or chain it withholds the value."
    yield "A result of the wrong type and an answer after the time limit are errors like any other;"
    yield "on a gate, a result of the wrong type is always a deny."
    yield ""


def reducer_row(reducer: type[Reducer]) -> str:
    """One reducer as a table row."""
    policies = ", ".join(e.value for e in Errors if e in reducer.errors)
    guards = "yes" if reducer.guarded else "where a value denies" if DENY in reducer.errors else "no"
    wrappers = "yes" if reducer.wrappable else "no"
    stops = "yes" if reducer.stops else "no"
    return f"| `{reducer.name}` | {reducer.returns} | {stops} | {policies} | {guards} | {wrappers} |"


def entry(spec: HookSpec) -> Iterator[str]:
    """One hook's section."""
    told = describe(spec)
    yield f'<a id="{anchor(spec.name)}"></a>'
    yield ""
    yield f"### `{spec.name}`"
    yield ""
    yield spec.doc
    yield ""
    yield "```python"
    yield told["signature"]
    yield "```"
    yield ""
    facts = [
        f"**reduce** {told['reduce']}",
        f"**order** {told['order']}",
        f"**errors** {told['errors']}",
    ]
    facts += ["**sync**: awaitables are skipped with a warning"] if spec.sync else []
    facts += [f"**time limit** {spec.timeout:g} s"] if spec.timeout else []
    facts += [f"**scope** `{spec.scope}`"] if spec.scope else []
    facts += [f"**match** `{spec.match}`"] if spec.match else []
    facts += [f"**not beside** {', '.join(f'`{n}`' for n in spec.excludes)}"] if spec.excludes else []
    yield " · ".join(facts)
    yield ""
    yield f"Fires {spec.fires}. A call returns {spec.reducer.returns}."
    yield ""
    if spec.event is not None:
        yield from event_fields(spec)
    yield "```python"
    yield example_source(spec)
    yield "```"
    yield ""


def event_fields(spec: HookSpec) -> Iterator[str]:
    """The fields of an event, and those that its result may set."""
    shown = ", ".join(f"`{f.name}: {annotation_of(f)}`" for f in payload(spec)) or "nothing"
    yield f"Carries {shown}."
    yield ""
    for cls in spec.classes or ():
        settable = ", ".join(f"`{f.name}: {annotation_of(f)}{default_of(f)}`" for f in fields(cls))
        yield f"A handler may return `{cls.__name__}`: {settable}."
        yield ""


def annotation_of(field: Field[Any]) -> str:
    """A field's type as people write it."""
    return type_name(field.type)


def default_of(field: Field[Any]) -> str:
    """A field's default, if it is a plain value."""
    return "" if field.default is MISSING else f" = {field.default!r}"


def anchor(name: str) -> str:
    """The link target of a hook."""
    return f"hook-{name.replace(':', '-')}"
