"""`hookline policy`: check the rules, test them, and say who decides on a call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hookline.errors import BadInput
from hookline.hooks import Decision
from hookline.policy import Pack, Policy, PolicyError, PolicyStep, load_pack, strictest
from hookline.policy.pack import SCHEMA, check_together, find_pack, schema_faults
from hookline.policy.policy import FLOOR, floor_rules
from hookline.policy.settings import Layered, layered
from hookline.types import Identity

from . import FAILED, beside
from .json_output import Json, print_json
from .mcp import mcp_of
from .options import Workspace, configure
from .terminal import style

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline
    from hookline.tape import Entry
    from hookline.types import ToolCall

COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def add(cli: typer.Typer, app: Hookline) -> None:
    """Add `hookline policy`."""
    group = typer.Typer(
        help="Check, test and explain policies; answer approvals.", no_args_is_help=True
    )
    cli.add_typer(group, name="policy")

    @group.command()
    def check(
        packs: Annotated[
            list[str] | None, typer.Argument(help="Packs or folders; by default those in use.")
        ] = None,
        workspace: Workspace = None,
    ) -> None:
        """Parse the policies and check them against their schema."""
        configure(app, None, workspace)
        check_policy(app, packs)

    @group.command()
    def test(
        file: Annotated[Path, typer.Argument(help="A table of cases, TOML or YAML.")],
        pack: Annotated[
            list[str] | None, typer.Option(help="Judge by these packs, beside those in use.")
        ] = None,
        workspace: Workspace = None,
    ) -> None:
        """Judge a table of calls and compare with what is expected."""
        configure(app, None, workspace)
        test_policy(app, file, pack or [])

    @group.command()
    def explain(
        tool: Annotated[str | None, typer.Argument(help="The tool.")] = None,
        arguments: Annotated[str, typer.Argument(help="Its arguments as JSON.")] = "{}",
        session: Annotated[str | None, typer.Option(help="The session that calls.")] = None,
        call: Annotated[
            str | None, typer.Option(help="A call of the session that was recorded.")
        ] = None,
        user: Annotated[str | None, typer.Option(help="The user on whose behalf.")] = None,
        channel: Annotated[str | None, typer.Option(help="The channel of that user.")] = None,
        workspace: Workspace = None,
        as_json: Json = False,
    ) -> None:
        """Say how a call would be decided, or was, and by whom."""
        configure(app, None, workspace)
        if call is not None:
            explain_recorded(app, session, call, user, channel, as_json=as_json)
        else:
            explain_call(app, tool, arguments, session, user, channel, as_json=as_json)

    @group.command()
    def approvals(
        revoke: Annotated[str | None, typer.Option(help="Take this approval back.")] = None,
        answer: Annotated[
            tuple[str, str] | None,
            typer.Option(
                help="Answer a question that waits: its id, and yes, session, '10 minutes' or no."
            ),
        ] = None,
        everything: Annotated[
            bool, typer.Option("--all", help="Also what is used, expired or revoked.")
        ] = False,
        as_json: Json = False,
    ) -> None:
        """Show, answer and revoke approvals."""
        from .approval import answer_question, list_approvals, revoke_approval

        if revoke is not None:
            revoke_approval(app, revoke)
        elif answer is not None:
            answer_question(app, *answer)
        else:
            list_approvals(app, everything=everything, as_json=as_json)


def check_policy(app: Hookline, names: list[str] | None) -> None:
    """Check packs and the floor, print every error, and exit with status 1 if there is one."""
    settings = settings_of(app)
    registered = {spec.id: spec.manifest_path.parent for spec in app.plugins.pack_specs}
    wanted = [(name, Path.cwd()) for name in names or ()] or [
        *((spec.id, app.home) for spec in app.plugins.pack_specs),
        *settings.packs,
    ]
    packs: list[Pack] = []
    faults: list[str] = list(settings.notes)
    for name, base in dict.fromkeys(wanted):
        try:
            pack = load_pack(find_pack(name, base, registered))
            found = schema_faults(pack.rules, pack.schema)
        except PolicyError as error:
            faults.append(str(error))
            continue
        packs.append(pack)
        faults += found
        say(not found, f"{pack.id} {pack.version}: {len(pack.rules)} policies in {pack.folder}")
    try:
        check_together(packs)
        rules = [] if names else [rule for one in settings.floors for rule in floor_rules(*one)]
        if rules:
            wrong = schema_faults(rules, SCHEMA)
            faults += wrong
            say(not wrong, f"{FLOOR}: {len(rules)} policies")
    except PolicyError as error:
        faults.append(str(error))
    if not names:
        say(True, f"default: {settings.default}")
    for fault in dict.fromkeys(faults):
        beside(fault)
    if faults:
        raise typer.Exit(FAILED)


def settings_of(app: Hookline) -> Layered:
    """What the configuration says."""
    user, project = app.config.own("policy"), app.config.of_project("policy")
    return layered(user, project, home=app.home, workspace=app.workspace)


def say(good: bool, text: str) -> None:
    """One line of the report."""
    mark = style("ok", "green") if good else style("!!", "red")
    typer.echo(f"{mark}  {text}")


def test_policy(app: Hookline, file: Path, packs: list[str]) -> None:
    """Run a table of cases, print each failure, and exit with status 1 if there is one."""
    from hookline.policy.cases import read_cases, run_cases

    cases = read_cases(file)
    user = app.config.own("policy")
    folders = [name if "/" not in name else str(Path(name).resolve()) for name in packs]
    policy = Policy.load(
        {**user, "packs": [*user.get("packs", ()), *folders]},
        app.config.of_project("policy"),
        home=app.home,
        workspace=app.workspace,
        registered=app.plugins.pack_specs,
    )

    def spec(name: str) -> Any:
        return app.tools.get(name).spec if name in app.tools else None

    results = asyncio.run(run_cases(cases, policy, workspace=app.workspace, spec=spec))
    failed = [result for result in results if not result.passed]
    for result in failed:
        wanted = f"{result.case.expect}{f' by {result.case.by}' if result.case.by else ''}"
        typer.echo(
            f"FAILED {result.title}\n  expected {wanted}, got {result.decision} "
            f"by {', '.join(result.deciders)}"
        )
    typer.echo(f"{len(results) - len(failed)} of {len(results)} cases as expected")
    if failed:
        raise typer.Exit(FAILED)


# --- explaining -------------------------------------------------------------------------------


def explain_call(
    app: Hookline,
    tool: str | None,
    arguments: str,
    session: str | None,
    user: str | None = None,
    channel: str | None = None,
    *,
    as_json: bool,
) -> None:
    """Explain what would happen to a user's call. Nothing runs and no one is asked."""
    if tool is None:
        raise BadInput('name a tool: hookline policy explain shell \'{"command": "ls"}\'')
    from hookline.tools.arguments import parse

    given, fault = parse(arguments)
    if fault is not None:
        raise BadInput(fault)
    identity = Identity("human" if user is None else user, "terminal" if channel is None else channel)
    steps = asyncio.run(weigh(app, tool, given, session or "terminal:local", identity))
    show(f"{tool} {json.dumps(given)}", strictest(steps), steps, identity, as_json=as_json)


async def weigh(
    app: Hookline, name: str, given: dict[str, Any], session: str, identity: Identity
) -> list[PolicyStep]:
    """Ask the plugins, then the policy, as the runner does."""
    from hookline.tools.action import describe
    from hookline.tools.calls import Admitted, Requested, ToolCaller
    from hookline.types import ToolCall

    ctx = app.context(session, identity)
    call: ToolCall = ToolCall("explained", name, given, ctx.agent_id, session)
    caller = ToolCaller(ctx, cast("Any", None), app.workspace, identity=identity)
    if name in app.tools:
        app.passive = True
    async with app.running():
        if (servers := mcp_of(app)) is not None:
            await servers.ready()
        tool = app.tools.get(name)
        tool.validate(dict(given))
        action = describe(Admitted(call, Requested(call.id, name, given), tool), caller)
        hook = app.hooks["authorize_action"]
        authorized = await hook.fire(dict(action)) if hook.live else None
        decision = Decision.DENY if authorized is False else Decision.ALLOW
        answer = {True: "allowed", False: "denied", None: "no plugin answered"}[authorized]
        first = PolicyStep("authorize_action", decision, "authorize_action", answer)
        judged = await app.policy.explain({**action, "authorized": authorized})
    return [first, *(step for step in judged if step.by != "authorize_action")]


def explain_recorded(
    app: Hookline,
    session: str | None,
    call: str,
    user: str | None = None,
    channel: str | None = None,
    *,
    as_json: bool,
) -> None:
    """Say who decided on a call that is on the tape, and on whose behalf it was made."""
    if session is None:
        raise BadInput("--call needs the session: --session terminal:local --call ID")
    if user is not None or channel is not None:
        raise BadInput("--user and --channel are recorded with a call: leave them out with --call")
    entries, identity = asyncio.run(recorded(app, session, call))
    if not entries:
        raise BadInput(f"session {session!r} has no call {call!r}; `hookline tape show` lists them")
    first, last = entries[0], entries[-1]
    rulings: list[dict[str, Any]] = last.meta.get("rulings") or first.meta.get("rulings") or []
    steps = [
        PolicyStep("recorded", Decision[ruling["decision"].upper()], ruling["by"], ruling["reason"])
        for ruling in rulings
    ]
    ran = any(entry.payload.get("ran") or entry.kind == "tool_call" for entry in entries)
    arguments = first.payload.get("arguments")
    title = f"{first.payload['name']} {json.dumps(arguments) if arguments is not None else ''}".rstrip()
    show(title, Decision.ALLOW if ran else Decision.DENY, steps, identity, as_json=as_json)


async def recorded(app: Hookline, session: str, call: str) -> tuple[list[Entry], Identity]:
    """What the tape has of a call, and on whose behalf it was made."""
    from hookline.observe.trace.turns import call_id_of, identity_of, turns_of

    app.passive = True
    app.absences.enforced = False
    async with app.running():
        entries = await app.store().entries(session, kinds=["turn", "tool_call", "tool_result"])
    own = [e for e in entries if call_id_of(e) == call]
    turn = next((t.entries[0] for t in turns_of(entries) if any(e in t.entries for e in own)), None)
    return own, identity_of(own, turn)


def show(
    title: str, decision: Decision, steps: list[PolicyStep], identity: Identity, *, as_json: bool
) -> None:
    """The decision, on whose behalf it was made, and the chain that led to it."""
    outcome = decision.name.lower()
    if as_json:
        chain = [
            {
                "stage": step.stage,
                "decision": step.decision.name.lower(),
                "by": step.by,
                "reason": step.reason,
                "place": step.place,
            }
            for step in steps
        ]
        found = {"call": title, "decision": outcome, "identity": identity.plain(), "chain": chain}
        print_json(found)
        return
    typer.echo(f"{style(outcome, COLOURS[outcome])}  {title}")
    typer.echo(f"  on behalf of {identity}")
    for step in steps:
        written = f"  [{step.place}]" if step.place else ""
        reason = f": {step.reason}" if step.reason else ""
        typer.echo(f"  {step.decision.name.lower():<5}  {step.by}{reason}{written}")
    if not steps:
        typer.echo("  nobody objected, and no decision was recorded")
