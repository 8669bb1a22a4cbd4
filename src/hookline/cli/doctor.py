"""`hookline doctor`: what works here, what does not, and how to fix it."""

from __future__ import annotations

import asyncio
import platform
from datetime import datetime
from importlib.metadata import version
from time import time
from typing import TYPE_CHECKING, Annotated

import typer

from hookline.hooks import HooklineError
from hookline.hooks.errors import error_text
from hookline.runtime.hook_files import inert_text
from hookline.sandbox.settings import KINDS
from hookline.system.private_files import mode_of, prepare_home
from hookline.tape.open import postgres_of

from . import FAILED
from .config import problems
from .json_output import json_option
from .mcp import described, report, survey
from .plugins import brought
from .project import outline, shown
from .terminal import style

if TYPE_CHECKING:
    from hookline.observe.trace.gate_failures import GateFailure
    from hookline.runtime.app import Hookline

WEEK = 7 * 24 * 3600.0


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline doctor`."""

    @cli.command()
    def doctor(
        coverage: Annotated[
            bool, typer.Option("--coverage", help="Check that every hook is called and can run.")
        ] = False,
        as_json: Annotated[bool, json_option("With --coverage: print JSON.")] = False,
    ) -> None:
        """Check the installation: plugins, models, tools and the tape."""
        if coverage:
            from .why import show_coverage

            app.hook_files.load()
            show_coverage(app, as_json=as_json)
        else:
            examine(app)


def examine(app: Hookline) -> None:
    """Check every part and print a line for each; exit code 1 when something is broken."""
    say("hookline", f"{version('hookline')}, Python {platform.python_version()}")
    check_access(app)
    asyncio.run(app.hook_files.start())
    wrong = problems(app)
    say(
        "config",
        f"profile {app.config.profile}" if not wrong else f"{len(wrong)} to mend",
        good=not wrong,
    )
    for problem in wrong:
        say("config", problem, good=False)
    there = brought(app)  # a plugin that fails here is among the failures below
    plugins = [name for name, plugin in app.hooks.pm.list_name_plugin() if plugin is not None]
    say("plugins", ", ".join(plugins))
    for failure in app.failures:
        say("plugin", str(failure), good=False)
    check_absences(app)
    say("files", ", ".join(file.name for file in app.hook_files.files) or "no hook files")
    if inert := app.hook_files.inert():
        say("trust", inert_text(len(inert)), good=None)
        for line in outline(inert, 8)[0]:
            say("trust", line.strip(), good=None)
    for line in app.config.inert_lines(4):
        say("config", shown(line), good=None)
    for warning in [*app.plugins.news, *app.plugins.warnings]:
        say("plugin", warning, good=None)
    for what, names in there.items():
        if names:
            say(what, ", ".join(names))
    check_skills(app)
    check_servers(app)
    channels = check_channels(app)
    policy = check_policy(app)
    sandbox = check_sandbox(app)
    check_interceptors(app)
    broken = bool(app.failures or wrong or channels or policy or sandbox)
    for model in app.models.available(ask=app.model):
        text = f"{model.name}: {model.summary}" if model.usable else f"{model.name}: {model.reason}"
        chosen = model.serves(app.model)
        good = True if model.usable else False if chosen else None
        say("model", text + (" (default)" if chosen else ""), good=good)
        broken = broken or (chosen and not model.usable)
    tape = asyncio.run(check_tape(app))
    place = "PostgreSQL, as [tape] says" if app.config.get("tape.url") else str(app.home / "tape.db")
    say("tape", tape or place, good=tape is None)
    if broken or tape is not None:
        raise typer.Exit(FAILED)


def check_absences(app: Hookline) -> None:
    """Say what a run would omit, and because of which setting."""
    absences = app.absences
    for name in sorted(absences.without):
        say("plugin", f"{name} takes no part: --without leaves it out", good=None)
    if absences.continues:
        place = app.config.source("plugins.on_load_error") or "the code that made this app"
        text = f'{place} says on_load_error = "continue": a run goes on without what cannot be loaded'
        say("plugin", text, good=None)
    elif absences.failures:
        say("plugin", "nothing runs until this is fixed or left out with --without", good=None)


def check_access(app: Hookline) -> None:
    """Restrict the home to its owner, and say what was open."""
    opened = prepare_home(app.home)
    mode = f" ({mode_of(app.home)})" if app.home.is_dir() else ", made when something is kept"
    say("home", f"{app.home}{mode}")
    if opened:
        names = ", ".join(path.name for path in opened)
        say("home", f"closed to other users now, who could read {names}", good=None)


def check_skills(app: Hookline) -> None:
    """Name the skills, and those that cannot be used."""
    try:
        from hookline.ext.skills.plugin import SkillsPlugin
    except ImportError:
        return
    plugin: SkillsPlugin | None = app.extensions.get(SkillsPlugin)
    if plugin is not None:
        say("skills", ", ".join(skill.name for skill in plugin.skills.list()) or "none")
        for problem in plugin.skills.problems:
            say("skill", str(problem), good=False)
        for skill in plugin.skills.list():
            for warning in skill.warnings:
                say("skill", f"{skill.path}: {warning}", good=None)


def check_servers(app: Hookline) -> None:
    """Connect to the MCP servers; one that fails is among the failures then."""
    servers, connections, wrong = survey(app)
    if wrong:
        say("mcp", wrong, good=False)
    for connection in connections:
        good, text = report(connection)
        say("mcp", shown(text), good=good)
    for server in servers:
        if not server.enabled:
            say("mcp", shown(f"{server.name}: {described(server)['state']}"), good=None)


def check_channels(app: Hookline) -> str | None:
    """Create the configured channels. Returns what is wrong with them, if anything."""
    if not app.config.section("channels"):
        return None
    try:
        from hookline.serve import Gateway

        channels = Gateway(app).channels
    except ImportError as error:
        wrong = f"the gateway needs {error.name}: pip install 'hookline[gateway]'"
    except HooklineError as error:
        wrong = str(error)
    else:
        say("channels", ", ".join(channels))
        return None
    say("channels", wrong, good=False)
    return wrong


def check_policy(app: Hookline) -> str | None:
    """Load the policy and print what is in use. Returns what is wrong with it, if anything."""
    try:
        policy = app.policy
    except Exception as error:
        wrong = str(error)
        say("policy", wrong, good=False)
        return wrong
    packs = ", ".join(f"{pack.id} {pack.version}" for pack in policy.packs)
    say("policy", f"default {policy.default}, {packs or 'no packs'}")
    for note in policy.notes:
        say("policy", note, good=None)
    return None


def check_sandbox(app: Hookline) -> str | None:
    """Print which sandbox confines child processes, or why there is none. Returns errors in its
    settings.
    """
    try:
        sandbox = app.sandbox
        if sandbox.active:
            profiles = ", ".join(f"{kind} {sandbox.profile_of(kind)}" for kind in KINDS)
            say("sandbox", f"{sandbox.name}: {profiles}")
            if missing := sandbox.missing:
                say("sandbox", missing, good=None)
            return None
    except HooklineError as error:
        say("sandbox", str(error), good=False)
        return str(error)
    asks = "; shell commands need approval" if sandbox.settings.required else ""
    say("sandbox", f"none: {sandbox.reason}{asks}", good=None)
    return None


def check_interceptors(app: Hookline) -> None:
    """Name the interceptors; what is wrong with them is among the failures."""
    try:
        from hookline.ext.interceptors.loader import InterceptorsPlugin
    except ImportError:
        return
    plugin: InterceptorsPlugin | None = app.extensions.get(InterceptorsPlugin)
    if plugin is not None and plugin.attached is not None:
        names = plugin.attached.interceptors
        nothing = "no interceptor is named, so everything is denied; name one in [agent_hooks]"
        say("intercept", ", ".join(names) or nothing, good=True if names else None)


async def check_tape(app: Hookline) -> str | None:
    """Open the tape. Returns what is wrong with it, if anything."""
    app.passive = True
    app.absences.enforced = False
    try:
        async with app.running():
            store = app.store()
            await store.sessions(limit=1)
            await check_gates(app)
            if (postgres := postgres_of(store)) is not None:
                from hookline.tape.postgres.roles import standing_of
                from hookline.tape.postgres.schema import check_writable

                async with postgres.connection("look at") as connection:
                    await check_writable(connection, postgres.place)
                    standing = await standing_of(connection, postgres.schema)
                say("database", standing.summary, good=None if standing.powers else True)
    except Exception as error:
        return error_text(error)
    return None


async def check_gates(app: Hookline) -> None:
    """Name the handlers that failed at a gate in the last week and let something through."""
    from hookline.observe.trace.gate_failures import gate_failures
    from hookline.observe.trace.plugin import Tracing

    failures = gate_failures((await (await Tracing.of(app).store()).read(since=time() - WEEK)).records)
    groups: dict[tuple[str, str, str], list[GateFailure]] = {}
    for each in failures:
        groups.setdefault((each.hook, each.by, each.place), []).append(each)
    for (hook, by, place), own in groups.items():
        last = own[-1]
        when = datetime.fromtimestamp(last.time).strftime("%Y-%m-%d %H:%M")
        times = f"{len(own)} times, the last" if len(own) > 1 else "once,"
        text = f"{by} failed at {hook} and let it through {times} {when}: {last.error} ({place})"
        say("gates", shown(text), good=None)
    if groups and app.config.on_gate_error() == "allow":
        advice = "`hookline config set hooks.on_gate_error deny` makes such a failure deny"
        say("gates", advice, good=None)


MARKS = {True: ("ok", "green"), False: ("!!", "red"), None: ("--", "yellow")}


def say(what: str, text: str, *, good: bool | None = True) -> None:
    """One line of the report: what works, what is broken, what is not configured."""
    mark, colour = MARKS[good]
    typer.echo(f"{style(mark, colour)}  {what:<9} {text}")
