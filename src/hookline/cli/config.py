"""`hookline config`: show, get, set and unset settings."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hookline.config import ConfigError, Profile
from hookline.config.config import FILE
from hookline.config.layers import find, leaves, merged, nested, parse_value, read_file
from hookline.config.writer import remove, write
from hookline.hooks.errors import suggestion

from .json_output import Json, print_json
from .project import shown

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

MODEL = re.compile(r"model|agents\.[^.]+\.model")
"""The settings that name a model."""
Key = Annotated[str, typer.Argument(help="Such as model, or limits.steps.")]
ForProfile = Annotated[str | None, typer.Option(help="In the file of this profile.")]
ForProject = Annotated[
    bool, typer.Option("--project", help="In the file of the project in the current folder.")
]


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline config`."""
    group = typer.Typer(help="Show and change the settings.", no_args_is_help=True)
    cli.add_typer(group, name="config")

    @group.command()
    def show(
        section: Annotated[str | None, typer.Argument(help="Only this section.")] = None,
        as_json: Json = False,
    ) -> None:
        """Show every setting and where it stands; secrets are never shown."""
        show_settings(app, section, as_json=as_json)

    @group.command("set")
    def set_(
        key: Key,
        value: Annotated[str, typer.Argument(help="A TOML value, or a text.")],
        profile: ForProfile = None,
        project: ForProject = False,
    ) -> None:
        """Set a value in the user's file; comments in it are kept."""
        set_value(app, key, value, profile=profile, project=project)

    @group.command()
    def get(key: Key) -> None:
        """Print one setting, or a section as JSON; secrets are never shown."""
        print_setting(app, key)

    @group.command()
    def unset(key: Key, profile: ForProfile = None, project: ForProject = False) -> None:
        """Remove a setting from the user's file; comments in it are kept."""
        unset_value(app, key, profile=profile, project=project)

    @group.command()
    def path() -> None:
        """Show which files are read."""
        show_paths(app)


def show_settings(app: Hookline, section: str | None = None, *, as_json: bool = False) -> None:
    """Print every setting and its source; errors follow on standard error."""
    config = app.config
    top = (section or "").partition(".")[0]
    if section and top not in config.known() and config.get(top) is None:
        raise ConfigError(f"unknown section {section!r}{suggestion(top, config.known())}")
    rows = {**defaults(app, section), **config.shown(section)}
    told = {at: {"value": rows[at], "source": config.source(at) or "default"} for at in sorted(rows)}
    wrong = problems(app)
    if as_json:
        everything = {"profile": config.profile, "settings": told, "problems": wrong}
        print_json(everything, indent=2)
        return
    for dotted, about in told.items():
        value = json.dumps(about["value"], ensure_ascii=False, default=str)
        typer.echo(f"{dotted} = {value}  ({about['source']})")
    for problem in wrong:
        typer.echo(f"!! {problem}", err=True)
    for line in config.inert_lines():
        typer.echo(f"-- {shown(line)}", err=True)


def defaults(app: Hookline, section: str | None) -> dict[str, Any]:
    """The value if nothing is set."""
    from hookline.agent.run import Limits
    from hookline.config.schema import LimitsSettings
    from hookline.models import DEFAULT_MODEL
    from hookline.system.retry import RetryPolicy

    limits = Limits()
    found: dict[str, Any] = {"model": DEFAULT_MODEL}
    for field in fields(limits):
        value = getattr(limits, field.name)
        if field.name in LimitsSettings.model_fields and value is not None:
            found[f"limits.{field.name}"] = asdict(value) if isinstance(value, RetryPolicy) else value
    return {
        at: value
        for at, value in found.items()
        if app.config.get(at) is None and (section is None or f"{at}.".startswith(f"{section}."))
    }


def problems(app: Hookline) -> list[str]:
    """Everything that is wrong with the settings, those of providers too."""
    plugins = [name for name, plugin in app.hooks.pm.list_name_plugin() if plugin is not None]
    found = app.config.problems(plugins)
    given: Any = app.config.get("providers", {})
    for name, table in cast("dict[str, Any]", given if isinstance(given, dict) else {}).items():
        if isinstance(table, dict):
            try:
                check_provider(app, name, cast("dict[str, Any]", table))
            except ConfigError as error:
                place = app.config.source(f"providers.{name}")
                found.append(f"{place}: {error}")
    return found


def show_paths(app: Hookline) -> None:
    """Print the files that are read, the later ones over the earlier ones."""
    config = app.config
    files = [("user", config.home / FILE), ("profile", config.profiled.config_file)]
    if config.project_dir is not None:
        files.append(("project", config.project_dir / FILE))
    for name, path in files:
        typer.echo(f"{name:<8} {path}{'' if path.exists() else '  (not there)'}")


def set_value(app: Hookline, key: str, text: str, *, profile: str | None, project: bool) -> None:
    """Set one value in one file, or change nothing."""
    path = target(app, profile, project=project)
    value = accepted(app, key, text, project=project)
    write(path, nested(key, value))
    typer.echo(f"{key} is set in {path}")
    tell_winner(app, key, path, profile)


def unset_value(app: Hookline, key: str, *, profile: str | None, project: bool) -> None:
    """Remove one setting from one file."""
    path = target(app, profile, project=project)
    if find(read_file(path) or {}, key) is None:
        source = app.config.source(key)
        elsewhere = f"; it is set in {source}" if source else ""
        raise ConfigError(f"{key} is not set in {path}{elsewhere}")
    remove(path, key)
    typer.echo(f"{key} is no longer set in {path}")
    tell_winner(app, key, path, profile)


def print_setting(app: Hookline, key: str) -> None:
    """Print the value of one setting and nothing else."""
    found = {**defaults(app, key), **app.config.shown(key)}
    if key in found:
        value = found[key]
        typer.echo(value if isinstance(value, str) else json.dumps(value, default=str))
    elif found:
        table = {dotted.removeprefix(f"{key}."): value for dotted, value in found.items()}
        print_json(table, indent=2)
    else:
        top = key.partition(".")[0]
        raise ConfigError(f"{key} is not set{suggestion(top, set(app.config.known()) - {top})}")


def tell_winner(app: Hookline, key: str, path: Path, profile: str | None) -> None:
    """Say on standard error if another place decides on a setting of the profile in use."""
    if profile is None or profile == app.config.profile:
        app.config.reload()
        source = app.config.source(key)
        if source is not None and source != str(path):
            typer.echo(f"it has no effect: {source} sets it too, and comes later", err=True)


def target(app: Hookline, profile: str | None = None, *, project: bool = False) -> Path:
    """The file to write: the project's, a profile's, or the user's."""
    config = app.config
    if project:
        if profile is not None:
            raise ConfigError("--profile and --project name two files: choose one")
        if config.project_dir is None:
            raise ConfigError("there is no project here to set it for: leave --no-project out")
        from hookline.plugins.project import stays

        path = config.project_dir / FILE
        if not stays(path, app.workspace):
            raise ConfigError(f"{path} leads out of the project; put a file in the place of the link")
        return path
    if profile is not None:
        return Profile.of(config.home, profile).config_file
    if config.profile != "default":
        return config.profiled.config_file
    return config.home / FILE


def accepted(app: Hookline, key: str, text: str, *, project: bool = False) -> Any:
    """The value that a text stands for; what looks like a number may be meant as a text."""
    value = parse_value(key, text)
    try:
        check(app, key, value, project=project)
    except ConfigError:
        if isinstance(value, str):
            raise
        try:
            check(app, key, text, project=project)
        except ConfigError:
            pass
        else:
            return text
        raise
    return value


def check(app: Hookline, key: str, value: Any, *, project: bool = False) -> None:
    """Refuse what means nothing; a provider's settings are checked by the provider."""
    app.config.check(key, value, project=project)
    parts = key.split(".")
    if parts[0] == "providers" and len(parts) > 1:
        table = find(
            merged({"providers": app.config.section("providers")}, nested(key, value)),
            ".".join(parts[:2]),
        )
        if isinstance(table, dict):
            check_provider(app, parts[1], cast("dict[str, Any]", table))
    for dotted, leaf in leaves(nested(key, value)):
        if MODEL.fullmatch(dotted):
            check_model(app, leaf)
        elif dotted == "policy.packs":
            check_packs(app, leaf, project=project)


def check_model(app: Hookline, name: str) -> None:
    """Refuse the name of a model that does not exist; one that only lacks its key or server passes."""
    from hookline.models import ModelError, ModelUnavailable

    scripted, _, file = name.partition(":")
    if "${" in name or (scripted == "scripted" and Path(file).is_file()):
        return  # the code of a script runs when it is used, not before
    try:
        app.models.get(name)
    except ModelUnavailable:
        return
    except ModelError as error:
        raise ConfigError(str(error)) from None


def check_packs(app: Hookline, packs: list[str], *, project: bool) -> None:
    """Refuse packs that do not exist or cannot be read."""
    from hookline.policy.policy import load_packs
    from hookline.policy.settings import layered

    mine, theirs = ({}, {"packs": packs}) if project else ({"packs": packs}, {})
    settings = layered(mine, theirs, home=app.home, workspace=app.workspace)
    load_packs(settings, app.plugins.pack_specs)


def check_provider(app: Hookline, name: str, table: dict[str, Any]) -> None:
    """Refuse settings that the provider would refuse; making a model of it is cheap."""
    from hookline.models import BadSetting, ModelError, Models

    known = {each.name.partition(":")[0] for each in app.models.available()}
    if name not in known:  # a plugin may bring it yet; a slip is likelier
        if near := suggestion(name, known):
            raise ConfigError(f"unknown provider {name!r}{near}")
        return
    # A reference is checked when it is used.
    plain = {at: value for at, value in table.items() if "${" not in str(value)}
    tables = [(f"any:{at}/MODEL", {name: {at: each}}) for at, each in plain.items()]
    model = "MODEL" if "base_url" in plain or name != "openai-compatible" else "http://localhost#MODEL"
    one = [(name if name == "local" else f"{name}:{model}", {name: plain})]
    for model, settings in tables if name == "any" else one:
        try:
            Models(home=app.home, settings=settings).get(model)
        except BadSetting as error:
            raise ConfigError(f"providers.{name}: {error}") from None
        except ModelError:
            continue  # not configured yet, which is a different matter
