"""`hookline onboard`: questions, a first request, and then the file."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookline.config import Config, ConfigError
from hookline.config.layers import find, leaves, merged, nested, read_file
from hookline.config.sections import SCALARS, THINKING
from hookline.config.writer import write
from hookline.errors import BadInput
from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text

from . import FAILED, INTERRUPTED
from .config import check, target
from .models import DownloadProgress
from .options import Model

if TYPE_CHECKING:
    from hookline.models import Availability, Models
    from hookline.runtime.app import Hookline

ON_GATE_ERROR = "hooks.on_gate_error"
KEYLESS = ("local", "scripted")
"""The providers that are nowhere but here."""


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline onboard`."""

    @cli.command()
    def onboard(
        model: Model = None,
        base_url: Annotated[str | None, typer.Option(help="Where the provider is.")] = None,
        key_env: Annotated[
            str | None, typer.Option(help="The environment variable that holds the key.")
        ] = None,
        thinking: Annotated[
            str | None, typer.Option(help="How long the model thinks: off, low, medium, high.")
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
        test: Annotated[bool, typer.Option(help="Try the model with a tiny request.")] = True,
    ) -> None:
        """Choose a model, and fill in the settings that plugins need."""
        set_up(app, Answers(model, base_url, key_env, thinking, yes, test))


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers given on the command line."""

    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None
    thinking: str | None = None
    yes: bool = False
    test: bool = True


def set_up(app: Hookline, given: Answers) -> None:
    """Ask, test, write. If interrupted, nothing is written."""
    if not given.yes and not (sys.stdin and sys.stdin.isatty()):
        raise BadInput(
            "onboard asks questions, and standard input is no terminal: "
            "say --yes, with --model and what else is to be set"
        )
    path = target(app)
    try:
        before = read_file(path) or {}
        changes = answered(app, given, before)
        changes = with_plugins(app, before, changes)
        works = tested(app, changes, given)
        write(path, changes)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("\nhookline: interrupted; nothing was written", err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(f"written: {path}")
    for news in app.plugins.news:
        typer.echo(f"new plugin: {news}; `hookline plugins show` tells what it does", err=True)
    for name in app.plugins.lock().unpinned:
        typer.echo(f"not pinned: plugins.unpinned lets {name} change unnoticed", err=True)
    if not works:
        raise typer.Exit(FAILED)


# --- the builtin questions ------------------------------------------------------------------------


def answered(app: Hookline, given: Answers, before: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the answers stand for; an answer that means nothing is asked for again."""
    if given.yes:
        changes = of_options(app, given, before)
        model_of(app, changes)
        return changes
    show_models(app)
    while True:
        try:
            changes = asked(app, given, before)
            model_of(app, changes)
            return changes
        except HooklineError as error:
            typer.echo(f"  {error}", err=True)
            given = Answers(test=given.test)  # the command's options did not help


def of_options(app: Hookline, given: Answers, before: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the command line says."""
    model = given.model or before.get("model") or app.model
    changes: dict[str, Any] = {"model": model}
    table = table_of(model)
    if given.base_url:
        changes = merged(changes, nested(f"{table}.base_url", given.base_url))
    if given.key_env:
        changes = merged(changes, nested(f"{table}.api_key", f"${{{given.key_env}}}"))
    if given.thinking:
        changes["thinking"] = given.thinking
    if find(before, ON_GATE_ERROR) is None:
        changes = merged(changes, nested(ON_GATE_ERROR, "deny"))
    return checked(app, changes)


def asked(app: Hookline, given: Answers, before: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a person says; Enter leaves a thing as it is."""
    model = typer.prompt("Model", default=given.model or before.get("model") or app.model).strip()
    changes: dict[str, Any] = {"model": model}
    table = table_of(model)
    if model.partition(":")[0] not in KEYLESS:
        current = given.base_url or find(before, f"{table}.base_url", "")
        url = typer.prompt(
            "Base URL (Enter: the provider's own)", default=current, show_default=bool(current)
        )
        if url.strip():
            changes = merged(changes, nested(f"{table}.base_url", url.strip()))
        key = typer.prompt(
            "API key, not shown (Enter: leave it to the environment)",
            default="", hide_input=True, show_default=False,
        )  # fmt: skip
        if key.strip():
            changes = merged(changes, nested(f"{table}.api_key", key.strip()))
        elif given.key_env:
            changes = merged(changes, nested(f"{table}.api_key", f"${{{given.key_env}}}"))
    level = given.thinking or before.get("thinking") or ""
    choice = typer.prompt(
        f"Thinking: {', '.join(THINKING)} (Enter: the model's own)",
        default=level,
        show_default=bool(level),
    )
    if choice.strip():
        changes["thinking"] = choice.strip()
    if find(before, ON_GATE_ERROR) is None:
        denies = typer.confirm("Deny a call if a hook that judges it fails?", default=True)
        changes = merged(changes, nested(ON_GATE_ERROR, "deny" if denies else "allow"))
    return checked(app, changes)


def show_models(app: Hookline) -> None:
    """List the providers: those that work here, then those that need a key or something else."""
    found = app.models.available(ask=app.model)
    for title, usable in (("Ready:", True), ("After you set them up:", False)):
        models = [model for model in found if model.usable is usable]
        if models:
            typer.echo("\n".join([title, *map(about, models)]))
    typer.echo("A model is named PROVIDER:MODEL, such as openai:gpt-5-mini.")


def about(model: Availability) -> str:
    """A provider in a line, with what it needs."""
    return f"  {model.name:<18} {model.summary if model.usable else model.reason.splitlines()[0]}"


def table_of(model: str) -> str:
    """The table with the settings of a model's provider."""
    provider, _, rest = model.partition(":")
    return f"providers.any.{rest.partition('/')[0]}" if provider == "any" else f"providers.{provider}"


def checked(app: Hookline, changes: dict[str, Any]) -> dict[str, Any]:
    """The settings, without empty ones."""
    for dotted, value in leaves(changes):
        check(app, dotted, value)
    return changes


# --- the plugins' part ----------------------------------------------------------------------------


def with_plugins(app: Hookline, before: Mapping[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The changes with what plugins add to them; a plugin's own section needs no declaration."""
    now = merged(before, changes)
    wanted = app.collect_onboard_config(merged(now, {}))
    known = app.config.known()
    for dotted, value in leaves(wanted):
        if find(now, dotted) == value:
            continue
        if dotted.partition(".")[0] in known:
            check(app, dotted, value)
        elif "." not in dotted:
            raise ConfigError(
                f"a plugin proposes {dotted!r}, which is no setting "
                f"(there are {', '.join(SCALARS)}): it belongs into a section of the plugin's own"
            )
        changes = merged(changes, nested(dotted, value))
    return changes


# --- the test ---------------------------------------------------------------------------------------


def tested(app: Hookline, changes: Mapping[str, Any], given: Answers) -> bool:
    """Ask the model for a word and tell what happened; whether all is well."""
    if not given.test:
        return True
    model = find(changes, "model")
    typer.echo(f"asking {model} for a word …")
    try:
        said = asyncio.run(probed(app, changes))
    except Exception as error:
        text = str(error) if isinstance(error, HooklineError) else error_text(error)
        typer.echo(f"!! {model} does not answer: {text}", err=True)
        if not given.yes:
            typer.confirm("Write the settings all the same?", default=True, abort=True)
        return False
    typer.echo(f"ok {model} answers: {' '.join(said.split())[:60]!r}")
    return True


async def probed(app: Hookline, changes: Mapping[str, Any]) -> str:
    """What the model says, with the settings that are not written yet."""
    from hookline.models.probe import probe

    models = models_of(app, changes)
    try:
        return await probe(models.get(find(changes, "model")))
    finally:
        await models.close()


def model_of(app: Hookline, changes: Mapping[str, Any]) -> None:
    """Refuse a model that cannot be made with these settings, before anything is asked of it."""
    models_of(app, changes).get(find(changes, "model"))


def models_of(app: Hookline, changes: Mapping[str, Any]) -> Models:
    """The models as they will be."""
    from hookline.models import Models

    config: Config = app.config
    trial = Config.load(config.home, profile=config.profile, project=False, overrides=changes)
    return Models(home=app.home, settings=trial.expanded("providers"), progress=DownloadProgress())
